"""Putting one frame into a board: what it shows, with which seeds it is drawn, and where it goes (Eq. 28)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from katha.agents.context import RunContext
from katha.agents.draw import draw_inserted, frame_request, insert_frame, scene_requests
from katha.agents.state import BridgeTask
from katha.compass import Insertion, insertion
from katha.errors import UsageError
from katha.schema import Board, Event, Frame, FrameKind

__all__ = ["draw_bridge", "insertion_of", "insertion_seeds"]

Emit = Callable[[Event], None]


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
    others = scene_requests(context, plan, board.seed)
    sha256 = draw_inserted(context, request, board, others, place, emit)
    frame = Frame(
        index=place + 1,
        kind=kind,
        transition=pair,
        image=f"panels/{sha256}.png",
        sha256=sha256,
        prompt=what.prompt,
        seed=seed,
    )
    return insert_frame(board, frame, f"{kind}:{task['seed']}")


def _another_seed(context: RunContext, board: Board) -> int:
    """A seed that is not the board's: the run's next one, or the number after it."""
    return next((seed for seed in context.config.seeds if seed != board.seed), (board.seed + 1) % 2**32)
