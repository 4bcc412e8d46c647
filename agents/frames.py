"""Frames from a renderer, each distinct one drawn once, checked and kept by hash; and boards of them: drawn from a plan
with one seed, or with one frame more (Eq. 28).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import partial

from katha.agents.context import RunContext, paid, plan_sha256
from katha.agents.folder import CAST
from katha.agents.guiding import guided_by, layout_name, layouts_of, unshown
from katha.agents.pictures import (
    as_mask,
    check_picture,
    drawable_size,
    fit_picture,
    inside,
    portrait_of,
    reference_of,
    scaled,
    side_by_side,
    threads_of,
    with_pictures,
)
from katha.agents.requests import inserted_request, scene_request
from katha.agents.state import BridgeTask, Emit, ignore_event
from katha.compass.repair import Insertion, insertion, written
from katha.errors import BlankFrameError, RenderError, StoreError, UsageError
from katha.jsonio import digest, sha256_hex
from katha.pictures import png_size
from katha.plugin_boundary import named_failures
from katha.protocols import (
    BoardContext,
    FrameRequest,
    Renderer,
    can,
)
from katha.schema import Board, Character, Event, Frame, FrameKind, Prop, Record, Stage

_PANEL_FIELDS = frozenset(
    {
        *("place", "time_of_day", "shot_size", "shot_angle", "must_show"),
        *("light", "weather", "camera", "state", "gaze", "contacts", "props"),
    }
)
_TOLD_ELSEWHERE = frozenset({"story_id", "pictures", "guide", "plan", "transition", "composed", "dropped"})
"""What does not change what is drawn, or is part of the key in another form: the composed prompt."""

# A frame's key is the renderer's specification and what the frame depends on: its own request, and the whole batch
# where the renderer's identity makes frames depend on one another. Pictures that are found, not drawn, are never
# remembered: their files may change. A frame of one colour is tried once more with the next seed.


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
    return renderer.capabilities.identity in ("batch", "reference", "sources")


def draw_scenes(
    context: RunContext, requests: Sequence[FrameRequest], emit: Emit
) -> tuple[list[FrameRequest], list[str]]:
    """Return the hashes of one board's frames in order, and the requests that they were drawn from.

    Raises:
        RenderError: a frame could not be made.
    """
    laid_out = _with_layouts(context, requests, emit)
    current, tried = _with_pictures(context, context.plugins.renderer, laid_out, emit), set[int]()
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

        def keep(place: int, png: bytes) -> str:
            return _put(context, renderer, png, requests[place], keys[place] if kept and not whole else None)

        def tell(place: int, sha256: str) -> None:
            fresh.append((place, sha256))
            show(context, sha256, requests[place], emit, reused=False)

        if missing:
            _require_served(context)
        threads = threads_of(renderer)
        if threads > 1 and not whole:
            side_by_side(missing, lambda place: keep(place, _one(context, requests, place)), threads, tell)
        else:
            with _alone(context, renderer), closing(_render(context, requests, missing, emit)) as drawn:
                for place, png in zip(missing, drawn, strict=True):
                    tell(place, keep(place, png))
        if kept and whole:  # all or nothing: frames of two batches do not belong together
            fresh = [(place, index.put(keys[place], sha256)) for place, sha256 in fresh]
    hashes = dict(fresh)
    return [sha256 or hashes[place] for place, sha256 in enumerate(found)]


def _alone(context: RunContext, renderer: Renderer) -> AbstractContextManager[object]:
    """One call at a time for what draws on this machine, and for what draws another task's frame along with its own."""
    shared = threads_of(renderer) > 1 and not can(renderer, Renderer.insert_frames)
    return nullcontext() if shared else context.renderer_lock


def _one(context: RunContext, requests: Sequence[FrameRequest], place: int) -> bytes:
    with closing(_render(context, requests, [place])) as drawn:
        return next(drawn)


def _with_layouts(context: RunContext, requests: Sequence[FrameRequest], emit: Emit) -> list[FrameRequest]:
    """The requests of scenes with the layouts that they follow, which the guide draws as it draws a board."""
    guide = context.plugins.guide_of(context.plugins.renderer)
    if guide is None or all(request.guide is not None for request in requests):
        return list(requests)
    other, panels = guided_by(context, guide), context.plan().panels
    asked = [scene_request(other, panels[(request.scene or 1) - 1], request.seed) for request in requests]
    _, hashes = draw_scenes(other, asked, unshown(emit))
    pairs = zip(requests, hashes, strict=True)
    return [replace(request, guide=picture_at(context, sha256)) for request, sha256 in pairs]


