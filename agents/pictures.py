"""What a frame has to be (whole, of its size, with something on it), what it is drawn from (its characters' pictures),
and frames of a service, which are waited for side by side."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar

from katha.composing import LOOK_FIELDS
from katha.errors import BlankFrameError, InputFileError, RenderError, UsageError
from katha.pictures import as_png, decode, is_blank, png_problem, png_size
from katha.protocols import Capabilities, FrameRequest, Renderer, can
from katha.schema import Character, Prop

T = TypeVar("T")
Size = tuple[int, int]
# A soft mask is scaled, then cut at half, so that its area stays what it was.
_HALF_GREY = 128
# Only a PNG that is small for its size is decoded to see whether it is blank.
_SMALL = 2048
_FLAT_RATIO = 200
"""A picture of one colour takes a tiny part of its pixels' bytes as PNG; only such small files are looked into."""


def check_picture(png: object, size: Size | None, who: str) -> bytes:
    """Return `png` if it is a whole PNG of `size` (None: any) with something on it.

    Raises:
        RenderError: it is not; BlankFrameError: it is one colour all over.
    """
    problem = png_problem(png)
    if problem is not None or not isinstance(png, bytes):
        raise RenderError(f"The renderer {who!r} gave a frame that {problem}.")
    found = png_size(png)
    if size is not None and found != size:
        raise RenderError(
            f"The renderer {who!r} drew {found[0]}x{found[1]} pixels where {size[0]}x{size[1]} were asked for."
        )
    try:
        blank = len(png) < max(_SMALL, found[0] * found[1] * 3 // _FLAT_RATIO) and is_blank(decode(png, "The frame"))
    except InputFileError as error:
        raise RenderError(f"The renderer {who!r} gave a frame that cannot be used: {error.message}") from error
    if blank:
        raise BlankFrameError(f"The renderer {who!r} drew a frame of one colour.", hint="Try another prompt or seed.")
    return png


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

    return as_png(ImageOps.fit(decode(png, "The frame"), size, Image.Resampling.LANCZOS))


def scaled(png: bytes, size: Size) -> bytes:
    """Return `png` stretched to `size`, grey kept as grey; the same bytes when it has that size already."""
    if png_size(png) == size:
        return png
    from PIL import Image

    picture = Image.open(io.BytesIO(png))
    if picture.mode == "L":  # a mask stays black and white
        return as_png(picture.resize(size, Image.Resampling.NEAREST))
    return as_png(decode(png, "The frame").resize(size, Image.Resampling.LANCZOS))


def as_mask(png: bytes, size: Size) -> bytes:
    """Return a mask as a PNG of `size` in grey, 255 where `png` is nearer to white, else 0.

    Raises:
        UsageError: it has another shape than the picture, or nothing of it is white.
    """
    from PIL import Image

    mask = decode(png, "The mask")
    if abs(mask.width * size[1] - mask.height * size[0]) > max(mask.width, mask.height, *size):
        said = f"The mask has {mask.width}x{mask.height} pixels, and the frame {size[0]}x{size[1]}."
        raise UsageError(said, hint="Give a mask of the frame's shape.")
    grey = mask.convert("L").resize(size, Image.Resampling.BILINEAR).point(lambda value: 255 * (value >= _HALF_GREY))
    if grey.getextrema()[1] == 0:
        raise UsageError("Nothing of the mask is white.", hint="Paint what is to be drawn anew.")
    return as_png(grey)


def rectangle(png: bytes, left: float, top: float, width: float, height: float) -> bytes:
    """Return a mask for the picture `png` that is white in a rectangle, given in percent of the picture.

    Raises:
        UsageError: nothing of the rectangle is in the picture.
    """
    from PIL import Image

    wide, tall = png_size(png)
    box = [
        round(share * side / 100)
        for share, side in ((left, wide), (top, tall), (left + width, wide), (top + height, tall))
    ]
    right, bottom = min(box[2], wide), min(box[3], tall)
    if box[0] >= right or box[1] >= bottom:
        raise UsageError("Nothing of the mask is in the picture.", hint="Give percent of it: 0 to 100.")
    mask = Image.new("L", (wide, tall))
    mask.paste(255, (box[0], box[1], right, bottom))
    return as_png(mask)


def inside(old: bytes, new: bytes, mask: bytes) -> bytes:
    """Return the PNG of `old` with `new` where `mask` is 255; all of one size."""
    from PIL import Image

    return as_png(Image.composite(decode(new, "It"), decode(old, "The frame"), Image.open(io.BytesIO(mask))))


SHEET = ("age", "color", *LOOK_FIELDS, "reference", "first_look")
"""What a character's sheet holds beside what every plan does; words of it are in prompts and looks already."""


def as_drawn(character: Character) -> Character:
    """Return a character as a renderer is handed it: without its sheet's own keys, so that they are in no cache key."""
    told = character.model_dump()
    return Character.model_validate({name: value for name, value in told.items() if name not in SHEET})


def thing_as_drawn(prop: Prop) -> Prop:
    """Return a prop as a renderer is handed it: without what is known of it besides, so that it is in no cache key."""
    return Prop.model_validate(prop.model_dump(exclude={"reference", "first_look"}))


def reference_of(item: Character | Prop) -> str | None:
    """Return the sha256 of the picture that a person has given of a character or a prop, None where there is none."""
    value = (item.model_extra or {}).get("reference")
    return value if isinstance(value, str) and value else None


def unfollowed(renderer: Renderer, who: str, old: Sequence[Character], new: Sequence[Character]) -> Iterator[str]:
    """Yield a sentence for each change of a character's sheet that no picture by the renderer `who` will show."""
    before = {item.name: item for item in old}
    for item in new:
        was = before.get(item.name)
        if was == item:
            continue
        given = reference_of(item)
        if given is not None and (was is None or given != reference_of(was)) and not renderer.capabilities.pictures:
            yield f"{who!r} draws from words alone: the picture of {item.name} is kept, and changes no frame."
        for word in renderer.undrawn(item):
            yield f"{who!r} has no drawing for {word!r}: {item.name} is drawn without it."


def unfollowed_things(renderer: Renderer, who: str, old: Sequence[Prop], new: Sequence[Prop]) -> Iterator[str]:
    """Yield a sentence for each change of a prop that no picture by the renderer `who` will show."""
    before, able = {item.name: item for item in old}, renderer.capabilities
    for item in new:
        was = before.get(item.name)
        if was == item:
            continue
        given = reference_of(item)
        if given is not None and (was is None or given != reference_of(was)) and not able.things:
            yield f"{who!r} draws no things from pictures: the picture of {item.name} is kept, and changes no frame."
        if item.looks and (was is None or was.looks != item.looks) and able.panel and able.identity != "sources":
            yield f"{who!r} has drawings of its own for things: the looks of {item.name} change no frame."


def with_pictures(
    renderer: Renderer,
    requests: Sequence[FrameRequest],
    draw: Callable[[FrameRequest, str], bytes],
    own: Mapping[str, bytes],
    figures: Mapping[str, bytes],
) -> list[FrameRequest]:
    """Return the requests with the pictures of their characters, where the renderer wants them.

    draw: gives the portrait of a request (of the character so called); it is called once for each distinct request.
    own: by name the pictures that people have given of characters and props; they go before any other. figures: those
    of a guide's cast, which portraits follow.
    """
    asks = can(renderer, Renderer.picture_of)
    if not asks and not own:
        return list(requests)
    drawn: dict[FrameRequest, bytes] = {}
    found = []
    for request in requests:
        pictures = []
        for character in request.characters:
            picture: bytes | FrameRequest | None = own.get(character.name)
            if picture is None and asks:
                picture = portrait_of(renderer, character, request, figures)
            if isinstance(picture, FrameRequest):
                if picture not in drawn:
                    drawn[picture] = draw(picture, character.name)
                picture = drawn[picture]
            if picture is not None:
                pictures.append((character.name, picture))
        pictures += [(item.name, own[item.name]) for item in request.props if item.name in own]
        found.append(replace(request, pictures=tuple(pictures)))
    return found


def portrait_of(
    renderer: Renderer, character: Character, request: FrameRequest, figures: Mapping[str, bytes]
) -> bytes | FrameRequest | None:
    """Return what is said of a character's picture; a portrait follows the character's figure, if there is one."""
    picture = renderer.picture_of(character, request)
    return replace(picture, guide=figures.get(character.name)) if isinstance(picture, FrameRequest) else picture


def threads_of(renderer: Renderer) -> int:
    """Return from how many threads frames may be asked for; 1 for a renderer that needs the machine to itself."""
    return max(1, int(renderer.concurrency))


def side_by_side(places: Sequence[int], one: Callable[[int], T], threads: int, done: Callable[[int, T], None]) -> None:
    """Call `one` for every place from some threads, and `done` with what it gave on the caller's, as it comes.

    After a failure nothing more is begun; what is under way is waited for and handed over, because it is paid for.

    Raises:
        Exception: the failure of the first place that failed.
    """
    failures: dict[int, BaseException] = {}
    waiting = list(places)
    under_way: dict[Future[T], int] = {}
    with ThreadPoolExecutor(max_workers=threads) as pool:
        while under_way or (waiting and not failures):
            while waiting and not failures and len(under_way) < threads:
                place = waiting.pop(0)
                under_way[pool.submit(copy_context().run, one, place)] = place
            for ended in wait(under_way, return_when=FIRST_COMPLETED).done:
                place, error = under_way.pop(ended), ended.exception()
                if error is not None:
                    failures[place] = error
                else:
                    done(place, ended.result())
    if failures:
        raise failures[min(failures)]
