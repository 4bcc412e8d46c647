"""Questions of TIFA, DSG and GenEval that a model writes of each scene's text, as their papers make them.

A reader is then shown the scenes and each question with its options in a seeded order, without the answer: what it
answers otherwise is dropped and counted (TIFA's own filter). In DSG's kind a question names those that it depends on.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.errors import RecordError
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.rows import MOST_ANSWER, MOST_QUESTION, rows_schema, text_field
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import Dimension, Question, StoryRecord

Kind = Literal["tifa", "dsg", "geneval"]
KINDS: Mapping[Kind, tuple[str, ...]] = {
    "tifa": ("entity", "attribute", "action", "place", "relation", "emotion"),
    "dsg": ("entity", "attribute", "action", "relation", "emotion"),
    "geneval": ("object", "count", "colour", "position"),
}
"""What the questions of a kind are about."""
WRITTEN, MAKING = "element_questions", "element_making"
"""Fields of a record: the questions by kind, and how they were made."""
PROMPTS = ("elements", "elements_read")
_WRONG = 3
# Twelve facts a scene, and of all no more than one reply holds.
_MOST = 60


class _Element(BaseModel):
    scene: int
    about: str
    question: str
    answer: str
    wrong: list[str]
    depends_on: list[int] = []


class _Elements(BaseModel):
    elements: list[_Element]


class _Read(BaseModel):
    answers: list[int]


@dataclass
class ElementCounts:
    """How questions were made: written, of those unusable (another scene, no three wrong options, or one that is
    right), answered otherwise by the reader, and kept."""

    written: int = 0
    unusable: int = 0
    unread: int = 0
    kept: int = 0
    model: str = ""
    reader: str = ""
    prompts: dict[str, str] = field(default_factory=dict)

    def summary(self) -> str:
        """Return it in a sentence."""
        return f"{self.written} questions written, {self.unusable} unusable, {self.unread} read otherwise."


@dataclass(frozen=True)
class Elements:
    """The questions of one story, and how they were made."""

    questions: tuple[Question, ...]
    counts: ElementCounts

    def dump(self) -> dict[str, object]:
        """Return the counts as a record keeps them."""
        return asdict(self.counts)


def write_elements(model: TextModel, reader: TextModel, record: StoryRecord, kind: Kind, seed: int = 42) -> Elements:
    """Return the questions of `kind` that `model` writes of a record's scenes, as far as `reader` answers them so.

    Raises:
        RecordError: the record has no scenes. ReplyError: nothing was written that can be read. ModelError: no answer.
    """
    if not record.scenes:
        raise RecordError(
            f"Story {record.story_id!r} has no scenes, which {kind!r} asks about one by one.",
            hint="Give records with scenes, or plan the story first (`katha plan`).",
        )
    scenes = [(scene.scene_index, " ".join(scene.scene_text.split())) for scene in record.scenes]
    prompt = load_prompt("build/elements").render(kind=kind, kinds=KINDS[kind], scenes=scenes, wrong=_WRONG)
    rows = write_one(model, prompt, _schema(kind, len(scenes)), _Elements, "questions").elements
    counts = ElementCounts(written=len(rows), model=str(dict(model.spec()).get("name", "")))
    counts.reader = str(dict(reader.spec()).get("name", ""))
    counts.prompts = {name: load_prompt(f"build/{name}").sha256 for name in PROMPTS}
    known = {at for at, _ in scenes}
    made = {at: _question(record, kind, at, row) for at, row in enumerate(rows, 1) if _usable(row, known)}
    counts.unusable = len(rows) - len(made)
    read = _as_read(reader, record, scenes, made, seed)
    counts.unread = len(made) - len(read)
    parents = {at: [item for item in rows[at - 1].depends_on if item in read and item != at] for at in read}
    kept = tuple(
        item.model_copy(update={"depends_on": [read[other].question_id for other in parents[at]]})
        if kind == "dsg" and parents[at]
        else item
        for at, item in read.items()
    )
    counts.kept = len(kept)
    return Elements(kept, counts)


def _schema(kind: Kind, scenes: int) -> dict[str, object]:
    fields: dict[str, object] = {
        "scene": {"type": "integer", "minimum": 0},
        "about": {"type": "string", "enum": list(KINDS[kind])},
        "question": text_field(MOST_QUESTION),
        "answer": text_field(MOST_ANSWER),
        "wrong": {"type": "array", "items": text_field(MOST_ANSWER), "minItems": _WRONG, "maxItems": _WRONG},
    }
    if kind == "dsg":
        fields["depends_on"] = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    most = min(_MOST, 12 * scenes)
    items = {"type": "array", "items": object_schema(fields), "minItems": 1, "maxItems": most}
    return object_schema({"elements": items})


def _usable(row: _Element, scenes: set[int]) -> bool:
    texts = {normalise(text) for text in (row.answer, *row.wrong)} - {""}
    return row.scene in scenes and len(row.wrong) == _WRONG and len(texts) == _WRONG + 1


def _question(record: StoryRecord, kind: Kind, number: int, row: _Element) -> Question:
    dimension: Dimension = "emotional" if row.about == "emotion" else "action_visibility"
    return Question.model_validate(
        {
            "question_id": f"{record.story_id}_{kind}-model_{number}",
            "story_id": record.story_id,
            "question_type": dimension,
            "question": f"Scene {row.scene} of {len(record.scenes)}: {row.question}",
            "gold_answer": row.answer,
            "accepted_answers": [row.answer],
            "target_scene": row.scene,
            "evaluator": f"{kind}-model",
            "about": row.about,
            "distractors": row.wrong,
        }
    )


def _as_read(
    reader: TextModel,
    record: StoryRecord,
    scenes: Sequence[tuple[int, str]],
    made: Mapping[int, Question],
    seed: int,
) -> dict[int, Question]:
    """Return the questions that the reader of the scenes answers as they were written, by their numbers."""
    shown = {}
    for at, item in made.items():
        options = [item.gold_answer, *(item.model_extra or {})["distractors"]]
        random.Random(f"{seed}:{item.question_id}").shuffle(options)
        shown[at] = options
    if not shown:
        return {}
    rows = [{"question": made[at].question, "options": shown[at]} for at in shown]
    prompt = load_prompt("build/elements_read").render(scenes=scenes, questions=rows)
    number = {"type": "integer", "minimum": 0, "maximum": _WRONG + 1}
    given = write_one(reader, prompt, rows_schema("answers", number, len(rows)), _Read, "answers").answers
    return {
        at: made[at]
        for (at, options), answer in zip(shown.items(), given, strict=False)
        if 0 < answer <= len(options) and options[answer - 1] == made[at].gold_answer
    }


def has_elements(record: StoryRecord, kind: Kind) -> bool:
    """Return whether a record has questions of a kind that a model wrote."""
    rows = (record.model_extra or {}).get(WRITTEN)
    return isinstance(rows, dict) and bool(rows.get(kind))


def written_elements(record: StoryRecord, kind: Kind) -> list[Question]:
    """Return the questions of a kind that a record has.

    Raises:
        RecordError: it has none.
    """
    if not has_elements(record, kind):
        raise RecordError(
            f"Story {record.story_id!r} has no questions of the kind {kind!r} that a model wrote.",
            hint=f"Make them: katha bench questions STORIES --model MODEL --evaluator {kind} --out FILE.",
        )
    return [Question.model_validate(row) for row in (record.model_extra or {})[WRITTEN][kind]]
