"""What has to hold of a free question, each asked in a call of its own: nobody guesses it without evidence, the text
settles it in one way, no question tells its answer, and a picture could show it.

A reader without evidence sees the questions mixed. One with the text answers before anybody shows it what counts as
right. Who compares does not know the story.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.build import gives_away
from katha.eval_bridge.questions.rows import MOST_ANSWER, WrittenQuestion, rows_schema, text_field
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import StoryRecord

PROMPTS = ("guesses", "text", "grade")
"""The prompts of `prompts/build` that are asked here."""
GUESSES = 3
"""How many guesses a reader without evidence has at each question: where one is dared, another reader's is another."""
_STANDINGS = ("settled", "two answers", "implied", "untold")
_SAME, _PARTLY = "same", "partly"
_UNSETTLED = {
    "two answers": "two answers fit the text, one of them {answer!r}",
    "implied": "the text only hints at it: {answer!r}",
    "untold": "the text does not say it",
}


class _Guesses(BaseModel):
    answers: list[list[str]]


class _Read(BaseModel):
    answer: str = ""
    standing: Literal["settled", "two answers", "implied", "untold"] = "untold"
    visible: bool = True


class _AllRead(BaseModel):
    answers: list[_Read]


class _Grade(BaseModel):
    first: Literal["same", "partly", "other"] = "other"
    second: Literal["same", "partly", "other"] = "other"
    told_by: int = 0


class _Grades(BaseModel):
    grades: list[_Grade]


@dataclass(frozen=True)
class Finding:
    """What was found of one question: by kind (`guessed`, `unsettled`, `told`, `invisible`), why it cannot stay. guess:
    what a reader without evidence said; partly: it had a part of the answer."""

    faults: Mapping[str, str]
    guess: str = ""
    partly: bool = False

    @property
    def why(self) -> str:
        """Return all reasons in words; "" of a question that stays."""
        return "; ".join(self.faults.values())


def check_rows(
    reader: TextModel, record: StoryRecord, rows: Sequence[WrittenQuestion], others: Sequence[WrittenQuestion] = ()
) -> list[Finding]:
    """Return what three calls of `reader` find of each question. others: those that stay already, not asked again.

    Raises:
        ReplyError: the reader wrote nothing that can be read. ModelError: it gave no answer.
    """
    if not rows:
        return []
    guesses = _guesses(reader, record, rows)
    read = _from_text(reader, record, rows)
    grades = _graded(reader, rows, guesses, read)
    found = []
    for at, row in enumerate(rows):
        grade = grades[at]
        of_guess, of_text = grade.first, grade.second
        faults: dict[str, str] = {}
        if of_guess == _SAME:
            faults["guessed"] = f"a reader who saw only the question guessed {guesses[at]!r}"
        standing = _UNSETTLED.get(read[at].standing)
        if standing is not None:
            faults["unsettled"] = standing.format(answer=read[at].answer)
        elif of_text != _SAME:
            faults["unsettled"] = f"a reader of the text answers {read[at].answer!r}"
        told = _told(row, [*others, *rows[:at]], [*others, *rows], grade.told_by, [item.question for item in rows])
        if told is not None:
            faults["told"] = told
        if not (row.visible and read[at].visible):
            faults["invisible"] = "no picture could show the answer"
        found.append(Finding(faults, guesses[at], of_guess == _PARTLY))
    return found


def _guesses(reader: TextModel, record: StoryRecord, rows: Sequence[WrittenQuestion]) -> list[str]:
    """Return the best guesses at each question, as one text; a question is guessed where any of them is right.

    Questions are asked mixed, so that neighbours are seldom of one turn.
    """
    order = random.Random(f"{record.story_id}:blind").sample(range(len(rows)), len(rows))
    asked = load_prompt("build/guesses").render(questions=[rows[at].question for at in order], count=GUESSES)
    several = {"type": "array", "items": text_field(MOST_ANSWER), "minItems": GUESSES, "maxItems": GUESSES}
    given = write_one(reader, asked, rows_schema("answers", several, len(rows)), _Guesses, "guesses").answers
    said = {at: " / ".join(guesses) for at, guesses in zip(order, given, strict=False)}
    return [said.get(at, "") for at in range(len(rows))]


def _from_text(reader: TextModel, record: StoryRecord, rows: Sequence[WrittenQuestion]) -> list[_Read]:
    asked = load_prompt("build/text").render(
        title=record.title, story=record.story_text, questions=[row.question for row in rows]
    )
    fields = {
        "answer": text_field(MOST_ANSWER),
        "standing": {"type": "string", "enum": list(_STANDINGS)},
        "visible": {"type": "boolean"},
    }
    schema = rows_schema("answers", object_schema(fields), len(rows))
    given = write_one(reader, asked, schema, _AllRead, "answers from the text").answers
    return [*given, *(_Read() for _ in rows)][: len(rows)]


def _graded(
    reader: TextModel, rows: Sequence[WrittenQuestion], guesses: Sequence[str], read: Sequence[_Read]
) -> list[_Grade]:
    """Return the grades of the guesses, `first`, and of the answer from the text, `second`."""
    asked = load_prompt("build/grade").render(
        questions=[
            {"question": row.question, "accepted": row.accepts, "first": guess, "second": item.answer}
            for row, guess, item in zip(rows, guesses, read, strict=True)
        ]
    )
    verdict = {"type": "string", "enum": ["same", "partly", "other"]}
    fields = {
        "first": verdict,
        "second": verdict,
        "told_by": {"type": "integer", "minimum": 0, "maximum": len(rows)},
    }
    schema = rows_schema("grades", object_schema(fields), len(rows))
    given = write_one(reader, asked, schema, _Grades, "grades").grades
    return [*given, *(_Grade() for _ in rows)][: len(rows)]


def _told(
    row: WrittenQuestion,
    before: Sequence[WrittenQuestion],
    board: Sequence[WrittenQuestion],
    told_by: int,
    asked: Sequence[str],
) -> str | None:
    """Return how a question's answer is told by the words of one of the board's; None where it is not."""
    if normalise(row.question) in {normalise(other.question) for other in before}:
        return "another question has the same words"
    if 0 < told_by <= len(asked):
        return f"its answer is told by {asked[told_by - 1]!r}"
    if row.dimension == "temporal_order":  # two events are named, and asked for their order
        return None
    if any(gives_away(row.question, text) for text in row.accepts):
        return "it gives its own answer away"
    teller = next((other for other in board if other is not row and gives_away(other.question, row.answer)), None)
    return f"its answer is told by {teller.question!r}" if teller is not None else None
