"""Readings that are shared: a picture is read once, whoever asks.

The judge and the compass look at the same frames. Both give the picture as `clean_image` encodes it, one encoding for
equal pixels, so that the hash of its bytes stands for its pixels.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from katha.eval_bridge.reader import Concepts, FrameReading, Reader, load_reader
from katha.jsonio import sha256_hex

__all__ = ["Readings", "shared_readings"]

_KEPT = 1024
"""Readings kept, the longest unused is forgotten first (a few kilobytes each)."""


class Readings:
    """What `reader` reads, remembered by the hash of a picture's bytes. Safe between threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._known: OrderedDict[str, FrameReading] = OrderedDict()

    @property
    def concepts(self) -> Concepts:
        """What the reader can name."""
        return self._reader.concepts

    def spec(self) -> Mapping[str, Any]:
        """The reader's own specification; remembering changes no reading."""
        return self._reader.spec()

    def read_many(self, pictures: Sequence[bytes]) -> list[FrameReading]:
        """What is in each picture, in order; the new ones are read together.

        Raises:
            InputFileError: the bytes are no picture.
        """
        names = [sha256_hex(picture) for picture in pictures]
        with self._lock:
            found = {name: self._known[name] for name in names if name in self._known}
        new = {name: picture for name, picture in zip(names, pictures, strict=True) if name not in found}
        found.update(zip(new, self._reader.read_many(new.values()), strict=True))
        with self._lock:
            for name in names:
                self._known[name] = found[name]
                self._known.move_to_end(name)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return [found[name] for name in names]


@cache
def shared_readings() -> Readings:
    """The shipped reader's readings, shared by the process."""
    return Readings(load_reader())
