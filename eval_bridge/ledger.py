"""The valid-set ledger: why each question left, for every method and judge (Eq. 16, Sec. 3.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from katha.eval_bridge.matching import Matching
from katha.eval_bridge.outcomes import ENSEMBLE, MISSING, RIGHT, Outcomes, Selection, collect
from katha.schema import CONDITIONS, Answer, Condition, StoryRecord

__all__ = ["question_ledger", "summarise"]

_BOTH = CONDITIONS.index("text+image")
_SHOWN = 160
Rows = Callable[[], Iterable[Answer]]
Cell = tuple[str | None, str, str, str, Condition]


def question_ledger(
    records: Sequence[StoryRecord],
    rows: Rows,
    *,
    matching: Matching,
    questions: Selection,
    invalid: Mapping[str, Mapping[str, str]],
) -> Iterator[dict[str, Any]]:
    """Every question that is not in a method's filtered set, with `why` and, in words, `detail`.

    why: `invalid_story` (no usable board), `unscored` (a condition has no outcome) or `ambiguous` (wrong under
    text+image). `rows` gives the answers anew each time it is called, so that they are never all in memory.
    """
    outcomes = collect(records, rows(), matching=matching, selection=questions)
    left = list(_left(outcomes, invalid))
    wanted = {cell for item in left for cell in item["cells"]}
    said: dict[Cell, str] = {}
    for row in rows():
        cell = (row.method, row.judge, row.story_id, row.question_id, row.condition)
        if cell in wanted:
            said[cell] = _words(row)
    for item in left:
        cells: list[Cell] = item.pop("cells")
        details = list(dict.fromkeys(f"{cell[4]}: {said[cell]}" for cell in cells if cell in said))
        yield {**item, "detail": item["detail"] or "; ".join(details) or "was not asked"}


def summarise(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many questions left for each reason, by method and judge, sorted."""
    counts = Counter((item["method"], item["judge"], item["why"]) for item in items)
    return [
        {"method": method, "judge": judge, "why": why, "n": number}
        for (method, judge, why), number in sorted(counts.items())
    ]


def _words(row: Answer) -> str:
    if row.status != "ok":
        return f"{row.status} ({row.error[:_SHOWN]})" if row.error else row.status
    support = f", image support {row.image_support}" if row.image_support else ""
    return f"answered {(row.answer or '')[:_SHOWN]!r}{support}"


def _left(outcomes: Outcomes, invalid: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    for m, method in enumerate(outcomes.methods):
        for j, judge in enumerate(outcomes.judges):
            for at, question in enumerate(outcomes.questions):
                story = outcomes.stories[outcomes.story_of[at]]
                cells = outcomes.cells[m, j, :, at]
                missing = [name for place, name in enumerate(CONDITIONS) if cells[place] == MISSING]
                if not missing and cells[_BOTH] == RIGHT:
                    continue
                reason = invalid.get(method, {}).get(story)
                places: list[Condition] = missing or ["text+image"]
                people = [name for name in outcomes.judges if name != ENSEMBLE] if judge == ENSEMBLE else [judge]
                yield {
                    "method": method,
                    "judge": judge,
                    "story_id": story,
                    "question_id": question.question_id,
                    "dimension": question.question_type,
                    "why": "invalid_story" if reason else "unscored" if missing else "ambiguous",
                    "detail": reason or "",
                    "cells": [
                        (owner, name, story, question.question_id, place)
                        for name in people
                        for place in places
                        for owner in ((None, method) if place == "text" else (method,))
                    ],
                }
