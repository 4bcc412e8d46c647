"""The settings by which frames share their self-attention."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QueryBlend", "SharingRules"]


@dataclass(frozen=True)
class QueryBlend:
    """Queries of a pass without sharing, blended in for the share `until` of the steps, with a weight from `first` to
    `last`.

    The first step shares nothing; with few steps the window is still long enough for the one after it.
    """

    first: float
    last: float
    until: float

    def weight(self, step: int, steps: int) -> float | None:
        """The weight of the queries without sharing at `step` of `steps`, or None after the window."""
        window = max(2, round(self.until * steps))
        if step >= window:
            return None
        return self.first + (self.last - self.first) * (step / (window - 1))


@dataclass(frozen=True)
class SharingRules:
    """How a frame reads other frames.

    keep: the probability that a source shows one of its tokens at a step. masked: a source shows only what its subject
    masks hold. separate: a token that shows one subject reads that subject only. skip: (share of the steps,
    probability) pairs; a layer shares nothing at a step with the probability of the first pair whose share is not yet
    over. seed: the key of all draws.
    """

    seed: int
    keep: float
    masked: bool
    separate: bool = True
    skip: tuple[tuple[float, float], ...] = ()
    blend: QueryBlend | None = None

    def skip_probability(self, step: int, steps: int) -> float:
        """The probability that a layer shares nothing at `step` of `steps`."""
        return next((chance for share, chance in self.skip if step < share * steps), 0.0)
