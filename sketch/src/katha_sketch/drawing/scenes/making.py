"""A scene that is being made: actors by entity, things, and the words that nothing was found for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from katha.protocols import FrameRequest
from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.pictograms import Noun, find_noun
from katha_sketch.drawing.places import place_data
from katha_sketch.drawing.scenes.cast import COUNTS, Cast, bare
from katha_sketch.drawing.scenes.prompts import known_of, plainly_called, read_prompt, uncompared
from katha_sketch.drawing.scenes.record import SceneActor, SceneThing, Shot
from katha_sketch.drawing.scenes.senses import (
    bodily_deed,
    bodily_mood,
    colour_of,
    done_state,
    held_in,
    here_called,
    hollow_of,
    in_table,
    is_heap,
    is_idiom,
    near_noun,
    noun_of,
    part_of,
    place_of,
    shot_of,
    size_of,
    source_state,
    states_of,
    unseen_part,
    whole_of,
)
from katha_sketch.english.types import Entity, Event, Reading, Role
from katha_sketch.vocabulary.inflect import singular

__all__ = ["HEAVENLY", "LIVING", "QUOTED", "Making", "of_owners", "one_of", "phrase_of"]

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


def of_particles(reading: Reading) -> Reading:
    """The reading with "in" as a part of its verb where something is put into what the text has named before: "dropped
    in three potatoes"."""
    return replace(reading, events=tuple(_of_particle(event) for event in reading.events))


def _of_particle(event: Event) -> Event:
    if not in_table("putting_in", event.verb) or event.particle or event.all("patient"):
        return event
    for role in event.all("place", "goal"):
        noun = noun_of(role.head)
        loose = noun is not None and noun.kind in _LOOSE_KINDS and hollow_of(noun.pictogram) is None
        if role.preposition == "in" and role.entity is not None and loose:
            roles = tuple(replace(one, role="patient", preposition="") if one is role else one for one in event.roles)
            return replace(event, particle="in", roles=roles)
    return event


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
    doer = Role("agent", owner.name, owner.noun or owner.name, owner.id, start=subject.start)
    if name is None and mood is None:
        shows = in_table("showing", event.verb) and part_of(part.noun) == "head"
        if not shows or not event.all("place", "goal", "source"):
            return event
        roles = tuple(doer if one is subject else one for one in event.roles)
        return replace(event, verb="be", particle="", roles=roles, passive=False)  # "his head rose through the hatch"
    verb = deed(name).words[0] if name is not None else "be"
    others = [one for one in event.all("companion", "recipient") if one.entity != owner.id]
    return replace(
        event, verb=verb, particle="", roles=(doer, *others), state=(), feeling=mood or event.feeling, passive=False
    )


def _owner(part: Entity, event: Event, reading: Reading) -> Entity | None:
    """Whose it is: its own owner or, of tears, that of the cheek."""
    near = [part, *(reading.entity(key) for key in event.who("goal", "place", "source"))]
    bodies = [one for one in near if one is part or "body" in (one.sort, one.noun) or part_of(one.noun)]
    owners = [one.owner for one in bodies if one.owner is not None]
    owner = reading.entity(owners[0]) if owners else None
    return owner if owner is not None and (owner.kind in _LIVING or owner.named or owner.character) else None


