"""Which option is supported by what was seen: the question says where to look and what could be an answer, the
evidence for all that each option names is weighed there, and the best is taken.

Options are compared: weak evidence decides where there is none for the others, and where two are told equally well the
text of the answers decides, never their order. `Unclear` is for pictures that show nothing of any option, or of all
alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.jsonio import digest
from katha.schema import Dimension
from katha_sketch.reader.asking import Asked, read_question
from katha_sketch.reader.claims import Claim, Statement, Term, read_statement, same_claim
from katha_sketch.reader.moments import Moment, at_all, in_order, likelihoods, log_mean, posterior
from katha_sketch.vocabulary import load_vocabulary

__all__ = ["Choice", "choose", "reverse_support"]

_ENOUGH = 0.0
"""The log-likelihood ratio that one of the options has to have at its best: where none has, the pictures tell another
story, or none."""
_CLEARLY = 0.02
_SEEN_AT_ALL, _TOLD_AT_ALL = 0.04, 0.15
"""What it counts how surely an option's events are seen, or told, at all, beside whether they are where the question
asks: most wrong options are events of the same board, and a picture leaves out more than a text does."""
_CONTESTED = 0.5
"""How far a moment that shows another option better is taken from an option."""
_IMPOSSIBLE = -20.0
_OTHER = 0.3
"""What a feeling is worth of somebody else than the question asks about."""
_FAINT = 0.01
"""How probably something is in a picture in which nothing of it is seen."""
_UNNAMED = 0.04
"""What an order of events is worth that leaves out an event which the question names."""


@dataclass(frozen=True)
class Choice:
    """The chosen option's text (or `Unclear`), the support of every option, and how sure the choice is."""

    answer: str
    scores: tuple[float, ...]

    @property
    def best(self) -> float:
        """The support of the best option."""
        return max(self.scores, default=0.0)


def choose(question: str, dimension: Dimension, options: Sequence[str], moments: Sequence[Moment]) -> Choice:
    """Return the option that `moments` support, or `Unclear`."""
    asked = read_question(question, dimension, moments)
    weigh = _WEIGHERS.get(dimension, _weigh_claims)
    if dimension not in _WEIGHERS and not any(moment.words for moment in moments):
        asked = _contested(asked, [option for option in options if option != UNCLEAR], moments)
    weighed = {option: weigh(option, asked, moments) for option in options if option != UNCLEAR}
    highest = max((one.value for one in weighed.values()), default=0.0)
    shares = [math.exp(weighed[option].value - highest) if option in weighed else 0.0 for option in options]
    seen = 1 / (1 + math.exp(_ENOUGH - max((one.seen for one in weighed.values()), default=_IMPOSSIBLE)))
    scores = tuple(seen * share / max(sum(shares), 1e-9) for share in shares)
    best = [option for option, one in weighed.items() if one.value > highest - _CLEARLY]
    if seen < 0.5 or len(best) == len(weighed) > 1:
        return Choice(UNCLEAR, scores)
    return Choice(min(best, key=digest), scores)


class _Weight(NamedTuple):
    """value: what speaks for an option. seen: how much speaks for its events being there at all."""

    value: float
    seen: float


_NONE = _Weight(_IMPOSSIBLE, _IMPOSSIBLE)


def reverse_support(option: str, moments: Sequence[Moment]) -> tuple[float, float]:
    """Return how probably `moments` show an option's order of events, and the reverse of it."""
    events = read_statement(option).claims
    if len(events) < 2:
        return (0.0, 0.0)
    forward = in_order(likelihoods(events[0], moments), likelihoods(events[-1], moments))
    return (forward, 1 - forward)


def _contested(asked: Asked, options: Sequence[str], moments: Sequence[Moment]) -> Asked:
    """Return the question with what its options leave of each moment: a moment that shows one of them is hardly that of
    another, nor that of the event by which the question finds its moment."""
    readings = [read_statement(option) for option in options]
    ratios = [likelihoods(one.claims[0], moments, _subject(one, asked)) for one in readings if one.claims]
    crowd = tuple(_log_sum(values) for values in zip(*ratios, strict=True))
    return asked.beside(crowd)


