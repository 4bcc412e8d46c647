"""What is in a picture besides its events: whom they tell of, who is not there, and what people still wear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from katha.configs import load_config
from katha.text import Event

if TYPE_CHECKING:
    from katha.planners.moments import Story

__all__ = ["inner", "is_gone", "worn"]

_GARMENTS = frozenset(("glasses", "spectacles", "sunglasses", "helmet", "mask", "crown", "veil"))
"""What is worn and no clothing by WordNet."""


def is_gone(event: Event) -> bool:
    """Whether an event tells that somebody or something is not there any more."""
    table: Any = load_config("planning.yaml")
    state = event.verb in ("be", "have") and bool({*event.state} & {*table["gone_states"]})
    return state or event.verb in table["gone_verbs"]


def inner(story: Story, events: Sequence[Event]) -> list[Event]:
    """Return what others do whom these events find, see or speak of: she who sits in the seat that he discovers."""
    shown = {event.id for event in events}
    found: list[Event] = []
    for event in events:
        for one in story.reading.of(event.sentence):
            others = {*story.doers(one)} - {*story.doers(event)}
            told = one.within == event.id and one.id not in shown and one.happens and story.teller.shows(one)
            if told and others and not is_gone(one) and story.teller.people(one.who("agent", "patient")):
                found.append(one)
    return found


def worn(story: Story, main: Event, cast: Sequence[str]) -> list[str]:
    """Return what those in a picture have put on before it and not taken off since: "Walter wears the glasses."."""
    table: Any = load_config("planning.yaml")["dressing"]
    on: dict[tuple[str, str], Event] = {}
    for event in (one for one in story.reading.events if one.id < main.id and one.happens and one.speech is None):
        for thing in event.who("patient"):
            entity = story.reading.entity(thing)
            if entity.sort != "clothing" and entity.noun not in _GARMENTS:
                continue
            if event.predicate in table["puts"] or event.verb in table["puts"]:
                on |= {(key, thing): event for key in story.teller.people(event.who("agent"))}
            elif event.predicate in table["takes"] or event.verb in table["takes"]:
                on = {pair: one for pair, one in on.items() if pair[1] != thing}
    taking = {*main.who("patient")}
    told: list[str] = []
    for who, thing in on:
        if who in cast and thing not in taking:
            name, entity = story.teller.name(who), story.reading.entity(thing)
            bare = entity.name.rsplit("'s ", 1)[-1]
            bare = bare if bare.startswith("the ") else f"the {bare}"
            told.append(f"{name[:1].upper()}{name[1:]} wears {bare}.")
    return told
