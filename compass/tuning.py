"""Choosing the compass's settings: thousands of them a second over features that were measured once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random

import numpy as np
from numpy.typing import NDArray

from katha.compass.repair import BoardFeatures, TransitionFeatures, weakest_transition
from katha.eval_bridge.scoring.statistics import averages
from katha.schema import DIMENSIONS, CompassSettings, Record, TransitionScore

Counts = list[list[float]]
"""Story counts of one board on the reporting questions: (dimensions, 4), see `eval_bridge.statistics`."""


class RepairData(Record):
    """A candidate with a bridge drawn from one seed; `closest`: its largest similarity to a neighbour."""

    seed: int
    features: BoardFeatures
    closest: float
    counts: Counts


class CandidateData(Record):
    """One seed's board, and its repairs by transition (`first-second`), one for each bridge seed."""

    seed: int
    features: BoardFeatures
    counts: Counts
    repairs: dict[str, list[RepairData]] = {}


class StoryData(Record):
    """One validation story: its candidates in the order of the seeds."""

    story_id: str
    identity: str = ""
    candidates: list[CandidateData]


def possible_weakest(transitions: Sequence[TransitionFeatures]) -> list[tuple[int, int]]:
    """The transitions that Eq. 27 can choose under any threshold: one without a scored question is scored by coverage,
    which changes only where the threshold passes a similarity."""
    deltas = (-1.0, *(item.similarity for item in transitions))
    return sorted({pair for delta in deltas if (pair := weakest_at(transitions, delta)[0]) is not None})


def weakest_at(transitions: Sequence[TransitionFeatures], delta: float) -> tuple[tuple[int, int] | None, float]:
    """Eq. 27 under one threshold: the transition and its score; None without any."""
    scored = [
        TransitionScore(
            pair=item.pair,
            recoverability=item.recoverability,
            n_questions=item.n_questions,
            similarity=item.similarity,
            covered=item.similarity > delta,
            copied=False,
        )
        for item in transitions
    ]
    weakest = weakest_transition(scored)
    return (weakest.pair, weakest.score) if weakest is not None else (None, 0.0)


# Everything that a setting decides (which candidate, whether it is repaired, whether the repair stays) is array
# arithmetic over all stories at once. `Table.boards` follows Eqs. 24 to 27 and Algorithm 1 to the letter; the tests
# hold it against the functions that a run uses.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_TEXT, _IMAGE = 0, 1
_NONE = -np.inf


@dataclass(frozen=True)
class Setting:
    """One point: how many candidates, and the weights and thresholds."""

    candidates: int
    lambda_r: float
    lambda_t: float
    lambda_p: float
    delta: float
    gamma: float
    repair_threshold: float

    def compass(self) -> CompassSettings:
        """The weights and thresholds as a run takes them."""
        return CompassSettings(**{name: value for name, value in vars(self).items() if name != "candidates"})


@dataclass(frozen=True)
class Grid:
    """The values that are tried. Only ratios of weights matter, so `lambda_r` is 1."""

    candidates: tuple[int, ...] = (1, 2, 3)
    lambda_r: tuple[float, ...] = (1.0,)
    lambda_t: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
    lambda_p: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
    delta: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    gamma: tuple[float, ...] = (0.8, 0.9, 0.95, 0.98, 1.0)
    repair_threshold: tuple[float, ...] = (0.0, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)

    @classmethod
    def fitting(cls, stories: Sequence[StoryData]) -> Grid:
        """The grid whose thresholds are quantiles of the similarities that were measured: each model has its scale."""
        boards = [one for item in stories for one in item.candidates]
        steps = [step.similarity for one in boards for step in one.features.transitions]
        pairs = [value for one in boards for value in one.features.adjacent]
        most = max((len(item.candidates) for item in stories), default=1)
        return cls(
            candidates=tuple(range(1, most + 1)),
            delta=_quantiles(steps, (10, 25, 40, 50, 60, 75, 90)) or cls.delta,
            gamma=tuple(sorted({*_quantiles(pairs, (50, 75, 90, 97)), 1.0})),
        )


def _quantiles(values: Sequence[float], levels: Sequence[int]) -> tuple[float, ...]:
    found = np.percentile(values, levels) if values else np.zeros(0)
    return tuple(sorted({round(float(np.clip(value, -1.0, 1.0)), 3) for value in found}))