_SHOT = re.compile(
    r"^\s*(?:an? )?((?:extreme |very |full )?(?:wide|long|medium|mid|close|close[- ]up|establishing)(?:[- ]shot)?)"
    r"(?: of |: |, )",
    re.IGNORECASE,
)
_GREETING = re.compile(r" (?:goodbye|good-bye|good night|farewell|hello)\b")
"""Words that the parser takes for whom is kissed or waved to."""
_WHOLE = re.compile(
    r"\b(?:[Tt]he (?:whole|entire)|[Hh]alf (?:of )?the) (?:village|town|street|neighbou?rhood|school|city|room|house|"
    r"building|audience|hall|bus|place|office|hospital|caf[eé]|restaurant|carriage|valley|island|block|train|tram|boat|"
    r"ship|stadium|theatre|market|harbour|household|queue|court|ward|church|playground)\b"
)
"""Places that stand for all who are there."""
_WATERS = "the lake"
_PLAINLY = {"rubber boots": "wellingtons", "rubber boot": "wellington", "hiking boots": "boots", "ski boots": "boots"}
"""What the parser takes for a verb ("in rubber boots"), by another name."""
_ROUSED = re.compile(r"\b(?:shakes?|shook|nudges?d?|pokes?d?) ((?:[\w'-]+ ){1,4}?)awake\b")
"""Whom the parser has as a thing ("the narrator awake") who is shaken awake."""
_COUNTED = 12
"""Nobody counts more things than these in a picture."""
QUOTED = re.compile(r'["\u201c][^"\u201d]*["\u201d]')
_LIFELESS = frozenset({"device", "furniture", "instrument", "document", "container"})
LIVING = frozenset({"person", "animal", "being", "group"})
_SIZES = {"vehicle": 160.0, "building": 300.0, "furniture": 90.0, "food": 12.0, "drink": 10.0, "plant": 70.0,
          "clothing": 50.0, "music": 60.0, "container": 35.0, "animal": 60.0}  # fmt: skip
_KINDS = {"music": "instrument", "structure": "building"}
"""Kinds of the noun table by sorts of the reader that have another name."""
_BODILY = frozenset({"wet", "dirty", "frozen"})
"""What a deed leaves somebody in whom it is done to; "they opened" says nothing of them."""
_UNSEEN = frozenset({"region", "land", "structure", "water", "group", "weather", "feeling"})
"""Sorts of nouns that are no things: a shape for one of them tells nothing."""
HEAVENLY = frozenset({
    "sun", "full-moon", "crescent-moon", "star", "glowing-star", "comet", "ringed-planet",
    "globe-showing-europe-africa",
    "cloud", "cloud-with-rain", "cloud-with-lightning", "cloud-with-snow", "high-voltage", "rainbow", "fireworks",
})  # fmt: skip
"""Pictograms of what is far up in the sky."""
_POURED = frozenset({"drink"})
"""Kinds of things that bring their own vessel."""
_LINKS = frozenset({"with", "in", "of", "and", "or", "on", "the", "a", "an", "to", "his", "her", "their", "its"})
"""What parts a thing from a colour before it: a pink dress with leaves."""
_OWN_COLOURS = frozenset({"food", "drink", "landscape", "sky", "animal", "person"})
"""Kinds of things that keep their colours: white bread is no white picture of bread."""
_LOOSE_KINDS = frozenset({"food", "drink", "plant"})
"""Kinds of things that are put into something and that nothing is put into."""
_LOOSE = frozenset({"lid", "tooth", "bone", "skull", "feather", "egg", "organ"})
"""Parts of a body that lie about by themselves."""


