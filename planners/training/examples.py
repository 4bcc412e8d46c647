"""Records to examples: the very prompt that the planner asks with, and the gold plan as its reply, as token ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from katha.errors import KathaError
from katha.language import read_scene
from katha.planners.checks import Switches, restrict
from katha.planners.draft import TIMES, draft_problems, read_draft, windows_of
from katha.planners.gemma_st import plan_prompt
from katha.planners.gold import OraclePlanner
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, Question, StoryRecord, Transition

LEFT_OUT = ("links", "shots")
"""What no KathaBench record annotates: an adapter is trained, and used, without them."""
_LONGEST = {"prompt": 400, "must_show": 80, "appearance": 120, "name": 40, "field": 160, "answer": 100}
_MOST_SHOWN, _MOST_ASKED, _MOST_ACCEPTED = 4, 4, 4


@dataclass(frozen=True)
class Example:
    """One story as the planner sees it, and the reply that is learnt."""

    story_id: str
    prompt: str
    reply: str


@dataclass
class Examples:
    """What can be learnt from, and why the rest cannot (by story)."""

    kept: list[Example] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)


def make_examples(records: Iterable[StoryRecord]) -> Examples:
    """An example of each record whose gold plan the planner's own validator accepts."""
    found = Examples()
    for record in records:
        try:
            made, problem = _example(record)
        except KathaError as error:
            made, problem = None, error.message
        if made is None:
            found.rejected[record.story_id] = problem
        else:
            found.kept.append(made)
    return found


def _example(record: StoryRecord) -> tuple[Example | None, str]:
    switches, panels = Switches.without(LEFT_OUT), len(record.scenes)
    plan = OraclePlanner().plan(record, PlanRequest(panels=panels))
    seen, _ = restrict(record, "gemma-st")
    windows = windows_of(seen, panels)
    if len(windows) > 1:
        return None, f"It has {panels} scenes, more than are planned at once."
    value = _reply(record, plan)
    reply = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    draft, problems = read_draft(reply)
    if draft is not None:
        told = f"{record.story_text}\n{windows[0].text}"
        problems = [*problems, *draft_problems(draft, windows[0].shape, switches, told)]
    if problems:
        return None, problems[0]
    return Example(record.story_id, plan_prompt(seen, windows[0], switches, None), reply), ""


def _reply(record: StoryRecord, plan: Plan) -> dict[str, Any]:
    sheets = [
        {
            "name": _cut(item.name, "name"),
            "kind": _cut(item.kind, "name"),
            "appearance": _cut(item.appearance, "appearance"),
        }
        for item in plan.characters
    ]
    return {
        "tells_events": True,
        "characters": sheets,
        "panels": [_panel(panel) for panel in plan.panels],
        "transitions": [_transition(item, record.recoverability_questions) for item in plan.transitions],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    reading = read_scene(panel.prompt)
    shown = [_cut(item, "must_show") for item in panel.must_show[:_MOST_SHOWN]]
    return {
        "place": (reading.setting or "unclear").replace("_", " "),
        "time_of_day": reading.time if reading.time in TIMES else "unclear",
        "characters": panel.characters[:6],
        "must_show": shown or [_cut(panel.caption, "must_show")],
        "prompt": _cut(panel.prompt, "prompt"),
    }


def _transition(item: Transition, questions: Sequence[Question]) -> dict[str, Any]:
    asked = [one for one in questions if one.target_transition == item.pair and one.question_type != "moral"]
    return {
        "transition_type": item.transition_type,
        **{name: _cut(getattr(item, name) or "none", "field")
           for name in ("action", "causality", "intention", "emotion", "consequence")},
        "moral_target": item.moral_target or None,
        "questions": [_question(one) for one in asked[:_MOST_ASKED]],
    }  # fmt: skip


def _question(item: Question) -> dict[str, Any]:
    accepted = [text for text in item.accepted_answers if text != item.gold_answer] or [item.gold_answer]
    return {
        "dimension": item.question_type,
        "question": _cut(item.question, "field"),
        "answer": _cut(item.gold_answer, "answer"),
        "accepted": [_cut(text, "answer") for text in accepted[:_MOST_ACCEPTED]],
    }


def _cut(text: str, kind: str) -> str:
    """`text` within what the reply's schema allows, cut at a word."""
    clean, most = " ".join(text.split()), _LONGEST[kind]
    return clean if len(clean) <= most else clean[:most].rsplit(" ", 1)[0]


_IGNORED = -100
"""The label that transformers leaves out of the loss."""


def encode(examples: Sequence[Example], tokenizer: Any, longest: int) -> tuple[list[dict[str, list[int]]], list[str]]:
    """`input_ids` and `labels` of each example, and the stories that are longer than `longest` tokens."""
    rows: list[dict[str, list[int]]] = []
    too_long: list[str] = []
    for item in examples:
        asked = [{"role": "user", "content": item.prompt}]
        prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
        start = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        reply = tokenizer(f"{item.reply}{_end(tokenizer)}", add_special_tokens=False)["input_ids"]
        if len(start) + len(reply) > longest:
            too_long.append(item.story_id)
            continue
        rows.append({"input_ids": [*start, *reply], "labels": [_IGNORED] * len(start) + list(reply)})
    return rows, too_long


def _end(tokenizer: Any) -> str:
    """What ends a turn: the chat format's own mark where the tokenizer has one."""
    mark = "<end_of_turn>"
    known = tokenizer.convert_tokens_to_ids(mark) not in {None, tokenizer.unk_token_id}
    return mark if known else str(tokenizer.eos_token)


@dataclass(frozen=True)
class Collator:
    """Rows to one batch, padded on the right. typed: the model asks which tokens are pictures (none are)."""

    pad: int
    typed: bool

    def __call__(self, rows: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Any]:
        """Tensors of shape (B, T)."""
        import torch

        longest = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, fill: int) -> Any:
            return torch.tensor([[*row[name], *[fill] * (longest - len(row[name]))] for row in rows])

        batch = {"input_ids": padded("input_ids", self.pad), "labels": padded("labels", _IGNORED)}
        lengths = torch.tensor([[len(row["input_ids"])] for row in rows])
        batch["attention_mask"] = (torch.arange(longest)[None] < lengths).long()
        if self.typed:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        return batch
