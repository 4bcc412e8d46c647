"""Putting one frame into a board: what it shows, with which seeds it is drawn, and where it goes (Eq. 28)."""

from __future__ import annotations

from dataclasses import replace

from katha.agents.context import RunContext
from katha.agents.draw import frame_request, insert_frame, numbered, scene_requests
from katha.agents.frames import draw_inserted, images_of
from katha.agents.state import BridgeTask
from katha.agents.types import Emit
from katha.compass import Insertion, insertion, transition_text
from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.schema import Board, Frame, FrameKind

__all__ = ["board_requests", "draw_bridge", "inserted_name", "insertion_of", "insertion_seeds"]


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
    """The board of `task` with one frame inserted, or with one replaced (`Mode.place`), by its `inserted_name`."""
    board = Board.model_validate(task["board"])
    first, second = task["pair"]
    plan, pair = context.plan(), (first, second)
    what = insertion_of(context, pair, task["prompt"])
    kind: FrameKind = "bridge" if context.mode.insert == "bridge" else "extra"
    seed = _another_seed(context, board, task["seed"]) if what.other_seed else task["seed"]
    request = frame_request(context, plan, what, seed, kind=kind)
    name = inserted_name(context.mode.insert, board, task["seed"])
    replaced = _weaker(context, board, pair) if context.mode.place == "instead" else None
    if replaced is not None:
        board = board.model_copy(update={"frames": numbered(item for item in board.frames if item is not replaced)})
        place = replaced.index - 1
    else:
        place = next(number for number, frame in enumerate(board.frames) if frame.scene == second)
    others = board_requests(context, board)
    drawn, sha256 = draw_inserted(context, request, board, others, place, emit)
    frame = Frame(
        index=place + 1,
        kind=kind if replaced is None else "scene",
        scene=replaced.scene if replaced is not None else None,
        transition=pair,
        image=f"panels/{sha256}.png",
        sha256=sha256,
        prompt=what.prompt,
        seed=drawn.seed,
        renderer=context.config.bridge_renderer,
    )
    return insert_frame(board, frame, name)


def inserted_name(kind: str, board: Board, seed: int) -> str:
    """The name of `board` with one frame more, drawn from `seed`: `bridge:42`, and `bridge.2:42` for the second."""
    count = sum(frame.transition is not None for frame in board.frames)
    return f"{kind}:{seed}" if not count else f"{kind}.{count + 1}:{seed}"


def _weaker(context: RunContext, board: Board, pair: tuple[int, int]) -> Frame:
    """The scene of `pair` whose frame is less like the transition's text; of equals the later one."""
    step = next(item for item in context.trajectory() if item.pair == pair)
    text = context.plugins.similarity.encode_text(transition_text(step))
    frames = [frame for frame in board.frames if frame.scene in pair]
    pictures = images_of(context, board.model_copy(update={"frames": frames}))
    worth = [float(context.plugins.similarity.encode_image(png) @ text) for png in pictures]
    return min(zip(worth, frames, strict=True), key=lambda item: (item[0], -item[1].index))[1]


def board_requests(context: RunContext, board: Board) -> list[FrameRequest]:
    """What each frame of `board` was drawn from: its prompt as it was used, with its own seed."""
    return [_request_of(context, frame) for frame in board.frames]


def _request_of(context: RunContext, frame: Frame) -> FrameRequest:
    plan = context.plan()
    if frame.scene is not None and frame.transition is None:
        return scene_requests(context, plan, frame.seed)[frame.scene - 1]
    what = insertion_of(context, frame.transition or (1, 2), frame.prompt)
    return frame_request(context, plan, what, frame.seed, kind=frame.kind)


def _another_seed(context: RunContext, board: Board, seed: int) -> int:
    """A seed that is not the board's: the run's next one, or a new one for each seed where every seed is drawn."""
    if context.mode.draws == "every":
        return (seed + 1) % 2**32
    return next((other for other in context.config.seeds if other != board.seed), (board.seed + 1) % 2**32)
