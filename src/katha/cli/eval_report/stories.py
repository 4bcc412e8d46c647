"""The stories of an evaluation in its report: each board's pictures, every answer and its verdict."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from katha.cli.report.load import panel_uri
from katha.cli.report.words import DIMENSION_WORDS
from katha.errors import InputFileError
from katha.jsonio import iter_lines
from katha.schema import Answer, Condition, Question, StoryRecord

if TYPE_CHECKING:
    from katha.eval_bridge.matching import Rule

__all__ = ["story_views"]

_INLINE = 30
_VERDICTS = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("none", "\u2013")}
_Index = dict[tuple[str | None, str, str, str, str], Answer]
_Column = tuple[str, str | None, Condition]


def story_views(out: Path, state: Mapping[str, Any], left: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every story with links to its boards; the ones that lost most questions (30 at most) in full."""
    losses = Counter(str(item["story_id"]) for item in left)
    records = [StoryRecord.model_validate_json(line) for _, line in iter_lines(out / "stories.jsonl")]
    from katha.eval_bridge.rules import folder_rule

    order = sorted(records, key=lambda record: (-losses[record.story_id], record.story_id))
    shown = {record.story_id for record in order[:_INLINE]}
    index = _index(out / "answers.jsonl", shown)
    rule = folder_rule(state["config"]["matching"], out)
    return [_story(record, out, state, index, rule, record.story_id in shown) for record in order]


def _index(path: Path, stories: set[str]) -> _Index:
    from katha.eval_bridge import iter_answers

    rows: Iterable[Answer] = iter_answers(path) if path.exists() else ()
    return {
        (row.method, row.judge, row.story_id, row.question_id, row.condition): row
        for row in rows
        if row.story_id in stories
    }


def _story(
    record: StoryRecord, out: Path, state: Mapping[str, Any], index: _Index, rule: Rule, inline: bool
) -> dict[str, Any]:
    boards = [_board(name, Path(folder), record, out, state, inline) for name, folder in state["boards"].items()]
    columns = _columns([board["name"] for board in boards if not board["reason"]])
    judges, asked = list(state["judges"]), state["config"]["questions"]
    return {
        "id": record.story_id,
        "title": record.title or record.story_id,
        "text": record.story_text,
        "steered": any(item.role == "steering" for item in record.recoverability_questions),
        "boards": boards,
        "inline": inline,
        "columns": [name for name, _, _ in columns],
        "several": len(judges) > 1,
        "rows": [
            _row(item, record, columns, judges, index, rule)
            for item in record.recoverability_questions
            if inline and len(columns) > 1 and asked in ("all", item.role or asked)
        ],
    }


def _columns(methods: Sequence[str]) -> list[_Column]:
    columns: list[_Column] = [("Text", None, "text")]
    for method in methods:
        columns += [(f"Images, {method}", method, "image"), (f"Text and images, {method}", method, "text+image")]
    return columns


def _board(
    name: str, folder: Path, record: StoryRecord, out: Path, state: Mapping[str, Any], inline: bool
) -> dict[str, Any]:
    from katha.eval_bridge.boards import BoardProblem, Boards, read_board

    reason = state["invalid"].get(name, {}).get(record.story_id, "")
    frames = []
    if inline and not reason:
        try:
            board = read_board(Boards(name, folder), record)
            frames = [
                {
                    "uri": panel_uri(frame.path, small=True),
                    "kind": frame.kind,
                    "alt": f"{name}, frame {place}" + ("" if frame.kind == "scene" else f" ({frame.kind})"),
                }
                for place, frame in enumerate(board.frames, 1)
            ]
        except (BoardProblem, InputFileError) as error:
            reason = f"changed since it was judged: {error.message}"
    place = folder / record.story_id
    link = quote(Path(os.path.relpath(place.resolve(), out.resolve())).as_posix()) if place.is_dir() else None
    return {"name": name, "reason": reason, "frames": frames, "link": link}


def _row(
    question: Question,
    record: StoryRecord,
    columns: Sequence[_Column],
    judges: Sequence[str],
    index: _Index,
    rule: Rule,
) -> dict[str, Any]:
    def find(method: str | None, judge: str, condition: str) -> Answer | None:
        return index.get((method, judge, record.story_id, question.question_id, condition))

    pair = question.target_transition
    return {
        "pair": f"{pair[0]}→{pair[1]}" if pair else "whole story",
        "dimension": DIMENSION_WORDS[question.question_type],
        "question": question.question,
        "gold": question.gold_answer,
        "options": question.options or [],
        "cells": [
            [_cell(find(method, judge, condition), question, judge, rule) for judge in judges]
            for _, method, condition in columns
        ],
    }


def _cell(answer: Answer | None, question: Question, judge: str, rule: Rule) -> dict[str, str]:
    from katha.eval_bridge import match

    if answer is None:
        return {"judge": judge, "verdict": "none", "mark": "–", "answer": "not asked", "note": ""}
    if answer.status != "ok":
        return {"judge": judge, "verdict": "none", "mark": "!", "answer": answer.status, "note": answer.error or ""}
    verdict = match(answer, question, rule)
    name, sign = _VERDICTS[verdict.right]
    return {"judge": judge, "verdict": name, "mark": sign, "answer": answer.answer or "", "note": verdict.reason}
