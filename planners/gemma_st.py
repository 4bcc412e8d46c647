"""`gemma-st`: a language model plans the transitions (Gemma 3 by default), held to a schema and repaired once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from katha.configs import load_prompt
from katha.errors import ModelError, PlanError, ReplyError
from katha.models.base import Completion, Heard, TextModel, Turn
from katha.models.checkpoints import HoldsModel, adapter_note, folder_revision
from katha.models.registry import make_model, served_by_own
from katha.planners.base import (
    ABOUT,
    ARTICLE,
    NEGATIVE_PROMPT,
    LadderPlanner,
    as_sentence,
    capital,
    fit,
    named,
    parts_without,
    worded,
)
from katha.planners.draft import (
    Draft,
    DraftPanel,
    DraftTransition,
    Window,
    draft_problems,
    read_draft,
    reply_schema,
    windows_of,
)
from katha.protocols import PlanRequest
from katha.schema import Character, Panel, Plan, Question, StoryRecord, Transition

_SHOTS: Mapping[str, str] = {"close-up": "Close-up", "medium": "Medium shot", "wide": "Wide shot"}
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_NO_PLACE = frozenset({"", "unclear", "unknown", "none"})


def _panel(
    index: int, draft: DraftPanel, source: str, sheets: Sequence[Character], parts: Collection[str], limit: int | None
) -> Panel:
    told = as_sentence(draft.prompt)
    shown = [item for item in sheets if item.name in draft.characters]
    if "look" in parts:
        told = _with_looks(told, shown)
    for item in [*draft.must_show, *(link.visible for link in draft.links)]:
        if not worded(item, told):
            told = f"{told} {as_sentence(item)}"
    sentences = _SENTENCE_END.split(told)
    angle = draft.shot_angle if draft.shot_angle != "eye level" else ""
    shot = [part for part in (_SHOTS.get(draft.shot_size), angle) if part]
    place = [text.strip() for text in (draft.place, draft.time_of_day) if text.strip().lower() not in _NO_PLACE]
    lead = [as_sentence(", ".join(given)) for given in (shot, place) if given]
    return Panel(
        index=index,
        prompt=fit([*lead, *sentences], limit, first=range(len(lead), len(lead) + len(sentences))),
        negative_prompt=NEGATIVE_PROMPT,
        caption=" ".join(source.split()),
        characters=[item.name for item in shown],
        source=source,
        **draft.model_dump(include={"must_show", "place", "time_of_day", "shot_size", "shot_angle", "links"}),
    )


def _transitions(story_id: str, window: Window, draft: Draft) -> list[Transition]:
    """Return the window's transitions, the first from the panel before it where it is joined."""
    return [
        Transition(
            story_id=story_id,
            from_scene=at,
            to_scene=at + 1,
            expected_change=item.consequence,
            recoverability_target=item.action,
            **item.model_dump(exclude={"questions"}),
        )
        for at, item in enumerate(draft.transitions, window.panels.start - window.joined)
    ]


def _questions(story_id: str, pairs: Sequence[tuple[Transition, DraftTransition]]) -> list[Question]:
    """Return the questions of all transitions, the canonical answer among the accepted ones."""
    asked = [(transition, item) for transition, draft in pairs for item in draft.questions]
    return [
        Question(
            question_id=f"{story_id}_q{number}",
            story_id=story_id,
            question_type=item.dimension,
            question=item.question,
            gold_answer=item.answer,
            accepted_answers=list(dict.fromkeys([item.answer, *item.accepted])),
            target_scene=transition.to_scene,
            target_transition=transition.pair,
            evidence_scenes=list(transition.pair),
            required_evidence=transition.action,
        )
        for number, (transition, item) in enumerate(asked, 1)
    ]


