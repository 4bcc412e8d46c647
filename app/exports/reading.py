"""How long words take to be read under a picture."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

WORDS_A_SECOND = 3.0
"""The BBC's subtitle guidelines ask for 160 to 180 words a minute."""
LOOK = 1.0
"""Seconds for the picture itself."""
LEAST = 2.0
"""Seconds that a frame stands at least of which nobody says it."""
_LETTERS_A_WORD = 2
"""Letters of a script without blanks that count as a word."""


def needed(words: Iterable[str]) -> float:
    """Return the seconds that words take to be read."""
    text = " ".join(words)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" and letter.isalpha() for letter in text)
    plain = "".join(" " if unicodedata.east_asian_width(letter) in "WF" else letter for letter in text)
    count = sum(any(map(str.isalnum, word)) for word in plain.split()) + wide / _LETTERS_A_WORD
    return count / WORDS_A_SECOND


def standing(words: Iterable[str]) -> float:
    """Return how long a frame with these words stands, in half seconds: they are read and the picture is looked at."""
    return max(LEAST, math.ceil(2 * (needed(words) + LOOK)) / 2)
