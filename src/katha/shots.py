"""The artist's words for a shot: lists to choose from, how a prompt says each, and what of a prompt is such a word.

A person who writes "Bird's eye view of the park" means no bird: `read_shot` takes the words of the camera from the head
of a prompt and gives them to the panel's fields. The words are in `configs/shots.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from pydantic import TypeAdapter

from katha.configs import load_config

ShotField = Literal["shot_size", "shot_angle", "camera_move", "weather", "light", "time_of_day", "sound"]
SHOT_FIELDS: tuple[ShotField, ...] = get_args(ShotField)
UNSEEN: tuple[ShotField, ...] = ("camera_move", "sound")
"""What no still picture shows; films and the player follow the camera's moves."""


@dataclass(frozen=True)
class Term:
    """One word of a list: how prompts say it (None: as it stands), and other words for it."""

    said: str | None = None
    also: tuple[str, ...] = ()


@cache
def _terms() -> Mapping[str, Mapping[str, Term]]:
    return TypeAdapter(dict[str, dict[str, Term]]).validate_python(load_config("shots.yaml"))


def offered(field: ShotField) -> tuple[str, ...]:
    """Return the words that are offered for a field, in the order of their list."""
    return tuple(_terms()[field])


def worded_shot(field: ShotField, text: str) -> str:
    """Return how a prompt says what stands in a field; a word of no list stands as it is."""
    plain = text.strip(" .,;")
    term = _terms()[field].get(plain.lower())
    return plain if term is None or term.said is None else term.said


def listed_word(field: ShotField, text: str) -> str | None:
    """Return the word of a field's list that `text` is, or that comes first in it: "push in" of "slow dolly in on Mia".
    None where it has none; of two that begin in one place the longer."""
    plain = " ".join(re.split(r"[\W_]+", text.lower()))
    found = [
        (at.start(), -len(word), name)
        for name, term in _terms()[field].items()
        for word in (name, *term.also)
        if (at := re.search(_told_in(word), plain)) is not None
    ]
    return min(found)[2] if found else None


def _told_in(word: str) -> str:
    """A word as a sentence has it: "pan left" in "pans left" and "panning left"."""
    first, *rest = re.split(r"[^a-z0-9]+", word)
    return rf"\b{' '.join([f'{first}(?:e?s|{first[-1:]}?ing)?', *rest])}\b"


def read_shot(prompt: str) -> tuple[str, dict[ShotField, str]]:
    """Return a prompt without the words of the camera at its head, and these by their fields.

    A prompt that says nothing else comes back empty.
    """
    found: dict[ShotField, str] = {}
    rest = prompt.strip()
    while (head := _head(rest)) is not None:
        field, name, length = head
        found.setdefault(field, name)
        rest = rest[length:].lstrip(" ,.;:\n\u2013\u2014-")
    return (f"{rest[:1].upper()}{rest[1:]}" if found else prompt), found


def _head(text: str) -> tuple[ShotField, str, int] | None:
    """The field, the word and the length of what a text begins with; None where that is something to see."""
    for pattern, field, name in _patterns():
        match = pattern.match(text)
        if match is not None:
            whose = " ".join(match.groupdict().get("whose", "").split()) if match.re.groups else ""
            return field, f"{name} of {whose}" if whose else name, match.end()
    return None


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], ShotField, str], ...]:
    """Return what a text may begin with, the longest first."""
    listed = sorted(_known(), key=lambda one: -len(one[2]))
    plain = [(re.compile(rf"(?:an? |the )?{_loose(word)}{_ENDS}", re.IGNORECASE), field, name)
             for field, name, word in listed]  # fmt: skip
    whose: list[tuple[re.Pattern[str], ShotField, str]] = [
        (re.compile(pattern, re.IGNORECASE), "shot_angle", name)
        for name, patterns in _WHOSE.items()
        for pattern in patterns
    ]
    return (*whose, *plain)


def _known() -> Iterator[tuple[ShotField, str, str]]:
    """Every other word for a word of the lists, with its field."""
    for field in SHOT_FIELDS:
        for name, term in _terms()[field].items():
            yield from ((field, name, word) for word in term.also)


def _loose(word: str) -> str:
    """A word as people type it: with either apostrophe."""
    return re.escape(word).replace("'", "['\u2019]?")


_ENDS = r"(?:\s*[.:;,\u2013\u2014]\s*|\s+(?:of|on)\s+|\s*\Z)(?:we see\s+)?"
_WHO = r"(?P<whose>[^\s.,:;'\u2019]+(?: [^\s.,:;'\u2019]+){0,3}?)"
_SEEN = r"(?:\s*[.:;,\u2013\u2014]\s*(?:we see\s+|is\s+)?|\s+we see\s+|\s*\Z)"
_WHOSE = {
    "over the shoulder": (rf"over the shoulder of {_WHO}{_SEEN}", rf"over {_WHO}['\u2019]s? shoulder{_SEEN}"),
    "point of view": (
        rf"(?:from )?(?:the )?(?:point of view|pov) of {_WHO}{_SEEN}",
        rf"(?:from )?{_WHO}['\u2019]s? (?:point of view|pov){_SEEN}",
    ),
}
"""Angles of a person's view."""