def _sources(window: Window, draft: Draft) -> list[str]:
    """Return what each panel is made of; joined, the sources are the window's text."""
    if window.scenes:
        return list(window.scenes)
    starts = [(panel.first_sentence or window.first_sentence) - window.first_sentence for panel in draft.panels]
    ends = [*starts[1:], len(window.sentences)]
    return ["".join(window.sentences[start:end]) for start, end in zip(starts, ends, strict=True)]


def _with_looks(prompt: str, shown: Sequence[Character]) -> str:
    """Put each character's whole look in the place of its first mention, by name or by kind; else added at the end."""
    for item in shown:
        if item.appearance.lower() in prompt.lower():
            continue
        words = sorted({item.name, item.kind}, key=len, reverse=True)
        names = "|".join(re.escape(word) for word in words if word)
        found = re.search(rf"\b(?:(?:the|an?)\s+)?(?:{names})\b", prompt, re.IGNORECASE)
        look = named(ARTICLE.sub("", item.appearance.strip()))
        if found is None:
            prompt = f"{prompt} {as_sentence(look)}"
            continue
        # A proper name stays beside the look; a kind ("the lion") is a part of it.
        said = f"{found[0]}, {look}," if found[0] == item.name and item.name[:1].isupper() else look
        prompt = f"{prompt[: found.start()]}{said}{prompt[found.end() :]}"
    return capital(prompt)


_FEWEST_WORDS, _MOST_WORDS = 12, 60
_ADDED_WORDS = 24
"""Room that is left in a prompt for looks, place and shot."""


