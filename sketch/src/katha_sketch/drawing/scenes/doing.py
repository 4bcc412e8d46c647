"""What happens in a sentence as deeds, partners and things of a scene in the making."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from katha_sketch.drawing.deeds import Deed, deed
from katha_sketch.drawing.pictograms import find_noun, pictogram
from katha_sketch.drawing.scenes.cast import bare
from katha_sketch.drawing.scenes.record import SceneActor, SceneThing
from katha_sketch.drawing.scenes.senses import (
    alone_deed,
    base_form,
    beside_of,
    concept_of,
    deed_of_verb,
    done_state,
    failed_deed,
    held_as,
    hollow_of,
    in_table,
    lifeless_deed,
    means_deed,
    mood_of,
    near_deed,
    noun_of,
    object_deed,
    on_foot,
    place_of,
    placed_deed,
    posture_deed,
    rim_of,
    said_sign,
    sign_of,
    spoken_sign,
    state_deed,
    states_of,
    stirred_mood,
    stopped_deed,
    struck_deed,
)
from katha_sketch.drawing.scenes.wearing import Having
from katha_sketch.english.types import Entity, Event, Role
from katha_sketch.english.words import load_words

__all__ = ["OUT", "Doing", "is_shown"]

_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|got)\b")
_AIMED = frozenset(
    {
        "knock",
        "bang",
        "hit",
        "push",
        "lean_over",
        "rub_hands",
        "reach_in",
        "look_in",
        "claw",
        "dip_toe",
        "graze",
        "lap",
        "listen_at",
        "press_face",
        "press_hand",
        "shout_down",
    }
)
"""Deeds done to what stands after "on", "at", "against" or "in"."""
_AT = frozenset({"on", "at", "against", "into", "in", "inside", "from", "to"})
_BOTH = frozenset({"hands", "arms", "eyes", "feet", "ears", "legs", "lips", "fingers"})
"""Parts of the body of which one does not mean what two do."""
_OPEN = frozenset({"under", "climbed", "ahead", "cover", "over", "around"})
"""Where a deed can put what stands at its place: sat on, climbed, gone to, hidden behind, caught in."""
_BESIDE = frozenset({"under", "beneath", "below", "beside", "by", "near", "behind", "next to", "in front of", "along"})
_WITHIN = frozenset({
    "up", "down", "towards", "toward", "past", "onto", "around", "in", "inside", "into", "at", "aboard", "through",
    "on", "to", "across", "from", "out of", "near", "over"
})  # fmt: skip
_TOUCHED = frozenset({"in", "into", "on", "onto", "over", "from", "off", "out of", "to", "at", "against", "through"})
"""Where the verb's object goes or comes from, so that the two are drawn in touch."""
_INSIDE = frozenset({"ride", "gallop", "drive", "board", "row", "sail"})
"""Deeds whose vehicle is drawn from outside, so that it is not the place."""
_TOOLS = frozenset({"tool", "device", "thing", "toy", "container", "sport"})
_TAKING = frozenset({"take", "carry", "hold", "serve", "lift", "pick", "show"})
_WRITTEN_ON = {"in": ("document",), "on": ("document", "container", "food", "clothing", "toy")}
"""Kinds of what is written in and on, in the place of a sheet of paper."""
_FREE_HANDED = frozenset({
    "stand", "walk", "run", "chase", "jump", "climb", "fly", "sit", "talk", "shout", "laugh", "look", "fall", "fight",
    "wait", "await", "listen", "think", "cry", "point", "teach", "nod", "sigh", "whisper", "shiver", "smile", "gasp",
    "freeze", "sweat", "sneak", "limp", "step_back", "step_over", "stand_up", "sit_floor", "tiptoe", "wade", "trudge",
    "turn_round", "look_up", "look_down", "argue", "sing", "bow", "kneel", "follow", "enter", "leave", "glare", "wink",
    "blush", "pout", "flinch", "ignore", "hop", "get_off",
})  # fmt: skip
"""Deeds that leave a hand for what is held beside them."""
_HAVING = frozenset({None, "hold", "board"})
"""What those do of whom no more is told than that they have something: "is with a torch in the hatch"."""
_MUTUAL = frozenset(
    {"exchange", "hug", "kiss", "hold_hands", "shake_hands", "fight", "argue", "dance", "talk", "play", "play_board"}
)
_OWN_ACCORD = frozenset(
    {"burst", "smoulder", "ring", "glow", "drip", "halt", "skid", "sink", "bob", "sprout", "flutter", "roll_along"}
)
_MOVES = frozenset({"fall", "fly", "jump", "run", "walk", "climb", "drive", "shiver", *_OWN_ACCORD})
"""What a thing without life can do of its own accord; anything else it only stands there."""
_GOING = frozenset({
    "fly", "land", "escape", "flee", "cross", "deliver", "go", "come", "chase", "travel", "follow", "race",
    "arrive", "return", "leave", "run", "rush", "hurry", "move"
})  # fmt: skip
_LEGS = frozenset({"walk", "run", "fly", "swim", "dance", "swing", "play", "sneeze"})
"""Deeds of the whole body that nobody does to what they hold."""
_ROPE = "rope"
_HANDY = frozenset({"hand", "table"})
_PLACING = frozenset({"put", "set", "lay", "hold"})
_GIVING = frozenset({"give", "serve"})
"""Deeds by which somebody else gets something."""
_IN_A_ROW = frozenset({"pass_along"})
"""What those who do it together do to nobody of them."""
_ASTRIDE = frozenset({"ride", "gallop", "drive"})
_ABOARD = frozenset({"", "on", "onto", "in", "by", "aboard", "upon", "with"})
"""How somebody is with what they ride or drive; along or over anything else they only go."""
_RESTS = frozenset({"kneel", "crouch", "squat", "sit", "lie", "stand"})
_ON_THE_WAY = frozenset({"run", "walk", "go", "come", "hurry", "rush", "arrive", "return", "climb", "stroll", "march"})
"""Of these a tool in the hand makes no other deed."""
_IDLE = frozenset({"stand", "sit", "kneel", "wait", "listen", "look", "think", "cry"})
"""Deeds beside which it is seen where hands and head are."""
_HIDES = 150.0
"""What is as tall (centimetres) would hide all of who hides behind it."""
_STRADDLED = 135.0
"""A vehicle lower than this is sat on, a larger one sat in (centimetres)."""
_IN_HAND = frozenset({"hand", "hands"})
_HELD = frozenset({"hand", "hands", "table"})
"""Where a deed has what hands hold."""
_PARTICLES = frozenset({"up", "off", "out", "over", "away", "back", "down", "on", "in"})
_ROBBING = frozenset({"snatch", "tug", "take", "bite"})
"""Deeds that are done to the owner of a thing."""
OUT = re.compile(r"\b(?:out (?:of )?|from )(?:the |a |an |his |her |their |its |my |our )?(?:[\w-]+ )?windows?\b")
_SMALL_THINGS = frozenset({"pay", "show", "take", "find"})
"""Deeds of the hands; a large thing is pointed at, or carried where it can be."""
_HANDING = frozenset({"give", "show", "produce"})
"""Deeds that have a small animal in the hands."""
_OUTSIDE = frozenset({"on", "onto", "off", "from", "over", "above", "under", "behind"})
"""Where nobody is who is inside a building."""
_AT_IT = frozenset({"at", "to", "towards", "toward", "after"})
"""What stands behind these is aimed at."""
_STEPPED = frozenset({"over", "across", "on", "onto"})
_ONTO = frozenset({"on", "onto", "over", "around", "round"})
_BORNE = frozenset({"coffin", "stretcher", "trunk", "chest", "canoe", "wooden_rowboat"})
"""Things that take two to carry, whatever their height."""
_TOWARDS = frozenset({
    "towards", "toward", "to", "past", "behind", "at", "after", "near", "before", "beside", "around", "along",
    "alongside", "by",
})  # fmt: skip
"""Where nobody is in or on what they do something with."""
_FILLING = frozenset({"put", "put_in", "drop", "throw", "pour", "hide", "gather", "find", "look", "search", "take"})
"""What is done with something in a hat is not done with the hat on."""
_GROUNDS = frozenset(
    {"bank", "banks", "platform", "terrace", "court", "pier", "quay", "jetty", "deck", "stage", "site"}
)
"""What is stood on that has the name of a building, or is the place itself."""
_FIXED = frozenset({"vehicle", "building", "landscape", "sky"})
_FLOATING = frozenset({"water", "ground", "table"})
"""What floats on water; what is light or in the sky floats in the air."""
_ENTERING = frozenset({"walk", "go", "come", "step"})
_WEIGHTLESS = frozenset({"space", "spaceship", "moon", "sky"})
_PET = 60.0
"""An animal no taller (centimetres) is carried by hand."""
_BEDS = frozenset({"bed", "cot", "crib", "cradle", "blanket", "quilt", "bunk", "duvet"})
_TWO, _LARGE, _HEAVY = 2, 80.0, 55.0
"""What is at least this large (centimetres) two carry between them."""
_ARMFUL = 4.0
"""What is at least this large (centimetres) two lift between them."""
_LOW = 34.0
"""What is taller (centimetres) is put into where it stands."""
_HOLLOW = frozenset({"furniture", "container", "vehicle", "device"})
_FLAT = frozenset({"table", "desk"})
_LAP = 60.0
"""The height in centimetres up to which an animal is held in the hands."""
_OF_PICTURE = re.compile(
    r"\b(?:picture|drawing|painting|portrait|sketch)s? of ((?:[\w'-]+ ){0,3}?[\w'-]+)"
    r"(?=[,.;!?]|$| \w+ly\b| (?:and|on|in|with|for|at|by)\b)"
)
"""What a picture is of that somebody makes."""
_ONE_SENTENCE = 90
"""A prompt no longer (letters) tells of one person."""
_TO_DO = re.compile(r"\bopen(?:s|ed)? (?:[\w']+ )+?to (\w+)")
_ABOUT = re.compile(r"\babout (?:the |an? )?(\w+)")
"""What somebody speaks of, times and feelings included."""
_SPOKEN = frozenset({"talk", "call"})
"""Deeds of which the voice is all."""
_VOICES = frozenset({"speech", "blast", "notes", "ha"})
"""Signs of who is heard."""
_BECOMING = frozenset(
    {"be", "get", "become", "seem", "feel", "lie", "fall", "keep", "grow", "turn", "look", "sound", "stay", "go"}
)
"""What a state goes with ("grew thin" is no gardening)."""
_BECOME = frozenset({"be", "become", "seem", "feel", "grow", "turn", "look", "sound"})
_BECOME_ALONE = frozenset({"get", "fall", "keep"})
"""What nobody is seen to do whose state is told; the second do something where something is told that they do it to."""


