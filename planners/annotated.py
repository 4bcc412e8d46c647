"""Records with annotations: one panel a scene, from its generation prompt and what it says must be visible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from katha.errors import PlanError
from katha.language import (
    Event,
    SceneReading,
    StoryReading,
    describe_deed,
    load_vocabulary,
    read_phrase,
    read_scene,
    read_story,
)
from katha.planners.cast import Role, cast_of
from katha.planners.moments import Moment, Stage, moment_of
from katha.schema import Panel, Scene, StoryRecord

__all__ = ["annotated_moments", "annotated_panels"]


def annotated_moments(story: StoryRecord, reading: StoryReading) -> tuple[list[Moment], Stage]:
    """One moment for each scene, in order of their index.

    The scenes' texts are read as one story, so that "he" in scene 3 is the character of scene 2.

    Raises:
        PlanError: a scene names nobody that the vocabulary knows.
    """
    scenes = sorted(story.scenes, key=lambda scene: scene.scene_index)
    texts = [
        scene.scene_text if scene.scene_text.endswith((".", "!", "?", '"')) else f"{scene.scene_text}."
        for scene in scenes
    ]
    told = read_story("\n\n".join(texts))
    owners = _owners(texts)
    events = list(told.events)
    parts: list[list[Event]] = [[] for _ in scenes]
    for event in events:
        parts[owners[event.sentence]].append(event)
    for at, scene in enumerate(scenes):
        parts[at] = parts[at] if any(event.actor for event in parts[at]) else _from_prompt(story, scene)
    everything = [event for part in parts for event in part]
    setting = next((event.setting for event in everything if event.setting is not None), None)
    stage = Stage(cast_of(everything), {**reading.words, **told.words}, setting)
    return [moment_of(part, stage, final=part is parts[-1]) for part in parts], stage


def _owners(texts: Sequence[str]) -> list[int]:
    """The scene (from 0) of every sentence of the joined text."""
    return [at for at, text in enumerate(texts) for _ in read_story(text).sentences]


def _from_prompt(story: StoryRecord, scene: Scene) -> list[Event]:
    """Events for a scene whose text shows nothing: from its prompt, action and list of characters."""
    parts = [scene.generation_prompt, scene.action, ", ".join(scene.characters)]
    text = ". ".join(part.strip(" .") for part in parts if part.strip())
    reading = read_scene(f"{text}.")
    if not reading.actors:
        raise PlanError(
            f"Record {story.story_id!r}, scene {scene.scene_index}: nobody in 'scene_text', 'generation_prompt' or "
            "'characters' is known to planner 'rule'.",
            hint='Name the character by its kind ("the fox"), or choose another planner with --planner.',
        )
    return [
        Event(
            0,
            scene.scene_text,
            actor=actor.concept,
            attributes=actor.attributes,
            action=actor.action,
            target=actor.target,
            emotion=actor.emotion,
            props=(*actor.carries, *reading.props),
            setting=reading.setting,
            time=reading.time,
            count=actor.count,
        )
        for actor in reading.actors
    ]


def annotated_panels(story: StoryRecord, moments: Sequence[Moment], stage: Stage, negative: str) -> list[Panel]:
    """A panel a scene: its generation prompt (or the composed one), completed with what must be visible."""
    scenes = sorted(story.scenes, key=lambda scene: scene.scene_index)
    panels: list[Panel] = []
    for scene, moment in zip(scenes, moments, strict=True):
        prompt = _prompt(scene, moment)
        panel = Panel(
            index=scene.scene_index,
            prompt=prompt,
            negative_prompt=negative,
            caption=scene.scene_text,
            characters=_shown(prompt, moment, stage),
            must_show=scene.visual_must_show or moment.must_show(),
        )
        panels.append(panel)
    return panels


def _shown(prompt: str, moment: Moment, stage: Stage) -> list[str]:
    """Who is in a panel: the characters of its moment, and any other that its prompt names."""
    names = [role.name for role in moment.cast]
    covered = {role.actor.concept for role in moment.cast}
    for actor in read_scene(prompt).actors:
        if actor.concept not in covered:
            covered.add(actor.concept)
            names.extend([role.name for role in stage.roles.values() if role.actor.concept == actor.concept][:1])
    return names


def _prompt(scene: Scene, moment: Moment) -> str:
    given = scene.generation_prompt.strip()
    prompt = given if given else moment.prompt
    if prompt[-1] not in ".!?":
        prompt = f"{prompt}."
    reading = read_scene(prompt)
    extras = [*_missing(scene, moment, prompt, reading), *_felt(scene, moment, reading)]
    return " ".join([prompt, *extras])


def _missing(scene: Scene, moment: Moment, prompt: str, reading: SceneReading) -> list[str]:
    """What must be visible, or is listed as character, object or action, and is not in the prompt yet."""
    listed = [*scene.visual_must_show, *scene.characters, *scene.objects]
    if not any(actor.action for actor in reading.actors):
        listed.insert(0, _deed(scene, moment))
    found: list[str] = []
    text = prompt
    for item in listed:
        if item.strip() and not _covered(item, text, read_scene(text)):
            sentence = item.strip().rstrip(".")
            found.append(f"{sentence[0].upper()}{sentence[1:]}.")
            text = f"{text} {found[-1]}"
    return found


def _deed(scene: Scene, moment: Moment) -> str:
    """The scene's action as a sentence about its main character ("hugs the mouse": "The lion hugs the mouse.")."""
    claims = read_phrase(scene.action).events
    if not claims or claims[0].action is None or claims[0].actor is not None:
        return scene.action
    role = moment.cast[0]
    actor = replace(role.plain, action=claims[0].action, target=claims[0].target)
    others = [other.plain for other in moment.cast if other is not role]
    return describe_deed(actor, others, moment.words)


def _covered(item: str, text: str, reading: SceneReading) -> bool:
    """Whether a prompt already says `item`: literally, or every concept that the vocabulary finds in it."""
    if re.search(rf"\b{re.escape(item.strip().lower())}\b", text.lower()):
        return True
    wanted = read_scene(item)
    actors = {actor.concept for actor in reading.actors}
    deeds = {(actor.concept, actor.action) for actor in reading.actors}
    things = {*reading.props, *(prop for actor in reading.actors for prop in actor.carries)}
    named = bool(wanted.actors or wanted.props or wanted.setting)
    return (
        named
        and all(actor.concept in actors for actor in wanted.actors)
        and all(actor.action is None or (actor.concept, actor.action) in deeds for actor in wanted.actors)
        and set(wanted.props) <= things
        and wanted.setting in {None, reading.setting}
    )


def _felt(scene: Scene, moment: Moment, reading: SceneReading) -> list[str]:
    """The scene's emotion, given to its main character when the prompt shows no feeling at all."""
    feeling = load_vocabulary().find(scene.emotion, "emotion") if scene.emotion else None
    if feeling is None or any(actor.emotion for actor in reading.actors):
        return []
    role: Role = moment.cast[0]
    be = "are" if role.actor.count > 1 else "is"
    return [f"The {role.word} {be} {load_vocabulary().get('emotion', feeling).words[0]}."]
