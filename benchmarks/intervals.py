"""How often 95% intervals over stories miss, by method: what the program computes, and what it was chosen among.

Made studies are as real ones are: few questions a story and some stories with none, gaps that are skewed by a judge who
reads nearly everything, differences that are zero because most stories have the same board in both rows, ties, stories
of very different size. Each story, question and board has its own chance of being read. The truth is the same estimate
over a hundred thousand stories.

Run it: python -m benchmarks.intervals [EXPERIMENTS [STORIES ...]]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from katha.eval_bridge.scoring.intervals import FEWEST_STORIES, correlation, t_quantile
from katha.eval_bridge.scoring.robustness import rank_rho
from katha.eval_bridge.scoring.rows import Spans, compare, correct, gap_interval, holds_question
from katha.eval_bridge.scoring.statistics import BOTH, COUNTS, IMAGE, TEXT, Floats, story_counts, story_gaps
from katha.experiments.ablate.conclusions import finding
from katha.experiments.metrics.relation import rank_correlation
from katha.schema import DIMENSIONS
from katha.schema.scores import Interval
from katha.schema.tables import RowComparison

__all__ = ["KINDS", "STORIES", "Study", "coverage", "decided", "made", "measure", "ranked"]

STORIES = (6, 7, 12, 24, 48)
_EXPERIMENTS, _RESAMPLES, _RANKED = 1_000, 1_000, 400
_SHAPE = (2, len(DIMENSIONS), COUNTS)
_LOW, _HIGH = 0.025, 0.975
_EFFECT = 0.6
What = Literal["gap", "no difference", "difference"]


@dataclass(frozen=True)
class Study:
    """How the stories of one kind are made, on the logit of a right answer from the images: `level` and its `spread`
    over stories. valid: the share of questions that count. same: of stories, those with one board in both rows."""

    questions: int
    level: float
    spread: float
    valid: float
    same: float = 0.0
    dimensions: int = len(DIMENSIONS)
    uneven: bool = False
    question: float = 0.8
    board: float = 0.7
    text: float = 0.95


KINDS: Mapping[str, Study] = {
    "even": Study(12, 0.4, 0.9, 0.75),
    "few questions": Study(6, 0.2, 1.2, 0.5),
    "skewed": Study(8, 2.2, 2.2, 0.85),
    "zero-inflated": Study(8, 0.3, 1.0, 0.7, same=0.6),
    "ties": Study(4, 0.0, 1.3, 0.8, dimensions=1),
    "uneven stories": Study(14, 0.5, 1.0, 0.7, uneven=True),
}


def made(study: Study, dice: np.random.Generator, stories: int, effect: float = 0.0) -> Floats:
    """Return the counts of two rows of a made study, of shape (2, stories, dimensions, COUNTS).

    effect: how much higher the first row's boards are read, on the logit.
    """
    shape = (stories, study.questions)
    story = study.level + study.spread * dice.standard_normal((1, stories, 1))
    item = study.question * dice.standard_normal((1, *shape))
    board = study.board * dice.standard_normal((2, stories, 1))
    higher = np.array([effect, 0.0])[:, None, None]
    image = dice.random((2, *shape)) < _logistic(story + item + board + higher)
    image[0] = np.where(dice.random((stories, 1)) < study.same, image[1], image[0])
    text = dice.random(shape) < study.text
    base = np.log(study.valid / (1.0 - study.valid))
    kept = dice.random(shape) < _logistic(base + 0.8 * dice.standard_normal((stories, 1)))
    if study.uneven:
        most = np.ceil(dice.lognormal(1.2, 0.9, (stories, 1)))
        kept &= np.argsort(dice.random(shape), axis=1) < most
    cells = np.arange(stories)[:, None] * len(DIMENSIONS) + dice.integers(0, study.dimensions, shape)
    right = np.zeros((3, stories * study.questions), dtype=bool)
    counts = []
    for row in range(2):
        right[TEXT], right[IMAGE], right[BOTH] = text.ravel(), image[row].ravel(), True
        counts.append(story_counts(right, kept.ravel(), cells.ravel(), stories))
    return np.stack(counts)


def _logistic(at: Floats) -> Floats:
    found: Floats = 1.0 / (1.0 + np.exp(-at))
    return found


def _gap(sums: Floats) -> Floats:
    return story_gaps(sums[..., 0, :, :])


def _difference(sums: Floats) -> Floats:
    gaps = story_gaps(sums)
    found: Floats = gaps[..., 0] - gaps[..., 1]
    return found


def _truth(study: Study, what: What, effect: float) -> float:
    if what == "no difference":
        return 0.0
    dice = np.random.default_rng(99)
    sums = sum((made(study, dice, 10_000, effect).sum(axis=1) for _ in range(10)), np.zeros(_SHAPE))
    return float((_gap if what == "gap" else _difference)(sums))


def _ours(counts: Floats, what: What) -> Interval | None:
    return Spans.of(counts[0]).gap(TEXT, IMAGE) if what == "gap" else gap_interval(counts[0], counts[1])


def _others(counts: Floats, what: What) -> dict[str, Interval]:
    """Return the intervals by the methods that were not chosen; nothing where no story differs."""
    of = _gap if what == "gap" else _difference
    stories = np.moveaxis(counts[:, holds_question(counts).any(axis=0)], 0, 1)
    number, whole = len(stories), stories.sum(axis=0)
    value, left = float(of(whole)), of(whole[None] - stories)
    error = _jackknife(left)
    if number < FEWEST_STORIES or not error > 0:
        return {}
    dice = np.random.default_rng(42)
    weights = dice.multinomial(number, np.full(number, 1.0 / number), _RESAMPLES).astype(np.float64)
    sums = (weights @ stories.reshape(number, -1)).reshape(_RESAMPLES, *stories.shape[1:])
    drawn = of(sums)
    kept = drawn[~np.isnan(drawn)]
    reach = t_quantile(number - 1.0) * error
    return {
        "percentile": _quantiles(kept, (_LOW, _HIGH)),
        "BCa": _quantiles(kept, _corrected(kept, value, left)),
        "bootstrap-t": _studentized(value, weights, sums, stories, what),
        "plain t": (100.0 * (value - reach), 100.0 * (value + reach)),
    }


def _quantiles(values: Floats, levels: Sequence[float]) -> Interval:
    low, high = np.quantile(values, levels)
    return 100.0 * float(low), 100.0 * float(high)


def _jackknife(left: Floats) -> float:
    return float(np.sqrt((len(left) - 1) / len(left) * np.nansum((left - np.nanmean(left)) ** 2)))


def _corrected(drawn: Floats, value: float, left: Floats) -> Interval:
    """Return the levels of BCa (Efron)."""
    normal = NormalDist()
    below = ((drawn < value - 1e-12).mean() + (drawn <= value + 1e-12).mean()) / 2.0
    bias = normal.inv_cdf(float(np.clip(below, 1.0 / len(drawn), 1.0 - 1.0 / len(drawn))))
    away = np.nanmean(left) - left
    speed = float(np.nansum(away**3) / (6.0 * np.nansum(away**2) ** 1.5))
    low, high = (
        normal.cdf(bias + (bias + at) / (1.0 - speed * (bias + at))) for at in map(normal.inv_cdf, (_LOW, _HIGH))
    )
    return low, high


def _studentized(value: float, weights: Floats, sums: Floats, stories: Floats, what: What) -> Interval:
    """Return the bootstrap-t interval; the error of each resample is that of the linearized estimate."""
    whole, once = stories.sum(axis=0)[None], np.ones((1, len(stories)))
    error, errors = float(_linear(whole, once, stories, what)[0]), _linear(sums, weights, stories, what)
    away = (_gap if what == "gap" else _difference)(sums) - value
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(errors > 1e-9, away / errors, np.where(np.abs(away) < 1e-12, 0.0, np.sign(away) * np.inf))
    ratios = np.sort(ratios[~np.isnan(ratios)])
    low, high = (ratios[round(level * (len(ratios) - 1))] for level in (_LOW, _HIGH))
    most = 1.0 if what == "gap" else 2.0  # what no gap and no difference can pass
    return 100.0 * max(-most, value - high * error), 100.0 * min(most, value - low * error)


def _linear(sums: Floats, weights: Floats, stories: Floats, what: What) -> Floats:
    """Return the standard error of each resample from every story's influence on it."""
    number = len(stories)
    influence = np.zeros((len(sums), number))
    for row, sign in ((0, 1.0),) if what == "gap" else ((0, 1.0), (1, -1.0)):
        asked = sums[:, row, :, 0]
        shares = (asked > 0) / np.maximum(asked, 1.0) / np.maximum((asked > 0).sum(axis=1), 1)[:, None]
        gaps = (sums[:, row, :, 1 + TEXT] - sums[:, row, :, 1 + IMAGE]) / np.maximum(asked, 1.0)
        own = stories[:, row, :, 1 + TEXT] - stories[:, row, :, 1 + IMAGE]
        influence += sign * (shares @ own.T - (shares * gaps) @ stories[:, row, :, 0].T)
    errors: Floats = np.sqrt(number / (number - 1) * (weights * influence**2).sum(axis=1))
    return errors


