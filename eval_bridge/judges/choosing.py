"""Which option is supported by what was seen: the question says where to look and what could be an answer, each
option's claims are weighed there, and the best is taken when it is supported well enough and clearly better than the
next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from katha.eval_bridge.judges.asking import Asked, read_question
from katha.eval_bridge.judges.claims import Claim, Statement, Term, read_statement, same_claim
from katha.eval_bridge.judges.moments import Moment, support
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.schema import Dimension
from katha.vocabulary import load_vocabulary

__all__ = ["Choice", "choose", "reverse_support"]

_ENOUGH = 0.08
_CLEARLY = 0.01
_BOTH_WAYS = 0.5
"""What an order is worth at least when the other order is supported far better."""
_FULLER = 0.06
"""How much an answer that tells more, all of it supported, is preferred."""
_UNNAMED = 0.6
"""What an order of events is worth that leaves out an event which the question names."""
_TILT = 0.35
_WRONG_WAY = 0.3
_FARTHER = 0.5
"""How much less an event at the other end of the story is worth than the one right beside the event asked about."""


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
    scores = tuple(0.0 if option == UNCLEAR else weigh(option, asked, moments) for option in options)
    ranked = sorted(scores, reverse=True)
    second = ranked[1] if len(ranked) > 1 else 0.0
    if not ranked or ranked[0] < _ENOUGH or ranked[0] - second < _CLEARLY:
        return Choice(UNCLEAR, scores)
    return Choice(options[scores.index(ranked[0])], scores)


def reverse_support(option: str, moments: Sequence[Moment]) -> tuple[float, float]:
    """Return how far `moments` support an option's order of events, and the reverse of it."""
    events = read_statement(option).claims
    if len(events) < 2:
        return (0.0, 0.0)
    return (_in_order(events[0], events[-1], moments), _in_order(events[-1], events[0], moments))


def _best(event: Claim, subject: Term | None, asked: Asked, moments: Sequence[Moment]) -> float:
    pairs = zip(asked.weights, moments, strict=True)
    return max((weight * support(event, moment, subject) for weight, moment in pairs), default=0.0)


def _there(event: Claim, subject: Term | None, asked: Asked, moments: Sequence[Moment]) -> float:
    """How surely somebody is seen of whom something is denied: an empty sheet denies nothing."""
    who = event.actor or subject
    pairs = zip(asked.weights, moments, strict=True)
    return max((weight * moment.presence(who) for weight, moment in pairs), default=0.0) if who is not None else 0.0


def _subject(reading: Statement, asked: Asked) -> Term | None:
    return next(iter(reading.living), None) or asked.subject


