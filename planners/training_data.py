"""What a planner is trained on: the very prompt that it asks with, and the gold plan as its reply, as token ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from katha.errors import KathaError
from katha.planners.base import parts_without, restrict
from katha.planners.draft import TIMES, draft_problems, read_draft
from katha.planners.gemma_st import GemmaPlanner, parts_of, plan_prompt
from katha.planners.gold import OraclePlanner
from katha.planners.quality import FIELDS
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, StoryRecord, Transition

LEFT_OUT = ("links", "shots", "visual", "questions")
"""What no KathaBench record annotates, and questions, which others write: an adapter is trained, and used, without."""
_LONGEST = {"prompt": 600, "must_show": 120, "appearance": 240, "name": 60, "kind": 60}
_LONGEST |= {"in_text": 120, "field": 200, "place": 80}
_MOST_SHOWN = 5
_MOST_LETTERS = 60_000


@dataclass(frozen=True)
class TrainingExample:
    """One story as the planner sees it, and the reply that is learnt."""

    story_id: str
    prompt: str
    reply: str


@dataclass
class Examples:
    """What can be learnt from, and why the rest cannot (by story)."""

    kept: list[TrainingExample] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)


def make_examples(records: Iterable[StoryRecord]) -> Examples:
    """Return an example of each record whose gold plan the planner's own validator accepts."""
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


def _example(record: StoryRecord) -> tuple[TrainingExample | None, str]:
    parts, panels = parts_without(LEFT_OUT), len(record.scenes)
    plan = OraclePlanner().plan(record, PlanRequest(panels=panels))
    seen, _ = restrict(record, GemmaPlanner.sees)
    request = PlanRequest(panels=panels)
    whole = parts_of(seen, request, _MOST_LETTERS)
    if len(whole) > 1:
        return None, "It is longer than what is planned at once."
    value = _reply(plan)
    draft, problems = read_draft(value)
    if draft is not None:
        problems = [item for item in draft_problems(draft, whole[0].shape, parts) if not item.soft]
    if problems:
        return None, str(problems[0])
    reply = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return TrainingExample(record.story_id, plan_prompt(seen, whole, 1, parts, request), reply), ""


def _reply(plan: Plan) -> dict[str, Any]:
    """Return the gold plan as the model is to write it; what gold says nothing of is null or empty."""
    sheet = ("name", "in_text", "kind", "appearance")
    cast = [
        {name: _cut(getattr(item, "name" if name == "in_text" else name), name) for name in sheet}
        for item in plan.characters
    ]
    transitions = [_transition(item) for item in plan.transitions]
    return {"tells_events": True, "cast": cast, "panels": [*map(_panel, plan.panels)], "transitions": transitions}


def _panel(panel: Panel) -> dict[str, Any]:
    shown = [_cut(item, "must_show") for item in panel.must_show[:_MOST_SHOWN]]
    return {
        "place": _cut(panel.place, "place"),
        "time_of_day": panel.time_of_day if panel.time_of_day in TIMES else "unclear",
        "characters": panel.characters[:8],
        "must_show": shown or [_cut(panel.caption, "must_show")],
        "prompt": _cut(panel.prompt, "prompt"),
    }


def _transition(item: Transition) -> dict[str, Any]:
    told = {name: _cut(getattr(item, name) or "", "field") for name in FIELDS}
    unsaid = {name: told[name] or None for name in ("intention", "emotion")}
    kind = item.transition_type or (
        "cause_effect" if item.causality else "consequence_reveal"
    )  # a reply has to name one
    return {"transition_type": kind, **told, **unsaid, "moral_target": item.moral_target or None}


def _cut(text: str, kind: str) -> str:
    """Return `text` within what the reply's schema allows, cut at a word."""
    clean, most = " ".join(text.split()), _LONGEST[kind]
    return clean if len(clean) <= most else clean[:most].rsplit(" ", 1)[0]


_IGNORED = -100
"""The label that transformers leaves out of the loss."""


def encode(
    examples: Sequence[TrainingExample], tokenizer: Any, longest: int
) -> tuple[list[dict[str, list[int]]], list[str]]:
    """Return `input_ids` and `labels` of each example, and the stories that are longer than `longest` tokens."""
    rows: list[dict[str, list[int]]] = []
    too_long: list[str] = []
    # The chat format's own mark ends a turn where the tokenizer has one.
    marked = tokenizer.convert_tokens_to_ids("<end_of_turn>") not in {None, tokenizer.unk_token_id}
    end = "<end_of_turn>" if marked else tokenizer.eos_token
    for item in examples:
        asked = [{"role": "user", "content": item.prompt}]
        prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
        start = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        reply = tokenizer(f"{item.reply}{end}", add_special_tokens=False)["input_ids"]
        if len(start) + len(reply) > longest:
            too_long.append(item.story_id)
            continue
        rows.append({"input_ids": [*start, *reply], "labels": [_IGNORED] * len(start) + list(reply)})
    return rows, too_long


def pack(rows: Sequence[Mapping[str, Sequence[int]]], longest: int) -> list[dict[str, list[int]]]:
    """Return `rows` put together into sequences of at most `longest` ids, the longest first, each where it fits.

    `position_ids` begin again with every example: by that a model knows that no example sees another one.
    """
    packed: list[dict[str, list[int]]] = []
    for row in sorted(rows, key=lambda one: -len(one["input_ids"])):
        count = len(row["input_ids"])
        place = next((one for one in packed if len(one["input_ids"]) + count <= longest), None)
        if place is None:
            place = {"input_ids": [], "labels": [], "position_ids": []}
            packed.append(place)
        place["input_ids"] += row["input_ids"]
        # What follows another example's end is not predicted from it.
        place["labels"] += [_IGNORED, *row["labels"][1:]]
        place["position_ids"] += range(count)
    return packed


@dataclass(frozen=True)
class Collator:
    """Rows to one batch, padded on the right. typed: the model asks which tokens are pictures (none are)."""

    pad: int
    typed: bool

    def __call__(self, rows: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Any]:
        """Return tensors of shape (B, T); packed rows have positions in the place of an attention mask."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        fills = {"input_ids": self.pad, "labels": _IGNORED, "position_ids": 0, "attention_mask": 0}
        given = [
            row if "position_ids" in row else {**row, "attention_mask": [1] * len(row["input_ids"])} for row in rows
        ]
        batch = {
            name: pad_sequence([torch.tensor(row[name]) for row in given], batch_first=True, padding_value=fill)
            for name, fill in fills.items()
            if name in given[0]
        }
        if self.typed:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        return batch
