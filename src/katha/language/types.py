"""What katha's small vocabulary reads in English text: one moment (a prompt) or an ordered list of events (a story)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Actor", "Concept", "ConceptKind", "Event", "SceneReading", "StoryReading"]

ConceptKind = Literal[
    "character", "prop", "setting", "emotion", "action", "attribute", "time", "weather", "shot", "moral"
]


@dataclass(frozen=True)
class Concept:
    """One entry of the vocabulary: an id unique in its kind, the words for it, and how it is drawn."""

    id: str
    kind: ConceptKind
    words: tuple[str, ...]
    draw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Actor:
    """A character in one moment. `target` is the concept id (character or prop) that the action is directed at.

    `name` tells characters of one kind apart ("Old Crow"). `attributes` are attribute ids ("small", "red_scarf").
    `carries` are prop ids held, worn or carried. `count` is at least 2 for a plural ("three mice": 3, "birds": 3).
    """

    concept: str
    name: str | None = None
    attributes: tuple[str, ...] = ()
    action: str | None = None
    target: str | None = None
    emotion: str | None = None
    carries: tuple[str, ...] = ()
    count: int = 1


@dataclass(frozen=True)
class SceneReading:
    """One moment, as a prompt describes it. `shot` is set only when the text asks for one (close_up, medium, wide).

    `unread` lists the content words that the vocabulary does not know, so that nothing is dropped silently.
    """

    actors: tuple[Actor, ...] = ()
    props: tuple[str, ...] = ()
    setting: str | None = None
    time: str | None = None
    weather: str | None = None
    shot: str | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    """One thing that happens in a story: who does or feels what, to whom, with what, where.

    `actor_word` is the story's own noun ("hare" for the concept rabbit). `sentence` counts from 0. `negated` holds for
    "did not eat"; `speech` for what is only said or wished. `carries` is what the actor has in its hands or wears, and
    `props` everything that is there. `company` are the concept and name of characters that its sentence names beside
    those who act, `lost` the things that slip out of hands.
    """

    sentence: int
    text: str
    actor: str | None = None
    actor_name: str | None = None
    actor_word: str | None = None
    attributes: tuple[str, ...] = ()
    action: str | None = None
    verb: str | None = None
    target: str | None = None
    target_name: str | None = None
    emotion: str | None = None
    props: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    setting: str | None = None
    time: str | None = None
    cause: str | None = None
    negated: bool = False
    speech: bool = False
    count: int = 1
    company: tuple[tuple[str, str | None], ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoryReading:
    """A whole text: its sentences and the events in them, in order.

    `words` holds the story's own noun for each thing and place it names ("pebble" for the prop stone).
    """

    sentences: tuple[str, ...]
    events: tuple[Event, ...]
    unread: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