def _weigh_claims(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """Return the mean (geometric) of each claim's best support; names alone count a little."""
    reading = read_statement(option)
    subject = _subject(reading, asked)
    if not reading.claims:
        return asked.relevance(reading) * _weigh_names(reading, asked, moments)
    value = 1.0
    for event in reading.claims:
        best = _best(event, subject, asked, moments)
        value *= _there(event, subject, asked, moments) * (1 - best) if event.negated else best
    fuller = 1 + _FULLER * (len(reading.claims) - 1)
    return asked.relevance(reading) * fuller * math.pow(value, 1 / len(reading.claims))


def _weigh_names(reading: Statement, asked: Asked, moments: Sequence[Moment]) -> float:
    pairs = list(zip(asked.weights, moments, strict=True))
    found = [max((w * m.presence(term) for w, m in pairs), default=0.0) for term in reading.terms]
    found += [max((w * m.settings.get(place, 0.0) for w, m in pairs), default=0.0) for place in reading.places]
    return 0.5 * sum(found) / len(found) if found else 0.0


def _weigh_feeling(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """Weigh a feeling where the question looks; a change of feeling in order over the whole sequence."""
    reading = read_statement(option)
    change = reading.change
    if change is None:
        return _weigh_claims(option, asked, moments)
    subject = _subject(reading, asked)
    before, after = (None if feeling is None else Claim(subject, mood=feeling) for feeling in change)
    if before is not None and after is not None:
        value = math.sqrt(_in_order(before, after, moments) * _best(after, subject, asked, moments))
    else:
        value = max(_best(event, subject, asked, moments) for event in (before, after) if event is not None)
    other = asked.subject is not None and subject is not None and not subject.same(asked.subject)
    return value * (0.3 if other else 1.0)


def _weigh_order(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """Two claims in the option's order, less what speaks for the other; a lone claim comes before the question's."""
    reading = read_statement(option)
    events = [event for event in reading.claims if event.tells]
    if len(events) < 2:
        return _in_order(events[0], asked.given[-1], moments) if events and asked.given else 0.0
    first, second = events[0], events[-1]
    if asked.side and asked.given:
        return _weigh_beside(first, second, asked, moments)
    value, other = _in_order(first, second, moments), _in_order(second, first, moments)
    value *= _BOTH_WAYS + (1 - _BOTH_WAYS) * value / (value + other) if value else 0.0
    named = [known for known in asked.given if any(same_claim(known, event) for event in (first, second))]
    if len(asked.given) == 2:
        value *= (len(named) / 2) ** 2
    elif asked.given:
        value *= _UNNAMED + (1 - _UNNAMED) * len(named) / len(asked.given)
    return value * (1 - _TILT + _TILT * _placed(first if asked.tilt < 0 else second, asked, moments))


def _weigh_beside(first: Claim, second: Claim, asked: Asked, moments: Sequence[Moment]) -> float:
    """An order beside an event that the question takes for granted: how well the other event is supported on the side
    that is asked for, the nearer the better."""
    known = asked.given[-1]
    fixed, free = (second, first) if asked.side < 0 else (first, second)
    if not same_claim(fixed, known):
        other = _in_order(first, second, moments) * _UNNAMED
        return other * (_WRONG_WAY if same_claim(free, known) else 1.0)
    seen = [support(known, moment) for moment in moments]
    if max(seen, default=0.0) < _ENOUGH:
        return max((support(free, moment) for moment in moments), default=0.0)
    at = seen.index(max(seen))
    steps = ((asked.side * (place - at), support(free, moment)) for place, moment in enumerate(moments))
    return max((value * (1 - _FARTHER * (step - 1) / len(moments)) for step, value in steps if step > 0), default=0.0)


def _placed(event: Claim, asked: Asked, moments: Sequence[Moment]) -> float:
    """1 for an event at the end that the question asks for (the first things, the last things), 0 for the other end."""
    seen = [support(event, moment) for moment in moments]
    if not asked.tilt or not seen or max(seen) == 0:
        return 1.0
    share = seen.index(max(seen)) / max(1, len(seen) - 1)
    return share if asked.tilt > 0 else 1 - share


def _in_order(first: Claim, second: Claim, moments: Sequence[Moment]) -> float:
    """Return the best geometric mean of supports with `first` in an earlier moment than `second`."""
    best, earlier = 0.0, 0.0
    for moment in moments:
        best = max(best, earlier * support(second, moment))
        earlier = max(earlier, support(first, moment))
    return math.sqrt(best)


def _weigh_moral(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """A moral label by the deeds and feelings that speak for it, the last third twice, beside all labels together."""
    vocabulary = load_vocabulary()
    label = vocabulary.find(option, "moral")
    if label is None:
        return _weigh_claims(option, asked, moments)
    scores = {name: _cues(cue, moments) for name, cue in vocabulary.cues.items()}
    total = sum(scores.values())
    return scores[label] / total if total > 0 else 0.0


def _cues(cue: Mapping[str, Mapping[str, float]], moments: Sequence[Moment]) -> float:
    value = 0.0
    for place, moment in enumerate(moments):
        factor = 2.0 if 3 * (place + 1) > 2 * len(moments) else 1.0
        for figure in moment.figures:
            deeds = sum(weight * figure.actions.get(name, 0.0) for name, weight in cue["actions"].items())
            moods = sum(weight * figure.emotions.get(name, 0.0) for name, weight in cue["emotions"].items())
            value += factor * figure.p * (deeds + moods)
    return value


_WEIGHERS: Mapping[Dimension, Callable[[str, Asked, Sequence[Moment]], float]] = {
    "emotional": _weigh_feeling,
    "temporal_order": _weigh_order,
    "moral": _weigh_moral,
}
