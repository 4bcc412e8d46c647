"""Which sense of a word a story means: by the words that stand around it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from katha.text.words import Words, inflected

__all__ = ["about", "lives_from", "said_plainly"]

_ALIVE = ("person", "animal", "being", "kin", "male", "female", "child", "old", "adult", "group", "titles")


@dataclass(frozen=True)
class _Sense:
    """Words that mean something else where one of `cues` is found."""

    cues: re.Pattern[str]
    near: bool
    said: Mapping[str, str]
    kind: str
    shows: str
    beside: re.Pattern[str] | None

    def instead(self, text: str) -> str:
        """Return the text with what the words mean here."""
        for word, phrase in self.said.items():
            before = "".join(rf"(?<!{re.escape(one)} )" for one in dict.fromkeys(phrase.split()[:-1]))

            def meant(found: re.Match[str], phrase: str = phrase) -> str:
                return inflected(phrase) if found[1] else phrase

            text = re.sub(rf"{before}\b{word}((?:e?s)?)\b", meant, text)
        return text


def about(words: Words, text: str) -> Words:
    """Return the tables for a text: a knight is a thing in a story about chess."""
    other = {
        word: sense.kind
        for sense in _senses()
        if sense.kind and not sense.near and sense.cues.search(text.lower())
        for word in sense.said
    }
    return _with(words, tuple(sorted(other.items()))) if other else words


def said_plainly(text: str, sentence: str, story: str) -> str:
    """Return a text whose words say what they mean in this sentence of this story: "pushes the chess queen".

    The first sense whose cues are found counts.
    """
    done: set[str] = set()
    for sense in _senses():
        fresh = {word: phrase for word, phrase in sense.said.items() if word not in done}
        if fresh and sense.cues.search((sentence if sense.near else story).lower()):
            text = replace(sense, said=fresh).instead(text)
            done |= set(fresh)
    return text


def lives_from(sentence: str, story: str) -> list[str]:
    """Return the things that a story lives from and a sentence does without naming them: "chessboard"."""
    return [
        sense.shows
        for sense in _senses()
        if sense.beside is not None and sense.cues.search(story.lower()) and sense.beside.search(sentence.lower())
    ]


def _with(words: Words, other: tuple[tuple[str, str], ...]) -> Words:
    changed = dict(other)
    alive = {name: listed - changed.keys() for name, listed in words.sets.items() if name.split(".")[0] in _ALIVE}
    groups = {name: {word: part for word, part in rows.items() if word not in changed or name not in _ALIVE}
              for name, rows in words.groups.items()}  # fmt: skip
    sexes = {word: sex for word, sex in words.sexes.items() if word not in changed}
    ages = {word: age for word, age in words.ages.items() if word not in changed}
    sets, sorts = {**words.sets, **alive}, {**words.sorts, **changed}
    return replace(words, sets=sets, groups=groups, sorts=sorts, sexes=sexes, ages=ages)


def _pattern(listed: str) -> re.Pattern[str]:
    """Any of some words, also in the plural, the past or as "-ing"."""
    words = "|".join(re.escape(word.replace("_", " ")) for word in listed.split())
    return re.compile(rf"\b(?:{words})(?:e?s|e?d|ing)?\b")


@lru_cache(maxsize=1)
def _senses() -> tuple[_Sense, ...]:
    text = resources.files("katha.text").joinpath("senses.yaml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tuple(
        _Sense(
            _pattern(row["cues"]),
            bool(row.get("near")),
            row["said"],
            str(row.get("kind", "")),
            str(row.get("shows", "")),
            _pattern(row["with"]) if "with" in row else None,
        )
        for row in rows
    )
