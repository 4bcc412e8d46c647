"""Who and what is beside whom and what: a sentence's prepositions and its second half as relations of a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.places import place_data
from katha_sketch.drawing.scenes.cast import thing_of
from katha_sketch.drawing.scenes.doing import OUT, Doing
from katha_sketch.drawing.scenes.making import HEAVENLY, LIVING
from katha_sketch.drawing.scenes.record import Beside, Laid, SceneActor, SceneThing
from katha_sketch.drawing.scenes.senses import (
    base_form,
    beside_of,
    force_leaves,
    force_way,
    hollow_of,
    in_table,
    noun_of,
    part_of,
    placed_deed,
)
from katha_sketch.drawing.scenes.things import worn_where
from katha_sketch.english.types import Event, Role

__all__ = ["WALL", "Relations"]

_LEAPING = frozenset({"jump", "fly", "climb"})
"""What goes over or across something."""
_LAID: Mapping[Beside, Laid] = {
    "over": "above", "around": "beside", "before": "before", "on": "on", "in": "in", "under": "under",
    "behind": "behind", "beside": "beside", "against": "against",
}  # fmt: skip
"""How a thing lies beside another, by how somebody would stand there."""
_RESTING = frozenset({"sit", "sit_floor", "kneel", "lean_out", "sit_at", "in_bed"})
_AT = frozenset({"sit_at", "in_bed"})
"""Postures that bring the furniture along."""
_CALLING = frozenset({
    "shout", "talk", "call", "feed", "wave", "look", "laugh", "sing", "cry", "throw", "point", "look_down",
    "whistle", "listen",
})  # fmt: skip
"""What is done out of a window, from which somebody leans, seen from outside."""
_FINDING = frozenset({"find", "look", "take", "pull", "tug", "produce", "snatch"})
_BUMPING = frozenset({"hit", "run", "drive", "ride", "walk", "burst", "fall", "skid"})
_FRONT = frozenset({"stomach", "belly", "tummy", "chest"})
"""On these stands or walks who is on somebody that lies."""
_BEING = frozenset({"be", "sit", "lie", "stand", "rest", "perch", "stay", "land"})
_OVERLOOKED = 180.0
"""What is no taller (centimetres) somebody looks over."""
_WORN_AT: Mapping[str, Laid] = {"head": "head", "neck": "neck", "eyes": "head"}
"""Where a garment is on somebody whom no clothes are drawn on; what goes elsewhere lies across the body."""
_LEANING = frozenset({"nod_off", "head_on_shoulder"})
_ROOFED = frozenset({"vehicle", "building"})
_UPRIGHT = frozenset({"stand", "step", "climb", "jump", "leap", "balance", "put", "stay"})
"""Whoever does so on a seat is told not to sit there."""
_SURFACES = frozenset({"table", "counter"})
_SETTLED = frozenset({"around", "under", "climbed", "cover"})
"""Where a deed has the thing that somebody is at."""
_NOT_SEATED = frozenset({"under", "around", "climbed", "cover", "behind", "over", "ground", "ground_front", "foot"})
"""Where a deed has a thing for which it takes more than hands."""
_BOOK = 35.0
"""Nobody stands on what is smaller than this (centimetres)."""
_BEARING = frozenset({"carry", "lift_on_back"})
WALL, _BOARDED = "wall", 200.0
"""What people hang pictures on, and how large vehicles are in which they are when they are on them (centimetres)."""
_DRAPED = frozenset({"furniture", "building", "plant", "container"})
"""What cloths hang over."""
_RISING = frozenset({"smoke", "steam", "fire", "dashing-away"})


class Relations(Doing):
    """Puts those of a scene beside each other."""

    def _related(self, events: Sequence[Event]) -> None:
        """Every relation that the events tell, those of the deeds that are shown first."""
        for event in events:
            self._opened(event, events)
            self._searched(event, events)
        for event in events:
            self._forced(event)
            self._gives_way(event)
            self._laid_over(event)
            self._lying(event)
        for event in sorted(events, key=lambda one: self._deed(one) != "hit"):
            self._struck_by(event)  # a ball that bounces off one and hits another is at the other's head
        for event in events:
            self._standing(event)
            self._resting(event)
            self._going(event)

    # People and animals beside things and each other.

    def _standing(self, event: Event) -> None:
        """Those of an event who are under, behind, in or on something of it, or of somebody's body."""
        for role in event.all("place", "goal", "source"):
            where = self._way(role, event)
            if where is None or (where == "between" and self._between(event, role)):
                continue
            shown = self.things.get(role.entity or "")
            if shown is not None and shown.stands == "sky" and shown.pictogram in HEAVENLY and where != "over":
                continue  # in the sun
            for key in self._placed(event, role):
                stood_on = where == "on" and base_form(event.verb) in _UPRIGHT
                if where in ("on", "under", "in") and not stood_on and self._in_hand(role, key):
                    continue
                at = self._anchor(role, key, event)
                actor = self.actors.get(key)
                if role.preposition in ("at", "through") and at not in self.things:
                    continue
                if at is None or actor is None or actor.at is not None or at == actor.id:
                    continue
                if self._has_there(role, actor, at):
                    continue
                there = self.things.get(at)
                if where in ("under", "in") and there is not None and in_table("covers", there.pictogram or ""):
                    where = "covered"
                host = next((one for one, other in self.actors.items() if other.id == at), None)
                if where == "around" and host is not None and actor.count > 1 and self.actors[host].at is None:
                    self.actors[host] = replace(self.actors[host], at=actor.id, where="between")  # in their middle
                    continue
                large = (
                    there is not None and there.kind == "vehicle" and there.cm >= _BOARDED and actor.kind == "person"
                )
                if where == "in" and there is not None and in_table("pits", there.word):
                    there = self.things[at] = replace(there, pictogram="hole", stands="ground")
                if where == "between" and there is not None:
                    there = self._flanked(event, actor, there)
                if where == "on" and there is not None and self._is_roof(role, there):
                    where = "atop"
                if where == "on" and large:
                    where = "in"  # who is on the bus is aboard
                borne = at not in self.things and actor.kind == "person"  # a child carried on the back
                if where == "on" and actor.deed == "stand" and (borne or self._is_seat(role, event)):
                    actor = replace(actor, deed="sit")  # swivels on the chair
                self.actors[key] = replace(actor, at=at, where=self._on_body(at, where, role),
                                           target=None if actor.target == at else actor.target)  # fmt: skip
                if there is not None:
                    self.things[at] = replace(there, held_by=None, role="object", states=self._ajar(there, where))

    def _has_there(self, role: Role, actor: SceneActor, at: str) -> bool:
        """Return whether what somebody does has them at a thing already, or with who is there."""
        row = deed(actor.deed)
        over = at in self.things and self._through_or_atop(role, self.things[at])
        if row.thing in _SETTLED and actor.target in self.things and not over:
            return True
        return at not in self.things and actor.target == at and (row.partner != "side" or actor.posture is not None)

    def _is_seat(self, role: Role, event: Event) -> bool:
        """Whether somebody is on what people sit on, whatever they do there: nobody is told to stand on it."""
        upright = base_form(event.verb) in _UPRIGHT or event.particle in ("on", "onto", "up")
        return in_table("seats", role.head) and not in_table("hangers", role.head) and not upright

    def _going(self, event: Event) -> None:
        """Who goes to somebody faces them: "ran to his mother"."""
        for role in event.all("goal", "place"):
            for key in self._spread(event.who("agent")) if in_table("whereto", role.preposition) else ():
                actor, other = self.actors.get(key), self.actors.get(role.entity or "")
                if actor is None or other is None or actor is other or actor.at is not None or other.at is not None:
                    continue
                row = deed(actor.deed)
                if row.partner == "side" and row.pose.moving and other.target != actor.id:
                    self.actors[key] = replace(actor, at=other.id, where="towards", target=None)

    def _between(self, event: Event, role: Role) -> bool:
        """Whether somebody is between others, who stand to both sides: a group, or two that are named."""
        sides = [one.entity for one in event.all("place", "goal") if self._beside(one) == "between" and one.entity]
        others = [key for key in self._spread(sides) if key in self.actors]
        for key in self._placed(event, role):
            actor = self.actors.get(key)
            if actor is None or not others or key in others or actor.at is not None:
                continue
            first = self.actors[others[0]].id
            target = None if actor.target == first else actor.target
            self.actors[key] = replace(actor, at=first, where="between", target=target)
            if len(others) > 1 and self.actors[others[1]].at is None:
                self.actors[others[1]] = replace(self.actors[others[1]], at=actor.id, where="before")
        return bool(others)

    def _flanked(self, event: Event, actor: SceneActor, near: SceneThing) -> SceneThing:
        """The first of two things between which somebody is; the second is put on their other side."""
        for role in event.all("place", "goal"):
            other = self.things.get(role.entity or "") if self._beside(role) == "between" else None
            if other is not None and other.id != near.id and other.held_by is None and other.at is None:
                self.things[other.id] = replace(other, at=actor.id, where="before")
                return replace(near, count=1)
        return near

    def _ajar(self, thing: SceneThing, where: Beside | Laid | None) -> tuple[str, ...]:
        """The states of a thing, open where somebody or something is in it, so that this is seen."""
        shut = {"closed", "locked", "open"} & set(thing.states)
        return thing.states if where != "in" or shut or hollow_of(thing.pictogram) is None else (*thing.states, "open")

    def _in_hand(self, role: Role, key: str) -> bool:
        """Whether a person would stand on or under what is no larger than a book: they have it in hand ("reads the name
        on the envelope")."""
        thing, actor = self.things.get(role.entity or ""), self.actors.get(key)
        if (
            thing is None
            or actor is None
            or actor.kind != "person"
            or thing.held_by is not None
            or thing.at is not None
        ):
            return False
        if thing.stands not in ("hand", "table") or thing.cm > _BOOK or thing.kind in ("clothing", "sport", "toy"):
            return False
        if role.preposition in ("in", "into"):
            if thing.kind == "container":
                return False
            self.things[thing.id] = replace(thing, held_by=actor.id, role="instrument")  # weeps into a handkerchief
        if role.preposition == "on" and actor.target is None and deed(actor.deed).thing in ("hand", "hands"):
            self.things[thing.id] = replace(thing, held_by=actor.id, role="object")
            self.actors[key] = replace(actor, target=thing.id)
        return True

    def _on_body(self, at: str, where: Beside, role: Role) -> Beside:
        """Where on somebody's body; on a lap is who sits on somebody that sits as well."""
        sleeper = next((one for one in self.actors.values() if one.deed in _LEANING and one.at is None), None)
        if at not in self.things and sleeper is not None and part_of(role.head) == "shoulder":
            return "beside"  # asleep on a shoulder
        if at in self.things or where not in ("on", "in", "around") or (where == "around" and not part_of(role.head)):
            return where
        found: Beside = part_of(role.head) or "shoulder"  # type: ignore[assignment]
        for key, actor in self.actors.items():
            if found == "lap" and actor.id == at and actor.deed == "stand" and actor.kind == "person":
                self.actors[key] = replace(actor, deed="lie" if role.head in _FRONT else "sit")
        return found

    def _way(self, role: Role, event: Event) -> Beside | None:
        where = self._beside(role)
        if self._peered_over(role, event):
            return "behind"
        if role.preposition == "into" and self._deed(event) in _BUMPING:
            return "against"
        if role.preposition == "across" and self._deed(event) in _LEAPING:
            return "over"
        if where == "over" and role.preposition != "above" and self._deed(event) not in _LEAPING:
            return None
        noun = noun_of(role.head) if role.preposition == "out" else None
        if noun is not None and noun.kind == "vehicle" and self._deed(event) in (*_CALLING, "lean_over", "lean_out"):
            return "in"  # leans out of the train
        pit = in_table("pits", role.head)
        if role.role == "source" and role.preposition == "out" and (pit or self._hollow(role) is not None):
            return "in"  # who climbs out of a barrel is seen above its rim
        if role.role == "source":
            spoken = role.preposition == "from" and in_table("seats", role.head)
            spoken = spoken and in_table("aimed", self._deed(event) or "")  # gives orders from the chair
            return "on" if spoken else where if where in ("behind", "under") else None
        return where

    def _peered_over(self, role: Role, event: Event) -> bool:
        """Whether somebody looks over a fence or wall, behind which they stand."""
        noun = noun_of(role.head) if role.preposition == "over" else None
        low = noun is not None and noun.kind in ("building", "plant", "furniture") and noun.cm <= _OVERLOOKED
        return low and self._deed(event) in ("look", "look_down", "find", "shout", "talk", "wave")

    def _beside(self, role: Role) -> Beside | None:
        found: Beside | None = beside_of(role.preposition, role.head)  # type: ignore[assignment]
        noun = noun_of(role.head) if role.preposition == "across" else None
        if noun is not None and noun.kind == "furniture":
            return "on"  # the mouse runs across the table
        if role.preposition in ("over", "across") and part_of(role.head) in ("lap", "back"):
            return "on"  # the cat walks over his stomach
        if role.preposition == "through" and role.entity in self.actors:
            return "between"  # through the crowd
        if role.preposition == "up" and in_table("seats", role.head):
            return "on"  # stuck up a tree
        return "on" if found == "in" and in_table("seats", role.head) else found

    def _placed(self, event: Event, role: Role) -> list[str]:
        """Who of an event is where a role says: those it is done to, or its doers."""
        name = self._deed(event) or "stand"
        objects = [key for key in event.who("patient") if key not in event.who("agent")]
        borne = name in _BEARING and (self._beside(role) != "on" or part_of(role.head) not in ("back", "shoulder"))
        if objects and not borne and (in_table("placing", name) or role.role == "goal"):
            return self._spread(key for key in objects if key in self.actors)
        given = [one for one in event.all("recipient") if one.start < role.start and one.entity]
        if given and self._beside(role) == "in":
            return self._spread(str(one.entity) for one in given if one.entity in self.actors)  # to the girl in the bed
        hidden = self._beside(role) in ("behind", "under") and not in_table("seeking", event.verb)
        away = in_table("aimed", name) and role.role != "source" and not hidden and not self._peered_over(role, event)
        return [] if away else self._spread(event.who("agent") or objects)

    def _anchor(self, role: Role, key: str, event: Event) -> str | None:
        """The id of the thing or actor that a role names, of whose head, lap or back it speaks as well."""
        if role.entity is None:
            return self._whose(role, key, event)
        if role.entity == key:
            return None
        thing = self.things.get(role.entity) or self._topped(role)
        if thing is not None and thing.stands == "wall" and self._beside(role) == "on":
            return None  # nobody stands on a blackboard
        if thing is not None:
            actor = self.actors.get(key)
            ahead = actor is not None and thing.held_by == actor.id and deed(actor.deed).thing == "ahead"
            ahead = ahead and self._beside(role) in ("under", "behind", "on", "over", "around")
            ahead = ahead or (actor is not None and thing.held_by == actor.id and self._through_or_atop(role, thing))
            return thing.id if (thing.held_by is None or ahead) and thing.at is None else None
        entity = self._entity(role.entity)
        doers = [one for one in self._spread(event.who("agent")) if one != key]
        owner = entity.owner or (doers[0] if doers else None)  # carries the child on the back
        name = (
            role.entity
            if role.entity in self.actors
            else owner
            if entity.sort == "body" or part_of(entity.noun)
            else None
        )
        return self.actors[name].id if name is not None and name in self.actors and name != key else None

    def _through_or_atop(self, role: Role, thing: SceneThing) -> bool:
        """Whether somebody is in an opening of the ground, or on the roof of what others are in."""
        return in_table("pits", thing.word) or self._is_roof(role, thing)

    def _is_roof(self, role: Role, thing: SceneThing) -> bool:
        """Whether a role names the roof of a vehicle or house; walls have tops and no roofs."""
        return in_table("tops", role.head) and thing.kind in (("vehicle",) if role.head == "top" else _ROOFED)

    def _topped(self, role: Role) -> SceneThing | None:
        """The thing of which a role names the roof or top: "on the roof of the cab", "on the cab's roof"."""
        if not in_table("tops", role.head) or role.entity is None:
            return None
        part = self._entity(role.entity)
        named = [
            one for key, one in self.things.items() if part.owner == key or part.name.endswith(f" of the {one.word}")
        ]
        named += [one for key, one in self.things.items() if part.name.endswith(f" of {self._entity(key).name}")]
        return next(iter(named), None)

    def _whose(self, role: Role, key: str, event: Event) -> str | None:
        """On whose body somebody is where the reader has no part of it: "the dog stands on the girl's back"."""
        for other, actor in self.actors.items():
            noun = self._entity(other).name if part_of(role.head) else ""
            if other != key and noun and f"{noun.lower()}'s {role.head}" in event.text.lower():
                return actor.id
        return None

    def _resting(self, event: Event) -> None:
        """Who does one thing with the hands while sitting or kneeling: "sat on the bed and read", "reads in bed"."""
        seats = self._deed(event) == "seat"
        resting = self._spread(event.who("patient") if seats else event.who("agent"))
        with_them = [key for key in self._spread(event.who("companion")) if not seats]
        for key in [*resting, *with_them]:
            actor, name = self.actors.get(key), self._posture(event, key)
            fellow = self.actors.get(resting[0]) if key in with_them and resting else None
            if fellow is not None and fellow.posture in _AT and actor is not None and actor.deed == "stand":
                self.actors[key] = replace(actor, posture=fellow.posture, at=fellow.at, where=fellow.where)
                continue
            if name is None or actor is None or actor.kind != "person" or actor.posture is not None:
                continue
            row = deed(actor.deed)
            free = row.thing not in _NOT_SEATED or (row.thing in ("ground", "under") and actor.target is None)
            if row.set in _SURFACES and name == "sit":
                name = "sit_at"
            if actor.deed == name or not free or row.pose.moving or row.pose.lying:
                name = name if actor.deed == name else None
            elif row.set in (None, "stool") or (row.set in (*_SURFACES, "desk", "board") and name in _AT):
                self.actors[key] = replace(actor, posture=name)
            else:
                name = None
            if name in _AT:
                self._at_furniture(event, key)

    def _posture(self, event: Event, key: str) -> str | None:
        """How somebody rests in an event: as its verb says, or on, in or at what they do another thing."""
        name, own = self._deed(event), self._done(event)
        if OUT.search(event.text) and name in _CALLING and not self._within():
            return "lean_out"
        if name in _RESTING or (own in _RESTING and name != own and event.all("instrument")):
            return name if name in _RESTING else own  # "sits with the hands over the mouth"
        roles = event.all("place", "goal", "source") if name not in (None, "stand") else []
        if name == "seat":
            return next(
                (one for role in roles if (one := placed_deed("sit", [f"{role.preposition} {role.head}"]))), "sit"
            )
        if name == "lie" and any(role.head == "bed" for role in roles):
            return "in_bed"
        for role in roles:
            found = placed_deed("sit", [f"{role.preposition} {role.head}"])
            dines = in_table("dining", name or "")
            if found in _AT and dines and not self._objects_at(event, role):
                return found
            seated = in_table("seats", role.head) and self._way(role, event) == "on"
            if seated and key in self._placed(event, role):
                return "sit"
        return None

    def _within(self) -> bool:
        return self.place is not None and place_data(self.place).indoors

    def _objects_at(self, event: Event, role: Role) -> bool:
        """Whether it is somebody else or a thing that is there: "wrote to the girl in bed"."""
        return any(one.start < role.start and one.entity and self._alive(one.entity) for one in event.all("recipient"))

    def _at_furniture(self, event: Event, key: str) -> None:
        """The table or bed of a posture is drawn with it, once."""
        for role in event.all("place", "goal"):
            thing = self.things.get(role.entity or "")
            if thing is not None and placed_deed("sit", [f"{role.preposition} {role.head}"]) is not None:
                self.things[thing.id] = replace(thing, held_by=None, role="object")
                target = self.actors[key].target
                self.actors[key] = replace(
                    self.actors[key], at=thing.id, where="at", target=None if target == thing.id else target
                )

    def _opened(self, event: Event, events: Sequence[Event]) -> None:
        """What is found by who opens a thing is in it: a kitten in the box."""
        if self._deed(event) not in ("open", "open_box", "lift_lid"):
            return
        boxes = [key for key in event.who("patient") if key in self.things]
        for key in self._spread(event.who("agent")) if boxes else ():
            actor = self.actors.get(key)
            others = [one for one in events if one is not event and key in self._spread(one.who("agent"))]
            found = [
                one for other in others if in_table("found", self._deed(other) or "") for one in other.who("patient")
            ]
            for one in found if actor is not None else ():
                self._comes_out(key, one, boxes[0])

    def _searched(self, event: Event, events: Sequence[Event]) -> None:
        """What is found by who looks under, behind or into a thing is there: "looks under the bed and finds a ball"."""
        if not in_table("seeking", base_form(event.verb)):
            return
        roles = [role for role in event.all("place", "goal") if self._beside(role) in ("under", "behind", "in")]
        for key in self._spread(event.who("agent")) if roles else ():
            role = roles[0]
            if role.entity is not None and role.entity not in self.things:
                self._role_thing(role, None, "object")
            others = [one for one in events if one is not event and key in self._spread(one.who("agent"))]
            found = [one for other in others if self._deed(other) in _FINDING for one in other.who("patient")]
            if role.entity in self.things and key in self.actors:
                for one in found:
                    self._comes_out(key, one, str(role.entity), _LAID[self._beside(role) or "in"])

    def _comes_out(self, key: str, found: str, box: str, where: Laid = "in") -> None:
        """Put what is found into the thing that somebody opens, the thing before them."""
        actor = self.actors[key]
        if found in self.actors and self.actors[found].at is None and found != key:
            self.actors[found] = replace(self.actors[found], at=box, where=where)  # type: ignore[arg-type]
            self.things[box] = replace(self.things[box], held_by=None, role="object")
            self.actors[key] = replace(actor, target=self.actors[found].id)
        elif found in self.things and found != box and self.things[found].at is None:
            self.things[found] = replace(self.things[found], at=box, where=where, held_by=None)
            self.things[box] = replace(self.things[box], held_by=actor.id, role="object")
            self.actors[key] = replace(actor, target=box)

    # Things beside things and on people.

    def _lying(self, event: Event) -> None:
        """A thing that the event has on, in, under or behind another, or that comes out of it."""
        if self.actors.keys() & set(event.who("agent")) and event.verb in ("come", "pour", "rise", "billow", "drift"):
            for key in event.who("agent"):
                actor = self.actors.get(key)
                lifeless = actor is not None and actor.kind == "pictogram" and not self._alive(key)
                if lifeless and not event.who("patient"):
                    self._risen(key, event)
        for one in event.all("patient", "agent"):
            thing = self.things.get(one.entity or "")
            if thing is not None and self._put_behind(event, thing):
                continue
            if thing is not None and self._on_head(event, thing):
                continue
            held = thing is not None and thing.held_by is not None and event.verb not in ("find", "see", "leave")
            if thing is None or thing.at is not None or held or self._hung(event, thing):
                continue
            for role in event.all("place", "goal"):
                where = self._beside(role)
                there = self.things.get(role.entity or "")
                if where == "between" and there is not None and there is not thing and there.held_by is None:
                    self._amid(event, thing, there)
                    break
                if (
                    where is not None
                    and where in _LAID
                    and there is not None
                    and there is not thing
                    and there.held_by is None
                ):
                    self.things[thing.id] = replace(thing, at=there.id, where=_LAID[where], held_by=None)
                    self.things[there.id] = replace(there, states=self._ajar(there, where))
                    break

    def _amid(self, event: Event, thing: SceneThing, there: SceneThing) -> None:
        """Put a thing between two others or among several of the same, one to each side."""
        named = [one.entity for one in event.all("place", "goal") if self._beside(one) == "between"]
        others = [self.things[key] for key in named if key in self.things and key not in (thing.id, there.id)]
        far = others[0] if others else replace(there, id=f"{there.id} too", count=1)
        if far.held_by is not None or far.at is not None:
            return
        self.things.pop(far.id, None)
        self.things[there.id] = replace(there, count=1)
        self.things[thing.id] = replace(thing, at=there.id, where="beside", held_by=None)
        self.things[far.id] = replace(far, at=thing.id, where="beside")

    def _on_head(self, event: Event, thing: SceneThing) -> bool:
        """Whether the thing is told to be on somebody's head: "the boot is on the puppy's head"."""
        for role in event.all("place"):
            part = self._entity(role.entity) if role.entity is not None else None
            owner = self.actors.get(part.owner or "") if part is not None else None
            if owner is not None and part is not None and part_of(part.noun) == "head" and event.verb in _BEING:
                self.things[thing.id] = replace(thing, at=owner.id, where="head", held_by=None)
                return True
        return False

    def _hung(self, event: Event, thing: SceneThing) -> bool:
        """Whether the thing hangs: on the wall, from the ceiling or a hook, over a chair, out of a window."""
        if not in_table("hanging", base_form(event.verb)):
            return False
        for role in event.all("place", "goal", "source"):
            there, way = self.things.get(role.entity or ""), self._beside(role)
            if there is None and in_table("overheads", role.head):
                self.things[thing.id] = replace(thing, stands="sky")
                return True
            if there is None or there is thing:
                continue
            if there.pictogram == WALL and way == "on":
                del self.things[there.id]  # every room has walls
                self.things[thing.id] = replace(thing, stands="wall")
                return True
            hung: Laid | None = (
                "out" if role.preposition == "out" and there.stands == "wall"
                else "in" if way in ("in", "on") and there.kind == "plant" and role.preposition != "from"
                else "below" if in_table("hangers", there.pictogram or "")
                else "across" if way in ("on", "over") and there.kind in _DRAPED and self._is_cloth(thing)
                else "aloft" if way == "over"
                else None
            )  # fmt: skip
            if hung is not None:
                self.things[thing.id] = replace(thing, at=there.id, where=hung, held_by=None)
                if hung in ("out", "below"):
                    states = ("open",) if hung == "out" else ()
                    self.things[there.id] = replace(there, stands="wall", held_by=None, states=(*there.states, *states))
                return True
        return False

    def _is_cloth(self, thing: SceneThing) -> bool:
        return thing.kind == "clothing" or in_table("covers", thing.pictogram or "")

    def _laid_over(self, event: Event) -> None:
        """A blanket that somebody puts over another covers them; a cap put on an animal is on its head."""
        things = [self.things[role.entity] for role in event.all("patient", "instrument") if role.entity in self.things]
        places = [role for role in event.all("place", "goal") if self._beside(role) in ("over", "around", "on")]
        keys = self._spread([*event.who("patient"), *(str(role.entity) for role in places if role.entity)])
        heads = [self._entity(role.entity) for role in places if role.entity]
        owners = [one.owner for one in heads if one.sort == "body" and one.owner and part_of(one.noun) == "head"]
        bodies = [one.owner for one in heads if one.owner and part_of(one.noun) in ("shoulder", "back", "lap")]
        own = any(one.owner in (None, *event.who("agent")) and part_of(one.noun) == "head" for one in heads)
        for thing in things:
            if own and in_table("covers", thing.pictogram or "") and thing.at is None:
                self._under_cover(event, thing)
                continue
            under = [key for key in (*keys, *bodies) if key in self.actors and key not in event.who("agent")]
            if under and in_table("covers", thing.pictogram or "") and thing.at is None:
                self.things[thing.id] = replace(thing, at=self.actors[under[0]].id, where="across", held_by=None)
                self._reaches(event, thing.id, under[0])
            elif thing.kind == "clothing" and under and self.actors[under[0]].kind != "person" and thing.at is None:
                where = _WORN_AT.get(worn_where(thing.pictogram), "across")
                self.things[thing.id] = replace(thing, at=self.actors[under[0]].id, where=where, held_by=None)
                self._reaches(event, thing.id, under[0])
            elif thing.kind == "clothing" and owners and owners[0] in self.actors and thing.at is None:
                self.things[thing.id] = replace(thing, at=self.actors[owners[0]].id, where="head", held_by=None)
                self._reaches(event, thing.id, owners[0])

    def _under_cover(self, event: Event, thing: SceneThing) -> None:
        """Who pulls a blanket over the own head or knees is under it."""
        for key in self._spread(event.who("agent")):
            actor = self.actors.get(key)
            if actor is not None and actor.at is None:
                name = actor.deed if deed(actor.deed).pose.lying else "lie"
                self.actors[key] = replace(actor, deed=name, target=None, at=thing.id, where="covered")
                self.things[thing.id] = replace(thing, held_by=None, role="object")

    def _reaches(self, event: Event, thing: str, other: str) -> None:
        """Those of an event who had a thing in hand reach for whom they put it on."""
        for key in self._spread(event.who("agent")):
            actor = self.actors.get(key)
            if actor is not None and key != other and actor.target in (thing, self.actors[other].id, None):
                self.actors[key] = replace(actor, deed="reach_out", target=self.actors[other].id)

    def _forced(self, event: Event) -> None:
        """What a force of nature does something to is in it or under it: the boat in the wave, the tent in the snow."""
        for key in event.who("agent"):
            shown = self.things[key].word if key in self.things else self._entity(key).name
            noun = noun_of(shown, self._entity(key).noun)
            way: Beside | None = force_way(noun.pictogram if noun is not None else None)  # type: ignore[assignment]
            hit = [one for one in event.who("patient") if one != key] if way is not None else []
            if noun is None or way is None or not hit:
                continue
            if self.actors.pop(key, None) is not None or key not in self.things:
                self.things[key] = SceneThing(key, noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, "object")
            for role in event.all("patient"):
                self._role_thing(role, None, "object")  # the deed of a bolt that strikes has no object
            for one in self._spread(hit):
                if one in self.actors and self.actors[one].at is None:
                    caught: Beside = "in" if way == "in" and self.actors[one].deed == "trapped" else "beside"
                    self.actors[one] = replace(self.actors[one], at=key, where=caught)
                elif one in self.things and self.things[one].at is None:
                    left = (*self.things[one].states, *filter(None, [force_leaves(noun.pictogram)]))
                    struck = replace(self.things[one], states=tuple(dict.fromkeys(left)), held_by=None, role="object")
                    above = way == "under"
                    self.things[one] = struck if above else replace(struck, at=key, where=_LAID[way])
                    if above:
                        self.things[key] = replace(self.things[key], at=one, where="above", held_by=None)

    def _gives_way(self, event: Event) -> None:
        """Who stands on what breaks falls, into a hole where the ground itself has no picture: "the floor gave way"."""
        ground = [self._entity(key) for key in event.who("agent")]
        if not in_table("giving", event.verb) or any(one.kind in LIVING for one in ground):
            return
        for role in event.all("place"):
            if self._beside(role) != "under" or role.entity is None:
                continue
            for key in self._spread([role.entity]):
                self._id(key)
                if self.actors[key].deed != "stand":
                    continue
                self.actors[key] = replace(self.actors[key], deed="fall")
                if all(noun_of(one.noun) is None for one in ground):
                    self.things["gap"] = replace(thing_of("gap", "hole"), role="object")
                    self.actors[key] = replace(self.actors[key], at="gap", where="in")

    def _put_behind(self, event: Event, thing: SceneThing) -> bool:
        """Whether somebody puts the thing behind, under or against another: it is there, and they reach for it."""
        if thing.at is not None or self._deed(event) not in ("put", "prop", "lean_over", "push", "throw"):
            return False
        for role in event.all("place", "goal"):
            where, there = self._beside(role), self.things.get(role.entity or "")
            if there is None or there is thing or where not in ("behind", "under", "against"):
                continue
            self.things[thing.id] = replace(thing, at=there.id, where=_LAID[where], held_by=None)
            for key in self._spread(event.who("agent")):
                actor = self.actors.get(key)
                if actor is not None and actor.target in (thing.id, there.id):
                    self.things[there.id] = replace(there, held_by=actor.id, role="object")
                    self.actors[key] = replace(actor, deed="reach_out", target=there.id)
            return True
        return False

    def _struck_by(self, event: Event) -> None:
        """A thing that hits somebody or falls on them is at their head."""
        if any(self._alive(key) for key in event.who("agent")):
            return
        for key in self._spread(event.who("patient", "goal", "recipient")):
            if key not in self.actors or self._deed(event) not in ("hit", "fall", "fly", "jump"):
                continue
            for name in event.who("agent"):
                if name in self.things and self.things[name].at is None:
                    self.things[name] = replace(self.things[name], at=self.actors[key].id, where="head", held_by=None)
                elif name in self.actors and self.actors[name].at is None and name != key:
                    self.actors[name] = replace(self.actors[name], at=self.actors[key].id, where="head")

    def _risen(self, key: str, event: Event) -> None:
        """Smoke, steam or fire: a thing above what it comes out of."""
        actor = self.actors[key]
        if actor.pictogram not in _RISING:
            return
        source = next(
            (role.entity for role in event.all("source", "goal", "place") if role.entity in self.things), None
        )
        del self.actors[key]
        noun = noun_of(self._entity(key).noun)
        assert noun is not None
        if source is not None:
            self.things[source] = replace(self.things[source], held_by=None)
        self.things[key] = SceneThing(key, noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, "object",
                                      at=source, where="above")  # fmt: skip
