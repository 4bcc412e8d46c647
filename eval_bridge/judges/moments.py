"""What happens, in order: the one record that `sketch-reader` makes of frames and of a story's text alike.

Frames become moments by the recogniser, sentences by the vocabulary; after that nothing knows where a moment came from,
so text and images are answered by the same rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from katha.eval_bridge.reader import FrameReading
from katha.language import PhraseEvent, StoryReading, read_story

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
        """How surely a character (other than `but`), thing or place is there."""
        figures = [figure.p for figure in self.figures if figure.concept == concept and figure is not but]
        if but is None or concept != but.concept:
            figures.append(self.nearby.get(concept, 0.0))
        return max([*figures, self.props.get(concept, 0.0), self.settings.get(concept, 0.0)])


def from_frames(readings: Sequence[FrameReading]) -> list[Moment]:
    """One moment a frame."""
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
    """One moment an event; what is denied, only said or only wished does not happen. A place holds until the next."""
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
    """`from_story` for a story told scene by scene: each moment has the number of its scene."""
    ends = list(accumulate(len(read_story(text).sentences) for text in texts))
    story = read_story("\n\n".join(texts))
    sentences = [event.sentence for event in story.events if not event.negated and not event.speech]
    places = (bisect_right(ends, sentence) + 1 for sentence in sentences)
    return [
        replace(moment, scene=place, scenes=len(texts)) for moment, place in zip(from_story(story), places, strict=True)
    ]


def stems(text: str) -> frozenset[str]:
    """The words of `text` that carry meaning, cut to what inflections share."""
    words = (word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST)
    return frozenset(_ENDING.sub("", word) for word in words)


def support(claim: PhraseEvent, moment: Moment, actor: str | None = None) -> float:
    """How far a moment supports a claim, 0 to 1. `actor` fills in for a claim that leaves its actor out."""
    wanted = claim.actor or actor
    return max((_figure_support(claim, wanted, figure, moment) for figure in moment.figures), default=0.0)


def _figure_support(claim: PhraseEvent, wanted: str | None, figure: Seen, moment: Moment) -> float:
    if wanted is not None and figure.concept != wanted:
        return 0.0
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
