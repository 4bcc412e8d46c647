"""What happens, in order: moments of frames or of sentences.

Frames become moments by the recogniser, sentences by the reading of the text. After that nothing knows where a moment
came from, so text and images are answered by the same rules.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from katha_sketch.english import Reading, read_story
from katha_sketch.reader import FigureReading, FrameReading, load_concepts
from katha_sketch.reader.claims import Claim, Term, claim_of, term_for
from katha_sketch.reader.network import ACT
from katha_sketch.reader.words import load_words

__all__ = [
    "Frames",
    "Moment",
    "Seen",
    "Sight",
    "at_all",
    "from_frames",
    "from_scenes",
    "from_story",
    "in_order",
    "likelihoods",
    "log_mean",
    "posterior",
    "stems",
]

_WORD = re.compile(r"[a-z]+")
_ENDING = re.compile(r"(?:ing|ed|es|s|e)$")
_SHORTEST = 4
_NEARBY = 0.5
_REGULAR, _ANYBODY, _ANY_BEAST, _ANY_THING = 0.85, 0.6, 0.4, 0.25
"""How well somebody of whom the words tell no looks is a person who is seen again and again, a person, an animal, a
thing that acts."""
_NAMED_BEAST = 0.2
"""How well an animal is somebody who is named like a person."""
_KIN, _MOVING = 0.05, 0.3
"""How well a deed of the same kind is the one that is told: who comes in is seen to walk, and looks like who leaves."""
_OFTEN = 0.34
"""The share of frames in which those are seen who are seen again and again."""
_KEPT = 1024
"""Frames whose moments are kept."""
_OTHER_CLOTHES = 0.45
"""How well a person who is named by sex and age, or by a trade, is a person who looks otherwise: in a picture a teacher
may be no more than a woman, and a woman a teacher."""
_TRUST = 0.6
"""The exponent of a deed's probability: of those read at 0.72 on drawn boards 59% are right, of those at 0.96 88%."""
_OTHER_AGE, _OTHER_SEX = 0.6, 0.15
"""How well one of the other age, or of the other sex, is the one that is named."""


@dataclass(frozen=True)
class Seen:
    """One character in a moment, how sure, and probabilities of what it does and feels.

    looks: how probably it is of each of the reader's classes. names: what the text calls it; pictures have none. acts:
    whether its deeds can be seen. regular: whether somebody who looks so is in many frames.
    """

    looks: Mapping[str, float]
    actions: Mapping[str, float] = field(default_factory=dict)
    emotions: Mapping[str, float] = field(default_factory=dict)
    target: Term | None = None
    names: frozenset[str] = frozenset()
    acts: bool = True
    regular: bool = False

    @cached_property
    def p(self) -> float:
        """How surely it is there, whatever it is."""
        return 1.0 if self.names else min(1.0, sum(self.looks.values()))

    def likeness(self, term: Term) -> float:
        """Return how probably this is the one that a phrase names."""
        if self.names:
            return float(term.same(Term(self.names, frozenset(self.looks), living=True, proper=term.proper)))
        return min(1.0, sum(p * self._fit(key, term) for key, p in self.looks.items()))

    def _fit(self, key: str, term: Term) -> float:
        """How well one that looks like `key` is the one that `term` names."""
        if term.looks:
            if key in term.looks:
                return 1.0
            called = term.proper and key.startswith("character/") and not _is_person(frozenset({key}))
            return _NAMED_BEAST if called and _is_person(term.looks) else _resemblance(key, term.looks)
        if not term.living:
            return 0.0
        if _is_person(frozenset({key})):
            return _REGULAR if self.regular else _ANYBODY
        return _ANY_BEAST if key.startswith("character/") else _ANY_THING

    def doing(self, deed: str) -> float | None:
        """Return how probably it does a deed, or one that looks like it; None where that cannot be seen."""
        if deed not in self._done:  # every option asks for the same few in every frame
            self._done[deed] = self._doing(deed)
        return self._done[deed]

    @cached_property
    def _done(self) -> dict[str, float | None]:
        return {}

    def _doing(self, deed: str) -> float | None:
        if not self.acts or deed not in _deeds():
            return None
        same = sum(self.actions.get(name, 0.0) for name in _alike(deed))
        kin = sum(self.actions.get(name, 0.0) for name in _kin(deed))
        return min(1.0, same + (_MOVING if load_words().acts.get(deed) == "move" else _KIN) * kin)

    def feeling(self, mood: str) -> float:
        """Return how probably it is in a mood."""
        if not self.acts:
            return 0.0
        return min(1.0, sum(self.emotions.get(name, 0.0) for name in load_words().shown(mood)))


