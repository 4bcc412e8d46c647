"""Choosing the compass's settings: thousands of them a second over features that were measured once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import product
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from katha.compass.repair import BoardFeatures, TransitionFeatures, weakest_transition
from katha.eval_bridge.scoring.intervals import FEWEST_STORIES, METHOD
from katha.eval_bridge.scoring.rows import compare, row_numbers
from katha.eval_bridge.scoring.statistics import IMAGE, averages
from katha.eval_bridge.scoring.steering import steering_agreement, steering_words
from katha.schema import DIMENSIONS, CompassSettings, Record, TransitionScore
from katha.schema.scores import BlockName
from katha.schema.tables import CurvePoint, TuningBlock, TuningGain, TuningResult

Counts = list[list[float]]
"""Story counts of one board on the reporting questions: (dimensions, 4), see `eval_bridge.statistics`."""


class BoardData(Record):
    """One board: its features, and its reporting outcomes on the questions that are valid for the story's plain boards
    (`counts`, which the choice minimises), on its own valid ones, and on every scored one."""

    seed: int
    features: BoardFeatures
    counts: Counts
    own: Counts | None = None
    raw: Counts | None = None

    def on(self, block: BlockName) -> Counts:
        """Return the outcomes on one block of questions."""
        found = {"common_valid": self.counts, "filtered": self.own, "raw": self.raw}[block]
        return self.counts if found is None else found


class RepairData(BoardData):
    """A candidate with a bridge drawn from one seed; `closest`: its largest similarity to a neighbour."""

    closest: float


class CandidateData(BoardData):
    """One seed's board, and its repairs by transition (`first-second`), one for each bridge seed."""

    repairs: dict[str, list[RepairData]] = {}


class StoryData(Record):
    """One validation story: its candidates in the order of the seeds. chance: how often a guess at one of its reporting
    questions is right, 0 to 1."""

    story_id: str
    identity: str = ""
    chance: float = 0.0
    candidates: list[CandidateData]


def possible_weakest(transitions: Sequence[TransitionFeatures]) -> list[tuple[int, int]]:
    """Return the transitions that Eq. 27 can choose under any threshold.

    One without a scored question is scored by coverage, which changes only where the threshold passes a similarity.
    """
    deltas = (-1.0, *(item.similarity for item in transitions))
    return sorted({pair for delta in deltas if (pair := weakest_at(transitions, delta)[0]) is not None})


def weakest_at(transitions: Sequence[TransitionFeatures], delta: float) -> tuple[tuple[int, int] | None, float]:
    """Return Eq. 27 under one threshold: the transition and its score; None without any."""
    weakest = weakest_transition(
        [TransitionScore(**dict(item), covered=item.similarity > delta, copied=False) for item in transitions]
    )
    return (weakest.pair, weakest.score) if weakest is not None else (None, 0.0)


# Everything that a setting decides (which candidate, whether it is repaired, whether the repair stays) is array
# arithmetic over all stories at once. `Table.boards` follows Eqs. 24 to 27 and Algorithm 1 to the letter; the tests
# hold it against the functions that a run uses.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_TEXT, _IMAGE = 0, 1
_NONE = -np.inf
# Five parts, as is usual: with 20 stories each is scored by a choice on 16.
_FOLDS = 5
_BESIDE: tuple[BlockName, ...] = ("filtered", "raw")
_VARIED = ("candidates", "lambda_t", "lambda_p", "delta", "gamma", "repair_threshold")
T = TypeVar("T", bound=np.generic)


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
        """Return the weights and thresholds as a run takes them."""
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
        """Return the grid with thresholds at quantiles of the measured similarities: each model has its scale."""
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
    """Return `first`, then at most `count` - 1 others of the grid, drawn without replacement by seed, cheapest first.

    The order is the preference among equals: fewer candidates, then fewer repairs, then nearer to `first`.
    """
    names = list(vars(first))
    axes = [getattr(grid, name) for name in names]
    size = int(np.prod([len(axis) for axis in axes]))
    if size <= count:
        chosen = [Setting(*values) for values in product(*axes)]
    else:
        picks = np.unravel_index(Random(seed).sample(range(size), count), [len(axis) for axis in axes])
        chosen = [Setting(*(axis[at] for axis, at in zip(axes, row, strict=True))) for row in zip(*picks, strict=True)]

    def far(item: Setting) -> tuple[float, ...]:
        distance = sum(abs(getattr(item, name) - getattr(first, name)) for name in names[1:])
        return (item.candidates, item.repair_threshold, distance, *vars(item).values())

    rest = sorted({item for item in chosen if item != first}, key=far)
    return [first, *rest[: max(0, count - 1)]]