@dataclass
class _Seen:
    missed: int = 0
    number: int = 0
    wide: float = 0.0

    def add(self, found: Interval | None, truth: float) -> None:
        if found is not None and np.isfinite(found).all():
            self.number += 1
            self.missed += not found[0] - 1e-9 <= 100.0 * truth <= found[1] + 1e-9
            self.wide += found[1] - found[0]

    def told(self) -> dict[str, float]:
        if not self.number:
            return {"n": 0}
        width = round(self.wide / self.number, 1)
        return {"misses_percent": round(100.0 * self.missed / self.number, 1), "width": width, "n": self.number}


def coverage(
    study: Study, what: What, stories: int, experiments: int, *, beside: bool = True
) -> dict[str, dict[str, float]]:
    """Return by method how often the interval of `what` misses, in per cent, and its mean width in points.

    beside: with the methods that were not chosen.
    """
    effect = _EFFECT if what == "difference" else 0.0
    truth, seen = _truth(study, what, effect), defaultdict[str, _Seen](_Seen)
    for number in range(experiments):
        counts = made(study, np.random.default_rng([number, stories, 7]), stories, effect)
        seen["jackknife-t"].add(_ours(counts, what), truth)
        for name, found in _others(counts, what).items() if beside else ():
            seen[name].add(found, truth)
    return {name: item.told() for name, item in seen.items()}


