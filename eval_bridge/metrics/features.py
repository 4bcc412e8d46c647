"""The one embedding engine: vectors of pictures and texts by any encoder, computed once and kept by content hash.

A vector's key is the encoder's specification, the kind, and the hash of the bytes that it is of; a picture that is on
two boards, or is measured by two metrics, is encoded once, ever. Pictures that are not kept yet are encoded in batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from katha.config import cache_folder
from katha.jsonio import digest, sha256_hex
from katha.plugin_boundary import spec_of
from katha.sqlite_index import SqliteIndex

Vectors = NDArray[np.float64]
_BATCH = 32


@runtime_checkable
class ImageEncoder(Protocol):
    """Pictures to rows. What it is of: everything that can change a row is in `spec()`."""

    def spec(self) -> Mapping[str, Any]:
        """Return name, weights, packages and preprocessing."""
        ...

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return one row per picture (file bytes of any common format), of shape (N, D), as the model gives them."""
        ...


@runtime_checkable
class TextEncoder(Protocol):
    """Texts to rows."""

    def spec(self) -> Mapping[str, Any]:
        """Return name, weights and packages."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, of shape (N, D), in the space of the pictures' rows."""
        ...


@runtime_checkable
class PairMeter(Protocol):
    """Two pictures to one number."""

    def spec(self) -> Mapping[str, Any]:
        """Return name, weights and packages."""
        ...

    def compare(self, pairs: Sequence[tuple[bytes, bytes]]) -> Vectors:
        """Return one number per pair, of shape (N,)."""
        ...


class Features:
    """Rows of pictures and texts, from the cache or the encoder. Safe between threads."""

    def __init__(self, folder: Path | None = None) -> None:
        """folder: of the cache; the user's unless told."""
        place = folder if folder is not None else cache_folder()
        self._index = SqliteIndex(place / "features.sqlite", place / "quarantine")
        self._lock = threading.Lock()
        self._prefixes: dict[int, tuple[object, str]] = {}
        self.computed = 0
        self.reused = 0

    def images(self, encoder: ImageEncoder, images: Sequence[bytes]) -> Vectors:
        """Return rows of shape (N, D), as the encoder gave them (float32 precision).

        Raises:
            InputFileError: a picture cannot be read.
        """
        keys = [sha256_hex(data) for data in images]
        return self._rows(encoder, "image", keys, images, encoder.encode_images)

    def texts(self, encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
        """Return rows of shape (N, D)."""
        keys = [sha256_hex(text.encode("utf-8")) for text in texts]
        return self._rows(encoder, "text", keys, texts, encoder.encode_texts)

    def pairs(self, meter: PairMeter, pairs: Sequence[tuple[bytes, bytes]]) -> Vectors:
        """Return one number per pair of pictures, of shape (N,), kept by the contents of both."""
        keys = [f"{sha256_hex(first)}:{sha256_hex(second)}" for first, second in pairs]

        def column(items: Sequence[tuple[bytes, bytes]]) -> Vectors:
            return np.asarray(meter.compare(items)).reshape(-1, 1)

        found = self._rows(meter, "pair", keys, pairs, column)
        return found[:, 0] if len(pairs) else np.zeros(0)

    def _rows(
        self,
        encoder: Any,
        kind: str,
        keys: Sequence[str],
        items: Sequence[Any],
        make: Callable[[Sequence[Any]], Vectors],
    ) -> Vectors:
        prefix = self._prefix(encoder)
        found = {key: self._index.get("feature", f"{prefix}:{kind}:{key}") for key in dict.fromkeys(keys)}
        missing = {key: item for key, item in zip(keys, items, strict=True) if found[key] is None}
        with self._lock:  # a model computes for one thread at a time
            for chunk in _chunks(list(missing)):
                rows = np.asarray(make([missing[key] for key in chunk]), np.float32)
                for key, row in zip(chunk, rows, strict=True):
                    found[key] = row.tobytes()
                    self._index.put("feature", f"{prefix}:{kind}:{key}", row.tobytes())
            self.computed += len(missing)
            self.reused += len(keys) - len(missing)
        kept = [np.frombuffer(found[key] or b"", np.float32) for key in keys]
        return np.stack(kept).astype(np.float64) if kept else np.zeros((0, 0))

    def _prefix(self, encoder: Any) -> str:
        with self._lock:
            if id(encoder) not in self._prefixes:
                self._prefixes[id(encoder)] = (encoder, digest(spec_of(encoder, f"encoder {type(encoder).__name__}")))
            return self._prefixes[id(encoder)][1]

    def close(self) -> None:
        """Close the cache; what is in it stays."""
        self._index.close()


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]


def unit(rows: Vectors) -> Vectors:
    """Return rows scaled to length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
