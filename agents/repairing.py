"""What a repair by moves begins with: what judges missed of a board, and the moves that are proposed from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from katha.agents.context import RunContext
from katha.agents.frames import images_of
from katha.agents.state import Emit
from katha.compass.moves import drawn_again, within
from katha.compass.repair import span
from katha.compass.writer import FieldsWriter, Task
from katha.configs import load_prompt
from katha.errors import ReplyError
from katha.eval_bridge.judging.engine import Inquiry, PlainQuestion
from katha.eval_bridge.matching.rules import settle
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.eval_bridge.packets.packets import make_packet
from katha.eval_bridge.scoring.outcomes import recoverability
from katha.protocols import Judge, PlainPrompt, can
from katha.schema import Answer, Board, Event, Missed, Move, Panel, Question, RepairEvidence, Tried

__all__ = ["Proposed", "answered_by", "gather", "propose"]

# Room for a few sentences a frame: what a judge sees is evidence for a writer, not an essay.
_SEEN_TOKENS = 600


def gather(context: RunContext, board: Board, pair: tuple[int, int], emit: Emit) -> RepairEvidence:
    """Return what the judges that steer could not tell from `board`: of one transition, and of the whole.

    Every question was asked when the board was measured, so all answers but what is seen come from the cache.
    """
    images = images_of(context, board)
    own = [item for item in context.questions("steering") if item.target_transition == pair]
    shown = [images[place] for place in span(board.frames, pair)]
    whole = _answers(context, images, context.questions("steering"))
    there = whole if len(images) == len(shown) else _answers(context, shown, own)
    settle(context.matching, [context.story()], [*whole, *there])
    missed = _missed(context, own, there)
    open_ones = [item for item in context.questions("steering") if item.target_transition is None]
    seen = _seen(context, shown, pair)
    for text in seen.values():
        emit(Event(stage="localize", kind="progress", message=f"Seen in frames {pair[0]} and {pair[1]}: {text}"))
    return RepairEvidence(
        pair=pair, asked=len(own), missed=missed, elsewhere=_missed(context, open_ones, whole), seen=seen
    )


def answered_by(context: RunContext, board: Board) -> set[str]:
    """Return the ids of the steering questions that a measured board answers."""
    questions = context.questions("steering")
    rows = _answers(context, images_of(context, board), questions)
    settle(context.matching, [context.story()], rows)
    return {item.question_id for item in questions if recoverability(rows, [item], context.matching).mean == 1.0}


def _answers(context: RunContext, images: Sequence[bytes], questions: Sequence[Question]) -> list[Answer]:
    """Return the answers that steering judges gave over these pictures, as boards are measured."""
    if not questions:
        return []
    record = context.record
    packet, evidence = make_packet(record.story_id, "image", images, record.story_text)
    inquiry = Inquiry(packet, evidence, questions, None, STEERING_VARIANT, context.config.answers, ask="together")
    return [row for name in context.asked("steering") for row in context.engine.ask(name, inquiry)]


def _missed(context: RunContext, questions: Sequence[Question], rows: Sequence[Answer]) -> list[Missed]:
    found = []
    for item in questions:
        own = [row for row in rows if row.question_id == item.question_id]
        if recoverability(own, [item], context.matching).mean == 0.0:
            found.append(
                Missed(
                    question_id=item.question_id,
                    question=item.question,
                    dimension=item.question_type,
                    wanted=item.gold_answer,
                    answered={row.judge: row.answer or row.status for row in own},
                )
            )
    return found


def _seen(context: RunContext, images: Sequence[bytes], pair: tuple[int, int]) -> dict[str, str]:
    """Return what the first steering judge that can describe pictures sees in these: one call, kept by the cache."""
    judges = context.plugins.judges
    name = next((one for one in context.asked("steering") if can(judges[one], Judge.ask_plainly)), None)
    if name is None:
        return {}
    record = context.record
    packet, evidence = make_packet(record.story_id, "image", images, record.story_text)
    text = load_prompt("judge/seen").render(count=len(images))
    question = PlainQuestion(
        f"seen/{pair[0]}-{pair[1]}", PlainPrompt((*range(len(images)), text), max_tokens=_SEEN_TOKENS)
    )
    rows = list(context.engine.ask(name, Inquiry(packet, evidence, [question], None)))
    return {row.judge: " ".join(row.answer.split()) for row in rows if row.status == "ok" and row.answer}


class Proposed(NamedTuple):
    """What a round draws, what it was proposed from, and why nothing was where nothing is."""

    moves: list[Move]
    evidence: RepairEvidence
    why: str = ""


def propose(
    context: RunContext, board: Board, pair: tuple[int, int], tried: Sequence[Tried], rounds: int, emit: Emit
) -> Proposed:
    """Return the moves of the next round at one transition of `board`.

    tried: the moves of earlier rounds. rounds: how many are left, this one included: each may draw its share of
    the frames that `moves` allows.

    Raises:
        ModelError: the writer gave no answer; the same command goes on.
    """
    evidence, mode = gather(context, board, pair, emit), context.mode
    left = context.config.moves - sum(len(one.move.panels) for one in tried)
    count = -(-left // max(1, rounds))
    if count < 1:
        return Proposed([], evidence, "All frames that --moves allows are drawn.")
    shown = shown_panels(context, board)
    if not mode.writes:
        plan = context.plan().model_copy(update={"panels": shown})
        return Proposed(drawn_again(plan, pair, count), evidence)
    transition = next(item for item in context.trajectory() if item.pair == pair)
    task = Task(
        record=context.record.model_copy(update={"recoverability_questions": []}),
        plan=context.plan(),
        transition=transition,
        kinds=tuple(kind for kind in mode.moves if kind != "bridge" or not _is_longer(board)),
        count=count,
        evidence=evidence if mode.informed else None,
        tried=tuple(one for one in tried if one.move.pair == pair),
        panels=tuple(shown),
    )
    try:
        made = (context.plugins.writer or FieldsWriter()).propose(task)
    except ReplyError as error:
        return Proposed([], evidence, f"Nothing was proposed: {error.message}")
    return Proposed(within(made, count), evidence, "" if made else "Nothing was proposed.")


def _is_longer(board: Board) -> bool:
    """Return whether a board has a bridge already: it gets one frame more at most."""
    return any(frame.transition is not None for frame in board.frames)


def shown_panels(context: RunContext, board: Board) -> list[Panel]:
    """Return what each scene of a board shows: the plan's panel, or what a move has put into its place."""
    own = {frame.scene: frame.panel for frame in board.frames if frame.kind == "scene" and frame.panel is not None}
    return [own.get(panel.index) or panel for panel in context.plan().panels]