class Making:
    """One request on its way to a scene."""

    def __init__(self, request: FrameRequest) -> None:
        self.request = request
        self.afloat = next((word for word in bare(request.place).split() if in_table("boats", word)), None)
        if self.afloat is not None:
            request = self.request = replace(request, place=_WATERS)
        self.place = place_of(request.place) if request.place else None
        for told, plain in _PLAINLY.items():
            request = self.request = replace(request, prompt=re.sub(rf"\b{told}\b", plain, request.prompt))
        request = self.request = replace(request, prompt=_ROUSED.sub(r"wakes \1up", request.prompt))
        found = _SHOT.match(request.prompt)
        self.prompt = request.prompt[found.end() :] if found else request.prompt
        self.shot: Shot | None = shot_of(request.shot_size) or (shot_of(found.group(1)) if found else None)
        self.prompt = _WHOLE.sub("The crowd", uncompared(self.prompt))
        self.prompt, stood = plainly_called(_GREETING.sub("", self.prompt), request.characters)
        self.reading = read_prompt(self.prompt, known_of(stood, request.characters))
        if self.reading is not None:
            self.reading = of_particles(of_owners(self.reading))
            verbs = {event.verb for event in self.reading.events}
            shown = [one for one in request.must_show if not any(is_idiom(verb, one) for verb in verbs)]
            here = [here_called(self.place, one, self.prompt) for one in shown]
            self.request = replace(request, must_show=tuple(one for one in here if one))
        self.actors: dict[str, SceneActor] = {}
        self.things: dict[str, SceneThing] = {}
        self.missing: list[str] = []
        self.roads: set[str] = set()
        self.pictured: set[str] = set()
        self.cast = Cast(request, self.reading, self.missing, stood)
        self.named = self.cast.named

    def _id(self, key: str) -> str:
        """The actor of an entity, cast when it is first needed; a group whose members are known is its first."""
        if key not in self.actors:
            assert self.reading is not None
            actor = self.cast.actor(self.reading.entity(key))
            actor = replace(actor, states=self._states(self.reading.entity(key)))
            if actor.cm is not None and actor.kind == "pictogram":
                actor = replace(actor, cm=actor.cm * size_of(self.reading.entity(key).looks))
            if self.things.pop(key, None) is not None:  # it was only there, and now it does something
                for other, one in self.actors.items():
                    self.actors[other] = replace(one, target=actor.id) if one.target == key else one
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
        return name in self.prompt and name not in QUOTED.sub("", self.prompt)

    def _entity(self, key: str) -> Entity:
        assert self.reading is not None
        return self.reading.entity(key)

    def _alive(self, key: str) -> bool:
        """Whether somebody is meant; a toy is a thing unless it does something."""
        entity = self._entity(key)
        toy = (
            entity.noun
            and (noun := noun_of(entity.noun)) is not None
            and (
                noun.kind == "toy" or (entity.kind == "animal" and noun.kind in _LIFELESS)  # a cuckoo clock
            )
        )
        if toy and key not in self._doers():
            return False
        if key in self.named:
            kind = noun_of(self.named[key].kind)
            # An engine that acts elsewhere in the story is only there.
            return entity.kind in LIVING or kind is None or kind.acts == "yes" or key in self._doers()
        if entity.kind not in LIVING:
            return False
        noun = noun_of(entity.noun) if entity.kind in ("being", "animal") else None
        return noun is None or noun.kind != "toy" or key in self._doers()

    def _doers(self) -> set[str]:
        assert self.reading is not None
        return {key for event in self.reading.events for key in event.who("agent")}

    def _on_horseback(self, event: Event) -> bool:
        """Whether who rides and says not what is somebody that rides horses: a knight, a messenger, a king."""
        if any(self._is_mount(role) for role in event.roles[1:]):
            return False
        words = [word for key in event.who("agent") for word in self._called(key).lower().split()]
        return any(in_table("horsemen", word) for word in words)

    def _called(self, key: str) -> str:
        """Every word by which somebody is known."""
        entity, character = self._entity(key), self.named.get(key)
        return f"{entity.name} {entity.noun} {character.name + ' ' + character.kind if character else ''}"

    def _is_mount(self, role: Role) -> bool:
        """Whether a role names what could be ridden: somebody, a vehicle."""
        noun = noun_of(role.head)
        return role.entity is not None and (self._alive(role.entity) or (noun is not None and noun.kind == "vehicle"))

    def _role_thing(self, role: Role, holder: str | None, what: Literal["object", "instrument", "goal"]) -> str | None:
        if role.entity is None or self._alive(role.entity):
            return None
        return self._thing(self._entity(role.entity), holder, what, role.head)

    def _thing(
        self,
        entity: Entity,
        holder: str | None,
        what: Literal["object", "instrument", "goal", "scenery"],
        head: str = "",
    ) -> str | None:
        """Put a thing into the scene, once; None for what cannot be seen. What no table has is a plain shape."""
        for other in entity.members if entity.noun else ():
            self._thing(self._entity(other), holder if what != "object" else None, what)
        measured = bool(head) and in_table("skip", entity.noun) and noun_of(head) is not None
        head = head if measured else entity.noun or head  # a jar of water is a jar
        here = here_called(self.place, head, self.prompt)
        if head == "water" and self._flows(entity.id):
            here = "wave" if self._overcomes(entity.id) else "puddle"
        own = here != head
        head = here
        if entity.id in self.things or entity.id in self.actors or self._idiom(entity.id):
            return None
        if not head or in_table("skip", head) or (entity.sort == "body" and entity.noun not in _LOOSE):
            return None
        if is_heap(head, self.prompt.lower()) or unseen_part(entity.name):
            return None
        if own and (told := self._told_whole(head, entity)) is not None:
            return told.id if told.id in self.things else self._thing(told, holder, what, told.noun)
        if (part_of_it := whole_of(head, self.prompt)) is not None and not own:
            return self._whole(part_of_it, entity, holder, what)
        whole = find_noun(entity.name.lower()) is not None or " of " not in entity.name
        whole = whole and not entity.members  # the name of a list is that of its last
        named = [] if measured or own else [*([entity.name] if whole else []), entity.noun]
        filled = self._measure(head) or self._measure(entity.noun)
        noun = find_noun(filled) if filled else noun_of(*named, head)  # a photo of the wife is a photo
        noun = noun or near_noun(head)
        vessel = held_in(entity.noun or head, self.prompt) if not filled else None
        content = noun
        if vessel is not None and (noun is None or noun.kind not in _POURED):
            noun = find_noun(vessel)
        if filled and noun is not None:  # a reel of thread is one thing, and two of the text's
            again = next((one.id for one in self.things.values() if one.word == noun.word), None)
            if again is not None:
                return again
        if noun is not None and (there := self._vessel(noun, filled=vessel is not None)) is not None:
            if vessel is not None and content is not None:
                self._fill(there, content)
            return there
        if noun is None:
            if self._is_unseen(entity, head, holder):
                return None
            self.missing.append(head)
            if entity.sort in _UNSEEN:
                return None
        count = self._count(entity, head, noun, filled)
        if noun is not None:
            thing = SceneThing(
                entity.id, noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, what, holder, count
            )
        else:
            size, kind = _SIZES.get(entity.sort, 30.0), _KINDS.get(entity.sort, entity.sort)
            thing = SceneThing(entity.id, head, None, kind, size, "ground", what, holder, count)
        by = size_of(entity.looks)
        shade = self._shade(entity, thing.word) if thing.kind not in _OWN_COLOURS else None
        self.things[entity.id] = replace(thing, cm=by * thing.cm, states=self._states(entity), colour=shade)
        self.things[entity.id] = replace(self.things[entity.id], shows=self._shown_by(entity))
        self._through_window(entity.id)
        if vessel is not None and noun is not None and content is not None and content.pictogram != noun.pictogram:
            self._fill(entity.id, content)
        return entity.id

    def _is_unseen(self, entity: Entity, head: str, holder: str | None) -> bool:
        """Return whether what no table has is nothing that a plain shape could stand for."""
        return (
            in_table("parts", head)  # a handle of nobody knows what
            or entity.kind in ("abstract", "place")
            or place_of(head) is not None
            or entity.sort in ("abstract", "time", "event")
            or (not entity.sort and holder is None)
        )

    def _count(self, entity: Entity, head: str, noun: Noun | None, filled: str | None) -> int:
        """Return how many of a thing are drawn: as many as the text counts, else at most three, or a pair."""
        words = {head, head.split()[-1], noun.word if noun is not None else ""}
        one = any(in_table("single", word) for word in words) or (filled is not None and filled in self.prompt.lower())
        pair = any(in_table("pairs", word) for word in (head, entity.noun))
        number = self._number(entity)
        return number if number > 1 else 1 if one or entity.members else min(entity.count or 3, 2 if pair else 3)

    def _number(self, entity: Entity) -> int:
        """How many of a thing the text counts, 0 where it does not."""
        if not entity.noun:
            return 0
        pattern = rf"\b({'|'.join(COUNTS)}|\d+) (?:[\w-]+ ){{0,2}}{re.escape(entity.noun)}(?:s|es)?\b"
        found = re.search(pattern, self.prompt.lower())
        told = found.group(1) if found is not None else "0"
        return min(int(told) if told.isdigit() else COUNTS[told], _COUNTED)

    def _through_window(self, key: str) -> None:
        """What stands in the sky is seen through a window by who is in a room."""
        thing, indoors = self.things[key], self.place is not None and place_data(self.place).indoors
        if indoors and thing.kind == thing.stands == "sky" and thing.pictogram in HEAVENLY:
            self.things[key] = replace(
                thing,
                word="window",
                pictogram="window",
                kind="building",
                cm=110.0,
                stands="wall",
                shows=thing.pictogram,
            )

    def _vessel(self, noun: Noun, filled: bool) -> str | None:
        """The vessel that is there already, where its name and what is in it are two of the text's things."""
        there = next((one.id for one in self.things.values() if one.pictogram == noun.pictogram), None)
        return there if there is not None and (filled or f"{there} inside" in self.things) else None

    def _fill(self, key: str, content: Noun) -> None:
        """Put into a vessel what is told to be in it: a sack of potatoes, a basket of apples."""
        if content.kind in _POURED:
            return
        inside = f"{key} inside"
        self.things[key] = replace(self.things[key], count=1)
        self.things[inside] = SceneThing(
            inside, content.word, content.pictogram, content.kind, content.cm, content.stands, at=key, where="in"
        )

    def _whole(
        self, word: str, part: Entity, holder: str | None, what: Literal["object", "instrument", "goal", "scenery"]
    ) -> str | None:
        """The thing of which a part is told; None where somebody has it."""
        assert self.reading is not None
        whole, noun = self._told_whole(word, part), find_noun(word)
        if whole is None and noun is not None and noun.kind not in ("animal", "person"):
            self.things[part.id] = SceneThing(
                part.id, noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, what, holder
            )
            return part.id
        if whole is None or whole.kind in LIVING or not whole.noun:
            return None
        if whole.id in self.things:
            return whole.id
        return self._thing(whole, holder, what, whole.noun)

    def _told_whole(self, word: str, part: Entity) -> Entity | None:
        """What of the text the whole is that `word` says: its phone is the mobile phone of "the phone's screen"."""
        assert self.reading is not None
        noun, others = find_noun(word), [one for one in self.reading.entities if one.id != part.id]
        alike = (one for one in others if noun and one.noun in part.name.split() and _drawn(one) == noun.pictogram)
        return next((one for one in others if one.noun == word), None) or next(alike, None)

    def _shade(self, entity: Entity, head: str) -> str | None:
        """The colour that the text tells of a thing, also where a measure stands before it: "a pair of red shoes"."""
        nouns = "|".join(re.escape(one) for one in (entity.noun, head) if one)
        found = re.search(rf"((?:[\w-]+ ){{1,2}})(?:{nouns})\b", self.prompt, re.IGNORECASE)
        near = found.group(1).lower().split() if found else []
        near = near if not near or near[-1] not in _LINKS else []
        return colour_of(entity.looks) or colour_of(near)

    def _shown_by(self, entity: Entity) -> str | None:
        """The pictogram of what a picture is of ("a drawing of a red boat"), which is nowhere else in the scene."""
        if not in_table("pictures", entity.noun):
            return None
        told = re.search(rf"\b{re.escape(entity.noun)}s? of ((?:[\w'-]+ ?){{1,5}})", self.prompt)
        words = told.group(1).split() if told is not None else []
        assert self.reading is not None
        for size in range(len(words), 0, -1):
            phrase = " ".join(words[:size])
            named = next((one for one in self.request.characters if bare(one.name) == bare(phrase)), None)
            noun = noun_of(named.kind if named is not None else bare(phrase))
            if noun is not None and (named is not None or singular(words[size - 1].lower()) in noun.word):
                others = [one for one in self.reading.entities if one.id != entity.id]
                self.pictured |= {one.id for one in others if phrase.lower().endswith(bare(one.name))}
                return noun.pictogram
        return None

    def _measure(self, noun: str) -> str | None:
        """The measure that the prompt names it by, where that has a picture of its own: "bag of coffee"."""
        pattern = rf"\b(?:{re.escape(noun)}s? of (?:\w+ )?\w+|[\w-]+ of (?:\w+ )?{re.escape(noun)})\b"
        for found in re.finditer(pattern, self.prompt.lower()) if noun else ():
            words = found.group().split()
            for phrase in (" ".join(words), f"{words[0]} of {words[-1]}", " ".join(words[:3])):
                one = next((one for one in (phrase, one_of(phrase)) if find_noun(one) is not None), None)
                if one is not None:
                    return one
        return None

    def _flows(self, key: str) -> bool:
        """Whether water does something of its own accord (drips, leaks, runs down), so that it is seen."""
        assert self.reading is not None
        return any(key in event.who("agent") and event.standing == "told" for event in self.reading.events)

    def _overcomes(self, key: str) -> bool:
        """Whether water does something to somebody or something: it sweeps the bridge away."""
        assert self.reading is not None
        return any(key in event.who("agent") and event.who("patient") for event in self.reading.events)

    def _idiom(self, key: str) -> bool:
        assert self.reading is not None
        noun = self._entity(key).noun
        return any(is_idiom(event.verb, noun) for event in self.reading.events if key in event.who("patient"))

    def _states(self, entity: Entity) -> tuple[str, ...]:
        """What has become of somebody or something: what is told of its looks, and what happens to it."""
        assert self.reading is not None
        words, found = [look.lower() for look in entity.looks], list[str]()
        for event in self.reading.events:
            if event.standing != "told" or event.negated or event.modality in ("want", "will", "may", "try"):
                continue
            doers, patients = event.who("agent"), event.who("patient")
            if entity.id in (doers or patients):
                words += [word for text in event.state for word in text.lower().split()]
            if doers and entity.id in patients and entity.kind not in LIVING:
                words += [word for text in event.state for word in text.lower().split()]  # "held the door open"
            if entity.id in (patients or doers):
                words += event.particle.split()  # "swung open"
                done = done_state(event.predicate, event.verb)
                found += [done] if done is not None else []
            if entity.id in (doers or patients):  # "on fire", "in flames"
                on = [source_state(one.head) for one in event.all("place") if one.preposition in ("on", "in")]
                found += [one for one in on if one == "burning"]
                found += [
                    "fallen" for one in event.all("place", "goal") if (one.preposition, one.head) == ("on", "side")
                ]
            if entity.id in event.who("source", "place"):
                out = [source_state(self._entity(key).noun) for key in doers]
                found += [one for one in out if one is not None]
        if in_table("flames", entity.noun):  # a candle burns and is not on fire
            words, found = (
                ["lit" if one == "burning" else one for one in words],
                [one for one in found if one != "burning"],
            )
        alive = entity.kind in LIVING
        return tuple(dict.fromkeys((*(one for one in found if not alive or one in _BODILY), *states_of(words))))


def _drawn(entity: Entity) -> str | None:
    noun = find_noun(entity.noun) if entity.noun else None
    return noun.pictogram if noun is not None else None


def one_of(phrase: str) -> str:
    """ "Slices of bread" as "slice of bread"."""
    head, _, rest = phrase.partition(" of ")
    return f"{singular(head)} of {rest}"


def phrase_of(entity: Entity) -> str:
    """A thing with what is said of its looks: "red helmet"."""
    return f"{' '.join(entity.looks)} {entity.noun or entity.name}"
