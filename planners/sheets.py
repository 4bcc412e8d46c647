"""Character sheets from annotated scenes: one name, one look and one anchor prompt each, the same in every panel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from katha.language import Actor, SceneReading, describe_actor, describe_scene, load_vocabulary, read_scene
from katha.language.looks import clash
from katha.planners.annotated import scene_texts
from katha.planners.mentions import named
from katha.schema import Character, StoryRecord

__all__ = ["Sheets", "sheets_of"]


@dataclass(frozen=True)
class Sheets:
    """The characters of a record, and the place and time of each of its scenes (by index, as a sentence)."""

    characters: tuple[Character, ...]
    actors: Mapping[str, Actor]
    places: Mapping[int, str]

    def place(self, index: int) -> str:
        """Where and when scene `index` happens ("In the forest at night."); empty if nothing is told."""
        return self.places.get(index, "")

    def shown(self, prompt: str, listed: Sequence[str]) -> list[str]:
        """Who is in a panel: whoever its prompt names, and whoever the scene lists."""
        keys = {name.strip().lower() for name in listed}
        concepts = {actor.concept for actor in read_scene(prompt).actors}
        return [
            item.name
            for item in self.characters
            if item.name.lower() in keys
            or re.search(rf"\b{re.escape(item.name)}\b", prompt, re.IGNORECASE)
            or (item.name in self.actors and self.actors[item.name].concept in concepts)
        ]

    def with_looks(self, sentences: Sequence[str]) -> list[str]:
        """The sentences with each character's look at its first mention, where they do not say it yet."""
        found = list(sentences)
        for name, actor in self.actors.items():
            told = [one for one in read_scene(" ".join(found)).actors if one.concept == actor.concept]
            alike = [one for one in self.actors.values() if one.concept == actor.concept]
            if not actor.attributes or len(told) != 1 or len(alike) != 1:
                continue
            missing = set(actor.attributes) - set(told[0].attributes)
            if missing and not clash(told[0].attributes, actor.attributes):
                _say_looks(found, name, describe_actor(actor, "the", {actor.concept: name}))
        return found


def _say_looks(sentences: list[str], name: str, described: str) -> None:
    mention = re.compile(rf"\b(?:the|an?) {re.escape(name)}\b", re.IGNORECASE)
    for at, text in enumerate(sentences):
        if mention.search(text):
            whole = mention.sub(described, text, count=1)
            sentences[at] = whole[0].upper() + whole[1:]
            return


def sheets_of(story: StoryRecord) -> Sheets:
    """One sheet for each character that the scenes list, or else that their texts name.

    Looks are those that the texts and prompts tell, as far as the vocabulary reads them; a name that it does not know
    is its own look. The place and the time of a scene hold until another is told.
    """
    scenes = sorted(story.scenes, key=lambda scene: scene.scene_index)
    texts = scene_texts(story)
    readings = [read_scene(f"{text} {scene.generation_prompt}") for text, scene in zip(texts, scenes, strict=True)]
    told = [actor for reading in readings for actor in reading.actors]
    names = list(dict.fromkeys(name.strip() for scene in scenes for name in scene.characters if name.strip()))
    if not names:
        vocabulary = load_vocabulary()
        names = list(dict.fromkeys(vocabulary.get("character", actor.concept).words[0] for actor in told))
    actors: dict[str, Actor] = {}
    characters: list[Character] = []
    for name in _distinct(names):
        actor = _looks(name, told)
        if actor is not None:
            actors[name] = actor
        characters.append(_sheet(name, actor))
    return Sheets(tuple(characters), actors, _places(readings))


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, without those that differ from an earlier one in their capitals alone."""
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]


def _looks(name: str, told: Sequence[Actor]) -> Actor | None:
    """The character as the vocabulary knows it, with every look told of it that does not clash with an earlier one."""
    known = read_scene(f"{named(name)[:1].upper()}{named(name)[1:]}.").actors
    if len(known) != 1:
        return None
    looks = known[0].attributes
    order = {concept.id: at for at, concept in enumerate(load_vocabulary().concepts("attribute"))}
    for actor in told:
        if actor.concept == known[0].concept and (actor.count > 1) == (known[0].count > 1):
            looks += tuple(look for look in actor.attributes if look not in looks and not clash(looks, (look,)))
    return Actor(known[0].concept, attributes=tuple(sorted(looks, key=order.__getitem__)), count=known[0].count)


def _sheet(name: str, actor: Actor | None) -> Character:
    if actor is None:
        return Character(name=name, kind=name, appearance=name, anchor_prompt=f"{named(name).capitalize()} alone.")
    words = {actor.concept: load_vocabulary().get("character", actor.concept).words[0]}
    return Character(
        name=name,
        kind=words[actor.concept],
        appearance=describe_actor(actor, "a", words),
        anchor_prompt=describe_scene(SceneReading((actor,)), words),
    )


def _places(readings: Sequence[SceneReading]) -> dict[int, str]:
    setting = next((reading.setting for reading in readings if reading.setting is not None), None)
    time: str | None = None
    found: dict[int, str] = {}
    for index, reading in enumerate(readings, 1):
        setting, time = reading.setting or setting, reading.time or time
        found[index] = describe_scene(SceneReading((), (), setting, time)).strip()
    return found
