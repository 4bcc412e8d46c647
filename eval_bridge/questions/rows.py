"""A question as a model writes it, and the shapes of replies that hold one row for each."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field

from katha.eval_bridge.packets.instructions import object_schema
from katha.schema import DIMENSIONS, Dimension

MOST_ANSWER, MOST_QUESTION = 120, 200
"""Letters of an answer and of a question."""


class WrittenQuestion(BaseModel):
    """A question with its answer, as written; `guess` is the writer's own best guess as if it knew nothing else."""

    dimension: Dimension
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    accepted: list[str]
    visible: bool = True
    guess: str = ""

    @property
    def accepts(self) -> list[str]:
        """Return the accepted answers, the canonical one first."""
        return list(dict.fromkeys([self.answer, *self.accepted]))


class WrittenQuestions(BaseModel):
    """All that one reply holds."""

    questions: list[WrittenQuestion]


def text_field(most: int) -> dict[str, object]:
    """Return the schema of a text of one letter to `most`."""
    return {"type": "string", "minLength": 1, "maxLength": most}


def rows_schema(name: str, item: Mapping[str, object], count: int) -> dict[str, object]:
    """Return the schema of an object whose field `name` lists exactly so many items."""
    return object_schema({name: {"type": "array", "items": dict(item), "minItems": count, "maxItems": count}})


def questions_schema(count: int) -> dict[str, object]:
    """Return the schema of so many written questions."""
    fields: dict[str, object] = {
        "dimension": {"type": "string", "enum": list(DIMENSIONS)},
        "question": text_field(MOST_QUESTION),
        "answer": text_field(MOST_ANSWER),
        "accepted": {"type": "array", "items": text_field(MOST_ANSWER), "minItems": 3, "maxItems": 12},
        "visible": {"type": "boolean"},
        "guess": text_field(MOST_ANSWER),
    }
    return rows_schema("questions", object_schema(fields), count)
