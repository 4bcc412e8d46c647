"""Free questions by a language model, each checked by calls of their own: settled by the text, and not guessed.

The writer sees the whole story and no plan. A reader without any evidence guesses all answers; another with the text
says which questions it settles and which the guesses have right. What fails is written once more, then dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from katha.configs import load_prompt
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import DIMENSIONS, Dimension, Question, StoryRecord

EACH = 2
"""Questions of each dimension."""
_MOST_ANSWER, MOST_QUESTION = 120, 200


class _Written(BaseModel):
    dimension: Dimension
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    accepted: list[str]
    visible: bool = True
    guess: str = ""


class _AllWritten(BaseModel):
    questions: list[_Written]


class _Guesses(BaseModel):
    answers: list[str]


class _Verdict(BaseModel):
    answer: str = ""
    verdict: Literal["right", "guessed", "doubtful"]


class _Verdicts(BaseModel):
    verdicts: list[_Verdict]


@dataclass(frozen=True)
class Dropped:
    """A question that was not kept, and why."""

    question: str
    why: str


@dataclass(frozen=True)
class FreeQuestions:
    """The questions that stay, and those that were dropped after one more try."""

    kept: tuple[Question, ...]
    dropped: tuple[Dropped, ...] = ()


def write_free_questions(model: TextModel, record: StoryRecord, *, check: bool = True) -> FreeQuestions:
    """Return free questions about `record`, two for each dimension. check: ask for guesses and verdicts as well.

    Raises:
        ReplyError: the model wrote none. ModelError: it gave no answer.
    """
    count = EACH * len(DIMENSIONS)
    prompt = load_prompt("build/free").render(title=record.title, story=record.story_text, count=count, each=EACH)
    rows = write_one(model, prompt, _schema(count), _AllWritten, "questions").questions
    dropped: list[Dropped] = []
    if check:
        faults = dict(_faults(model, record, rows))
        if faults:
            told = [
                {"number": f"{rows[at].dimension}, {rows[at].question!r}", "why": why} for at, why in faults.items()
            ]
            again = load_prompt("build/again").render(faults=told)
            others = write_one(model, f"{prompt}\n\n{again}", _schema(len(faults)), _AllWritten, "questions").questions
            fresh = dict(zip(faults, others, strict=False))
            still = dict(_faults(model, record, list(fresh.values())))
            lost = {at: still[place] for place, at in enumerate(fresh) if place in still}
            lost |= {at: why for at, why in faults.items() if at not in fresh}
            rows = [fresh.get(at, row) for at, row in enumerate(rows)]
            dropped = [Dropped(rows[at].question, why) for at, why in lost.items()]
            rows = [row for at, row in enumerate(rows) if at not in lost]
    return FreeQuestions(tuple(_question(record, number, row) for number, row in enumerate(rows, 1)), tuple(dropped))


def _faults(model: TextModel, record: StoryRecord, rows: Sequence[_Written]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with questions by their places: a reader without the story and one with it were asked."""
    if not rows:
        return
    asked = load_prompt("build/blind").render(questions=[row.question for row in rows])
    guesses = write_one(model, asked, _list_schema("answers", _text(_MOST_ANSWER), len(rows)), _Guesses, "guesses")
    told = load_prompt("build/settled").render(
        title=record.title,
        story=record.story_text,
        questions=[
            {"question": row.question, "accepted": _accepted(row), "guess": guess}
            for row, guess in zip(rows, [*guesses.answers, *[""] * len(rows)], strict=False)
        ],
    )
    verdict = object_schema(
        {"answer": _text(_MOST_ANSWER), "verdict": {"type": "string", "enum": ["right", "guessed", "doubtful"]}}
    )
    found = write_one(model, told, _list_schema("verdicts", verdict, len(rows)), _Verdicts, "verdicts").verdicts
    seen: set[str] = set()
    for at, row in enumerate(rows):
        given = found[at] if at < len(found) else _Verdict(verdict="doubtful")
        if given.verdict == "guessed":
            yield at, f"a reader who saw only the question guessed {guesses.answers[at]!r}"
        elif given.verdict == "doubtful":
            yield at, f"the text does not settle it: a reader of the text answers {given.answer!r}"
        elif normalise(row.question) in seen:
            yield at, "another question has the same words"
        seen.add(normalise(row.question))


def _question(record: StoryRecord, number: int, row: _Written) -> Question:
    return Question(
        question_id=f"{record.story_id}_q{number}",
        story_id=record.story_id,
        question_type=row.dimension,
        question=row.question,
        gold_answer=row.answer,
        accepted_answers=_accepted(row),
        answerability="answerable" if row.visible else "not_visible",
    )


def _accepted(row: _Written) -> list[str]:
    return list(dict.fromkeys([row.answer, *row.accepted]))


def _text(most: int) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _list_schema(name: str, item: Mapping[str, object], count: int) -> dict[str, object]:
    return object_schema({name: {"type": "array", "items": dict(item), "minItems": count, "maxItems": count}})


def _schema(count: int) -> dict[str, object]:
    fields: dict[str, object] = {
        "dimension": {"type": "string", "enum": list(DIMENSIONS)},
        "question": _text(MOST_QUESTION),
        "answer": _text(_MOST_ANSWER),
        "accepted": {"type": "array", "items": _text(_MOST_ANSWER), "minItems": 3, "maxItems": 12},
        "visible": {"type": "boolean"},
        "guess": _text(_MOST_ANSWER),
    }
    return _list_schema("questions", object_schema(fields), count)
