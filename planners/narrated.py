"""The two planners that pass the story's own words on: `direct` (raw pieces) and `caption` (a caption a scene)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha.errors import PlanError
from katha.language import read_story
from katha.planners.checks import check_scenes, check_text, no_argument, reads_as_english
from katha.planners.division import cut, raw_sentences
from katha.planners.fitting import NEGATIVE_PROMPT, clip
from katha.planners.information import restrict
from katha.planners.segments import salience, segment
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, StoryRecord

__all__ = ["CaptionPlanner", "DirectPlanner"]

_VERSION = 1


class DirectPlanner:
    """The raw story, cut into equal pieces: the weakest prompts, in any language.

    It sees the story's text and how many panels there are, and no scene boundary.
    """

    def __init__(self, argument: str | None = None) -> None:
        no_argument("direct", argument)

    def spec(self) -> Mapping[str, Any]:
        """Name and version."""
        return {"name": "direct", "version": _VERSION}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """One piece of the story a panel.

        Raises:
            PlanError: the story is empty or too long, or its scenes do not fit the number of panels.
        """
        check_text(story, "direct")
        if story.scenes:
            check_scenes(story, request.panels)
        seen, information = restrict(story, "direct")
        pieces = [_joined(group) for group in cut(raw_sentences(seen.story_text), request.panels)]
        return _plan(seen, "direct", information, pieces, request)


class CaptionPlanner:
    """One caption a scene, as the story tells it: no looks, no transitions, in any language.

    It sees the text of each scene. A plain text is cut as planner `rule` cuts it, and captioned with the sentence that
    holds the part's main event; a text that is not English is cut into equal pieces.
    """

    def __init__(self, argument: str | None = None) -> None:
        no_argument("caption", argument)

    def spec(self) -> Mapping[str, Any]:
        """Name and version."""
        return {"name": "caption", "version": _VERSION}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """One caption a panel.

        Raises:
            PlanError: the story is empty or too long, or its scenes do not fit the number of panels.
        """
        check_text(story, "caption")
        if story.scenes:
            check_scenes(story, request.panels)
        seen, information = restrict(story, "caption")
        captions = [scene.scene_text for scene in seen.scenes] or _captions(seen, request.panels)
        return _plan(seen, "caption", information, captions, request)


def _captions(story: StoryRecord, panels: int) -> list[str]:
    """The sentence of each part's main event; equal pieces where the text cannot be read."""
    reading = read_story(story.story_text) if reads_as_english(story) else None
    if reading is None or not any(salience(event) > 0 for event in reading.events):
        return [_joined(group) for group in cut(raw_sentences(story.story_text), panels)]
    parts = segment(reading.events, panels)
    return [reading.sentences[max(reversed(part), key=salience).sentence] for part in parts]


def _joined(pieces: list[str]) -> str:
    return " ".join("".join(pieces).split())


def _plan(story: StoryRecord, name: str, information: list[str], texts: list[str], request: PlanRequest) -> Plan:
    if not all(text.strip() for text in texts):
        raise PlanError(f"Story {story.story_id!r} has a scene without a text.", hint="Fill in its 'scene_text'.")
    panels = [
        Panel(index=at, prompt=clip(text, request.prompt_tokens), negative_prompt=NEGATIVE_PROMPT, caption=text)
        for at, text in enumerate(texts, 1)
    ]
    return Plan(
        story_id=story.story_id,
        title=story.title,
        planner=name,
        information=information,
        style=request.style,
        panels=panels,
    )
