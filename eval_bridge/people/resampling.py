"""Intervals for what people say: over stories, over participants (Sec. H.4), and over both at once.

A judgment belongs to a participant and to a story, and both vary. Resampling participants alone says what other people
would have said of these stories; resampling stories alone, what these people would have said of others. A conclusion
needs both: `Crossed` adds the two variances (each by leaving one out in turn) and takes Satterthwaite's degrees of
freedom, as Clark (1973) does in his quasi-F ratio. It counts the noise of single judgments twice and so errs towards
concluding nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from katha.eval_bridge.scoring.statistics import Floats, resample_counts
from katha.models.checkpoints import need
from katha.schema.scores import Interval

_LEVELS = (2.5, 97.5)
_NOTHING = 1e-12
_WHAT = "An interval over stories and participants"


@dataclass(frozen=True)
class Given:
    """Numbers that were given: `sums` and `counts` of shape (raters, stories); raters and stories are in name order."""

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, float]]) -> Given:
        """Return the table of (rater, story, value)."""
        told = list(rows)
        raters = {name: at for at, name in enumerate(sorted({rater for rater, _, _ in told}))}
        stories = {name: at for at, name in enumerate(sorted({story for _, story, _ in told}))}
        sums = np.zeros((len(raters), len(stories)))
        counts = np.zeros_like(sums)
        for rater, story, value in told:
            sums[raters[rater], stories[story]] += value
            counts[raters[rater], stories[story]] += 1
        return cls(sums, counts)

    def mean(self) -> float:
        """Return the mean of all numbers."""
        return float(self.sums.sum() / self.counts.sum())

    def interval(self, axis: int, resamples: int, seed: int) -> Interval | None:
        """Return the bootstrap interval of the mean: participants (0) or stories (1) are resampled; None of fewer than
        two of them."""
        sums, counts = self.sums.sum(axis=1 - axis), self.counts.sum(axis=1 - axis)
        if len(sums) < 2 or not resamples:
            return None
        both = np.stack([sums, counts], axis=1)
        drawn = np.concatenate([rows @ both for rows in resample_counts(len(sums), resamples, seed)])
        return span(drawn[:, 0] / drawn[:, 1])

    def crossed(self) -> Crossed | None:
        """Return the mean for other participants and other stories."""
        sums, counts = self.sums, self.counts
        parts = [
            (sums.sum() - sums.sum(axis=axis)) / _positive(counts.sum() - counts.sum(axis=axis)) for axis in (1, 0)
        ]
        return Crossed.of(self.mean(), *parts)


def _positive(counts: Floats) -> Floats:
    return np.where(counts > 0, counts, np.nan)


def span(values: Floats) -> Interval | None:
    """Return the percentile 95% interval of `values`, NaN left out; None without any value."""
    kept = values[~np.isnan(values)]
    if not kept.size:
        return None
    low, high = np.percentile(kept, _LEVELS)
    return float(low), float(high)


@dataclass(frozen=True)
class Crossed:
    """An estimate with its standard error over participants and stories, and the degrees of freedom."""

    estimate: float
    error: float
    freedom: float

    @classmethod
    def of(cls, estimate: float, without_rater: Floats, without_story: Floats) -> Crossed | None:
        """Return it from the estimates that leave out one participant, or one story.

        None with fewer than two of either, or where one of them is needed for there to be an estimate at all.
        """
        variances, freedoms = [], []
        for left in (without_rater, without_story):
            if len(left) < 2 or np.isnan(left).any():
                return None
            variances.append((len(left) - 1) / len(left) * float(((left - left.mean()) ** 2).sum()))
            freedoms.append(len(left) - 1)
        total = sum(variances)
        if total <= _NOTHING**2:
            return cls(estimate, 0.0, float(min(freedoms)))
        share = sum(part**2 / freedom for part, freedom in zip(variances, freedoms, strict=True))
        return cls(estimate, float(np.sqrt(total)), total**2 / share)

    def interval(self) -> Interval | None:
        """Return the 95% interval; None where nothing varies."""
        if self.error == 0.0:
            return None
        reach = float(need("scipy.stats", _WHAT).t.ppf(0.975, self.freedom)) * self.error
        return self.estimate - reach, self.estimate + reach

    def p_greater(self) -> float | None:
        """Return the one-sided p that the estimate is above zero; None where nothing varies."""
        if self.error == 0.0:
            return None
        return float(need("scipy.stats", _WHAT).t.sf(self.estimate / self.error, self.freedom))

    def p_differs(self) -> float | None:
        """Return the two-sided p that the estimate is not zero; None where nothing varies."""
        upper = self.p_greater()
        return None if upper is None else 2.0 * min(upper, 1.0 - upper)
