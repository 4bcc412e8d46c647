"""How much likelier what is seen in a moment is if a claim is true of it: log-likelihood ratios, one for each thing
that the claim names, added up.

A word that is seen well speaks for the claim by as much as such a word is rarely seen by chance, one that is not seen
speaks a little against it (the reader misses some), and one that no picture can show says nothing. So options are
compared by all that they name, and weak evidence for one is evidence against its rivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from katha.eval_bridge.judges.claims import Claim, Term
from katha.eval_bridge.judges.moments import Moment, Seen

__all__ = ["at_all", "in_order", "likelihoods", "log_mean", "posterior"]


class _Worth(NamedTuple):
    """gain: how much likelier a sure sight of it is where it is claimed than elsewhere. miss: how likely it is there
    although it is not seen, for how likely it is elsewhere."""

    gain: float
    miss: float

    def __call__(self, p: float) -> float:
        return math.log(self.gain * p + self.miss * (1 - p))


_ACTOR = _Worth(3.0, 0.25)
_DEED = _Worth(14.0, 0.45)
_MOOD = _Worth(12.0, 0.4)
_BEING = _Worth(3.0, 0.4)
_THING = _Worth(9.0, 0.45)
_PLACE = _Worth(5.0, 0.5)
_SHARPNESS = 0.8
"""How far the ratios are believed, which are taken as independent and are not."""


def likelihoods(claim: Claim, moments: Sequence[Moment], actor: Term | None = None) -> list[float]:
    """Return how much each moment speaks for `claim`. `actor` fills in for a claim that leaves its actor out."""
    return [_SHARPNESS * _likelihood(claim, moment, claim.actor or actor) for moment in moments]


def _likelihood(claim: Claim, moment: Moment, wanted: Term | None) -> float:
    """The best of the figures as its actor, and the rest of the claim beside it."""
    nobody = _of_figure(claim, None, wanted) + _of_rest(claim, moment, None)
    return max([nobody, *(_of_figure(claim, one, wanted) + _of_rest(claim, moment, one) for one in moment.figures)])


def _of_figure(claim: Claim, figure: Seen | None, wanted: Term | None) -> float:
    value = 0.0
    if wanted is not None:
        value += _ACTOR(figure.likeness(wanted) if figure is not None else 0.0)
    there = figure.p if figure is not None else 0.0
    if claim.deed is not None and not claim.negated:
        done = figure.doing(claim.deed) if figure is not None else 0.0
        value += 0.0 if done is None else _DEED(there * done)
    if claim.mood is not None and not claim.negated:
        value += _MOOD(there * figure.feeling(claim.mood) if figure is not None else 0.0)
    return value


def _of_rest(claim: Claim, moment: Moment, actor: Seen | None) -> float:
    value = 0.0
    for term in (*((claim.target,) if claim.target is not None else ()), *claim.also):
        if term.looks or term.living:
            value += (_BEING if term.living else _THING)(moment.presence(term, actor))
    if claim.place is not None:
        value += _PLACE(moment.settings.get(claim.place, 0.0))
    return value


def posterior(ratios: Sequence[float]) -> list[float]:
    """Return how probably each moment is the one that is told, if one of them is."""
    highest = max(ratios, default=0.0)
    weights = [math.exp(value - highest) for value in ratios]
    return [weight / sum(weights) for weight in weights]


def log_mean(ratios: Sequence[float], prior: Sequence[float]) -> float:
    """Return the log-likelihood ratio of a claim that is true of one moment, `prior` says how probably of which."""
    highest = max(ratios, default=0.0)
    total = sum(share * math.exp(value - highest) for share, value in zip(prior, ratios, strict=True))
    return highest + math.log(total) if total > 0 else -math.inf


def at_all(ratios: Sequence[float]) -> float:
    """Return the log-likelihood ratio of a claim that is true of any one moment."""
    return log_mean(ratios, [1 / len(ratios)] * len(ratios)) if ratios else 0.0


def in_order(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how probably the moment of `first` is before that of `second`; moments at once count half."""
    value, earlier = 0.0, 0.0
    for one, other in zip(posterior(first), posterior(second), strict=True):
        value += other * (earlier + one / 2)
        earlier += one
    return value
