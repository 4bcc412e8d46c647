"""From a frame's request to its scene: the prompt is read, and its words become a place, actors with deeds, and things.

What happens is drawn; what is denied, reported or imagined is not. The panel's fields (place, time, shot, must_show)
go before the text. What no table knows is drawn as a plain shape or a neutral pose, and its word is kept in
`not_drawn`, so that a caption can say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from katha.protocols import FrameRequest
from katha.renderers.sketch.deeds import Deed, Look, deed, people
from katha.renderers.sketch.figures.data import drawings
from katha.renderers.sketch.pictograms import find_noun
from katha.renderers.sketch.places import place_data
from katha.renderers.sketch.scenes.casting import actor_of
from katha.renderers.sketch.scenes.record import Scene, SceneActor, SceneThing, Shot
from katha.renderers.sketch.scenes.senses import (
    attributes_in,
    base_form,
    concept_of,
    deed_of_verb,
    features_of,
    hair_of,
    how_many,
    implied_place,
    in_table,
    mood_of,
    noun_of,
    object_deed,
    place_by_things,
    place_of,
    seen_from_outside,
    shot_of,
    state_deed,
    time_of,
)
from katha.schema import Character
from katha.text import read_story
from katha.text.types import Entity, Event, Reading, Role, Sentence
from katha.text.words import load_words

__all__ = ["Told", "scene_of", "tell"]

_SHOT = re.compile(
    r"^\s*(?:an? )?((?:extreme |very |full )?(?:wide|long|medium|mid|close|close[- ]up|establishing)(?:[- ]shot)?)"
    r"(?: of |: |, )",
    re.IGNORECASE,
)
_THIRD = re.compile(r"\b([a-z]{2,})\b(?=[ ,.;!]|$)")
_BEFORE_NOUN = re.compile(
    r"\b(?:the|a|an|his|her|its|their|my|our|your|some|two|three|of|in|on|at|with|into) $", re.IGNORECASE
)
_QUOTED = re.compile(r'["\u201c][^"\u201d]*["\u201d]')
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|got)\b")
_TO_BE = re.compile(r"\b(?:is|are|stands?) ")
_PLACED = re.compile(r"\b(?:in|on|at|inside|into|through|to|across|from|near) ((?:[\w'-]+ ){0,3}[\w'-]+)\b")
_IN_WEATHER = re.compile(r"\bin (?:the|a|an) ((?:heavy )?\w+)\b", re.IGNORECASE)
_TIMES = {"morning": "dawn", "day": "day", "evening": "dusk", "night": "night"}
_LIVING = frozenset({"person", "animal", "being", "group"})
_OPEN = frozenset({"under", "climbed", "ahead", "cover", "over", "around"})
"""Where a deed can put what stands at its place: sat on, climbed, gone to, hidden behind, caught in."""
_BESIDE = frozenset({"under", "beneath", "below", "beside", "by", "near", "behind", "next to", "in front of", "along"})
_WITHIN = frozenset(
    {
        "up",
        "down",
        "towards",
        "toward",
        "past",
        "onto",
        "around",
        "in",
        "inside",
        "into",
        "at",
        "aboard",
        "through",
        "on",
        "to",
        "across",
        "from",
        "out of",
        "near",
        "over",
    }
)
_INSIDE = frozenset({"ride", "drive", "board", "row", "sail"})
"""Deeds whose vehicle is drawn from outside, so that it is not the place."""
_TOOLS = frozenset({"tool", "device", "thing", "toy", "container"})
_TAKING = frozenset({"take", "carry", "hold", "serve", "lift", "pick", "show"})
_FREE_HANDED = frozenset(
    {"stand", "walk", "run", "chase", "jump", "climb", "fly", "sit", "talk", "shout", "laugh", "look", "fall"}
)
_MUTUAL = frozenset({"hug", "kiss", "hold_hands", "shake_hands", "fight", "argue", "dance", "talk", "play"})
_MOVES = frozenset({"fall", "fly", "jump", "run", "walk", "climb", "drive", "shiver"})
"""What a thing without life can do of its own accord; anything else it only stands there."""
_GOING = frozenset(
    {
        "deliver",
        "go",
        "come",
        "chase",
        "travel",
        "follow",
        "race",
        "arrive",
        "return",
        "leave",
        "run",
        "rush",
        "hurry",
        "move",
    }
)
_PLACING = frozenset({"put", "set", "lay", "turn", "hold"})
_STRADDLED = 135.0
"""A vehicle lower than this is sat on, a larger one sat in (centimetres)."""
_MALE = frozenset({"king", "thief", "woodcutter", "fisherman", "shepherd", "hunter", "merchant", "sage", "soldier"})
_ROYAL = frozenset({"king", "queen"})
_SIZES = {"vehicle": 160.0, "building": 300.0, "furniture": 90.0, "food": 12.0, "drink": 10.0, "plant": 70.0,
          "clothing": 50.0, "music": 60.0, "container": 35.0, "animal": 60.0}  # fmt: skip
_STAND_INS: Mapping[Literal["male", "female"] | None, tuple[str, ...]] = {
    "male": ("Peter", "Martin", "Oscar", "Thomas"),
    "female": ("Maria", "Helen", "Julia", "Anna"),
    None: ("Alexis", "Jamie", "Sasha", "Charlie"),
}
"""First names that are never anything else to the parser."""
_BASES = {("male", "teen"): "teen_boy", ("female", "teen"): "teen_girl", (None, "teen"): "teen",
          ("male", "child"): "boy", ("female", "child"): "girl", (None, "child"): "child", ("male", "old"): "old_man",
          ("female", "old"): "old_woman", ("male", None): "man", ("female", None): "woman"}  # fmt: skip
_OWN = {base: nature for nature, base in _BASES.items()}
_LEVEL = frozenset({"", "eye level", "eye-level", "front", "frontal", "straight", "straight on", "level", "normal"})
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 4, "six": 4, "seven": 4, "many": 4, "several": 3, "some": 3}
_PHRASE, _SENTENCE = 5, 3
"""A phrase of must_show longer than the first tells what the prompt tells; one as long as the second may."""
_AT: Mapping[str, Literal["on", "in", "under", "above"]] = {
    "on": "on", "onto": "on", "in": "in", "into": "in", "inside": "in", "under": "under", "beneath": "under",
    "above": "above", "over": "above",
}  # fmt: skip
"""Where a preposition has one thing beside another."""
_RISING = frozenset({"smoke", "steam", "fire", "dashing-away"})
_HE, _SHE = frozenset({"he", "his", "him", "male"}), frozenset({"she", "her", "female"})
_CROWD = 8
_LOW = 34.0
"""What is taller (centimetres) is put into where it stands."""
_LOOSE = frozenset({"tooth", "bone", "skull", "feather", "egg"})
"""Parts of a body that lie about by themselves."""
_FLAT = frozenset({"table", "desk"})
_MOST = 5
"""More actors than this are too small to tell apart."""


@dataclass(frozen=True)
class Told:
    """A scene, and the words of the request that stand-ins and neutral poses were drawn for."""

    scene: Scene
    not_drawn: tuple[str, ...] = ()


def scene_of(request: FrameRequest) -> Scene:
    """Return the moment that a request asks for."""
    return tell(request).scene


def tell(request: FrameRequest) -> Told:
    """Return the moment that a request asks for, and what of it cannot be drawn."""
    return _Teller(request).told()


def _read(prompt: str, known: Sequence[str] = ()) -> Reading | None:
    """The prompt's reading; `known` are sentences that say who is who and are left out of it again.

    A present tense that the parser took for a plural ("The mouse bites the rope") is tried
    once more as "is biting": that has one reading only."""
    if not re.search(r"[A-Za-z]{2}", prompt):
        return None
    reading = _behind(known, prompt)
    again = _progressive(prompt, reading)
    if again != prompt:
        second = _behind(known, again)
        if _deeds(second) > _deeds(reading):
            return second
    return reading


def _behind(known: Sequence[str], prompt: str) -> Reading:
    """Return the reading of the prompt alone, made with the knowledge of the sentences before it."""
    reading = read_story(" ".join((*known, prompt)))
    first = len(known)
    if not first:
        return reading
    places = [at for at, one in enumerate(reading.events) if one.sentence >= first]
    events = [replace(reading.events[at], sentence=reading.events[at].sentence - first) for at in places]
    moved = {old: new for new, old in enumerate(places)}
    sentences = [
        replace(one, index=one.index - first, events=tuple(moved[at] for at in one.events if at in moved))
        for one in reading.sentences[first:]
    ]
    entities = [
        replace(one, sentences=tuple(at - first for at in one.sentences if at >= first)) for one in reading.entities
    ]
    return replace(reading, sentences=tuple(sentences), events=tuple(events), entities=tuple(entities))


def _deeds(reading: Reading) -> int:
    """How many events have somebody who does them."""
    return sum(event.visible and bool(event.who("agent")) for event in reading.events)


def _progressive(prompt: str, reading: Reading) -> str:
    verbs = {event.verb for event in reading.events if event.who("agent")}

    def instead(found: re.Match[str]) -> str:
        word = found.group(1)
        stems = (
            [word[:-1], word[:-2]] if word.endswith("s") and not _BEFORE_NOUN.search(prompt[: found.start()]) else []
        )
        stems += [word[:-3] + "y"] if stems and word.endswith("ies") else []
        stem = next((one for one in stems if deed_of_verb(one) is not None), None)
        if stem is None or stem in verbs or (noun_of(stem) is not None and not _after_noun(prompt, found.start())):
            return word
        return f"is {_gerund(stem)}"

    return _THIRD.sub(instead, prompt)


def _after_noun(prompt: str, at: int) -> bool:
    """Whether the word before is a noun of the tables or "and"."""
    before = prompt[:at].split()
    return bool(before) and (before[-1].lower() == "and" or noun_of(before[-1]) is not None or before[-1].istitle())


def _gerund(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return verb[:-1] + "ing"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb):
        return verb + verb[-1] + "ing"
    return verb + "ing"


class _Teller:
    """One request on its way to a scene: actors by entity, things, and the words that nothing was found for."""

    def __init__(self, request: FrameRequest) -> None:
        self.request = request
        found = _SHOT.match(request.prompt)
        self.prompt = request.prompt[found.end() :] if found else request.prompt
        self.prompt, self.stood = _called(self.prompt, request.characters)
        self.shot: Shot | None = shot_of(request.shot_size) or (shot_of(found.group(1)) if found else None)
        self.reading = _read(self.prompt, [f"{name} is a {one.kind}." for name, one in self.stood.items()])
        self.actors: dict[str, SceneActor] = {}
        self.things: dict[str, SceneThing] = {}
        self.missing: list[str] = []
        self.roads: set[str] = set()
        self.pictured: set[str] = set()
        self.named = self._match()

    def told(self) -> Told:
        """Return the scene and what is not drawn."""
        told = [event for event in self.reading.events if event.standing == "told"] if self.reading else []
        events = [event for event in told if _shown(event)] or [event for event in told if not event.negated]
        chosen = self._chosen(events)
        for event in sorted(chosen, key=lambda one: -self._worth(one)):
            self._act(event)
        for event in events:
            if event not in chosen:
                self._lend_thing(event)
                self._carried_along(event)
        for event in [*events, *(one for one in told if one.negated and one not in events)]:
            self._present(event, acted=event in chosen or event.negated)
        self._fragments()
        self._panel_cast()
        for event in events:
            self._lying(event)
        setting, time, weather = self._setting(events), self._time(), self._weather()
        self._must_show(setting)
        self._settle()
        if setting is None:
            setting = next((p for p in (implied_place(actor.deed) for actor in self.actors.values()) if p), None)
        if setting is None:
            setting = place_by_things(thing.pictogram for thing in self.things.values() if thing.pictogram)
        outdoors = any(deed(actor.deed).thing == "around" or actor.deed == "ride" for actor in self.actors.values())
        if setting is not None and outdoors:
            setting = seen_from_outside(setting)
        if setting == "living_room" and any(actor.deed == "knock" for actor in self.actors.values()):
            setting = "doorstep"
        if weather is None and self._winter() and setting is not None and not place_data(setting).indoors:
            weather = "snow"
        angle = self.request.shot_angle.strip().lower()
        if angle not in _LEVEL:
            self.missing.append(self.request.shot_angle)
        cast = [one for one in self.actors.values() if one.kind != "pictogram" or setting is None or one.deed != "stand"
                or place_of(one.id) != setting]  # fmt: skip
        scene = Scene(setting, weather, time, tuple(cast[:_MOST]), self._scenery(setting), self.shot)
        return Told(scene, tuple(dict.fromkeys(self.missing)))

    def _settle(self) -> None:
        """One door for who knocks and who opens; what lies about goes into the bubble of who speaks of it."""
        openers = [actor.id for actor in self.actors.values() if actor.deed == "open"]
        for key, actor in self.actors.items():
            if actor.deed == "knock" and openers:
                self.actors[key] = replace(actor, deed="wave", target=None)
        loose = [name for name, thing in self.things.items() if name.startswith("shown ") and thing.held_by is None]
        for key, actor in self.actors.items():
            if loose and actor.says is None and actor.kind != "pictogram" and actor.deed == "talk":
                told = self.things.pop(loose.pop(0))
                self.actors[key] = replace(actor, says=told.pictogram)

    # Who is who.

    def _match(self) -> dict[str, Character]:
        """Which character of the plan each entity is, by name; "he" alone is the one character that is left."""
        found: dict[str, Character] = {}
        if self.reading is None:
            return found
        for entity in self.reading.entities:
            for name in (entity.name, *entity.aliases):
                if name in self.stood:
                    found.setdefault(entity.id, self.stood[name])
        for entity in self.reading.entities:
            names = {_bare(name) for name in (entity.name, *entity.aliases)} | {entity.noun}
            for character in self.request.characters:
                if {_bare(character.name), _bare(character.name).rstrip("s")} & names:
                    found.setdefault(entity.id, character)
        for entity in self.reading.entities:
            names = {_bare(name) for name in (entity.name, *entity.aliases)} | {entity.noun}
            for character in self.request.characters:
                if _bare(character.kind) in names and entity.id not in found and not _has(found, character):
                    found[entity.id] = character
        for entity in self.reading.entities:
            alike = [
                one for one in self.request.characters if not _has(found, one) and _same_kind(one.kind, entity.noun)
            ]
            if entity.id not in found and entity.noun and len(alike) == 1 and not entity.named:
                found[entity.id] = alike[0]
        for entity in self.reading.entities:
            rest = [one for one in self.request.characters if not _has(found, one)]
            if entity.id not in found and entity.character and not entity.noun and not entity.named and rest:
                sexes = [(one, _nature(f"{one.kind} {one.appearance} {one.name}")[0]) for one in rest]
                fits = [one for one, sex in sexes if entity.sex is None or sex in (None, entity.sex)]
                if fits:
                    found[entity.id] = fits[0]
        return found

    def _actor(self, entity: Entity) -> SceneActor:
        """The actor that an entity is, doing nothing yet."""
        character = self.named.get(entity.id)
        phrases = [character.kind, entity.noun] if character is not None else [entity.noun]
        looks = " ".join([*entity.looks, character.appearance if character else "", entity.name])
        name = _bare(character.name if character else entity.name)
        count = entity.count if entity.count else 3
        if entity.kind == "group" and count == 1 and load_words().has("group", entity.noun):
            count = 3
        if character is not None and entity.name == character.name and entity.name.istitle() and not entity.noun:
            count = 1
        if character is not None and entity.count == 1:
            count = _NUMBERS.get(character.appearance.lower().split(" ")[0], 1)
        count = how_many(entity.noun) or count
        actor = self._cast(name, [phrase for phrase in phrases if phrase], looks, entity)
        mood = mood_of(entity.looks) or next(
            (load_words().feelings[w] for w in entity.looks if w in load_words().feelings), None
        )
        return replace(actor, count=min(count, _CROWD), mood=actor.mood or mood)

    def _cast(self, name: str, phrases: Sequence[str], looks: str, entity: Entity | None) -> SceneActor:
        """Somebody called `name` that is one of `phrases`, by the vocabulary's figures, the rig, or a pictogram."""
        words = f"{' '.join(phrases)} {looks}"
        sex, age = _nature(words)
        character = self.named.get(entity.id) if entity is not None else None
        if entity is not None and character is not None:
            # The plan's sheet is the story's; a sentence by itself may be read wrongly.
            told = _nature(f"{character.kind} {character.appearance} {character.name}")
            sex, age = told[0] or entity.sex, told[1] or entity.age
        elif entity is not None:
            sex, age = entity.sex or sex, age if age == "teen" else entity.age or age
        concept, noun = concept_of(*phrases), noun_of(*phrases)
        trade = noun is not None and noun.kind == "person" and noun.pictogram in people()["outfits"]
        if concept is not None and not (sex == "female" and concept in _MALE) and (not trade or concept in _ROYAL):
            return SceneActor(name, "figure", concept=concept, attributes=_attributes(looks))
        human = noun is None and (entity is None or entity.kind in ("person", "group") or not phrases)
        if (noun is not None and noun.kind != "person") or not (human or noun):
            if noun is None:
                self.missing.append(phrases[-1])
            kind = entity.kind if entity is not None and entity.kind in ("animal", "person") else "animal"
            return actor_of(name, noun.word if noun else " ".join(phrases), kind_of=kind, cm=None if noun else 70.0)
        if noun is None and phrases and not _plain(phrases[-1]):
            self.missing.append(phrases[-1])
        usual = actor_of(name, noun.word if noun else "person")
        return replace(usual, look=_dressed(usual, sex, age, words)) if usual.kind == "person" else usual

    def _id(self, key: str) -> str:
        """The actor of an entity, cast when it is first needed; a group whose members are known is its first."""
        if key not in self.actors:
            assert self.reading is not None
            actor = self._actor(self.reading.entity(key))
            if any(actor.id == other.id for other in self.actors.values()):
                actor = replace(actor, id=f"{actor.id} {key}")
            self.actors[key] = actor
        return self.actors[key].id

    def _spread(self, keys: Iterable[str]) -> list[str]:
        """Entities with groups replaced by their members."""
        found: list[str] = []
        for key in keys:
            members = self._entity(key).members
            found += [one for one in (members or (key,)) if one not in found and not self._only_said(one)]
        return found

    def _only_said(self, key: str) -> bool:
        """Whether a name stands in quotes and nowhere else: "Boo!"."""
        name = self._entity(key).name
        return name in self.prompt and name not in _QUOTED.sub("", self.prompt)

    def _entity(self, key: str) -> Entity:
        assert self.reading is not None
        return self.reading.entity(key)

    def _alive(self, key: str) -> bool:
        entity = self._entity(key)
        return key in self.named or entity.kind in _LIVING

    # What happens.

    def _chosen(self, events: Sequence[Event]) -> list[Event]:
        """For everybody the event that a picture shows best; of equals the later one."""
        best: dict[str, Event] = {}
        for event in events:
            for key in self._spread(event.who("agent") or event.who("patient")):
                if key not in best or self._worth(event) >= self._worth(best[key]):
                    best[key] = event
        return list(dict.fromkeys(best.values()))

    def _worth(self, event: Event) -> float:
        name = self._deed(event)
        objects = [role for role in event.all("patient", "recipient", "goal", "companion") if role.entity]
        worth = 2.0 * (name not in (None, "stand")) + 1.5 * bool(objects) + (not in_table("weak", event.verb))
        return worth - 2.0 * event.perfect - 0.5 * (event.verb == "be") - 1.0 * event.negated

    def _deed(self, event: Event) -> str | None:
        """The deed of an event, or None where no table has its verb."""
        verb = base_form(event.verb)
        if verb in ("be", "get", "become", "seem", "feel", "lie", "fall", "keep") and event.state:
            named = state_deed(word.lower() for text in event.state for word in text.split())
            if named is not None or verb in ("be", "become", "seem", "feel"):
                return named or "stand"
        patients = event.all("patient")
        if event.passive and not event.who("agent") and _PASSIVE.search(event.text):
            return state_deed((verb, *event.state, f"{verb}ed")) or deed_of_verb(f"be {verb}", f"get {verb}") or "stand"
        about = [word for role in patients or event.all("recipient", "goal") for word in self._sorts(role)]
        special = object_deed(event.predicate, about) or (object_deed(verb, about) if not event.particle else None)
        phrases = [f"{verb} {role.head}" for role in event.all("patient", "place", "goal", "companion")]
        phrases += [f"{verb} {event.particle}"] if event.particle else []
        told = sorted((role.preposition for role in event.roles if role.preposition), key=lambda one: one != "through")
        if verb not in _PLACING and (not patients or verb == "take"):  # "put it on the shelf" is not "put it on"
            phrases += [f"{verb} {preposition}" for preposition in told]
        if verb == "be":
            return special or "stand"
        if verb == "have" and not special:
            return "hold" if any(self._drawable(role) for role in patients) else "stand"
        return self._riding(event) or special or deed_of_verb(*phrases, verb)

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

    def _sorts(self, role: Role) -> list[str]:
        found = [role.head]
        if role.entity is not None and self._alive(role.entity):
            return [*found, "living"]
        noun = noun_of(role.head)
        return [*found, noun.kind] if noun is not None else found

    def _drawable(self, role: Role) -> bool:
        return role.entity is not None and not in_table("skip", role.head) and noun_of(role.head) is not None

    def _act(self, event: Event) -> None:
        """Put the event's doers, partners and things into the scene."""
        name = self._deed(event)
        unknown, name = name is None, name or "stand"
        row = deed(name)
        agents = self._spread(event.who("agent")) or self._spread(
            key for key in event.who("patient") if self._alive(key)
        )
        agents = [key for key in agents if self._fits(key, name)]
        if not agents:
            self._present(event, acted=False)
            return
        if unknown:
            self.missing.append(event.predicate)
        first = self._id(agents[0])
        others = [key for key in self._partners(event) if key not in agents]
        targets = [self._id(key) for key in others]
        held = self._objects(event, row, first, agents)
        if name == "put" and any(
            thing.held_by == first and thing.role == "instrument" for thing in self.things.values()
        ):
            name, row = "put_in", deed("put_in")
        if name in ("draw", "paint") and held is not None:
            for key in others:
                del self.actors[key]
            others, targets = [], []
        astride = name in _INSIDE and event.verb != "ride" and held is not None
        for key in agents:
            self._id(key)
            idle = self.actors[key].deed == "stand" and self.actors[key].target is None
            if not idle:
                continue
            target = targets[0] if targets and not astride else None
            if target is None and len(agents) > 1 and name in _MUTUAL:
                target = self._id(agents[1] if key == agents[0] else agents[0])
            if target is None and key == agents[0] and held:
                target = held
            self.actors[key] = replace(self.actors[key], deed=name, target=target)
        self._about(event, name, agents)
        if row.close is not None:
            for other in others[1:]:
                if self.actors[other].deed == "stand" and self.actors[other].target is None:
                    self.actors[other] = replace(self.actors[other], deed=name, target=first)
        if row.partner == "under" and targets and not astride:
            self._mount(others[0])
        if event.verb in ("chase", "pursue", "hunt") and others and self.actors[others[0]].deed == "stand":
            self.actors[others[0]] = replace(self.actors[others[0]], deed="run")
        for key in event.who("companion"):
            if self._alive(key) and key not in agents and self.actors[key].deed == "stand" and row.partner == "side":
                self.actors[key] = replace(self.actors[key], deed=name)

    def _about(self, event: Event, name: str, agents: Sequence[str]) -> None:
        """Put what is spoken about into the speaker's bubble."""
        if "speech" not in deed(name).pose.emanata:
            return
        heads = [(role.entity, role.head) for role in event.all("topic", "patient") if role.entity not in agents]
        for key, head in heads:
            noun = noun_of(self._entity(key).noun if key else "", head)
            if noun is None or in_table("skip", head) or (key is not None and key in self.actors):
                continue
            self.things.pop(key or "", None)
            self.actors[agents[0]] = replace(self.actors[agents[0]], says=noun.pictogram)
            return

    def _lying(self, event: Event) -> None:
        """A thing that the event has on, in or under another, or that comes out of it."""
        if self.actors.keys() & set(event.who("agent")) and event.verb in ("come", "pour", "rise", "billow", "drift"):
            for key in event.who("agent"):
                actor = self.actors.get(key)
                if (
                    actor is not None
                    and actor.kind == "pictogram"
                    and not self._alive(key)
                    and not event.who("patient")
                ):
                    self._risen(key, event)
        for one in event.all("patient", "agent"):
            thing = self.things.get(one.entity or "")
            if (
                thing is None
                or thing.at is not None
                or (thing.held_by is not None and event.verb not in ("find", "see", "leave"))
            ):
                continue
            for role in event.all("place", "goal"):
                where = _AT.get(role.preposition)
                there = self.things.get(role.entity or "")
                if where is not None and there is not None and there is not thing and there.held_by is None:
                    self.things[thing.id] = replace(thing, at=there.id, where=where, held_by=None)

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
        """Whoever took something and then ran, climbed or spoke has it in the hand."""
        if self._deed(event) not in _TAKING:
            return
        for key in self._spread(event.who("agent")):
            actor = self.actors.get(key)
            if actor is not None and deed(actor.deed).own is None and actor.deed in _FREE_HANDED:
                for role in event.all("patient"):
                    self._role_thing(role, actor.id, "instrument")

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

    def _partners(self, event: Event) -> list[str]:
        """Whom the deed is done to, in the order of the text."""
        roles = event.all("recipient", "patient", "companion", "goal", "place", "source")
        rank = {"recipient": 0, "patient": 1}
        ordered = sorted(roles, key=lambda role: rank.get(role.role, 2))
        keys = [role.entity for role in ordered if role.entity and self._alive(role.entity) and self._is_somebody(role)]
        bodies = [self._entity(role.entity) for role in ordered if role.entity]
        owners = [entity.owner for entity in bodies if _is_body(entity) and entity.owner is not None]
        return self._spread([*keys, *owners])

    def _is_somebody(self, role: Role) -> bool:
        """A living thing that is eaten or carried as food stays a thing; a group noun of things is none."""
        assert role.entity is not None
        entity = self._entity(role.entity)
        return bool(entity.noun or entity.named or role.entity in self.named or entity.character)

    def _objects(self, event: Event, row: Deed, holder: str, agents: Sequence[str]) -> str | None:
        """Put the event's things into the scene; the id of the one that is the verb's object."""
        main: str | None = None
        patients = [role for role in event.all("patient") if role.entity not in agents and row.thing != "none"]
        if row.id in ("ride", "drive"):
            mounts = [role for role in event.all("place", "instrument") if _is_vehicle(role)]
            for role in mounts[:1]:
                main = self._role_thing(role, holder, "object")
        if row.id in ("draw", "paint"):
            return self._drawn(patients, holder)
        if row.id == "put" and patients and (goal := self._into(event)) is not None:
            self._role_thing(goal, holder, "instrument")
        if row.thing == "thought":
            patients += event.all("topic")
        for role in patients:
            if row.id in ("wear", "stand") and self._put_on(role, agents):
                continue
            key = self._role_thing(role, holder if main is None else None, "object")
            main = main or key
        for role in event.all("instrument"):
            self._role_thing(role, holder, "instrument")
        for role in event.all("place", "goal", "source", "companion"):
            on = main is None and row.thing in _OPEN and not (row.thing == "under" and role.preposition in _BESIDE)
            on = on or (main is None and self._is_own(role, row))
            noun = noun_of(role.head)
            if role.preposition in ("through", "with") and noun is not None and noun.kind in _TOOLS:
                self._role_thing(role, holder, "instrument")
            if place_of(role.head) is not None and find_noun(role.head) is None:
                continue
            if self._is_setting(role, row):
                continue
            key = self._role_thing(role, holder if on else None, "object")
            main = main or (key if on else None)
        if row.id in _INSIDE and main is not None:
            self.roads.add(self.things[main].word)
        return main

    def _into(self, event: Event) -> Role | None:
        """The large thing that something is put into: an oven, a chest, a car."""
        for role in event.all("goal", "place"):
            noun = noun_of(role.head)
            large = noun is not None and noun.kind in ("furniture", "container", "vehicle", "device") and noun.cm > _LOW
            if large and role.preposition in ("in", "into", "on", "onto") and noun.pictogram not in _FLAT:
                return role
        return None

    def _drawn(self, patients: Sequence[Role], holder: str) -> str | None:
        """What is drawn or painted: its picture, whatever it is, on the sheet."""
        for role in patients:
            noun = noun_of(self._entity(role.entity).noun if role.entity else "", role.head)
            if noun is not None and not in_table("skip", role.head):
                key = f"picture {noun.word}"
                self.pictured |= {role.entity or "", noun.word}
                self.things[key] = SceneThing(
                    key, noun.word, noun.pictogram, noun.kind, noun.cm, "hand", "object", holder
                )
                return key
        return None

    def _put_on(self, role: Role, agents: Sequence[str]) -> bool:
        """Whether a garment is drawn on those who wear it, in the colour told."""
        features = features_of(_phrase(self._entity(role.entity)) if role.entity else role.text)
        worn = [key for key in agents if self._id(key) and self.actors[key].kind == "person"] if features else []
        for key in worn:
            look = self.actors[key].look
            self.actors[key] = replace(self.actors[key], look=replace(look, features=(*look.features, *features)))
        return bool(worn)

    def _is_own(self, role: Role, row: Deed) -> bool:
        """Whether a thing is what the deed implies: the door of "knocked at the door"."""
        noun = noun_of(role.head)
        return noun is not None and noun.pictogram == row.own

    def _is_setting(self, role: Role, row: Deed) -> bool:
        """Whether somebody is in a thing that is a place as well: a boat, a castle, a garden with a fence."""
        noun = noun_of(role.head)
        if row.id in _INSIDE and noun is not None and noun.kind in ("vehicle", "animal"):
            return False
        inside = role.preposition in _WITHIN
        return inside and place_of(role.head) is not None and not in_table("captors", role.head)

    def _role_thing(self, role: Role, holder: str | None, what: Literal["object", "instrument"]) -> str | None:
        if role.entity is None or self._alive(role.entity):
            return None
        return self._thing(self._entity(role.entity), holder, what, role.head)

    def _thing(
        self, entity: Entity, holder: str | None, what: Literal["object", "instrument", "scenery"], head: str = ""
    ) -> str | None:
        """Put a thing into the scene, once; None for what cannot be seen. What no table has is a plain shape."""
        head = entity.noun or head
        if entity.id in self.things or entity.id in self.actors:
            return None
        if not head or in_table("skip", head) or (entity.sort == "body" and entity.noun not in _LOOSE):
            return None
        noun = noun_of(entity.name, entity.noun, head)
        if noun is None:
            if (
                entity.kind in ("abstract", "place")
                or entity.sort in ("abstract", "time", "event")
                or (not entity.sort and holder is None)
            ):
                return None
            self.missing.append(head)
        count = 1 if in_table("single", head) else min(entity.count or 3, 3)
        if noun is not None:
            thing = SceneThing(
                entity.id, noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, what, holder, count
            )
        else:
            sort = entity.sort
            thing = SceneThing(entity.id, head, None, sort, _SIZES.get(sort, 30.0), "ground", what, holder, count)
        self.things[entity.id] = thing
        return entity.id

    def _mount(self, key: str) -> None:
        """Who is ridden stands on four legs."""
        entity, actor = self._entity(key), self.actors[key]
        noun = noun_of(entity.noun)
        if actor.kind == "figure" and noun is not None and in_table("mounts", noun.word):
            self.actors[key] = SceneActor(actor.id, "pictogram", pictogram=noun.pictogram, kind_of="animal", cm=noun.cm)

    # What else is there.

    def _present(self, event: Event, *, acted: bool) -> None:
        """Everybody of an event, with the feeling that it tells; things of states and of events not chosen."""
        feeling = mood_of(word for text in event.state for word in text.lower().split()) or event.feeling
        told = bool(event.state or event.manner)
        for key in self._spread(event.who("agent", "patient", "recipient", "companion")):
            if not self._alive(key) or key in self.pictured:
                continue
            self._id(key)
            if key in self._spread(event.who("agent")) and feeling and not event.negated:
                if self.actors[key].mood and not told:
                    continue  # a verb's own feeling ("smiled") says less than "the sly fox"
                self.actors[key] = replace(self.actors[key], mood=_known_mood(feeling))
        if acted:
            return
        for role in event.all("agent") if not event.negated else ():
            self._role_thing(role, None, "object")
        for role in event.all("patient", "instrument", "place", "companion"):
            if role.role != "place" or not self._is_setting(role, deed("stand")):
                self._role_thing(role, None, "object")

    def _fragments(self) -> None:
        """What a sentence without a verb names ("A rope."), and what comes along with somebody ("with a basket")."""
        if self.reading is None:
            return
        bare = {sentence.index for sentence in self.reading.sentences if not sentence.events}
        for entity in self.reading.entities:
            if entity.id in self.actors or entity.id in self.things or not bare & set(entity.sentences):
                continue
            if entity.kind in _LIVING and not entity.members:
                self._id(entity.id)
            elif place_of(entity.noun) is None:
                self._thing(entity, None, "object")
        self._had()

    def _had(self) -> None:
        """Things that no event holds but the text names beside somebody: "the crow with a piece of cheese"."""
        assert self.reading is not None
        used = {role.entity for event in self.reading.events for role in event.roles}
        inside = {place_of(sentence.place.noun) for sentence in self.reading.sentences if sentence.place}
        for entity in self.reading.entities:
            if entity.kind != "thing" or entity.id in used or entity.id in self.things or not entity.sentences:
                continue
            if features_of(_phrase(entity)) and any(actor.kind == "person" for actor in self.actors.values()):
                continue
            if self._spoken(entity):
                continue
            told = any(_shown(event) for event in self.reading.of(entity.sentences[0]))
            if told and place_of(entity.noun) not in inside - {None}:
                holder = self._with(entity)
                self._thing(entity, holder, "instrument" if holder else "object")

    def _spoken(self, entity: Entity) -> bool:
        """Whether somebody who tells a story has the thing in the bubble now: "told him about a ship"."""
        noun = noun_of(entity.noun)
        for key, actor in self.actors.items():
            if noun is not None and actor.says is None and actor.deed == "talk" and actor.kind != "pictogram":
                self.actors[key] = replace(actor, says=noun.pictogram)
                return True
        return False

    def _with(self, thing: Entity) -> str | None:
        """Who has a thing that stands in "NAME with a THING"."""
        for key, actor in self.actors.items():
            entity = self._entity(key) if not key.startswith(("panel", "shown")) else None
            for name in (entity.name.split()[-1], entity.noun) if entity is not None else ():
                pattern = rf"\b{re.escape(name)} with (?:[\w-]+ ){{0,4}}{re.escape(thing.noun)}"
                if name and thing.noun and re.search(pattern, self.prompt, re.IGNORECASE):
                    return actor.id
        return None

    def _panel_cast(self) -> None:
        """Characters of the panel whom the prompt does not name."""
        there = {_bare(actor.id) for actor in self.actors.values()} | self.pictured
        for character in self.request.characters:
            if _bare(character.name) not in there and not _has(self.named, character):
                name = _bare(character.name)
                actor = self._cast(name, [character.kind], character.appearance, None)
                count = _NUMBERS.get(character.appearance.lower().split(" ")[0], 1)
                self.actors[f"panel {name}"] = replace(actor, count=count)

    def _must_show(self, setting: str | None) -> None:
        """Things that the panel has to show and the text did not bring."""
        drawn = {thing.word.lower() for thing in self.things.values()}
        figures = {name for actor in self.actors.values() for name in (actor.pictogram, actor.concept) if name}
        for phrase in self.request.must_show:
            words = _bare(phrase)
            place = place_of(words)
            if len(words.split()) > _PHRASE or (place is not None and (place == setting or find_noun(words) is None)):
                continue
            noun = noun_of(words.split(" of ")[-1])
            ids = {word for actor in self.actors.values() for word in actor.id.split()}
            if features_of(words) and any(actor.kind == "person" for actor in self.actors.values()):
                continue
            if words in ids or _TO_BE.search(words) or (len(words.split()) > 1 and words.split()[0] in ids):
                continue
            if noun is None and len(words.split()) < _SENTENCE:
                if not in_table("skip", words.split()[-1] if words else ""):
                    self.missing.append(phrase)
            elif noun is not None and (
                noun.word.lower() not in drawn
                and noun.pictogram not in figures
                and concept_of(noun.word) not in figures
            ):
                if noun.kind == "person" or concept_of(noun.word) is not None:
                    self.actors[f"shown {words}"] = self._cast(words, [noun.word], phrase, None)
                else:
                    self.things[f"shown {words}"] = SceneThing(
                        f"shown {words}", noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, "object"
                    )

    def _scenery(self, setting: str | None) -> tuple[SceneThing, ...]:
        """The things; a whole house is not drawn before its own door or among others, nor a train in its carriage."""
        housed = setting in ("doorstep", "street", "village", "city")
        loose = [
            one
            for one in self.things.values()
            if setting is not None and (one.held_by is None or one.kind == "building")
        ]
        around = {one.id for one in loose if place_of(one.word) == setting and one.kind in ("vehicle", "building")}
        around |= {one.id for one in self.things.values() if housed and one.kind == "building" and one.cm > 250}
        return tuple(one for one in self.things.values() if one.id not in around)

    # Where and when.

    def _setting(self, events: Sequence[Event]) -> str | None:
        """The panel's place, else what holds in the reading, else what the words name."""
        if self.request.place:
            found = place_of(self.request.place)
            if found is not None:
                return found
            if noun_of(self.request.place) is None:
                self.missing.append(self.request.place)
        if self.reading is None:
            return place_of(self.prompt)
        held = [sentence.place for sentence in reversed(self.reading.sentences) if sentence.place is not None]
        for place in held:
            found = place_of(place.text) or place_of(place.noun)
            if place.noun not in self.roads and found is not None:
                return found
        for event in events:
            for role in event.all("place", "goal", "source"):
                found = place_of(role.head)
                if (
                    found is not None
                    and role.head not in self.roads
                    and not (role.entity and role.entity in self.things)
                ):
                    return found
        bare = [sentence for sentence in self.reading.sentences if not sentence.events]
        named = next((found for found in (place_of(_placed(sentence.text)) for sentence in bare) if found), None)
        named = named or self._lexical()
        if named is None and held and held[0].sort in ("building", "land", "water") and held[0].noun not in self.roads:
            self._unknown_place(held[0].noun)
        return named

    def _lexical(self) -> str | None:
        """The place after a preposition that the parse gave to something else: "played the violin on the stage"."""
        drawn = {thing.word.lower() for thing in self.things.values()}
        for found in _PLACED.finditer(_QUOTED.sub("", self.prompt).lower()):
            words = found.group(1).split()
            for size in range(1, len(words) + 1):
                phrase = " ".join(words[:size])
                if place_of(phrase) is not None and phrase.split()[-1] not in drawn:
                    return place_of(phrase)
        return None

    def _unknown_place(self, noun: str) -> None:
        """A place that has no stage: its picture stands behind, or its word is kept."""
        entry = find_noun(noun)
        if entry is None:
            if not in_table("skip", noun):
                self.missing.append(noun)
        elif noun not in {thing.word for thing in self.things.values()}:
            self.things[f"place {noun}"] = SceneThing(
                f"place {noun}", noun, entry.pictogram, entry.kind, entry.cm, entry.stands
            )

    def _bare_text(self) -> str:
        sentences: Sequence[Sentence] = self.reading.sentences if self.reading else ()
        return " ".join(one.text for one in sentences if not one.events)

    def _time(self) -> str | None:
        if self.request.time_of_day:
            found = time_of(self.request.time_of_day)
            if found is None:
                self.missing.append(self.request.time_of_day)
            return found
        held = [one.time for one in reversed(self.reading.sentences) if one.time] if self.reading else []
        return _TIMES.get(held[0]) if held else time_of(self._bare_text())

    def _weather(self) -> str | None:
        held = [one.weather for one in reversed(self.reading.sentences) if one.weather] if self.reading else []
        if held:
            return held[0]
        said = " ".join(found.group(1) for found in _IN_WEATHER.finditer(self.prompt))
        words = re.findall(r"[a-z]+", f"{said} {self._bare_text()} {self.request.place}".lower())
        return next((found for found in (load_words().group("weather", word) for word in words) if found), None)

    def _winter(self) -> bool:
        return self.reading is not None and any(one.season == "winter" for one in self.reading.sentences)


