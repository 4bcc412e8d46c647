"""Choosing among fixed options by what a record of moments supports, dimension by dimension."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from katha.eval_bridge.judges.moments import Moment, stems, support
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.language import PhraseEvent, PhraseReading, load_vocabulary, read_phrase
from katha.schema import Dimension

# A question as `sketch-reader` understands it: what it takes for granted, where to look, and what an answer is about.
#
# The claims of a question ("after the crow sings", "when the lion is caught") find its moment; its connective or its
# dimension says on which side of that moment the answer lies; "at first" and "in the end" look at the ends. What the
# question takes for granted is no answer to it.

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


# The question says where to look and what could be an answer (`asked`); each option's claims are weighed there. The
# best option is taken when it is supported well enough and clearly better than the next one; otherwise the answer is
# `Unclear`. Neither the order of options nor how often an answer occurs plays a part.

_ENOUGH = 0.14
_CLEARLY = 0.02
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
    """The option that `moments` support, or `Unclear`."""
    asked = read_question(question, dimension, moments)
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
    return (_in_order(events[0], events[-1], moments), _in_order(events[-1], events[0], moments))


def _best(event: PhraseEvent, subject: str | None, asked: Asked, moments: Sequence[Moment]) -> float:
    pairs = zip(asked.weights, moments, strict=True)
    return max((weight * support(event, moment, subject) for weight, moment in pairs), default=0.0)


def _subject(reading: PhraseReading, asked: Asked) -> str | None:
    return next(iter(reading.concepts.get("character", ())), None) or asked.subject


def _weigh_claims(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """The mean (geometric) of each claim's best support; names alone count a little."""
    reading = read_phrase(option)
    subject = _subject(reading, asked)
    if not reading.events:
        return asked.relevance(reading) * _weigh_names(reading, asked, moments)
    value = 1.0
    for event in reading.events:
        best = _best(event, subject, asked, moments)
        value *= 1 - best if event.negated else best
    fuller = 1 + _FULLER * (len(reading.events) - 1)
    return asked.relevance(reading) * fuller * math.pow(value, 1 / len(reading.events))


def _weigh_names(reading: PhraseReading, asked: Asked, moments: Sequence[Moment]) -> float:
    named = [*reading.concepts.get("character", ()), *reading.concepts.get("prop", ())]
    if not named:
        return 0.0
    pairs = list(zip(asked.weights, moments, strict=True))
    found = [max((w * m.presence(name) for w, m in pairs), default=0.0) for name in named]
    return 0.5 * sum(found) / len(found)


def _weigh_feeling(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """A feeling where the question looks; a change of feeling in order over the whole sequence."""
    reading = read_phrase(option)
    change = reading.change
    if change is None:
        return _weigh_claims(option, asked, moments)
    subject = _subject(reading, asked)
    before, after = (None if feeling is None else PhraseEvent(subject, emotion=feeling) for feeling in change)
    if before is not None and after is not None:
        value = math.sqrt(_in_order(before, after, moments) * _best(after, subject, asked, moments))
    else:
        value = max(_best(event, subject, asked, moments) for event in (before, after) if event is not None)
    other = asked.subject is not None and subject != asked.subject
    return value * (0.3 if other else 1.0)


def _weigh_order(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """Two claims in the option's order, less what speaks for the other; a lone claim comes before the question's."""
    reading = read_phrase(option)
    events = [event for event in reading.events if event.action is not None or event.emotion is not None]
    if len(events) < 2:
        return _in_order(events[0], asked.given[-1], moments) if events and asked.given else 0.0
    first, second = events[0], events[-1]
    if asked.side and asked.given:
        return _weigh_beside(first, second, asked, moments)
    value, other = _in_order(first, second, moments), _in_order(second, first, moments)
    value *= _BOTH_WAYS + (1 - _BOTH_WAYS) * value / (value + other) if value else 0.0
    named = [known for known in asked.given if any(same_event(known, event) for event in (first, second))]
    if asked.given:
        value *= _UNNAMED + (1 - _UNNAMED) * len(named) / len(asked.given)
    return value * (1 - _TILT + _TILT * _placed(first if asked.tilt < 0 else second, asked, moments))


def _weigh_beside(first: PhraseEvent, second: PhraseEvent, asked: Asked, moments: Sequence[Moment]) -> float:
    """An order beside an event that the question takes for granted: how well the other event is supported on the side
    that is asked for, the nearer the better."""
    known = asked.given[-1]
    fixed, free = (second, first) if asked.side < 0 else (first, second)
    if not same_event(fixed, known):
        other = _in_order(first, second, moments) * _UNNAMED
        return other * (_WRONG_WAY if same_event(free, known) else 1.0)
    seen = [support(known, moment) for moment in moments]
    if max(seen, default=0.0) < _ENOUGH:
        return max((support(free, moment) for moment in moments), default=0.0)
    at = seen.index(max(seen))
    steps = ((asked.side * (place - at), support(free, moment)) for place, moment in enumerate(moments))
    return max((value * (1 - _FARTHER * (step - 1) / len(moments)) for step, value in steps if step > 0), default=0.0)


def _placed(event: PhraseEvent, asked: Asked, moments: Sequence[Moment]) -> float:
    """1 for an event at the end that the question asks for (the first things, the last things), 0 for the other end."""
    seen = [support(event, moment) for moment in moments]
    if not asked.tilt or not seen or max(seen) == 0:
        return 1.0
    share = seen.index(max(seen)) / max(1, len(seen) - 1)
    return share if asked.tilt > 0 else 1 - share


def _in_order(first: PhraseEvent, second: PhraseEvent, moments: Sequence[Moment]) -> float:
    """The best geometric mean of supports with `first` in an earlier moment than `second`."""
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


_Weigher = Callable[[str, Asked, Sequence[Moment]], float]
_WEIGHERS: Mapping[Dimension, _Weigher] = {
    "emotional": _weigh_feeling,
    "temporal_order": _weigh_order,
    "moral": _weigh_moral,
}
