"""What a renderer's PNG must be, and how one of another size is made to go with a board."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

from katha.errors import BlankFrameError, KathaError, RenderError
from katha.protocols import Capabilities

__all__ = ["check_picture", "drawable_size", "fit_picture", "named_failures", "png_size"]

Size = tuple[int, int]
_PNG = b"\x89PNG\r\n\x1a\n"
_END = b"IEND\xaeB`\x82"
_FLAT_LEVELS = 2
_SMALL = 2048
_FLAT_RATIO = 200
"""A picture of one colour takes a tiny part of its pixels' bytes as PNG; only such small files are looked into."""


def png_size(png: bytes) -> Size:
    """Width and height in pixels, from the PNG's header."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def check_picture(png: object, size: Size | None, who: str) -> bytes:
    """`png`, if it is a whole PNG of `size` (None: any) with something on it.

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
    """The size that a renderer has to draw so that `wanted` can be cut from it: the same where it can be drawn."""
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
    """`png` scaled to cover `size` and cut at its centre; the same bytes when it has that size already."""
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