def _shown(event: Event) -> bool:
    """Whether a picture of the sentence shows the event: it happens, or somebody tries in vain."""
    if event.standing != "told" or not event.visible:
        return False
    return not event.negated or event.modality in ("can", "try") or event.verb == "be"


def _phrase(entity: Entity) -> str:
    """A thing with what is said of its looks: "red helmet"."""
    return f"{' '.join(entity.looks)} {entity.noun or entity.name}"


def _is_vehicle(role: Role) -> bool:
    noun = noun_of(role.head)
    return noun is not None and noun.kind == "vehicle" and role.entity is not None


def _is_body(entity: Entity) -> bool:
    return entity.sort == "body" or entity.noun in ("hand", "head", "neck", "arm", "paw", "face", "cheek", "back")


def _plain(word: str) -> bool:
    """Whether a word says no more of a person than that it is one, or several."""
    return word in ("narrator", "person", "i", "someone") or load_words().has("group", word)


def _same_kind(kind: str, noun: str) -> bool:
    """Whether two words are one kind of person or animal: grandpa, grandfather."""
    one, other = noun_of(kind), noun_of(noun) if noun else None
    return one is not None and other is not None and one.pictogram == other.pictogram != "person"


def _called(prompt: str, characters: Sequence[Character]) -> tuple[str, dict[str, Character]]:
    """Return the prompt with plain first names for characters whose own a parser takes for something else.

    "Seven reads" has a number for it, "Emre and Deniz's grandfather" three people. The second value says who is called
    what now.
    """
    left = {sex: list(names) for sex, names in _STAND_INS.items()}
    stood: dict[str, Character] = {}
    for character in sorted(characters, key=lambda one: -len(one.name)):
        name = character.name.strip()
        word = name.lower()
        ambiguous = word in _NUMBERS or deed_of_verb(word) is not None or noun_of(word) is not None
        if not ("'s " in name or " and " in name or (name[:1].isupper() and " " not in name and ambiguous)):
            continue
        names = left[_nature(f"{character.kind} {character.appearance} {name}")[0]]
        pattern = rf"\b(?:[Tt]he )?{re.escape(name)}(?!\w)"
        if names and re.search(pattern, prompt):
            stood[names[0]] = character
            prompt = re.sub(pattern, names.pop(0), prompt)
    return prompt, stood


