"""The task `katha/recoverability` of inspect_ai: questions about one folder of boards, put to the model that inspect
that inspect runs, under text, image and text+image.

inspect finds it by its entry point; nothing of katha imports it.
"""

from __future__ import annotations

from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText
from inspect_ai.scorer import CORRECT, INCORRECT, Score, metric, scorer
from inspect_ai.solver import generate

from katha.errors import UsageError
from katha.eval_bridge.bench.boards import BoardProblem, MethodBoards, parse_boards, read_board
from katha.eval_bridge.matching.match import match, usual_rule
from katha.eval_bridge.packets.instructions import (
    STEERING_VARIANT,
    UNCLEAR,
    AnswersFormat,
    judge_prompt,
    parse_reply,
    question_text,
    require_variant,
)
from katha.eval_bridge.packets.packets import make_packet, scan_packet, secrets_of
from katha.eval_bridge.scoring.scores import score
from katha.experiments.inputs.stories import choose_questions, prepare_stories
from katha.protocols import Evidence, JudgePrompt
from katha.schema import ASKED, Answer, Question, StoryRecord
from katha.stories import load_stories


@task  # type: ignore[untyped-decorator]
def recoverability(
    stories: str,
    boards: str,
    half: str = "",
    answers: str = "choice",
    variant: str = "strict",
    matching: str = "",
    order: str = "",
) -> Task:
    """Return the task for `inspect eval katha/recoverability -T stories=FILE -T boards=DIR --model MODEL`.

    Args:
        stories: A JSON Lines file, a record, or a folder of them.
        boards: One folder with one folder a story.
        half: `reporting` or `steering` where the stories' questions have halves (never both); else all.
        answers: `choice` or `free`.
        variant: The prompt variant; steering has its own.
        matching: The rule that decides about answers, one that asks no model; the usual one unless told.
        order: What pictures' names are ordered by where that is not plain, as `katha eval --order`.

    Raises:
        UsageError: an option is wrong, or nothing can be asked.
    """
    records = prepare_stories(stories)(load_stories(stories))
    chosen = choose_questions(half or None, records)
    if chosen == "all" and any(item.role for record in records for item in record.recoverability_questions):
        raise UsageError("Steering and reporting questions are never in one log.", hint="Give -T half=reporting.")
    if answers not in ("choice", "free"):
        raise UsageError(f"answers={answers!r} is not known.", hint="Known: choice, free.")
    form: AnswersFormat = "choice" if answers == "choice" else "free"
    asked = STEERING_VARIANT if chosen == "steering" else require_variant(variant, reporting=chosen == "reporting")
    (method,) = parse_boards([boards], order=order or None)
    samples = []
    for record in records:
        questions = [item for item in record.recoverability_questions if chosen == "all" or item.role in (chosen, None)]
        samples += list(_samples(record, questions, method, asked, form))
    if not samples:
        raise UsageError(f"Nothing can be asked: no story of {stories!r} has a board in {boards!r} and a question.")
    return Task(
        dataset=MemoryDataset(samples, name=f"{method.name} ({chosen})"),
        solver=generate(),
        scorer=recovered(matching=matching or usual_rule()),
        metadata={"half": chosen, "board": method.name},
    )


def _samples(
    record: StoryRecord, questions: list[Question], method: MethodBoards, variant: str, form: AnswersFormat
) -> Iterator[Sample]:
    """Yield a sample for each question and condition; nothing for a story whose board cannot be judged."""
    try:
        board = read_board(method, record)
    except BoardProblem:
        return
    for condition in ASKED:
        packet, evidence = make_packet(record.story_id, condition, board.images, record.story_text)
        if condition == "image":
            scan_packet(packet, evidence, secrets_of(record, board.prompts)).require(record.story_id)
        for question in questions:
            prompt = judge_prompt(question, condition, variant=variant, answers_format=form, count=len(evidence.images))
            yield Sample(
                id=f"{record.story_id}/{question.question_id}/{condition}",
                input=[ChatMessageUser(content=_content(evidence, prompt))],
                target=list(dict.fromkeys([question.gold_answer, *question.accepted_answers])),
                metadata={
                    "story_id": record.story_id,
                    "question_id": question.question_id,
                    "condition": condition,
                    "dimension": question.question_type,
                    "question": question.model_dump(mode="json"),
                    "form": form,
                    "variant": variant,
                    "pictures": len(evidence.images),
                },
            )