class Doing(Having):
    """Puts events into the scene."""

    def _chosen(self, events: Sequence[Event]) -> list[Event]:
        """For everybody the event that a picture shows best; of equals the later one."""
        best: dict[str, Event] = {}
        for event in events:
            for key in self._spread(event.who("agent") or event.who("patient")):
                if key not in best or self._worth(event) >= self._worth(best[key]):
                    best[key] = event
        for key, event in best.items():  # what is held is seen in the hand of who runs with it
            others = [one for one in events if key in self._spread(one.who("agent")) and self._leaves_a_hand(one)]
            if others and event.verb == "hold" and self._deed(event) == "hold":
                best[key] = max(others, key=self._worth)
        return list(dict.fromkeys(best.values()))

    def _leaves_a_hand(self, event: Event) -> bool:
        """Whether what somebody does is seen as well with something in the hand."""
        name = self._deed(event)
        return name in _FREE_HANDED and name != "stand"

    def _worth(self, event: Event) -> float:
        name = self._deed(event)
        objects = [role for role in event.all("patient", "recipient", "goal", "companion") if role.entity]
        worth = 2.0 * (name not in (None, "stand")) + 1.5 * bool(objects) + (not in_table("weak", event.verb))
        worn = 2.0 * (event.verb == "wear")  # what is worn is drawn on them, whatever they do
        worth -= 0.75 * (name in _SPOKEN)  # a bubble is seen beside any other deed
        return worth - worn - 2.0 * event.perfect - 0.5 * (event.verb == "be") - 1.0 * event.negated

    def _deed(self, event: Event) -> str | None:
        """The deed of an event by what is done and where, or None where no table has its verb."""
        name = self._done(event)
        if name is None or (name == "fly" and not (event.verb == "land" and self._human(event.who("agent")))):
            return name
        if (
            name in ("lean_over", "reach_out")
            and event.verb in ("lean", "bend")
            and (OUT.search(event.text) or event.particle == "out")
        ):
            return "lean_out"
        roles = event.all("goal", "place", "source", "instrument", *(("patient",) if name == "climb" else ()))
        words = [word for one in roles for word in (f"{one.preposition} {one.head}", one.head)]
        if name in _IDLE and (held := self._held_so(event, words)) is not None:
            return held
        words += [f"{one.preposition} {noun.kind}" for one in roles if (noun := noun_of(one.head)) is not None]
        words += [
            f"{beside_of(one.preposition, one.head)} {self._entity(one.entity).noun}" for one in roles if one.entity
        ]
        if name in ("put", "look", "stand") and any(self._others_body(one, event) for one in roles):
            name = "fit" if name == "put" else name  # round the boy's neck, over her shoulder
            return (placed_deed(name, words) if name == "fit" else None) or name  # into her hands
        return placed_deed(name, [*words, *event.state, *event.manner, self.place or ""]) or name

    def _others_body(self, role: Role, event: Event) -> bool:
        """Whether a role is a part of the body of somebody else than the doer."""
        part = self._entity(role.entity) if role.entity is not None else None
        owner = part.owner if part is not None and _is_body(part) else None
        return owner is not None and self._alive(owner) and owner not in event.who("agent")

    def _held_so(self, event: Event, words: Sequence[str]) -> str | None:
        """The deed of who does nothing but hold a part of the body somewhere: "sat with her hands over her mouth"."""
        for role in event.all("instrument"):
            if role.entity is None or not (_is_body(self._entity(role.entity)) or load_words().has("parts", role.head)):
                continue
            held = object_deed("put", [role.head]) or ""
            others = held == "pocket" and any(self._others_body(one, event) for one in event.all("goal", "place"))
            found = "lay_hand" if others else placed_deed(held, words)
            if found is not None:
                return found
        seated = base_form(event.verb) in ("sit", "kneel", "lie")
        return None if seated else posture_deed(self.prompt if len(self.prompt) < _ONE_SENTENCE else event.text)

    def _done(self, event: Event) -> str | None:
        """Return the deed that an event's verb and what it is done to and with say."""
        verb = base_form(event.verb)
        predicate = event.predicate if event.verb == "lay" else f"{verb} {event.particle}".strip()
        if event.verb in ("lay", "lie") and event.who("patient"):
            verb = "put"  # not the past of "lie", whatever the parser says
        doers = event.who("agent") or event.who("patient")
        if (clothed := self._of_clothes(event, verb)) is not None:
            return clothed
        if (become := self._become(event, verb)) is not None:
            return become
        if doers and event.phase != "stop" and not any(self._alive(key) for key in doers):
            own = self._of_own_accord(event, verb, predicate, doers)
            if own is not None:
                return own
        moved = self._moved(event, verb, predicate, doers)
        if moved is not None:
            return moved
        hindered = _hindered(event, verb)
        if hindered is not None:
            return hindered
        if event.passive and not event.who("agent") and _PASSIVE.search(event.text):
            return self._undergone(event, verb)
        return self._done_to(event, verb, predicate, doers)

    def _of_clothes(self, event: Event, verb: str) -> str | None:
        """Return the deed of who dresses or undresses somebody or puts something into what they wear."""
        if verb == "put" and (worn := self._worn(event)) is not None:
            return worn
        if (dressing := self._dressing(event)) is not None:
            return dressing
        return "cradle" if self._into_clothes(event) else None

    def _become(self, event: Event, verb: str) -> str | None:
        """Return the deed that a told state shows; None where more is done than to be or become so."""
        if verb not in _BECOMING or not event.state:
            return None
        told_words = [word.lower() for text in event.state for word in text.split()]
        named = state_deed(told_words) or deed_of_verb(*(f"{verb} {word}" for word in told_words if verb != "be"))
        undone = verb in _BECOME_ALONE and not event.all("patient")  # "fell silent"
        return named or ("stand" if verb in _BECOME or undone else None)

    def _of_own_accord(self, event: Event, verb: str, predicate: str, doers: Sequence[str]) -> str | None:
        """Return what doers without life are seen to do by themselves."""
        if states_of(event.particle.split()) or (event.passive and done_state(predicate, verb)):
            return "stand"  # the door creaks open, the kite is torn: what has become of it is seen
        own = lifeless_deed(f"{self._entity(doers[0]).noun} {verb}", predicate, verb)
        return "fly" if own == "bob" and self._light(doers) else own

    def _moved(self, event: Event, verb: str, predicate: str, doers: Sequence[str]) -> str | None:
        """Return how people of flesh and blood go who float in water, or of whom a verb of the air is told."""
        spots = {self.place, *(place_of(role.head) for role in event.all("place", "goal"))}
        if verb == "float" and not spots & _WEIGHTLESS and self._human(doers):
            return "swim"
        ways = [f"{verb} {role.preposition}" for role in event.roles if role.preposition]
        foot = next((found for way in (predicate, *ways, verb) if (found := on_foot(way)) is not None), None)
        return foot if foot is not None and self._human(doers) and not event.all("patient") else None

    def _undergone(self, event: Event, verb: str) -> str:
        """Return the deed of whom something is done to by nobody that is told."""
        forms = (verb, *event.state, f"{verb}ed", f"{verb}d")
        undergone = state_deed(forms) or deed_of_verb(f"be {verb}", f"get {verb}")
        got = deed_of_verb(verb) in _GIVING and any(self._alive(key) for key in event.who("recipient", "patient"))
        return undergone or ("take" if got else "stand")

    def _done_to(self, event: Event, verb: str, predicate: str, doers: Sequence[str]) -> str | None:
        """Return the deed by what it is done to, with and at."""
        patients, parted = event.all("patient"), self._parted(event)
        goals = [role for role in event.all("goal") if role.preposition not in _TOWARDS]
        whereto = [role for role in goals if role.entity is None or not self._alive(role.entity)]
        told_of = patients or parted or (*event.all("recipient"), *whereto)
        about = [word for role in told_of for word in self._sorts(role, event.who("agent"))]
        told_ways = [f"{verb} {role.preposition}" for role in parted or whereto if role.preposition and not patients]
        special = self._special(event, verb, (*told_ways, predicate), about)
        if (had := self._only_had(event, verb, special)) is not None:
            return had
        if not event.all("patient", "goal", "recipient") and (alone := alone_deed(predicate)) is not None:
            return alone
        if verb == "play" and not event.who("patient") and self._make_music(doers):
            return "play_music"
        near = [role for role in event.all("place", "source") if role.preposition not in _TOWARDS]
        with_it = (*event.all("instrument", "companion"), *near)
        means = [role.head for role in with_it] if verb not in _RESTS | _ON_THE_WAY else []
        meant = self._riding(event) or (special if "own_body" in about else None) or means_deed(verb, means) or special
        moved = object_deed(verb, about) if event.particle and patients else None  # "slid the drawer out"
        found = meant or deed_of_verb(*self._phrases(event, verb)) or moved or deed_of_verb(verb) or near_deed(verb)
        found = found or self._by_object(event, verb, about)
        if found == "drive_on" and verb == "drive" and not any(self._alive(key) for key in event.who("patient")):
            found = "drive"  # out to the lake, and no cattle
        if meant is None and self._handled(event) and (found is None or (found in _LEGS and self._human(doers))):
            return "handle"  # who skims a stone or shuffles cards goes nowhere
        return found

    def _special(self, event: Event, verb: str, ways: Sequence[str], about: Sequence[str]) -> str | None:
        """Return what a verb is when it is done to just this: opening a tin, shaking a hand."""
        patients = event.all("patient")
        special = next((found for way in ways if (found := object_deed(way, about))), None)
        special = special or (self._by_object(event, verb, about) if not event.particle else None)
        if special is not None and any(self._alive(role.entity) for role in patients if role.entity):
            special = deed_of_verb(*(f"{verb} {word}" for word in event.state)) or special  # "shook the boy awake"
        if special == "pocket" and self._touched(event):
            special = "pat"
        if verb == "open" and special == "shout" and (told_to := _TO_DO.search(self.prompt)) is not None:
            special = deed_of_verb(told_to.group(1)) or special  # opens the mouth to sing
        return special

    def _by_object(self, event: Event, verb: str, about: Sequence[str]) -> str | None:
        """Return what a verb is by what it is done to; who slides through a door slides no door."""
        goes = not event.all("patient") and in_table("transitive", verb)
        return object_deed(verb, about) if not goes else None

    def _phrases(self, event: Event, verb: str) -> list[str]:
        """Return the verb with each word of its event that may make another verb of it, the nearest first."""
        patients = event.all("patient")
        phrases = [f"{verb} {word}" for word in event.state]  # "shook her awake"
        where = [role for role in event.all("place", "goal") if not self._aside(role, event)]
        phrases += [f"{verb} {role.head}" for role in (*event.all("patient", "companion"), *where)]
        if event.particle and not (event.particle == "away" and patients):  # "pulls the curtain away" is no running
            up_to = [role.preposition for role in event.all("goal", "source", "place") if role.preposition]
            phrases += [
                f"{verb} {event.particle} {preposition}" for preposition in up_to
            ]  # "went up to" is no climbing
            phrases.append(f"{verb} {event.particle}")
        told = [role.preposition for role in event.roles if role.preposition and self._meets(role)]
        aloft = [role.preposition for role in event.roles if in_table("skip", role.head)]  # slipped in the rain
        told.sort(key=lambda one: one != "through")
        lacks = [role for role in event.all("source") if role.entity is not None and not self._alive(role.entity)]
        if verb not in _PLACING and (not patients or (verb == "take" and not lacks)):
            # "put it on the shelf" is not "put it on", nor "took it from the shelf" a theft
            within = verb in _ENTERING  # "walked in the rain" is not "walked in"
            phrases += [
                f"{verb} {preposition}" for preposition in told if preposition != "in" or not (within or "in" in aloft)
            ]
        return phrases

    def _only_had(self, event: Event, verb: str, special: str | None) -> str | None:
        """Return the deed of who is or has something and does nothing; None for what is done by having something."""
        if verb == "be":
            with_them = [role for role in event.all("instrument", "companion") if role.preposition == "with"]
            return special or ("hold" if any(self._holdable(role) for role in with_them) else "stand")
        if verb == "have" and not special:
            return "hold" if any(self._drawable(role) for role in event.all("patient")) else "stand"
        return None

    def _parted(self, event: Event) -> list[Role]:
        """What somebody does something to that stands behind a particle which is read as a preposition: "scooped up the
        baby", "wound down the window"."""
        verb, roles = base_form(event.verb), event.all("goal", "place", "source")
        if event.all("patient"):
            return []
        ways = [(role, f"{verb} {role.preposition}") for role in roles if role.preposition]
        return [
            role
            for role, way in ways
            if (
                (role.preposition in _PARTICLES or self._holdable(role))
                and object_deed(way, self._sorts(role, event.who("agent"))) is not None
            )
            or (
                role.preposition in _PARTICLES - {"down", "on", "in"}
                and self._holdable(role)
                and deed(deed_of_verb(way) or "stand").thing in _HELD
            )
        ]

    def _make_music(self, keys: Sequence[str]) -> bool:
        return any(in_table("musicians", self._entity(key).noun) for key in keys)

    def _aside(self, role: Role, event: Event) -> bool:
        """Whether a place is a part of somebody that makes no other verb: to hold something behind the back is not to
        hold back, and who walks with a cap in the hand walks hand in hand with nobody."""
        body = role.entity is not None and _is_body(self._entity(role.entity))
        body = body or load_words().has("parts", role.head)
        held = role.preposition == "in" and bool(event.who("patient"))  # "held the box in both hands"
        return body and (role.head == "back" or held or bool(event.all("instrument")))

    def _meets(self, role: Role) -> bool:
        """Whether a preposition makes another verb: one rows with a friend at home, and with oars or a loaf at sea."""
        return role.preposition != "with" or role.entity is None or self._alive(role.entity)

    def _touched(self, event: Event) -> bool:
        """Whether a hand is laid on somebody else."""
        parts = [self._entity(role.entity) for role in event.all("goal", "place") if role.entity]
        owners = {one.owner for one in parts if one.owner is not None} - set(event.who("agent"))
        return bool(owners) or any(self._alive(one.id) for one in parts)

    def _human(self, keys: Sequence[str]) -> bool:
        """Whether all of these are people of flesh and blood, who float in water only."""
        return bool(keys) and all(self._entity(key).kind in ("person", "group") for key in keys)

    def _light(self, keys: Sequence[str]) -> bool:
        """Whether the first of these floats in the air rather than on water."""
        noun = noun_of(self._entity(keys[0]).noun)
        return noun is not None and (noun.stands not in _FLOATING or noun.kind in ("toy", "plant", "sky"))

    def _handled(self, event: Event) -> bool:
        """Whether something that hands can hold is what is done something to."""
        return any(self._holdable(role) for role in event.all("patient"))

    def _holdable(self, role: Role) -> bool:
        """Whether hands can hold the thing of a role."""
        noun = noun_of(role.head) if self._drawable(role) and not self._alive(str(role.entity)) else None
        return noun is not None and noun.stands in _HANDY

    def _riding(self, event: Event) -> str | None:
        """Going somewhere on or in something: "chased him on her bicycle", "went by car"."""
        if base_form(event.verb) not in _GOING:
            return None
        for role in event.all("place", "instrument", "companion"):
            noun = noun_of(role.head)
            if role.preposition in ("on", "by", "in") and noun is not None and noun.kind == "vehicle":
                return "ride" if noun.cm < _STRADDLED else "drive"
            if role.preposition == "on" and noun is not None and noun.kind == "animal":
                return "ride"
        return None

    def _sorts(self, role: Role, doers: Sequence[str] = ()) -> list[str]:
        """The words of by_object for a thing or somebody: its noun, `self` for who does it to nobody else, `own_body`
        or `other_body` for a part of that one or of somebody else, its kind, and `any` for what it is done to."""
        found = [role.head]
        if (last := role.text.lower().rsplit(" ", 1)[-1]) in _BOTH:
            found.insert(0, last)  # the reader's "hand" of "both hands"
        if role.entity is not None and role.entity in doers:
            return [*found, "self"]
        part = self._entity(role.entity) if role.entity is not None else None
        owner = part.owner if part is not None and _is_body(part) else None
        if owner is not None and owner in doers:
            return [*found, "own_body"]
        if owner is not None and self._alive(owner):
            found = ["other_body", *found]
        if role.entity is not None and self._alive(role.entity):
            beast = noun_of(self._entity(role.entity).noun)
            small = beast is not None and beast.kind == "animal" and beast.cm <= _PET
            led = beast is not None and in_table("mounts", beast.word)
            return [*found, *(["pet"] if small else ["mount"] if led else []), "living"]
        own = self._entity(role.entity).noun if role.entity is not None else ""
        found += [own] if own and own != role.head else []  # a pair of boots is boots
        noun = noun_of(role.head) or noun_of(own)
        bodily = noun is not None and noun.kind == "thing" and in_table("skip", role.head)  # a hand is no thing to put
        found += [noun.kind] if noun is not None and not bodily else []
        return [*found, "any"] if role.role == "patient" else found

    def _drawable(self, role: Role) -> bool:
        return role.entity is not None and not in_table("skip", role.head) and noun_of(role.head) is not None

    def _act(self, event: Event) -> None:
        """Put the event's doers, partners and things into the scene."""
        done = self._deed(event)
        blown = self._blown(event)
        name = "fly" if blown else self._mounted(event, done or "stand")
        agents = blown or self._doing(event, name)
        getting = [key for key in event.who("recipient") if self._alive(key)] if name in _GIVING else []
        if not agents and getting:  # from somebody who is not there
            agents, name = getting, "take"
        if name in _INSIDE:  # who has no rig sits in nothing
            agents = sorted(agents, key=lambda key: self._id(key) != "" and self.actors[key].kind == "pictogram")
        if not agents:
            self._present(event, acted=False)
            self._strike(event)
            return
        if (done is None and not blown) or name == "handle":
            self.missing.append(event.predicate)
        first = self._id(agents[0])
        others = self._others(event, name, agents)
        there = [self._id(key) for key in others]
        held = self._held_by(event, name, first, agents)
        name = self._by_held(event, name, first, held, others)
        if name in ("draw", "paint") and held is not None:
            for key in others:
                del self.actors[key]
            others, there = [], []
        targets = there if name not in _IN_A_ROW else []
        vehicle = held is not None and self.things[held].kind == "vehicle"
        astride = name in _INSIDE and held is not None and (event.verb != "ride" or vehicle)
        if astride:
            targets = []
        name = self._by_size(event, name, held)
        row = deed(name)
        if held is not None and self._takes_two(name, agents, self.things[held]):
            if len(agents) == _TWO:
                return self._carried_by_two(agents, held)
            name = "carry_together" if self._several(agents[0]) else name
        self._do(name, agents, targets, held)
        if name == "exchange" and held is not None and len(agents) == _TWO:
            self._exchanged(held, self._id(agents[1]))
        self._about(event, name, agents)
        for other in others[1:] if row.close is not None else ():
            if self.actors[other].deed == "stand" and self.actors[other].target is None:
                self.actors[other] = replace(self.actors[other], deed=name, target=first)
        if (row.partner == "under" or name == "lead_beast") and targets:
            self._mount(others[0])
        self._suffer(event, name, others)
        for key in event.who("companion"):
            idle = self._alive(key) and key not in agents and self.actors[key].deed == "stand"
            if idle and (row.partner == "side" or name == "play_board" or (astride and vehicle)):
                facing = first if name == "play_board" else held if astride else self.actors[key].target
                self.actors[key] = replace(self.actors[key], deed=name, target=facing)

    def _mounted(self, event: Event, name: str) -> str:
        """Return the deed of who rides on horseback, which is to gallop, or of a horse by itself, which is to run."""
        if name == "ride" and self._on_horseback(event):
            name = "gallop"
        if name == "gallop" and not event.who("patient") and not self._human(event.who("agent")):
            return "run"
        return name

    def _doing(self, event: Event, name: str) -> list[str]:
        """Return who does it: the agents or, where there are none, to whom it is done."""
        given = event.who("recipient") if name == "take" else []
        agents = self._spread(event.who("agent")) or self._spread(
            key for key in (*event.who("patient"), *given) if self._alive(key) or name in _OWN_ACCORD
        )
        return [key for key in agents if self._fits(key, name)]

    def _others(self, event: Event, name: str, agents: Sequence[str]) -> list[str]:
        """Return to whom it is done, without those to whom something is sent far away."""
        far = self._far(event) if in_table("absent", base_form(event.verb)) else []
        self.pictured |= {word for key in far for word in (key, bare(self._entity(key).name)) if self._alive(key)}
        others = [key for key in self._partners(event, name) if key not in (*agents, *self.pictured)]
        for key in agents if name in _IN_A_ROW else ():
            self._id(key)
        return others

    def _held_by(self, event: Event, name: str, first: str, agents: Sequence[str]) -> str | None:
        """Put what it is done with or to into the scene, as hands hold it; return the thing that it is done to."""
        held = self._objects(event, deed(name), first, agents)
        if held is None and ((name in _HANDING and event.who("recipient")) or name == "pay"):
            held = self._handed(event, first)
        if held is not None and (other := held_as(name, self.things[held].pictogram)) is not None:
            found = pictogram(other)
            self.things[held] = replace(self.things[held], pictogram=found.id, cm=found.cm, stands="hand")
        return held

    def _by_held(self, event: Event, name: str, first: str, held: str | None, others: Sequence[str]) -> str:
        """Return the deed by the thing that it is done to: where something is put, and in or on what somebody rides."""
        if name == "put":
            name = self._putting(event, first, others)
            for key, thing in self.things.items() if name == "tuck_in" else ():
                if thing.held_by == first and thing.role == "instrument":
                    self.things[key] = replace(thing, held_by=None, role="object")  # the child is in it
        if name == "drive" and held is not None and _sat_on(self.things[held]):
            return "ride"  # a sledge has no windows
        if name == "ride" and held is not None and self._has_windows(self.things[held]):
            return "drive"  # nobody rides on the roof of a bus
        return name

    def _by_size(self, event: Event, name: str, held: str | None) -> str:
        """Return the deed by how large the thing is: who takes a tram rides in it, what is large is pointed at."""
        if held is None:
            return name
        thing = self.things[held]
        if name == "take" and thing.kind == "vehicle" and not event.who("source"):
            name = "ride" if _sat_on(thing) else "drive"  # takes the tram
        shown = name == "show" and thing.stands == "hand"
        if thing.cm >= _LARGE and not shown and name in _SMALL_THINGS:
            return "carry" if name == "take" and thing.kind not in _FIXED else "point"
        return name

    def _takes_two(self, name: str, agents: Sequence[str], thing: SceneThing) -> bool:
        """Return whether a thing is lifted by two, or too large for one to carry."""
        raised = name == "lift" and len(agents) == _TWO and thing.cm >= _ARMFUL
        return raised or (name == "carry" and _for_two(thing))

    def _do(self, name: str, agents: Sequence[str], targets: Sequence[str], held: str | None) -> None:
        """Have all agents who do nothing yet do it, to somebody, to each other or, the first, to a thing."""
        for key in agents:
            self._id(key)
            idle = self.actors[key].deed == "stand" and self.actors[key].target is None
            if not idle:
                continue
            target = targets[0] if targets else None
            if target is None and len(agents) > 1 and name in _MUTUAL:
                target = self._id(agents[1] if key == agents[0] else agents[0])
            if target is None and key == agents[0] and held:
                target = held
            self.actors[key] = replace(self.actors[key], deed=name, target=target)

    def _suffer(self, event: Event, name: str, others: Sequence[str]) -> None:
        """Have the first to whom it is done hang on the rope, or run from who chases them."""
        if name == "lower_down":
            for key in [key for key, one in self.things.items() if one.pictogram == _ROPE]:
                del self.things[key]  # it is drawn with who or what hangs on it
            if others and self.actors[others[0]].deed == "stand":
                self.actors[others[0]] = replace(self.actors[others[0]], deed="hang")
        if event.verb in ("chase", "pursue", "hunt") and others and self.actors[others[0]].deed == "stand":
            self.actors[others[0]] = replace(self.actors[others[0]], deed="run")

    def _blown(self, event: Event) -> list[str]:
        """The things with which the wind flies away: "The wind blew his hat off"."""
        winds = [key for key in event.who("agent") if in_table("winds", self._entity(key).noun)]
        if not winds or event.negated or any(self._entity(key).character for key in winds):
            return []
        roles = event.all("patient")
        return [str(role.entity) for role in roles if self._drawable(role) and not self._alive(str(role.entity))]

    def _has_windows(self, thing: SceneThing) -> bool:
        """Whether a vehicle is so large that who rides in it is seen at a window."""
        return (
            thing.kind == "vehicle"
            and thing.stands == "ground"
            and thing.cm >= _STRADDLED
            and (hollow_of(thing.pictogram) is None)
        )

    def _handed(self, event: Event, giver: str) -> str | None:
        """A small animal that is given to somebody is in the giver's hands: "handed her the kitten"."""
        for key in event.who("patient"):
            noun = noun_of(self._entity(key).noun)
            if noun is None or noun.kind != "animal" or noun.cm > _LAP or not self._alive(key):
                continue
            self.actors.pop(key, None)
            self.pictured |= {key, bare(self._entity(key).name)}
            self.things[key] = SceneThing(
                key, noun.word, noun.pictogram, noun.kind, noun.cm, "hand", "object", held_by=giver
            )
            return key
        return None

    def _several(self, key: str) -> bool:
        self._id(key)
        return self.actors[key].count > 1

    def _far(self, event: Event) -> list[str]:
        """To whom something is written or sent, also where that stands behind the thing: "a letter to his aunt"."""
        assert self.reading is not None
        used = {role.entity for one in self.reading.events for role in one.roles}
        own = {owner for one in self.reading.entities if (owner := one.owner) is not None}
        behind = [
            one.id for one in self.reading.entities if one.id not in used | own and event.sentence in one.sentences
        ]
        return self._spread([*event.who("recipient", "goal"), *behind])

    def _putting(self, event: Event, holder: str, others: Sequence[str]) -> str:
        """What putting something is: into another thing, on somebody's finger, a child to bed."""
        into = any(thing.held_by == holder and thing.role == "instrument" for thing in self.things.values())
        if others and _BEDS & {role.head for role in event.roles}:
            return "tuck_in"
        owned = [self._entity(role.entity) for role in event.all("goal", "place") if role.entity]
        onto = [one.entity for one in event.all("goal", "place") if one.entity and one.preposition in _ONTO]
        if others and (any(_is_body(one) for one in owned) or any(self._alive(key) for key in onto)):
            return "fit"  # no table
        return "put_in" if into else "put"

    def _strike(self, event: Event) -> None:
        """To whom a thing does something is seen to suffer it."""
        name = struck_deed(base_form(event.verb))
        for key in self._spread(event.who("patient")) if name is not None else ():
            if key in self.actors and self.actors[key].deed == "stand":
                held = (
                    next((one for one in event.who("agent") if one in self.things), None) if name == "trapped" else None
                )
                if held is not None:
                    self.things[held] = replace(self.things[held], held_by=self.actors[key].id, role="object")
                self.actors[key] = replace(self.actors[key], deed=str(name), target=held)

    def _about(self, event: Event, name: str, agents: Sequence[str]) -> None:
        """Put what is spoken about into the speaker's bubble."""
        if not {"speech", "blast"} & {*deed(name).pose.emanata} and name not in ("thank", "whisper"):
            return
        said = self._topic(event, deed(name).own, agents)
        said = said or said_sign(event.predicate, base_form(event.verb)) or self.actors[agents[0]].says
        self.actors[agents[0]] = replace(self.actors[agents[0]], says=said)

    def _topic(self, event: Event, own: str | None, agents: Sequence[str]) -> str | None:
        """The picture of what is spoken of, which is not there then; who answers the phone does not speak of it."""
        heads = [(role.entity, role.head) for role in event.all("topic", "patient") if role.entity not in agents]
        for key, head in heads:
            noun = noun_of(self._entity(key).noun if key else "", head)
            if noun is None or in_table("skip", head) or (key is not None and key in self.actors):
                continue
            self.things.pop(key or "", None)
            if noun.pictogram != own:
                return noun.pictogram
        signs = (spoken_sign(topic) for topic in _ABOUT.findall(event.text.lower()))
        return next((sign for sign in signs if sign is not None), None)

    def _speaks(self, event: Event) -> None:
        """Who speaks is seen to, whatever else they do, and who is spoken to hears it: "handed him the ball and said
        sorry"."""
        if event.negated or not in_table("voiced", base_form(event.verb)):
            return
        about = [word for role in event.all("patient") for word in self._sorts(role, event.who("agent"))]
        special = object_deed(event.predicate, about)
        if special is not None and not _VOICES & {*deed(special).pose.emanata} and special != "whisper":
            return  # who answers the door opens it
        heard = [self._id(key) for key in self._partners(event, "talk")]
        for key in self._spread(event.who("agent")):
            actor = self.actors.get(key)
            if actor is None or _VOICES & {*deed(actor.deed).pose.emanata}:
                continue
            others = [one for one in heard if one != actor.id]
            says = actor.says or self._topic(event, deed(actor.deed).own, (key,))
            self.actors[key] = replace(actor, voice=True, tells=others[0] if others else None, says=says)

    def _lend_thing(self, event: Event) -> None:
        """Whoever gives, eats or throws without a named thing has what another event of the sentence puts there:
        "brought two apples and handed one over"."""
        for key in self._spread(event.who("agent")):
            actor = self.actors.get(key)
            if actor is None or deed(actor.deed).thing not in ("hands", "hand", "mouth", "flying", "above"):
                continue
            if any(thing.held_by == actor.id for thing in self.things.values()):
                continue
            for role in event.all("patient"):
                self._role_thing(role, actor.id, "object")

    def _carried_along(self, event: Event) -> None:
        """Whoever took something and then ran, climbed or spoke has it in the hand, and so has who sits with it."""
        name = self._deed(event)
        rests = event.all("instrument") if name in (*_FREE_HANDED, *_HAVING) else ()
        if name not in _TAKING and not rests:
            return
        for key in self._spread(event.who("agent")):
            actor = self.actors.get(key)
            if actor is not None and self._has_a_hand(actor):
                for role in rests or event.all("patient"):
                    if role.entity not in self.things:
                        self._role_thing(role, actor.id, "instrument")

    def _has_a_hand(self, actor: SceneActor) -> bool:
        """Whether somebody has a hand for what they have along: by what they do, or because they have nothing else."""
        row = deed(actor.deed)
        free = row.far == "hand" and row.set is None and all(one.held_by != actor.id for one in self.things.values())
        return row.own is None and (actor.deed in _FREE_HANDED or free)

    def _fits(self, key: str, name: str) -> bool:
        """Whether an agent is an actor; a thing that cannot do it of its own accord stands there as a thing."""
        entity = self._entity(key)
        if concept_of(entity.noun) in ("sun", "wind") and name in (
            "stand",
            "walk",
            "fly",
            "fall",
            "jump",
            "blow",
            "climb",
        ):
            return False
        if self._alive(key) or (entity.character and noun_of(entity.noun) is not None):
            return True
        solid = entity.sort != "body" and entity.kind != "place" and not in_table("skip", entity.noun)
        if name in _MOVES and solid and noun_of(entity.name, entity.noun) is not None:
            return True
        self._thing(entity, None, "object")
        return False

    def _partners(self, event: Event, name: str) -> list[str]:
        """Whom the deed is done to, in the order of the text: whose sleeve is pulled, whose bag is stolen as well."""
        thought = ("topic",) if deed(name).partner == "thought" else ()
        roles = event.all("recipient", "patient", "companion", "goal", "place", "source", *thought)
        rank = {"patient": 0} if deed(name).partner == "carried" else {"recipient": 0, "patient": 1}
        ordered = sorted(roles, key=lambda role: rank.get(role.role, 2))
        keys = [role.entity for role in ordered if role.entity and self._alive(role.entity) and self._is_somebody(role)]
        bodies = [self._entity(role.entity) for role in ordered if role.entity]
        robbed = name in _ROBBING
        dressed = self._wearers(event) if name == "fit" else []
        worn = [owner for role in ordered if (owner := self._owner(role)) and self._stays_on(role, deed(name))]
        owners = [one.owner for one in bodies if (robbed or _is_body(one)) and one.owner and self._alive(one.owner)]
        return self._spread(key for key in [*keys, *owners, *dressed, *worn] if key not in event.who("agent"))

    def _is_somebody(self, role: Role) -> bool:
        """A living thing that is eaten or carried as food stays a thing; a group noun of things is none."""
        assert role.entity is not None
        entity = self._entity(role.entity)
        return bool(entity.noun or entity.named or role.entity in self.named or entity.character)

    def _objects(self, event: Event, row: Deed, holder: str, agents: Sequence[str]) -> str | None:
        """Put the event's things into the scene; return the id of the one that is the verb's object."""
        patients = self._undergoing(event, row, holder, agents)
        main = self._ridden(event, row, holder)
        if row.id in ("draw", "paint"):
            return self._drawn(patients, holder)
        if row.id == "put" and patients and (goal := self._into(event)) is not None:
            self._role_thing(goal, holder, "instrument")
        if row.thing == "thought":
            patients += event.all("topic")
        for role in patients:
            if not (row.id in ("wear", "stand", "fit") and self._put_on(role, self._wearers(event))):
                main = self._put_object(role, row, holder, main)
        for role in event.all("instrument"):
            aboard = row.id in _INSIDE and row.id != "board" and not _is_vehicle(role) and not self._is_own(role, row)
            self._role_thing(role, None if aboard else holder, "object" if aboard else "instrument")
        for role in event.all("place", "goal", "source", "companion"):
            main = self._put_where(event, role, row, holder, agents, main)
        if row.id in _INSIDE and main is not None:
            self.roads.add(self.things[main].word)
        return main

    def _undergoing(self, event: Event, row: Deed, holder: str, agents: Sequence[str]) -> list[Role]:
        """Return what something is done to; a stick that is pointed at something is a tool."""
        done_to = event.all("patient") or self._parted(event)
        patients = [role for role in done_to if role.entity not in agents and row.thing != "none"]
        patients = [role for role in patients if not self._stays_on(role, row)]
        if row.id == "point" and any(role.preposition in _AT_IT for role in event.all("goal", "place")):
            for role in patients:
                self._role_thing(role, holder, "instrument")
            return []
        return patients

    def _ridden(self, event: Event, row: Deed, holder: str) -> str | None:
        """Put the first vehicle of who rides or drives under them."""
        if row.id not in _ASTRIDE:
            return None
        mounts = [
            role for role in event.all("place", "instrument") if _is_vehicle(role) and role.preposition in _ABOARD
        ]
        return self._role_thing(mounts[0], holder, "object") if mounts else None

    def _put_object(self, role: Role, row: Deed, holder: str, main: str | None) -> str | None:
        """Put what something is done to into the scene, a second thing into the other hand; return the first."""
        more = main is not None and row.thing in _IN_HAND and row.own is None
        noun = noun_of(role.head) if more else None
        handy = noun is not None and noun.stands == "hand" and noun.cm < _LARGE
        key = self._role_thing(role, holder if main is None or handy else None, "instrument" if handy else "object")
        return main or key

    def _put_where(
        self, event: Event, role: Role, row: Deed, holder: str, agents: Sequence[str], main: str | None
    ) -> str | None:
        """Put the thing where something is done into the scene; return it where it is what the deed is done to."""
        on = main is None and self._done_at(role, row)
        if self._worn_at(event, role, agents):
            return main
        noun = noun_of(role.head)
        if role.preposition == "by" and noun is not None and noun.kind == "clothing":
            return main  # held by the collar that they have on
        filled = row.id == "write" and noun is not None and noun.kind in _WRITTEN_ON.get(role.preposition, ())
        on = on or (main is None and filled)  # fills in a form, writes on a bag
        spoken = role.preposition == "into" and in_table("voiced", base_form(event.verb))
        if (role.preposition in ("through", "with") or spoken) and noun is not None and noun.kind in _TOOLS:
            self._role_thing(role, holder, "instrument")
        if self._is_no_thing(role, row, agents):
            return main
        goes = main is not None and not on and self._is_touched(role) and not _is_vehicle(role)
        # Where the deed's own thing would stand (the pot whose lid is lifted) the story's own one stands.
        named = goes and row.own is not None and row.far == "table"
        part: Literal["instrument", "goal", "object"] = "instrument" if named else "goal" if goes else "object"
        key = self._role_thing(role, holder if on or goes else None, part)
        if key is not None and not on and row.own is not None and self.things[key].pictogram == row.own:
            self.things[key] = replace(self.things[key], held_by=holder, role="instrument")  # with a bat
        if goes and key is not None and main is not None and in_table("laid", row.id):
            self._set_down(main, key, role)
        return main or (key if on else None)

    def _done_at(self, role: Role, row: Deed) -> bool:
        """Return whether a deed is done to what stands at its place: sat on, knocked at, bitten into."""
        seat = in_table("seats", role.head) and role.preposition in ("in", "from") and row.thing != "under"
        on = row.thing in _OPEN and not (row.thing == "under" and role.preposition in _BESIDE)
        on = on and not seat and not self._apart(role, row)
        on = on and (row.id not in _ASTRIDE or role.preposition in _ABOARD)
        on = on or self._is_own(role, row)
        on = on or (role.preposition in _AT_IT and in_table("aimed", row.id))
        on = on or (row.id in _AIMED and role.preposition in _AT)
        on = on or (row.thing in _IN_HAND and role.preposition in ("up", "off"))  # "tears up"
        on = on or (row.thing == "above" and role.preposition == "from")
        on = on or (row.id == "step_over" and role.preposition in _STEPPED)
        on = on or (row.thing == "mouth" and role.preposition in ("into", "at"))  # "bit into"
        on = on or (row.thing == "mouth_front" and role.preposition in ("off", "on", "into"))
        return on or (row.thing == "back" and role.preposition in ("against", "on", "off", "of"))

    def _is_no_thing(self, role: Role, row: Deed, agents: Sequence[str]) -> bool:
        """Return whether what a role names is not put beside them: the place itself, or what somebody has on."""
        if (place_of(role.head) is not None and find_noun(role.head) is None) or self._stays_on(role, row):
            return True
        if (row.id in ("wear", "fit") and self._is_on(role)) or (
            self._has_on(role) and row.id not in _FILLING and self._put_on(role, agents)
        ):
            return True
        return self._is_setting(role, row)

    def _is_touched(self, role: Role) -> bool:
        """Whether what is done ends or begins at the thing of a role; beside or before it nothing is put on it."""
        way = beside_of(role.preposition, role.head) if role.preposition != "at" else None
        return role.preposition in (*_TOUCHED, "out") and way not in ("before", "beside", "behind", "between")

    def _set_down(self, what: str, where: str, role: Role) -> None:
        """Put the verb's object on or in what it goes to: a candle on the cake, a coin in the jar."""
        way, there = beside_of(role.preposition, role.head), self.things[where]
        if way == "on" or (way == "over" and there.kind == "furniture"):
            self.things[what] = replace(self.things[what], at=where, where="on")
        elif way == "in" and hollow_of(there.pictogram) is not None:
            self.things[what] = replace(self.things[what], at=where, where="in")
            self.things[where] = replace(there, states=(*there.states, "open"))

    def _hollow(self, role: Role) -> str | None:
        """How what is in the thing of a role is seen; None where nothing can be in it."""
        noun = noun_of(self._entity(role.entity).noun if role.entity is not None else role.head, role.head)
        return hollow_of(noun.pictogram) if noun is not None else None

    def _apart(self, role: Role, row: Deed) -> bool:
        """Whether somebody is in, under or before a thing where the deed alone would have it under or before them:
        "sat in a box", "slept in the basket", "sat in front of the fire", "hid under the bed"."""
        way = beside_of(role.preposition, role.head)
        noun = noun_of(self._entity(role.entity).noun if role.entity is not None else role.head, role.head)
        if row.thing == "around" or noun is None:
            return False
        if row.thing == "over":
            return not in_table("captors", role.head) and (way is not None or role.preposition == "up")
        if in_table("aimed", row.id) and (role.preposition == "at" or noun.pictogram == "window"):
            return False  # what is looked or pointed at, or looked out of
        if way == "in" or role.preposition == "out":
            return hollow_of(noun.pictogram) is not None or (noun.kind == "vehicle" and row.thing == "under")
        if role.preposition == "at" and row.thing == "under":
            return not in_table("seats", role.head) and noun.kind != "animal"  # at the sewing machine, not on it
        if row.thing == "cover" and way == "behind":
            return noun.cm >= _HIDES  # they peep out at the side of a door
        if row.thing == "cover":
            return way in ("under", "in", "on") and not in_table("covers", noun.pictogram)
        return way in ("before", "between", "around") or (way == "under" and row.thing == "ahead")

    def _into(self, event: Event) -> Role | None:
        """The large thing that something is put into: an oven, a chest, a car."""
        for role in event.all("goal", "place"):
            noun = noun_of(role.head)
            if noun is None or noun.cm <= _LOW or noun.pictogram in _FLAT or noun.kind not in _HOLLOW:
                continue
            if role.preposition in ("in", "into", "on", "onto") and (
                beside_of(role.preposition) == "in" or noun.kind != "container"
            ):
                return role
        return None

    def _drawn(self, patients: Sequence[Role], holder: str) -> str | None:
        """What is drawn or painted: its picture, whatever it is, on the sheet."""
        assert self.reading is not None
        for role in patients:
            shown = _OF_PICTURE.search(self.prompt) if in_table("pictures", role.head) else None
            noun = noun_of(shown.group(1)) if shown is not None else None
            noun = noun or noun_of(self._entity(role.entity).noun if role.entity else "", role.head)
            if noun is not None and not in_table("skip", role.head):
                key = f"picture {noun.word}"
                named = {one.id for one in self.reading.entities if one.noun == noun.word}
                self.pictured |= {role.entity or "", noun.word, *named}
                self.things[key] = SceneThing(
                    key, noun.word, noun.pictogram, noun.kind, noun.cm, "hand", "object", holder
                )
                return key
        return None

    def _is_own(self, role: Role, row: Deed) -> bool:
        """Whether a thing is what the deed implies: the door of "knocked at the door"."""
        noun = noun_of(role.head)
        return noun is not None and noun.pictogram == row.own

    def _is_setting(self, role: Role, row: Deed) -> bool:
        """Whether somebody is in a thing that is a place as well: a boat, a castle, a garden with a fence."""
        noun = noun_of(role.head)
        if row.id in _INSIDE and noun is not None and noun.kind in ("vehicle", "animal"):
            return False
        if role.preposition == "at" and in_table("aimed", row.id):
            return False  # who looks at the moon is not on it
        if noun is not None and noun.kind == "vehicle" and self.place is not None:
            return place_of(role.head) == self.place  # a car in the street is seen from outside
        built = noun is not None and noun.kind == "building" and role.head not in _GROUNDS
        if built and self.place is not None and role.preposition in _OUTSIDE:
            return place_of(role.head) == self.place  # somebody on a roof, a bird over the house
        if beside_of(role.preposition, role.head) == "in" and rim_of(noun.pictogram if noun is not None else None):
            return False  # who sits in a rowing boat is seen in it
        inside = role.preposition in _WITHIN
        return inside and place_of(role.head) is not None and not in_table("captors", role.head)

    def _mount(self, key: str) -> None:
        """Who is ridden stands on four legs."""
        entity, actor = self._entity(key), self.actors[key]
        noun = noun_of(entity.noun)
        if actor.kind == "figure" and noun is not None and in_table("mounts", noun.word):
            self.actors[key] = SceneActor(actor.id, "pictogram", pictogram=noun.pictogram, kind_of="animal", cm=noun.cm)

    def _present(self, event: Event, *, acted: bool) -> None:
        """Everybody of an event, with the feeling that it tells; things of states and of events not chosen."""
        if event.verb in ("be", "have") and in_table("gone", " ".join(event.state)):
            return
        feeling = mood_of(word for text in event.state for word in text.lower().split()) or event.feeling
        told = bool(event.state or event.manner)
        feelings = load_words().feelings
        felt = next((feelings[role.head] for role in event.all("agent") if role.head in feelings), None)
        stirred = (stirred_mood(base_form(event.verb)) or felt) if not event.negated else None  # "Fear gripped her"
        dreaded = [role.entity for role in event.all("topic") if feeling and role.preposition == "of" and role.entity]
        lifeless = not any(self._alive(key) for key in event.who("agent"))
        unmet = lifeless or not acted
        met = [one.entity for one in event.all("place", "goal") if one.entity and unmet and self._is_somebody(one)]
        for key in self._spread((*event.who("agent", "patient", "recipient", "companion"), *dreaded, *met)):
            if not self._alive(key) or key in self.pictured:
                continue
            self._id(key)
            if key in self._spread(event.who("agent")) and feeling and not event.negated:
                if self.actors[key].mood and not told:
                    continue  # a verb's own feeling ("smiled") says less than "the sly fox"
                self.actors[key] = replace(self.actors[key], mood=feeling)
            if stirred and key in self._spread(event.who("patient")):
                self.actors[key] = replace(self.actors[key], mood=stirred)
        self._sign(event)
        if acted:
            return
        for role in event.all("agent") if not event.negated else ():
            self._role_thing(role, None, "object")
        doers = [key for key in self._spread(event.who("agent")) if self._alive(key)]
        for role in event.all("patient", "instrument", "place", "source", "companion"):
            worn = event.verb == "wear" or self._stays_on(role, deed(self._deed(event) or "stand"))
            worn = worn or (self._has_on(role) and self._put_on(role, doers))
            worn = worn or (role.role in ("place", "source") and self._worn_at(event, role, doers))
            if not worn and (role.role not in ("place", "source") or not self._is_setting(role, deed("stand"))):
                self._role_thing(role, None, "object")

    def _sign(self, event: Event) -> None:
        """A sign where the text tells the state of a thing or place: a lock at the closed shop."""
        name = sign_of(word for text in event.state for word in text.lower().split())
        alive = any(self._alive(key) for key in event.who("agent", "patient"))
        if name is not None and not alive and not event.negated:
            self.things["sign"] = SceneThing("sign", "sign", name, "thing", 70.0, "wall", "object")


