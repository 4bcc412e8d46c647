"""Pixels without their history, and words that are drawn into them."""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from katha.errors import InputFileError
from katha.eval_bridge.matching.lemmas import read_words
from katha.eval_bridge.matching.match import normalise
from katha.jsonio import sha256_hex
from katha.models.checkpoints import need

# Pixels without their history: every picture is decoded and encoded anew before a judge sees it.
#
# What survives is an 8-bit RGB raster: transparency is laid on white, the EXIF orientation is applied, and every text
# chunk, profile, comment and thumbnail is gone.

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


def _flatten(image: Image.Image) -> Image.Image:
    """`image` as 8-bit RGB; transparency on white, 16-bit grey scaled down."""
    if image.mode in _GREY_16:
        high = 255.0 / 65535.0
        image = image.convert("F").point(lambda value: value * high).convert("L")
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        return image.convert("RGB")  # opaque, as most renderers write: nothing to lay on white
    if "A" in image.getbands() or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        return Image.alpha_composite(paper, layer).convert("RGB")
    return image.convert("RGB")


def _open(data: bytes, name: str) -> Image.Image:
    if not data:
        raise InputFileError(f"{name} is empty (0 bytes).", hint="Give a PNG, JPEG or WebP picture.")
    try:
        image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"))
    except Image.DecompressionBombError as error:
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of large and odd files; size is checked here, damage raises.
        with _open(data, name) as image:
            try:
                image.load()
                upright = ImageOps.exif_transpose(image)
                flat = _flatten(upright)
            except (Image.DecompressionBombError, OSError, ValueError, SyntaxError, EOFError) as error:
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


# Words drawn into a picture: a caption in the pixels tells a judge what no metadata scan can see.
#
# Read by RapidOCR (`katha[ocr]`; its models come with the package, nothing is fetched). A reading that shares a word
# with the story's texts is a leak; any other, a shop sign for one, is only reported.

_SURE = 0.6
_SHORTEST = 3


class WordScanner:
    """Reads words in pictures, each distinct picture once. Safe to use from several threads."""

    def __init__(self) -> None:
        """Check that the package is there; its models are loaded at the first picture.

        Raises:
            MissingExtraError: RapidOCR is not installed; the hint is the command.
        """
        self._package = need("rapidocr", "Looking for words drawn into pictures (--scan-words)", "ocr")
        self._engine: Any = None
        self._known: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def words(self, png: bytes) -> tuple[str, ...]:
        """What is written in the picture, line by line; only lines that were read surely and hold letters."""
        key = sha256_hex(png)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._read(png)
            return self._known[key]

    def _read(self, png: bytes) -> tuple[str, ...]:
        if self._engine is None:
            self._engine = self._package.RapidOCR(params={"Global.log_level": "error"})
        with Image.open(io.BytesIO(png)) as image:
            pixels = np.asarray(image.convert("RGB"))[:, :, ::-1]
        found = self._engine(pixels)
        lines = zip(found.txts or (), found.scores or (), strict=True)
        return tuple(text for text, score in lines if score >= _SURE and sum(map(str.isalpha, text)) >= _SHORTEST)


def leaked_words(drawn: Sequence[str], secrets: Iterable[str]) -> list[str]:
    """The lines of `drawn` that share a content word of three letters or more with one of `secrets`."""
    texts = " ".join(secrets)
    known = {word.surface for word in read_words(texts) if word.content and len(word.surface) >= _SHORTEST}
    run_together = "".join(normalise(texts).split())

    def tells(line: str) -> bool:
        words = {word.surface for word in read_words(line) if word.content and len(word.surface) >= _SHORTEST}
        joined = "".join(normalise(line).split())
        return bool(words & known) or (len(joined) >= 2 * _SHORTEST and joined in run_together)

    return [line for line in drawn if tells(line)]
