"""The planner that needs no model: a story's own events, cut into panels, with prompts that name what must be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from katha.errors import PlanError, UsageError
from katha.language import Event, StoryReading, guess_moral, read_story
from katha.language.lexicon import vocabulary_sha256
from katha.language.tokens import split_sentences
from katha.planners.annotated import annotated_moments, annotated_panels
from katha.planners.cast import cast_of
from katha.planners.checks import check_language, check_scenes, check_text
from katha.planners.links import link
from katha.planners.moments import Moment, Stage, moment_of
from katha.planners.segments import salience, segment
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, StoryRecord, Transition

__all__ = ["NEGATIVE_PROMPT", "RulePlanner"]

NEGATIVE_PROMPT = "text, letters, speech bubbles, watermark, extra limbs"
_LONGEST_CAPTION = 240
_VERSION = 2


class RulePlanner:
    """Story to plan by rule: deterministic, offline, in milliseconds.

    A plain text is cut into `panels` parts (setup, action, complication, consequence, resolution for five). A record
    with scenes has one panel a scene and keeps its transitions.
    """

    def __init__(self, argument: str | None = None) -> None:
        if argument is not None:
            raise UsageError(
                f"Planner 'rule' takes no argument, but was given {argument!r}.", hint="Use --planner rule."
            )

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
        check_language(story, split_sentences(story.story_text))
        reading = read_story(story.story_text)
        return self._from_scenes(story, reading, request) if story.scenes else self._from_text(story, reading, request)

    def _from_text(self, story: StoryRecord, reading: StoryReading, request: PlanRequest) -> Plan:
        if not any(salience(event) > 0 for event in reading.events):
            raise PlanError(
                f"Story {story.story_id!r} has no event that planner 'rule' can draw.",
                hint='Say who does what ("The fox chases the hen."), or choose another planner with --planner.',
            )
        stage = _stage(reading, reading.events)
        parts = segment(reading.events, request.panels)
        moments = [moment_of(part, stage, final=part is parts[-1]) for part in parts]
        panels = [_panel(at, moment, reading, request.prompt_tokens) for at, moment in enumerate(moments, 1)]
        return self._plan(story, reading, request, moments, panels)

    def _from_scenes(self, story: StoryRecord, reading: StoryReading, request: PlanRequest) -> Plan:
        moments, stage = annotated_moments(story, reading)
        panels = annotated_panels(story, moments, stage, NEGATIVE_PROMPT)
        return self._plan(story, reading, request, moments, panels)

    def _plan(
        self,
        story: StoryRecord,
        reading: StoryReading,
        request: PlanRequest,
        moments: Sequence[Moment],
        panels: list[Panel],
    ) -> Plan:
        moral = story.moral_label or guess_moral(story.story_text, reading)
        transitions: list[Transition] = sorted(story.transitions, key=lambda one: one.from_scene)
        if not transitions:
            transitions = [link(story.story_id, moments, at, moral) for at in range(len(moments) - 1)]
        shown = {name for panel in panels for name in panel.characters}
        roles = moments[0].roles.values()
        given = [name for name in ("scenes", "transitions") if getattr(story, name)]
        return Plan(
            story_id=story.story_id,
            title=story.title,
            planner="rule",
            information=["story_text", *given],
            style=request.style,
            characters=[role.character() for role in roles if role.name in shown],
            panels=panels,
            transitions=transitions,
            questions=story.recoverability_questions,
        )


def _stage(reading: StoryReading, events: Sequence[Event]) -> Stage:
    """The roles, and the first place that the story names, for what happens before it is named."""
    setting = next((event.setting for event in events if event.setting is not None), None)
    return Stage(cast_of(events), reading.words, setting)


def _panel(index: int, moment: Moment, reading: StoryReading, tokens: int | None) -> Panel:
    names = [role.name for role in moment.cast]
    return Panel(
        index=index,
        prompt=_fitted(moment, tokens),
        negative_prompt=NEGATIVE_PROMPT,
        caption=_caption(reading.sentences[moment.key.sentence]),
        characters=names,
        must_show=moment.must_show(),
    )


def _caption(sentence: str) -> str:
    if len(sentence) <= _LONGEST_CAPTION:
        return sentence
    return sentence[:_LONGEST_CAPTION].rsplit(" ", 1)[0] + " ..."


def _fitted(moment: Moment, tokens: int | None) -> str:
    """The prompt, cut at the end of a sentence where a renderer reads only so many tokens (about 4/3 a word)."""
    prompt = moment.prompt
    if tokens is None or len(prompt.split()) * 4 <= tokens * 3:
        return prompt
    kept: list[str] = []
    for sentence in prompt.split(". "):
        if kept and (len(" ".join(kept).split()) + len(sentence.split())) * 4 > tokens * 3:
            break
        kept.append(sentence.rstrip("."))
    return ". ".join(kept) + "."
