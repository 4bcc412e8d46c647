"""What happens, in order: moments of frames or of sentences, and how far one supports a claim.

Frames become moments by the recogniser, sentences by the reading of the text. After that nothing knows where a moment
came from, so text and images are answered by the same rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import accumulate

from katha.eval_bridge.judges.claims import Claim, Term, claim_of, term_for
from katha.eval_bridge.reader import FrameReading, load_concepts
from katha.eval_bridge.reader.network import ACT
from katha.eval_bridge.reader.words import load_words
from katha.text import Reading, read_story

__all__ = ["Moment", "Seen", "from_frames", "from_scenes", "from_story", "stems", "support"]

_WORD = re.compile(r"[a-z]+")
_ENDING = re.compile(r"(?:ing|ed|es|s|e)$")
_SHORTEST = 4
_TARGET_SHARE, _PLACE_SHARE, _ALSO_SHARE = 0.55, 0.3, 0.25
"""How much of a claim's support depends on its target, its place and the others that take part being there too."""
_UNKNOWN = 0.5
"""Presence of a thing that the reader has no picture of."""
_PRESENT = 0.45
"""Support of a claim that only says that somebody is there."""
_UNLIKE = 0.02
_UNREAD = 0.35
"""What a deed is worth of a thing whose deeds cannot be seen (a ball that flies), and one never learnt."""
_SURER = 0.5
"""The power by which a name's probability counts: what was found at all is more than a faint name says, for among a
hundred kinds of people and nine hundred pictograms the right one is seldom sure."""
_NEARBY = 0.5
_OTHER_TARGET = 0.3
"""What a target's presence is worth when the action is known to be directed at something else."""
_REGULAR, _ANYBODY, _ANY_BEAST, _ANY_THING = 0.85, 0.6, 0.4, 0.25
"""How well somebody of whom the words tell no looks is a person who is seen again and again, a person, an animal, a
thing that acts."""
_OFTEN = 0.34
"""The share of frames in which those are seen who are seen again and again."""
_OTHER_CLOTHES = 0.45
"""How well a person who is named by sex and age, or by a trade, is a person who looks otherwise: in a picture a teacher
may be no more than a woman, and a woman a teacher."""


@dataclass(frozen=True)
class Seen:
    """One character in a moment, how sure, and probabilities of what it does and feels.

    looks: the reader's classes that it has. names: what the text calls it; pictures have none. acts: whether its deeds
    can be seen. regular: whether somebody who looks so is in many frames.
    """

    looks: frozenset[str]
    p: float
    actions: Mapping[str, float] = field(default_factory=dict)
    emotions: Mapping[str, float] = field(default_factory=dict)
    target: Term | None = None
    names: frozenset[str] = frozenset()
    acts: bool = True
    regular: bool = False

    def likeness(self, term: Term) -> float:
        """Return how well this can be the one that a phrase names, 0 to 1."""
        if self.names:
            return float(term.same(Term(self.names, self.looks, living=True, proper=term.proper)))
        if term.looks:
            if term.looks & self.looks:
                return 1.0
            return _OTHER_CLOTHES if _is_person(term.looks) and _is_person(self.looks) else 0.0
        if not term.living:
            return 0.0
        if _is_person(self.looks):
            return _REGULAR if self.regular else _ANYBODY
        return _ANY_BEAST if any(key.startswith("character/") for key in self.looks) else _ANY_THING

    def doing(self, deed: str) -> float:
        """Return how surely it does a deed, or one that looks like it."""
        if not self.acts or deed not in load_concepts().actions:
            return _UNREAD
        return min(1.0, sum(self.actions.get(name, 0.0) for name in _alike(deed)))

    def feeling(self, mood: str) -> float:
        """Return how surely it is in a mood."""
        if not self.acts:
            return 0.0
        return min(1.0, sum(self.emotions.get(name, 0.0) for name in load_words().shown(mood)))


@cache
def _alike(deed: str) -> tuple[str, ...]:
    """A deed with those that are drawn like it, and what an actor without a rig does."""
    found = next((group for group in load_concepts().alike if deed in group), (deed,))
    return (*found, f"{ACT}{load_words().acts.get(deed, '')}")