def _with_pictures(
    context: RunContext, renderer: Renderer, requests: Sequence[FrameRequest], emit: Emit
) -> list[FrameRequest]:
    """The requests with their characters' pictures: those of the plan's sheets, then the renderer's own and portraits,
    which are drawn once and kept like a frame."""
    index = context.store.frames

    def portrait(request: FrameRequest, name: str) -> bytes:
        key = _portrait_key(renderer, request)
        with context.store.claim("frames:" + key):
            sha256 = index.get(key)
            reused = sha256 is not None
            if sha256 is None:
                _require_served(context)
                who = _name_of(context, renderer)
                with _alone(context, renderer), named_failures(f"renderer {who!r}", RenderError):
                    drawn = paid(
                        context.plugins.budget, renderer, lambda: next(iter(renderer.render_board([request]))), request
                    )
                    whole = check_picture(drawn, (request.width, request.height), who)
                    sha256 = _put(context, renderer, whole, request, key)
        emit(Event(stage="render", kind="decision", message=f"A portrait of {name} to draw from.", reused=reused))
        return context.store.blobs.get(sha256)

    figures = _figures(context, renderer, requests)
    return with_pictures(renderer, requests, portrait, _own_pictures(context, renderer), figures)


def _figures(context: RunContext, renderer: Renderer, requests: Sequence[FrameRequest]) -> Mapping[str, bytes]:
    """By name what the characters look like in the layouts, so that their portraits look alike."""
    guide = context.plugins.guide_of(renderer)
    layout = next((request.guide for request in requests if request.guide is not None), None)
    if layout is None or guide is None or not can(renderer, Renderer.picture_of):
        return {}
    cast = context.store.frames.source(_cast_of(sha256_hex(layout)))
    return guide.figures(cast, context.plan()) if cast is not None else {}


def _own_pictures(context: RunContext, renderer: Renderer) -> dict[str, bytes]:
    """The pictures that people have given of characters and props by their names, for a renderer that draws from
    them."""
    able, plan = renderer.capabilities, context.plan()
    if not able.pictures:
        return {}
    things = plan.visual.props if able.things and plan.visual is not None else []
    shown: list[Character | Prop] = [*things, *plan.characters]
    sheets = {item.name: reference_of(item) for item in shown}
    return {name: picture_at(context, sha256) for name, sha256 in sheets.items() if sha256 is not None}


def picture_at(context: RunContext, sha256: str) -> bytes:
    """Return a picture of the run, verified; one that was lost is taken from the cache."""
    png = context.files.panel(sha256)
    if png is None:
        png = context.store.blobs.get(sha256)
        context.files.add_panel(sha256, png)
    return png


def _portrait_key(renderer: Renderer, request: FrameRequest) -> str:
    return digest({"portrait": _asked(request, renderer), "renderer": dict(renderer.spec())})


# What a vendor may draw in a batch: everything that a board needs and that is not kept, by the key it is kept under.


def missing_portraits(context: RunContext, seeds: Iterable[int]) -> dict[str, FrameRequest]:
    """Return by key the portraits that the scenes of these boards are drawn from and that are not in the cache."""
    renderer, index = context.plugins.renderer, context.store.frames
    if not can(renderer, Renderer.picture_of):
        return {}
    scenes = [
        scene
        for seed in seeds
        for scene in _with_layouts(
            context, [scene_request(context, panel, seed) for panel in context.plan().panels], ignore_event
        )
    ]
    figures = _figures(context, renderer, scenes)
    wished = [portrait_of(renderer, item, scene, figures) for scene in scenes for item in scene.characters]
    keyed = {_portrait_key(renderer, one): one for one in wished if isinstance(one, FrameRequest)}
    return {key: one for key, one in keyed.items() if index.get(key) is None}


