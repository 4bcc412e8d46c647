"""A story with other names and places, so that a known one is no longer known to whoever is asked about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from katha.configs import load_prompt
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.rows import text_field
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import StoryRecord

_LETTERS, _MOST_NAME = 40_000, 80
_BEGINS, _ENDS = r"(?<!\w)", r"(?=(?:['\u2019]?s)?(?!\w))"
_NEAR = (0.5, 2.0)
"""How long the new text may be, as a share of the old one."""


class _Name(BaseModel):
    old: str = Field(min_length=1)
    new: str = Field(min_length=1)


class _Renamed(BaseModel):
    names: list[_Name] = Field(min_length=1)
    title: str = ""
    story: str = Field(min_length=1)


def renamed(model: TextModel, record: StoryRecord) -> StoryRecord:
    """Return `record` told with other names and places, with what was changed (`renamed`) and as it was
    (`original_text`, `original_title`). Scenes and transitions get the new names word by word; its own questions go.

    Raises:
        ReplyError: an old name is left after a repair, or the text is another one. ModelError: it gave no answer.
    """
    prompt = load_prompt("build/rename").render(title=record.title, story=record.story_text)
    name = object_schema({"old": text_field(_MOST_NAME), "new": text_field(_MOST_NAME)})
    schema = object_schema(
        {
            "names": {"type": "array", "items": name, "minItems": 1, "maxItems": 60},
            "title": text_field(200),
            "story": text_field(_LETTERS),
        }
    )
    made = write_one(model, prompt, schema, _Renamed, "story with other names", lambda found: _wrong(record, found))
    names = {item.old: item.new for item in made.names}
    given = record.model_dump(mode="json")
    return StoryRecord.model_validate(
        {
            **given,
            "title": made.title.strip() or replaced(record.title, names),
            "story_text": made.story,
            "scenes": replaced(given["scenes"], names),
            "transitions": replaced(given["transitions"], names),
            "recoverability_questions": [],
            "renamed": names,
            "original_title": record.title,
            "original_text": record.story_text,
        }
    )


def replaced(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value of JSON with old names as new ones in its texts, the longest first; keys stay."""
    if isinstance(value, str):
        known = {old.casefold(): new for old, new in names.items()}
        found = re.compile("|".join(map(_pattern, sorted(names, key=len, reverse=True))), re.IGNORECASE)
        return found.sub(lambda match: _as_written(match[0], known.get(match[0].casefold(), match[0])), value)
    if isinstance(value, Mapping):
        return {key: replaced(item, names) for key, item in value.items()}
    return [replaced(item, names) for item in value] if isinstance(value, list) else value


def _as_written(old: str, new: str) -> str:
    """Return a new name with a capital where the old one has one."""
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def _pattern(name: str) -> str:
    """Return the pattern of a name: a word of its own, also with an s; in other scripts its letters anywhere."""
    begins, ends = (letter.isascii() and letter.isalnum() for letter in (name[:1], name[-1:]))
    return (_BEGINS if begins else "") + re.escape(name) + (_ENDS if ends else "")


def _wrong(record: StoryRecord, made: _Renamed) -> str | None:
    """Return what is wrong with a story that was told again."""
    known = f"{record.title}\n{record.story_text}"
    for item in made.names:
        if not _has(known, item.old):
            return f"The story has no {item.old!r}."
        if _has(item.new, item.old):
            return f"The new name {item.new!r} holds the old one."
    left = next((item.old for item in made.names if _has(f"{made.title}\n{made.story}", item.old)), None)
    if left is not None:
        return f"The old name {left!r} is still in the new text or its title."
    share = len(made.story) / max(1, len(record.story_text))
    return None if _NEAR[0] <= share <= _NEAR[1] else "The new text is not about as long as the old one."


def _has(text: str, name: str) -> bool:
    return re.search(_pattern(name), text, re.IGNORECASE) is not None
