"""Words drawn into a picture: a caption in the pixels tells a judge what no metadata scan can see.

Read by RapidOCR (`katha[ocr]`; its models come with the package, nothing is fetched). A reading that shares a word with
the story's texts is a leak; any other, a shop sign for one, is only reported.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from katha.eval_bridge.extras import need
from katha.eval_bridge.lemmas import read_words
from katha.eval_bridge.normal import normalise
from katha.jsonio import sha256_hex

__all__ = ["WordScanner", "leaked_words"]

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
        import numpy as np
        from PIL import Image

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
