"""Choosing among fixed options by what a record of moments supports, dimension by dimension.

The question's own claims find the moment it is about ("when the lion has her", "after the crow sings"); each option's
claims are then weighed there. The best option is taken when it is supported well enough and clearly better than
the next one; otherwise the answer is `Unclear`. Neither the order of options nor how often an answer occurs plays a
part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from katha.eval_bridge.instructions import UNCLEAR
from katha.eval_bridge.judges.moments import Moment, support
from katha.language import PhraseEvent, PhraseReading, load_vocabulary, read_phrase
from katha.schema import Dimension

__all__ = ["Choice", "choose", "reverse_support"]

_ENOUGH = 0.16
_CLEARLY = 0.04
_ANCHORED = 0.15
_ELSEWHERE = 0.55
_LATE = re.compile(
    r"\b(?:at the end|in the end|finally|at last|outcome|end for|does it end|at the close)\b", re.IGNORECASE
)
_EARLY = re.compile(r"\b(?:at first|at the start|at the beginning|in the beginning|begins?)\b", re.IGNORECASE)
_OFFSETS: Mapping[str, tuple[int, ...]] = {"after": (0, 1), "before": (-1, 0), "when": (0,), "near": (-1, 0, 1)}
_LOOKS: Mapping[Dimension, str] = {
    "action_visibility": "near",
    "causal": "before",
    "emotional": "near",
    "consequence": "after",
    "temporal_order": "near",
    "moral": "near",
}
_CONNECTIVES = ("after", "before", "when")


@dataclass(frozen=True)
class Choice:
    """The chosen option's text (or `Unclear`), the support of every option, and how sure the choice is."""

    answer: str
    scores: tuple[float, ...]

    @property
    def best(self) -> float:
        """The support of the best option."""
        return max(self.scores, default=0.0)


@dataclass(frozen=True)
class _Asked:
    """A question as read: its dimension, who it is about, and the weight of each moment."""

    dimension: Dimension
    subject: str | None
    claims: tuple[PhraseEvent, ...]
    weights: tuple[float, ...]


def choose(question: str, dimension: Dimension, options: Sequence[str], moments: Sequence[Moment]) -> Choice:
    """The option that `moments` support, or `Unclear`."""
    asked = _read_question(question, dimension, moments)
    weigh = _WEIGHERS.get(dimension, _weigh_claims)
    scores = tuple(0.0 if option == UNCLEAR else weigh(option, asked, moments) for option in options)
    ranked = sorted(scores, reverse=True)
    second = ranked[1] if len(ranked) > 1 else 0.0
    if not ranked or ranked[0] < _ENOUGH or ranked[0] - second < _CLEARLY:
        return Choice(UNCLEAR, scores)
    return Choice(options[scores.index(ranked[0])], scores)


def reverse_support(option: str, moments: Sequence[Moment]) -> tuple[float, float]:
    """How far `moments` support an option's order of events, and the reverse of it."""
    events = read_phrase(option).events
    if len(events) < 2:
        return (0.0, 0.0)
    return (_in_order(events[0], events[-1], moments, None), _in_order(events[-1], events[0], moments, None))


def _read_question(question: str, dimension: Dimension, moments: Sequence[Moment]) -> _Asked:
    reading = read_phrase(question)
    claims = tuple(event for event in reading.events if event.action is not None or event.emotion is not None)
    subject = next(iter(reading.concepts.get("character", ())), None)
    look = next(
        (word for word in _CONNECTIVES if re.search(rf"\b{word}\b", question, re.IGNORECASE)), _LOOKS[dimension]
    )
    return _Asked(dimension, subject, claims, _weights(question, claims, subject, look, moments))


def _weights(
    question: str, claims: Sequence[PhraseEvent], subject: str | None, look: str, moments: Sequence[Moment]
) -> tuple[float, ...]:
    count = len(moments)
    if _LATE.search(question):
        return tuple(1.0 if place >= 0.6 * count else _ELSEWHERE for place in range(count))
    if _EARLY.search(question):
        return tuple(1.0 if place < 0.4 * count else _ELSEWHERE for place in range(count))
    anchors = [max((support(claim, moment, subject) for claim in claims), default=0.0) for moment in moments]
    if max(anchors, default=0.0) < _ANCHORED:
        return (1.0,) * count
    at = anchors.index(max(anchors))
    near = {at + offset for offset in _OFFSETS[look]}
    return tuple(1.0 if place in near else _ELSEWHERE for place in range(count))


def _subject(reading: PhraseReading, asked: _Asked) -> str | None:
    return next(iter(reading.concepts.get("character", ())), None) or asked.subject


def _weigh_claims(option: str, asked: _Asked, moments: Sequence[Moment]) -> float:
    """The product of each claim's best support; names alone count a little."""
    reading = read_phrase(option)
    subject = _subject(reading, asked)
    if not reading.events:
        return _weigh_names(reading, asked, moments)
    value = 1.0
    for event in reading.events:
        best = max((w * support(event, m, subject) for w, m in zip(asked.weights, moments, strict=True)), default=0.0)
        value *= 1 - best if event.negated else best
    return math.pow(value, 1 / len(reading.events))


def _weigh_names(reading: PhraseReading, asked: _Asked, moments: Sequence[Moment]) -> float:
    named = [*reading.concepts.get("character", ()), *reading.concepts.get("prop", ())]
    if not named:
        return 0.0
    pairs = list(zip(asked.weights, moments, strict=True))
    found = [max((w * m.presence(name) for w, m in pairs), default=0.0) for name in named]
    return 0.5 * sum(found) / len(found)


def _weigh_feeling(option: str, asked: _Asked, moments: Sequence[Moment]) -> float:
    """A feeling where the question looks; a change of feeling in order over the whole sequence."""
    reading = read_phrase(option)
    subject = _subject(reading, asked)
    change = reading.change
    if change is None:
        return _weigh_claims(option, asked, moments)
    before, after = change
    if before is not None and after is not None:
        return (
            _in_order(PhraseEvent(subject, emotion=before), PhraseEvent(subject, emotion=after), moments, subject)
            ** 0.5
        )
    claim = PhraseEvent(subject, emotion=after or before)
    return max((w * support(claim, m, subject) for w, m in zip(asked.weights, moments, strict=True)), default=0.0)


def _weigh_order(option: str, asked: _Asked, moments: Sequence[Moment]) -> float:
    """Two claims in the option's order; one claim is put before (or after) the question's own."""
    reading = read_phrase(option)
    events = [event for event in reading.events if event.action is not None or event.emotion is not None]
    if len(events) >= 2:
        return _in_order(events[0], events[-1], moments, None)
    if not events:
        return 0.0
    if not asked.claims:
        return _weigh_claims(option, asked, moments)
    return _in_order(events[0], asked.claims[-1], moments, None)


def _in_order(first: PhraseEvent, second: PhraseEvent, moments: Sequence[Moment], subject: str | None) -> float:
    """The best geometric mean of supports with `first` in an earlier moment than `second`."""
    best, earlier = 0.0, 0.0
    for moment in moments:
        best = max(best, earlier * support(second, moment, subject))
        earlier = max(earlier, support(first, moment, subject))
    return math.sqrt(best)


def _weigh_moral(option: str, asked: _Asked, moments: Sequence[Moment]) -> float:
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


_Weigher = Callable[[str, _Asked, Sequence[Moment]], float]
_WEIGHERS: Mapping[Dimension, _Weigher] = {
    "emotional": _weigh_feeling,
    "temporal_order": _weigh_order,
    "moral": _weigh_moral,
}
