"""`gemma-st`: a language model plans the transitions (Gemma 3 by default), held to a schema and repaired once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha.errors import ModelError, PlanError, ReplyError
from katha.models.base import Completion, TextModel, Turn
from katha.models.checkpoints import adapter_note
from katha.models.registry import make_model
from katha.planners.checks import Switches, check_scenes, check_text, restrict
from katha.planners.draft import (
    Draft,
    DraftCharacter,
    DraftPanel,
    DraftTransition,
    Window,
    draft_problems,
    read_draft,
    reply_schema,
    windows_of,
)
from katha.planners.prompts import NEGATIVE_PROMPT, as_sentence, fit, named, worded
from katha.prompting import load_prompt
from katha.protocols import PlanRequest
from katha.schema import Character, Panel, Plan, Question, StoryRecord, Transition

_SHOTS: Mapping[str, str] = {"close-up": "Close-up", "medium": "Medium shot", "wide": "Wide shot"}
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_NO_PLACE = frozenset({"", "unclear", "unknown", "none"})


@dataclass(frozen=True)
class Composer:
    """Makes records of drafts. limit: the renderer's, in tokens."""

    story_id: str
    switches: Switches
    limit: int | None

    def characters(self, drafts: Sequence[DraftCharacter]) -> list[Character]:
        """One sheet each, with a prompt in which the character is alone."""
        return [
            Character(
                name=item.name,
                kind=item.kind,
                appearance=item.appearance,
                anchor_prompt=as_sentence(f"{item.appearance}, alone, full body, plain background"),
            )
            for item in drafts
        ]

    def panels(self, window: Window, draft: Draft, sheets: Sequence[Character]) -> list[Panel]:
        """The window's panels; their `source` texts joined are the window's text."""
        sources = _sources(window, draft)
        return [
            self._panel(index, item, source, sheets)
            for index, item, source in zip(window.panels, draft.panels, sources, strict=True)
        ]

    def _panel(self, index: int, draft: DraftPanel, source: str, sheets: Sequence[Character]) -> Panel:
        told = as_sentence(draft.prompt)
        shown = [item for item in sheets if item.name in draft.characters]
        if self.switches.look:
            told = _with_looks(told, shown)
        for item in [*draft.must_show, *(link.visible for link in draft.links)]:
            if not worded(item, told):
                told = f"{told} {as_sentence(item)}"
        sentences = _SENTENCE_END.split(told)
        lead = [text for text in (self._shot(draft), self._place(draft)) if text]
        order = range(len(lead), len(lead) + len(sentences))
        return Panel(
            index=index,
            prompt=fit([*lead, *sentences], self.limit, first=order),
            negative_prompt=NEGATIVE_PROMPT,
            caption=" ".join(source.split()),
            characters=[item.name for item in shown],
            must_show=draft.must_show,
            source=source,
            place=draft.place,
            time_of_day=draft.time_of_day,
            shot_size=draft.shot_size,
            shot_angle=draft.shot_angle,
            links=draft.links,
        )

    def _shot(self, draft: DraftPanel) -> str:
        size = _SHOTS.get(draft.shot_size, "")
        angle = draft.shot_angle if draft.shot_angle not in {"", "eye level"} else ""
        return as_sentence(", ".join(part for part in (size, angle) if part))

    def _place(self, draft: DraftPanel) -> str:
        parts = [text.strip() for text in (draft.place, draft.time_of_day) if text.strip().lower() not in _NO_PLACE]
        return as_sentence(", ".join(parts))

    def transitions(self, window: Window, draft: Draft) -> list[Transition]:
        """The window's transitions, the first from the panel before it where it is joined."""
        first = window.panels.start - window.joined
        return [
            Transition(
                story_id=self.story_id,
                from_scene=first + at,
                to_scene=first + at + 1,
                transition_type=item.transition_type,
                action=item.action,
                causality=item.causality,
                intention=item.intention,
                emotion=item.emotion,
                consequence=item.consequence,
                expected_change=item.consequence,
                moral_target=item.moral_target,
                recoverability_target=item.action,
            )
            for at, item in enumerate(draft.transitions)
        ]

    def questions(self, pairs: Sequence[tuple[Transition, DraftTransition]]) -> list[Question]:
        """The questions of all transitions, the canonical answer among the accepted ones."""
        found: list[Question] = []
        for transition, draft in pairs:
            for item in draft.questions:
                found.append(
                    Question(
                        question_id=f"{self.story_id}_q{len(found) + 1}",
                        story_id=self.story_id,
                        question_type=item.dimension,
                        question=item.question,
                        gold_answer=item.answer,
                        accepted_answers=list(dict.fromkeys([item.answer, *item.accepted])),
                        target_scene=transition.to_scene,
                        target_transition=transition.pair,
                        evidence_scenes=list(transition.pair),
                        required_evidence=transition.action,
                    )
                )
        return found


def _sources(window: Window, draft: Draft) -> list[str]:
    if window.scenes:
        return list(window.scenes)
    starts = [(panel.first_sentence or window.first_sentence) - window.first_sentence for panel in draft.panels]
    ends = [*starts[1:], len(window.sentences)]
    return ["".join(window.sentences[start:end]) for start, end in zip(starts, ends, strict=True)]


def _with_looks(prompt: str, shown: Sequence[Character]) -> str:
    """Each character's whole look in the place of its first mention, by name or by kind; else added at the end."""
    for item in shown:
        if item.appearance.lower() in prompt.lower():
            continue
        words = sorted({item.name, item.kind}, key=len, reverse=True)
        names = "|".join(re.escape(word) for word in words if word)
        found = re.search(rf"\b(?:(?:the|an?)\s+)?(?:{names})\b", prompt, re.IGNORECASE)
        look = named(_bare(item.appearance))
        if found is None:
            prompt = f"{prompt} {as_sentence(look)}"
            continue
        # A proper name stays beside the look; a kind ("the lion") is a part of it.
        said = f"{found[0]}, {look}," if found[0] == item.name and item.name[:1].isupper() else look
        prompt = f"{prompt[: found.start()]}{said}{prompt[found.end() :]}"
    return prompt[:1].upper() + prompt[1:]


def _bare(phrase: str) -> str:
    return re.sub(r"^(?:the|an?)\s+", "", phrase.strip(), flags=re.IGNORECASE)


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
