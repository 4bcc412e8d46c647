"""`sketch-reader`: the embedded judge. It looks at pixels, and chooses the option that what it saw supports.

What happens, in order, is one record that is made of frames and of a story's text alike: frames become moments by the
recogniser, sentences by the vocabulary. After that nothing knows where a moment came from, so text and images are
answered by the same rules.
"""

from __future__ import annotations

import math
import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import Any

from katha.errors import UsageError
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.reader import FrameReading, Reader, load_reader
from katha.jsonio import sha256_hex
from katha.language import PhraseEvent, PhraseReading, StoryReading, load_vocabulary, read_phrase, read_story
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import Confidence, Dimension

# What happens, in order: moments of frames or of sentences.

_WORD = re.compile(r"[a-z]+")
_ENDING = re.compile(r"(?:ing|ed|es|s|e)$")
_SHORTEST = 4
_TARGET_SHARE = 0.6
"""How much of a claim's support depends on its target being there too."""
_PRESENT = 0.45
"""Support of a claim that only says that somebody is there."""
_UNLIKE = 0.02
_NEARBY = 0.5
_OTHER_TARGET = 0.3
"""What a target's presence is worth when the action is known to be directed at something else."""


@dataclass(frozen=True)
class Seen:
    """One character in a moment, how sure, and probabilities of what it does and feels."""

    concept: str
    p: float
    actions: Mapping[str, float] = field(default_factory=dict)
    emotions: Mapping[str, float] = field(default_factory=dict)
    target: str | None = None


@dataclass(frozen=True)
class Moment:
    """One frame or event: who is there, which things, where; `nearby` is who was spoken of shortly before or after.

    `words` are the stems of the words that tell the event: frames have none. `scene` of `scenes` is its number, 0 where
    scenes are not numbered.
    """

    figures: tuple[Seen, ...] = ()
    props: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    nearby: Mapping[str, float] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    scene: int = 0
    scenes: int = 0

    def presence(self, concept: str, but: Seen | None = None) -> float:
        """Return how surely a character (other than `but`), thing or place is there."""
        figures = [figure.p for figure in self.figures if figure.concept == concept and figure is not but]
        if but is None or concept != but.concept:
            figures.append(self.nearby.get(concept, 0.0))
        return max([*figures, self.props.get(concept, 0.0), self.settings.get(concept, 0.0)])


def from_frames(readings: Sequence[FrameReading]) -> list[Moment]:
    """Return one moment a frame."""
    return [
        Moment(
            tuple(Seen(one.concept, one.p, one.actions, one.emotions) for one in reading.figures),
            {one.concept: one.p for one in reading.props},
            reading.settings,
            scene=place,
            scenes=len(readings),
        )
        for place, reading in enumerate(readings, 1)
    ]


def from_story(story: StoryReading) -> list[Moment]:
    """Return one moment an event that happens (not denied, only said or wished). A place holds until the next."""
    events = [event for event in story.events if not event.negated and not event.speech]
    moments: list[Moment] = []
    place: str | None = None
    for nth, event in enumerate(events):
        place = event.setting or place
        figures = []
        if event.actor is not None:
            does = {event.action: 1.0} if event.action else {}
            feels = {event.emotion: 1.0} if event.emotion else {}
            figures.append(Seen(event.actor, 1.0, does, feels, event.target))
        if event.target is not None and event.target != event.actor:
            figures.append(Seen(event.target, 1.0))
        props = dict.fromkeys(event.props, 1.0)
        around = [other for other in events[max(0, nth - 2) : nth + 3] if abs(other.sentence - event.sentence) <= 1]
        nearby = {name: _NEARBY for other in around for name in (other.actor, other.target) if name is not None}
        moments.append(Moment(tuple(figures), props, {place: 1.0} if place else {}, nearby, stems(event.text)))
    return moments


def from_scenes(texts: Sequence[str]) -> list[Moment]:
    """Do as `from_story` for a story told scene by scene: each moment has the number of its scene."""
    ends = list(accumulate(len(read_story(text).sentences) for text in texts))
    story = read_story("\n\n".join(texts))
    sentences = [event.sentence for event in story.events if not event.negated and not event.speech]
    places = (bisect_right(ends, sentence) + 1 for sentence in sentences)
    return [
        replace(moment, scene=place, scenes=len(texts)) for moment, place in zip(from_story(story), places, strict=True)
    ]


def stems(text: str) -> frozenset[str]:
    """Return the words of `text` that carry meaning, cut to what inflections share."""
    words = (word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST)
    return frozenset(_ENDING.sub("", word) for word in words)


def support(claim: PhraseEvent, moment: Moment, actor: str | None = None) -> float:
    """Return how far a moment supports a claim, 0 to 1. `actor` fills in for a claim that leaves its actor out."""
    wanted = claim.actor or actor
    figures = (figure for figure in moment.figures if wanted in (None, figure.concept))
    return max((_figure_support(claim, figure, moment) for figure in figures), default=0.0)


