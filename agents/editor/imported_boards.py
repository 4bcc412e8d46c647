"""Words that came with found pictures: the story that they tell, and where they stand in a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from katha.errors import InputFileError
from katha.protocols import PanelWords
from katha.schema import Panel, Plan, Scene, StoryRecord
from katha.stories import story_of_text

_QUOTED = re.compile(r"[\"\u201c\u201d\u00ab\u00bb]")
_ENDS = (".", "!", "?", '"', "\u201d", "\u2026", "\u00bb")
_NAMED = 5


def told_texts(words: Sequence[PanelWords]) -> list[str]:
    """Return what each picture's words tell: its caption, else what is done, and what is said; or the notes where there
    is nothing of that."""
    return [_told(item) for item in words]


def _told(words: PanelWords) -> str:
    said = " ".join(words.dialogue.split())
    quoted = said if not said or _QUOTED.search(said) else f'"{said}"'
    told = words.caption or words.action
    parts = [_sentence(told), quoted if said.casefold() not in told.casefold() else ""]
    return " ".join(part for part in parts if part) or _sentence(words.notes)


def _sentence(text: str) -> str:
    plain = " ".join(text.split())
    return plain if not plain or plain.endswith(_ENDS) else f"{plain}."


def told_story(words: Sequence[PanelWords], name: str) -> StoryRecord:
    """Return the story that the words beside the pictures tell.

    name: what it is called; its id is made of it.

    Raises:
        InputFileError: a picture has no words, so that nobody could say what it should tell.
    """
    texts = told_texts(words)
    silent = [str(at) for at, text in enumerate(texts, 1) if not text]
    if silent or not texts:
        where = f"frame {', '.join(silent[:_NAMED])}{' and others' if len(silent) > _NAMED else ''}"
        said = f"Nothing in {name!r} tells what {where} should show." if silent else f"{name!r} holds no words."
        raise InputFileError(said, hint="Give the STORY, or write action, dialogue or notes beside every frame.")
    return story_of_text(" ".join(texts), name)


def with_scenes(record: StoryRecord, words: Sequence[PanelWords]) -> StoryRecord:
    """Return a story that is the pictures' own words as one scene a picture, so that each panel is of its picture; any
    other story as it is."""
    texts = told_texts(words)
    if record.scenes or not texts or not all(texts):
        return record
    if record.story_text != story_of_text(" ".join(texts), record.story_id).story_text:
        return record
    scenes = [Scene(story_id=record.story_id, scene_index=at, scene_text=text) for at, text in enumerate(texts, 1)]
    return record.model_copy(update={"scenes": scenes})


def with_words(plan: Plan, words: Sequence[PanelWords]) -> Plan:
    """Return `plan` with the words of each picture in its panel, its time and its shot."""
    if len(words) != len(plan.panels):
        return plan
    return plan.model_copy(update={"panels": [_worded(*pair) for pair in zip(plan.panels, words, strict=True)]})


def _worded(panel: Panel, words: PanelWords) -> Panel:
    told: dict[str, Any] = {item.name: value for item in fields(words) if (value := getattr(words, item.name))}
    return panel.model_copy(update=told)
