"""Which deed a clause tells, in the reader's classes: by the verb, its particle and prepositions, by what it is done to
and with, and where, as artists read it.

"Lays the board on the blanket" puts something down, and "lays her head on the bench" leans over it. The words are data
(`Words`); this says in which order they are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from katha.eval_bridge.reader.words import Words, load_words
from katha.text import Entity, Event, Reading, Role
from katha.text.words import load_words as text_words

__all__ = ["LIVING", "deed_of"]

LIVING = frozenset({"person", "animal", "being", "group"})
_FELT = frozenset({"be", "feel", "become", "seem"})
_BECOMING = frozenset({*_FELT, "get", "lie", "fall", "keep", "grow", "turn", "look", "sound", "stay"})
"""What a state goes with ("grew thin" is no gardening)."""
_STATED = frozenset({*_FELT, "grow", "turn", "look", "sound"})
_PLACING = frozenset({"put", "set", "lay", "turn", "hold"})
_ENTERING = frozenset({"walk", "go", "come", "step"})
_ONTO = frozenset({"over", "on", "onto", "around", "round", "about"})
_GOING = frozenset({
    "fly", "land", "escape", "flee", "cross", "deliver", "go", "come", "chase", "travel", "follow", "race",
    "arrive", "return", "leave", "run", "rush", "hurry", "move",
})  # fmt: skip
_LEGS = frozenset({"walk", "run", "fly", "swim", "dance", "sit", "sleep", "wait", "swing", "play", "sneeze"})
"""Deeds of the whole body that nobody does to what they hold."""
_HANDY = frozenset({"hand", "table"})
_FLOATING = frozenset({"water", "ground", "table"})
"""What floats on water; what is light or in the sky floats in the air."""
_STRADDLED, _PET = 135.0, 60.0
"""Heights in centimetres: a vehicle lower than the first is sat on, an animal lower than the second is carried."""


def deed_of(reading: Reading, event: Event, state: Sequence[str]) -> str | None:
    """Return the reader's class of an event's deed; None for one that is not known. state: what is said of the doer."""
    return _Clause(reading, event, state).deed()


class _Clause:
    """One event with the tables beside it."""

    def __init__(self, reading: Reading, event: Event, state: Sequence[str]) -> None:
        self.reading, self.event, self.state = reading, event, state
        self.words: Words = load_words()
        self.verb = self.words.irregular.get(event.verb, event.verb)
        self.doers = event.who("agent") or event.who("patient")
        if event.verb == "lay" and event.who("patient"):
            self.verb = "put"  # not the past of "lie"

    def deed(self) -> str | None:
        """The deed by what is done, and where it is done."""
        found = self._done()
        if found is None:
            return None
        roles = self.event.all("goal", "place", "source", "instrument")
        if found == "climb":
            roles = (*roles, *self.event.all("patient"))
        told = [word for one in roles for word in (f"{one.preposition} {one.head}", one.head)]
        return self.words.at_place(found, [*told, *self.event.state, *self.event.manner]) or found

    def _done(self) -> str | None:
        event, words = self.event, self.words
        if self.verb == "put" and (worn := self._worn()) is not None:
            return worn
        if (dressed := self._dressed()) is not None:
            return dressed
        if self.verb in _BECOMING and event.state:
            named = words.state(self.state)
            if named is not None or self.verb in _STATED:
                return named
        if event.verb in _FELT:
            return words.state(self.state)
        lifeless = self.doers and not any(self._alive(key) for key in self.doers)
        if lifeless and event.phase != "stop" and (own := words.lifeless_deed(event.predicate, self.verb)) is not None:
            return "fly" if own == "swim" and self._light() else own
        if self.verb in words.on_foot and self._human(self.doers):
            return words.on_foot[self.verb]
        if (hindered := self._hindered()) is not None:
            return hindered
        if event.passive and not event.who("agent"):
            done = self.reading.surface(event)
            named = words.verbs.get(f"be {done}") or words.state(self.state)
            return named or words.state((self.verb, f"{self.verb}ed", done))
        return self._active()

    def _active(self) -> str | None:
        """What somebody does, by whom or what it is done to and with."""
        event, words, verb = self.event, self.words, self.verb
        patients = event.all("patient")
        whereto = [role for role in event.all("goal") if role.entity is None or not self._alive(role.entity)]
        about = [word for role in patients or (*event.all("recipient"), *whereto) for word in self._sorts(role)]
        special = words.on_object(event.predicate, about)
        if special is None and not event.particle:
            special = words.on_object(verb, about)
        if special == "pocket" and self._touched():
            special = "pat"
        if verb == "have" and special is None:
            return "hold" if patients else None
        if not event.all("patient", "goal", "recipient") and event.predicate in words.alone:
            return words.alone[event.predicate]
        means = [role.head for role in event.all("instrument", "place", "companion", "source")]
        meant = self._riding() or words.by_tool(verb, means) or special
        found = meant or next((words.verbs[one] for one in (*self._phrases(), verb) if one in words.verbs), None)
        if meant is None and (found is None or found in _LEGS) and self._handled():
            return "handle"  # who skims a stone or shuffles cards goes nowhere
        return found

    def _phrases(self) -> Iterator[str]:
        """The verb with what belongs to it, the closest first."""
        event, verb = self.event, self.verb
        patients = event.all("patient")
        yield from (f"{verb} {word}" for word in event.state)  # "shook her awake"
        where = [role for role in event.all("place", "goal") if not self._aside(role)]
        yield from (f"{verb} {role.head}" for role in (*event.all("patient", "companion"), *where))
        if event.particle and not (event.particle == "away" and patients):
            prepositions = [role.preposition for role in event.all("goal", "source", "place") if role.preposition]
            yield from (f"{verb} {event.particle} {one}" for one in prepositions)
            yield f"{verb} {event.particle}"
        lacks = [role for role in event.all("source") if role.entity is not None and not self._alive(role.entity)]
        if verb in _PLACING or (patients and (verb != "take" or lacks)):
            return  # "put it on the shelf" is not "put it on"
        told = [role.preposition for role in event.roles if role.preposition and self._meets(role)]
        for preposition in sorted(told, key=lambda one: one != "through"):
            if not (verb in _ENTERING and preposition == "in"):  # "walked in the rain" is not "walked in"
                yield f"{verb} {preposition}"

    def _worn(self) -> str | None:
        """The deed of who puts something on the own head or feet."""
        owners = [self.reading.entity(role.entity) for role in self.event.all("goal", "place") if role.entity]
        own = any(one.sort == "body" and (one.owner is None or one.owner in self.event.who("agent")) for one in owners)
        about = [word for role in self.event.all("patient") for word in self._sorts(role)]
        return self.words.on_object("put on", about) if own else None

    def _dressed(self) -> str | None:
        """The deed of who throws or ties a garment over a body."""
        garments = [role for role in self.event.all("patient") if self._kind(role) == "clothing"]
        if not garments or self.verb not in self.words.dressing:
            return None
        spots = [role for role in self.event.all("goal", "place") if role.preposition in _ONTO and role.entity]
        bodies = [one for role in spots if (one := self.reading.entity(str(role.entity))).sort == "body" or _lives(one)]
        if not bodies:
            return None
        wearers = {one.owner or one.id for one in bodies} | set(self.event.who("recipient"))
        return "wear" if wearers <= set(self.event.who("agent")) else "fit"

    def _hindered(self) -> str | None:
        """The deed of who cannot, tries in vain or stops."""
        event = self.event
        if event.phase == "stop":
            return self.words.stopped.get(self.verb)
        if event.modality == "try" or (event.negated and event.modality == "can"):
            found = self.words.failed.get(self.verb)
            return found if event.negated or found == "strain" else None
        return None

    def _light(self) -> bool:
        """Whether the first of the doers floats in the air rather than on water."""
        kind, _, stands = self.words.thing(self.reading.entity(self.doers[0]).noun)
        return bool(kind) and (stands not in _FLOATING or kind in ("toy", "plant", "sky"))

    def _riding(self) -> str | None:
        """Going somewhere on or in something: "chased him on her bicycle", "went by car"."""
        if self.verb not in _GOING:
            return None
        for role in self.event.all("place", "instrument", "companion"):
            kind, height, _ = self.words.thing(role.head)
            if role.preposition in ("on", "by", "in") and kind == "vehicle":
                return "ride" if height < _STRADDLED else "drive"
            if role.preposition == "on" and kind == "animal":
                return "ride"
        return None

    def _sorts(self, role: Role) -> list[str]:
        """The words by which a verb's meaning depends on a thing or somebody: its noun, whose body it is, its kind."""
        found = [role.head]
        if role.entity is None:
            kind = self._kind(role)
            return [*found, kind] if kind else found
        if role.entity in self.event.who("agent"):
            return [*found, "self"]
        entity = self.reading.entity(role.entity)
        owner = entity.owner if _is_body(entity) else None
        if owner is not None and owner in self.event.who("agent"):
            return [*found, "own_body"]
        if owner is not None and self._alive(owner):
            found = ["other_body", *found]
        if self._alive(role.entity):
            kind, height, _ = self.words.thing(entity.noun)
            return [*found, *(("pet",) if kind == "animal" and height <= _PET else ()), "living"]
        found += [entity.noun] if entity.noun and entity.noun != role.head else []
        kind = self._kind(role) or self.words.thing(entity.noun)[0]
        return [*found, kind] if kind else [*found, entity.sort] if entity.sort else found

    def _kind(self, role: Role) -> str:
        return self.words.thing(role.head)[0]

    def _aside(self, role: Role) -> bool:
        """Whether a place is a part of somebody that makes no other verb: to hold something behind the back is not to
        hold back."""
        body = role.entity is not None and _is_body(self.reading.entity(role.entity))
        return body and (role.head == "back" or bool(self.event.all("instrument")))

    def _meets(self, role: Role) -> bool:
        """Whether a preposition makes another verb: one rows with a friend at home, and with oars at sea."""
        return role.preposition != "with" or role.entity is None or self._alive(role.entity)

    def _touched(self) -> bool:
        """Whether a hand is laid on somebody else."""
        parts = [self.reading.entity(role.entity) for role in self.event.all("goal", "place") if role.entity]
        owners = {one.owner for one in parts if one.owner is not None} - set(self.event.who("agent"))
        return bool(owners) or any(_lives(one) for one in parts)

    def _handled(self) -> bool:
        """Whether something that hands can hold is what is done something to."""
        things = [
            role for role in self.event.all("patient") if role.entity is not None and not self._alive(role.entity)
        ]
        return any(self.words.thing(role.head)[2] in _HANDY for role in things)

    def _alive(self, key: str) -> bool:
        return _lives(self.reading.entity(key))

    def _human(self, keys: Iterable[str]) -> bool:
        kinds = [self.reading.entity(key).kind for key in keys]
        return bool(kinds) and all(kind in ("person", "group") for kind in kinds)


def _lives(entity: Entity) -> bool:
    return entity.kind in LIVING


def _is_body(entity: Entity) -> bool:
    own = entity.owner is not None and text_words().has("parts", entity.noun)
    return own or entity.sort in ("body", "abstract")
