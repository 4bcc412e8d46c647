"""Measuring a board: questions, coverage and copies (Eqs. 24 to 27), and the numbers that are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from katha.agents.context import RunContext
from katha.agents.frames import images_of
from katha.compass.repair import (
    BoardFeatures,
    TransitionFeatures,
    adjacent_similarities,
    board_key,
    span,
    transition_similarity,
    transition_text,
    weigh,
)
from katha.eval_bridge.judging.engine import Inquiry
from katha.eval_bridge.matching.rules import settle
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.eval_bridge.packets.packets import make_packet, scan_packet, secrets_of
from katha.eval_bridge.scoring.scores import recoverability, score
from katha.jsonio import digest
from katha.schema import (
    Answer,
    Board,
    Candidate,
    Candidates,
    Condition,
    Decision,
    Event,
    Question,
    Role,
    Stage,
    Transition,
)
from katha.schema.scores import Scores

Emit = Callable[[Event], None]
_ID = 16


def question_id(row: Answer) -> str:
    """A short name of one question as it was put to one judge: equal ones are paid for once."""
    return digest([row.judge, row.packet_sha256, row.prompt_sha256])[:_ID]


def _told(stage: Stage, answer: Answer, *, reused: bool) -> Event:
    where = f"{answer.condition}, {answer.method}" if answer.method else answer.condition
    message = f"{answer.question_id} ({where}): {answer.answer or answer.status}"
    return Event(stage=stage, kind="answer", message=message, reused=reused)


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
    variant: str | None = None,
) -> list[Answer]:
    """Each question put to each judge over one packet; the rows are in the run's log when this returns.

    `variant` is the prompt variant, the role's own unless given.

    Raises:
        JudgeError: a judge cannot be asked at all. RecordError: an image-only packet carries more than pixels.
    """
    if not questions:
        return []
    record = context.record
    packet, evidence = make_packet(record.story_id, condition, images, record.story_text)
    prompts = [panel.prompt for panel in context.plan().panels]
    scan_packet(packet, evidence, secrets_of(record, prompts)).require(record.story_id)
    used = variant or (STEERING_VARIANT if role == "steering" else context.config.variant)
    inquiry = Inquiry(packet, evidence, questions, method, used, context.config.answers)

    def tell(answer: Answer, reused: bool) -> None:
        emit(_told(stage, answer, reused=reused))

    rows = [row for name in context.plugins.judges for row in context.engine.ask(name, inquiry, tell)]
    context.files.append_answers(rows)
    return rows


def measure(context: RunContext, name: str, board: Board, emit: Emit) -> Candidate:
    """The candidate `name`: `board`, its score by Eq. 24, and each of its transitions (Eqs. 25 to 27).

    Where the context keeps features, a board that was measured before under any name is only weighed.
    """
    known = context.measured.boards if context.measured.boards is not None else {}
    key = board_key(board.frames)
    features = known.get(key)
    if features is None:
        features = known[key] = _features(context, name, board, emit)
        context.files.sync_answers()
    return weigh(name, board, features, context.config.compass)


def _features(context: RunContext, name: str, board: Board, emit: Emit) -> BoardFeatures:
    images = images_of(context, board)
    vectors = np.stack([context.plugins.similarity.encode_image(png) for png in images])
    adjacent = adjacent_similarities(vectors)
    questions = context.questions("steering")
    rows = ask_all(context, "image", images, questions, method=name, role="steering", stage="critique", emit=emit)
    whole = recoverability(rows, questions, context.matching).mean
    transitions = []
    for item in context.trajectory():
        measured, own = _measure_transition(context, name, board, item, images, vectors, adjacent, emit)
        transitions.append(measured)
        rows += own
    asked = sorted({question_id(row) for row in rows})
    return BoardFeatures(recoverability=whole, adjacent=adjacent, transitions=transitions, asked=asked)


def measure_pair(
    context: RunContext, name: str, board: Board, transition: Transition, emit: Emit
) -> TransitionFeatures:
    """One transition of a board of just its two scenes, whichever boards these come from."""
    images = images_of(context, board)
    vectors = np.stack([context.plugins.similarity.encode_image(png) for png in images])
    adjacent = adjacent_similarities(vectors)
    return _measure_transition(context, name, board, transition, images, vectors, adjacent, emit)[0]


def _measure_transition(
    context: RunContext,
    name: str,
    board: Board,
    transition: Transition,
    images: Sequence[bytes],
    vectors: NDArray[np.float64],
    adjacent: Sequence[float],
    emit: Emit,
) -> tuple[TransitionFeatures, list[Answer]]:
    """One transition, judged on its two frames and what was inserted between them, with its own questions.

    Boards that show it by the same frames are measured once; the others get the same answers under their own name. A
    failure is asked again.
    """
    pair = transition.pair
    places = span(board.frames, pair)
    method = f"{name}/transition:{pair[0]}-{pair[1]}"
    key = (pair, board_key([board.frames[place] for place in places]))
    known = context.measured.transitions.get(key)
    if known is not None:
        measured, rows = known
        rows = [row.model_copy(update={"method": method}) for row in rows]
        for row in rows:
            emit(_told("critique", row, reused=True))
        context.files.append_answers(rows)
        return measured, rows
    measured, rows = _ask_transition(context, method, transition, places, images, vectors, adjacent, emit)
    if all(row.status == "ok" for row in rows):
        context.measured.transitions[key] = (measured, rows)
    return measured, rows


def _ask_transition(
    context: RunContext,
    method: str,
    transition: Transition,
    places: Sequence[int],
    images: Sequence[bytes],
    vectors: NDArray[np.float64],
    adjacent: Sequence[float],
    emit: Emit,
) -> tuple[TransitionFeatures, list[Answer]]:
    pair = transition.pair
    text = context.plugins.similarity.encode_text(transition_text(transition))
    questions = [item for item in context.questions("steering") if item.target_transition == pair]
    rows = ask_all(
        context,
        "image",
        [images[place] for place in places],
        questions,
        method=method,
        role="steering",
        stage="critique",
        emit=emit,
    )
    measured = TransitionFeatures(
        pair=pair,
        recoverability=recoverability(rows, questions, context.matching).mean if questions else None,
        n_questions=len(questions),
        similarity=transition_similarity(vectors[list(places)], text),
        adjacent=max((adjacent[place] for place in places[:-1]), default=0.0),
    )
    return measured, rows


def final_board(candidates: Iterable[Candidate], decision: Decision, mode: str) -> Board:
    """The board that the decision leaves, under the mode's name."""
    name = decision.inserted if decision.accepted and decision.inserted else decision.selected
    board = next(item.board for item in candidates if item.name == name)
    return board.model_copy(update={"method": mode})