def missing_scenes(context: RunContext, seeds: Iterable[int], emit: Emit) -> dict[str, FrameRequest]:
    """Return by key the scenes of these boards that are not in the cache, with the pictures they are drawn from.

    Raises:
        RenderError: a portrait that was missing could not be drawn.
    """
    renderer, found = context.plugins.renderer, dict[str, FrameRequest]()
    for seed in seeds:
        scenes = [scene_request(context, panel, seed) for panel in context.plan().panels]
        scenes = _with_pictures(context, renderer, _with_layouts(context, scenes, emit), emit)
        found |= dict(zip(_keys(renderer, scenes), scenes, strict=True))
    return {key: scene for key, scene in found.items() if context.store.frames.get(key) is None}


def keep_drawn(context: RunContext, key: str, request: FrameRequest, png: bytes) -> None:
    """Keep a picture that was drawn for one of them, with the receipt of the service.

    Raises:
        RenderError: it is not a whole picture of its size, or of one colour.
    """
    renderer, size = context.plugins.renderer, (request.width, request.height)
    _put(context, renderer, check_picture(png, size, context.config.renderer), request, key)


def _name_of(context: RunContext, renderer: Renderer) -> str:
    """The name that a run's renderer, or that of its bridges, was asked for by."""
    config = context.config
    return str(config.renderer if renderer is context.plugins.renderer else config.bridge_renderer)


def _require_served(context: RunContext) -> None:
    """Refuse to draw where the bridge's renderer is withdrawn, or a judge that could not be asked about the frame:
    nobody has judged one that is not drawn yet."""
    plugins = context.plugins
    bridge = None if context.mode.insert == "none" else plugins.bridge
    for plugin in (plugins.renderer, bridge, *plugins.judges.values()):
        if plugin is not None:
            plugin.require_served()


def _render(
    context: RunContext, requests: Sequence[FrameRequest], places: Sequence[int], emit: Emit | None = None
) -> Generator[bytes, None, None]:
    """The renderer's frames for the requests at `places`, each checked; exactly one per request. emit: hears of first
    versions of them."""
    count, renderer, who = 0, context.plugins.renderer, context.config.renderer
    wanted = [requests[place] for place in places]
    if not wanted:
        return
    if emit is not None:
        renderer.show_drafts(partial(_tell_draft, context, emit))
    try:
        with named_failures(f"renderer {who!r}", RenderError):
            frames = iter(renderer.render_board(wanted))
            while count < len(wanted):
                png = paid(context.plugins.budget, renderer, lambda: next(frames, None), wanted[count])
                if png is None:
                    break
                size = (wanted[count].width, wanted[count].height)
                checked = check_picture(png, size if renderer.capabilities.source == "drawn" else None, who)
                count += 1
                yield checked
            if count == len(wanted) and next(frames, None) is not None:
                count += 1
    except BlankFrameError as error:
        raise _Blank(places[min(count, len(places) - 1)], error) from error
    if count != len(wanted):
        raise RenderError(f"The renderer {who!r} gave {count} frames for {len(wanted)} requests.")


def _put(context: RunContext, renderer: Renderer, png: bytes, request: FrameRequest, key: str | None) -> str:
    """Keep a picture, the receipt of the service that drew it (with the pictures it was drawn from), and what it was
    drawn for; the hash that counts."""
    store = context.store
    sha256 = counts = store.blobs.put(png)
    try:
        if can(renderer, Renderer.receipt):
            pictures = {"pictures": [sha256_hex(data) for _, data in request.pictures]} if request.pictures else {}
            receipt = {name: value for name, value in renderer.receipt().items() if name != "paid"}
            store.frames.put_receipt(sha256, {**receipt, **pictures})
        _keep_sources(context, renderer, sha256)
    finally:  # a store that is lost in between keeps both for later, or the picture would be paid for again
        if key is not None:
            counts = store.frames.put(key, sha256)
    return counts


def _keep_sources(context: RunContext, renderer: Renderer, sha256: str) -> None:
    """Keep the drawing of a picture and of the cast that it is made of."""
    source, cast = renderer.source(), renderer.cast_source()
    if source is not None:
        context.store.frames.put_source(sha256, source)
    if cast is not None:
        context.store.frames.put_source(_cast_of(sha256), cast)


def _cast_of(sha256: str) -> str:
    return f"{CAST}:{sha256}"


def source_at(context: RunContext, sha256: str) -> bytes | None:
    """Return the drawing of a picture of the run; None where it was not made from one."""
    return context.files.source(sha256) or context.store.frames.source(sha256)