@lru_cache(maxsize=4096)
def _is_person(looks: frozenset[str]) -> bool:
    return any(key.startswith("character/") and key.split("/", 1)[1] in _people() for key in looks)


@cache
def _people() -> frozenset[str]:
    words = load_words()
    return words.people | {"king", "queen", "hunter", "merchant", "sage", "soldier", "thief", "woodcutter", "fisherman",
                           "shepherd"}  # fmt: skip


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

    def presence(self, term: Term, but: Seen | None = None) -> float:
        """Return how surely a character (other than `but`) or thing is there."""
        found = [figure.p * figure.likeness(term) for figure in self.figures if figure is not but]
        found += [self.props.get(key, 0.0) for key in term.looks]
        found += [self.props.get(f"name/{name}", 0.0) for name in term.names]
        found += [p for other, p in self.nearby if other.same(term)]
        return max(found, default=0.0)


def from_frames(readings: Sequence[FrameReading]) -> list[Moment]:
    """Return one moment a frame."""
    moments = []
    often = Counter(name for reading in readings for name in {one.concept for one in reading.figures})
    for place, reading in enumerate(readings, 1):
        figures = [
            Seen(
                frozenset({f"character/{one.concept}"}),
                one.p**_SURER,
                one.actions,
                one.emotions,
                regular=often[one.concept] >= _OFTEN * len(readings),
            )
            for one in reading.figures
        ]
        figures += [
            Seen(frozenset({f"prop/{one.concept}"}), one.p**_SURER, one.actions, one.emotions, acts=bool(one.actions))
            for one in reading.props
        ]
        props: dict[str, float] = {}
        for one in reading.props:
            props[f"prop/{one.concept}"] = max(one.p**_SURER, props.get(f"prop/{one.concept}", 0.0))
        moments.append(Moment(tuple(figures), props, reading.settings, scene=place, scenes=len(readings)))
    return moments


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
        figures.append(Seen(claim.actor.looks, 1.0, does, feels, claim.target, claim.actor.names))
    for key in others:
        term = term_for(story, story.entity(key))
        if term.living:
            figures.append(Seen(term.looks, 1.0, names=term.names))
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
        replace(moment, scene=place, scenes=len(texts), props={**named[place - 1], **moment.props})
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


def support(claim: Claim, moment: Moment, actor: Term | None = None) -> float:
    """Return how far a moment supports a claim, 0 to 1. `actor` fills in for a claim that leaves its actor out."""
    wanted = claim.actor or actor
    return max((_figure_support(claim, figure, moment, wanted) for figure in moment.figures), default=0.0)


def _figure_support(claim: Claim, figure: Seen, moment: Moment, wanted: Term | None) -> float:
    value = figure.p * (1.0 if wanted is None else figure.likeness(wanted))
    if value == 0:
        return 0.0
    if claim.deed is not None:
        value *= max(_UNLIKE, figure.doing(claim.deed))
    if claim.mood is not None:
        value *= max(_UNLIKE, figure.feeling(claim.mood))
    if not claim.tells:
        value *= _PRESENT
    if claim.target is not None:
        value *= 1 - _TARGET_SHARE + _TARGET_SHARE * _directed(claim.target, figure, moment)
    if claim.also:
        there = [moment.presence(term, figure) if term.looks or term.living else _UNKNOWN for term in claim.also]
        value *= 1 - _ALSO_SHARE + _ALSO_SHARE * sum(there) / len(there)
    if claim.place is not None:
        value *= 1 - _PLACE_SHARE + _PLACE_SHARE * moment.settings.get(claim.place, 0.0)
    return value


def _directed(target: Term, figure: Seen, moment: Moment) -> float:
    """How surely what a figure does is done to `target`: it is there, and nobody else is known to be meant."""
    if figure.target is not None and figure.target.same(target):
        return 1.0
    known = moment.presence(target, figure)
    thing_to_somebody = not target.living and figure.target is not None and figure.target.living
    return known * (_OTHER_TARGET if figure.target is not None and not thing_to_somebody else 1.0)