def sample_settings(grid: Grid, count: int, first: Setting, seed: int = 42) -> list[Setting]:
    """`first`, then at most `count` - 1 others of the grid, drawn without replacement by seed, cheapest first.

    The order is the preference among equals: fewer candidates, then fewer repairs, then nearer to `first`.
    """
    names = list(vars(first))
    axes = [getattr(grid, name) for name in names]
    size = int(np.prod([len(axis) for axis in axes]))
    if size <= count:
        chosen = [Setting(*values) for values in product(*axes)]
    else:
        places = Random(seed).sample(range(size), count)
        shape = [len(axis) for axis in axes]
        picks = np.unravel_index(places, shape)
        chosen = [
            Setting(*(axis[int(at)] for axis, at in zip(axes, row, strict=True))) for row in zip(*picks, strict=True)
        ]

    def far(item: Setting) -> tuple[float, ...]:
        distance = sum(abs(getattr(item, name) - getattr(first, name)) for name in names[1:])
        return (item.candidates, item.repair_threshold, distance, *vars(item).values())

    rest = sorted({item for item in chosen if item != first}, key=far)
    return [first, *rest[: max(0, count - 1)]]


class Table:
    """The features of every story as arrays.

    Boards of a story are numbered: its candidates, then for candidate j, possible weakest transition p and bridge seed
    k the number N + (j P + p) K + k. `counts` has shape (stories, boards, dimensions, 4).
    """

    def __init__(self, stories: Sequence[StoryData], deltas: Sequence[float]) -> None:
        self.stories = list(stories)
        self.deltas = tuple(dict.fromkeys(deltas))
        self.size = len(self.stories)
        self.width = max(len(item.candidates) for item in self.stories)
        pairs = [list(one.repairs) for item in self.stories for one in item.candidates]
        self.places = max([1, *map(len, pairs)])
        repairs = [len(row) for item in self.stories for one in item.candidates for row in one.repairs.values()]
        self.draws = max([1, *repairs])
        self._fill()

    def _fill(self) -> None:
        s, n, p, k = self.size, self.width, self.places, self.draws
        steps = max(len(one.features.transitions) for item in self.stories for one in item.candidates)
        frames = max(len(board.adjacent) for board in self._features()) if s else 0
        self.there = np.zeros((s, n), dtype=bool)
        self.recovered = np.full((s, n), np.nan)
        self.similar = np.full((s, n, steps), np.nan)
        self.adjacent = np.full((s, n, frames), np.nan)
        self.fixed = np.full((s, n, p, k), np.nan)
        self.fixed_there = np.zeros((s, n, p, k), dtype=bool)
        self.fixed_similar = np.full((s, n, p, k, steps), np.nan)
        self.fixed_adjacent = np.full((s, n, p, k, frames), np.nan)
        self.closest = np.full((s, n, p, k), np.inf)
        self.asked = np.zeros((s, n, p, k), dtype=bool)
        self.weak_place = np.full((len(self.deltas), s, n), -1, dtype=np.int64)
        self.weak_score = np.full((len(self.deltas), s, n), np.inf)
        self.counts = np.zeros((s, n * (1 + p * k), len(DIMENSIONS), 4))
        for at, item in enumerate(self.stories):
            self._fill_story(at, item)

    def _features(self) -> Iterator[BoardFeatures]:
        for item in self.stories:
            for one in item.candidates:
                yield one.features
                yield from (repair.features for row in one.repairs.values() for repair in row)

    def _fill_story(self, at: int, item: StoryData) -> None:
        for j, one in enumerate(item.candidates):
            self.there[at, j] = True
            self.recovered[at, j] = _number(one.features.recoverability)
            _put(self.similar[at, j], [step.similarity for step in one.features.transitions])
            _put(self.adjacent[at, j], one.features.adjacent)
            self.counts[at, j] = one.counts
            for place, row in enumerate(one.repairs.values()):
                for k, repair in enumerate(row):
                    self._fill_repair(at, j, place, k, repair)
            names = list(one.repairs)
            for d, delta in enumerate(self.deltas):
                pair, score = weakest_at(one.features.transitions, delta)
                name = f"{pair[0]}-{pair[1]}" if pair else ""
                if name in names:
                    self.weak_place[d, at, j] = names.index(name)
                    self.weak_score[d, at, j] = score

    def _fill_repair(self, at: int, j: int, place: int, k: int, repair: RepairData) -> None:
        where = (at, j, place, k)
        self.fixed_there[where] = True
        self.fixed[where] = _number(repair.features.recoverability)
        _put(self.fixed_similar[where], [step.similarity for step in repair.features.transitions])
        _put(self.fixed_adjacent[where], repair.features.adjacent)
        self.closest[where] = repair.closest
        self.asked[where] = any(step.n_questions for step in repair.features.transitions)
        self.counts[at, self.width + (j * self.places + place) * self.draws + k] = repair.counts

    def boards(self, settings: Sequence[Setting]) -> Ints:
        """The board that each story ends with under each setting, shape (settings, stories)."""
        found = np.zeros((len(settings), self.size), dtype=np.int64)
        groups: dict[tuple[float, float], list[int]] = {}
        for at, item in enumerate(settings):
            groups.setdefault((item.delta, item.gamma), []).append(at)
        shares = lru_cache(maxsize=None)(self._coverage), lru_cache(maxsize=None)(self._copies)
        for (delta, gamma), members in groups.items():
            found[members] = self._group([settings[at] for at in members], shares[0](delta), shares[1](gamma))
        return found

    def _coverage(self, delta: float) -> tuple[Floats, Floats]:
        return _share(self.similar, delta), _share(self.fixed_similar, delta)

    def _copies(self, gamma: float) -> tuple[Floats, Floats]:
        return _share(self.adjacent, gamma), _share(self.fixed_adjacent, gamma)

    def _group(
        self, settings: Sequence[Setting], covered: tuple[Floats, Floats], copied: tuple[Floats, Floats]
    ) -> Ints:
        """Settings that share delta and gamma, shape (settings, stories)."""
        r, t, p, n, rho = (
            np.array([getattr(item, name) for item in settings], dtype=np.float64)[:, None, None]
            for name in ("lambda_r", "lambda_t", "lambda_p", "candidates", "repair_threshold")
        )
        gained = np.where(np.isnan(self.recovered), 0.0, r * np.nan_to_num(self.recovered))
        total = gained + t * covered[0] - p * copied[0]
        there = self.there & (np.arange(self.width) < n)
        chosen = _best(total, there, ~np.isnan(self.recovered))
        rows = np.arange(self.size)
        score = np.take_along_axis(total, chosen[..., None], axis=2)[..., 0]
        d = self.deltas.index(settings[0].delta)
        place = self.weak_place[d][rows, chosen]
        weak = (place >= 0) & (self.weak_score[d][rows, chosen] < rho[:, :, 0])
        at = np.maximum(place, 0)
        known = self.fixed[rows, chosen, at]
        gain = np.where(np.isnan(known), 0.0, r * np.nan_to_num(known))
        again = gain + t * covered[1][rows, chosen, at] - p * copied[1][rows, chosen, at]
        tried = _best(again, self.fixed_there[rows, chosen, at], ~np.isnan(known))
        better = np.take_along_axis(again, tried[..., None], axis=2)[..., 0] > score
        fresh = self.closest[rows, chosen, at, tried] <= settings[0].gamma
        scored = ~np.isnan(np.take_along_axis(known, tried[..., None], axis=2)[..., 0])
        same = scored == ~np.isnan(self.recovered[rows, chosen])
        shown = scored | ~self.asked[rows, chosen, at, tried]
        kept = weak & self.fixed_there[rows, chosen, at].any(axis=2) & better & fresh & same & shown
        repaired = self.width + (chosen * self.places + at) * self.draws + tried
        final: Ints = np.where(kept, repaired, chosen)
        return final

    def sums(self, boards: Ints, folds: Ints, count: int, chunk: int = 128) -> Floats:
        """Counts added up by fold, shape (settings, folds, dimensions, 4); `folds` has shape (stories,)."""
        member = np.eye(count)[folds].T
        flat = self.counts.reshape(self.size, -1, len(DIMENSIONS) * 4)
        rows = np.arange(self.size)
        parts = []
        for start in range(0, len(boards), chunk):
            own = flat[rows, boards[start : start + chunk]]
            parts.append(np.einsum("fs,gsc->gfc", member, own, optimize=True))
        return np.concatenate(parts).reshape(len(boards), count, len(DIMENSIONS), 4)

    def of(self, boards: Ints) -> Floats:
        """The counts of one setting's boards, shape (stories, dimensions, 4)."""
        found: Floats = self.counts[np.arange(self.size), boards]
        return found

    def repaired(self, boards: Ints) -> Floats:
        """The share of stories whose board was repaired, by setting."""
        share: Floats = (boards >= self.width).mean(axis=-1)
        return share


