"""Words that can be read in a picture, by RapidOCR (`katha[ocr]`; its models come with the package)."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from katha.jsonio import sha256_hex
from katha.models.checkpoints import need
from katha.pictures import decode

_SURE = 0.6
_SHORTEST = 3


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

    def _read(self, png: bytes) -> tuple[str, ...]:
        if self._engine is None:
            self._engine = self._package.RapidOCR(params={"Global.log_level": "error"})
        pixels = np.asarray(decode(png))[:, :, ::-1]
        found = self._engine(pixels)
        lines = zip(found.txts or (), found.scores or (), strict=True)
        return tuple(text for text, score in lines if score >= _SURE and sum(map(str.isalpha, text)) >= self._shortest)
