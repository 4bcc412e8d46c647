"""Words that can be read in a picture, by RapidOCR (`katha[ocr]`; its models come with the package)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from katha.jsonio import sha256_hex
from katha.models.checkpoints import need
from katha.pictures import decode

if TYPE_CHECKING:
    from PIL.Image import Image

_SURE = 0.6
# Signs of one or two letters tell no answer.
_SHORTEST = 3
_SEEN = 0.5
"""A line that is painted over may be read less surely than one that is reported."""
_EDGE = 3


class WordScanner:
    """Reads words in pictures, each distinct picture once. Safe to use from several threads."""

    def __init__(self, flag: str = "--scan-words", shortest: int = _SHORTEST) -> None:
        """Check that the package is there; its models are loaded at the first picture.

        flag: what asked for it. shortest: how many letters a line has at least.

        Raises:
            MissingExtraError: RapidOCR is not installed; the hint is the command.
        """
        self._package = need("rapidocr", f"Looking for words drawn into pictures ({flag})", "ocr")
        self._shortest = shortest
        self._engine: Any = None
        self._known: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def words(self, png: bytes) -> tuple[str, ...]:
        """Return what is written in the picture, line by line; only lines that were read surely and hold letters."""
        key = sha256_hex(png)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._read(png)
            return self._known[key]

    def places(self, picture: Image) -> list[tuple[int, int, int, int]]:
        """Return where something is written in an RGB picture: left, top, right and bottom of each line, in pixels."""
        with self._lock:
            found = self._look(picture)
        boxes = found.boxes if found.boxes is not None else ()
        lines = zip(found.txts or (), found.scores or (), boxes, strict=True)
        corners = [np.asarray(box) for text, score, box in lines if score >= _SEEN and any(map(str.isalnum, text))]
        ends = [(*np.floor(box.min(axis=0)), *np.ceil(box.max(axis=0))) for box in corners]
        return [(int(left), int(top), int(right), int(bottom)) for left, top, right, bottom in ends]

    def _look(self, picture: Image) -> Any:
        if self._engine is None:
            self._engine = self._package.RapidOCR(params={"Global.log_level": "error"})
        return self._engine(np.asarray(picture)[:, :, ::-1])

    def _read(self, png: bytes) -> tuple[str, ...]:
        found = self._look(decode(png))
        lines = zip(found.txts or (), found.scores or (), strict=True)
        return tuple(text for text, score in lines if score >= _SURE and sum(map(str.isalpha, text)) >= self._shortest)


def without_words(picture: Image, places: Iterable[tuple[int, int, int, int]]) -> Image:
    """Return the picture with these rectangles painted over in the colour around each: a balloon stays, empty."""
    from PIL import Image

    pixels = np.array(picture)
    height, width = pixels.shape[:2]
    for place in places:
        left, top, right, bottom = (max(0, side) for side in place)
        outer = pixels[max(0, top - _EDGE) : bottom + _EDGE, max(0, left - _EDGE) : right + _EDGE]
        inside = np.zeros(outer.shape[:2], dtype=bool)
        at_top, at_left = top - max(0, top - _EDGE), left - max(0, left - _EDGE)
        inside[at_top : at_top + bottom - top, at_left : at_left + right - left] = True
        around = outer[~inside]
        if min(bottom, height) > top and min(right, width) > left:
            colour = np.median(around, axis=0) if len(around) else np.median(outer.reshape(-1, 3), axis=0)
            pixels[top:bottom, left:right] = colour
    return Image.fromarray(pixels)
