"""The stories of an evaluation in its report: each board's pictures, every answer and its verdict."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
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

__all__ = ["STORY_PAGES", "story_pages", "story_views"]

STORY_PAGES = "stories"
"""The folder of the pages of those stories that are not in the report itself."""
_INLINE, _PAGE = 30, 25
_VERDICTS = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("none", "\u2013")}
_Index = dict[tuple[str | None, str, str, str, str], Answer]
_Column = tuple[str, str | None, Condition]


def story_views(out: Path, state: Mapping[str, Any], left: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every story with links to its boards; the ones that lost most questions (30 at most) in full, with pictures.

    The others have a `page`, which `story_pages` makes.
    """
    order, shown, pages = _divided(out, left)
    index = _index(_answers(out), shown)
    rule = _rule(out, state)
    page_of = {
        record.story_id: f"{STORY_PAGES}/{_name(number)}#{record.story_id}"
        for number, page in enumerate(pages)
        for record in page
    }
    return [
        _story(record, out, state, index, rule, pictures=True)
        if record.story_id in shown
        else _story(record, out, state, {}, rule, page=page_of[record.story_id])
        for record in order
    ]


def story_pages(
    out: Path, state: Mapping[str, Any], left: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and content of each page of 25 stories, one after the other: `answers.jsonl` is read once, in order."""
    _, _, pages = _divided(out, left)
    place = {record.story_id: number for number, page in enumerate(pages) for record in page}
    groups = groupby((row for row in _answers(out) if row.story_id in place), key=lambda row: place[row.story_id])
    waiting = next(groups, None)
    rule = _rule(out, state)
    for number, page in enumerate(pages):
        index: _Index = {}
        if waiting is not None and waiting[0] == number:
            index = _index(waiting[1], place)
            waiting = next(groups, None)
        folder = out / STORY_PAGES
        yield (
            _name(number),
            {
                "first": number * _PAGE + 1,
                "last": number * _PAGE + len(page),
                "before": _name(number - 1) if number else None,
                "after": _name(number + 1) if number + 1 < len(pages) else None,
                "stories": [_story(record, folder, state, index, rule) for record in page],
            },
        )


def _name(number: int) -> str:
    return f"{number + 1:04d}.html"


def _rule(out: Path, state: Mapping[str, Any]) -> Rule:
    from katha.eval_bridge.rules import folder_rule

    return folder_rule(state["config"]["matching"], out)


def _divided(
    out: Path, left: Sequence[Mapping[str, Any]]
) -> tuple[list[StoryRecord], frozenset[str], list[list[StoryRecord]]]:
    """The stories, those that lost most questions first; who is shown in the report; the others by page, as given."""
    losses = Counter(str(item["story_id"]) for item in left)
    records = [StoryRecord.model_validate_json(line) for _, line in iter_lines(out / "stories.jsonl")]
    order = sorted(records, key=lambda record: (-losses[record.story_id], record.story_id))
    shown = frozenset(record.story_id for record in order[:_INLINE])
    others = [record for record in records if record.story_id not in shown]
    return order, shown, [others[at : at + _PAGE] for at in range(0, len(others), _PAGE)]


def _answers(out: Path) -> Iterator[Answer]:
    """The answers of an evaluation, if it has any."""
    from katha.eval_bridge import iter_answers

    path = out / "answers.jsonl"
    yield from iter_answers(path) if path.exists() else ()


def _index(rows: Iterable[Answer], stories: Container[str]) -> _Index:
    return {
        (row.method, row.judge, row.story_id, row.question_id, row.condition): row
        for row in rows
        if row.story_id in stories
    }


def _story(
    record: StoryRecord,
    base: Path,
    state: Mapping[str, Any],
    index: _Index,
    rule: Rule,
    *,
    pictures: bool = False,
    page: str | None = None,
) -> dict[str, Any]:
    """One story. base: the folder that links start from. page: where it is told in full, if that is elsewhere."""
    boards = [_board(name, Path(place), record, base, state, pictures) for name, place in state["boards"].items()]
    columns = _columns([board["name"] for board in boards if board["judged"]])
    judges, asked = list(state["judges"]), state["config"]["questions"]
    return {
        "id": record.story_id,
        "title": record.title or record.story_id,
        "text": record.story_text,
        "steered": any(item.role == "steering" for item in record.recoverability_questions),
        "boards": boards,
        "inline": page is None,
        "page": page,
        "columns": [name for name, _, _ in columns],
        "several": len(judges) > 1,
        "rows": [
            _row(item, record, columns, judges, index, rule)
            for item in record.recoverability_questions
            if page is None and len(columns) > 1 and asked in ("all", item.role or asked)
        ],
    }


def _columns(methods: Sequence[str]) -> list[_Column]:
    columns: list[_Column] = [("Text", None, "text")]
    for method in methods:
        columns += [(f"Images, {method}", method, "image"), (f"Text and images, {method}", method, "text+image")]
    return columns


def _board(
    name: str, folder: Path, record: StoryRecord, base: Path, state: Mapping[str, Any], pictures: bool
) -> dict[str, Any]:
    from katha.eval_bridge.boards import BoardProblem, Boards, read_board

    invalid = state["invalid"].get(name, {}).get(record.story_id)
    note, frames = f"Not judged: {invalid}" if invalid else "", []
    if pictures and not invalid:
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
            note = f"Changed since it was judged: {error.message}"
    place = folder / record.story_id
    told = (place / "report.html").is_file()
    target = place / "report.html" if told else place
    link = quote(Path(os.path.relpath(target.resolve(), base.resolve())).as_posix()) if place.is_dir() else None
    opens = "open its report" if told else "open the folder"
    return {"name": name, "judged": not invalid, "note": note, "frames": frames, "link": link, "opens": opens}


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
