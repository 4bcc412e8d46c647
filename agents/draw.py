"""Boards: the requests of one seed's panels, the board drawn from them, and a board with one frame more (Eq. 28)."""

from __future__ import annotations

from collections.abc import Iterable

from katha.agents.context import RunContext, plan_sha256
from katha.agents.frames import draw_scenes
from katha.agents.types import Emit
from katha.compass import Insertion
from katha.protocols import FrameRequest
from katha.schema import Board, Frame, FrameKind, Plan

__all__ = ["draw_board", "frame_request", "insert_frame", "numbered", "scene_requests"]


def frame_request(
    context: RunContext,
    plan: Plan,
    insertion: Insertion,
    seed: int,
    kind: FrameKind = "scene",
    scene: int | None = None,
) -> FrameRequest:
    """One request to the renderer."""
    width, height = context.size
    return FrameRequest(
        prompt=insertion.prompt,
        seed=seed,
        width=width,
        height=height,
        negative_prompt=insertion.negative_prompt,
        style=plan.style,
        kind=kind,
        scene=scene,
        characters=tuple(item for item in plan.characters if item.name in insertion.characters),
        story_id=plan.story_id,
    )


def scene_requests(context: RunContext, plan: Plan, seed: int) -> list[FrameRequest]:
    """The requests of one seed's board, a panel each."""
    return [
        frame_request(
            context,
            plan,
            Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters)),
            seed,
            scene=panel.index,
        )
        for panel in plan.panels
    ]


def draw_board(context: RunContext, plan: Plan, seed: int, emit: Emit) -> Board:
    """The board of one seed; frames that are already in the cache are not drawn.

    Raises:
        RenderError: a frame could not be made.
    """
    requests, hashes = draw_scenes(context, scene_requests(context, plan, seed), emit)
    frames = [
        Frame(
            index=number,
            scene=request.scene,
            image=f"panels/{sha256}.png",
            sha256=sha256,
            prompt=request.prompt,
            seed=request.seed,
        )
        for number, (request, sha256) in enumerate(zip(requests, hashes, strict=True), 1)
    ]
    return Board(
        story_id=plan.story_id,
        method=f"candidate:{seed}",
        mode=context.mode.name,
        planner=plan.planner,
        renderer=context.config.renderer,
        seed=seed,
        plan_sha256=plan_sha256(plan),
        frames=frames,
    )


def insert_frame(board: Board, frame: Frame, method: str) -> Board:
    """Eq. 28: `board` with `frame` before the position of its index; the other frames keep their images."""
    place = frame.index - 1
    frames = [*board.frames[:place], frame, *board.frames[place:]]
    return board.model_copy(update={"frames": numbered(frames), "method": method, "seed": board.seed})


def numbered(frames: Iterable[Frame]) -> list[Frame]:
    """`frames` with their indices from 1."""
    return [frame.model_copy(update={"index": number}) for number, frame in enumerate(frames, 1)]