def _asked(request: FrameRequest, renderer: Renderer) -> dict[str, object]:
    """A request as JSON, as a renderer is asked; a layout counts with how it is followed."""
    told = _dump(request, renderer.capabilities.panel)
    if request.guide is None:
        return told
    return {**told, "guide": {"picture": sha256_hex(request.guide), "followed": dict(renderer.guided_spec())}}


def _dump(request: FrameRequest, panel: bool) -> dict[str, object]:
    """A request as JSON; whose story it is does not change what is drawn.

    The panel's fields count where the renderer draws them (`panel`) and where they say something: frames that other
    renderers drew before these fields were there are found again.
    """
    fields = {
        name: _plain(value)
        for name, value in vars(request).items()
        if name not in _TOLD_ELSEWHERE and (name not in _PANEL_FIELDS or (panel and value))
    }
    pictures = {"pictures": [[name, sha256_hex(data)] for name, data in request.pictures]} if request.pictures else {}
    plan = {"plan": digest(request.plan.model_dump(mode="json"))} if request.plan is not None else {}
    return {**fields, **pictures, **plan}


def _plain(value: object) -> object:
    """A field's value as JSON, its records too."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json") if isinstance(value, Record) else value


def _keys(renderer: Renderer, requests: Sequence[FrameRequest]) -> list[str]:
    """The cache key of each request of one board."""
    spec = dict(renderer.spec())
    dumps = [_asked(request, renderer) for request in requests]
    batch = dumps if together(renderer) else None
    return [
        digest({"batch": batch, "place": place if batch else None, "renderer": spec, "request": dump})
        for place, dump in enumerate(dumps)
    ]


def show(context: RunContext, sha256: str, request: FrameRequest, emit: Emit, *, reused: bool) -> None:
    """Put a frame into `panels/` and tell that it is there."""
    if context.files.panel(sha256) is None:
        context.files.add_panel(sha256, context.store.blobs.get(sha256))
    for name, key in ((sha256, sha256), (CAST, _cast_of(sha256))):
        source = context.store.frames.source(key)
        if source is not None:
            context.files.add_source(name, source)
    what = f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"
    message = f"{what}, seed {request.seed}"
    told = Event(stage=_stage(request), kind="frame", message=message, reused=reused, sha256=sha256)
    if request.kind == "scene" and request.scene is not None:
        told["scene"] = request.scene
    emit(told)


def _tell_draft(context: RunContext, emit: Emit, request: FrameRequest, png: bytes) -> None:
    """Tell of a first version of a frame. It goes into the cache alone: the board has the finished one."""
    if request.scene is not None:
        message = f"scene {request.scene}, a first version"
        sha256 = context.store.blobs.put(png)
        emit(Event(stage=_stage(request), kind="progress", message=message, sha256=sha256, scene=request.scene))


def _stage(request: FrameRequest) -> Stage:
    return "render" if request.kind == "scene" else "bridge"


def _tell_blank(request: FrameRequest) -> Event:
    message = f"A frame of one colour with seed {request.seed}: once more with {next_seed(request.seed)}."
    return Event(stage=_stage(request), kind="decision", message=message)


def images_of(context: RunContext, board: Board) -> list[bytes]:
    """Return the board's images in order, verified; a panel that was lost is taken from the cache."""
    return [picture_at(context, frame.sha256) for frame in board.frames]


def draw_inserted(
    context: RunContext,
    request: FrameRequest,
    board: Board,
    others: Sequence[FrameRequest],
    position: int,
    emit: Emit,
    renderer: Renderer | None = None,
    alternatives: Sequence[FrameRequest] = (),
) -> tuple[FrameRequest, str]:
    """Draw one frame that goes before `position` (from 0) of `board`, whose other frames do not change.

    The frame has the size of the board's pictures, whatever sizes its renderer draws. alternatives: requests for the
    same place that will be asked for, too; a renderer that inserts together draws them at once. Gives the request that
    it was drawn from (its seed is the next one when the first gave one colour) and its hash.
    """
    drawer = renderer or context.plugins.inserter
    sources = tuple(source_at(context, frame.sha256) for frame in board.frames)
    images = tuple(images_of(context, board))
    around = BoardContext(tuple(others), images, position, sources, context.files.source(CAST))
    try:
        return request, _insert_once(context, drawer, [request, *alternatives], board, around, emit)
    except BlankFrameError:
        emit(_tell_blank(request))
        again = replace(request, seed=next_seed(request.seed))
        return again, _insert_once(context, drawer, [again], board, around, emit)


