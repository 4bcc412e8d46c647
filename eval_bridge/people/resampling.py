"""Intervals for what people say: over stories, over participants (Sec. H.4), and over both at once.

A judgment belongs to a participant and to a story, and both vary. Leaving out participants alone says what other people
would have said of these stories; leaving out stories alone, what these people would have said of others. A conclusion
needs both: `Crossed` adds the two variances (each by leaving one out in turn) and takes Satterthwaite's degrees of
freedom, as Clark (1973) does in his quasi-F ratio. It counts the noise of single judgments twice and so errs towards
concluding nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from katha.eval_bridge.scoring import intervals
from katha.eval_bridge.scoring.statistics import Floats
from katha.models.checkpoints import need
from katha.schema.scores import Interval

_NOTHING = 1e-12
_WHAT = "An interval over stories and participants"


@dataclass(frozen=True)
class GivenNumbers:
    """Numbers that were given: `sums` and `counts` of shape (raters, stories); raters and stories are in name order."""

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, float]]) -> GivenNumbers:
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

    def over_raters(self) -> Interval | None:
        """Return the interval of the mean for other participants; None of one, or where none differs."""
        return intervals.mean(self.mean(), self._without(0), intervals.FEWEST_RATERS)

    def over_stories(self) -> Interval | None:
        """Return the interval of the mean for other stories; None of too few, or where none differs."""
        return intervals.mean(self.mean(), self._without(1))

    def crossed(self) -> Crossed | None:
        """Return the mean for other participants and other stories."""
        return Crossed.of(self.mean(), self._without(0), self._without(1))

    def _without(self, axis: int) -> Floats:
        """Return the mean without each participant (0) or story (1)."""
        sums, counts = self.sums, self.counts
        left: Floats = (sums.sum() - sums.sum(axis=1 - axis)) / _positive(counts.sum() - counts.sum(axis=1 - axis))
        return left


def _positive(counts: Floats) -> Floats:
    return np.where(counts > 0, counts, np.nan)


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
