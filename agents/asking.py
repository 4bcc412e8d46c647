"""The questions of a plain text, written from it by the planner's own model before anything is planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from katha.errors import ReplyError
from katha.eval_bridge.questions.free import write_free_questions
from katha.eval_bridge.questions.halves import assign_roles
from katha.protocols import Planner
from katha.schema import Plan, Question, StoryRecord

__all__ = ["with_questions", "written_questions"]


def written_questions(
    planner: Planner, record: StoryRecord, heard: Callable[[str], None] | None = None
) -> list[Question]:
    """Return free questions about `record`, each steering or reporting; none where it has questions of its own, the
    planner has no language model that writes some, or this one wrote none that can be used, which is told.

    Raises:
        ModelError: the model gave no answer.
    """
    model = planner.question_writer
    if model is None or record.recoverability_questions:
        return []
    if heard is not None:
        heard("writing questions from the text")
    try:
        written = write_free_questions(model, record)
    except ReplyError as error:
        if heard is not None:
            heard(f"no questions were written: {error.message}")
        return []
    if heard is not None and written.dropped:
        heard(f"{len(written.dropped)} questions were dropped: guessed, or not settled by the text")
    return assign_roles(written.kept)


def with_questions(plan: Plan, questions: Sequence[Question]) -> Plan:
    """Return `plan` with all questions that were written: those it was made for as the planner placed them."""
    if not questions:
        return plan
    placed = {item.question_id: item for item in plan.questions}
    return plan.model_copy(update={"questions": [placed.get(item.question_id, item) for item in questions]})
