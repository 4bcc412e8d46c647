"""Boards and inserted frames: each distinct frame is drawn once, kept by hash, and never drawn again.

A frame's key is the renderer's specification and what the frame depends on: its own request, and the whole batch where
the renderer's identity makes frames depend on one another.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from katha.agents.context import RunContext, plan_sha256
from katha.compass import Insertion
from katha.errors import KathaError, RenderError
from katha.jsonio import digest
from katha.protocols import BoardContext, FrameRequest
from katha.schema import Board, Event, Frame, FrameKind, Plan, Stage

__all__ = [
    "draw_again",
    "draw_board",
    "draw_inserted",
    "frame_request",
    "images_of",
    "insert_frame",
    "numbered",
    "scene_requests",
]

Emit = Callable[[Event], None]
_TOGETHER = {"none": False, "bank": False, "batch": True, "reference": True}
_PNG = b"\x89PNG\r\n\x1a\n"


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
    requests = scene_requests(context, plan, seed)
    hashes = _draw_scenes(context, requests, emit)
    frames = [
        Frame(
            index=number,
            scene=request.scene,
            image=f"panels/{sha256}.png",
            sha256=sha256,
            prompt=request.prompt,
            seed=seed,
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


def _dump(request: FrameRequest) -> dict[str, Any]:
    """A request as JSON."""
    return {**vars(request), "characters": [item.model_dump(mode="json") for item in request.characters]}


def _keys(context: RunContext, requests: Sequence[FrameRequest]) -> list[str]:
    """The cache key of each request of one board."""
    spec = dict(context.plugins.renderer.spec())
    dumps = [_dump(request) for request in requests]
    together = dumps if _TOGETHER[context.plugins.renderer.capabilities.identity] else None
    return [
        digest({"batch": together, "place": place if together else None, "renderer": spec, "request": dump})
        for place, dump in enumerate(dumps)
    ]


def _draw_scenes(context: RunContext, requests: Sequence[FrameRequest], emit: Emit) -> list[str]:
    """The hashes of one board's frames, in order."""
    keys = _keys(context, requests)
    together = _TOGETHER[context.plugins.renderer.capabilities.identity]
    with context.store.claim("frames:" + digest(keys)):
        found = [context.store.frames.get(key) for key in keys]
        if together and None in found:
            found = [None] * len(keys)
        for sha256, request in zip(found, requests, strict=True):
            if sha256 is not None:
                _show(context, sha256, request, emit, reused=True)
        missing = [place for place, sha256 in enumerate(found) if sha256 is None]
        fresh: list[tuple[int, str]] = []
        with context.renderer_lock, closing(_render(context, [requests[place] for place in missing])) as drawn:
            for place, png in zip(missing, drawn, strict=True):
                sha256 = context.store.blobs.put(png)
                if not together:
                    sha256 = context.store.frames.put(keys[place], sha256)
                fresh.append((place, sha256))
                _show(context, sha256, requests[place], emit, reused=False)
        if together:  # all or nothing: frames of two batches do not belong together
            fresh = [(place, context.store.frames.put(keys[place], sha256)) for place, sha256 in fresh]
    hashes = dict(fresh)
    return [sha256 or hashes[place] for place, sha256 in enumerate(found)]


def _render(context: RunContext, requests: Sequence[FrameRequest]) -> Generator[bytes, None, None]:
    """The renderer's frames for `requests`, each checked; exactly one per request."""
    count = 0
    if not requests:
        return
    with _named(context):
        for png in context.plugins.renderer.render_board(requests):
            count += 1
            if count > len(requests):
                break
            yield _checked(context, png)
    if count != len(requests):
        raise RenderError(f"The renderer {context.config.renderer!r} gave {count} frames for {len(requests)} requests.")


def _checked(context: RunContext, png: bytes) -> bytes:
    if not isinstance(png, bytes) or not png.startswith(_PNG):
        raise RenderError(f"The renderer {context.config.renderer!r} gave a frame that is no PNG.")
    return png


