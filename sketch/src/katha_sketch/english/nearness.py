"""How near words are to one another in what they mean: a table of 30,000 words, each with 64 small integers.

The table is made by `python -m training.text.vectors` from all-MiniLM-L6-v2 (NEARNESS_LICENSE beside this file). Words
that stand for one another are near, and so are words that exclude one another ("left", "right"; "cat", "dog"): whoever
asks has to tell those apart. All sums are of integers, so that every machine gives the same numbers.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

__all__ = ["rarity", "similarity"]

Row = np.ndarray[Any, np.dtype[np.float32]]
"""Small integers, held as floats: their products and sums are exact, and fast."""
FILE = "nearness.npz"
_UNKNOWN = 1.0
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"))


@dataclass(frozen=True)
class _Table:
    places: Mapping[str, int]
    rows: np.ndarray[Any, np.dtype[np.int8]]
    rarities: np.ndarray[Any, np.dtype[np.uint8]]


@cache
def _table() -> _Table:
    packed = files("katha_sketch.english").joinpath(FILE).read_bytes()
    with np.load(io.BytesIO(packed), allow_pickle=False) as held:
        words = held["words"].tobytes().decode().split("\n")
        return _Table({word: place for place, word in enumerate(words)}, held["rows"], held["rarities"])


def _known(word: str) -> int | None:
    """Where a word or phrase is in the table: as it stands, in small letters, or the word that it is a form of."""
    places, low = _table().places, word.lower().replace("_", " ")
    return next((place for form in (word, low, *_bases(low)) if (place := places.get(form)) is not None), None)


def _bases(word: str) -> Iterator[str]:
    """What a word may be a regular form of."""
    for ending, instead in _ENDINGS:
        stem = word.removesuffix(ending)
        if len(stem) > 1 and stem != word:
            yield stem + instead
            if stem[-1] == stem[-2]:
                yield stem[:-1]


@lru_cache(maxsize=16384)
def _row(word: str) -> Row | None:
    """A word's numbers; those of a phrase that the table has not are the sum of its words'."""
    place = _known(word)
    if place is not None:
        own: Row = _table().rows[place].astype(np.float32)
        return own
    parts = word.lower().replace("_", " ").replace("-", " ").split()
    found = [row for part in parts if (row := _row(part)) is not None] if len(parts) > 1 else []
    if not found or len(found) < len(parts):
        return None
    whole: Row = np.sum(found, axis=0)
    return whole


def _cosine(one: Row, two: Row) -> float:
    lengths = int(one @ one) * int(two @ two)
    return float(int(one @ two) / math.sqrt(lengths)) if lengths else 0.0


def similarity(one: str, two: str) -> float | None:
    """Return how near two words or phrases are, 1 for the same and about 0 for strangers; None if one is not known."""
    first, second = _row(one), _row(two)
    if one == two:
        return 1.0
    return None if first is None or second is None else _cosine(first, second)


def rarity(word: str) -> float:
    """Return how much a word tells by how seldom it is used, from 0 ("the") to 1 (also for one that is not known)."""
    place = _known(word)
    return _UNKNOWN if place is None else int(_table().rarities[place]) / 255
