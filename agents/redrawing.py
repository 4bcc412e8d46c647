"""Frames that are drawn into their places on a board, among frames that stay: after an edit, and by a repair's move."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from katha.agents.context import RunContext
from katha.agents.frames import (
    board_requests,
    draw_inserted,
    draw_scenes,
    numbered,
    picture_at,
    source_name,
    together,
)
from katha.agents.guiding import guided_by, layout_name, layouts_of, unshown
from katha.agents.state import Emit
from katha.compass.moves import seed_of
from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.schema import Board, Frame, Move

__all__ = ["draw_into", "draw_move", "move_name", "pictured", "unmarked"]


def move_name(mark: str, number: int, seed: int) -> str:
    """Return the name of a board with a move: `move.1.2:42` is the second of the first round, in the branch of 42."""
    return f"{mark}.{number}:{seed}"


def draw_move(context: RunContext, board: Board, move: Move, number: int, seed: int, emit: Emit) -> Board:
    """Return `board` with the frames of a move drawn, in the branch of `seed`; the others keep their images.

    number: the move's among all of the repair, from 1.
    """
    frames, wanted, own = list(board.frames), list[int](), seed_of(move, number, seed)
    for panel in move.panels:
        between, scene = move.kind == "bridge", move.pair[1] if move.kind == "bridge" else panel.index
        place = next(at for at, frame in enumerate(frames) if frame.scene == scene and frame.kind == "scene")
        if between:
            frames.insert(place, _missing(context, move.pair))
        told = {"prompt": panel.prompt, "seed": own, "panel": panel}
        frames[place] = frames[place].model_copy(update=told)
        wanted.append(place)
    changed = board.model_copy(update={"frames": numbered(frames)})
    drawn = dict(draw_into(context, changed, sorted(wanted), emit))
    return board.model_copy(update={"frames": [drawn.get(at, frame) for at, frame in enumerate(changed.frames)]})


def _missing(context: RunContext, pair: tuple[int, int]) -> Frame:
    """Return a bridge that has no picture yet."""
    between, by = (pair[0], pair[1]), context.config.bridge_renderer
    return Frame(index=1, kind="bridge", transition=between, image="", sha256="", prompt="", seed=0, renderer=by)


def draw_into(
    context: RunContext, board: Board, draw: Sequence[int], emit: Emit, without: Collection[int] = ()
) -> Iterator[tuple[int, Frame]]:
    """Yield the frames at these positions (from 0), drawn into their places among the others. without: those that are
    not there. The layouts that they follow are drawn first, into their places among the others' layouts.

    A renderer whose frames do not depend on one another draws a scene as it draws any scene, so that a seed gives the
    same picture here and in a board; otherwise the frame is inserted among those that are there.

    Raises:
        UsageError: the board's pictures were found, not drawn, and nobody else could draw one.
    """
    renderer, frames = context.plugins.renderer, board.frames
    requests = _laid_out(context, board, draw, emit)
    found = renderer.capabilities.source == "found"
    scenes = [at for at in draw if frames[at].kind == "scene"]
    if scenes and found and (context.plugins.bridge is None or any(frames[at].sha256 for at in scenes)):
        raise UsageError(f"The pictures of {context.config.renderer!r} were not drawn here, so none is drawn again.")
    done: dict[int, Frame] = {}
    if scenes and not found and not together(renderer):
        used, hashes = draw_scenes(context, [requests[at] for at in scenes], emit)
        for at, request, sha256 in zip(scenes, used, hashes, strict=True):
            done[at] = pictured(context, frames[at], request, sha256)
            yield at, done[at]
    for at in (item for item in draw if item not in done):
        missing = {at, *without, *draw} - done.keys()
        there = [other for other in range(len(frames)) if other not in missing]
        around = board.model_copy(update={"frames": [done.get(other, frames[other]) for other in there]})
        place = sum(other < at for other in there)
        by = renderer if at in scenes and not found else None
        beside = [requests[other] for other in there]
        request, sha256 = draw_inserted(context, requests[at], around, beside, place, emit, by)
        done[at] = pictured(context, frames[at], request, sha256)
        yield at, done[at]


def _laid_out(context: RunContext, board: Board, draw: Sequence[int], emit: Emit) -> list[FrameRequest]:
    """Return what each frame of the board is drawn from: those at these positions with the layouts that they follow."""
    plugins, requests = context.plugins, board_requests(context, board)
    drawers = {at: plugins.renderer if board.frames[at].kind == "scene" else plugins.inserter for at in draw}
    follow = [at for at in draw if plugins.guide_of(drawers[at]) is not None]
    if plugins.guide is None or not follow:
        return requests
    other, apart = guided_by(context, plugins.guide), set(draw) - set(follow)
    for at, layout in draw_into(other, layouts_of(board), follow, unshown(emit), apart):
        requests[at] = replace(requests[at], guide=picture_at(context, layout.sha256))
    return requests


def pictured(context: RunContext, frame: Frame, request: FrameRequest, sha256: str) -> Frame:
    """Return `frame` with the picture of that hash, as it was drawn from `request`."""
    told: dict[str, object] = {
        "seed": request.seed,
        "sha256": sha256,
        "image": f"panels/{sha256}.png",
        "source": source_name(context, sha256),
        "guide": layout_name(request.guide) if request.guide is not None else frame.guide,
    }
    return frame.model_copy(update={**told, **unmarked(frame, "inpainted", "own", "stale")})


def unmarked(frame: Frame, *marks: str) -> dict[str, None]:
    """Return the change that takes these marks from a frame that has them: another picture stands there now."""
    return dict.fromkeys(mark for mark in marks if mark in (frame.model_extra or {}))