def _insert_once(
    context: RunContext,
    renderer: Renderer,
    requests: Sequence[FrameRequest],
    board: Board,
    around: BoardContext,
    emit: Emit,
) -> str:
    """Return the hash of the first request's frame; frames of the others are drawn with it where that saves work."""
    # A look that everybody has draws every frame anew: none is there to go by.
    size = png_size(around.images[max(0, around.position - 1)]) if around.images else context.size
    drawn = drawable_size(renderer.capabilities, size)
    # Pictures of the others are made only for what draws the others, too: a portrait may have to be paid for.
    wished = requests if can(renderer, Renderer.insert_frames) else requests[:1]
    asked = _with_pictures(context, renderer, [replace(one, width=drawn[0], height=drawn[1]) for one in wished], emit)
    # It depends on its request, and on its surroundings unless the renderer draws it alone.
    alone = renderer.capabilities.insertion == "alone"
    others = [_asked(item, renderer) for item in around.requests]
    beside = [others, [frame.sha256 for frame in board.frames], around.position]
    parts = {"insert": None if alone else beside, "renderer": dict(renderer.spec())}
    cut = {} if size == drawn else {"cut": size}
    keys = [digest({**parts, "request": _asked(one, renderer), **cut}) for one in asked]
    who = _name_of(context, renderer)
    with context.store.claim("frames:" + keys[0]):
        sha256 = context.store.frames.get(keys[0])
        reused = sha256 is not None
        if sha256 is None:
            _require_served(context)
            with _alone(context, renderer), named_failures(f"renderer {who!r}", RenderError):
                found = [context.store.frames.get(key) for key in keys]
                sha256 = found[0]
                if sha256 is None:  # nor, while the lock was waited for, drawn as an alternative
                    wanted = [at for at, known in enumerate(found) if known is None]
                    pictures = _inserted(context, renderer, [asked[at] for at in wanted], around, drawn, who)
                    pairs = zip(wanted, pictures, strict=False)
                    kept = [_put(context, renderer, fit_picture(png, size), asked[at], keys[at]) for at, png in pairs]
                    sha256 = kept[0]
    show(context, sha256, requests[0], emit, reused=reused)
    return sha256


def _inserted(
    context: RunContext,
    renderer: Renderer,
    requests: Sequence[FrameRequest],
    around: BoardContext,
    size: tuple[int, int],
    who: str,
) -> Iterator[bytes]:
    """Yield the frame of each request, up to one of one colour; raises BlankFrameError where that is the first."""
    frames: Iterator[bytes] = (renderer.insert_frame(request, around) for request in requests)
    if len(requests) > 1:
        frames = iter(renderer.insert_frames(requests, around))
    for number in range(len(requests)):
        try:
            asked = requests[number]
            png = paid(context.plugins.budget, renderer, lambda: next(frames, None), asked, neighbours=2)
            yield check_picture(png, size, who)
        except BlankFrameError:
            if not number:
                raise
            return  # who asks for that frame draws it with another seed


def draw_inside(
    context: RunContext, request: FrameRequest, picture: str, mask: str, emit: Emit, renderer: Renderer
) -> str:
    """Draw a part of a frame anew: `picture` and `mask` are hashes of what the run keeps; gives the new picture's.

    What is outside of the mask stays as it is, pixel for pixel, whatever the renderer makes of it. A renderer of other
    sizes is handed picture and mask scaled, and its picture is scaled back.

    Raises:
        UsageError: the renderer has no masks, or the mask is none of this run's, of another shape, or empty.
    """
    who = _name_of(context, renderer)
    if not can(renderer, Renderer.inpaint_frame):
        raise UsageError(f"The renderer {who!r} has no masks: it draws whole frames.", hint="Draw the frame again.")
    old, size = picture_at(context, picture), png_size(picture_at(context, picture))
    try:
        where = as_mask(picture_at(context, mask), size)
    except StoreError:
        raise UsageError("The mask is not a picture that this run keeps.", hint="Give the mask itself.") from None
    drawn = drawable_size(renderer.capabilities, size)
    own = _own_pictures(context, renderer)  # and no portraits: the picture shows how the others look
    shows = tuple((item.name, own[item.name]) for item in request.characters if item.name in own)
    asked = replace(request, width=drawn[0], height=drawn[1], pictures=shows)
    parts = {"picture": picture, "mask": sha256_hex(where), "size": size}
    key = digest({"inpaint": parts, "renderer": dict(renderer.spec()), "request": _asked(asked, renderer)})

    def draw() -> bytes:
        shown, hole = scaled(old, drawn), scaled(where, drawn)
        new = paid(context.plugins.budget, renderer, lambda: renderer.inpaint_frame(asked, shown, hole))
        return inside(old, scaled(check_picture(new, drawn, who), size), where)

    return _changed_once(context, renderer, (request, asked), key, draw, emit)


