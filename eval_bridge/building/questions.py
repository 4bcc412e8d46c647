"""Questions by a language model, from the story and its transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from katha.eval_bridge.building.writing import write_one
from katha.models import TextModel
from katha.prompting import load_prompt
from katha.schema import DIMENSIONS, MORAL_LABELS, Dimension, Question, StoryRecord, Transition

__all__ = ["write_questions"]


class _Written(BaseModel):
    transition: int
    dimension: Dimension
    question: str
    answer: str
    accepted: list[str]


class _All(BaseModel):
    questions: list[_Written]


def write_questions(model: TextModel, record: StoryRecord, transitions: Sequence[Transition]) -> list[Question]:
    """What the model asks of each transition, unchecked: `check_questions` says which of them hold.

    Raises:
        ReplyError, ModelError: it wrote none.
    """
    prompt = load_prompt("build/questions").render(
        title=record.title,
        story=record.story_text,
        transitions=[
            {"number": number, **item.model_dump(include={"action", "causality", "emotion", "consequence"})}
            for number, item in enumerate(transitions, 1)
        ],
        dimensions=DIMENSIONS,
        morals=MORAL_LABELS,
    )
    written = write_one(model, prompt, _schema(len(transitions)), _All, "questions")
    return [
        _question(record, transitions[item.transition - 1], item, number)
        for number, item in enumerate(written.questions, 1)
        if 1 <= item.transition <= len(transitions)
    ]


def _question(record: StoryRecord, transition: Transition, item: _Written, number: int) -> Question:
    return Question(
        question_id=f"{record.story_id}_q{number}",
        story_id=record.story_id,
        question_type=item.dimension,
        question=item.question,
        gold_answer=item.answer,
        accepted_answers=[item.answer, *item.accepted],
        target_scene=transition.to_scene,
        target_transition=transition.pair,
        evidence_scenes=list(transition.pair),
        required_evidence=transition.action,
    )


def _schema(transitions: int) -> dict[str, Any]:
    def text(most: int) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": most}

    fields = {
        "transition": {"type": "integer", "minimum": 1, "maximum": transitions},
        "dimension": {"type": "string", "enum": list(DIMENSIONS)},
        "question": text(200),
        "answer": text(120),
        "accepted": {"type": "array", "items": text(120), "minItems": 2, "maxItems": 5},
    }
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    rows = {"type": "array", "items": item, "minItems": 1, "maxItems": 6 * transitions + 1}
    return {
        "type": "object",
        "properties": {"questions": rows},
        "required": ["questions"],
        "additionalProperties": False,
    }
