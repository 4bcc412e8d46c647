"""Measuring one board: steering questions on the board and on each transition, coverage, copies (Eqs. 24 to 27)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from katha.agents.context import RunContext
from katha.agents.draw import images_of
from katha.compass import (
    adjacent_similarities,
    candidate_score,
    copy_penalty,
    span,
    transition_coverage,
    transition_similarity,
    transition_text,
)
from katha.errors import JudgeError, KathaError
from katha.schema import Answer, Board, Candidate, Condition, Event, Question, Role, Stage, Transition, TransitionScore

__all__ = ["ask_all", "measure"]

Emit = Callable[[Event], None]


def ask_all(
    context: RunContext,
    condition: Condition,
    images: Sequence[bytes],
    questions: Sequence[Question],
    *,
    method: str | None,
    role: Role,
    stage: Stage,
    emit: Emit,
) -> list[Answer]:
    """Each question put to each judge over one packet; the rows are in the run's log when this returns.

    Raises:
        JudgeError: a judge cannot be asked at all. RecordError: an image-only packet carries more than pixels.
    """
    from katha.eval_bridge import REPORTING_VARIANT, STEERING_VARIANT, ask, make_packet, scan_packet, secrets_of

    if not questions:
        return []
    record = context.record
    packet, evidence = make_packet(record.story_id, condition, images, record.story_text)
    prompts = [panel.prompt for panel in context.plan().panels]
    scan_packet(packet, evidence, secrets_of(record, prompts)).require(record.story_id)
    variant = STEERING_VARIANT if role == "steering" else REPORTING_VARIANT
    where = f"{condition}, {method}" if method else condition

    def tell(answer: Answer, reused: bool) -> None:
        message = f"{answer.question_id} ({where}): {answer.answer or answer.status}"
        emit({"stage": stage, "kind": "answer", "message": message, "reused": reused})

    rows: list[Answer] = []
    for name, judge in context.plugins.judges.items():
        with context.judge_locks[name], context.store.claim(f"answers:{name}:{packet.model_dump_json()}"):
            try:
                rows += ask(
                    evidence,
                    packet,
                    questions,
                    judge,
                    method=method,
                    variant=variant,
                    answers_format=context.config.answers,
                    cache=context.store.answers,
                    on_answer=tell,
                    name=name,
                )
            except KathaError:
                raise
            except Exception as error:
                raise JudgeError(f"The judge {name!r} failed: {type(error).__name__}: {error}.") from error
    context.folder.append_answers(rows)
    return rows


def measure(context: RunContext, name: str, board: Board, emit: Emit) -> Candidate:
    """The candidate `name`: `board`, its score by Eq. 24, and each of its transitions (Eqs. 25 to 27)."""
    from katha.eval_bridge import recoverability

    images = images_of(context, board)
    vectors = np.stack([context.plugins.similarity.encode_image(png) for png in images])
    adjacent = adjacent_similarities(vectors)
    questions = context.questions("steering")
    rows = ask_all(context, "image", images, questions, method=name, role="steering", stage="critique", emit=emit)
    whole = recoverability(rows, questions, context.config.matching)["mean"]
    transitions = [
        _measure_transition(context, name, board, item, images, vectors, adjacent, emit)
        for item in context.plan().transitions
    ]
    settings = context.config.compass
    score = candidate_score(
        whole,
        transition_coverage([item.similarity for item in transitions], settings.delta),
        copy_penalty(adjacent, settings.gamma),
        settings,
    )
    context.folder.sync_answers()
    plain = all(frame.kind == "scene" for frame in board.frames)
    return Candidate(name=name, kind="base" if plain else "inserted", board=board, score=score, transitions=transitions)


def _measure_transition(
    context: RunContext,
    name: str,
    board: Board,
    transition: Transition,
    images: Sequence[bytes],
    vectors: NDArray[np.float64],
    adjacent: Sequence[float],
    emit: Emit,
) -> TransitionScore:
    """One transition, judged on its two frames and what was inserted between them, with its own questions."""
    from katha.eval_bridge import recoverability

    settings, pair = context.config.compass, transition.pair
    places = span(board.frames, pair)
    text = context.plugins.similarity.encode_text(transition_text(transition))
    similarity = transition_similarity(vectors[places], text)
    closest = max((adjacent[place] for place in places[:-1]), default=0.0)
    questions = [item for item in context.questions("steering") if item.target_transition == pair]
    rows = ask_all(
        context,
        "image",
        [images[place] for place in places],
        questions,
        method=f"{name}/transition:{pair[0]}-{pair[1]}",
        role="steering",
        stage="critique",
        emit=emit,
    )
    value = recoverability(rows, questions, context.config.matching)["mean"] if questions else None
    return TransitionScore(
        pair=pair,
        recoverability=value,
        n_questions=len(questions),
        similarity=similarity,
        covered=similarity > settings.delta,
        copied=closest > settings.gamma,
        adjacent=closest,
        note=None if value is not None else "No steering question was scored; coverage alone counts.",
    )
