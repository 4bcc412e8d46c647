"""Answer normalisation (Sec. E.6): lower case, punctuation removed, blanks collapsed."""

from __future__ import annotations

import string
import unicodedata
from functools import lru_cache

__all__ = ["normalise"]

_ASCII_MARKS = frozenset(string.punctuation)


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """`text` in lower case, without punctuation (removed, not replaced), blanks collapsed to one.

    "The King's wedding." becomes "the kings wedding", and the label `self_control` becomes "selfcontrol".
    """
    composed = unicodedata.normalize("NFKC", text).lower()
    kept = (char for char in composed if char not in _ASCII_MARKS and not unicodedata.category(char).startswith("P"))
    return " ".join("".join(kept).split())
