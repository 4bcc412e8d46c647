"""From a frame's request to its scene: the prompt is read, and its words become a place, actors with deeds, and things.

What happens is drawn; what is denied, reported or imagined is not. The panel's fields (place, time, shot, must_show)
go before the text. What no table knows is drawn as a plain shape or a neutral pose, and its word is kept in
`not_drawn`, so that a caption can say it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from katha.protocols import FrameRequest
from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.pictograms import Noun, find_noun
from katha_sketch.drawing.places import place_data
from katha_sketch.drawing.scenes.cast import NUMBERS, bare, has
from katha_sketch.drawing.scenes.doing import is_shown
from katha_sketch.drawing.scenes.making import LIVING, one_of, phrase_of
from katha_sketch.drawing.scenes.nested import Nested
from katha_sketch.drawing.scenes.record import Scene, SceneActor, SceneThing
from katha_sketch.drawing.scenes.relations import WALL
from katha_sketch.drawing.scenes.senses import (
    concept_of,
    features_of,
    hollow_of,
    implied_place,
    in_table,
    near_noun,
    noun_of,
    place_by_things,
    place_of,
    seen_from_outside,
    stage_by_kinds,
    state_deed,
    whole_of,
    worn_in,
)
from katha_sketch.drawing.scenes.wearing import CLAUSE
from katha_sketch.drawing.scenes.where import Where
from katha_sketch.english.types import Entity, Event
from katha_sketch.english.words import load_words
from katha_sketch.vocabulary.inflect import singular

__all__ = ["Told", "scene_of", "tell"]

_TO_BE = re.compile(r"\b(?:is|are|stands?) ")
_SETTINGS = frozenset({"vehicle", "building", "landscape"})
"""Kinds of things that a place can be, and that are not drawn again in it."""
_HUGE = 600.0
"""A part of the country higher than this (centimetres) is no thing beside others."""
_LEVEL = frozenset({"", "eye level", "eye-level", "front", "frontal", "straight", "straight on", "level", "normal"})
_PHRASE, _SENTENCE = 5, 3
"""A phrase of must_show longer than the first tells what the prompt tells; one as long as the second may."""
_IN_CAR = frozenset(
    {"sit", "drive", "sleep", "talk", "phone", "listen", "sing", "laugh", "cry", "argue", "think", "shout"}
)
"""What is done on the seats of a car; who does something else there is drawn beside it."""
_GAMES = frozenset({"chess_set", "board_game", "deck_of_cards"})
_HANDY = 40.0
"""What is smaller (centimetres) is in the hand of whose it is."""
_FREE_HANDED = frozenset(
    {"stand", "walk", "sit", "sit_floor", "argue", "laugh", "look", "wait", "run", "sit_at", "sigh"}
)
"""Deeds for which one hand is enough."""
_LARGE = 80.0
"""What is larger (centimetres) nobody passes on by hand."""
_EVERYBODYS = frozenset({"top", "dress", "trousers"})
"""What each figure has on, whatever is told."""
_MOST = 5
"""More actors than this are too small to tell apart."""


def _meant(words: str) -> str:
    """What a phrase is: of a measure ("a cup of tea") what is measured, else its head ("a photo of the wife")."""
    head, _, rest = words.partition(" of ")
    last, tables = head.split()[-1] if head else "", load_words()
    measured = tables.has("quantity", singular(last)) or tables.has("relational", last) or noun_of(head) is None
    return rest if rest and measured else head


def _measured(words: str) -> Noun | None:
    """The entry of a measure with what it measures ("two sheets of paper"), where the two have a picture together."""
    found = noun_of(one_of(words)) if " of " in words else None
    return found if found is not None and " of " in found.word else None


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


def _unseen(name: str) -> bool:
    """Whether what does something is nothing that can be seen: a noise wakes the street."""
    return in_table("skip", name.split()[-1] if name else "")


def _suited(actor: SceneActor, suit: str | None) -> SceneActor:
    """A person in the suit without which nobody lives where they are."""
    if suit is None or actor.kind != "person":
        return actor
    return replace(actor, look=replace(actor.look, features=(*actor.look.features, suit)))


class _Teller(Nested):
    """One request on its way to a scene."""

    def told(self) -> Told:
        """Return the scene and what is not drawn."""
        told = [event for event in self.reading.events if event.standing == "told"] if self.reading else []
        events = [event for event in told if is_shown(event)] or [event for event in told if not event.negated]
        gone = [one for one in events if one.verb in ("be", "have") and in_table("gone", " ".join(one.state))]
        wearing = [one for one in events if one.verb == "wear" and not one.who("recipient")]
        doers = {key for one in events if one not in wearing for key in self._spread(one.who("agent"))}
        wearing = [one for one in wearing if {*self._spread(one.who("agent"))} <= doers]
        events = [one for one in events if one not in gone and one not in wearing]
        told = [one for one in told if one not in gone and one not in wearing]
        self._enact(events, [one for one in told if one.negated and one not in events])
        for event in wearing:
            self._dress(event)
        for event in [*events, *wearing]:
            self._clothe(event)
            self._clothed_in(event)
        self._on_own_body()
        self._told_about()
        self._bystanders(events)
        self._at_it()
        self._fragments()
        self._panel_cast()
        self._related(events)
        self._in_phrases(events)
        where = Where(self.request, self.prompt, self.reading, self.things, self.roads, self.missing)
        setting, time, weather = where.setting(events), where.time(), where.weather()
        self._must_show(setting)
        self._settle()
        setting = self._seen_at(setting if setting is not None else self._implied_setting())
        if setting is not None and place_data(setting).indoors:
            self._within_walls()
        if weather is None and where.winter() and setting is not None and not place_data(setting).indoors:
            weather = "snow"
        assert self.reading is not None
        self.missing += [one.noun for one in self.reading.entities if self._unknown(one)]
        angle = self.request.shot_angle.strip().lower()
        if angle not in _LEVEL:
            self.missing.append(self.request.shot_angle)
        cast = self._cast_of(setting)
        scene = Scene(setting, weather, time, tuple(cast[:_MOST]), self._scenery(setting), self.shot, where.states())
        return Told(scene, tuple(dict.fromkeys(self.missing)))

    def _enact(self, events: Sequence[Event], negated: Sequence[Event]) -> None:
        """Put what the events tell into the scene, the deed that shows most first; of those negated who is there."""
        chosen = self._chosen(events)
        for event in sorted(chosen, key=lambda one: -self._worth(one)):
            self._act(event)
        for event in events:
            if event not in chosen and event.verb == "wear":
                for role in event.all("patient"):
                    self._put_on(role, [key for key in event.who("agent") if key in self.actors])
            if event not in chosen:
                self._lend_thing(event)
                self._carried_along(event)
        for event in [*events, *negated]:
            self._present(event, acted=event in chosen or event.negated)
        for event in events:
            self._speaks(event)

    def _implied_setting(self) -> str | None:
        """Return the place that the deeds or the things of a scene imply of which none is told."""
        doors = any(thing.pictogram == "door" for thing in self.things.values())  # a doorstep has one of its own
        places = (implied_place(one.deed) for one in self.actors.values() if not (doors and one.deed == "knock"))
        setting = next((place for place in places if place), None)
        if setting is None:
            setting = place_by_things(thing.pictogram for thing in self._there() if thing.pictogram)
        if setting is None and not self.request.place:
            setting = stage_by_kinds(thing.kind for thing in self._there())
        return setting

    def _seen_at(self, setting: str | None) -> str | None:
        """Return the place as it is seen: from outside a vehicle or where somebody rides, and at the door by who knocks
        at it."""
        outdoors = any(deed(actor.deed).thing == "around" or actor.deed == "ride" for actor in self.actors.values())
        vehicles = {one.id for one in self.things.values() if one.kind == "vehicle"}
        outdoors = outdoors or any(one.where == "in" and one.at in vehicles for one in self.actors.values())
        outdoors = outdoors or (setting == "car" and any(one.deed not in _IN_CAR for one in self.actors.values()))
        if setting is not None and outdoors:
            setting = seen_from_outside(setting)
        if setting == "living_room" and any(actor.deed == "knock" for actor in self.actors.values()):
            setting = "doorstep"
        return setting

    def _cast_of(self, setting: str | None) -> list[SceneActor]:
        """Return those who are drawn, in the suit that the place needs: no places themselves, and nothing unseen."""
        cast = [one for one in self.actors.values() if one.kind != "pictogram" or setting is None or one.deed != "stand"
                or place_of(one.id) != setting]  # fmt: skip
        cast = [one for one in cast if one.kind != "pictogram" or one.pictogram or not _unseen(one.id)]
        return [_suited(one, worn_in(setting)) for one in cast]

    def _unknown(self, entity: Entity) -> bool:
        """Whether a thing is of a kind that nobody has heard of and nothing shows."""
        noun = entity.noun
        if entity.kind != "thing" or entity.sort or not noun or {entity.id} & {*self.things, *self.actors}:
            return False
        known = noun_of(entity.name, noun) or near_noun(noun) or concept_of(noun) or place_of(noun)
        return not (known or in_table("skip", noun) or in_table("parts", noun))

    def _within_walls(self) -> None:
        """Every room has walls: what hangs on one is on the room's; only who is at one or paints it has it beside."""
        walls = {key for key, thing in self.things.items() if thing.pictogram == WALL}
        for key in walls - {there for actor in self.actors.values() for there in (actor.at, actor.target)}:
            del self.things[key]
            for other, thing in self.things.items():
                if thing.at == key:
                    stands = "wall" if thing.where == "on" else thing.stands
                    self.things[other] = replace(thing, at=None, stands=stands)

    def _there(self) -> list[SceneThing]:
        """The things that are where the scene is, and not in somebody's mind."""
        minded = {one.id for one in self.actors.values() if deed(one.deed).thing == "thought"}
        return [thing for thing in self.things.values() if thing.held_by not in minded]

    def _perched(self) -> None:
        """Whoever has no rig and sits or lies on a thing is on its top: a butterfly on a flower."""
        for key, actor in self.actors.items():
            there = self.things.get(actor.target or "")
            if actor.kind == "pictogram" and there is not None and deed(actor.deed).thing == "under":
                self.things[there.id] = replace(there, held_by=None, role="object")
                self.actors[key] = replace(actor, target=None, at=there.id, where="on")

    def _settle(self) -> None:
        """One door for who knocks and who opens; what lies about goes into the bubble of who speaks of it."""
        openers = [actor.id for actor in self.actors.values() if actor.deed in ("open", "open_box", "lift_lid")]
        for key, actor in self.actors.items():
            if actor.deed == "knock" and openers:
                self.actors[key] = replace(actor, deed="wave", target=None)
        self._perched()
        self._rows()
        seated = [actor for actor in self.actors.values() if "wheelchair" in actor.look.features]
        for key, actor in self.actors.items():
            pushed = self.things.get(actor.target or "")
            if seated and pushed is not None and pushed.pictogram == "manual-wheelchair" and actor not in seated:
                del self.things[pushed.id]
                self.actors[key] = replace(actor, target=seated[0].id)
        self._in_own_hand()
        self._games()
        loose = [name for name, thing in self.things.items() if name.startswith("shown ") and thing.held_by is None]
        for key, actor in self.actors.items():
            if loose and actor.says is None and actor.kind != "pictogram" and actor.deed == "talk":
                told = self.things.pop(loose.pop(0))
                self.actors[key] = replace(actor, says=told.pictogram)

    def _in_own_hand(self) -> None:
        """Whose small thing lies about has it in hand, where the hands are free: passengers their phones."""
        taken = {thing.held_by for thing in self.things.values()}
        for key, thing in self.things.items():
            owner = None if key.startswith(("shown", "picture")) or key == "sign" else self._owner_of(key)
            actor = self.actors.get(owner or "")
            if actor is None or actor.kind != "person" or actor.id in taken or thing.held_by or thing.at is not None:
                continue
            small = thing.stands == "hand" and thing.cm <= _HANDY and thing.kind not in ("food", "clothing")
            if (
                small
                and deed(actor.deed).own is None
                and actor.deed in _FREE_HANDED
                and not in_table("aimed", actor.deed)
            ):
                self.things[key] = replace(thing, held_by=actor.id, role="instrument", count=1)
                taken.add(actor.id)

    def _games(self) -> None:
        """Who plays while a board or cards lie about plays that."""
        game = next((key for key, one in self.things.items() if one.pictogram in _GAMES and one.held_by is None), None)
        for key, actor in self.actors.items():
            if game is not None and actor.deed == "play" and actor.kind == "person" and actor.target in (None, game):
                self.actors[key] = replace(actor, deed="play_board", posture=None)
                self.things[game] = replace(self.things[game], held_by=actor.id, role="object", at=None)
                game = None

    def _owner_of(self, key: str) -> str | None:
        assert self.reading is not None
        known = {entity.id: entity.owner for entity in self.reading.entities}
        return known.get(key)

    def _rows(self) -> None:
        """All who stand by when things are passed along pass one; who is slept on sits; a window has its own people."""
        deeds = {actor.deed for actor in self.actors.values()}
        if "lean_out" in deeds or any(actor.posture == "lean_out" for actor in self.actors.values()):
            self.things = {name: one for name, one in self.things.items() if one.pictogram != "window"}
        if "pass_along" in deeds:  # the chain is of people
            self.things = {name: one for name, one in self.things.items() if one.word != "chain"}
        hosts = {actor.at for actor in self.actors.values() if actor.deed == "nod_off"}
        for key, actor in self.actors.items():
            if actor.deed == "stand" and actor.id in hosts and actor.kind == "person":
                self.actors[key] = replace(actor, deed="sit")
            if actor.deed == "stand" and "pass_along" in deeds and actor.kind == "person" and actor.at is None:
                self.actors[key] = replace(actor, deed="pass_along")
        row = [key for key, actor in self.actors.items() if actor.deed == "pass_along"]
        among = {self.actors[key].id for key in row} | {None}
        loose = [one for one in self.things.values() if one.held_by in among and one.at is None and one.cm < _LARGE]
        for key, thing in zip(row, loose, strict=False):
            self.things[thing.id] = replace(thing, held_by=self.actors[key].id, role="object")
            self.actors[key] = replace(self.actors[key], target=thing.id)
        for thing in loose[len(row) :]:
            self.things[thing.id] = replace(thing, held_by=None)

    # Who is who.

    def _bystanders(self, events: Sequence[Event]) -> None:
        """Those whom the prompt names beside an event: from whom something is stolen, whose knee is bandaged, whose
        suitcase bursts while nobody else is there. The deed is done to them where it is done to nobody yet."""
        if self.reading is None:
            return
        used = {role.entity for event in self.reading.events for role in event.roles}
        shown = {event.sentence for event in events}
        owned = {one.owner: one for one in self.reading.entities if one.owner is not None}
        for entity in self.reading.entities:
            if entity.id in used | self.actors.keys() | self.pictured or entity.members or not self._alive(entity.id):
                continue
            if not shown & set(entity.sentences) or not self._spread([entity.id]) or self._is_grouped(entity.id):
                continue
            if entity.narrator or not (entity.noun or entity.named):
                continue  # "her mother" is there, and who she is not
            own = owned.get(entity.id)
            alone = not any(actor.kind != "pictogram" for actor in self.actors.values())
            if own is not None and (own.kind in LIVING or (own.sort not in ("body", "abstract") and not alone)):
                continue
            name = self._id(entity.id)
            for key, actor in self.actors.items():
                row = deed(actor.deed)
                faced = (row.partner == "front" or row.close is not None) and actor.kind != "pictogram"
                held = actor.target is None or actor.target in self.things
                if key != entity.id and faced and held and actor.deed != "stand":
                    if actor.target in self.things:
                        self.things[actor.target] = replace(self.things[actor.target], held_by=actor.id)
                    self.actors[key] = replace(actor, target=name)
                    break

    def _at_it(self) -> None:
        """Who is told with what they are doing and does nothing else: "past the sleeping dog"."""
        moved = {actor.target for actor in self.actors.values() if deed(actor.deed).lends is not None}
        for entity in self.reading.entities if self.reading is not None else ():
            actor = self.actors.get(entity.id)
            name = state_deed(word.lower() for word in entity.looks)
            if actor is not None and name is not None and actor.deed == "stand" and actor.id not in moved:
                self.actors[entity.id] = replace(actor, deed=name)

    def _is_grouped(self, key: str) -> bool:
        """Whether somebody is shown already as one of several."""
        assert self.reading is not None
        return any(key in one.members and one.id in self.actors for one in self.reading.entities)

    def _fragments(self) -> None:
        """What a sentence without a verb names ("A rope."), and what comes along with somebody ("with a basket")."""
        if self.reading is None:
            return
        bare = {sentence.index for sentence in self.reading.sentences if not sentence.events}
        for entity in self.reading.entities:
            if entity.id in self.actors or entity.id in self.things or not bare & set(entity.sentences):
                continue
            if entity.kind in LIVING and not entity.members:
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
            if entity.id in self.pictured:
                continue
            called = phrase_of(entity)
            if (features_of(called) or features_of(f"{called}s")) and any(
                actor.kind == "person" for actor in self.actors.values()
            ):
                self._dressed_in(entity)
                continue
            if self._spoken(entity):
                continue
            told = any(is_shown(event) for event in self.reading.of(entity.sentences[0]))
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
        """Who has a thing that stands in "NAME with a THING"; whoever does something has it for that ("splashes the boy
        with paint")."""
        doers = [actor for actor in self.actors.values() if actor.deed != "stand" and actor.kind != "pictogram"]
        for key, actor in self.actors.items():  # "the man with the flute"
            noun = self._entity(key).noun if not key.startswith(("panel", "shown", "crowd")) else ""
            whose = rf"\b{re.escape(noun)} with (?:an?|the|his|her|their) (?:[\w-]+ ){{0,3}}{re.escape(thing.noun)}\b"
            if noun and thing.noun and re.search(whose, self.prompt, re.IGNORECASE):
                return actor.id
        if doers and thing.noun and re.search(rf"\bwith (?:[\w-]+ ){{0,4}}{re.escape(thing.noun)}", self.prompt):
            return doers[0].id
        for key, actor in self.actors.items():
            entity = self._entity(key) if not key.startswith(("panel", "shown", "crowd")) else None
            for name in (entity.name.split()[-1], entity.noun) if entity is not None else ():
                pattern = rf"\b{re.escape(name)} with (?:[\w-]+ ){{0,4}}{re.escape(thing.noun)}"
                if name and thing.noun and re.search(pattern, self.prompt, re.IGNORECASE):
                    return actor.id
        return None

    def _panel_cast(self) -> None:
        """Characters of the panel whom the prompt does not name."""
        there = {bare(actor.id) for actor in self.actors.values()} | self.pictured
        for character in self.request.characters:
            if bare(character.name) not in there and not has(self.named, character):
                name = bare(character.name)
                actor = self.cast.one(name, [character.kind], character.appearance, None)
                count = NUMBERS.get(character.appearance.lower().split(" ")[0], 1)
                self.actors[f"panel {name}"] = replace(actor, count=count)

    def _must_show(self, setting: str | None) -> None:
        """Things that the panel has to show and the text did not bring."""
        drawn = {name for thing in self.things.values() for name in (thing.word.lower(), thing.pictogram) if name}
        drawn |= {own for actor in self.actors.values() if (own := deed(actor.deed).own) is not None}
        figures = {name for actor in self.actors.values() for name in (actor.pictogram, actor.concept) if name}
        for phrase in self.request.must_show:
            words = bare(phrase)
            seen = noun_of(words)
            place = place_of(words if seen is None else words.split()[-1])  # a green net is no park
            if len(words.split()) > _PHRASE or (place is not None and (place == setting or seen is None)):
                continue
            hung = words == "wall" and any(one.stands == "wall" for one in self.things.values())
            if hung or in_table("skip", words) or whole_of(words.partition(" of ")[0], self.prompt) is not None:
                continue
            noun = find_noun(words) or _measured(words) or noun_of(_meant(words))
            ids = {word for actor in self.actors.values() for word in actor.id.split()}
            if self._is_dressed(words, noun):
                continue
            if words in ids or _TO_BE.search(words) or (len(words.split()) > 1 and words.split()[0] in ids):
                continue
            if noun is None and len(words.split()) < _SENTENCE:
                if not in_table("skip", words.split()[-1] if words else ""):
                    self.missing.append(phrase)
            elif noun is not None and (
                noun.word.lower() not in drawn
                and noun.pictogram not in drawn
                and noun.pictogram not in figures
                and concept_of(noun.word) not in figures
            ):
                if noun.kind == "person" or (noun.kind == "animal" and concept_of(noun.word) is not None):
                    self.actors[f"shown {words}"] = self.cast.one(words, [noun.word], phrase, None)
                else:
                    self.things[f"shown {words}"] = SceneThing(
                        f"shown {words}", noun.word, noun.pictogram, noun.kind, noun.cm, noun.stands, "object"
                    )

    def _is_dressed(self, words: str, noun: Noun | None) -> bool:
        """Whether somebody is drawn in a garment; a shirt of another colour is none that they have on."""
        own, on = {*features_of(words)}, {one for actor in self.actors.values() for one in actor.look.features}
        if not own or (noun is not None and noun.kind != "clothing"):
            return False
        if noun is None:
            return any(actor.kind == "person" for actor in self.actors.values())
        told = re.compile(rf"\b{re.escape(words.split()[-1])}\b")
        kinds = {one.partition(":")[0] for one in on} - _EVERYBODYS
        worn = own & on or {one.partition(":")[0] for one in own} & kinds
        return bool(worn) or any(told.search(one) for one in CLAUSE.findall(self.prompt))

    def _holds(self, key: str | None) -> bool:
        """Whether a thing is drawn with those who are in it, wherever that is: a rowing boat on a pond."""
        thing = self.things.get(key or "")
        return thing is not None and (thing.kind != "vehicle" or hollow_of(thing.pictogram) is not None)

    def _scenery(self, setting: str | None) -> tuple[SceneThing, ...]:
        """The things; a whole house is not drawn before its own door or among others, nor a train in its carriage."""
        housed = setting in ("doorstep", "street", "village", "city")
        loose = [
            one
            for one in self.things.values()
            if setting is not None and (one.held_by is None or one.kind == "building")
        ]
        within = {actor.at for actor in self.actors.values() if self._holds(actor.at)}
        loose = [one for one in loose if one.at is None and one.id not in within]  # what is in the wave is no place
        around = {one.id for one in loose if place_of(one.word) == setting and one.kind in _SETTINGS}
        if len(self.things) > 1 or self.actors:  # a whole mountain beside a nail
            around |= {one.id for one in loose if one.kind == "landscape" and one.cm > _HUGE}
        if housed:  # what is as small as a bus stop stands in the street
            around = {one.id for one in loose if one.id in around and one.kind != "vehicle" and one.cm > 250}
            met = {there for actor in self.actors.values() for there in (actor.at, actor.target)}
            around |= {one.id for one in self.things.values() if one.kind == "building" and one.cm > 250} - met
        return tuple(one for one in self.things.values() if one.id not in around)