def _changed_once(
    context: RunContext,
    renderer: Renderer,
    requests: tuple[FrameRequest, FrameRequest],
    key: str,
    draw: Callable[[], bytes],
    emit: Emit,
) -> str:
    """Return the hash of what `draw` makes of a frame, made once for its key. requests: the frame's own, and the one
    that the renderer is asked with."""
    request, asked = requests
    with context.store.claim("frames:" + key):
        sha256 = context.store.frames.get(key)
        reused = sha256 is not None
        if sha256 is None:
            _require_served(context)
            who = _name_of(context, renderer)
            with _alone(context, renderer), named_failures(f"renderer {who!r}", RenderError):
                sha256 = _put(context, renderer, draw(), asked, key)
    show(context, sha256, request, emit, reused=reused)
    return sha256


def draw_amended(
    context: RunContext,
    request: FrameRequest,
    picture: str,
    asked: tuple[str, str],
    emit: Emit,
    renderer: Renderer,
) -> str:
    """Change a frame's drawing as a person asks; gives the new picture's hash. picture: the hash of the old one.
    asked: the words, and the part of its source that they are about.

    Raises:
        UsageError: the renderer draws from no sources of its own, the frame has none, or none with that part.
    """
    who, source = _name_of(context, renderer), source_at(context, picture)
    if not can(renderer, Renderer.amend_frame):
        raise UsageError(f"The renderer {who!r} changes no finished drawing.", hint="Draw the frame again.")
    if source is None:
        raise UsageError("That frame has no drawing to change: its picture has no SVG beside it.")
    words, part = asked
    if part and f'id="{part}"'.encode() not in source:
        raise UsageError(f"The drawing has no part called {part!r}.", hint="Its groups' ids are in its SVG.")
    size = png_size(picture_at(context, picture))
    wished, cast = replace(request, width=size[0], height=size[1]), context.files.source(CAST)
    told = {"source": sha256_hex(source), "cast": sha256_hex(cast or b""), "words": words, "part": part}
    key = digest({"amend": told, "renderer": dict(renderer.spec()), "request": _asked(wished, renderer)})

    def draw() -> bytes:
        new = paid(context.plugins.budget, renderer, lambda: renderer.amend_frame(wished, source, cast, words, part))
        return check_picture(new, size, who)

    return _changed_once(context, renderer, (request, wished), key, draw, emit)


def source_name(context: RunContext, sha256: str) -> str | None:
    """Return where the drawing of a picture stands in the run's folder; None where there is none."""
    return f"panels/{sha256}.svg" if source_at(context, sha256) is not None else None


# Boards: a plan's scenes, or a board with one frame more.


