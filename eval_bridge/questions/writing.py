"""Questions by a language model, and the checks of Sec. C.5 that every question has to pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from katha.configs import load_config, load_prompt
from katha.errors import ModelError, ReplyError
from katha.eval_bridge.matching.match import Matching, match_text, moral_label, normalise
from katha.eval_bridge.packets.instructions import REPORTING_VARIANT, judge_prompt, object_schema
from katha.eval_bridge.packets.packets import make_packet
from katha.eval_bridge.questions.build import gives_away
from katha.eval_bridge.questions.options import prepare_questions
from katha.jsonio import loads
from katha.models.base import TextModel, Turn
from katha.protocols import Judge
from katha.schema import DIMENSIONS, MORAL_LABELS, Dimension, Question, StoryRecord, Transition

# The checks of Sec. C.5: the gold is accepted, nothing vague is, no question answers itself, the text settles it.

T = TypeVar("T")


@dataclass(frozen=True)
class Rejected:
    """What was not kept, and why."""

    item: str
    text: str
    reason: str


@dataclass
class Built(Generic[T]):
    """What passed every check, and what did not."""

    kept: list[T] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def rules() -> Mapping[str, Any]:
    """Return `configs/building.yaml`."""
    return cast("Mapping[str, Any]", load_config("building.yaml"))


def check_questions(
    questions: Sequence[Question], text: str, judge: Judge | None = None, matching: Matching = "lemma-set"
) -> Built[Question]:
    """The questions that hold, each with its gold among the accepted answers and vague ones taken out of them.

    text: the story. judge: answers from the text alone; a question that it gets wrong is rejected, one that it could
    not be asked (a typed failure) as well, with the failure as the reason.
    """
    built: Built[Question] = Built()
    seen: set[str] = set()
    for given in questions:
        question = _mended(given)
        reason = next(_faults(question, seen), None)
        seen.add(normalise(question.question))
        if reason is None:
            built.kept.append(question)
        else:
            built.rejected.append(Rejected(question.question_id, question.question, reason))
    return built if judge is None else _answerable(built, text, judge, matching)


def _mended(question: Question) -> Question:
    """The accepted set with the gold in it and without vague answers, each once."""
    accepted = [text.strip() for text in (question.gold_answer, *question.accepted_answers)]
    kept = {normalise(text): text for text in reversed(accepted) if text and not _vague(text)}
    return question.model_copy(update={"accepted_answers": list(kept.values())[::-1]})


def _faults(question: Question, seen: set[str]) -> Iterator[str]:
    gold = question.gold_answer
    if not question.question.strip() or not gold.strip():
        yield "The question or its answer is empty."
    if _vague(gold):
        yield f"The answer {gold!r} is vague."
    if normalise(gold) not in {normalise(text) for text in question.accepted_answers}:
        yield "The accepted answers do not hold the canonical one."
    if question.question_type == "moral" and moral_label(gold) is None:
        yield f"The lesson {gold!r} is none of the twelve."
    told = next((text for text in question.accepted_answers if gives_away(question.question, text)), None)
    if told is not None and question.question_type != "temporal_order":
        yield f"The question gives its answer away: {told!r}."
    if normalise(question.question) in seen:
        yield "Another question has the same words."


def _vague(text: str) -> bool:
    return normalise(text) in {normalise(entry) for entry in rules()["vague"]}


def text_answers(questions: Sequence[Question], text: str, judge: Judge) -> Iterator[tuple[Question, str | None, str]]:
    """Each question with what the judge answers from `text` alone: the answer, or None and the failure."""
    prepared = prepare_questions(questions, seed=42)
    _, evidence = make_packet(questions[0].story_id, "text", text=text)
    prompts = [
        judge_prompt(item, "text", variant=REPORTING_VARIANT, answers_format="choice", count=0) for item in prepared
    ]
    for question, reply in zip(prepared, judge.ask(evidence, prompts), strict=True):
        yield question, reply.answer if reply.status == "ok" else None, reply.error or reply.status


def _answerable(built: Built[Question], text: str, judge: Judge, matching: Matching) -> Built[Question]:
    if not built.kept:
        return built
    found: Built[Question] = Built(rejected=list(built.rejected))
    for question, (_, answer, failure) in zip(built.kept, text_answers(built.kept, text, judge), strict=True):
        if answer is None:
            reason = f"The judge could not be asked: {failure}."
        elif not match_text(answer, question, matching).right:
            reason = f"From the text alone the judge answers {answer!r}."
        else:
            found.kept.append(question)
            continue
        found.rejected.append(Rejected(question.question_id, question.question, reason))
    return found


# One JSON object from a language model: asked, read, and asked again once with what is wrong with it.

Model = TypeVar("Model", bound=BaseModel)


def write_one(model: TextModel, prompt: str, schema: Mapping[str, Any], kind: type[Model], what: str) -> Model:
    """A record of `kind`; `what` names it in errors.

    Raises:
        ReplyError: what was written is none, even after one repair; or a refusal, or a cut-off reply. ModelError: the
        server gave no answer.
    """
    turns = [Turn("user", prompt)]
    problem = ""
    for _ in range(2):
        reply = model.complete(turns, schema)
        if reply.status == "transport_failed":
            raise ModelError(f"The model gave no {what}: {reply.error}.", hint="Give the same command again later.")
        if reply.status != "ok":
            raise ReplyError(
                f"The model gave no {what} ({reply.status}): {reply.error}.",
                hint="Try another model.",
                status=reply.status,
                raw=reply.text,
            )
        try:
            return kind.model_validate(loads(reply.text))
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"Field {'.'.join(map(str, first['loc'])) or 'reply'}: {first['msg']}."
        except (ValueError, RecursionError) as error:
            problem = f"It is not one whole JSON object: {error}."
        repair = load_prompt("build/repair").render(problem=problem)
        turns = [turns[0], Turn("assistant", reply.text), Turn("user", repair)]
    raise ReplyError(
        f"The model wrote no {what}, not even after a repair: {problem}", hint="Try another model.", raw=reply.text
    )


# Questions by a language model, from the story and its transitions.


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


def _schema(transitions: int) -> dict[str, object]:
    def text(most: int) -> dict[str, object]:
        return {"type": "string", "minLength": 1, "maxLength": most}

    fields = {
        "transition": {"type": "integer", "minimum": 1, "maximum": transitions},
        "dimension": {"type": "string", "enum": list(DIMENSIONS)},
        "question": text(200),
        "answer": text(120),
        "accepted": {"type": "array", "items": text(120), "minItems": 2, "maxItems": 5},
    }
    rows = {"type": "array", "items": object_schema(fields), "minItems": 1, "maxItems": 6 * transitions + 1}
    return object_schema({"questions": rows})
