"""How questions were checked up to 2026-11-29: asked again only where a recording of that time is replayed.

One reader saw guesses and accepted answers at once and gave one verdict a question. `checks` is what is asked today.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.rows import (
    MOST_ANSWER,
    WrittenQuestion,
    WrittenQuestions,
    questions_schema,
    rows_schema,
    text_field,
)
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import StoryRecord


class _Guesses(BaseModel):
    answers: list[str]


class _Verdict(BaseModel):
    answer: str = ""
    verdict: Literal["right", "guessed", "doubtful"]


class _Verdicts(BaseModel):
    verdicts: list[_Verdict]


def checked_as_recorded(
    model: TextModel, record: StoryRecord, prompt: str, rows: Sequence[WrittenQuestion]
) -> tuple[list[WrittenQuestion], list[tuple[str, str]]]:
    """Return the rows that stay, and each dropped question with the reason. prompt: what they were written to.

    Raises:
        UnrecordedError: the recording is not of that time either. ReplyError: a reply cannot be used.
    """
    faults = dict(_faults(model, record, rows))
    if not faults:
        return list(rows), []
    told = [{"number": f"{rows[at].dimension}, {rows[at].question!r}", "why": why} for at, why in faults.items()]
    again = load_prompt("build/again").render(faults=told, kept=[])
    schema = questions_schema(len(faults))
    others = write_one(model, f"{prompt}\n\n{again}", schema, WrittenQuestions, "questions").questions
    fresh = dict(zip(faults, others, strict=False))
    still = dict(_faults(model, record, list(fresh.values())))
    lost = {at: still[place] for place, at in enumerate(fresh) if place in still}
    lost |= {at: why for at, why in faults.items() if at not in fresh}
    found = [fresh.get(at, row) for at, row in enumerate(rows)]
    dropped = [(found[at].question, why) for at, why in lost.items()]
    return [row for at, row in enumerate(found) if at not in lost], dropped


def _faults(model: TextModel, record: StoryRecord, rows: Sequence[WrittenQuestion]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with questions by their places: a reader without the story and one with it were asked."""
    if not rows:
        return
    asked = load_prompt("build/blind").render(questions=[row.question for row in rows])
    guesses = write_one(model, asked, rows_schema("answers", text_field(MOST_ANSWER), len(rows)), _Guesses, "guesses")
    told = load_prompt("build/settled").render(
        title=record.title,
        story=record.story_text,
        questions=[
            {"question": row.question, "accepted": row.accepts, "guess": guess}
            for row, guess in zip(rows, [*guesses.answers, *[""] * len(rows)], strict=False)
        ],
    )
    verdict = object_schema(
        {"answer": text_field(MOST_ANSWER), "verdict": {"type": "string", "enum": ["right", "guessed", "doubtful"]}}
    )
    found = write_one(model, told, rows_schema("verdicts", verdict, len(rows)), _Verdicts, "verdicts").verdicts
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