@contextmanager
def _named(context: RunContext) -> Iterator[None]:
    """Turn a renderer's unexpected exception into a `RenderError` that names it."""
    try:
        yield
    except (KathaError, GeneratorExit):
        raise
    except Exception as error:
        kind = type(error).__name__
        raise RenderError(f"The renderer {context.config.renderer!r} failed: {kind}: {error}.") from error


def _show(context: RunContext, sha256: str, request: FrameRequest, emit: Emit, *, reused: bool) -> None:
    """Put a frame into `panels/` and tell that it is there."""
    if context.folder.panel(sha256) is None:
        context.folder.add_panel(sha256, context.store.blobs.get(sha256))
    what = f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"
    stage: Stage = "render" if request.kind == "scene" else "bridge"
    emit({"stage": stage, "kind": "frame", "message": f"{what}, seed {request.seed}", "reused": reused})


def images_of(context: RunContext, board: Board) -> list[bytes]:
    """The board's images in order, verified; a panel that was lost is taken from the cache."""
    images = []
    for frame in board.frames:
        png = context.folder.panel(frame.sha256)
        if png is None:
            png = context.store.blobs.get(frame.sha256)
            context.folder.add_panel(frame.sha256, png)
        images.append(png)
    return images


def draw_inserted(
    context: RunContext, request: FrameRequest, board: Board, others: Sequence[FrameRequest], position: int, emit: Emit
) -> str:
    """The hash of one frame that goes before `position` (from 0) of `board`, whose other frames do not change."""
    key = _insertion_key(context, request, board, others, position)
    with context.store.claim("frames:" + key):
        sha256 = context.store.frames.get(key)
        reused = sha256 is not None
        if sha256 is None:
            surroundings = BoardContext(tuple(others), tuple(images_of(context, board)), position)
            with context.renderer_lock, _named(context):
                png = _checked(context, context.plugins.renderer.insert_frame(request, surroundings))
            sha256 = context.store.frames.put(key, context.store.blobs.put(png))
    _show(context, sha256, request, emit, reused=reused)
    return sha256


def draw_again(
    context: RunContext, request: FrameRequest, around: Board, others: Sequence[FrameRequest], position: int, emit: Emit
) -> str:
    """The hash of one frame drawn anew into the place it was taken from; `around` is the board without it.

    A renderer whose frames do not depend on one another draws a scene as it draws any scene, so that a seed gives the
    same picture here and in a board; otherwise the frame is inserted among the others.
    """
    if request.kind == "scene" and not _TOGETHER[context.plugins.renderer.capabilities.identity]:
        return _draw_scenes(context, [request], emit)[0]
    return draw_inserted(context, request, around, others, position, emit)


def _insertion_key(
    context: RunContext, request: FrameRequest, board: Board, others: Sequence[FrameRequest], position: int
) -> str:
    """An inserted frame depends on its request, and on its surroundings unless the renderer draws it alone."""
    renderer = context.plugins.renderer
    alone = renderer.capabilities.insertion == "alone"
    around = None if alone else [[_dump(other) for other in others], [frame.sha256 for frame in board.frames], position]
    return digest({"insert": around, "renderer": dict(renderer.spec()), "request": _dump(request)})


def insert_frame(board: Board, frame: Frame, method: str) -> Board:
    """Eq. 28: `board` with `frame` before the position of its index; the other frames keep their images."""
    place = frame.index - 1
    frames = [*board.frames[:place], frame, *board.frames[place:]]
    return board.model_copy(update={"frames": numbered(frames), "method": method, "seed": board.seed})


def numbered(frames: Iterable[Frame]) -> list[Frame]:
    """`frames` with their indices from 1."""
    return [frame.model_copy(update={"index": number}) for number, frame in enumerate(frames, 1)]