def _bare(name: str) -> str:
    return re.sub(r"^(the|a|an|my|his|her|their|our) ", "", name.strip().lower())


def _has(found: dict[str, Character], character: Character) -> bool:
    return any(one.name == character.name for one in found.values())


def _placed(text: str) -> str:
    """The part of a fragment that can name a place: "In the forest by day." ends before the time."""
    return re.split(r"\b(?:by day|at night|at dawn|at dusk|in the (?:morning|evening))\b", text.lower())[0]


def _known_mood(feeling: str) -> str | None:
    return "calm" if feeling == "bored" else feeling


def _nature(phrase: str) -> tuple[Literal["male", "female"] | None, Literal["child", "teen", "adult", "old"] | None]:
    """Sex and age that the words of a phrase tell ("old woman", "Mrs Lee, a teacher")."""
    words, tables = re.findall(r"[a-z-]+", phrase.lower()), load_words()
    sex: Literal["male", "female"] | None = None
    age: Literal["child", "teen", "adult", "old"] | None = None
    for word in words:
        if any(tables.has(name, word) for name in ("male", "kin.male", "titles.male")) or word in _HE:
            sex = sex or "male"
        if any(tables.has(name, word) for name in ("female", "kin.female", "titles.female")) or word in _SHE:
            sex = sex or "female"
        if in_table("teen", word):
            age = "teen"
        if tables.has("child", word):
            age = age or "child"
        if tables.has("old", word) or tables.has("old_looks", word) or tables.has("kin_old", word):
            age = age or "old"
    return sex, age


def _dressed(usual: SceneActor, sex: str | None, age: str | None, words: str) -> Look:
    """The look of a person: the noun's own, corrected by what the story says of sex, age, clothes and hair."""
    base = usual.look.base
    if base != "baby":
        own_sex, own_age = _OWN.get(base, (None, None))
        years = age if age in ("child", "teen", "old") else (own_age if age is None else None)
        base = _BASES.get((sex or own_sex, years), "child" if years == "child" else "person")
    return replace(usual.look, base=base, hair=hair_of(words), features=features_of(words))


def _attributes(looks: str) -> tuple[str, ...]:
    known = drawings("attributes")
    return tuple(name for name in attributes_in(looks.replace(",", " ").replace(".", " ")) if name in known)