def fold_gaps(sums: Floats) -> Floats:
    """STG in 0..1 of counts of shape (..., dimensions, 4)."""
    means = averages(sums)
    gap: Floats = means[..., _TEXT] - means[..., _IMAGE]
    return gap


def best_setting(gaps: Floats) -> int:
    """The smallest gap; of those equal to twelve digits the first, which is the cheapest."""
    return int(np.nanargmin(np.round(gaps, 12)))


def _best(total: Floats, there: NDArray[np.bool_], scored: NDArray[np.bool_]) -> Ints:
    """`choose.best_candidate` along the last axis: scored questions first, then the score, then the order."""
    open_ones = np.broadcast_to(there, total.shape)
    first = open_ones & np.broadcast_to(scored, total.shape)
    kept = np.where(first.any(axis=-1, keepdims=True), first, open_ones)
    place: Ints = np.argmax(np.where(kept, total, _NONE), axis=-1)
    return place


def _share(values: Floats, threshold: float) -> Floats:
    """The share of the values along the last axis (NaN is none) above `threshold`; 0 when there is none."""
    number = (~np.isnan(values)).sum(axis=-1)
    above = (np.nan_to_num(values, nan=_NONE) > threshold).sum(axis=-1)
    share: Floats = above / np.maximum(number, 1)
    return share


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _put(target: Floats, values: Sequence[float]) -> None:
    target[: len(values)] = values