class FeatureTable:
    """The features of every story as arrays; `counts` has shape (stories, boards, dimensions, 4), and so has each of
    `blocks`, the same boards on other questions.

    Boards of a story are numbered: its candidates, then for candidate j, possible weakest transition p and bridge seed
    k the number N + (j P + p) K + k.
    """

    def __init__(self, stories: Sequence[StoryData], deltas: Sequence[float]) -> None:
        self.deltas = tuple(dict.fromkeys(deltas))
        self.size = len(stories)
        everyone = [one for item in stories for one in item.candidates]
        self.width = max(len(item.candidates) for item in stories)
        self.places = max([1, *(len(one.repairs) for one in everyone)])
        self.draws = max([1, *(len(row) for one in everyone for row in one.repairs.values())])
        boards = [board for item in stories for _, board in self._boards_of(item)]
        steps = max(len(one.features.transitions) for one in everyone)
        frames = max((len(board.features.adjacent) for board in boards), default=0)
        shape = (self.size, self.width * (1 + self.places * self.draws))
        self.there, self.asked = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self.recovered, self.closest = np.full(shape, np.nan), np.full(shape, np.inf)
        self.similar, self.adjacent = np.full((*shape, steps), np.nan), np.full((*shape, frames), np.nan)
        self.counts = np.zeros((*shape, len(DIMENSIONS), 4))
        self.blocks: dict[BlockName, Floats] = {name: np.zeros_like(self.counts) for name in _BESIDE}
        self.blocks["common_valid"] = self.counts
        self.weak_place = np.full((len(self.deltas), self.size, self.width), -1, dtype=np.int64)
        self.weak_score = np.full(self.weak_place.shape, np.inf)
        for at, item in enumerate(stories):
            self._fill(at, item)

    def _boards_of(self, item: StoryData) -> Iterator[tuple[int, CandidateData | RepairData]]:
        """Yield every board of a story with its number."""
        for j, one in enumerate(item.candidates):
            yield j, one
            for place, row in enumerate(one.repairs.values()):
                yield from enumerate(row, self.width + (j * self.places + place) * self.draws)

    def _fill(self, at: int, item: StoryData) -> None:
        for number, board in self._boards_of(item):
            features, where = board.features, (at, number)
            self.there[where] = True
            self.recovered[where] = np.nan if features.recoverability is None else features.recoverability
            self.similar[where][: len(features.transitions)] = [step.similarity for step in features.transitions]
            self.adjacent[where][: len(features.adjacent)] = features.adjacent
            self.asked[where] = any(step.n_questions for step in features.transitions)
            self.counts[where] = board.counts
            for block in _BESIDE:
                self.blocks[block][where] = board.on(block)
            if isinstance(board, RepairData):
                self.closest[where] = board.closest
        for j, one in enumerate(item.candidates):
            names = list(one.repairs)
            for d, delta in enumerate(self.deltas):
                pair, score = weakest_at(one.features.transitions, delta)
                name = f"{pair[0]}-{pair[1]}" if pair else ""
                if name in names:
                    self.weak_place[d, at, j], self.weak_score[d, at, j] = names.index(name), score

    def boards(self, settings: Sequence[Setting]) -> Ints:
        """Return the board that each story ends with under each setting, shape (settings, stories)."""
        found = np.zeros((len(settings), self.size), dtype=np.int64)
        groups: dict[tuple[float, float], list[int]] = {}
        for at, item in enumerate(settings):
            groups.setdefault((item.delta, item.gamma), []).append(at)
        covered, copied = (lru_cache(maxsize=None)(partial(_share, values)) for values in (self.similar, self.adjacent))
        for (delta, gamma), members in groups.items():
            found[members] = self._group([settings[at] for at in members], covered(delta), copied(gamma))
        return found

    def _group(self, settings: Sequence[Setting], covered: Floats, copied: Floats) -> Ints:
        """Return the boards of settings that share delta and gamma, shape (settings, stories)."""
        r, t, p, n, rho = (
            np.array([getattr(item, name) for item in settings], dtype=np.float64)[:, None, None]
            for name in ("lambda_r", "lambda_t", "lambda_p", "candidates", "repair_threshold")
        )
        rows = np.arange(self.size)

        def worth(boards: Ints) -> tuple[Floats, NDArray[np.bool_]]:
            """Return Eq. 24 of boards, shape (..., stories, N or K), and which of them have scored questions."""
            at = (rows[:, None], boards)
            known = self.recovered[at]
            gained = np.where(np.isnan(known), 0.0, r * np.nan_to_num(known))
            return gained + t * covered[at] - p * copied[at], ~np.isnan(known)

        total, scored = worth(np.arange(self.width)[None])
        chosen = _best(total, self.there[:, : self.width] & (np.arange(self.width) < n), scored)
        d = self.deltas.index(settings[0].delta)
        place = self.weak_place[d][rows, chosen]
        weak = (place >= 0) & (self.weak_score[d][rows, chosen] < rho[:, :, 0])
        first = self.width + (chosen * self.places + np.maximum(place, 0)) * self.draws
        repairs = first[..., None] + np.arange(self.draws)
        again, told = worth(repairs)
        there = self.there[rows[:, None], repairs]
        tried = _best(again, there, told)
        final = first + tried
        better = _at(again, tried) > _at(total, chosen)
        fresh = self.closest[rows, final] <= settings[0].gamma
        answered = _at(told, tried)
        same = answered == scored[rows, chosen]
        shown = answered | ~self.asked[rows, final]
        board: Ints = np.where(weak & there.any(axis=2) & better & fresh & same & shown, final, chosen)
        return board

    def sums(self, boards: Ints, folds: Ints, count: int, chunk: int = 128) -> Floats:
        """Return counts added up by fold, shape (settings, folds, dimensions, 4); `folds` has shape (stories,)."""
        member = np.eye(count)[folds].T
        flat = self.counts.reshape(self.size, -1, len(DIMENSIONS) * 4)
        rows = np.arange(self.size)
        parts = []
        for start in range(0, len(boards), chunk):
            own = flat[rows, boards[start : start + chunk]]
            parts.append(np.einsum("fs,gsc->gfc", member, own, optimize=True))
        return np.concatenate(parts).reshape(len(boards), count, len(DIMENSIONS), 4)

    def of(self, boards: Ints, block: BlockName = "common_valid") -> Floats:
        """Return the counts of one setting's boards, shape (stories, dimensions, 4)."""
        found: Floats = self.blocks[block][np.arange(self.size), boards]
        return found

    def repaired(self, boards: Ints) -> Floats:
        """Return the share of stories whose board was repaired, by setting."""
        share: Floats = (boards >= self.width).mean(axis=-1)
        return share