def reporting_boards(context: RunContext, base: Board, final: Board) -> dict[str, Board]:
    """What is judged for the report, by method: the first seed's board, and the final one."""
    return {"base": base.model_copy(update={"method": "base"}), context.mode.name: final}


def judge_boards(context: RunContext, boards: dict[str, Board], emit: Emit, *, text: bool = True) -> list[Answer]:
    """The reporting answers: text once for all boards, images and text with images for each (equal ones are reused).

    `text` is False when the text-only answers are in the log already.
    """
    questions = context.questions("reporting")

    def put(condition: Condition, images: list[bytes], method: str | None) -> list[Answer]:
        return ask_all(context, condition, images, questions, method=method, role="reporting", stage="judge", emit=emit)

    rows = put("text", [], None) if text else []
    for method, board in boards.items():
        images = images_of(context, board)
        rows += put("image", images, method) + put("text+image", images, method)
    context.files.sync_answers()
    return rows


def write_results(
    context: RunContext, candidates: Candidates, final: Board, keep: Callable[[Answer], bool] | None = None
) -> Scores:
    """Write candidates, answers, scores and, last, the storyboard; return the scores.

    The scores are computed from exactly the reporting rows of `answers.jsonl`. `keep` drops rows of boards that are no
    longer part of the run.
    """
    rows = [row for row in context.folder.read_answers() if keep is None or keep(row)]
    context.folder.write_answers(rows)
    reporting = [row for row in rows if row.role == "reporting"]
    unsettled = settle(context.matching, [context.story()], reporting)
    scored = score([context.story()], reporting, matching=context.matching, frozen=context.config.lock is not None)
    scores = scored.with_notes(unsettled)
    context.folder.save_results(candidates, scores, final)
    return scores
