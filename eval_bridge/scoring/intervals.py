"""95% intervals over stories, or over participants: the delete-one jackknife with Student's t.

Each function takes an estimate and the same estimate with each story left out (stories that hold no question change
nothing and are not among them). Shares are taken on the logit scale, so that an interval stays inside its scale; a
gap of two shares joins their intervals (Zou and Donner's MOVER); any other difference is symmetric, with degrees of
freedom by how unevenly the stories carry it. `benchmarks.intervals` measures how often each kind misses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from katha.eval_bridge.scoring.statistics import Floats
from katha.schema.scores import Interval

METHOD = "jackknife-t"
"""What files and tables call these intervals; a file of before names none and has percentiles of the bootstrap."""
FEWEST_STORIES = 6
"""With fewer, no two-sided exact paired test can reach 5% (2 / 2**5 is more), so no interval is given."""
FEWEST_RATERS = 2
"""Of participants there are few: Student's t makes the interval as wide as they are few."""
# Two-sided 95%: a fortieth on either side.
_LEVEL = 0.975
# What is left of zero after sums of doubles; gaps are multiples of 1/n and far above it.
_NOTHING = 1e-12
# Fisher's z of 1 is infinite, and of this 7.25: an interval then ends at 1.
_MOST_R = 0.999999
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def left_out(counts: Floats, of: Callable[[Floats], Floats]) -> Floats:
    """Return `of` the sums with each story left out in turn; nothing of fewer than `FEWEST_STORIES` stories.

    counts: (stories, ...), those of stories that hold a question. of: takes (n, ...) sums to n estimates.
    """
    whole = counts.sum(axis=0)[None]
    return of(whole - counts) if len(counts) >= FEWEST_STORIES else of(whole)[:0]


def share(value: float, left: Floats, fewest: int = FEWEST_STORIES) -> Interval | None:
    """Return the interval of a share in 0..1, in percentage points; None of fewer than `fewest` stories.

    A share of 0 or 1 in which no story differs has the exact bound of a mean that lies within 0 and 1.
    """
    return _points(_share_ends(value, left)) if _enough(left, fewest) else None


def gap(
    first: float, second: float, left_first: Floats, left_second: Floats, fewest: int = FEWEST_STORIES
) -> Interval | None:
    """Return the interval of one share minus another of the same stories, in percentage points; None of too few."""
    if not (_enough(left_first, fewest) and _enough(left_second, fewest)):
        return None
    errors = [_error(left) > _NOTHING for left in (left_first, left_second)]
    together = float(np.corrcoef(left_first, left_second)[0, 1]) if all(errors) else 0.0
    ends = [
        _share_ends(value, left) if varies or not any(errors) else (value, value)
        for value, left, varies in zip((first, second), (left_first, left_second), errors, strict=True)
    ]
    (low_a, high_a), (low_b, high_b) = ends
    down, up = _joined(first - low_a, high_b - second, together), _joined(high_a - first, second - low_b, together)
    return _points((first - second - down, first - second + up))


def difference(value: float, left: Floats, fewest: int = FEWEST_STORIES) -> Interval | None:
    """Return the interval of any smooth difference, in percentage points; None of fewer than `fewest` stories.

    Where no story differs, the bound is that of how many stories may.
    """
    if not _enough(left, fewest):
        return None
    error, count = _error(left), len(left)
    reach = error * t_quantile(_freedom(left)) if error > _NOTHING else 1.0 - _all_alike(count)
    return _points((value - reach, value + reach))


def mean(value: float, left: Floats, fewest: int = FEWEST_STORIES) -> Interval | None:
    """Return the interval of a mean on a scale of its own; None of too few stories, or where none differs."""
    if not _enough(left, fewest) or _error(left) <= _NOTHING:
        return None
    reach = _error(left) * t_quantile(_freedom(left))
    return round(value - reach, 9), round(value + reach, 9)