def _log_sum(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(sum(math.exp(value - highest) for value in values))


def _left(ratios: Sequence[float], crowd: Sequence[float]) -> list[float]:
    """Lower what speaks for an option where more speaks for the others."""
    if len(crowd) < len(ratios):
        return list(ratios)
    lowered = []
    for value, whole in zip(ratios, crowd, strict=True):
        others = whole + math.log(max(1 - math.exp(min(0.0, value - whole)), 1e-9))
        lowered.append(value + _CONTESTED * min(0.0, value - others))
    return lowered


def _subject(reading: Statement, asked: Asked) -> Term | None:
    return next(iter(reading.living), None) or asked.subject


def _weigh_claims(option: str, asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """Weigh whether an option's events are where the question asks, and whether they are seen at all."""
    reading = read_statement(option)
    subject = _subject(reading, asked)
    found = [_there(likelihoods(claim, moments, subject), asked, moments) for claim in reading.claims]
    if not found:
        return _weigh_presence(reading, asked, moments)
    value, seen = (sum(part) / len(found) for part in zip(*found, strict=True))
    return _Weight(value + math.log(asked.relevance(reading)), seen)


def _weigh_presence(reading: Statement, asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """Weigh an option that only names somebody or something by how probably that is where the question looks."""
    relevance = math.log(asked.relevance(reading))
    if not reading.terms or not moments:
        return _Weight(relevance, _IMPOSSIBLE)
    there = [min(moment.sight(term).there for term in reading.terms) for moment in moments]
    share = sum(p * where for p, where in zip(there, asked.where, strict=True)) / (sum(asked.where) or 1.0)
    return _Weight(math.log(share + _FAINT) + relevance, at_all(likelihoods(Claim(also=reading.terms), moments)))


def _there(ratios: Sequence[float], asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """How much likelier than by chance an event is where the question asks, and how surely it is seen at all."""
    left = posterior(_left(ratios, asked.crowd))
    beside = sum(one * other for one, other in zip(left, asked.where, strict=True))
    return _Weight(math.log(max(beside * len(ratios), 1e-6)) + _at_all(ratios, moments), at_all(ratios))


def _at_all(ratios: Sequence[float], moments: Sequence[Moment]) -> float:
    """What it counts how surely an event is seen at all."""
    told = any(moment.words for moment in moments)
    return (_TOLD_AT_ALL if told else _SEEN_AT_ALL) * at_all(ratios)


def _weigh_feeling(option: str, asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """Weigh a feeling where the question looks; a change of feeling in order over the whole sequence."""
    reading = read_statement(option)
    subject = _subject(reading, asked)
    if reading.change is None:
        ratios = [likelihoods(claim, moments, subject) for claim in reading.claims]
        if not ratios:
            return _NONE
        value = sum(log_mean(one, asked.where) for one in ratios) / len(ratios)
        return _Weight(value + math.log(asked.relevance(reading)), max(at_all(one) for one in ratios))
    felt = [likelihoods(Claim(subject, mood=feeling), moments) for feeling in reading.change if feeling is not None]
    seen = sum(at_all(one) for one in felt) / max(1, len(felt))
    value = seen + (math.log(2 * in_order(*felt) + 1e-9) if len(felt) == 2 else 0.0)
    other = asked.subject is not None and subject is not None and not subject.same(asked.subject)
    return _Weight(value + (math.log(_OTHER) if other else 0.0), seen)


def _weigh_order(option: str, asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """Weigh how probably an option's events are in its order, and whether they are those that the question names."""
    events = read_statement(option).claims
    if len(events) < 2:
        if not events or not asked.given:
            return _NONE
        events = (events[0], asked.given[-1])
    first, second = likelihoods(events[0], moments), likelihoods(events[-1], moments)
    seen = max(at_all(first), at_all(second))
    if asked.side and asked.given:
        return _weigh_beside(events[0], events[-1], asked, moments)
    value = math.log(2 * in_order(first, second) + 1e-9)
    if not asked.given:
        value += _at_all(first, moments) + _at_all(second, moments)
    named = [known for known in asked.given if any(same_claim(known, event) for event in (events[0], events[-1]))]
    value += math.log(_UNNAMED) * (len(asked.given) - len(named))
    if asked.tilt:
        value += _there(first if asked.tilt < 0 else second, asked, moments).value
    return _Weight(value, seen)


def _weigh_beside(first: Claim, second: Claim, asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """An order beside an event that the question takes for granted: whether the other event is on the side that is
    asked for, the nearer the better."""
    known = asked.given[-1]
    fixed, free = (second, first) if asked.side < 0 else (first, second)
    value, seen = _there(likelihoods(free, moments), asked, moments)
    if not same_claim(fixed, known):
        value += math.log(_UNNAMED) * (2 if same_claim(free, known) else 1)
    return _Weight(value, seen)


def _weigh_moral(option: str, asked: Asked, moments: Sequence[Moment]) -> _Weight:
    """A moral label by the deeds and feelings that speak for it, the last third twice, beside all labels together."""
    vocabulary = load_vocabulary()
    label = vocabulary.find(option, "moral")
    if label is None:
        return _weigh_claims(option, asked, moments)
    scores = {name: _cues(cue, moments) for name, cue in vocabulary.cues.items()}
    total = sum(scores.values())
    value = math.log(len(scores) * scores[label] / total + 1e-9) if total > 0 else _IMPOSSIBLE
    return _Weight(value, value)


def _cues(cue: Mapping[str, Mapping[str, float]], moments: Sequence[Moment]) -> float:
    value = 0.0
    for place, moment in enumerate(moments):
        factor = 2.0 if 3 * (place + 1) > 2 * len(moments) else 1.0
        for figure in moment.figures:
            deeds = sum(weight * figure.actions.get(name, 0.0) for name, weight in cue["actions"].items())
            moods = sum(weight * figure.emotions.get(name, 0.0) for name, weight in cue["emotions"].items())
            value += factor * figure.p * (deeds + moods)
    return value


_WEIGHERS: Mapping[Dimension, Callable[[str, Asked, Sequence[Moment]], _Weight]] = {
    "emotional": _weigh_feeling,
    "temporal_order": _weigh_order,
    "moral": _weigh_moral,
}
