"""The questions of a plain text, written from it by the planner's own model before anything is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.errors import ReplyError, UsageError
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.free import FreeQuestions, write_free_questions
from katha.eval_bridge.questions.halves import assign_roles
from katha.eval_bridge.questions.writing import write_one
from katha.protocols import Judge, Planner, can
from katha.schema import Plan, Question, StoryRecord

__all__ = ["as_placed", "placing", "require_measurable", "with_questions", "written_questions"]


def written_questions(
    planner: Planner, record: StoryRecord, heard: Callable[[str], None] | None = None
) -> FreeQuestions:
    """Return free questions about `record`, each steering or reporting; none where it has questions of its own, the
    planner has no language model that writes some, or this one wrote none that can be used, which is told.

    Raises:
        ModelError: the model gave no answer.
    """
    model = planner.question_writer
    if model is None or record.recoverability_questions:
        return FreeQuestions(())
    if heard is not None:
        heard("writing questions from the text")
    try:
        written = write_free_questions(model, record)
    except ReplyError as error:
        if heard is not None:
            heard(f"no questions were written: {error.message}")
        return FreeQuestions(())
    if heard is not None and written.making is not None:
        heard(written.making.summary())
    elif heard is not None and written.dropped:
        heard(f"{len(written.dropped)} questions were dropped: guessed, or not settled by the text")
    return replace(written, kept=tuple(assign_roles(written.kept)))


class _Place(BaseModel):
    question: int
    frame: int | None


class _Places(BaseModel):
    places: list[_Place]


def placing(planner: Planner, record: StoryRecord, plan: Plan, heard: Callable[[str], None] | None = None) -> Plan:
    """Return `plan` with the places of a record's own steering questions, where they name none: the planner's model
    says in which frame each answer is seen, when the plan is made, so that nothing was planned for them.

    Raises:
        ModelError: the model gave no answer.
    """
    model, own = planner.question_writer, assign_roles(record.recoverability_questions)
    if model is None or not own or any(map(_is_placed, own)):
        return plan
    asked, count = [item for item in own if item.role == "steering"], len(plan.panels)
    if not asked:
        return plan
    prompt = load_prompt("planner/place").render(
        title=record.title,
        story=record.story_text,
        panels=plan.panels,
        transitions=plan.transitions,
        questions=asked,
    )
    number = {"type": "integer", "minimum": 1}
    frame = {"anyOf": [{**number, "maximum": count}, {"type": "null"}]}
    row = object_schema({"question": {**number, "maximum": len(asked)}, "frame": frame})
    schema = object_schema({"places": {"type": "array", "items": row}})
    try:
        found = write_one(model, prompt, schema, _Places, "places of questions").places
    except ReplyError as error:
        if heard is not None:
            heard(f"no question was placed: {error.message}")
        return plan
    seen = {row.question: row.frame for row in found if row.frame is not None and 1 <= row.frame <= count}
    placed = {item.question_id: _at(item, seen.get(at)) for at, item in enumerate(asked, 1)}
    return plan.model_copy(update={"questions": [placed.get(item.question_id, item) for item in own]})


def _at(question: Question, frame: int | None) -> Question:
    if frame is None:
        return question
    last = max(2, frame)
    return question.model_copy(
        update={"target_scene": frame, "target_transition": (last - 1, last), "evidence_scenes": [frame]}
    )


def _is_placed(question: Question) -> bool:
    return question.target_transition is not None or question.target_scene is not None


def as_placed(questions: Sequence[Question], plan: Plan) -> list[Question]:
    """Return a record's own questions, those that name no place with the role and the place that the plan has for
    them."""
    known = {item.question_id: item for item in plan.questions}
    fields = ("role", "target_scene", "target_transition", "evidence_scenes")
    return [
        item
        if _is_placed(item) or item.question_id not in known
        else item.model_copy(update={name: getattr(known[item.question_id], name) for name in fields})
        for item in questions
    ]


def with_questions(plan: Plan, written: FreeQuestions) -> Plan:
    """Return `plan` with all questions that were written, those it was made for as the planner placed them, and with
    the counts of how they were made."""
    if not written.kept:
        return plan
    placed = {item.question_id: item for item in plan.questions}
    asked = [placed.get(item.question_id, item) for item in written.kept]
    return plan.model_copy(update={"questions": asked, "question_making": written.making})


def require_measurable(records: Iterable[StoryRecord], judges: Iterable[Judge], planner: Planner | None = None) -> None:
    """Refuse stories that bring no questions where no judge could measure a board by those that are made by rule.

    planner: who may write questions instead.

    Raises:
        UsageError: the first such story is named.
    """
    if not all(can(judge, Judge.read_back) for judge in judges) or (planner and planner.question_writer):
        return
    bare = next((one for one in records if not one.recoverability_questions and not one.transitions), None)
    if bare is not None:
        raise UsageError(
            f"The story {bare.story_id!r} brings no questions, and this judge cannot measure STG on questions made by "
            "rule.",
            hint="Give a record with people's questions, or a model as --judge; `katha run` says how much reads back.",
        )
