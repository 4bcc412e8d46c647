"""What stands inside a noun's own phrase and no event has: the cake on the table, a story about a whale, dinner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.scenes.cast import thing_of
from katha_sketch.drawing.scenes.making import QUOTED
from katha_sketch.drawing.scenes.record import SceneActor, SceneThing
from katha_sketch.drawing.scenes.relations import Relations
from katha_sketch.drawing.scenes.senses import base_form, beside_of, hollow_of, in_table, noun_of
from katha_sketch.english.types import Entity, Event

__all__ = ["Nested"]

_MEAL = re.compile(
    r"\b(?:at|to|for|over|during|has|have|having|eats?|eating) (?:(?:the|a|an|his|her|their|our|its) )?(?:\w+ )?"
    r"(?:dinner|lunch|breakfast|supper|meal|feast|tea|banquet)\b"
)
"""What people sit at who sit at a table with plates on it."""
_DINING = frozenset({"sit", "eat", "dine", "gather", "have", "read", "talk", "say", "laugh", "argue", "tell", "meet"})
_AT_TABLE = frozenset({"sit", "sit_at", "sit_floor", "eat", "stand", "read", "talk", "laugh", "argue", "drink"})
_WAY = (
    r"(?P<way>on top of|in front of|on|in|into|onto|inside|under|underneath|beneath|behind|beside|next to|near|by|"
    r"against|above|over)"
)
_LINK = rf"\w* {_WAY} (?:(?:the|a|an|his|her|its|their|my|our|your|each|one|two|three) )?(?:[\w'-]+ ){{0,2}}"
_LAID = frozenset({"on", "in", "under", "behind", "beside", "against"})
"""How a thing lies beside another that the phrase of it names."""
_BEDS = frozenset({"bed", "stretcher", "cradle", "hospital-bed", "sofa", "hammock"})
_SEATED = frozenset({
    "train_carriage", "bus", "car", "aeroplane_cabin", "bus_stop", "waiting_room", "classroom", "office", "cinema",
    "theatre", "church", "courtroom", "cafe", "restaurant", "library", "station", "departures",
})  # fmt: skip
"""Places with seats."""
_ABED = frozenset({"sit", "lie", "sleep", "in_bed", "read", "play", "curl_up", "sit_floor", "wake"})
"""What those do who are in bed themselves with others there."""
_TREE = 150.0
_STRADDLED = 135.0
"""A vehicle lower than this is sat on (centimetres)."""
_GAMES = frozenset({"chess_set", "board_game", "deck_of_cards"})
_CARRIED = 60.0
"""What is larger (centimetres) nobody has in the hand with something in it."""
_LAP = 62.0
"""An animal no taller (centimetres) sits on a lap."""
_CROWDED = re.compile(
    r"\b(?:full of|crowded with|packed with|crammed with) (people|passengers|children|tourists|guests|pupils)\b"
)
_LYING = frozenset({"lie", "sleep", "recline", "sprawl"})
_IN_WATER = frozenset({"swim", "fall_in_water", "fall", "dive", "sink"})
_NURSED = frozenset({"stand", "sit", "lie", "sleep"})
"""Deeds of which who is told to be in bed is seen lying there."""


class Nested(Relations):
    """Puts things and people where their own phrase has them."""

    def _in_phrases(self, events: Sequence[Event]) -> None:
        """All that phrases and the places of people tell beside the events."""
        self._patients()
        self._speaking_abed(events)
        self._on_laps()
        self._shared_bed(events)
        self._led()
        self._upon_it()
        self._caught()
        self._full_of()
        self._nested()
        self._lists()
        self._at_meals()
        self._aboard()
        self._asleep_in_seats()

    def _nested(self) -> None:
        """Each thing, and whoever does nothing else, that the phrase of it has on, in, under or behind another."""
        if self.reading is None:
            return
        text = QUOTED.sub("", self.prompt)
        known = {one.id: one for one in self.reading.entities}
        for key, there in list(self.things.items()):
            host = known.get(key)
            if host is None or not host.noun or there.at is not None:
                continue
            for other in [*self.things, *self.actors]:
                entity = known.get(other)
                if entity is None or other == key or not entity.noun:
                    continue
                found = re.search(rf"\b{re.escape(entity.noun)}{_LINK}{re.escape(host.noun)}", text, re.IGNORECASE)
                if found is not None:
                    self._lies(other, key, found.group("way").lower())

    def _lies(self, what: str, where: str, link: str) -> None:
        """Put a thing or somebody idle where a phrase has it, and with a thing those of its list."""
        preposition, _, rest = link.partition(" ")
        way, there = beside_of(preposition, rest.split()[0] if rest.split() else ""), self.things[where]
        if way not in _LAID:
            return
        if what in self.actors:
            self._rests(what, there, str(way))
            return
        thing = self.things[what]
        if thing.at is not None or there.at == what or there.pictogram == thing.pictogram:
            return
        covers = in_table("covers", there.pictogram or "")  # under a blanket it would not be seen in the hand
        if thing.role == "instrument" and thing.held_by and not covers and self._has_along(what, where):
            boxed = hollow_of(there.pictogram) is not None or there.kind == "container"
            if way != "in" or not boxed or there.cm > _CARRIED or there.at is not None:
                return  # who sits with a basket on a wall has it in hand
            self._carries(thing, there)
            return
        wanted = {what, *self._listed(what)}
        looked = next((one for one in self.actors.values() if one.target in wanted), None)
        laying = looked is not None and in_table("laid", looked.deed)
        if looked is not None and deed(looked.deed).thing != "ahead" and not laying:
            return  # it is in the hand
        if thing.pictogram in _GAMES and any(one.deed == "play_board" for one in self.actors.values()):
            return
        for one in (what, *self._listed(what)):
            listed = self.things.get(one)
            if listed is not None and listed.at is None and one != where:
                holder = listed.held_by if laying else None
                self.things[one] = replace(listed, at=where, where=way, held_by=holder)  # type: ignore[arg-type]
        if looked is not None and laying:
            self.things[where] = replace(there, held_by=looked.id, role="goal")
        elif looked is not None:
            self.things[where] = replace(there, held_by=looked.id, role="object")
            key = next(key for key, one in self.actors.items() if one is looked)
            self.actors[key] = replace(looked, target=where)

    def _has_along(self, what: str, where: str) -> bool:
        """Whether a thing is what somebody has along who is at the other: "kneels with a lamp beneath the clock"."""
        for event in self.reading.events if self.reading is not None else ():
            along = any(one.entity == what and one.preposition == "with" for one in event.all("instrument"))
            if along and not event.who("patient") and where in event.who("place", "goal"):
                return True
        return False

    def _carries(self, thing: SceneThing, box: SceneThing) -> None:
        """Put what somebody has along into what they carry it in: "comes with a ring in a packet"."""
        self.things[thing.id] = replace(thing, at=box.id, where="in", held_by=None)
        self.things[box.id] = replace(box, held_by=thing.held_by, role="instrument")
        for key, actor in self.actors.items():
            if actor.id == thing.held_by and box.id in (actor.target, actor.at):
                self.actors[key] = replace(actor, target=None, at=None, where=None)

    def _rests(self, key: str, there: SceneThing, way: str) -> None:
        """Who lies in a bed, rides on a bicycle or is under a table of whom nothing else is told."""
        actor = self.actors[key]
        bed = there.pictogram in _BEDS and way in ("in", "on")
        idle = actor.deed == "stand" and actor.target is None and actor.at is None
        if not bed and idle and there.held_by is not None and there.pictogram != "swing":
            self._is_moved(key, there, way)
            return
        if there.pictogram == "swing" and idle:
            del self.things[there.id]  # the deed brings it
            self.actors[key] = replace(actor, deed="swing")
            return
        if way == "in" and there.kind == "plant" and there.cm > _TREE:
            way = "on"  # in the crown
        if not bed and idle and there.at is None:
            ridden = way == "on" and there.kind == "vehicle" and there.cm < _STRADDLED and actor.kind != "pictogram"
            self.things[there.id] = replace(there, held_by=actor.id if ridden else None, role="object")
            self.actors[key] = (
                replace(actor, deed="ride", target=there.id) if ridden else replace(actor, at=there.id, where=way)  # type: ignore[arg-type]
            )
            return
        if not bed or actor.kind != "person" or actor.target is not None or actor.deed not in _NURSED:
            return
        self.things[there.id] = replace(there, held_by=actor.id, role="object")
        self.actors[key] = replace(actor, deed="lie", target=there.id, at=None, where=None, posture=None)

    def _is_moved(self, key: str, there: SceneThing, way: str) -> None:
        """Somebody on or in what others push, pull or carry: "pulls the sledge with the girl on it"."""
        actor = self.actors[key]
        holder = next((one for one, other in self.actors.items() if other.id == there.held_by), None)
        if (
            holder is None
            or holder == key
            or deed(self.actors[holder].deed).thing not in ("front", "behind", "between")
        ):
            return
        self.actors[holder] = replace(self.actors[holder], target=there.id)
        self.actors[key] = replace(actor, at=there.id, where="in" if way == "in" else "on")

    def _listed(self, key: str) -> Sequence[str]:
        """The other things of a list that a thing is of: "three oranges, a knife and a loaf"."""
        assert self.reading is not None
        lists = [one for one in self.reading.entities if key in (one.id, *one.members)]
        return [other for one in lists for other in (one.id, *one.members) if other != key]

    def _lists(self) -> None:
        """All of a list lie where the first of it does: "marbles, a tooth and a letter lie in the tin"."""
        for entity in self.reading.entities if self.reading is not None else ():
            keys = [key for key in (entity.id, *entity.members) if key in self.things]
            laid = next((self.things[key] for key in keys if self.things[key].at is not None), None)
            bearing = {one.at for one in self.things.values()} | {one.at for one in self.actors.values()}
            for key in keys if laid is not None and len(keys) > 1 else ():
                thing = self.things[key]
                if (
                    key not in bearing
                    and thing.at is None
                    and thing.held_by is None
                    and laid is not None
                    and laid.at not in keys
                ):
                    self.things[key] = replace(thing, at=laid.at, where=laid.where)

    def _led(self) -> None:
        """An animal that is told with somebody ("the man with the dog") is beside them."""
        known = {one.id: one for one in self.reading.entities} if self.reading is not None else {}
        for key, animal in self.actors.items():
            entity = known.get(key)
            if entity is None or entity.kind != "animal" or animal.at is not None or animal.deed != "stand":
                continue
            for other, actor in self.actors.items():
                host = known.get(other)
                if host is None or other == key or not host.noun or not entity.noun or actor.at is not None:
                    continue
                pattern = (
                    rf"\b{re.escape(host.noun)} with (?:an?|the|his|her|its|their) (?:[\w-]+ ){{0,2}}{entity.noun}\b"
                )
                free = actor.target != animal.id and animal.target is None
                if free and re.search(pattern, self.prompt, re.IGNORECASE):
                    self.actors[key] = replace(animal, at=actor.id, where="beside")
                    break

    def _upon_it(self) -> None:
        """Who is told to be on it or in it is so: "the sledge with the girl on it"."""
        known = {one.id: one for one in self.reading.entities} if self.reading is not None else {}
        for key in list(self.actors):
            entity = known.get(key)
            for thing in [*self.things.values()] if entity is not None and entity.noun else ():
                host = known.get(thing.id)
                if host is None or not host.noun or entity is None:
                    continue
                pattern = rf"\b{re.escape(host.noun)} with [^.]*\b{re.escape(entity.noun)} (on|in|inside|under) it\b"
                found = re.search(pattern, self.prompt, re.IGNORECASE)
                if found is not None and thing.id in self.things:
                    self._rests(key, thing, "on" if found.group(1) == "on" else "in")

    def _caught(self) -> None:
        """What one throws while another catches goes to that one."""
        catchers = [one for one in self.actors.values() if one.deed == "catch"]
        for key, actor in self.actors.items():
            thrown = self.things.get(actor.target or "")
            if actor.deed == "throw" and catchers and catchers[0].id != actor.id and thrown is not None:
                self.things[thrown.id] = replace(thrown, held_by=actor.id, role="object")
                self.actors[key] = replace(actor, target=catchers[0].id)
                other = next(one for one, fellow in self.actors.items() if fellow is catchers[0])
                if self.actors[other].target in (thrown.id, None):
                    self.actors[other] = replace(self.actors[other], target=None)

    def _on_laps(self) -> None:
        """A small animal with which somebody sits is on their lap."""
        known = {one.id: one for one in self.reading.entities} if self.reading is not None else {}
        for key, actor in self.actors.items():
            sits = actor.deed == "sit" and actor.kind == "person" and actor.count == 1
            pet = next((one for one, other in self.actors.items() if other.id == actor.target), None) if sits else None
            noun = noun_of(known[pet].noun) if pet in known else None
            if pet is None or noun is None or noun.kind != "animal" or noun.cm > _LAP:
                continue
            seats = [one for one in self.things.values() if one.held_by == actor.id and in_table("seats", one.word)]
            for seat in seats[:1]:
                self.things[seat.id] = replace(seat, role="object")
            self.actors[key] = replace(actor, target=seats[0].id if seats else None)
            self.actors[pet] = replace(self.actors[pet], deed="sit", target=None, at=actor.id, where="lap")

    def _speaking_abed(self, events: Sequence[Event]) -> None:
        """Who lies somewhere and speaks meanwhile is seen lying: "lies on the sofa and shouts"."""
        for event in events:
            if base_form(event.verb) not in _LYING:
                continue
            for key in self._spread(event.who("agent")):
                actor = self.actors.get(key)
                spoken = actor is not None and (actor.voice or {"speech", "blast"} & {*deed(actor.deed).pose.emanata})
                seats = [self.things[one] for one in _within(event) if one in self.things]
                if actor is None or not spoken or not seats or seats[0].pictogram not in _BEDS:
                    continue
                self.things[seats[0].id] = replace(seats[0], held_by=actor.id, role="object")
                tells = actor.tells or next((one.id for one in self.actors.values() if one.id == actor.target), None)
                self.actors[key] = replace(actor, deed="lie", target=seats[0].id, at=None, where=None, posture=None,
                                           voice=True, tells=tells)  # fmt: skip

    def _shared_bed(self, events: Sequence[Event]) -> None:
        """Who lies in a bed at which somebody sits has it, and who sits is on a chair beside it."""
        for event in events:
            beds = [self.things[one] for one in _within(event) if one in self.things]
            for key in self._spread(event.who("agent")) if beds else ():
                actor, bed = self.actors.get(key), beds[0]
                if actor is None or actor.deed not in _LYING or actor.target == bed.id or bed.pictogram not in _BEDS:
                    continue
                for other, sitter in self.actors.items():
                    if sitter.deed == "sit" and sitter.target == bed.id:
                        self.actors[other] = replace(sitter, target=None, at=actor.id, where="beside")
                self.things[bed.id] = replace(bed, held_by=actor.id, role="object")
                self.actors[key] = replace(actor, target=bed.id, at=None, where=None)

    def _full_of(self) -> None:
        """People who fill a vehicle are at its windows: "the bus is full of passengers"."""
        found = _CROWDED.search(self.prompt)
        word = found.group(1) if found is not None else ""
        if not word or any(one.count > 1 for one in self.actors.values()):
            return
        crowd = replace(self.cast.one(word, [word], "", None), count=5)
        vehicle = next((one for one in self.things.values() if one.kind == "vehicle" and one.at is None), None)
        aboard = vehicle is not None and hollow_of(vehicle.pictogram) is None
        self.actors["crowd"] = replace(crowd, at=vehicle.id, where="in") if aboard and vehicle is not None else crowd

    def _patients(self) -> None:
        """To whom something is done in a bed lies in it, and who does it stands by: a doctor and a patient."""
        for key, actor in self.actors.items():
            there = self.things.get(actor.at or "")
            other = next((one for one, fellow in self.actors.items() if fellow.id == actor.target), None)
            if other is None or there is None or there.pictogram not in _BEDS or actor.where not in ("in", "on"):
                continue
            if deed(actor.deed).partner in ("front", "side") and actor.deed not in _ABED:
                self.actors[key] = replace(actor, at=None, where=None)
                self._rests(other, there, "in")

    def _at_meals(self) -> None:
        """Who sits at dinner sits at a table with plates on it, who has a picnic on the ground."""
        for key, actor in self.actors.items() if re.search(r"\bpicnic\b", self.prompt) else ():
            if actor.kind == "person" and actor.posture is None and actor.deed in ("eat", "drink", "talk"):
                self.actors[key] = replace(actor, posture="sit_floor")
        if _MEAL.search(QUOTED.sub("", self.prompt)) is None or not self._dines():
            return
        diners = [key for key, one in self.actors.items() if self._may_dine(one)]
        for key in diners:
            actor = self.actors[key]
            if actor.deed in ("sit", "sit_floor", "stand"):
                self.actors[key] = replace(actor, deed="sit_at", target=None, posture=None)
            elif actor.posture is None:
                self.actors[key] = replace(actor, posture="sit_at")
        if not diners:
            return
        table = self.actors[diners[0]].at or "board"
        for key in [name for name, one in self.things.items() if one.word in ("dinner", "lunch", "breakfast", "meal")]:
            del self.things[key]
        many = sum(self.actors[key].count for key in diners)
        self.things["plates"] = SceneThing(
            "plates", "plate", "fork-and-knife-with-plate", "tool", 22.0, "table", count=min(max(many, 1), 4), at=table
        )

    def _aboard(self) -> None:
        """All who are in a boat so small that it is no place are seen in it."""
        boat = self.afloat
        if boat is None:
            return
        thing = thing_of("boat of all", boat)
        there = next((one for one in self.things.values() if one.pictogram == thing.pictogram), None)
        crew = [key for key, one in self.actors.items() if one.kind != "pictogram" and one.at is None]
        rowing = any(deed(self.actors[key].deed).thing == "around" for key in crew)
        if rowing or not crew or any(self.actors[key].deed in _IN_WATER for key in crew):
            return
        there = replace(there or thing, held_by=None, role="object", at=None)
        self.things[there.id] = there
        for key in crew:
            self.actors[key] = replace(self.actors[key], at=there.id, where="in")

    def _asleep_in_seats(self) -> None:
        """Who sleeps where there are seats and no beds sleeps sitting."""
        for key, actor in self.actors.items():
            loose = actor.target is None and actor.at is None and actor.kind == "person"
            if loose and actor.deed in ("sleep", "lie") and self.place in _SEATED:
                self.actors[key] = replace(actor, deed="nod_off" if actor.deed == "sleep" else "sit")

    def _dines(self) -> bool:
        verbs = {event.verb for event in self.reading.events} if self.reading is not None else set()
        return bool(verbs & _DINING)

    def _may_dine(self, actor: SceneActor) -> bool:
        seat = self.things.get(actor.target or "")
        free = seat is None or actor.deed in ("eat", "read", "drink")
        return actor.kind == "person" and actor.deed in _AT_TABLE and free and (actor.at is None or actor.where == "at")

    def _told_about(self) -> None:
        """What a story is about is in the bubble of who tells it, and not beside them."""
        assert self.reading is not None
        used = {role.entity for event in self.reading.events for role in event.roles}
        for entity in self.reading.entities:
            if entity.id in used or not self._topical(entity):
                continue
            for key, actor in self.actors.items():
                spoken = _picture(entity)
                speaks = actor.voice or actor.deed in ("talk", "thank", "whisper", "teach", "shout")
                if speaks and spoken is not None and key != entity.id:
                    self.actors[key] = replace(actor, says=actor.says or spoken)
                    self.pictured |= {entity.id}
                    self.actors.pop(entity.id, None)
                    self.things.pop(entity.id, None)
                    break

    def _topical(self, entity: Entity) -> bool:
        noun = re.escape(entity.noun)
        pattern = rf"\babout (?:(?:the|a|an|his|her|their|its|my|our) )?(?:[\w-]+ ){{0,2}}{noun}"
        return bool(noun) and not in_table("skip", entity.noun) and re.search(pattern, self.prompt) is not None


def _within(event: Event) -> list[str]:
    """What somebody is in or on."""
    return [role.entity for role in event.all("place") if role.entity and role.preposition in ("in", "on", "")]


def _picture(entity: Entity) -> str | None:
    noun = noun_of(entity.noun)
    return noun.pictogram if noun is not None else None
