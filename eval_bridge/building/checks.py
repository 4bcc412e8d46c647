"""The checks of Sec. C.5: the gold is accepted, nothing vague is, no question answers itself, the text settles it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import yaml

from katha.eval_bridge.instructions import REPORTING_VARIANT, judge_prompt
from katha.eval_bridge.matching import Matching, match_text
from katha.eval_bridge.normal import normalise
from katha.eval_bridge.options import prepare_questions
from katha.eval_bridge.packets import make_packet
from katha.eval_bridge.questions import gives_away
from katha.protocols import Judge
from katha.schema import MORAL_LABELS, Question

__all__ = ["Built", "Rejected", "check_questions", "rules", "text_answers"]

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


@cache
def rules() -> Mapping[str, Any]:
    """`configs/building.yaml`."""
    data: Mapping[str, Any] = yaml.safe_load(
        files("katha.configs").joinpath("building.yaml").read_text(encoding="utf-8")
    )
    return data


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
    if question.question_type == "moral" and normalise(gold) not in {normalise(label) for label in MORAL_LABELS}:
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
