"""What a whole place is in until it ends, time passes or the story goes elsewhere: flooded, dark, full of smoke."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from katha.planners.acts import planning
from katha.planners.moments import Story
from katha.planners.settings import plain
from katha.text.types import Event
from katha.text.words import load_words

__all__ = ["conditions", "worded"]

_ARTICLE = re.compile(r"^((?:the|a|an|his|her|their|its|my|our|[\w.' -]+?s?['\u2019]s?) )?(.*)$")


@dataclass(frozen=True)
class _Condition:
    """One row of `place_states`, as configs/planning.yaml explains it."""

    word: str
    states: frozenset[str]
    of: frozenset[str]
    verbs: frozenset[str]
    ends: frozenset[str]
    by: re.Pattern[str] | None
    clears: re.Pattern[str] | None
    never: frozenset[str]

    def begins(self, events: Sequence[Event], text: str) -> bool:
        """Whether a sentence tells it."""
        told = self.by is not None and self.by.search(text) is not None
        return told or any(self._told(event) for event in events)

    def stops(self, events: Sequence[Event], text: str) -> bool:
        """Whether a sentence tells its end."""
        if self.clears is not None and self.clears.search(text) is not None:
            return True
        return any(_verb(event) in self.ends and bool(_heads(event) & self.of) for event in events)

    def _told(self, event: Event) -> bool:
        if _verb(event) in self.verbs and _heads(event) & self.of:
            return True
        where = {role.head.lower() for role in event.all("agent")}
        place = any(load_words().has("place", head) or head in ("everything", "floor") for head in where)
        return place and bool({state.lower() for state in event.state} & self.states)


@cache
def _conditions() -> tuple[_Condition, ...]:
    rows: Mapping[str, Mapping[str, Sequence[str]]] = planning("place_states")
    return tuple(
        _Condition(
            word,
            frozenset(row.get("states", ())),
            frozenset(row.get("of", ())),
            frozenset(row.get("verbs", ())),
            frozenset(row.get("ends", ())),
            _any_of(row.get("by", ())),
            _any_of(row.get("clears", ())),
            frozenset(row.get("never", ())),
        )
        for word, row in rows.items()
    )


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b") if patterns else None


def _verb(event: Event) -> str:
    return f"{event.verb}_{event.particle}" if event.particle else event.verb


def _heads(event: Event) -> set[str]:
    return {role.head.lower() for role in event.all("agent", "patient")}


def conditions(story: Story, way: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield for each sentence what its place of `way` is in, until it ends, time passes or another place comes."""
    held: list[str] = []
    for at, sentence in enumerate(story.reading.sentences):
        if at and (way[at] != way[at - 1] or story.passes(at)):
            held = []
        told = [event for event in story.reading.of(at) if event.happens and event.speech is None]
        events = [event for event in told if event.within is None and not event.aside]
        # What is only told of ("he told me about the winter when the snow buried the box") is not here.
        spoken = any(event.verb in planning("verbs")["talk"] for event in told)
        text = "" if spoken else plain(sentence.text)
        for one in _conditions():
            if one.stops(events, text):
                held = [word for word in held if word != one.word]
            elif one.begins(events, text) and one.word not in held and not one.never & set(way[at].split()):
                held = [*held, one.word]
        yield tuple(held)


def worded(place: str, words: Collection[str]) -> str:
    """Return a place with what it is in: "the dark, flooded cellar"."""
    new = [word for word in words if word not in place.lower()]
    found = _ARTICLE.match(place)
    if not place or not new or found is None:
        return place
    return f"{found[1] or ''}{', '.join(new)} {found[2]}"
