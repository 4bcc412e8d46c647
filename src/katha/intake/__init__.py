"""What people have, read: any text file becomes a story record, and what of it is not read is named (`katha read`).

A file goes through four steps: its bytes become a text (`decoding`), the text its normal form (`normal`), its kind is
found, and what is told becomes scenes, cast, shots and words (`screenplays`, `tables`, `blocks`, `comics`, `prompts`,
`outlines`, `markup`, `objects`, `prose`). Every verb that takes a story reads it here, by way of `katha.stories`.

Imports: `configs`, `schema`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from katha.intake.drafts import Plain, TextDraft, record_values
from katha.intake.kinds import KINDS, read_object
from katha.intake.normal import normal
from katha.intake.prose import read_prose, without_chatter
from katha.schema import StoryRecord

__all__ = ["NOTED", "SUFFIXES", "Intake", "noted", "take_in", "take_in_object"]

SUFFIXES = (
    ".txt",
    ".text",
    ".md",
    ".markdown",
    ".fountain",
    ".spmd",
    ".fdx",
    ".srt",
    ".vtt",
    ".sbv",
    ".ass",
    ".tex",
    ".html",
    ".htm",
    ".twee",
    ".tw",
)
"""How files end that are stories in a folder of them; any other file is read where it is named."""
NOTED = "intake"
"""Under this key a record's provenance keeps what its text was read as, and what of it was not read."""
# A form within a form within a form is read; deeper is a trick.
_MOST_NESTED = 4
_SURE = ("Final Draft script", "Fountain script", "subtitles")
"""Kinds that are no prose even where nothing of them is a story."""


@dataclass(frozen=True)
class Intake:
    """What was made of a text: its kind, title, and words; draft: of a structured one. left_out: what
    is not read, a sentence each."""

    kind: str
    title: str
    draft: TextDraft | None = None
    text: str = ""
    left_out: list[str] = field(default_factory=list)
    encoding: str = "utf-8"

    def values(self, story_id: str, title: str) -> dict[str, Any]:
        """Return the fields of the story record; its provenance says what it was read as, and what was not read."""
        values: dict[str, Any] = {"story_id": story_id, "title": self.title or title, "story_text": self.text}
        if self.draft is not None:
            values = record_values(self.draft, story_id, self.title or title)
        said = [f"Read as: {self.kind}."] if self.kind != "story" else []
        if not self.encoding.lower().startswith("utf"):
            said.append(
                f"Read in the code page {self.encoding}: `katha read FILE --encoding NAME` reads it in another."
            )
        if said or self.left_out:
            values["provenance"] = {NOTED: [*said, *self.left_out]}
        return values


def noted(record: StoryRecord) -> list[str]:
    """Return what there is to say of how a story was read, a sentence each."""
    told = record.provenance.get(NOTED)
    return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []


def take_in(text: str, name: str = "") -> Intake:
    """Return what a text tells, whatever its kind.

    name: of its file, whose ending may say what it is.

    Raises:
        ValueError: it is of a kind that cannot be read; the message says which, and what to do.
    """
    plain, left = without_chatter(normal(text))
    return _taken(plain, PurePath(name).suffix.lower(), left, "", 0)


def take_in_object(value: Any) -> Intake | None:
    """Return what a JSON value tells (`objects`); None where no field of it tells a story.

    Raises:
        ValueError: it is of a kind that is known to tell none.
    """
    found = read_object(_normal(value))
    if isinstance(found, Plain):
        return _taken(normal(found.text), "", found.left_out, found.title, 1)
    return Intake(found.kind, found.title, found, found.text, found.left_out) if found is not None else None


def _normal(value: Any) -> Any:
    """Return a JSON value with every text of it in its normal form."""
    if isinstance(value, str):
        return normal(value)
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    return [_normal(item) for item in value] if isinstance(value, list) else value


def _taken(text: str, suffix: str, left: list[str], title: str, depth: int) -> Intake:
    kind, found = _read(text, suffix) if depth < _MOST_NESTED else ("story", read_prose(text))
    if isinstance(found, TextDraft):
        if found.passages and any(one.text.strip() for one in found.passages):
            return Intake(found.kind, found.title or title, found, found.text, [*left, *found.left_out])
        if kind in _SURE:
            return Intake(found.kind, found.title or title, left_out=[*left, *found.left_out])
        kind, found = "story", read_prose(text)
    if kind != "story":  # without its markup, it is a text of some other kind
        inner = _taken(found.text, "", [*left, *found.left_out], found.title or title, depth + 1)
        told = kind if inner.kind == "story" else f"{kind}, {inner.kind}"
        return Intake(told, inner.title, inner.draft, inner.text, inner.left_out)
    return Intake("story", found.title or title, None, found.text, [*left, *found.left_out])


def _read(text: str, suffix: str) -> tuple[str, TextDraft | Plain]:
    """Return the kind of a text, and it without what makes it of that kind."""
    for kind in KINDS:
        found = kind.read(text, suffix) if kind.may_be(text, suffix) else None
        if found is not None:
            return kind.name, found
    return "story", read_prose(text)