def correlation(value: float, left: Floats) -> Interval | None:
    """Return the interval of a correlation, on Fisher's scale; None of too few stories, or where none differs."""
    if not _enough(left, FEWEST_STORIES):
        return None
    span = mean(_fisher(value), np.arctanh(np.clip(left, -_MOST_R, _MOST_R)))
    return (round(math.tanh(span[0]), 9), round(math.tanh(span[1]), 9)) if span is not None else None


def _fisher(value: float) -> float:
    return math.atanh(min(_MOST_R, max(-_MOST_R, value)))


def share_interval(
    stories: Sequence[str] | Sequence[int],
    hits: Sequence[float],
    *,
    counted: Sequence[float] | None = None,
    signed: bool = False,
) -> Interval | None:
    """Return the interval of the share of hits, one number (0 to 1) an item, over the items' stories.

    counted: 0 leaves an item out. signed: the numbers are differences, which may be below zero as well (so is one hit).
    """
    _, places = np.unique(np.asarray(stories), return_inverse=True)
    kept = np.ones(len(places)) if counted is None else np.asarray(counted, dtype=np.float64)
    columns = (np.bincount(places, weights=kept), np.bincount(places, weights=np.asarray(hits) * kept))
    sums: Floats = np.stack(columns, axis=1).astype(np.float64)
    sums = sums[sums[:, 0] > 0]
    if len(sums) < FEWEST_STORIES:
        return None
    whole, left = sums.sum(axis=0), left_out(sums, lambda rest: rest[:, 1] / rest[:, 0])
    return (difference if signed or min(hits) < 0 else share)(float(whole[1] / whole[0]), left)


def _enough(left: Floats, fewest: int) -> bool:
    return len(left) >= fewest and not bool(np.isnan(left).any())


def _error(left: Floats) -> float:
    """Return the jackknife's standard error."""
    return float(np.sqrt((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum()))


def _freedom(left: Floats) -> float:
    """Return the degrees of freedom of the error: n - 1 of normal influences, fewer where few stories carry it."""
    count, away = len(left), left - left.mean()
    tails = float((away**4).mean() / (away**2).mean() ** 2)
    return max(1.0, min(count - 1.0, 2.0 * count / (tails - (count - 3.0) / (count - 1.0))))


def t_quantile(freedom: float, level: float = _LEVEL) -> float:
    """Return a quantile above the median of Student's t; SciPy has it, and is larger than all other packages."""
    # With t = sqrt(freedom) tan(angle) the chance of 0..t is an integral of cos(angle) ** (freedom - 1).
    scale = math.exp(math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2.0
    for _ in range(60):
        angle = (low + high) / 2.0
        inside = np.cos((_NODES + 1.0) * angle / 2.0) ** (freedom - 1.0)
        if scale * float(_WEIGHTS @ inside) * angle / 2.0 < level - 0.5:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan((low + high) / 2.0)


def _all_alike(count: int) -> float:
    """Return the least share of which `count` stories may all be, with 97.5% certainty."""
    return float((1.0 - _LEVEL) ** (1.0 / count))


def _share_ends(value: float, left: Floats) -> Interval:
    error, count = _error(left), len(left)
    if error <= _NOTHING or not 0.0 < value < 1.0:
        bound = _all_alike(count)
        if error > _NOTHING:  # the average over dimensions is at its end, and some story is not
            bound = min(bound, 1.0 - t_quantile(count - 1.0) * error)
        return (max(0.0, value - 1.0 + bound), min(1.0, value + 1.0 - bound))
    reach = t_quantile(count - 1.0) * error / (value * (1.0 - value))
    at = math.log(value / (1.0 - value))
    return _logistic(at - reach), _logistic(at + reach)


def _logistic(at: float) -> float:
    return 0.5 + 0.5 * math.tanh(at / 2.0)


def _joined(one: float, two: float, together: float) -> float:
    return float(np.sqrt(max(0.0, one * one + two * two - 2.0 * together * one * two)))


def _points(ends: Interval) -> Interval:
    # So many digits are the same whichever way sums were added up.
    return round(100.0 * ends[0], 9), round(100.0 * ends[1], 9)
