"""Where and when each sentence plays: both hold until the text says otherwise.

Only what happens in the story moves it: not what is said, wanted, remembered or denied, nor what a noun is told to come
from ("the girl from the city").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from katha_sketch.english.types import Entity, Event, Place, Role
from katha_sketch.english.words import Words

__all__ = ["Setting", "track"]

_DOORSTEP = "doorstep"
_OPENING = 2
"""So many sentences may say where a story plays without anybody doing something there."""
_UNDER_WAY = re.compile(r"\b(?:was|were|is|are|am) (?:just |still )?(?:driving|riding|flying|travelling|sailing)\b")
"""Who "was driving to the airport" is not there yet."""
_SEEN_INSIDE = frozenset(
    ("full", "crowded", "packed", "empty", "dark", "hot", "warm", "cold", "quiet", "noisy", "late")
)
"""What only those tell of a vehicle who are in it."""
_SMALL_HOURS = re.compile(r"\b(?:[1-3]|one|two|three)(?: o'clock)? in the morning")
"""It is dark then."""
_DOOR_OF = re.compile(r"(?:the|an?|his|her|their|my|our) (?:\w+ )??(\w+) (?:door|gate|hatch)")
_OPEN = ("water", "land", "region", "structure")


@dataclass(frozen=True)
class Setting:
    """What holds at the end of a sentence."""

    place: Place | None = None
    time: str | None = None
    weather: str | None = None
    season: str | None = None


class _Track:
    def __init__(self, entities: Mapping[str, Entity], words: Words) -> None:
        self.entities = entities
        self.words = words
        self.place: Place | None = None
        self.time: str | None = None
        self.weather: str | None = None
        self.season: str | None = None

    def follow(self, event: Event) -> None:
        words = self.words
        if event.standing != "told":
            return
        for phrase in event.time:
            if not event.perfect or event.text.lower().startswith(phrase.lower()):
                self._time(phrase.lower(), event)
        if not event.perfect:
            self._sky(event)
        if event.negated or event.perfect or words.has("look_verbs", event.verb):
            return
        if event.passive and event.modality == "must":
            return  # "their mother had to be taken to the hospital"
        if words.has("leave", event.verb) and not event.all("goal"):
            left = [role for role in event.all("patient", "source") if words.is_place(role.head)]
            if left and self._moves(event):
                self._set(left[0], event, outside=True)
        self._opens_up(event)
        for role in event.roles:
            thing = role.role == "patient" and event.visible and words.sort(role.head) == "building"
            known = role.role == "agent" and (event.visible or event.verb == "be") and words.has("place", role.head)
            known = known and words.sort(role.head) != "vehicle"
            known = known and not words.has("mass", role.head)  # "the water was up to the shelf"
            said = (
                role.text.lower().startswith("the ") and self.place is None and not words.has("make_verbs", event.verb)
            )
            if role.role == "agent" and role.text.lower().startswith(("the whole ", "all the ", "every ")):
                continue  # "the whole street was dark"
            described = role.role == "agent" and event.verb == "be" and event.state and words.has("place", role.head)
            described = described and not words.has("mass", role.head)
            described = described and (words.sort(role.head) != "vehicle" or bool({*event.state} & _SEEN_INSIDE))
            if described or (said and words.has("place", role.head) and (thing or known)):
                self._set(role, event)
            self._role(role, event)
        leaves = event.particle == "out" and words.has("motion", event.verb) and self._moves(event)
        leaves = leaves and re.search(r"\bout from\b", event.text) is None  # "ran out from under the table"
        inside = self.place if self.place is not None and self.place.sort not in _OPEN else None
        if leaves and inside is not None and not event.all("goal", "source", "patient"):
            self._leave(inside, event)

    def _opens_up(self, event: Event) -> None:
        """Take the place whose door somebody opens: "opened the cellar door and saw the water"."""
        for role in event.all("patient") if event.verb in ("open", "unlock") and self._moves(event) else ():
            found = _DOOR_OF.fullmatch(role.text.lower())
            room = found[1] if found is not None else ""
            if self.words.has("place", room) and self.words.sort(room) in ("building", "structure", "place"):
                self.place = Place(room, f"the {room}", event.sentence, None, "in", self.words.sort(room))

    def opens(self, sentence: int, events: Sequence[Event]) -> None:
        """Take the place that a story's first sentences name beside something: "the robot in the library"."""
        used = {role.entity for event in events for role in event.roles if event.standing == "told"}
        for entity in self.entities.values():
            beside = entity.kind == "place" and entity.sentences[:1] == (sentence,) and entity.id not in used
            if beside and self.words.is_place(entity.noun) and any(event.standing == "told" for event in events):
                noun = self.words.group("place_names", entity.noun) or entity.noun
                self.place = Place(noun, entity.name, sentence, entity.id, "in", self.words.sort(noun))
                return

    def _moves(self, event: Event) -> bool:
        """Whether somebody goes there, and not a thing that is thrown."""
        who = [self.entities[item] for item in event.who("agent") if item in self.entities]
        goes = self.words.has("motion", event.verb)
        flows = any(self.words.has("mass", entity.noun) for entity in who)  # "water ran into the cellar"
        return not who or flows or any(entity.character or (goes and entity.sort == "vehicle") for entity in who)

    def _role(self, role: Role, event: Event) -> None:
        """Take the place that one role of an event names, if the story plays there from now on."""
        words, how = self.words, role.preposition
        whole = self.entities.get(role.entity or "")
        if words.has("relational", role.head):
            if whole is None or whole.noun == role.head:
                return  # "on the corner"
            role = replace(role, head=whole.noun)
        role = replace(role, head=role.head.lower())
        inner = re.fullmatch(r"\w+ (\w+) (\w+)", role.text.lower())
        if inner is not None and words.has("place", inner[1]) and words.has("inside_of", inner[2]):
            role = replace(role, head=inner[1], text=role.text.rsplit(" ", 1)[0])  # "the kitchen floor"
        there = words.has("motion", event.verb) or words.has("stays", event.verb)
        if self._at_door(role, event) or (role.head == "water" and (how == "on" or not there)):
            return  # who slips on water or washes in it is not at the water
        if self._beside_vehicle(role):
            return
        trade = words.group("trade_places", role.head) if how in ("to", "at") else None
        goes = event.verb == "go" or words.has("carrying", event.verb)
        if trade is not None and goes and self._moves(event) and whole is not None and not whole.named:
            self.place = Place(trade, role.text, event.sentence, None, "at", words.sort(trade))
            return
        if self._holds_a_scene(role):
            self._arrive(role, event)

    def _beside_vehicle(self, role: Role) -> bool:
        """Tell whether somebody sits under a van or lies under a car, and is where that is."""
        by = role.role == "place" and self.words.has("prep_by", role.preposition)
        beside = by or self.words.has("beside_only", role.preposition)
        return beside and self.words.sort(role.head) == "vehicle"

    def _holds_a_scene(self, role: Role) -> bool:
        """Tell whether a story may play at or in what a role names: a place, or a vehicle that somebody is in."""
        words = self.words
        inside = words.sort(role.head) == "vehicle" and role.preposition in ("in", "inside", "into", "aboard")
        named = words.is_place(role.head) or words.has("here", role.head) or words.has("outdoors", role.head)
        inside = inside and not words.has("movable", role.head)
        return (named or inside) and not (words.has("anywhere", role.head) or words.has("parts", role.head))

    def _arrive(self, role: Role, event: Event) -> None:
        """Take the place to which an event brings somebody, at which it happens, or which somebody leaves."""
        words, how = self.words, role.preposition
        arrives = words.has("arrive", event.verb) or words.has("motion", event.verb)
        if role.role == "patient" and words.has("enter", event.verb) and self._moves(event):
            self._set(role, event, outside=event.verb == "leave")
        elif role.role == "goal" and arrives and self._moves(event):
            there = how == "at" and words.has("arrive_at", event.verb)
            if (there or not words.has("toward", how)) and not _UNDER_WAY.search(event.text):
                self._set(role, event)
        elif role.role == "place" and self._came_to(event) and words.sort(role.head) not in ("building", "vehicle"):
            return  # "to the shop on Mill Street"
        elif role.role == "place" and (how == "" or words.has("prep_at", how) or words.has("prep_by", how)):
            there = words.has("prep_firm", how) or how == "" or (words.has("prep_by", how) and bool(event.who("agent")))
            on_it = how == "on" and words.sort(role.head) == "vehicle" and not words.has("decked", role.head)
            if (words.has("across", how) and not arrives) or on_it:
                return
            if role.head == "wood" and not self._moves(event):
                return  # "a scratch in the wood"
            if self.place is None or (there and (self._moves(event) or event.existential)):
                self._set(role, event)
        elif (
            role.role == "source"
            and self._moves(event)
            and not words.has("arrive", event.verb)
            and not (words.has("fetching", event.verb) and event.who("patient"))  # who fetches something comes back
            and (self.place is None or (how == "out" and not event.all("goal")))
        ):
            self._set(role, event, outside=how == "out" and words.sort(role.head) not in ("water", "land"))

    def _came_to(self, event: Event) -> bool:
        """Whether an event has just brought somebody into a building."""
        goals = [role.head.lower() for role in event.all("goal")]
        return (
            self.place is not None
            and self.place.since == event.sentence
            and self.place.noun in goals
            and (self.place.sort == "building")
        )

    def _at_door(self, role: Role, event: Event) -> bool:
        """Whether somebody rings or knocks at somebody's door, and stands before it then."""
        thing = self.entities.get(role.entity or "")
        at = event.verb in ("ring", "knock", "tap", "bang") and role.head in ("door", "doorbell", "bell")
        if not at or thing is None or not self._moves(event):
            return False
        owner = self.entities.get(thing.owner or "")
        if thing.owner in event.who("agent"):
            return False  # a patient's own bell
        if role.head != "doorbell" and owner is None and "front" not in role.text:
            return False
        text = f"{owner.name}'s front door" if owner is not None and not owner.members else "the front door"
        self.place = Place(_DOORSTEP, text, event.sentence, None, "at", self.words.sort(_DOORSTEP))
        return True

    def _leave(self, place: Place, event: Event) -> None:
        self.place = Place("outside", f"outside {place.text}", event.sentence, place.entity, "", "region")

    def _set(self, role: Role, event: Event, *, outside: bool = False) -> None:
        words = self.words
        weather = words.group("weather", role.head)
        if weather is not None and self._moves(event):
            self.weather = weather  # a car that is stuck in the snow tells nothing of the barn
        if words.has("outdoors", role.head) and not self._moves(event) and event.all("agent"):
            return  # a lamp that goes out in the storm
        if outside or words.has("outdoors", role.head):
            inside = self.place is None or words.sort(self.place.noun) in ("building", "vehicle", "")
            if not inside and (words.has("outdoors", role.head) or self.place is None or self.place.noun != role.head):
                return
            self.place = Place(
                "outside",
                f"outside {role.text}" if outside else "outside",
                event.sentence,
                role.entity if outside else None,
                "",
                "region",
            )
            return
        if role.head == "bank" and role.preposition in ("on", "along", "onto"):
            role = replace(role, head="river", text="the river", entity=None)  # money is kept in or at one
        noun = words.group("place_names", role.head) or role.head
        if role.head == "counter" and self.place is not None:
            return  # any public place has one
        self.place = Place(noun, role.text, event.sentence, role.entity, role.preposition, words.sort(noun))

    def _time(self, phrase: str, event: Event) -> None:
        parts = phrase.replace("-", " ").split()
        lasting = parts[:1] != ["at"] and any(self.words.has("lasting", word) for word in parts)
        if lasting or any(self.words.has("long_past", word) for word in parts):
            return
        season = next((word for word in parts if self.words.has("seasons", word)), None)
        found = next((group for word in reversed(parts) if (group := self.words.group("times", word))), None)
        if found == "morning" and _SMALL_HOURS.search(phrase):
            found = "night"
        if parts[-1:] == ["tonight"]:
            found = "night"
        if found == "day" and parts[-1] == "day":
            fresh = any(word in ("next", "following", "one", "another", "that", "same") for word in parts)
            if "next" in parts or "following" in parts or "another" in parts:
                self.time, self.weather = "day", None
            self.season = season or self.season
            if not fresh or self.time is not None:
                return
            return
        if found is not None:
            if found != self.time and ("next" in parts or "following" in parts):
                self.weather = None
            self.time = found
        if season is not None:
            self.season = "autumn" if season == "fall" else season

    def _sky(self, event: Event) -> None:
        """What the clause says of weather and light: "it was raining", "it grew dark", "the sun rose"."""
        words = self.words
        if event.negated:
            return
        if words.has("weather_verbs", event.verb) and (not event.all("agent") or event.all("agent")[0].head == "it"):
            weather = words.group("weather", event.verb) or ("storm" if event.verb == "thunder" else "rain")
            self.weather = None if event.phase == "stop" else weather
        heads = [role.head for role in event.all("agent")]
        for head in heads:
            named = words.group("weather", head)
            if named is not None and words.sort(head) != "person":
                self.weather = (
                    None if event.phase == "stop" or event.verb in ("stop", "pass", "end", "die", "cease") else named
                )
        if "sun" in heads and event.verb in ("rise", "set", "go", "sink", "shine", "come"):
            self.time = {"rise": "morning", "come": "morning", "shine": "day"}.get(event.verb, "evening")
            self.weather = "sun" if event.verb == "shine" else self.weather
        if any(words.group("times", head) for head in heads) and event.verb in ("fall", "come", "arrive", "break"):
            self.time = words.group("times", heads[0])
        if heads == ["it"] or not heads:
            for state in event.state:
                self.weather = words.group("weather_adjectives", state) or self.weather
                part = words.group("times", state) or ("night" if state == "dark" else None)
                self.time = part or self.time
                self.season = state if words.has("seasons", state) else self.season


def track(
    events: Sequence[Event],
    sentences: int,
    entities: Mapping[str, Entity],
    words: Words,
    headings: Mapping[int, Setting] | None = None,
) -> list[Setting]:
    """Return what holds at the end of each sentence. headings: what a script says before a sentence."""
    state = _Track(entities, words)
    by_sentence: dict[int, list[Event]] = {}
    for event in events:
        by_sentence.setdefault(event.sentence, []).append(event)
    found: list[Setting] = []
    held: Place | None = None
    for index in range(sentences):
        heading = (headings or {}).get(index)
        if heading is not None:
            held, state.time, state.weather = heading.place, heading.time or state.time, None
        for event in by_sentence.get(index, ()):
            state.follow(event)
        if headings:
            state.place = held  # a scene of a script has one place
        if state.place is None and index < _OPENING:
            state.opens(index, by_sentence.get(index, ()))
        found.append(Setting(state.place, state.time, state.weather, state.season))
    return found
