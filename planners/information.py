"""What each planner of the ladder may see (Table 41), and records cut down to it.

Every planner restricts its record before it reads a word of it, so that what it must not see cannot reach its plan, and
names in `Plan.information` what was there to be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from katha.schema import Scene, StoryRecord

__all__ = ["ALLOWED", "restrict"]

_SCENES = ("scene_text",)
_STRUCTURE = (*_SCENES, "characters", "objects", "action", "state", "emotion")
_GOLD = (*_STRUCTURE, "visual_evidence", "visual_must_show", "generation_prompt")

ALLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "direct": ("story_text", "scene_count"),
        "rule": ("story_text", "scene_count", *_SCENES),
        "caption": ("story_text", "scene_count", *_SCENES),
        "scene": ("story_text", "scene_count", *_STRUCTURE),
        "gemma-st": ("story_text", "scene_count", *_SCENES),
        "oracle": ("story_text", "scene_count", *_GOLD, "transitions", "moral_label", "recoverability_questions"),
    }
)
"""The fields of a record that a planner may see. `scene_count` is their number and order, and nothing in them."""

_OF_STORY: Mapping[str, Callable[[StoryRecord], Any]] = MappingProxyType(
    {
        "transitions": lambda record: record.transitions,
        "moral_label": lambda record: record.moral_label,
        "recoverability_questions": lambda record: record.recoverability_questions,
    }
)


def restrict(record: StoryRecord, planner: str) -> tuple[StoryRecord, list[str]]:
    """`record` with nothing in it but what `planner` may see, and the names of what there was to see.

    Keys that the schema does not know are never passed on. Without `scene_text` among the allowed fields the record has
    no scenes; their number is the request's `panels`.
    """
    allowed = ALLOWED[planner]
    scenes = [_scene(scene, allowed) for scene in record.scenes] if "scene_text" in allowed else []
    story = {name: take(record) for name, take in _OF_STORY.items() if name in allowed}
    kept = StoryRecord(
        story_id=record.story_id, title=record.title, story_text=record.story_text, scenes=scenes, **story
    )
    found = [name for name in allowed if _present(record, name)]
    return kept, found


def _scene(scene: Scene, allowed: tuple[str, ...]) -> Scene:
    fields = {name: getattr(scene, name) for name in _GOLD if name in allowed}
    return Scene(story_id=scene.story_id, scene_index=scene.scene_index, **fields)


def _present(record: StoryRecord, name: str) -> bool:
    if name == "story_text":
        return True
    if name == "scene_count":
        return bool(record.scenes)
    if name in _OF_STORY:
        return bool(_OF_STORY[name](record))
    return any(getattr(scene, name) for scene in record.scenes)
