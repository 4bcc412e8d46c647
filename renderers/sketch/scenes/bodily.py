"""What is told of somebody's hands, eyes or tears, as what they do themselves: a hand that flies to the mouth."""

from __future__ import annotations

from dataclasses import replace

from katha.renderers.sketch.deeds import deed
from katha.renderers.sketch.scenes.senses import bodily_deed, bodily_mood
from katha.text.types import Entity, Event, Reading, Role

__all__ = ["of_owners"]

_LIVING = frozenset({"person", "animal", "being", "group"})


def of_owners(reading: Reading) -> Reading:
    """The reading with events of parts of a body as deeds or feelings of those whose body it is, where a table knows
    them; all else is as it was."""
    events = tuple(_of_owner(event, reading) for event in reading.events)
    doers = {
        key for event, old in zip(events, reading.events, strict=True) if event is not old for key in event.who("agent")
    }
    # Of whom nothing but a hand is told, the reader may take the name for a place's.
    entities = tuple(
        replace(one, kind="person", character=True) if one.id in doers and one.kind not in _LIVING else one
        for one in reading.entities
    )
    return replace(reading, events=events, entities=entities)


def _of_owner(event: Event, reading: Reading) -> Event:
    subject = next(iter(event.all("agent") or event.all("patient")), None)
    if subject is None or subject.entity is None or event.negated:
        return event
    part = reading.entity(subject.entity)
    owner = _owner(part, event, reading)
    if owner is None or part.kind in _LIVING:
        return event
    told = [event.verb, event.predicate.replace(" ", "_"), *event.state]
    told += [role.head for role in event.all("goal", "place", "patient") if role is not subject]
    names = [f"{one}_{word}" for word in told for one in (part.noun or subject.head, "any")]
    name, mood = bodily_deed(names), bodily_mood(names)
    if name is None and mood is None:
        return event
    doer = Role("agent", owner.name, owner.noun or owner.name, owner.id, start=subject.start)
    verb = deed(name).words[0] if name is not None else "be"
    others = [one for one in event.all("companion", "recipient") if one.entity != owner.id]
    return replace(
        event, verb=verb, particle="", roles=(doer, *others), state=(), feeling=mood or event.feeling, passive=False
    )


def _owner(part: Entity, event: Event, reading: Reading) -> Entity | None:
    """Whose it is: its own owner or, of tears, that of the cheek."""
    near = [part, *(reading.entity(key) for key in event.who("goal", "place", "source"))]
    owners = [one.owner for one in near if one.owner is not None and (one.sort == "body" or one is part)]
    owner = reading.entity(owners[0]) if owners else None
    return owner if owner is not None and (owner.kind in _LIVING or owner.named or owner.character) else None
