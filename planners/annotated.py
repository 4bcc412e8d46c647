"""Records with scenes, as planner `rule` may see them: one moment a scene, from the scenes' texts alone."""

from __future__ import annotations

from collections.abc import Sequence

from katha.errors import PlanError
from katha.language import Event, StoryReading, read_story
from katha.planners.cast import cast_of
from katha.planners.moments import Moment, Stage, moment_of
from katha.schema import StoryRecord

__all__ = ["annotated_moments", "scene_texts"]


def scene_texts(story: StoryRecord) -> list[str]:
    """The scenes' texts in order of their index, each ending as a sentence."""
    scenes = sorted(story.scenes, key=lambda scene: scene.scene_index)
    return [
        scene.scene_text if scene.scene_text.endswith((".", "!", "?", '"')) else f"{scene.scene_text}."
        for scene in scenes
    ]


def annotated_moments(story: StoryRecord, reading: StoryReading) -> list[Moment]:
    """One moment for each scene, in order of their index.

    The scenes' texts are read as one story, so that "he" in scene 3 is the character of scene 2. A scene in which
    nobody is known shows what its neighbour shows.

    Raises:
        PlanError: no scene names anybody that the vocabulary knows.
    """
    texts = scene_texts(story)
    told = read_story("\n\n".join(texts))
    owners = _owners(texts)
    parts: list[list[Event]] = [[] for _ in texts]
    for event in told.events:
        parts[owners[event.sentence]].append(event)
    parts = _held(story, parts)
    everything = [event for part in parts for event in part]
    setting = next((event.setting for event in everything if event.setting is not None), None)
    stage = Stage(cast_of(everything), {**reading.words, **told.words}, setting)
    return [moment_of(part, stage, final=at == len(parts) - 1) for at, part in enumerate(parts)]


def _owners(texts: Sequence[str]) -> list[int]:
    """The scene (from 0) of every sentence of the joined text."""
    return [at for at, text in enumerate(texts) for _ in read_story(text).sentences]


def _held(story: StoryRecord, parts: Sequence[list[Event]]) -> list[list[Event]]:
    """The parts, with the events of the scene before (or else after) where a scene has no actor."""
    acted = [at for at, part in enumerate(parts) if any(event.actor for event in part)]
    if not acted:
        raise PlanError(
            f"Record {story.story_id!r}: nobody in any 'scene_text' is known to planner 'rule'.",
            hint='Name the characters by their kind ("the fox"), or choose another planner with --planner.',
        )
    return [parts[max((one for one in acted if one <= at), default=acted[0])] for at in range(len(parts))]