def fold_gaps(sums: Floats) -> Floats:
    """Return STG in 0..1 of counts of shape (..., dimensions, 4)."""
    means = averages(sums)
    gap: Floats = means[..., _TEXT] - means[..., _IMAGE]
    return gap


def best_setting(gaps: Floats) -> int:
    """Return the smallest gap; of those equal to twelve digits the first, which is the cheapest.

    Where no gap is known (no question of these stories counts) that is the first of all: the settings before.
    """
    return 0 if np.isnan(gaps).all() else int(np.nanargmin(np.round(gaps, 12)))


def _best(total: Floats, there: NDArray[np.bool_], scored: NDArray[np.bool_]) -> Ints:
    """Return `best_candidate` along the last axis: scored questions first, then the score, then the order."""
    open_ones = np.broadcast_to(there, total.shape)
    first = open_ones & np.broadcast_to(scored, total.shape)
    kept = np.where(first.any(axis=-1, keepdims=True), first, open_ones)
    place: Ints = np.argmax(np.where(kept, total, _NONE), axis=-1)
    return place


def _share(values: Floats, threshold: float) -> Floats:
    """Return the share of the values along the last axis (NaN is none) above `threshold`; 0 when there is none."""
    number = (~np.isnan(values)).sum(axis=-1)
    above = (np.nan_to_num(values, nan=_NONE) > threshold).sum(axis=-1)
    share: Floats = above / np.maximum(number, 1)
    return share


def _at(values: NDArray[T], places: Ints) -> NDArray[T]:
    """Return the values at `places` along the last axis, which falls away."""
    return np.take_along_axis(values, places[..., None], axis=-1)[..., 0]


# From features to a choice: the best setting, what it gains and how sure that is, and the curve around it.


def choose(
    stories: Sequence[StoryData],
    seeds: Sequence[int],
    defaults: CompassSettings,
    tried: int,
    resamples: int,
    seed: int,
) -> TuningResult:
    """Return the setting with the smallest STG on the stories, and everything that says how far to trust it.

    All gaps are percentage points. `cross_validated` is the STG on stories that the choice did not see: with
    `folds` parts, each part is scored by the setting that the others choose.
    """
    first = Setting(len(seeds), **defaults.model_dump())
    grid = Grid.fitting(stories)
    settings = sample_settings(grid, tried, first, seed)
    table = FeatureTable(stories, [item.delta for item in settings] + list(grid.delta))
    folds = _folds(len(stories), seed)
    boards = table.boards(settings)
    sums = table.sums(boards, folds, int(folds.max()) + 1)
    gaps = fold_gaps(sums.sum(axis=1))
    best = best_setting(gaps)
    chosen, everyone = settings[best], np.ones(len(stories), dtype=bool)
    own, old = table.of(boards[best]), table.of(boards[0])
    numbers = row_numbers({"chosen": own, "default": old})
    gain = compare([(own, old, everyone)], resamples, seed)[0]
    steering = steering_agreement(_agreeing(stories))
    notes = [steering_words(steering)]
    if len(stories) < FEWEST_STORIES:
        notes.append(f"Stories: {len(stories)}, too few for an interval ({FEWEST_STORIES} are needed): no intervals.")
    return TuningResult(
        setting=asdict(chosen),
        default=asdict(first),
        stories=len(stories),
        tried=len(settings),
        stg=numbers["chosen"].stg,
        ci95=numbers["chosen"].stg_ci95,
        default_stg=numbers["default"].stg,
        gain=TuningGain(difference=gain.difference, ci95=gain.ci95, p_bootstrap=gain.p_bootstrap),
        cross_validated=_cross_validated(sums),
        folds=int(folds.max()) + 1,
        equally_good=int((np.round(gaps, 12) <= np.nanmin(np.round(gaps, 12))).sum()),
        repaired=100.0 * float(table.repaired(boards[best])),
        curve=_curve(table, chosen, grid, resamples, seed),
        blocks={name: _block(table, name, boards[best], boards[0]) for name in ("common_valid", *_BESIDE)},
        notes=notes,
        intervals=METHOD,
        steering=steering,
    )