class GemmaPlanner(LadderPlanner):
    """Transition-aware plans by a language model: local (Gemma 3), Anthropic, OpenAI or a compatible server.

    Its argument is MODEL_OR_PATH, `anthropic:MODEL` or `openai:MODEL`. It sees the story's text and, in a record, the
    text of each scene. Stories may be in any language; prompts are English.
    """

    name = "gemma-st"

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

        adapter: a LoRA adapter for a local model, or the one that a server of one's own serves under this name.
        without: parts of a plan to leave out (`ABOUT` in `base.py`). base_url: of a compatible server.

        Raises:
            UsageError, InputFileError, ModelError, MissingExtraError: the model cannot be used.
        """
        # A server has the adapter already, under the name that it serves it by; its note still tells what to ask for.
        self._served_adapter = adapter if adapter is not None and served_by_own(argument) else None
        self._model: TextModel = make_model(
            argument,
            adapter=None if self._served_adapter else adapter,
            device=device,
            dtype=dtype,
            revision=revision,
            base_url=base_url,
            max_tokens=max_tokens,
        )
        # An adapter writes what it was taught to write, and its note says what that leaves out.
        # A merged model has the note beside it.
        noted = adapter or (Path(argument) if argument else None)
        untaught = adapter_note(noted).get("without", []) if noted is not None else []
        self._parts = parts_without([*without, *untaught])

    def spec(self) -> Mapping[str, Any]:
        """Return the model, the prompts' hashes and what is turned off."""
        return {
            **super().spec(),
            "model": dict(self._model.spec()),
            **({"adapter": folder_revision(self._served_adapter)} if self._served_adapter else {}),
            "prompts": {name: load_prompt(f"planner/{name}").sha256 for name in ("plan", "repair")},
            "without": [name for name in ABOUT if name not in self._parts],
        }

    def close(self) -> None:
        """Let go of a local model and its memory; the next plan loads it again."""
        if isinstance(self._model, HoldsModel):
            self._model.close()

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story`, a long one in windows that know the characters and the last picture before them.

        Raises:
            PlanError: the story cannot be planned (no event, too few sentences). ReplyError: the model wrote no usable
            plan, even after one repair; its status and what it wrote are kept. ModelError: the model gave no answer.
        """
        seen, information = self.seen(story, request)
        limit = request.prompt_tokens
        characters: list[Character] = []
        panels: list[Panel] = []
        pairs: list[tuple[Transition, DraftTransition]] = []
        windows = windows_of(seen, request.panels)
        for number, window in enumerate(windows, 1):
            part = {"number": number, "count": len(windows)} if len(windows) > 1 else None
            prompt = plan_prompt(seen, window, self._parts, limit, part, characters, panels)
            heard = _told(request.heard, f"part {number} of {len(windows)}: " if part else "")
            draft = self._draft(seen, window, prompt, characters, heard)
            known = {item.name for item in characters}
            for new in draft.characters:
                if new.name not in known:
                    alone = as_sentence(f"{new.appearance}, alone, full body, plain background")
                    characters.append(Character(**new.model_dump(), anchor_prompt=alone))
            for index, item, source in zip(window.panels, draft.panels, _sources(window, draft), strict=True):
                panels.append(_panel(index, item, source, characters, self._parts, limit))
            pairs += zip(_transitions(story.story_id, window, draft), draft.transitions, strict=True)
        return self.made(
            story,
            request,
            information,
            panels,
            characters=characters,
            transitions=[transition for transition, _ in pairs],
            questions=_questions(story.story_id, pairs),
        )

    def _draft(
        self, story: StoryRecord, window: Window, prompt: str, characters: Sequence[Character], heard: Heard | None
    ) -> Draft:
        """Return the model's draft of one window; it is asked again once with what is wrong with it."""
        schema = reply_schema(window.shape, self._parts)
        known = [item.name for item in characters]
        turns = [Turn("user", prompt)]
        reply = self._asked(story, turns, schema, heard)
        draft, problems = self._read(window, reply, known)
        if draft is None or problems:
            repair = load_prompt("planner/repair").render(problems=problems[:8])
            turns += [Turn("assistant", reply.text), Turn("user", repair)]
            reply = self._asked(story, turns, schema, heard)
            draft, problems = self._read(window, reply, known)
        if draft is None or problems:
            raise ReplyError(
                f"The model wrote no plan of {story.story_id!r} that can be drawn, not even after a repair: "
                f"{problems[0]}",
                hint="Try a larger model, an adapter from `katha train planner`, or --planner rule.",
                raw=reply.text,
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
        return draft, list(draft_problems(draft, window.shape, self._parts, window.text, known))

    def _asked(
        self, story: StoryRecord, turns: Sequence[Turn], schema: Mapping[str, Any], heard: Heard | None
    ) -> Completion:
        """Return a whole reply; one that was refused, cut off or not asked is an error."""
        reply = self._model.complete(turns, schema, heard)
        if reply.status == "ok":
            return reply
        said = f"The model's plan of {story.story_id!r} failed ({reply.status}): {reply.error or 'no reason given'}."
        if reply.status == "transport_failed":
            raise ModelError(said, hint="Give the same command again when the server answers.")
        hint = _HINTS.get(reply.status, "Try another model.")
        raise ReplyError(said, hint=hint, status=reply.status, raw=reply.text)


def _told(heard: Callable[[str], None] | None, part: str) -> Heard | None:
    """Return what a model tells its tokens to, in words: `1,204 of at most 8,192 tokens`."""
    if heard is None:
        return None
    tell = heard
    return lambda done, most: tell(f"{part}{done:,} of at most {most:,} tokens")


_HINTS: Mapping[str, str] = {
    "truncated": "Raise the limit (--planner-option max_tokens=N), use fewer --panels, or another model.",
    "refused": "The model would not plan this story; try another model.",
    "not_asked": "Use fewer --panels or a model that reads more.",
}


def plan_prompt(
    story: StoryRecord,
    window: Window,
    parts: Collection[str],
    limit: int | None,
    part: Mapping[str, int] | None = None,
    known: Sequence[Character] = (),
    drawn: Sequence[Panel] = (),
) -> str:
    """Return what the model is asked for one window. limit: the renderer's prompt limit in tokens."""
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
        **{name: name in parts for name in ABOUT},
    )
