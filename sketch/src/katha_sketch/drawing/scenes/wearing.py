"""What people have on, put on and are dressed in: drawn on them, in the colour and state told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from katha_sketch.drawing.deeds import Deed, deed
from katha_sketch.drawing.scenes.making import LIVING, Making, phrase_of
from katha_sketch.drawing.scenes.record import SceneThing
from katha_sketch.drawing.scenes.senses import base_form, features_of, hollow_of, in_table, noun_of, object_deed
from katha_sketch.drawing.scenes.things import worn_where
from katha_sketch.english.types import Entity, Event, Role
from katha_sketch.english.words import load_words

__all__ = ["CLAUSE", "Having", "Wearing"]

_ROWS = frozenset({"chain", "line", "row"})
"""What hands form that pass things along; it is no thing beside them."""
CLAUSE = re.compile(
    r"\b(?:wears?|wearing|dressed in|puts? on) (.+?)"
    r"(?=[,.;!?]|$| and [a-z]+s (?:an?|the|his|her|its|their|to)\b| while | when )"
)
"""All that somebody wears, as far as it is told in a row."""
_OVER = re.compile(r" (?:over|on top of|above) ")
_SEEN_ON = frozenset({"bite", "look", "point", "laugh", "mock", "talk", "photograph", "shout", "tug", "pat"})
"""Deeds for which a garment stays on whose it is."""
_INTO = frozenset({"in", "into", "inside", "under", "beneath", "within"})
_ARMS = frozenset({"hand", "arm"})
_ONTO = frozenset({"over", "on", "onto", "around", "round", "about"})


class Wearing(Making):
    """Puts clothes on those who wear them."""

    def _worn(self, event: Event) -> str | None:
        """The deed of who puts something on the own head or feet."""
        owners = [self._entity(role.entity) for role in event.all("goal", "place") if role.entity is not None]
        own = any(one.sort == "body" and (one.owner is None or one.owner in event.who("agent")) for one in owners)
        about = [word for role in event.all("patient") for word in self._sorts(role)]
        return object_deed("put on", about) if own else None

    def _sorts(self, role: Role) -> list[str]:
        raise NotImplementedError

    def _dressing(self, event: Event) -> str | None:
        """The deed of who ties, pulls or throws a garment over a body or what it has on: the own or another's."""
        garments = [role for role in event.all("patient") if self._garment(role)]
        if not garments or not in_table("dressing", base_form(event.verb)):
            return None
        bodies = [role for role in event.all("goal", "place") if role.preposition in _ONTO and self._is_on(role)]
        if not bodies and not (base_form(event.verb) == "tie" and not event.all("goal", "place")):
            return None
        return "wear" if set(self._wearers(event)) <= set(event.who("agent")) else "fit"

    def _into_clothes(self, event: Event) -> bool:
        """Whether somebody has another at the chest in the own clothes: "buttoned the puppy into her cardigan"."""
        borne = [key for key in event.who("patient") if self._alive(key) and key not in event.who("agent")]
        for role in event.all("goal", "place"):
            noun, own = noun_of(role.head), self._entity(role.entity).owner if role.entity is not None else None
            worn = noun is not None and noun.kind == "clothing" and hollow_of(noun.pictogram) is None
            if borne and worn and own in event.who("agent") and role.preposition in _INTO:
                return True
        return False

    def _wearers(self, event: Event) -> list[str]:
        """On whom a garment goes: whose body or clothes it goes over, to whom it is done, or who does it."""
        found = [role.entity for role in event.all("goal", "place") if role.preposition in _ONTO]
        owners = [self._entity(key).owner for key in found if key is not None]
        others = [key for key in event.who("patient", "recipient") if self._alive(key)]
        living = [key for key in (*owners, *others) if key is not None and self._alive(key)]
        beings = [key for key in found if key is not None and self._entity(key).kind in LIVING]
        return living or beings or [*event.who("agent")]

    def _is_on(self, role: Role) -> bool:
        """Whether a role is a body, a part of one, or what covers it."""
        if role.entity is None:
            return False
        entity, noun = self._entity(role.entity), noun_of(role.head, f"{role.head}s")
        return _of_body(entity) or self._alive(role.entity) or (noun is not None and noun.kind == "clothing")

    def _garment(self, role: Role) -> tuple[str, ...]:
        """A garment as features of who wears it, none where it is something else."""
        noun = noun_of(role.head, f"{role.head}s")
        worn = noun is None or noun.kind == "clothing" or role.head in ("glasses", "nose")
        told = phrase_of(self._entity(role.entity)) if role.entity is not None else role.text
        return (features_of(told) or features_of(f"{told}s")) if worn else ()

    def _put_on(self, role: Role, wearers: Sequence[str]) -> bool:
        """Whether a garment is drawn on those who wear it, in the colour told."""
        own = role.text[: role.text.rfind(role.head) + len(role.head)].lower().split(" over ")[0]  # "her gas mask"
        told = f"{' '.join(self._entity(role.entity).looks)} {own}" if role.entity else role.text
        features = features_of(told) or features_of(f"{told}s")  # the reader's "trouser"
        worn = [key for key in wearers if self._id(key) and self.actors[key].kind == "person"] if features else []
        for key in worn:
            look = self.actors[key].look
            self.actors[key] = replace(self.actors[key], look=replace(look, features=(*look.features, *features)))
        return bool(worn)

    def _dressed_in(self, garment: Entity) -> None:
        """Put what nobody handles on whom the text names last before it: "the old lady at the gate in her shawl"."""
        found = re.search(rf"\bin (?:[\w-]+ ){{0,5}}{re.escape(garment.noun)}", self.prompt, re.IGNORECASE)
        before = self.prompt[: found.start()].lower() if found is not None and garment.noun else ""
        named = {key: _last(actor.id.split()[-1].lower(), before) for key, actor in self.actors.items()}
        persons = [key for key, at in named.items() if at >= 0 and self.actors[key].kind == "person"]
        persons = [key for key in persons if key == garment.owner] or persons
        for key in sorted(persons, key=lambda one: -named[one])[:1]:
            look = self.actors[key].look
            features = features_of(phrase_of(garment)) or features_of(f"{phrase_of(garment)}s")
            self.actors[key] = replace(self.actors[key], look=replace(look, features=(*look.features, *features)))

    def _has_on(self, role: Role) -> bool:
        """Whether a role tells what those of its event are dressed in: "came out in coats"."""
        noun = noun_of(role.head, f"{role.head}s")
        return role.preposition == "in" and noun is not None and noun.kind == "clothing" and bool(self._garment(role))

    def _owner(self, role: Role) -> str | None:
        """The living owner of a garment."""
        owner = self._entity(role.entity).owner if role.entity else None
        noun = noun_of(role.head, f"{role.head}s")
        worn = noun is not None and noun.kind == "clothing"
        return owner if worn and owner is not None and self._alive(owner) else None

    def _stays_on(self, role: Role, row: Deed) -> bool:
        """Whether the object is not in the hand: the trousers that a dog bites are on a man, a chain is of people."""
        if row.id == "pass_along":
            return role.head in _ROWS
        owner = self._owner(role)
        if owner is None or row.id not in _SEEN_ON:
            return False
        if self._put_on(role, [owner]) and role.entity is not None:
            states = self._states(self._entity(role.entity))
            self.actors[owner] = replace(
                self.actors[owner], states=tuple(dict.fromkeys((*self.actors[owner].states, *states)))
            )
        return True

    def _worn_at(self, event: Event, role: Role, agents: Sequence[str]) -> bool:
        """Whether clothes at which something is done are worn by whoever does it, or by their owner: "sat down in the
        dusty boots", "dried her fingers on the apron", "below her boots"."""
        noun = noun_of(role.head)
        if role.preposition == "in" and "wheelchair" in features_of(role.head):
            others = [one.entity for one in event.all("patient") if one.entity and self._alive(one.entity)]
            if self._put_on(role, others[-1:] or agents):  # who is pushed in it
                return True
        if noun is None or noun.kind != "clothing" or role.entity is None or role.entity in self.things:
            return False
        if self._dressing(event) is not None:
            return True  # under what is put on
        owner = self._entity(role.entity).owner
        beasts = [key for key in agents if key in self.actors and self.actors[key].kind != "person" and key != owner]
        if role.preposition in ("in", "inside") and beasts and hollow_of(noun.pictogram) is not None:
            return False  # the mouse sits in his boot
        into = role.preposition in ("into", "onto") and not self._into_clothes(event)
        if owner is not None and self._alive(owner) and not into:
            self._put_on(role, [owner])
            return True
        parts = [self._entity(one.entity) for one in event.all("patient") if one.entity is not None]
        things = [one for one in parts if not _of_body(one) and not self._alive(one.id)]
        people = any(self.actors[key].kind == "person" for key in agents if key in self.actors)
        own = role.preposition in ("in", "under", "inside", "beneath") and not things and people
        if own or (role.preposition in ("on", "with") and parts and not things):
            self._put_on(role, agents)
            return True
        return False

    def _clothe(self, event: Event) -> None:
        """Put all on somebody that a row of garments tells, what is over another last: "a coat over her pyjamas"."""
        found = CLAUSE.search(event.text) or CLAUSE.search(self.prompt)
        if found is None or event.verb not in ("wear", "put"):
            return
        held = [one.word for one in self.things.values() if one.held_by is not None and event.verb == "wear"]
        if any(word in found.group(1) for word in held):
            return  # a hat that is held is not on the head
        garments = [one for part in reversed(_OVER.split(found.group(1))) for one in features_of(part)]
        for key in self._spread(event.who("agent")) if garments else ():
            actor = self.actors.get(key)
            if actor is None or actor.kind != "person":
                continue
            known = [one for one in actor.look.features if one.partition(":")[0] not in _names(garments)]
            look = replace(actor.look, features=(*known, *dict.fromkeys(garments)))
            self.actors[key] = replace(actor, look=look)
            for name in list(self.things):
                noun = self._entity(name).noun if name in self._known() else ""
                if noun and re.search(rf"\b{re.escape(noun)}(?:s|es)?\b", found.group(1)) and name not in self.actors:
                    del self.things[name]

    def _clothed_in(self, event: Event) -> None:
        """Put on what an event's doers are told to be in, all of it: "in his pyjamas and wellingtons"."""
        for role in event.all("place", "goal"):
            if role.preposition != "in" or not role.head or not self._garment(role):
                continue
            row = rf"\bin ((?:[\w-]+ ){{0,3}}{re.escape(role.head)}\w*)((?:, | and )(?:[\w-]+ ){{0,2}}[\w-]+)*"
            found = re.search(row, self.prompt, re.IGNORECASE)
            for part in re.split(r", | and ", found.group()[3:])[1:] if found is not None else ():
                noun = noun_of(part.split()[-1])
                if noun is None or noun.kind != "clothing":
                    break
                for key in self._spread(event.who("agent")):
                    actor = self.actors.get(key)
                    if actor is not None and actor.kind == "person" and features_of(part):
                        look = replace(actor.look, features=(*actor.look.features, *features_of(part)))
                        self.actors[key] = replace(actor, look=look)
                        gone = [one for one, thing in self.things.items() if thing.pictogram == noun.pictogram]
                        for one in gone:
                            del self.things[one]

    def _known(self) -> set[str]:
        return {one.id for one in self.reading.entities} if self.reading is not None else set()

    def _dress(self, event: Event) -> None:
        """Who wears something while doing something else; a hat that is held is not on the head."""
        for role in event.all("patient"):
            thing = self.things.get(role.entity or "")
            if thing is not None and thing.held_by is not None and not self._only_along(thing):
                continue
            wearers = self._spread(event.who("agent"))
            if role.entity is not None and self._put_on(role, wearers):
                self.things.pop(role.entity, None)
            elif role.entity is not None and (thing is None or thing.held_by is None):
                self._around_neck(role.entity, role, wearers)

    def _around_neck(self, key: str, role: Role, wearers: Sequence[str]) -> None:
        """Put a tie, a medal or a necklace that somebody wears around the neck."""
        noun = noun_of(role.head, f"{role.head}s")
        worn = [self.actors[one] for one in wearers if one in self.actors and self.actors[one].kind == "person"]
        if noun is not None and worn and worn_where(noun.pictogram) == "neck":
            found = SceneThing(key, noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, "object")
            self.things[key] = replace(found, at=worn[0].id, where="neck")

    def _only_along(self, thing: SceneThing) -> bool:
        """Whether what somebody wears and has in hand is there for no use of it: "sits with the hat"."""
        events = self.reading.events if self.reading is not None else ()
        for event in events:
            told = [role for role in event.roles if role.entity == thing.id]
            carried = any(role.preposition in ("in", "under") and role.head in _ARMS for role in event.roles)
            along = any(role.preposition == "with" for role in told) and not carried and not event.who("patient")
            if told and event.verb != "wear" and not along:
                return False
        holder = next((one for one in self.actors.values() if one.id == thing.held_by), None)
        if thing.count == 1 and worn_where(thing.pictogram) in ("feet", "hand"):
            return False  # one shoe of two is not seen on the feet
        return thing.role == "instrument" and holder is not None and deed(holder.deed).own is None

    def _on_own_body(self) -> None:
        """The garment of somebody who is there, of which something is told that it does on the body, is on them."""
        for event in self.reading.events if self.reading is not None else ():
            if in_table("off_body", base_form(event.verb)) or event.standing != "told":
                continue
            for role in event.all("agent"):
                thing, owner = self.things.get(role.entity or ""), self._owner(role)
                loose = thing is not None and thing.held_by is None and thing.at is None
                if loose and owner in self.actors and self._put_on(role, [owner]):
                    del self.things[str(role.entity)]


def _last(word: str, text: str) -> int:
    """Where a word stands last in a text, -1 where it does not."""
    return max((one.start() for one in re.finditer(rf"\b{re.escape(word)}\b", text)), default=-1)


def _names(features: Sequence[str]) -> set[str]:
    return {one.partition(":")[0] for one in features}


def _of_body(entity: Entity) -> bool:
    """Whether it is a part of somebody: hands, a head."""
    return entity.sort == "body" or in_table("skip", entity.noun) or load_words().has("parts", entity.noun)


class Having(Wearing):
    """Puts things between two."""

    def _carried_by_two(self, agents: Sequence[str], held: str) -> None:
        """Two with a large thing between them, face to face."""
        first, other = (self._id(key) for key in agents)
        self.things[held] = replace(self.things[held], held_by=first, role="object")
        for key, target in zip(agents, (other, first), strict=True):
            self.actors[key] = replace(self.actors[key], deed="carry_together", target=target)

    def _exchanged(self, held: str, other: str) -> None:
        """Each of two has one of what they exchange."""
        one = replace(self.things[held], count=1)
        self.things[held] = one
        self.things[f"{held} too"] = replace(one, id=f"{held} too", held_by=other)