def _content(evidence: Evidence, prompt: JudgePrompt) -> list[Any]:
    """Return the parts of the message as katha's own judges send them: pictures, text, instruction, question."""
    parts: list[Any] = []
    for number, png in enumerate(evidence.images, 1):
        picture = f"data:image/png;base64,{b64encode(png).decode('ascii')}"
        parts += [ContentText(text=f"Picture {number}"), ContentImage(image=picture)]
    parts += [ContentText(text=evidence.text)] if evidence.text is not None else []
    return [*parts, ContentText(text=prompt.instruction), ContentText(text=question_text(prompt, plain=True))]


_BOARD = "board"
"""Method and judge of the rows that a log's numbers are scored from."""


@metric  # type: ignore[untyped-decorator]
def trajectory() -> Any:
    """Return text, image and STG on the valid questions (right under text+image), in percentage points: means over
    dimensions (Eqs. 16 to 21); and what is right without any evidence, and how much more with the images. By katha's
    own scorer: NaN where a judge cannot measure the boards."""

    def compute(scores: list[Any]) -> dict[str, float]:
        stories: dict[str, dict[str, Question]] = defaultdict(dict)
        rows = []
        for item in scores:
            told = item.sample_metadata or {}
            if item.score.value not in (CORRECT, INCORRECT, 1.0, 0.0):
                continue
            question, right = Question.model_validate(told["question"]), item.score.value in (CORRECT, 1.0)
            stories[told["story_id"]][question.question_id] = question
            rows.append(
                Answer(
                    method=_BOARD if "image" in told["condition"] else None,
                    judge=_BOARD,
                    story_id=told["story_id"],
                    question_id=question.question_id,
                    condition=told["condition"],
                    status="ok",
                    answer=question.gold_answer if right else UNCLEAR,
                )
            )
        records = [
            StoryRecord(story_id=name, story_text=name, recoverability_questions=list(own.values()))
            for name, own in stories.items()
        ]
        made = score(records, rows, matching="exact-set", questions="all", resamples=0).methods
        judged = made[_BOARD].judges[_BOARD] if _BOARD in made else None
        own = judged.filtered if judged is not None else None
        named = {"text": "text", "image": "image", "stg": "stg", "none": "none", "image_gain": "gain_image"}
        found = {name: getattr(own, field, None) for name, field in named.items()}
        counts = {"valid": judged.filtered.n if judged else 0, "scored": judged.raw.n if judged else 0}
        return {name: float("nan") if value is None else float(value) for name, value in {**found, **counts}.items()}

    return compute


@scorer(metrics=[trajectory()])  # type: ignore[untyped-decorator]
def recovered(matching: str = "") -> Any:
    """Return the scorer: katha's strict reading of a reply, then its matching. What is no answer is unscored."""

    async def judge(state: Any, target: Any) -> Score:
        told = state.metadata
        question = Question.model_validate(told["question"])
        prompt = judge_prompt(
            question, told["condition"], variant=told["variant"], answers_format=told["form"], count=told["pictures"]
        )
        reply = parse_reply(state.output.completion, prompt, {}, plain=True)
        if reply.status != "ok" or reply.answer is None:
            return Score.unscored(reason=reply.status, explanation=reply.error)
        about = {name: told[name] for name in ("story_id", "question_id", "condition")}
        seen = {"evidence_status": reply.evidence_status, "image_support": reply.image_support}
        answer = Answer.model_validate(
            {"method": "board", "judge": str(state.model), "status": "ok", "answer": reply.answer, **about, **seen}
        )
        verdict = match(answer, question, matching or usual_rule())
        return Score(value=CORRECT if verdict.right else INCORRECT, answer=reply.answer, explanation=verdict.reason)

    return judge