def draw_board(context: RunContext, seed: int, emit: Emit) -> Board:
    """Draw the board of one seed; frames that are already in the cache are not drawn.

    Raises:
        RenderError: a frame could not be made.
    """
    plan = context.plan()
    requests, hashes = draw_scenes(context, [scene_request(context, panel, seed) for panel in plan.panels], emit)
    frames = [
        Frame(
            index=number,
            scene=panel.index,
            image=f"panels/{sha256}.png",
            sha256=sha256,
            prompt=panel.prompt,
            seed=request.seed,
            source=source_name(context, sha256),
            guide=layout_name(request.guide) if request.guide is not None else None,
        )
        for number, (panel, request, sha256) in enumerate(zip(plan.panels, requests, hashes, strict=True), 1)
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


def numbered(frames: Iterable[Frame]) -> list[Frame]:
    """Return `frames` with their indices from 1."""
    return [frame.model_copy(update={"index": number}) for number, frame in enumerate(frames, 1)]


def insertion_of(context: RunContext, pair: tuple[int, int], prompt: str | None = None) -> Insertion:
    """Return what the mode inserts at `pair` (a bridge in a mode that inserts nothing); `prompt` is a person's, if any.

    Raises:
        UsageError: there is neither a prompt nor a transition that could tell what to draw.
    """
    transition = next((item for item in context.trajectory() if item.pair == pair), None)
    if transition is None and prompt:
        around = [panel for panel in context.plan().panels if panel.index in pair]
        names = tuple(dict.fromkeys(name for panel in around for name in panel.characters))
        return Insertion(prompt, around[-1].negative_prompt if around else "", names)
    if transition is None:
        said = f"Nothing says what happens between scenes {pair[0]} and {pair[1]}."
        raise UsageError(said, hint="Say what the inserted frame is to show.")
    what = insertion(context.mode.content or "transition", context.plan(), transition, context.record.story_id)
    return replace(what, prompt=prompt) if prompt else what


def insertion_seeds(context: RunContext, board: Board) -> tuple[int, ...]:
    """Return the seeds that the inserted frame is drawn with: the run's, or the board's own for a single draw."""
    return context.config.seeds if context.mode.draws == "every" else (board.seed,)


def inserted_name(kind: str, board: Board, seed: int) -> str:
    """Return the name of `board` with one frame more from `seed`: `bridge:42`, and `bridge.2:42` for the second."""
    count = sum(frame.transition is not None for frame in board.frames)
    return f"{kind}:{seed}" if not count else f"{kind}.{count + 1}:{seed}"


def draw_bridge(context: RunContext, task: BridgeTask, emit: Emit) -> Board:
    """Draw the board of `task` with one frame inserted, by its `inserted_name`.

    The other frames keep their images (Eq. 28).
    """
    board, (first, second) = task["board"], task["pair"]
    pair = (first, second)  # a checkpoint gives tuples back as lists, and a list is equal to no tuple
    what = insertion_of(context, pair, task["prompt"])
    kind: FrameKind = "bridge" if context.mode.insert == "bridge" else "extra"
    others = [seed for seed in insertion_seeds(context, board) if seed != task["seed"]]
    request, *alternatives = (
        inserted_request(context, what, _seed_of(context, board, seed) if what.other_seed else seed, pair, kind)
        for seed in (task["seed"], *others)
    )
    method = inserted_name(context.mode.insert, board, task["seed"])
    place = next(number for number, frame in enumerate(board.frames) if frame.scene == second)
    guide, requests = context.plugins.guide_of(context.plugins.inserter), board_requests(context, board)
    if guide is not None:  # it adds its own frame among the layouts of the others, and this one follows that
        other, layouts = guided_by(context, guide), layouts_of(board)
        asked = inserted_request(other, what, request.seed, pair, kind)
        _, sha256 = draw_inserted(other, asked, layouts, board_requests(other, layouts), place, unshown(emit))
        request, alternatives = replace(request, guide=picture_at(context, sha256)), []
    drawn, sha256 = draw_inserted(context, request, board, requests, place, emit, alternatives=alternatives)
    frame = Frame(
        index=place + 1,
        kind=kind,
        transition=pair,
        image=f"panels/{sha256}.png",
        sha256=sha256,
        prompt=what.prompt,
        seed=drawn.seed,
        renderer=context.config.bridge_renderer,
        source=source_name(context, sha256),
        guide=layout_name(drawn.guide) if drawn.guide is not None else None,
    )
    frames = numbered([*board.frames[:place], frame, *board.frames[place:]])
    return board.model_copy(update={"frames": frames, "method": method})


def _seed_of(context: RunContext, board: Board, seed: int) -> int:
    """A seed that is not the board's: the run's next one, or a new one for each seed where every seed is drawn."""
    if context.mode.draws == "every":
        return next_seed(seed)
    own = board.seed
    return next((other for other in context.config.seeds if other != own), next_seed(own))


def board_requests(context: RunContext, board: Board) -> list[FrameRequest]:
    """Return what each frame of `board` was drawn from: its prompt as it was used, with its own seed."""
    found = []
    for frame in board.frames:
        if frame.scene is not None and frame.transition is None:
            panel = frame.panel or context.plan().panels[frame.scene - 1]
            found.append(scene_request(context, panel, frame.seed))
        else:
            pair = frame.transition or (1, 2)
            what = written(frame.panel) if frame.panel is not None else insertion_of(context, pair, frame.prompt)
            found.append(inserted_request(context, what, frame.seed, pair, frame.kind))
    return found
