"""Steering and reporting never meet (Sec. B.7): the guard that every report passes before its numbers are made.

What chose a board (its questions, the prompts they were put with, its answers) may not measure it.
"""

from __future__ import annotations

from collections.abc import Iterable

from katha.errors import RecordError
from katha.eval_bridge.instructions import STEERING_VARIANT, AnswersFormat, judge_prompt, prompt_sha256
from katha.eval_bridge.normal import normalise
from katha.schema import CONDITIONS, Answer, Question, StoryRecord

__all__ = ["require_separate"]

_FORMS: tuple[AnswersFormat, ...] = ("choice", "free")


def require_separate(
    record: StoryRecord, reporting: Iterable[Answer], steering: Iterable[Answer], counts: Iterable[int] = ()
) -> None:
    """Refuse a report in which something that steered is about to measure.

    reporting: the rows that numbers will be made of. steering: the rows that chose, localized and accepted. counts: how
    many pictures the reported boards have, since a prompt names their number.

    Raises:
        RecordError: the halves share a question (by id or by wording and answer), a reporting row answers a steering
            question or was put with a steering prompt, or a steering row answers a reporting question.
    """
    halves = {item.question_id: item.role for item in record.recoverability_questions}
    _disjoint(record)
    prompts = _steering_prompts(record, counts)
    for row in steering:
        if halves.get(row.question_id) == "reporting":
            raise _leak(record, f"the reporting question {row.question_id!r} was used to steer")
        prompts.add(row.prompt_sha256)
    for row in reporting:
        if halves.get(row.question_id) == "steering" or row.role == "steering":
            raise _leak(record, f"the steering question {row.question_id!r} is in the report")
        if row.prompt_sha256 and row.prompt_sha256 in prompts:
            raise _leak(record, f"the question {row.question_id!r} was reported with a prompt that steered")


def _steering_prompts(record: StoryRecord, counts: Iterable[int]) -> set[str]:
    """The hashes that the reporting questions would have if they were put with the prompts that steer."""
    numbers = sorted(set(counts))
    found: set[str] = set()
    for item in record.recoverability_questions:
        if item.role != "reporting":
            continue
        for answers_format in _FORMS if item.options else _FORMS[1:]:
            for condition, count in (("text", 0), *((name, n) for name in CONDITIONS[1:] for n in numbers)):
                prompt = judge_prompt(
                    item, condition, variant=STEERING_VARIANT, answers_format=answers_format, count=count
                )
                found.add(prompt_sha256(prompt))
    return found


def _disjoint(record: StoryRecord) -> None:
    def wording(item: Question) -> tuple[str, str, tuple[int, int] | None]:
        return normalise(item.question), normalise(item.gold_answer), item.target_transition

    steering = {wording(item): item for item in record.recoverability_questions if item.role == "steering"}
    for item in record.recoverability_questions:
        twin = steering.get(wording(item))
        if item.role == "reporting" and twin is not None:
            raise _leak(record, f"{item.question_id!r} asks for reporting what {twin.question_id!r} asks for steering")


def _leak(record: StoryRecord, what: str) -> RecordError:
    return RecordError(
        f"Story {record.story_id!r}: steering reaches reporting: {what}.",
        hint="Give every question one role, and keep the prompt variants apart.",
    )
