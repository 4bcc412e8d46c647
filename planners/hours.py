"""The time of day of each sentence of a story: what the text says, else what its things tell."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from katha.planners.acts import planning
from katha.planners.moments import Story
from katha.planners.settings import plain

__all__ = ["hours_of"]

_BACK = "night"
"""What was so before it is told as well; a sunset was not."""


@lru_cache(maxsize=4)
def hours_of(story: Story) -> list[str]:
    """Return the time of day of each sentence, "" where nothing tells it.

    Where the text says none, stars or a night train tell it until time passes or another is said, and before as well
    as far as no time has passed.
    """
    sentences = story.reading.sentences
    title = _hint(story.title)
    found: list[str] = []
    shown: list[bool] = []
    held = title
    for sentence in sentences:
        if story.passes(sentence.index):
            held = title
        hint = _hint(sentence.text)
        held = hint or held
        found.append(sentence.time or held)
        shown.append(sentence.time is None and bool(held))
        if sentence.time is not None:
            held = ""
    for at in range(len(sentences) - 2, -1, -1):
        if not found[at] and shown[at + 1] and found[at + 1] == _BACK and not story.passes(at + 1):
            found[at], shown[at] = found[at + 1], True
    return found


def _hint(text: str) -> str:
    """The time of day that the things of a text tell, "" for none."""
    said = text.lower()
    told = plain(text)
    return next((hour for hour, (things, words) in _tables().items() if things.search(told) or words.search(said)), "")


@cache
def _tables() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    return {hour: (_any_of(row["things"]), _any_of(row["spoken"])) for hour, row in planning("hours").items()}


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")
