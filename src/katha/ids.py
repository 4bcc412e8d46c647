"""Ids of stories, in any script: what may be one, and which one a name gives. An id names folders, so it is short."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from pathlib import Path

from katha.jsonio import sha256_hex

# A story's id becomes a folder's name, and file systems take 255 bytes with what is put after it.
_MOST_BYTES = 128
_OF_NAME = 64
# 24 bits tell apart the few names that are shortened to one.
_MARK = 6


def is_safe_id(text: str) -> bool:
    """Return whether `text` can be a story's id: letters and digits of any script, dots, hyphens and underscores."""
    if not 0 < len(text.encode("utf-8", "replace")) <= _MOST_BYTES or ".." in text or not _starts(text[0]):
        return False
    return all(_kept(sign) or sign in "._-" for sign in text) and unicodedata.normalize("NFC", text) == text


def id_of_name(name: str) -> str:
    """Return the id that a name gives, of a file for one: its letters and digits, other signs as underscores."""
    text = unicodedata.normalize("NFC", name)
    words = "".join(sign if _kept(sign) else "_" for sign in text if unicodedata.category(sign) != "Cf")
    made = "_".join(part for part in words.split("_") if part)
    while made and not _starts(made[0]):
        made = made[1:].lstrip("_")
    while len(made.encode("utf-8")) > _OF_NAME:
        made = made[:-1]
    return made.rstrip("_") or ("story" if not text.strip() or text.isascii() else f"story_{_mark(text)}")


def apart(made: str, name: str, taken: Iterable[str]) -> str:
    """Return an id for what is called `name`, which is none of `taken`: `made`, or with a mark of the name."""
    return made if made not in set(taken) else f"{made}_{_mark(name)}"


def folder_of(root: Path, story_id: str) -> Path:
    """Return the folder of a story below `root`: the one of its id, or the only one whose name gives that id."""
    exact = root / story_id
    if exact.is_dir() or not root.is_dir():
        return exact
    wanted = story_id.casefold()
    alike = [place for place in root.iterdir() if place.is_dir() and id_of_name(place.name).casefold() == wanted]
    return alike[0] if len(alike) == 1 else exact


def _mark(name: str) -> str:
    return sha256_hex(name.encode("utf-8", "surrogatepass"))[:_MARK]


def _kept(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LMN"


def _starts(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LN"
