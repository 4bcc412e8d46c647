"""A question as `sketch-reader` understands it: what it takes for granted, where to look, and what an answer is about.

The claims of a question ("after the crow sings", "when the lion is caught") find its moment; its connective or its
dimension says on which side of that moment the answer lies; "at first" and "in the end" look at the ends. What the
question takes for granted is no answer to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from katha.eval_bridge.judges.moments import Moment, stems, support
from katha.language import PhraseEvent, PhraseReading, load_vocabulary, read_phrase
from katha.schema import Dimension

__all__ = ["Asked", "read_question", "same_event"]

_LATE = re.compile(
    r"\b(?:in the end|at the end|at last|finally|last|outcome|end for|does it end|end up|at the close)\b", re.IGNORECASE
)
_BECOMES_OF = re.compile(r"\b(?:becomes? of|happens? to)\b", re.IGNORECASE)
_BECOMES = re.compile(r"\b(?:becomes? of|happens? to|result|comes? of)\b", re.IGNORECASE)
_EARLY = re.compile(r"\b(?:at first|first|at the start|at the beginning|in the beginning|begins?)\b", re.IGNORECASE)
_CONNECTIVE = re.compile(r"\b(after|before|when|while|once|until)\b", re.IGNORECASE)
_LOOKS = re.compile(r"^how do(?:es)? .+? look\b(?! (?:at|for|into|back))", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(?:comes? of|outcome of|result of|effect of|because of|follows|end of) (?:the |his |her |its |their )?"
    r"(?:([\w-]+)'s |[\w-]+ )?([\w-]+)\W*$",
    re.IGNORECASE,
)
_ASKING = stems(
    "what which when does that there have happen happens come comes become becomes feel look first last things two "
    "these order outcome result after before while start beginning place middle during about front answer change causes"
)
_SIDES: Mapping[str, int] = {"after": 1, "once": 1, "before": -1, "until": -1, "when": 0, "while": 0}
_OWN_SIDE: Mapping[Dimension, int] = {"causal": -1, "consequence": 1}
_ANCHORED = 0.12
_FLOOR = 0.3
_WRONG_SIDE = 0.35
_LATER = 0.95
"""What comes after the question's moment counts a little less than what was so already."""
_OTHER_SUBJECT = 0.3
_GIVEN = 0.15
_OFF_TOPIC = 0.75
_WITHOUT_SUBJECT = 0.85
_ANSWERED = frozenset({"action_visibility", "consequence"})
_ABOUT_SUBJECT = frozenset({"action_visibility", "emotional"})


@dataclass(frozen=True)
class Asked:
    """A question as read.

    subject: the character it is about. given: the events it takes for granted. things: props it names outside of them.
    others: further characters. side: -1 for an answer before what the question names, 1 for one after it.
    weights: how much each moment counts, 0 to 1. tilt: -1 for the first of several, 1 for the last, 0 for neither.
    about_subject: whether an answer tells of the subject itself.
    """

    dimension: Dimension
    subject: str | None
    given: tuple[PhraseEvent, ...]
    things: frozenset[str]
    others: frozenset[str]
    side: int
    weights: tuple[float, ...]
    tilt: int
    about_subject: bool

    def relevance(self, option: PhraseReading) -> float:
        """How well an option fits the question's words, whatever was seen: 1 for one that could answer it."""
        value = 1.0
        actors = [event.actor for event in option.events if event.actor is not None]
        if self.subject is not None and actors and self.subject not in actors:
            if self.about_subject:
                value *= _OTHER_SUBJECT
            elif self.dimension in {"causal", "consequence"} and self.subject not in option.concepts.get(
                "character", ()
            ):
                value *= _WITHOUT_SUBJECT
        told = [event for event in option.events if event.action is not None or event.emotion is not None]
        if told and all(any(same_event(event, known) for known in self.given) for event in told):
            value *= _GIVEN
        if self.things and not self.things & {*option.concepts.get("prop", ()), *(e.target for e in option.events)}:
            value *= _OFF_TOPIC
        named = {*option.concepts.get("character", ()), *(event.target for event in option.events)}
        if self.others and self.dimension in _ANSWERED and not self.given and not self.others & named:
            value *= _OFF_TOPIC
        return value


def same_event(event: PhraseEvent, other: PhraseEvent) -> bool:
    """Whether two claims say the same; what one leaves out may be anything."""
    pairs = ((event.actor, other.actor), (event.target, other.target))
    if any(mine is not None and theirs is not None and mine != theirs for mine, theirs in pairs):
        return False
    return (event.action, event.emotion, event.negated) == (other.action, other.emotion, other.negated)