def unchosen(found: TuningResult, why: str) -> TuningResult:
    """Return a tuning by a judge that cannot measure the stories: the settings stay, and no gap is told."""
    gone = dict.fromkeys(("stg", "ci95", "default_stg", "cross_validated"))
    nothing = TuningGain(difference=None, ci95=None, p_bootstrap=None)
    kept = {"setting": found.default, "gain": nothing, "curve": {}, "blocks": {}, "equally_good": 0, "repaired": 0.0}
    return found.model_copy(update={**gone, **kept, "unmeasured": why})


def _agreeing(stories: Sequence[StoryData]) -> Iterator[tuple[str, float, float]]:
    """Yield each board's story, steering recoverability, and image recoverability on its scored reporting questions."""
    for item in stories:
        for one in item.candidates:
            for board in (one, *(repair for row in one.repairs.values() for repair in row)):
                seen = averages(np.array(board.on("raw")))[IMAGE]
                if board.features.recoverability is not None and not np.isnan(seen):
                    yield item.story_id, board.features.recoverability, float(seen)


def _block(table: FeatureTable, name: BlockName, chosen: Ints, before: Ints) -> TuningBlock:
    """Return the choice and the settings before on one block of questions."""
    sums = [table.of(boards, name).sum(axis=0) for boards in (chosen, before)]
    gaps = [float(fold_gaps(item)) for item in sums]
    stg, old = (None if np.isnan(gap) else 100.0 * gap for gap in gaps)
    return TuningBlock(n=int(sums[0][:, 0].sum()), stg=stg, default_n=int(sums[1][:, 0].sum()), default_stg=old)


def _folds(count: int, seed: int) -> NDArray[np.int64]:
    """Return each story's part, shape (stories,): equal in size, by seed."""
    order = list(range(count))
    Random(seed).shuffle(order)
    folds = np.zeros(count, dtype=np.int64)
    folds[order] = np.arange(count) % min(_FOLDS, count)
    return folds


def _cross_validated(sums: Floats) -> float | None:
    """Return STG on stories that the choice did not see; None with a single story."""
    parts = sums.shape[1]
    if parts < 2:
        return None
    whole = sums.sum(axis=1)
    unseen = [sums[best_setting(fold_gaps(whole - sums[:, part])), part] for part in range(parts)]
    gap = float(fold_gaps(np.sum(unseen, axis=0)))
    return None if np.isnan(gap) else 100.0 * gap


def _curve(table: FeatureTable, chosen: Setting, grid: Grid, resamples: int, seed: int) -> dict[str, list[CurvePoint]]:
    """Return STG along each setting with the others as chosen; differences are to the choice."""
    points = [
        (name, value, replace(chosen, **{name: value}))
        for name in _VARIED
        for value in sorted({*getattr(grid, name), getattr(chosen, name)})
    ]
    boards = table.boards([item for _, _, item in points])
    own = table.of(table.boards([chosen])[0])
    counts = [table.of(row) for row in boards]
    everyone = np.ones(table.size, dtype=bool)
    numbers = row_numbers({str(at): item for at, item in enumerate(counts)})
    against = compare([(item, own, everyone) for item in counts], resamples, seed)
    curve: dict[str, list[CurvePoint]] = {}
    for at, (name, value, _) in enumerate(points):
        point = CurvePoint(
            value=value,
            chosen=value == getattr(chosen, name),
            stg=numbers[str(at)].stg,
            ci95=numbers[str(at)].stg_ci95,
            repaired=100.0 * float(table.repaired(boards[at])),
            difference=against[at].difference,
            difference_ci95=against[at].ci95,
        )
        curve.setdefault(name, []).append(point)
    return curve
