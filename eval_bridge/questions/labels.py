"""The question for the moral by the twelve labels (Table 11), where the story settles which one it is."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.eval_bridge.matching.match import moral_label
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.rows import text_field
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import MORAL_LABELS, Question, StoryRecord

ASKED = "Which lesson does the whole story carry?"


class _Label(BaseModel):
    label: str
    second: str = "none"
    because: str = ""


@dataclass(frozen=True)
class Labelled:
    """The question whose answer is a label, or why the story settles none."""

    question: Question | None
    why: str = ""


def label_question(model: TextModel, reader: TextModel, record: StoryRecord) -> Labelled:
    """Return the question for the lesson. The label is the record's own, or what `model` reads in the text; `reader`
    has to read the same one there, and no second one that fits as well. The title is told to neither.

    Raises:
        ReplyError: neither gave a label. ModelError: no answer was given.
    """
    told = moral_label(record.moral_label)
    read = _read(reader, record)
    if told is None and model is not reader:
        told = moral_label(_read(model, record).label)
    found = moral_label(read.label)
    if found is None or (told is not None and found != told):
        return Labelled(None, f"a reader of the text says {read.label!r}" + (f", not {told!r}" if told else ""))
    if moral_label(read.second) not in (None, found):
        return Labelled(None, f"{read.second!r} fits the text as well as {found!r}")
    return Labelled(
        Question(
            question_id=f"{record.story_id}_lesson",
            story_id=record.story_id,
            question_type="moral",
            question=ASKED,
            gold_answer=found,
            accepted_answers=[found],
            required_evidence=read.because,
        )
    )


def _read(model: TextModel, record: StoryRecord) -> _Label:
    prompt = load_prompt("build/label").render(labels=MORAL_LABELS, story=record.story_text)
    fields = {
        "label": {"type": "string", "enum": list(MORAL_LABELS)},
        "second": {"type": "string", "enum": [*MORAL_LABELS, "none"]},
        "because": text_field(200),
    }
    return write_one(model, prompt, object_schema(fields), _Label, "label")
