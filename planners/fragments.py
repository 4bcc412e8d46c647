"""`fragments`: a language model cuts the story into drawable pieces and captions each one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from katha.configs import load_prompt
from katha.errors import PlanError, ReplyError
from katha.models.base import TextModel, Turn
from katha.models.registry import make_model
from katha.models.replies import object_of
from katha.planners.base import NEGATIVE_PROMPT, ModelPlanner, clip
from katha.protocols import Expected, PlanRequest
from katha.schema import Panel, Plan, StoryRecord

_FRAGMENT = re.compile(r"\[([^\[\]]*)\]")
_LETTERS_A_TOKEN = 4
_PROMPT_TOKENS, _CAPTION_TOKENS = 300, 80
_PROMPTS = ("fragments", "scene_caption")


class FragmentPlanner(ModelPlanner):
    """Fragments and scene captions by a language model, after Roemmele et al. (Sec. 3, Tables A.14 and A.15).

    Its argument is MODEL_OR_PATH, `anthropic:MODEL` or `openai:MODEL`. It sees the story's text alone, or the scenes of
    a record, which then are the fragments. It knows no characters and no transitions: the captions say it all.
    """

    name = "fragments"

    def __init__(
        self,
        argument: str | None = None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Name the model; nothing is loaded or called yet.

        Raises:
            UsageError, InputFileError, ModelError, MissingExtraError: the model cannot be used.
        """
        self._model: TextModel = make_model(
            argument, device=device, dtype=dtype, base_url=base_url, max_tokens=max_tokens
        )

    def expected(self, story: StoryRecord, panels: int) -> Expected:
        """Return what a plan of `story` is reckoned at: one call that cuts a text, and a caption for each panel."""
        text, cuts = len(story.story_text) // _LETTERS_A_TOKEN, 0 if story.scenes else 1
        read = (panels + cuts) * (text + _PROMPT_TOKENS)
        return Expected(panels + cuts, {"input": read, "output": cuts * text + panels * _CAPTION_TOKENS})

    def spec(self) -> Mapping[str, Any]:
        """Return the model and the prompts' hashes."""
        prompts = {name: load_prompt(f"planner/{name}").sha256 for name in _PROMPTS}
        return {**super().spec(), "model": dict(self._model.spec()), "prompts": prompts}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a panel for each fragment; its prompt is the fragment's caption.

        Raises:
            PlanError: the story has another number of fragments than panels. ReplyError: the model's fragments are not
            the story, or it wrote no caption. ModelError: it gave no answer.
        """
        seen, information = self.seen(story, request)
        fragments = [scene.scene_text for scene in seen.scenes] or self._fragments(seen.story_text)
        if len(fragments) != request.panels:
            raise PlanError(
                f"Story {story.story_id!r} has {len(fragments)} fragments where {request.panels} panels are asked for.",
                hint=f"Give --panels {len(fragments)}." if len(fragments) > 1 else "Tell more than one moment.",
            )
        panels = []
        for at, fragment in enumerate(fragments, 1):
            told = load_prompt("planner/scene_caption").render(story=seen.story_text, fragment=fragment)
            caption = self._text(told, "caption")
            panels.append(
                Panel(
                    index=at,
                    prompt=clip(caption, request.prompt_tokens),
                    negative_prompt=NEGATIVE_PROMPT,
                    caption=fragment,
                    source=fragment,
                )
            )
        return self.made(story, request, information, panels)

    def _fragments(self, story: str) -> list[str]:
        told = load_prompt("planner/fragments").render(story=story)
        return list(read_fragments(story, self._text(told, "fragmented_story")))

    def _text(self, told: str, field: str) -> str:
        """Return the one text of a reply.

        Raises:
            ReplyError: the model gave another reply. ModelError: it cannot be used.
        """
        text = {"type": "string", "minLength": 1, "maxLength": 20_000}
        schema = {"type": "object", "properties": {field: text}, "required": [field], "additionalProperties": False}
        reply = self._model.complete([Turn("user", told)], schema)
        if reply.status != "ok":
            raise ReplyError(f"The model wrote no {field}: {reply.error}.", status=reply.status, raw=reply.text)
        try:
            value = object_of(reply.text)[field]
        except (ValueError, KeyError, TypeError) as error:
            raise ReplyError(f"The model's reply has no text {field!r}.", raw=reply.text) from error
        if not isinstance(value, str) or not value.strip():
            raise ReplyError(f"The model's reply has an empty {field!r}.", raw=reply.text)
        return value.strip()


def read_fragments(story: str, annotated: str) -> tuple[str, ...]:
    """Return the fragments that brackets mark in a reply (Sec. 3), lossless: joined by blanks they are the story.

    Raises:
        ReplyError: no fragment, text outside of brackets, or words other than the story's; the first place is named.
    """
    fragments = tuple(piece.strip() for piece in _FRAGMENT.findall(annotated) if piece.strip())
    outside = _FRAGMENT.sub(" ", annotated).split()
    if not fragments or outside:
        reason = f"text outside of the brackets ({' '.join(outside)[:60]!r})" if outside else "no fragment in brackets"
        raise ReplyError(f"The reply has {reason}.", raw=annotated)
    wanted, given = story.split(), " ".join(fragments).split()
    if wanted != given:
        at = next((n for n, pair in enumerate(zip(wanted, given, strict=False)) if pair[0] != pair[1]), None)
        place = min(len(wanted), len(given)) if at is None else at
        raise ReplyError(
            f"The fragments are not the story: word {place + 1} is {' '.join(given[place : place + 1])!r}, "
            f"in the story {' '.join(wanted[place : place + 1])!r}.",
            raw=annotated,
        )
    return fragments