def is_shown(event: Event) -> bool:
    """Whether a picture of the sentence shows the event: it happens, or somebody tries in vain."""
    if event.standing != "told" or not event.visible:
        return False
    return not event.negated or event.modality in ("can", "try") or event.verb == "be"


def _hindered(event: Event, verb: str) -> str | None:
    """The deed of who cannot, tries in vain or stops."""
    if event.phase == "stop":
        return stopped_deed(verb)
    if event.modality == "try" or (event.negated and event.modality == "can"):
        found = failed_deed(verb)
        return found if event.negated or found == "strain" else None
    return None


def _is_vehicle(role: Role) -> bool:
    noun = noun_of(role.head)
    return noun is not None and noun.kind == "vehicle" and role.entity is not None


def _for_two(thing: SceneThing) -> bool:
    """Whether two carry a thing between them: a table, a coffin, a ladder."""
    return thing.cm >= _LARGE or (thing.kind == "furniture" and thing.cm >= _HEAVY) or thing.pictogram in _BORNE


def _sat_on(thing: SceneThing) -> bool:
    """Whether a vehicle is too low to sit in."""
    return thing.kind == "vehicle" and thing.stands == "ground" and thing.cm < _STRADDLED


def _is_body(entity: Entity) -> bool:
    own = entity.owner is not None and load_words().has("parts", entity.noun)
    return own or entity.sort in ("body", "abstract")
