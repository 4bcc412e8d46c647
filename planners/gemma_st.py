"""`gemma-st`: a language model plans the transitions (Gemma 3 by default), held to a schema and repaired once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from katha.errors import ModelError, PlanError, ReplyError
from katha.models import Completion, TextModel, Turn, make_model
from katha.models.adapters import adapter_note
from katha.planners.checks import check_scenes, check_text
from katha.planners.composing import Composer
from katha.planners.draft import Draft, DraftTransition, draft_problems, read_draft
from katha.planners.information import restrict
from katha.planners.reply_schema import reply_schema
from katha.planners.switches import Switches
from katha.planners.windows import Window, windows_of
from katha.prompting import load_prompt
from katha.protocols import PlanRequest
from katha.schema import Character, Panel, Plan, StoryRecord, Transition

__all__ = ["GemmaPlanner", "plan_prompt"]

_VERSION = 1
_FEWEST_WORDS, _MOST_WORDS = 12, 60
_ADDED_WORDS = 24
"""Room that is left in a prompt for looks, place and shot."""


class GemmaPlanner:
    """Transition-aware plans by a language model: local (Gemma 3), Anthropic, OpenAI or a compatible server.

    Its argument is MODEL_OR_PATH, `anthropic:MODEL` or `openai:MODEL`. It sees the story's text and, in a record, the
    text of each scene. Stories may be in any language; prompts are English.
    """

    def __init__(
        self,
        argument: str | None = None,
        *,
        adapter: Path | None = None,
        without: tuple[str, ...] = (),
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Name the model; nothing is loaded or called yet.

        adapter: a LoRA adapter for a local model. without: parts of a plan to leave out (see `planners/switches.py`).
        base_url: of a compatible server.

        Raises:
            UsageError, InputFileError, ModelError, MissingExtraError: the model cannot be used.
        """
        self._model: TextModel = make_model(
            argument,
            adapter=adapter,
            device=device,
            dtype=dtype,
            revision=revision,
            base_url=base_url,
            max_tokens=max_tokens,
        )
        # An adapter writes what it was taught to write, and its note says what that leaves out.
        untaught = adapter_note(adapter).get("without", []) if adapter is not None else []
        self._switches = Switches.without([*without, *untaught])

    def spec(self) -> Mapping[str, Any]:
        """The model, the prompts' hashes and what is turned off."""
        return {
            "name": "gemma-st",
            "version": _VERSION,
            "model": dict(self._model.spec()),
            "prompts": {name: load_prompt(f"planner/{name}").sha256 for name in ("plan", "repair")},
            "without": self._switches.off(),
        }

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story`, a long one in windows that know the characters and the last picture before them.

        Raises:
            PlanError: the story cannot be planned (no event, too few sentences). ReplyError: the model wrote no usable
            plan, even after one repair; its status and what it wrote are kept. ModelError: the model gave no answer.
        """
        check_text(story, "gemma-st")
        if story.scenes:
            check_scenes(story, request.panels)
        seen, information = restrict(story, "gemma-st")
        composer = Composer(story.story_id, self._switches, request.prompt_tokens)
        characters: list[Character] = []
        panels: list[Panel] = []
        pairs: list[tuple[Transition, DraftTransition]] = []
        windows = windows_of(seen, request.panels)
        for number, window in enumerate(windows, 1):
            part = {"number": number, "count": len(windows)} if len(windows) > 1 else None
            prompt = plan_prompt(seen, window, self._switches, request.prompt_tokens, part, characters, panels)
            draft = self._draft(seen, window, prompt, characters)
            known = {item.name for item in characters}
            characters += composer.characters([item for item in draft.characters if item.name not in known])
            panels += composer.panels(window, draft, characters)
            pairs += zip(composer.transitions(window, draft), draft.transitions, strict=True)
        return Plan(
            story_id=story.story_id,
            title=story.title,
            planner="gemma-st",
            information=information,
            style=request.style,
            characters=characters,
            panels=panels,
            transitions=[transition for transition, _ in pairs],
            questions=composer.questions(pairs),
        )

    def _draft(self, story: StoryRecord, window: Window, prompt: str, characters: Sequence[Character]) -> Draft:
        """The model's draft of one window; asked again once with what is wrong with it."""
        schema = reply_schema(window.shape, self._switches)
        known = [item.name for item in characters]
        turns = [Turn("user", prompt)]
        first = self._asked(story, turns, schema)
        draft, problems = self._read(window, first, known)
        if draft is None or problems:
            repair = load_prompt("planner/repair").render(problems=problems[:8])
            turns += [Turn("assistant", first.text), Turn("user", repair)]
            second = self._asked(story, turns, schema)
            draft, problems = self._read(window, second, known)
            if draft is None or problems:
                raise ReplyError(
                    f"The model wrote no plan of {story.story_id!r} that can be drawn, not even after a repair: "
                    f"{problems[0]}",
                    hint="Try a larger model, an adapter from `katha train planner`, or --planner rule.",
                    raw=second.text,
                )
        if not draft.tells_events:
            raise PlanError(
                f"Story {story.story_id!r} tells of no event, says the model.",
                hint="Tell who does what, in a few sentences.",
            )
        return draft

    def _read(self, window: Window, reply: Completion, known: Sequence[str]) -> tuple[Draft | None, list[str]]:
        draft, problems = read_draft(reply.text)
        if draft is None or not draft.tells_events:
            return draft, problems
        return draft, list(draft_problems(draft, window.shape, self._switches, window.text, known))

    def _asked(self, story: StoryRecord, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Completion:
        """A whole reply.

        Raises:
            ReplyError: refused, cut off or not asked. ModelError: the server gave no answer.
        """
        reply = self._model.complete(turns, schema)
        if reply.status == "ok":
            return reply
        said = f"The model's plan of {story.story_id!r} failed ({reply.status}): {reply.error or 'no reason given'}."
        if reply.status == "transport_failed":
            raise ModelError(said, hint="Give the same command again when the server answers.")
        hint = _HINTS.get(reply.status, "Try another model.")
        raise ReplyError(said, hint=hint, status=reply.status, raw=reply.text)


_HINTS: Mapping[str, str] = {
    "truncated": "Raise the limit (--planner-option max_tokens=N), use fewer --panels, or another model.",
    "refused": "The model would not plan this story; try another model.",
    "not_asked": "Use fewer --panels or a model that reads more.",
}


def plan_prompt(
    story: StoryRecord,
    window: Window,
    switches: Switches,
    limit: int | None,
    part: Mapping[str, int] | None = None,
    known: Sequence[Character] = (),
    drawn: Sequence[Panel] = (),
) -> str:
    """What the model is asked for one window. limit: the renderer's prompt limit in tokens."""
    words = _MOST_WORDS if limit is None else max(_FEWEST_WORDS, min(_MOST_WORDS, limit * 3 // 4 - _ADDED_WORDS))
    numbered = enumerate(window.sentences, window.first_sentence)
    return load_prompt("planner/plan").render(
        title=story.title,
        part=part,
        scenes=[{"number": index, "text": text} for index, text in zip(window.panels, window.scenes, strict=False)],
        sentences=[{"number": number, "text": " ".join(text.split())} for number, text in numbered],
        panels=len(window.panels),
        transitions=window.shape.transitions,
        known=known,
        before=drawn[-1].prompt if drawn else "",
        words=words,
        sheets=switches.sheets,
        place=switches.place,
        links=switches.links,
        shots=switches.shots,
        questions=switches.questions,
    )
