"""The planner that needs no model: a story's own events, cut into panels, with prompts that name what must be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from katha.errors import PlanError
from katha.language import Event, StoryReading, guess_moral, read_story
from katha.language.lexicon import vocabulary_sha256
from katha.planners.annotated import annotated_moments
from katha.planners.cast import cast_of
from katha.planners.checks import check_language, check_scenes, check_text, no_argument
from katha.planners.fitting import NEGATIVE_PROMPT, fit
from katha.planners.information import restrict
from katha.planners.links import link
from katha.planners.moments import Moment, Stage, moment_of
from katha.planners.segments import salience, segment
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, StoryRecord

__all__ = ["RulePlanner"]

_LONGEST_CAPTION = 240
_SENTENCE_END = re.compile(r"(?<=\.) ")
_VERSION = 3


class RulePlanner:
    """Story to plan by rule: deterministic, offline, in milliseconds.

    A plain text is cut into `panels` parts (setup, action, complication, consequence, resolution for five). A record
    with scenes has one panel a scene; of its annotations, the scenes' texts alone are seen.
    """

    def __init__(self, argument: str | None = None) -> None:
        no_argument("rule", argument)

    def spec(self) -> Mapping[str, Any]:
        """Name, version of the rules, and the hash of the vocabulary that they read with."""
        return {"name": "rule", "version": _VERSION, "vocabulary": vocabulary_sha256()}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story`.

        Raises:
            PlanError: the story cannot be planned (too short or long, not English, nothing that can be drawn, or
                annotations that do not fit).
        """
        check_text(story)
        if story.scenes:
            check_scenes(story, request.panels)
        check_language(story)
        seen, information = restrict(story, "rule")
        reading = read_story(seen.story_text)
        make = self._from_scenes if seen.scenes else self._from_text
        return make(seen, reading, request).model_copy(update={"information": information})

    def _from_text(self, story: StoryRecord, reading: StoryReading, request: PlanRequest) -> Plan:
        if not any(salience(event) > 0 for event in reading.events):
            raise PlanError(
                f"Story {story.story_id!r} has no event that planner 'rule' can draw.",
                hint='Say who does what ("The fox chases the hen."), or choose another planner with --planner.',
            )
        stage = _stage(reading, reading.events)
        parts = segment(reading.events, request.panels)
        moments = [moment_of(part, stage, final=part is parts[-1]) for part in parts]
        panels = [
            _panel(at, moment, reading.sentences[moment.key.sentence], request.prompt_tokens)
            for at, moment in enumerate(moments, 1)
        ]
        return self._plan(story, reading, request, moments, panels)

    def _from_scenes(self, story: StoryRecord, reading: StoryReading, request: PlanRequest) -> Plan:
        moments = annotated_moments(story, reading)
        captions = [scene.scene_text for scene in sorted(story.scenes, key=lambda scene: scene.scene_index)]
        panels = [
            _panel(at, moment, caption, request.prompt_tokens)
            for at, (moment, caption) in enumerate(zip(moments, captions, strict=True), 1)
        ]
        return self._plan(story, reading, request, moments, panels)

    def _plan(
        self,
        story: StoryRecord,
        reading: StoryReading,
        request: PlanRequest,
        moments: Sequence[Moment],
        panels: list[Panel],
    ) -> Plan:
        moral = guess_moral(story.story_text, reading)
        shown = {name for panel in panels for name in panel.characters}
        roles = moments[0].roles.values()
        return Plan(
            story_id=story.story_id,
            title=story.title,
            planner="rule",
            style=request.style,
            characters=[role.character() for role in roles if role.name in shown],
            panels=panels,
            transitions=[link(story.story_id, moments, at, moral) for at in range(len(moments) - 1)],
        )


def _stage(reading: StoryReading, events: Sequence[Event]) -> Stage:
    """The roles, and the first place that the story names, for what happens before it is named."""
    setting = next((event.setting for event in events if event.setting is not None), None)
    return Stage(cast_of(events), reading.words, setting)


def _panel(index: int, moment: Moment, caption: str, tokens: int | None) -> Panel:
    names = [role.name for role in moment.cast]
    return Panel(
        index=index,
        prompt=fit(_SENTENCE_END.split(moment.prompt), tokens),
        negative_prompt=NEGATIVE_PROMPT,
        caption=_caption(caption),
        characters=names,
        must_show=moment.must_show(),
    )


def _caption(sentence: str) -> str:
    if len(sentence) <= _LONGEST_CAPTION:
        return sentence
    return sentence[:_LONGEST_CAPTION].rsplit(" ", 1)[0] + " ..."
