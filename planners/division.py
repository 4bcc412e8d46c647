"""A text cut into parts at its sentences: nothing lost, nothing added, nothing read. Works in any language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise

__all__ = ["cut", "raw_sentences"]

_END = re.compile(
    r"[.!?\u2026]+[\"'\u2019\u201d\u00bb)\]]*(?=\s|$)|[\u3002\uff01\uff1f\u0964]+[\u300d\u300f\u201d]*|\n\s*\n"
)
"""Where a sentence ends: Latin, Devanagari and East Asian marks with what closes after them, or an empty line."""


def raw_sentences(text: str) -> list[str]:
    """The sentences of `text` with the blanks after them: joined, they are `text` again."""
    ends = [_after_blanks(text, found.end()) for found in _END.finditer(text)]
    bounds = sorted({0, *ends, len(text)})
    pieces = [text[start:stop] for start, stop in pairwise(bounds)]
    return [piece for piece in pieces if piece]


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def cut(pieces: Sequence[str], parts: int) -> list[list[str]]:
    """`pieces` in order in `parts` groups of about the same length, none empty where there are pieces enough.

    With fewer pieces than parts the last ones are held: a group repeats the piece before it.
    """
    if len(pieces) <= parts:
        return [[pieces[min(at * len(pieces) // parts, len(pieces) - 1)]] for at in range(parts)]
    total = sum(len(piece) for piece in pieces)
    middles = [end - len(piece) / 2 for end, piece in zip(accumulate(map(len, pieces)), pieces, strict=True)]
    wanted = [min(int(middle * parts / total), parts - 1) for middle in middles]
    groups: list[list[str]] = [[] for _ in range(parts)]
    at = 0
    for place, piece in enumerate(pieces):
        left = len(pieces) - place
        if groups[at] and at < parts - 1 and (wanted[place] > at or left <= parts - 1 - at):
            at += 1
        groups[at].append(piece)
    return groups