def read_question(question: str, dimension: Dimension, moments: Sequence[Moment]) -> Asked:
    """Read `question` and find where `moments` have to be looked at for its answer."""
    reading = read_phrase(question)
    characters = reading.concepts.get("character", ())
    subject = next(iter(characters), None)
    given = _given(question, dimension, reading, subject)
    within = {event.target for event in given}
    things = frozenset(reading.concepts.get("prop", ())) - within
    places = frozenset(reading.concepts.get("setting", ()))
    found = _CONNECTIVE.search(question)
    side = _SIDES[found[1].lower()] if found else _OWN_SIDE.get(dimension, 0)
    tilt = 1 if _LATE.search(question) else -1 if _EARLY.search(question) else 0
    becomes = _BECOMES.search(question) is not None
    if not given and (becomes or dimension == "consequence"):
        tilt = tilt or 1
    signs = [_sign(given, things | places, subject, moment) for moment in moments]
    if max(signs, default=0.0) < _ANCHORED:
        signs = _word_signs(question, reading, moments)
    weights = _weights(signs, side, tilt)
    about = dimension in _ABOUT_SUBJECT or (_BECOMES_OF.search(question) is not None and not given)
    others = frozenset(characters[1:]) - within
    said = _SIDES[found[1].lower()] if found else 0
    return Asked(dimension, subject, given, things, others, said, weights, tilt, about)


def _given(question: str, dimension: Dimension, reading: PhraseReading, subject: str | None) -> tuple[PhraseEvent, ...]:
    """What the question takes for granted: its own claims, a feeling that it asks the reason of, a deed as a noun."""
    told = [event for event in reading.events if event.action is not None or event.emotion is not None]
    given = [event for event in told if event.actor is not None or event.target is not None]
    if _LOOKS.match(question):
        given = [event for event in given if event.action != "look"]
    felt = reading.concepts.get("emotion", ())
    if not given and dimension == "causal" and felt:
        given = [PhraseEvent(subject, emotion=felt[-1])]
    if not given and (noun := _NAMED.search(question)) is not None:
        given = _named_deed(noun[1], noun[2].lower())
    return tuple(given)


def _named_deed(owner: str | None, noun: str) -> list[PhraseEvent]:
    """The deed or feeling that a noun names ("the hare's sleep", "the begging", "the farmer's greed")."""
    words = load_vocabulary()
    actor = words.find(owner, "character") if owner else None
    for sense in words.senses.get(noun, ()):
        if sense.kind == "action" and sense.form in {"base", "ing"}:
            return [PhraseEvent(actor, sense.id)]
        if sense.kind == "emotion":
            return [PhraseEvent(actor, emotion=sense.id)]
    return []


def _word_signs(question: str, reading: PhraseReading, moments: Sequence[Moment]) -> list[float]:
    """Where the story uses the question's own rarer words ("in winter", "the threat"); frames have no words."""
    names = stems(" ".join(reading.concepts.get("character", ())))
    asked = stems(question) - _ASKING - names
    rare = [word for word in asked if 0 < sum(word in moment.words for moment in moments) <= len(moments) / 2]
    return [sum(word in moment.words for word in rare) / len(rare) if rare else 0.0 for moment in moments]


def _weights(signs: Sequence[float], side: int, tilt: int) -> tuple[float, ...]:
    """Near the clearest sign of the question's moment; without one, at the end that it asks for, or everywhere."""
    count, strongest = len(signs), max(signs, default=0.0)
    if strongest >= _ANCHORED:
        at = count - 1 - signs[::-1].index(strongest) if side < 0 or tilt > 0 else signs.index(strongest)
        return tuple(_near(place - at, side, count) for place in range(count))
    if tilt:
        return tuple(_FLOOR + (1 - _FLOOR) * _share(place, count, tilt) for place in range(count))
    return (1.0,) * count


def _sign(given: Sequence[PhraseEvent], named: frozenset[str], subject: str | None, moment: Moment) -> float:
    """How surely this is the moment that the question speaks of: its events, else its things and places."""
    if given:
        return max(support(claim, moment, subject) for claim in given)
    if not named:
        return 0.0
    there = [moment.presence(name) for name in named]
    if subject is not None:
        there.append(moment.presence(subject))
    return min(there)


def _near(distance: int, side: int, count: int) -> float:
    """The weight of a moment `distance` after the question's own; `side` is where its answer lies."""
    reach = max(1.0, count / 5)
    value = max(_FLOOR, math.exp(-max(0.0, abs(distance) - 0.5) / (2 * reach)))
    if not side:
        return value * (_LATER if distance > 0 else 1.0)
    return value * _WRONG_SIDE if distance * side < 0 else value


def _share(place: int, count: int, tilt: int) -> float:
    share = (place + 1) / count
    return share**2 if tilt > 0 else (1 - place / count) ** 2
