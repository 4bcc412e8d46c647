"""Frames from a renderer: each distinct one is drawn once, checked, kept by hash, and never drawn again."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from katha.agents.context import RunContext, paid
from katha.agents.state import Emit
from katha.errors import BlankFrameError, KathaError, RenderError, UsageError
from katha.jsonio import digest
from katha.protocols import BoardContext, Capabilities, FrameRequest, KeepsReceipts, Renderer
from katha.schema import Board, Event, Stage

Size = tuple[int, int]
_PNG = b"\x89PNG\r\n\x1a\n"
_END = b"IEND\xaeB`\x82"
_FLAT_LEVELS = 2
_SMALL = 2048
_FLAT_RATIO = 200
"""A picture of one colour takes a tiny part of its pixels' bytes as PNG; only such small files are looked into."""


def png_size(png: bytes) -> Size:
    """Return width and height in pixels, from the PNG's header."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def check_picture(png: object, size: Size | None, who: str) -> bytes:
    """Return `png` if it is a whole PNG of `size` (None: any) with something on it.

    Raises:
        RenderError: it is not; BlankFrameError: it is one colour all over.
    """
    if not isinstance(png, bytes) or not png.startswith(_PNG):
        raise RenderError(f"The renderer {who!r} gave a frame that is no PNG.")
    if _END not in png[-32:]:
        raise RenderError(f"The renderer {who!r} gave a PNG that is cut off.")
    found = png_size(png)
    if size is not None and found != size:
        raise RenderError(
            f"The renderer {who!r} drew {found[0]}x{found[1]} pixels where {size[0]}x{size[1]} were asked for."
        )
    if len(png) < max(_SMALL, found[0] * found[1] * 3 // _FLAT_RATIO) and _flat(png):
        raise BlankFrameError(f"The renderer {who!r} drew a frame of one colour.", hint="Try another prompt or seed.")
    return png


def _flat(png: bytes) -> bool:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        bands = image.convert("RGB").getextrema()
    return all(high - low <= _FLAT_LEVELS for low, high in bands)  # type: ignore[misc]


def drawable_size(able: Capabilities, wanted: Size) -> Size:
    """Return the size that a renderer has to draw so that `wanted` can be cut from it: the same where it can."""
    if able.sizes is None:
        step = able.size_multiple
        return (-(-wanted[0] // step) * step, -(-wanted[1] // step) * step)
    if wanted in able.sizes:
        return wanted
    shape = wanted[0] / wanted[1]

    def unlike(size: Size) -> tuple[float, int]:
        ratio = size[0] / size[1] / shape
        return (round(max(ratio, 1 / ratio), 3), abs(size[0] * size[1] - wanted[0] * wanted[1]))

    return min(able.sizes, key=unlike)


def fit_picture(png: bytes, size: Size) -> bytes:
    """Return `png` scaled to cover `size` and cut at its centre; the same bytes when it has that size already."""
    if png_size(png) == size:
        return png
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(png)) as image:
        fitted = ImageOps.fit(image.convert("RGB"), size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    fitted.save(buffer, "PNG")
    return buffer.getvalue()


@contextmanager
def named_failures(who: str) -> Iterator[None]:
    """Turn a renderer's unexpected exception into a `RenderError` that names it."""
    try:
        yield
    except (KathaError, GeneratorExit):
        raise
    except Exception as error:
        raise RenderError(f"The renderer {who!r} failed: {type(error).__name__}: {error}.") from error


# A frame's key is the renderer's specification and what the frame depends on: its own request, and the whole batch
# where the renderer's identity makes frames depend on one another. Pictures that are found, not drawn, are never
# remembered: their files may change. A frame of one colour is tried once more with the next seed.


_TOGETHER = {"none": False, "bank": False, "batch": True, "reference": True}


class _Blank(Exception):
    """A frame of one colour at `place` of a list of requests."""

    def __init__(self, place: int, error: BlankFrameError) -> None:
        super().__init__(place)
        self.place, self.error = place, error


def next_seed(seed: int) -> int:
    """Return the seed after `seed`."""
    return (seed + 1) % 2**32


def together(renderer: Renderer) -> bool:
    """Return whether the frames of one board depend on one another."""
    return _TOGETHER[renderer.capabilities.identity]


