"""Sentences of any language, by the marks that end them."""

from __future__ import annotations

import re
from itertools import pairwise

_END = re.compile(
    r"(?:[.!?\u2026]+[\"'\u2019\u201d\u00bb)\]]*(?=\s|$)|[\u3002\uff01\uff1f\u0964]+[\u300d\u300f\u201d]*|\n\s*\n)\s*"
)
"""Where a sentence ends: Latin, Devanagari and East Asian marks with what closes after them, or an empty line; and the
blanks after that."""
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof)\.$")


def raw_sentences(text: str) -> list[str]:
    """Return the sentences of `text` with the blanks after them: joined, they are `text` again."""
    bounds = sorted({0, *(found.end() for found in _END.finditer(text)), len(text)})
    return [text[start:stop] for start, stop in pairwise(bounds)]


def whole_sentences(text: str) -> list[str]:
    """Return the sentences of `text` in one line each; what goes on in small letters, or after a title, is still the
    same one: "Stop!" said Mr. Fox."""
    found: list[str] = []
    for piece in raw_sentences(text):
        told = " ".join(piece.split())
        if found and (told[:1].islower() or _TITLE.search(found[-1])):
            found[-1] = f"{found[-1]} {told}"
        elif told:
            found.append(told)
    return found
