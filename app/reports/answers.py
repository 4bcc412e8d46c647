"""What was asked and answered under each condition, grouped by transition, each answer with its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from katha.app.reports.page import DIMENSION_WORDS, Run
from katha.schema import Answer, Question

_Column = tuple[str, str | None, str]
_Index = dict[tuple[str | None, str, str, str], Answer]
_VERDICTS = {True: ("right", "\u2713"), False: ("wrong", "\u2717"), None: ("none", "\u2013")}


def answer_groups(run: Run) -> dict[str, Any]:
    """Reporting questions with their answers before and after, and the steering questions of the selected board."""
    index = _index(run.answers)
    judges = sorted({answer.judge for answer in run.answers})
    reporting = [item for item in run.story.recoverability_questions if item.role == "reporting"]
    steering = [item for item in run.story.recoverability_questions if item.role == "steering"]
    methods = ["base"] + ([run.board.mode] if run.board.mode != "base" else [])
    columns = _columns(methods)
    guiding: list[_Column] = [("Images", run.candidates.decision.selected, "image")]
    return {
        "columns": columns,
        "reporting": [_row(item, columns, judges, index, run) for item in reporting],
        "steering_columns": guiding,
        "steering": [_row(item, guiding, judges, index, run) for item in steering],
        "several": len(judges) > 1,
    }


def _columns(methods: list[str]) -> list[_Column]:
    columns: list[_Column] = [("Text", None, "text")]
    for method in methods:
        when = "before" if method == "base" else "after"
        columns += [(f"Images, {when}", method, "image"), (f"Text and images, {when}", method, "text+image")]
    return columns


def _index(answers: Iterable[Answer]) -> _Index:
    return {(item.method, item.judge, item.question_id, item.condition): item for item in answers}


def _row(
    question: Question,
    columns: list[_Column],
    judges: list[str],
    index: _Index,
    run: Run,
) -> dict[str, Any]:
    cells = [
        [_cell(index.get((method, judge, question.question_id, condition)), question, judge, run) for judge in judges]
        for _, method, condition in columns
    ]
    pair = question.target_transition
    return {
        "id": question.question_id,
        "pair": f"{pair[0]}\u2192{pair[1]}" if pair else "whole story",
        "dimension": DIMENSION_WORDS[question.question_type],
        "question": question.question,
        "gold": question.gold_answer,
        "options": question.options or [],
        "cells": cells,
        "flag": _flag(cells),
    }


def _cell(answer: Answer | None, question: Question, judge: str, run: Run) -> dict[str, str]:
    from katha.eval_bridge.matching.match import match

    if answer is None:
        return {"judge": judge, "verdict": "none", "mark": "\u2013", "answer": "not asked", "note": ""}
    if answer.status != "ok":
        return {"judge": judge, "verdict": "none", "mark": "!", "answer": answer.status, "note": answer.error or ""}
    verdict = match(answer, question, run.matching)
    name, mark = _VERDICTS[verdict.right]
    return {"judge": judge, "verdict": name, "mark": mark, "answer": answer.answer or "", "note": verdict.reason}


def _flag(cells: list[list[dict[str, str]]]) -> str:
    """`recovered` or `harmed`: the repair changed an image-only verdict; `lost`: right by text, wrong by images."""
    if len(cells) < 4:
        return ""
    text, before, after = cells[0][0]["verdict"], cells[1][0]["verdict"], cells[3][0]["verdict"]
    if before != after and "none" not in (before, after):
        return "recovered" if after == "right" else "harmed"
    return "lost" if text == "right" and after == "wrong" else ""