def draw_scenes(
    context: RunContext, requests: Sequence[FrameRequest], emit: Emit
) -> tuple[list[FrameRequest], list[str]]:
    """Return the hashes of one board's frames in order, and the requests that they were drawn from.

    Raises:
        RenderError: a frame could not be made.
    """
    current, tried = list(requests), set[int]()
    while True:
        try:
            return current, _draw_once(context, current, emit)
        except _Blank as blank:
            place = -1 if together(context.plugins.renderer) else blank.place
            if place in tried or context.plugins.renderer.capabilities.source == "found":
                raise blank.error from None
            tried.add(place)
            emit(_tell_blank(current[blank.place]))
            current = [
                replace(item, seed=next_seed(item.seed)) if place in (-1, at) else item
                for at, item in enumerate(current)
            ]


def _draw_once(context: RunContext, requests: Sequence[FrameRequest], emit: Emit) -> list[str]:
    renderer, index = context.plugins.renderer, context.store.frames
    keys, whole = _keys(renderer, requests), together(renderer)
    kept = renderer.capabilities.source == "drawn"
    with context.store.claim("frames:" + digest(keys)):
        found = [index.get(key) if kept else None for key in keys]
        if whole and None in found:
            found = [None] * len(keys)
        for sha256, request in zip(found, requests, strict=True):
            if sha256 is not None:
                show(context, sha256, request, emit, reused=True)
        missing = [place for place, sha256 in enumerate(found) if sha256 is None]
        fresh: list[tuple[int, str]] = []
        with context.renderer_lock, closing(_render(context, requests, missing)) as drawn:
            for place, png in zip(missing, drawn, strict=True):
                sha256 = context.store.blobs.put(png)
                _keep_receipt(context, renderer, sha256)
                if kept and not whole:
                    sha256 = index.put(keys[place], sha256)
                fresh.append((place, sha256))
                show(context, sha256, requests[place], emit, reused=False)
        if kept and whole:  # all or nothing: frames of two batches do not belong together
            fresh = [(place, index.put(keys[place], sha256)) for place, sha256 in fresh]
    hashes = dict(fresh)
    return [sha256 or hashes[place] for place, sha256 in enumerate(found)]


def _render(
    context: RunContext, requests: Sequence[FrameRequest], places: Sequence[int]
) -> Generator[bytes, None, None]:
    """The renderer's frames for the requests at `places`, each checked; exactly one per request."""
    count, renderer, who = 0, context.plugins.renderer, context.config.renderer
    wanted = [requests[place] for place in places]
    if not wanted:
        return
    try:
        with named_failures(who):
            frames = iter(renderer.render_board(wanted))
            while count < len(wanted):
                png = paid(context.plugins.budget, renderer, lambda: next(frames, None))
                if png is None:
                    break
                checked = check_picture(png, _size(renderer, wanted[count]), who)
                count += 1
                yield checked
            if count == len(wanted) and next(frames, None) is not None:
                count += 1
    except BlankFrameError as error:
        raise _Blank(places[min(count, len(places) - 1)], error) from error
    if count != len(wanted):
        raise RenderError(f"The renderer {who!r} gave {count} frames for {len(wanted)} requests.")


def _keep_receipt(context: RunContext, renderer: Renderer, sha256: str) -> None:
    if isinstance(renderer, KeepsReceipts):
        context.store.frames.put_receipt(sha256, renderer.receipt())


def _size(renderer: Renderer, request: FrameRequest) -> tuple[int, int] | None:
    return (request.width, request.height) if renderer.capabilities.source == "drawn" else None


def _dump(request: FrameRequest) -> dict[str, object]:
    """A request as JSON; whose story it is does not change what is drawn."""
    fields = {name: value for name, value in vars(request).items() if name != "story_id"}
    return {**fields, "characters": [item.model_dump(mode="json") for item in request.characters]}


def _keys(renderer: Renderer, requests: Sequence[FrameRequest]) -> list[str]:
    """The cache key of each request of one board."""
    spec = dict(renderer.spec())
    dumps = [_dump(request) for request in requests]
    batch = dumps if together(renderer) else None
    return [
        digest({"batch": batch, "place": place if batch else None, "renderer": spec, "request": dump})
        for place, dump in enumerate(dumps)
    ]


def show(context: RunContext, sha256: str, request: FrameRequest, emit: Emit, *, reused: bool) -> None:
    """Put a frame into `panels/` and tell that it is there."""
    if context.files.panel(sha256) is None:
        context.files.add_panel(sha256, context.store.blobs.get(sha256))
    what = f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"
    emit({"stage": _stage(request), "kind": "frame", "message": f"{what}, seed {request.seed}", "reused": reused})