def _figure_support(claim: PhraseEvent, figure: Seen, moment: Moment) -> float:
    value = figure.p
    if claim.action is not None:
        value *= max(_UNLIKE, figure.actions.get(claim.action, 0.0))
    if claim.emotion is not None:
        value *= max(_UNLIKE, figure.emotions.get(claim.emotion, 0.0))
    if claim.action is None and claim.emotion is None:
        value *= _PRESENT
    if claim.target is not None:
        known = 1.0 if figure.target == claim.target else moment.presence(claim.target, figure)
        thing_to_somebody = claim.target in moment.props and figure.target not in moment.props  # "gives the grain to"
        if figure.target not in (None, claim.target) and not thing_to_somebody:
            known *= _OTHER_TARGET
        value *= 1 - _TARGET_SHARE + _TARGET_SHARE * known
    return value


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
        """Return how well an option fits the question's words, whatever was seen: 1 for one that could answer it."""
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
    """Return whether two claims say the same; what one leaves out may be anything."""
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
    """Return the deed or feeling that a noun names ("the hare's sleep", "the begging", "the farmer's greed")."""
    words = load_vocabulary()
    actor = words.find(owner, "character") if owner else None
    for sense in words.senses.get(noun, ()):
        if sense.kind == "action" and sense.form in {"base", "ing"}:
            return [PhraseEvent(actor, sense.id)]
        if sense.kind == "emotion":
            return [PhraseEvent(actor, emotion=sense.id)]
    return []


def _word_signs(question: str, reading: PhraseReading, moments: Sequence[Moment]) -> list[float]:
    """Return where the story uses the question's own rarer words ("in winter", "the threat"); frames have no words."""
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
        shares = ((place + 1) / count if tilt > 0 else 1 - place / count for place in range(count))
        return tuple(_FLOOR + (1 - _FLOOR) * share**2 for share in shares)
    return (1.0,) * count


def _sign(given: Sequence[PhraseEvent], named: frozenset[str], subject: str | None, moment: Moment) -> float:
    """Return how surely this is the moment that the question speaks of: its events, else its things and places."""
    if given:
        return max(support(claim, moment, subject) for claim in given)
    if not named:
        return 0.0
    there = [moment.presence(name) for name in named]
    if subject is not None:
        there.append(moment.presence(subject))
    return min(there)


def _near(distance: int, side: int, count: int) -> float:
    """Return the weight of a moment `distance` after the question's own; `side` is where its answer lies."""
    reach = max(1.0, count / 5)
    value = max(_FLOOR, math.exp(-max(0.0, abs(distance) - 0.5) / (2 * reach)))
    if not side:
        return value * (_LATER if distance > 0 else 1.0)
    return value * _WRONG_SIDE if distance * side < 0 else value


# The question says where to look and what could be an answer (`Asked`); each option's claims are weighed there. The
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
    """Return the mean (geometric) of each claim's best support; names alone count a little."""
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
    pairs = list(zip(asked.weights, moments, strict=True))
    named = [*reading.concepts.get("character", ()), *reading.concepts.get("prop", ())]
    found = [max((w * m.presence(name) for w, m in pairs), default=0.0) for name in named]
    return 0.5 * sum(found) / len(found) if found else 0.0


def _weigh_feeling(option: str, asked: Asked, moments: Sequence[Moment]) -> float:
    """Weigh a feeling where the question looks; a change of feeling in order over the whole sequence."""
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


# Scenes by their number: "Scene 2 of 5: ..." in a text, and "scene 2 of 5" in a question about it or about pictures.
#
# Evaluators that ask scene by scene number the text's scenes (`configs/evaluators.yaml`), for a story itself does
# not.

_LINE = re.compile(r"Scene \d+ of \d+: (\S.*)")
_ASKED = re.compile(r"\bscene (\d+) of (\d+)\b", re.IGNORECASE)


def numbered_scenes(text: str) -> list[str] | None:
    """Return the scenes of a text of nothing but numbered scenes, a line each, closed by a stop; else None."""
    lines = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    scenes = [line[1] for line in lines if line is not None]
    if not scenes or len(scenes) < len(lines):
        return None
    return [scene if scene[-1] in ".!?\"'”’" else f"{scene}." for scene in scenes]


def at_scene(question: str, moments: Sequence[Moment]) -> list[Moment]:
    """Return the moments of the scene that `question` names; all where it names none, or where their numbers count
    something else (a board with more pictures than scenes)."""
    asked = _ASKED.search(question)
    if asked is None or {moment.scenes for moment in moments} != {int(asked[2])}:
        return list(moments)
    return [moment for moment in moments if moment.scene == int(asked[1])]


# Readings that are shared: a picture is read once, whoever asks.
#
# The judge and the compass look at the same frames. Both give the picture as `clean_image` encodes it, one encoding
# for equal pixels, so that the hash of its bytes stands for its pixels.

