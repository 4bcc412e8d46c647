"""The numbers that are shown: reporting questions under the three conditions, before and after, and the files of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from katha.agents.context import RunContext
from katha.agents.critique import ask_all
from katha.agents.frames import images_of
from katha.schema import Answer, Board, Candidate, Candidates, Decision, Event

__all__ = ["final_board", "judge_boards", "reporting_boards", "write_results"]

Emit = Callable[[Event], None]


def final_board(candidates: Iterable[Candidate], decision: Decision, mode: str) -> Board:
    """The board that the decision leaves, under the mode's name."""
    name = decision.inserted if decision.accepted and decision.inserted else decision.selected
    board = next(item.board for item in candidates if item.name == name)
    return board.model_copy(update={"method": mode})


def reporting_boards(context: RunContext, base: Board, final: Board) -> dict[str, Board]:
    """What is judged for the report, by method: the first seed's board, and the final one."""
    return {"base": base.model_copy(update={"method": "base"}), context.mode.name: final}


def judge_boards(context: RunContext, boards: dict[str, Board], emit: Emit, *, text: bool = True) -> list[Answer]:
    """The reporting answers: text once for all boards, images and text with images for each (equal ones are reused).

    `text` is False when the text-only answers are in the log already.
    """
    questions = context.questions("reporting")

    def put(condition: Any, images: list[bytes], method: str | None) -> list[Answer]:
        return ask_all(context, condition, images, questions, method=method, role="reporting", stage="judge", emit=emit)

    rows = put("text", [], None) if text else []
    for method, board in boards.items():
        images = images_of(context, board)
        rows += put("image", images, method) + put("text+image", images, method)
    context.folder.sync_answers()
    return rows


def write_results(
    context: RunContext, candidates: Candidates, final: Board, keep: Callable[[Answer], bool] | None = None
) -> dict[str, Any]:
    """Write candidates, answers, scores and, last, the storyboard; return the scores.

    The scores are computed from exactly the reporting rows of `answers.jsonl`. `keep` drops rows of boards that are no
    longer part of the run.
    """
    from katha.eval_bridge import score
    from katha.eval_bridge.rules import settle

    folder = context.folder
    rows = [row for row in folder.read_answers() if keep is None or keep(row)]
    folder.write_answers(rows)
    reporting = [row for row in rows if row.role == "reporting"]
    unsettled = settle(context.matching, [context.story()], reporting)
    scores: dict[str, Any] = score(
        [context.story()], reporting, matching=context.matching, frozen=context.config.lock is not None
    )
    scores["notes"] += unsettled
    folder.write(folder.candidates, candidates.model_dump(mode="json"))
    folder.write(folder.scores, scores)
    folder.write(folder.storyboard, final.model_dump(mode="json"))
    return scores