@lru_cache(maxsize=4096)
def _resemblance(key: str, looks: frozenset[str]) -> float:
    """How well a figure is a person who should look otherwise: by sex and age, as far as its clothes tell them."""
    if not _is_person(frozenset({key})) or not _is_person(looks):
        return 0.0
    sex, _ = _nature(key)
    natures = [_nature(other) for other in looks]
    if sex is not None and all(other is not None and other != sex for other, _ in natures):
        return _OTHER_SEX
    same = any(other == sex and age is not None for other, age in natures)
    return _OTHER_AGE if sex is not None and same else _OTHER_CLOTHES


@cache
def _nature(key: str) -> tuple[str | None, str | None]:
    """Sex and age of a class of people that tells them."""
    name = key.split("/", 1)[1]
    return next(
        (
            (sex or None, age)
            for nature, base in load_words().bases.items()
            if base == name
            for sex, _, age in [nature.partition(" ")]
            if sex
        ),
        (None, None),
    )


@cache
def _deeds() -> frozenset[str]:
    return frozenset(load_concepts().actions)


@cache
def _alike(deed: str) -> tuple[str, ...]:
    """A deed with those that are drawn like it, and what an actor without a rig does."""
    found = next((group for group in load_concepts().alike if deed in group), (deed,))
    return (*found, f"{ACT}{load_words().acts.get(deed, '')}")


@cache
def _kin(deed: str) -> tuple[str, ...]:
    """The other deeds of the same kind: ways to move, to speak, to look, to work."""
    acts, same = load_words().acts, _alike(deed)
    return tuple(name for name, act in acts.items() if act == acts.get(deed) and name not in same)


@lru_cache(maxsize=4096)
def _is_person(looks: frozenset[str]) -> bool:
    return any(key.startswith("character/") and key.split("/", 1)[1] in _people() for key in looks)


@cache
def _people() -> frozenset[str]:
    words = load_words()
    return words.people | {"king", "queen", "hunter", "merchant", "sage", "soldier", "thief", "woodcutter", "fisherman",
                           "shepherd"}  # fmt: skip


class Sight(NamedTuple):
    """How probably each figure of a moment is the one that a term names, how surely that is there at all, which figure
    is likest (-1 for none), and how surely it is there beside that figure."""

    figures: tuple[float, ...]
    there: float
    first: int
    beside: float

    def but(self, figure: int) -> float:
        """Return how surely it is there as somebody or something else than a figure (-1 for none)."""
        return self.beside if figure >= 0 and figure == self.first else self.there