def decided(study: Study, stories: int, experiments: int, effect: float) -> dict[str, float]:
    """Return, in per cent, how often one declared contrast is said to lose less and more, and the true difference and
    the spread over stories in points, by the rule of `katha ablate`."""
    everyone, said, spreads = np.ones(stories, dtype=bool), dict.fromkeys(("lower", "higher"), 0), []
    for number in range(experiments):
        first, second = made(study, np.random.default_rng([number, stories, 11]), stories, effect)
        (row,) = correct(compare([(first, second, everyone)], _RESAMPLES, 42), 0, primary=0)
        told = finding(RowComparison.model_validate({**dict(row), "a": "a", "b": "b", "what": "equal length"}))
        said = {name: count + (told == name) for name, count in said.items()}
        spreads += [row.spread] if row.spread is not None else []
    truth = _truth(study, "difference", effect) if effect else 0.0
    shares = {f"{name}_percent": round(100.0 * count / experiments, 1) for name, count in said.items()}
    return {**shares, "truth": round(100.0 * truth, 1), "spread": round(float(np.mean(spreads)), 1)}


def ranked(stories: int, true: float, experiments: int) -> dict[str, float]:
    """Return, in per cent, how often the intervals of a rank correlation miss: normal pairs, one a story."""
    dice, missed = np.random.default_rng([stories, round(100 * true), 5]), {"jackknife-t": 0, "percentile": 0}
    spearman = 6.0 / np.pi * np.arcsin(true / 2.0)
    for _ in range(experiments):
        x, other = dice.standard_normal((2, stories))
        y = true * x + np.sqrt(1.0 - true**2) * other
        left = [rank_correlation(np.delete(x, at), np.delete(y, at)) for at in range(stories)]
        drawn = dice.integers(0, stories, (_RANKED, stories))
        values = rank_rho(x[drawn], y[drawn])
        found = {
            "jackknife-t": correlation(rank_correlation(x, y) or 0.0, np.array(left, dtype=np.float64)),
            "percentile": np.quantile(values[~np.isnan(values)], (_LOW, _HIGH)),
        }
        for name, ends in found.items():
            missed[name] += ends is None or not ends[0] <= spearman <= ends[1]
    return {name: round(100.0 * count / experiments, 1) for name, count in missed.items()}


def _ranks(experiments: int) -> dict[str, dict[str, float]]:
    return {
        f"{count} stories, true {true}": ranked(count, true, experiments)
        for count in (8, 12, 24, 48)
        for true in (0.0, 0.5, 0.8)
    }


def _decisions(experiments: int) -> dict[str, dict[str, float]]:
    found = {}
    for kind, study in KINDS.items():
        for count in (7, 12, 24):
            found[f"{kind}, no difference, {count} stories"] = decided(study, count, experiments, 0.0)
        found[f"{kind}, difference, 48 stories"] = decided(study, 48, experiments, _EFFECT)
    return found


def _lines(experiments: int, stories: Sequence[int]) -> Iterator[tuple[str, str, int, dict[str, dict[str, float]]]]:
    wanted: tuple[What, ...] = ("gap", "no difference", "difference")
    for kind, study in KINDS.items():
        for what in wanted:
            yield from ((kind, what, count, coverage(study, what, count, experiments)) for count in stories)


def measure(experiments: int = _EXPERIMENTS, stories: Sequence[int] = STORIES) -> dict[str, Any]:
    """Return, by kind of study and number of stories, how often each method's 95% interval misses."""
    found: dict[str, Any] = {}
    sums: dict[tuple[str, int], list[float]] = defaultdict(list)
    for kind, what, count, told in _lines(experiments, stories):
        found[f"{kind}, {what}, {count} stories"] = told
        cells = "  ".join(f"{name} {item.get('misses_percent', '-')}" for name, item in told.items())
        print(f"{kind:<15} {what:<13} {count:>3}  {cells}", file=sys.stderr, flush=True)
        for name, item in told.items():
            sums[name, count].append(item.get("misses_percent", 0.0))
    means = {name: {count: round(float(np.mean(sums[name, count])), 1) for count in stories} for name, _ in sums}
    worst = {name: {count: max(sums[name, count]) for count in stories} for name, _ in sums}
    half = max(1, experiments // 2)
    whole: dict[str, Any] = {"experiments": experiments, "decisions": _decisions(half), "ranks": _ranks(half)}
    return whole | {"mean_misses_percent": means, "worst_misses_percent": worst, "all": found}


if __name__ == "__main__":
    given = partial(measure, int(sys.argv[1])) if len(sys.argv) > 1 else measure
    result = given(stories=[int(text) for text in sys.argv[2:]]) if len(sys.argv) > 2 else given()
    print({name: result[name] for name in ("mean_misses_percent", "worst_misses_percent", "decisions", "ranks")})
