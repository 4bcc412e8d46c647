"""The two planners that draw from annotations: `scene` (who, what, doing what, in which state) and `oracle` (all)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from katha.errors import PlanError
from katha.planners.checks import check_scenes, check_text, no_argument
from katha.planners.fitting import NEGATIVE_PROMPT, as_sentence, fit
from katha.planners.information import restrict
from katha.planners.mentions import covered, feeler, feeling_in, feeling_of, read_deed
from katha.planners.sheets import Sheets, sheets_of
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, Scene, StoryRecord, Transition

__all__ = ["OraclePlanner", "ScenePlanner"]

_VERSION = 1


class ScenePlanner:
    """Structured scene prompts: each scene's characters, objects, action, state and feeling, as the record has them.

    It needs a record with scenes, and sees no transition, no prompt and no list of what must be visible.
    """

    def __init__(self, argument: str | None = None) -> None:
        no_argument("scene", argument)

    def spec(self) -> Mapping[str, Any]:
        """Name and version."""
        return {"name": "scene", "version": _VERSION}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """One structured prompt a scene.

        Raises:
            PlanError: the record has no scenes, or they do not fit the number of panels.
        """
        seen, information = _seen(story, "scene", request)
        sheets = sheets_of(seen)
        drawn = [
            _panel(scene, sheets, [*_structured(scene, sheets)], [], request.prompt_tokens) for scene in seen.scenes
        ]
        return _plan(seen, "scene", information, sheets, drawn, request)


class OraclePlanner:
    """The gold annotation drawn: prompts, what must be visible, and what each transition must make readable.

    An upper bound, not a planner to deploy: it needs a record with scenes and transitions.
    """

    def __init__(self, argument: str | None = None) -> None:
        no_argument("oracle", argument)

    def spec(self) -> Mapping[str, Any]:
        """Name and version."""
        return {"name": "oracle", "version": _VERSION}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """One panel a scene, with the record's transitions and questions.

        Raises:
            PlanError: the record has no scenes or no transitions, or they do not fit the number of panels.
        """
        seen, information = _seen(story, "oracle", request)
        if not seen.transitions:
            raise PlanError(
                f"Record {story.story_id!r} has no transitions, which planner 'oracle' draws.",
                hint="Annotate them, or use --planner scene.",
            )
        sheets = sheets_of(seen)
        transitions = sorted(seen.transitions, key=lambda item: item.pair)
        drawn = [self._drawn(scene, sheets, transitions, request.prompt_tokens) for scene in seen.scenes]
        plan = _plan(seen, "oracle", information, sheets, drawn, request)
        return plan.model_copy(update={"transitions": transitions, "questions": seen.recoverability_questions})

    def _drawn(self, scene: Scene, sheets: Sheets, transitions: Sequence[Transition], limit: int | None) -> Panel:
        """The scene's own prompt, and what the transitions on both sides of it need to be seen in it.

        The deed that leads into the scene comes first: a renderer that draws one deed a character draws that one.
        """
        given = as_sentence(scene.generation_prompt)
        sentences = [given] if given else [*_structured(scene, sheets)]
        deeds = [item.action for item in transitions if item.to_scene == scene.scene_index and item.action.strip()]
        sentences = [*(as_sentence(deed) for deed in deeds if not covered(deed, " ".join(sentences))), *sentences]
        _complete(sentences, [*scene.visual_must_show, *scene.characters, *scene.objects])
        into = [item for item in transitions if item.to_scene == scene.scene_index]
        out = [item for item in transitions if item.from_scene == scene.scene_index]
        feelings = [feeling_of(item.emotion or "", after=True) for item in into]
        feelings += [feeling_of(item.emotion or "", after=False) for item in out]
        for feeling in feelings:
            if feeling is not None and not feeling_in(" ".join(sentences), feeling):
                sentences.append(feeling.sentence)
        seen = [*deeds, *(item.consequence for item in into if item.consequence.strip())]
        _complete(sentences, seen)
        return _panel(scene, sheets, sentences, [*scene.visual_must_show, *seen], limit)


def _seen(story: StoryRecord, planner: str, request: PlanRequest) -> tuple[StoryRecord, list[str]]:
    check_text(story, planner)
    if not story.scenes:
        raise PlanError(
            f"Story {story.story_id!r} is a plain text; planner {planner!r} draws annotated scenes.",
            hint="Give a record with 'scenes', or use --planner rule.",
        )
    check_scenes(story, request.panels)
    seen, information = restrict(story, planner)
    return seen.model_copy(update={"scenes": sorted(seen.scenes, key=lambda scene: scene.scene_index)}), information


def _structured(scene: Scene, sheets: Sheets) -> list[str]:
    """Place, action, state, who and what else is there, and the feeling: a sentence each."""
    action = read_deed(scene.action, scene.characters) or scene.scene_text
    sentences = [text for text in (sheets.place(scene.scene_index), as_sentence(action)) if text]
    if scene.state.strip():
        sentences.append(as_sentence(scene.state))
    _complete(sentences, [*scene.characters, *scene.objects])
    feeling = feeling_of(scene.emotion or "", after=True, who=feeler(scene))
    if feeling is not None and not feeling_in(" ".join(sentences), feeling):
        sentences.append(feeling.sentence)
    return sentences


def _complete(sentences: list[str], items: Sequence[str]) -> None:
    """Add, a sentence each, what the sentences do not say yet."""
    for item in items:
        if item.strip() and not covered(item, " ".join(sentences)):
            sentences.append(as_sentence(item.strip()))


def _panel(scene: Scene, sheets: Sheets, sentences: Sequence[str], must_show: list[str], limit: int | None) -> Panel:
    prompt = fit(sheets.with_looks(sentences), limit)
    return Panel(
        index=scene.scene_index,
        prompt=prompt,
        negative_prompt=NEGATIVE_PROMPT,
        caption=scene.scene_text,
        characters=sheets.shown(prompt, scene.characters),
        must_show=list(dict.fromkeys(item.strip() for item in must_show if item.strip())),
    )


def _plan(
    story: StoryRecord,
    name: str,
    information: list[str],
    sheets: Sheets,
    panels: list[Panel],
    request: PlanRequest,
) -> Plan:
    shown = {who for panel in panels for who in panel.characters}
    return Plan(
        story_id=story.story_id,
        title=story.title,
        planner=name,
        information=information,
        style=request.style,
        characters=[item for item in sheets.characters if item.name in shown],
        panels=panels,
    )
