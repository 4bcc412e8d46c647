"""Prompts that fit a renderer: whole sentences, the most important first, within its limit in tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["NEGATIVE_PROMPT", "as_sentence", "clip", "fit", "fits", "tokens_of"]

NEGATIVE_PROMPT = "text, letters, speech bubbles, watermark, extra limbs"
"""What no panel may hold. Words in the picture would tell the story instead of the drawing."""
_PER_WORD = 4 / 3
_WIDE = 0x2E80


def tokens_of(text: str) -> int:
    """About how many tokens `text` has: 4/3 a word, one for every East Asian character."""
    wide = sum(ord(letter) >= _WIDE for letter in text)
    return -int(-(len(text.split()) * _PER_WORD + wide) // 1)


def fits(text: str, limit: int | None) -> bool:
    """Whether `text` is within `limit` tokens; None is no limit."""
    return limit is None or tokens_of(text) <= limit


def as_sentence(text: str) -> str:
    """`text` with a capital at its beginning and a full stop at its end; empty stays empty."""
    clean = " ".join(text.split())
    if not clean:
        return ""
    return f"{clean[0].upper()}{clean[1:]}" + ("" if clean[-1] in ".!?\"'\u3002" else ".")


def clip(text: str, limit: int | None) -> str:
    """`text`, cut at the end of a word where it is longer than `limit` tokens."""
    if fits(text, limit):
        return text
    words = text.split(" ")
    while len(words) > 1 and not fits(" ".join(words), limit):
        words.pop()
    return " ".join(words).rstrip(" ,;:")


def fit(sentences: Sequence[str], limit: int | None, *, first: Iterable[int] = ()) -> str:
    """The sentences in their order, without those that `limit` leaves no room for.

    first: the places of the sentences that are kept before all others; the rest is kept from the beginning. The very
    first stays, clipped where it alone is too long.
    """
    order = list(dict.fromkeys([*first, *range(len(sentences))]))
    if sentences and not fits(sentences[order[0]], limit):
        return clip(sentences[order[0]], limit)
    kept: list[int] = []
    for at in order:
        trial = " ".join(sentences[place] for place in sorted([*kept, at]))
        if fits(trial, limit):
            kept.append(at)
    return " ".join(sentences[place] for place in sorted(kept))
