"""Putting one frame into a board: what it shows, with which seeds it is drawn, and where it goes (Eq. 28)."""

from __future__ import annotations

from dataclasses import replace

from katha.agents.context import RunContext
from katha.agents.draw import frame_request, insert_frame, scene_requests
from katha.agents.frames import draw_inserted
from katha.agents.state import BridgeTask
from katha.agents.types import Emit
from katha.compass import Insertion, insertion
from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.schema import Board, Frame, FrameKind

__all__ = ["board_requests", "draw_bridge", "insertion_of", "insertion_seeds"]


def insertion_of(context: RunContext, pair: tuple[int, int], prompt: str | None = None) -> Insertion:
    """What the mode inserts at `pair`; `prompt` is a reviewing person's, if any."""
    plan, content = context.plan(), context.mode.content
    transition = next((item for item in context.trajectory() if item.pair == pair), None)
    if transition is None or content is None:
        raise UsageError(f"The mode {context.mode.name!r} inserts nothing at scenes {pair[0]} and {pair[1]}.")
    what = insertion(content, plan, transition, context.record.story_id)
    return replace(what, prompt=prompt) if prompt else what


def insertion_seeds(context: RunContext, board: Board) -> tuple[int, ...]:
    """The seeds that the inserted frame is drawn with: the run's, or the board's own for a single draw."""
    return context.config.seeds if context.mode.draws == "every" else (board.seed,)


def draw_bridge(context: RunContext, task: BridgeTask, emit: Emit) -> Board:
    """The board of `task` with one frame inserted, named `bridge:SEED` (`extra:SEED` for an extra frame)."""
    board = Board.model_validate(task["board"])
    first, second = task["pair"]
    plan, pair = context.plan(), (first, second)
    what = insertion_of(context, pair, task["prompt"])
    kind: FrameKind = "bridge" if context.mode.insert == "bridge" else "extra"
    seed = _another_seed(context, board) if what.other_seed else task["seed"]
    request = frame_request(context, plan, what, seed, kind=kind)
    place = next(number for number, frame in enumerate(board.frames) if frame.scene == second)
    others = board_requests(context, board)
    drawn, sha256 = draw_inserted(context, request, board, others, place, emit)
    frame = Frame(
        index=place + 1,
        kind=kind,
        transition=pair,
        image=f"panels/{sha256}.png",
        sha256=sha256,
        prompt=what.prompt,
        seed=drawn.seed,
        renderer=context.config.bridge_renderer,
    )
    return insert_frame(board, frame, f"{kind}:{task['seed']}")


def board_requests(context: RunContext, board: Board) -> list[FrameRequest]:
    """What each frame of `board` was drawn from: its prompt as it was used, with its own seed."""
    return [_request_of(context, frame) for frame in board.frames]


def _request_of(context: RunContext, frame: Frame) -> FrameRequest:
    plan = context.plan()
    if frame.scene is not None:
        return scene_requests(context, plan, frame.seed)[frame.scene - 1]
    what = insertion_of(context, frame.transition or (1, 2), frame.prompt)
    return frame_request(context, plan, what, frame.seed, kind=frame.kind)


def _another_seed(context: RunContext, board: Board) -> int:
    """A seed that is not the board's: the run's next one, or the number after it."""
    return next((seed for seed in context.config.seeds if seed != board.seed), (board.seed + 1) % 2**32)