_KEPT = 1024
"""Readings kept, the longest unused is forgotten first (a few kilobytes each)."""


class Readings:
    """What `reader` reads, remembered by the hash of a picture's bytes. Safe between threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self.concepts = reader, reader.concepts
        self._lock = threading.Lock()
        self._known: OrderedDict[str, FrameReading] = OrderedDict()

    def spec(self) -> Mapping[str, Any]:
        """Return the reader's own specification; remembering changes no reading."""
        return self._reader.spec()

    def read_many(self, pictures: Sequence[bytes]) -> list[FrameReading]:
        """Return what is in each picture, in order; the new ones are read together.

        Raises:
            InputFileError: the bytes are no picture.
        """
        names = [sha256_hex(picture) for picture in pictures]
        with self._lock:
            found = {name: self._known[name] for name in names if name in self._known}
        new = {name: picture for name, picture in zip(names, pictures, strict=True) if name not in found}
        found.update(zip(new, self._reader.read_many(new.values()), strict=True))
        with self._lock:
            for name in names:
                self._known[name] = found[name]
                self._known.move_to_end(name)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return [found[name] for name in names]


@cache
def shared_readings() -> Readings:
    """Return the shipped reader's readings, shared by the process."""
    return Readings(load_reader())


_NO_SKETCH = "Not a sketch: frame {}. sketch-reader reads sketches only; other pictures need another --judge."
_VERSION = "2"
_SUPPORTED = 0.16
_CONTRADICTED = (0.65, 0.3)


class SketchReaderJudge:
    """Reads sketches by their pixels and chooses among fixed answers; refuses other pictures.

    With images it sees nothing but their pixels, the question and its options. A story's text is read with the same
    vocabulary and answered by the same rules.
    """

    always_chooses = True
    ignores_instructions = True

    def __init__(self, argument: str | None = None, *, reader: Reader | None = None) -> None:
        if argument is not None:
            raise UsageError(f"sketch-reader takes no argument, not {argument!r}.")
        self._readings = shared_readings() if reader is None else Readings(reader)
        self._told: dict[str, list[Moment]] = {}

    def spec(self) -> Mapping[str, Any]:
        """Return the version of the rules and of the recogniser."""
        return {"name": "sketch-reader", "version": _VERSION, "reader": dict(self._readings.spec())}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, each answered on its own; every picture is looked at once."""
        shown = self._readings.read_many(evidence.images)
        limit = self._readings.concepts.sketch_threshold
        strange = ", ".join(str(place) for place, reading in enumerate(shown, 1) if reading.is_sketch < limit)
        images = from_frames(shown)
        if evidence.text is not None and evidence.text not in self._told:
            scenes = numbered_scenes(evidence.text)
            heard = from_story(read_story(evidence.text)) if scenes is None else from_scenes(scenes)
            self._told = {evidence.text: heard}
        told = self._told[evidence.text] if evidence.text is not None else []
        for prompt in prompts:
            if prompt.options is None:
                yield JudgeReply("refused", error="sketch-reader chooses among options; ask with answer options.")
            elif strange:
                yield JudgeReply("refused", error=_NO_SKETCH.format(strange))
            elif evidence.condition == "text+image":
                yield _both(prompt, prompt.options, told, images)
            else:
                moments = at_scene(prompt.question, told if evidence.condition == "text" else images)
                yield _reply(choose(prompt.question, prompt.dimension, prompt.options, moments))


def _reply(choice: Choice, image_support: str | None = None) -> JudgeReply:
    sure: Confidence = "high" if choice.best >= 0.6 else "medium" if choice.best >= 0.3 else "low"
    raw = "support " + " ".join(f"{score:.3f}" for score in choice.scores)
    confidence: Confidence = "low" if choice.answer == UNCLEAR else sure
    return JudgeReply("ok", choice.answer, image_support=image_support, confidence=confidence, raw=raw)


def _both(prompt: JudgePrompt, options: Sequence[str], told: Sequence[Moment], images: Sequence[Moment]) -> JudgeReply:
    """Let the story tell the answer; the images support it, omit it or show its events the other way round."""
    told, images = at_scene(prompt.question, told), at_scene(prompt.question, images)
    by_text = choose(prompt.question, prompt.dimension, options, told)
    by_image = choose(prompt.question, prompt.dimension, options, images)
    choice = by_text if by_text.answer != UNCLEAR else by_image
    if choice.answer == UNCLEAR:
        status = "ambiguous"
    else:
        status = _image_support(prompt, choice.answer, by_image.scores[list(options).index(choice.answer)], images)
    return _reply(choice, status)


def _image_support(prompt: JudgePrompt, answer: str, score: float, images: Sequence[Moment]) -> str:
    if prompt.dimension == "temporal_order":
        forward, backward = reverse_support(answer, images)
        if backward >= _CONTRADICTED[0] and forward <= _CONTRADICTED[1]:
            return "contradicted"
    return "supported" if score >= _SUPPORTED else "omitted"
