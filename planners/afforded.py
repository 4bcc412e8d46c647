"""What a deed is done to or with that its sentence does not name, though it is in play: the rope of "We pulled"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from katha.planners.acts import planning
from katha.text import Entity, Event, Reading
from katha.text.types import Role

__all__ = ["with_things"]

_LIVING = frozenset(("person", "animal", "being", "group"))
_PREPOSITIONS: Mapping[str, Literal["patient", "instrument", "place", "topic"]] = {"": "patient", "with": "instrument"}
"""Which role a thing has behind a preposition; any other is a place."""


@dataclass(frozen=True)
class _Row:
    """The things that afford some verbs, and what stands before them then."""

    things: frozenset[str]
    preposition: str


@lru_cache(maxsize=1)
def _rows() -> Mapping[str, tuple[_Row, ...]]:
    """The rows of a verb or predicate, in the table's order."""
    found: dict[str, tuple[_Row, ...]] = {}
    for row in planning("affords")["rows"]:
        things = frozenset(one.replace("_", " ") for one in row["things"].split())
        one = _Row(things, row.get("before", ""))
        for verb in row["verbs"].split():
            name = verb.replace("_", " ")
            found[name] = (*found.get(name, ()), one)
    return found


def with_things(reading: Reading) -> Reading:
    """Return the reading in which deeds without an object are done to or with what is in play and affords them:
    "We pulled" the rope that was lowered two sentences before."""
    events = list(reading.events)
    for event in reading.events:
        if _is_bare(reading, event) and (role := _afforded(reading, event)) is not None:
            events[event.id] = replace(event, roles=(*event.roles, role))
    return replace(reading, events=tuple(events))


def _is_bare(reading: Reading, event: Event) -> bool:
    """Whether somebody is seen to do something, and nothing says to what or with what."""
    if not event.happens or event.speech is not None or event.passive or event.modality or event.perfect:
        return False
    doers = [reading.entity(key) for key in event.who("agent")]
    if not doers or not all(one.kind in _LIVING for one in doers):
        return False
    if event.all("patient", "instrument", "topic") or event.state:
        return False
    where = [reading.entity(key) for key in event.who("goal", "place", "source")]
    return all(one.kind != "thing" or one.sort in ("furniture", "building", "vehicle") for one in where)


def _afforded(reading: Reading, event: Event) -> Role | None:
    """The thing in play that an event is done with, as its role; the likeliest to be seen of those of the first row
    that has any."""
    placed = bool(event.all("place"))
    for row in _rows().get(event.predicate, ()):
        if placed and row.preposition not in ("", "with"):
            continue  # who sits on the bed sits on nothing else
        found = [(share, at, one) for share, at, one in _in_play(reading, event) if one.noun in row.things]
        if found:
            thing = max(found, key=lambda item: item[:2])[2]
            role = _PREPOSITIONS.get(row.preposition, "place")
            return Role(role, f"the {thing.noun}", thing.noun, thing.id, row.preposition, event.start)
    return None


def _in_play(reading: Reading, event: Event) -> Iterator[tuple[float, int, Entity]]:
    """The things that were named before an event and may be seen in a picture of it: how likely, and since when."""
    least = float(planning("affords")["least"])
    doers = {*event.who("agent")}
    for key, share in reading.sentences[event.sentence].seen.items():
        thing = reading.entity(key)
        here = [role.start for one in reading.of(event.sentence) for role in one.roles if role.entity == key]
        if share < least or thing.kind != "thing" or thing.character or thing.members or not thing.noun:
            continue
        if key in doers or (here and min(here) > event.start):
            continue
        last = max((at for at in thing.sentences if at <= event.sentence), default=-1)
        if last >= 0 and (last < event.sentence or here):
            yield share, last, thing
