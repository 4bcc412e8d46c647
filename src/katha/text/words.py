"""The tables that the reader knows words by, loaded once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

__all__ = ["Words", "load_words"]

PLACES = frozenset({"building", "structure", "land", "water", "region", "vehicle", "place"})


def _yaml(name: str) -> dict[str, Any]:
    text = resources.files("katha.text").joinpath(name).read_text(encoding="utf-8")
    value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return dict(value)


@dataclass(frozen=True)
class Words:
    """Every table: `sets` by its name, with "kin.male" for a part; `sorts` of nouns; `feelings` of words."""

    sets: Mapping[str, frozenset[str]]
    groups: Mapping[str, Mapping[str, str]]
    numbers: Mapping[str, int]
    sorts: Mapping[str, str]
    feelings: Mapping[str, str]
    lemmas: Mapping[str, str]

    def has(self, name: str, word: str) -> bool:
        """Return whether the table `name` holds `word`."""
        return word in self.sets[name]

    def group(self, name: str, word: str) -> str | None:
        """Return which part of the table `name` holds `word`: group("times", "dawn") is "morning"."""
        return self.groups[name].get(word)

    def sort(self, noun: str) -> str:
        """Return what a noun is ("animal", "building", "food"), "" if that is not known."""
        return self.sorts.get(noun, "")

    def is_place(self, noun: str) -> bool:
        """Return whether a scene can be set in or on it."""
        return noun in self.sets["place"] or (self.sort(noun) in PLACES and noun not in self.sets["not_place"])


@lru_cache(maxsize=1)
def load_words() -> Words:
    """Return the tables."""
    sets: dict[str, frozenset[str]] = {}
    groups: dict[str, dict[str, str]] = {}
    raw = _yaml("words.yaml")
    numbers, lemmas, opposites = raw.pop("numbers"), raw.pop("lemmas"), raw.pop("opposites")
    for name, value in raw.items():
        parts = value if isinstance(value, dict) else {"": value}
        for part, words in parts.items():
            listed = str(words).split()
            if part:
                sets[f"{name}.{part}"] = frozenset(listed)
                groups.setdefault(name, {}).update(dict.fromkeys(listed, part))
                if name in ("times", "kin_same", "weather"):
                    groups[name][part] = part
            sets[name] = sets.get(name, frozenset()) | frozenset(listed)
    groups["opposites"] = opposites
    sorts = {noun: kind for kind, nouns in _yaml("nouns.yaml").items() for noun in nouns.split()}
    for kind in ("place", "thing", "group", "animal", "person", "being"):
        special = kind == "place"
        sorts.update({noun: kind for noun in sets[kind] if not (special and noun in sorts)})
    feelings = {word: name for name, words in _yaml("feelings.yaml").items() for word in words.split()}
    return Words(sets, groups, numbers, sorts, feelings, lemmas)