@dataclass(frozen=True)
class _Found:
    """What was found out about a moment, kept for who asks the same again."""

    sights: dict[Term, Sight] = field(default_factory=dict)
    spoken: dict[tuple[Claim, Term | None], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """One frame or event: who is there, which things, where; `nearby` is who was spoken of shortly before or after.

    `words` are the stems of the words that tell the event: frames have none. `scene` of `scenes` is its number, 0 where
    scenes are not numbered.
    """

    figures: tuple[Seen, ...] = ()
    props: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    nearby: tuple[tuple[Term, float], ...] = ()
    words: frozenset[str] = frozenset()
    scene: int = 0
    scenes: int = 0
    found: _Found = field(default_factory=_Found, compare=False, repr=False)

    def sight(self, term: Term) -> Sight:
        """Return how surely somebody or something is there, found once for each term."""
        found = self.found.sights.get(term)
        if found is None:
            found = self.found.sights[term] = self._sighted(term)
        return found

    def speaks(self, claim: Claim, actor: Term | None) -> float:
        """Return how much it speaks for a claim of `actor`, found once: options of several questions claim the same."""
        found = self.found.spoken.get((claim, actor))
        if found is None:
            found = self.found.spoken[claim, actor] = _likelihood(claim, self, actor)
        return found

    def _sighted(self, term: Term) -> Sight:
        figures = tuple(figure.likeness(term) for figure in self.figures)
        beside = [self.props.get(key, 0.0) for key in term.looks]
        beside += [self.props.get(f"name/{name}", 0.0) for name in term.names]
        beside += [p for other, p in self.nearby if other.same(term)]
        first = max(range(len(figures)), key=figures.__getitem__, default=-1)
        others = [p for at, p in enumerate(figures) if at != first]
        return Sight(figures, max([*figures, *beside], default=0.0), first, max([*others, *beside], default=0.0))


class Frames:
    """Frames as moments. What was found out about a frame is kept: a board and each two of its frames are asked about,
    and boards share frames."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, frozenset[str]], tuple[FrameReading, Moment]] = {}

    def moments(self, readings: Sequence[FrameReading]) -> list[Moment]:
        """Return one moment a frame: all that was seen, for what it may be."""
        often = Counter(name for reading in readings for name in {one.concept for one in reading.figures})
        regular = {name for name, count in often.items() if count >= _OFTEN * len(readings)}
        found = [self._moment(reading, regular) for reading in readings]
        return [replace(one, scene=place, scenes=len(found)) for place, one in enumerate(found, 1)]

    def _moment(self, reading: FrameReading, regular: Set[str]) -> Moment:
        here = frozenset(one.concept for one in (*reading.figures, *reading.faint) if one.concept in regular)
        key = (id(reading), here)  # which is another's only when this reading is gone, and it is kept beside
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known = {}
            self._known[key] = (reading, _moment_of(reading, here))
        return self._known[key][1]


def from_frames(readings: Sequence[FrameReading]) -> list[Moment]:
    """Return one moment a frame: all that was seen, for what it may be."""
    return Frames().moments(readings)


def _moment_of(reading: FrameReading, regular: Set[str]) -> Moment:
    """One frame. regular: the figures that are seen again and again on its board."""
    figures: list[Seen] = []
    props: dict[str, float] = {}
    for one in (*reading.figures, *reading.props, *reading.faint):
        is_figure = isinstance(one, FigureReading)
        kind = "character" if is_figure else "prop"
        looks = {f"{kind}/{name}": p for name, p in (one.names or {one.concept: one.p}).items()}
        acts = is_figure or bool(one.actions)
        seen_again = is_figure and one.concept in regular
        figures.append(Seen(looks, _doubted(one.actions), one.emotions, acts=acts, regular=seen_again))
        if not is_figure:
            props |= {key: max(p, props.get(key, 0.0)) for key, p in looks.items()}
    return Moment(tuple(figures), props, reading.settings)


def _doubted(chances: Mapping[str, float]) -> dict[str, float]:
    """Probabilities as far as they are believed: the reader is surer of a deed than it is right."""
    raised = {name: p**_TRUST for name, p in chances.items()}
    whole = sum(raised.values()) or 1.0
    return {name: p / whole for name, p in raised.items()}


def from_story(story: Reading) -> list[Moment]:
    """Return one moment an event that happens (not denied, only said or wished). A place holds until the next."""
    events = [event for event in story.events if event.happens]
    claims = [claim_of(story, event) for event in events]
    moments: list[Moment] = []
    for nth, (event, claim) in enumerate(zip(events, claims, strict=True)):
        told = story.sentences[event.sentence]
        place = load_words().place(told.place.text) if told.place is not None else None
        figures, props = _taking_part(story, claim, event.who("patient", "recipient", "companion", "instrument"))
        around = [
            other
            for other, near in zip(claims[max(0, nth - 2) : nth + 3], events[max(0, nth - 2) : nth + 3], strict=True)
            if other is not None and abs(near.sentence - event.sentence) <= 1
        ]
        nearby = [(term, _NEARBY) for other in around for term in (other.actor, other.target) if term is not None]
        settings = {place: 1.0} if place else {}
        moments.append(Moment(figures, props, settings, tuple(nearby), stems(event.text)))
    return moments


def _taking_part(
    story: Reading, claim: Claim | None, others: Sequence[str]
) -> tuple[tuple[Seen, ...], dict[str, float]]:
    """Who and what is in an event of a text."""
    figures: list[Seen] = []
    props: dict[str, float] = {}
    if claim is not None and claim.actor is not None:
        does = {claim.deed: 1.0} if claim.deed else {}
        feels = dict.fromkeys(load_words().shown(claim.mood), 1.0) if claim.mood else {}
        looks = dict.fromkeys(claim.actor.looks, 1.0)
        figures.append(Seen(looks, does, feels, claim.target, claim.actor.names))
    for key in others:
        term = term_for(story, story.entity(key))
        if term.living:
            figures.append(Seen(dict.fromkeys(term.looks, 1.0), names=term.names))
        else:
            props |= dict.fromkeys((*term.looks, *(f"name/{name}" for name in term.names)), 1.0)
    return tuple(figures), props


def from_scenes(texts: Sequence[str]) -> list[Moment]:
    """Do as `from_story` for a story told scene by scene: each moment has the number of its scene, and all that the
    scene names is in it."""
    ends = list(accumulate(len(read_story(text).sentences) for text in texts))
    story = read_story("\n\n".join(texts))
    sentences = [event.sentence for event in story.events if event.happens]
    places = [min(bisect_right(ends, sentence) + 1, len(texts)) for sentence in sentences]
    named = [_named(text) for text in texts]
    return [
        replace(moment, scene=place, scenes=len(texts), props={**named[place - 1], **moment.props}, found=_Found())
        for moment, place in zip(from_story(story), places, strict=True)
    ]


def _named(text: str) -> dict[str, float]:
    """Who and what a text names, as the props of a moment have it."""
    story = read_story(text)
    terms = [term_for(story, entity) for entity in story.entities]
    return {key: 1.0 for term in terms for key in (*term.looks, *(f"name/{name}" for name in term.names))}


def stems(text: str) -> frozenset[str]:
    """Return the words of `text` that carry meaning, cut to what inflections share."""
    words = (word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST)
    return frozenset(_ENDING.sub("", word) for word in words)


class _Worth(NamedTuple):
    """gain: how much likelier a sure sight of it is where it is claimed than elsewhere. miss: how likely it is there
    although it is not seen, for how likely it is elsewhere."""

    gain: float
    miss: float

    def __call__(self, p: float) -> float:
        return math.log(self.gain * p + self.miss * (1 - p))


_ACTOR = _Worth(4.0, 0.15)
_DEED = _Worth(14.0, 0.5)
_MOOD = _Worth(12.0, 0.4)
_BEING = _Worth(3.0, 0.4)
_THING = _Worth(18.0, 0.45)
_PLACE = _Worth(5.0, 0.5)
_SHARPNESS = 1.8
"""How far the ratios are believed: most options tell of another moment of the same board, which shows all that they
name; frames that show but a part of it speak less for an option than their ratios, taken one by one, say."""
_APART, _FAR = 0.2, 0.01
"""How much less likely two events whose order is asked for are with each frame between theirs, and what remains at any
distance: of two frames that may show an event the one beside the other event's is meant."""


def likelihoods(claim: Claim, moments: Sequence[Moment], actor: Term | None = None) -> list[float]:
    """Return how much each moment speaks for `claim`. `actor` fills in for a claim that leaves its actor out."""
    return [_SHARPNESS * moment.speaks(claim, claim.actor or actor) for moment in moments]


def _likelihood(claim: Claim, moment: Moment, wanted: Term | None) -> float:
    """The best of the figures as its actor, and the rest of the claim beside it.

    What stands beside an actor is the same for all but those figures that are themselves likest to one of the others.
    """
    who = moment.sight(wanted) if wanted is not None else None
    others = [
        (_BEING if term.living else _THING, moment.sight(term))
        for term in (*((claim.target,) if claim.target is not None else ()), *claim.also)
        if term.looks or term.living
    ]
    where = None if claim.place is None else _PLACE(moment.settings.get(claim.place, 0.0))
    ambiguous = {sight.first for _, sight in others}
    whole = _of_rest(others, where, -1)
    found = [_of_figure(claim, None, who, -1) + whole]
    for at, figure in enumerate(moment.figures):
        rest = _of_rest(others, where, at) if at in ambiguous else whole
        found.append(_of_figure(claim, figure, who, at) + rest)
    return max(found)


def _of_figure(claim: Claim, figure: Seen | None, who: Sight | None, at: int) -> float:
    value = 0.0
    if who is not None:
        value += _ACTOR(who.figures[at] if figure is not None else 0.0)
    there = figure.p if figure is not None else 0.0
    if claim.deed is not None and not claim.negated:
        done = figure.doing(claim.deed) if figure is not None else 0.0
        value += 0.0 if done is None else _DEED(there * done)
    if claim.mood is not None and not claim.negated:
        value += _MOOD(there * figure.feeling(claim.mood) if figure is not None else 0.0)
    return value


def _of_rest(others: Sequence[tuple[_Worth, Sight]], where: float | None, actor: int) -> float:
    value = 0.0
    for worth, sight in others:
        value += worth(sight.but(actor))
    return value if where is None else value + where


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
    one, other = posterior(first), posterior(second)
    forward, backward = _before(one, other), _before(other, one)
    together = sum(p * q for p, q in zip(one, other, strict=True))
    whole = forward + backward + together
    return (forward + together / 2) / whole if whole else 0.5


def _before(one: Sequence[float], other: Sequence[float]) -> float:
    """How probably `one` is a moment before `other`, the nearer the likelier."""
    value, near, earlier = 0.0, 0.0, 0.0
    for p, q in zip(one, other, strict=True):
        value += q * (_FAR * earlier + (1 - _FAR) * near)
        near, earlier = _APART * near + p, earlier + p
    return value
