"""A story with a list of its characters above it: "Tilda - a small fox with a blue scarf"."""

from __future__ import annotations

import re

from katha.intake.drafts import Passage, TextDraft, plain_marks
from katha.intake.names import Names, bare
from katha.intake.prose import read_prose

_HEAD = re.compile(
    r"^\W*(?:main\s+)?(?:characters?|cast|cast of characters|dramatis personae|cast list|character list|people)\W*$",
    re.I,
)
_MEMBER = re.compile(
    r"^\s*(?:[-*+\u2022]|\d+[.)])?\s*(?P<name>[^\W\d_][\w .'\u2019-]{0,40}?)\s*"
    r"(?:\((?P<age>[^)]*)\))?\s*(?:[-\u2013\u2014:,]\s+(?P<look>\S.*))?$"
)
_BODY = re.compile(
    r"^\W*(?:the\s+)?(?:story|plot|tale|text|summary|synopsis|setting|scenes?|script|act|chapter)\b.{0,30}$", re.I
)


def looks_like_cast(text: str) -> bool:
    """Return whether a heading for characters stands in the first half of a text, above at least one of them."""
    return _found(text) is not None


def _found(text: str) -> tuple[list[str], list[re.Match[str]], list[str]] | None:
    """Return the lines above the list, its lines, and those below."""
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if _HEAD.match(plain_marks(line))), None)
    if at is None or at > len(lines) / 2:
        return None
    members: list[re.Match[str]] = []
    stop = at + 1
    for number in range(at + 1, len(lines)):
        line = plain_marks(lines[number]).strip()
        found = _MEMBER.match(line)
        marked = found is not None and (found["look"] is not None or re.match(r"[-*+\u2022]", line) or found["age"])
        if found is not None and marked and not line.startswith("#"):
            members.append(found)
        elif line:
            break
        stop = number + 1
    return (lines[:at], members, lines[stop:]) if members and any(map(str.strip, lines[stop:])) else None


def read_cast(text: str) -> TextDraft | None:
    """Return the story below a list of its characters, with them as the cast."""
    found = _found(text)
    if found is None:
        return None
    above, members, below = found
    names, draft = Names("\n".join(below)), TextDraft("story with a cast")
    for one in members:
        names.add(one["name"], ", ".join(part for part in (one["age"], one["look"]) if part))
    head = [plain_marks(line).strip(" #:") for line in above if line.strip()]
    draft.title = next((one.removeprefix("Title").strip(" :") for one in head if len(one.split()) <= 10), "")
    while below and (not below[0].strip() or _BODY.match(plain_marks(below[0]).strip(" #*:"))):
        below = below[1:]
    told = read_prose("\n".join(re.sub(r"^#{1,6}\s+.*$", "", plain_marks(line)) for line in below))
    draft.passages = [Passage(" ".join(part.split())) for part in re.split(r"\n\s*\n", told.text) if part.strip()]
    draft.cast(names)
    draft.leave("lines above the cast", [one for one in head if bare(one) != bare(draft.title)], "they are no story")
    draft.left_out += told.left_out
    return draft
