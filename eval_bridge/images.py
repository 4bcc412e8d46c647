"""Pixels without their history: every picture is decoded and encoded anew before a judge sees it.

What survives is an 8-bit RGB raster: transparency is laid on white, the EXIF orientation is applied, and every text
chunk, profile, comment and thumbnail is gone.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from katha.errors import InputFileError
from katha.jsonio import sha256_hex

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MAX_PIXELS", "PREPROCESSING", "CleanImage", "clean_image"]

MAX_PIXELS = 40_000_000
"""Larger pictures are refused before they are decoded."""

PREPROCESSING = "rgb8-png/1"
"""Name and version of what `clean_image` does; part of every cache key."""

_PNG = b"\x89PNG\r\n\x1a\n"
_UP = 2
"""PNG's filter type of a line that is told by its difference to the line above."""

_GREY_16 = ("I;16", "I;16L", "I;16B", "I;16N", "I")


@dataclass(frozen=True)
class CleanImage:
    """One picture as a judge sees it: PNG bytes with pixels only, the hash of those pixels, width and height."""

    png: bytes
    sha256: str
    width: int
    height: int


def _flatten(image: Image) -> Image:
    """`image` as 8-bit RGB; transparency on white, 16-bit grey scaled down."""
    from PIL import Image as images

    if image.mode in _GREY_16:
        high = 255.0 / 65535.0
        image = image.convert("F").point(lambda value: value * high).convert("L")
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        return image.convert("RGB")  # opaque, as most renderers write: nothing to lay on white
    if "A" in image.getbands() or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = images.new("RGBA", layer.size, (255, 255, 255, 255))
        return images.alpha_composite(paper, layer).convert("RGB")
    return image.convert("RGB")


def _open(data: bytes, name: str) -> Image:
    from PIL import Image as images
    from PIL import UnidentifiedImageError

    if not data:
        raise InputFileError(f"{name} is empty (0 bytes).", hint="Give a PNG, JPEG or WebP picture.")
    try:
        image = images.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"))
    except images.DecompressionBombError as error:
        raise InputFileError(f"{name} is too large: {error}.", hint="Scale it down.") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise InputFileError(f"{name} is not a picture that can be read.", hint="Give a PNG, JPEG or WebP.") from error
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise InputFileError(
            f"{name} has {width} x {height} pixels; at most {MAX_PIXELS:,} are read.", hint="Scale it down."
        )
    if getattr(image, "n_frames", 1) > 1:
        raise InputFileError(f"{name} is animated or has several pages.", hint="Give one still picture.")
    return image


@lru_cache(maxsize=128)
def _clean(data: bytes) -> CleanImage:
    return _decode(data, "The picture")


def _decode(data: bytes, name: str) -> CleanImage:
    from PIL import Image as images
    from PIL import ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of large and odd files; size is checked here, damage raises.
        with _open(data, name) as image:
            try:
                image.load()
                upright = ImageOps.exif_transpose(image)
                flat = _flatten(upright)
            except (images.DecompressionBombError, OSError, ValueError, SyntaxError, EOFError) as error:
                raise InputFileError(f"{name} is damaged or cut short: {error}.", hint="Export it again.") from error
    (width, height), pixels = flat.size, flat.tobytes()
    sha256 = sha256_hex(f"RGB {width}x{height}\0".encode() + pixels)
    return CleanImage(_png(pixels, width, height), sha256, width, height)


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """8-bit RGB pixels as a PNG of three chunks. Every line is told by its difference to the line above: half of the
    time of choosing a filter for each line, for as many bytes."""
    lines = np.frombuffer(pixels, np.uint8).reshape(height, 3 * width)
    filtered = np.empty((height, 1 + 3 * width), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = lines[0]
    np.subtract(lines[1:], lines[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(filtered.tobytes(), 1)
    return _PNG + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def clean_image(data: bytes, name: str = "The picture") -> CleanImage:
    """`data` (any common picture file) as pixels alone.

    Raises:
        InputFileError: empty, damaged, animated or larger than `MAX_PIXELS`; the sentence begins with `name`.
    """
    try:
        return _clean(bytes(data))
    except InputFileError as error:
        raise InputFileError(error.message.replace("The picture", name, 1), hint=error.hint) from error
