"""Repair cases by rule (Sec. K.2, Table 68): successes, boundaries and harms, chosen by numbers and never by eye."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.agents.ablation.records import RowBoard, StoryResult
from katha.agents.ablation.tally import Tally
from katha.compass.features import board_key
from katha.compass.suites import Row
from katha.eval_bridge.outcomes import MISSING, RIGHT, Outcomes
from katha.schema import CONDITIONS, DIMENSIONS, Board

__all__ = ["repair_cases"]

_EACH = 3
_TEXT, _IMAGE, _BOTH = range(3)
_RULE = (
    "Every accepted repair whose board before it was judged too is measured by its change of STG on the reporting "
    f"questions valid for both boards. Success: the {_EACH} largest falls. Harm: the {_EACH} largest rises. Boundary: "
    f"the {_EACH} smallest changes of the rest. Ties go by story id."
)


def repair_cases(tally: Tally) -> dict[str, Any] | None:
    """The cases of the suite's focus row, and how often its repairs harm; None for a suite without one."""
    if tally.job.suite.focus is None:
        return None
    row = tally.job.suite.row(tally.job.suite.focus)
    found: list[dict[str, Any]] = []
    repaired = 0
    for result in tally.results:
        for board in result.boards:
            if board.row == row.name and board.before is not None:
                repaired += 1
                case = _case(tally, row, result, board)
                found += [case] if case is not None else []
    worse = sum(case["image_change"] < -1e-9 for case in found)
    better = sum(case["image_change"] > 1e-9 for case in found)
    return {
        "row": row.name,
        "rule": _RULE,
        "repaired": repaired,
        "measured": len(found),
        "harmed": worse,
        "improved": better,
        "harm_rate": 100.0 * worse / len(found) if found else None,
        "cases": _chosen(found),
    }


def _chosen(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    falls = sorted((c for c in found if c["delta"] < -1e-9), key=lambda c: (c["delta"], c["story_id"]))[:_EACH]
    rises = sorted((c for c in found if c["delta"] > 1e-9), key=lambda c: (-c["delta"], c["story_id"]))[:_EACH]
    taken = {case["story_id"] for case in (*falls, *rises)}
    rest = [case for case in found if case["story_id"] not in taken]
    small = sorted(rest, key=lambda c: (abs(c["delta"]), c["story_id"]))[:_EACH]
    groups = (("success", falls), ("boundary", small), ("harm", rises))
    return [{"group": group, **case} for group, cases in groups for case in cases]


def _case(tally: Tally, row: Row, result: StoryResult, board: RowBoard) -> dict[str, Any] | None:
    """One repair before and after; None when the board before was not judged or no question is valid for both."""
    before = _judged_as(result, board.before)
    outcomes = tally.outcomes(row)
    if before is None or not {before, board.method} <= set(outcomes.methods):
        return None
    cells = [outcomes.cells[outcomes.methods.index(name), -1] for name in (before, board.method)]
    own = outcomes.story_of == outcomes.stories.index(result.story_id)
    right = [item == RIGHT for item in cells]
    scored = own & (cells[0] != MISSING).all(axis=0) & (cells[1] != MISSING).all(axis=0)
    valid = scored & right[0][_BOTH] & right[1][_BOTH]
    if not valid.any():
        return None
    stg = [_mean(outcomes, item[_TEXT], valid) - _mean(outcomes, item[_IMAGE], valid) for item in right]
    seen = [_mean(outcomes, item[_IMAGE], scored) for item in right]
    return {
        "story_id": result.story_id,
        "title": result.title,
        "before": before,
        "after": board.method,
        "stg_before": 100.0 * stg[0],
        "stg_after": 100.0 * stg[1],
        "delta": 100.0 * (stg[1] - stg[0]),
        "image_change": 100.0 * (seen[1] - seen[0]),
        "n_valid": int(valid.sum()),
        "weakest": board.decision.weakest,
        "reason": board.decision.reason,
        "frames": [frame.model_dump(mode="json") for frame in board.board.frames],
        "frames_before": [frame.sha256 for frame in board.before.frames] if board.before else [],
        "questions": _changed(outcomes, scored, right),
    }


def _judged_as(result: StoryResult, board: Board | None) -> str | None:
    """The method under which a board of that very look was judged."""
    wanted = board_key(board.frames) if board is not None else None
    return next((item.method for item in result.boards if board_key(item.board.frames) == wanted), None)


def _mean(outcomes: Outcomes, right: NDArray[np.bool_], kept: NDArray[np.bool_]) -> float:
    """The mean over the dimensions that have a question, in 0..1."""
    rates = [
        float(right[own].mean()) for at in range(len(DIMENSIONS)) if (own := kept & (outcomes.dimension_of == at)).any()
    ]
    return float(np.mean(rates)) if rates else 0.0


def _changed(outcomes: Outcomes, scored: NDArray[np.bool_], right: list[NDArray[np.bool_]]) -> list[dict[str, Any]]:
    """The questions whose verdict from the images changed."""
    image = CONDITIONS.index("image")
    return [
        {
            "question": outcomes.questions[at].question,
            "dimension": outcomes.questions[at].question_type,
            "gold": outcomes.questions[at].gold_answer,
            "before": bool(right[0][image, at]),
            "after": bool(right[1][image, at]),
        }
        for at in np.flatnonzero(scored & (right[0][image] != right[1][image]))
    ]