def _stage(request: FrameRequest) -> Stage:
    return "render" if request.kind == "scene" else "bridge"


def _tell_blank(request: FrameRequest) -> Event:
    message = f"A frame of one colour with seed {request.seed}: once more with {next_seed(request.seed)}."
    return Event(stage=_stage(request), kind="decision", message=message)


def images_of(context: RunContext, board: Board) -> list[bytes]:
    """Return the board's images in order, verified; a panel that was lost is taken from the cache."""
    images = []
    for frame in board.frames:
        png = context.files.panel(frame.sha256)
        if png is None:
            png = context.store.blobs.get(frame.sha256)
            context.files.add_panel(frame.sha256, png)
        images.append(png)
    return images


def draw_inserted(
    context: RunContext,
    request: FrameRequest,
    board: Board,
    others: Sequence[FrameRequest],
    position: int,
    emit: Emit,
    renderer: Renderer | None = None,
) -> tuple[FrameRequest, str]:
    """Draw one frame that goes before `position` (from 0) of `board`, whose other frames do not change.

    The frame has the size of the board's pictures, whatever sizes its renderer draws. Gives the request that it was
    drawn from (its seed is the next one when the first gave one colour) and its hash.
    """
    drawer = renderer or context.plugins.inserter
    around = BoardContext(tuple(others), tuple(images_of(context, board)), position)
    try:
        return request, _insert_once(context, drawer, request, board, around, emit)
    except BlankFrameError:
        emit(_tell_blank(request))
        again = replace(request, seed=next_seed(request.seed))
        return again, _insert_once(context, drawer, again, board, around, emit)


def _insert_once(
    context: RunContext, renderer: Renderer, request: FrameRequest, board: Board, around: BoardContext, emit: Emit
) -> str:
    size = png_size(around.images[max(0, around.position - 1)])
    width, height = drawable_size(renderer.capabilities, size)
    asked = replace(request, width=width, height=height)
    key = _insertion_key(renderer, asked, board, around, size)
    who = context.config.renderer if renderer is context.plugins.renderer else context.config.bridge_renderer
    with context.store.claim("frames:" + key):
        sha256 = context.store.frames.get(key)
        reused = sha256 is not None
        if sha256 is None:
            with context.renderer_lock, named_failures(str(who)):
                drawn = paid(context.plugins.budget, renderer, lambda: renderer.insert_frame(asked, around))
                png = check_picture(drawn, (width, height), str(who))
                sha256 = context.store.blobs.put(fit_picture(png, size))
                _keep_receipt(context, renderer, sha256)
            sha256 = context.store.frames.put(key, sha256)
    show(context, sha256, request, emit, reused=reused)
    return sha256


def _insertion_key(
    renderer: Renderer, request: FrameRequest, board: Board, around: BoardContext, size: tuple[int, int]
) -> str:
    """An inserted frame depends on its request, and on its surroundings unless the renderer draws it alone."""
    alone = renderer.capabilities.insertion == "alone"
    others = [_dump(other) for other in around.requests]
    context = None if alone else [others, [frame.sha256 for frame in board.frames], around.position]
    key: dict[str, object] = {"insert": context, "renderer": dict(renderer.spec()), "request": _dump(request)}
    return digest(key if size == (request.width, request.height) else {**key, "cut": size})


def redraw(
    context: RunContext, request: FrameRequest, around: Board, others: Sequence[FrameRequest], position: int, emit: Emit
) -> tuple[FrameRequest, str]:
    """Draw one frame anew into the place it was taken from; `around` is the board without it.

    A renderer whose frames do not depend on one another draws a scene as it draws any scene, so that a seed gives the
    same picture here and in a board; otherwise the frame is inserted among the others.

    Raises:
        UsageError: the board's pictures were found, not drawn.
    """
    renderer = context.plugins.renderer
    if request.kind != "scene":
        return draw_inserted(context, request, around, others, position, emit)
    if renderer.capabilities.source == "found":
        raise UsageError(f"The pictures of {context.config.renderer!r} were not drawn here, so none is drawn again.")
    if not together(renderer):
        requests, hashes = draw_scenes(context, [request], emit)
        return requests[0], hashes[0]
    return draw_inserted(context, request, around, others, position, emit, renderer)
