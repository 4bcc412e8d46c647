"""The tables that the reader knows words by, loaded once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from katha.jsonio import shipped_table

__all__ = ["Age", "Sex", "Words", "age_in_years", "load_words"]

Sex = Literal["male", "female"]
Age = Literal["child", "adult", "old"]
_SEXES: tuple[Sex, ...] = ("female", "male")
_AGES: tuple[tuple[str, Age], ...] = (
    ("kin_adult", "adult"), ("adult", "adult"), ("child", "child"), ("kin_old", "old"), ("old", "old"),
)  # fmt: skip
"""The tables of nouns that tell an age, the surest last."""
_GROWN, _AGED = 15, 60
PLACES = frozenset({"building", "structure", "land", "water", "region", "vehicle", "place"})


def _yaml(name: str) -> dict[str, Any]:
    return dict(shipped_table("katha_sketch.english", name))


@dataclass(frozen=True)
class Words:
    """Every table: `sets` by its name, with "kin.male" for a part; `sorts` of nouns; `feelings` of words."""

    sets: Mapping[str, frozenset[str]]
    groups: Mapping[str, Mapping[str, str]]
    numbers: Mapping[str, int]
    sorts: Mapping[str, str]
    feelings: Mapping[str, str]
    lemmas: Mapping[str, str]
    asked: Mapping[str, frozenset[str]]
    sexes: Mapping[str, Sex]
    ages: Mapping[str, Age]

    def has(self, name: str, word: str) -> bool:
        """Return whether the table `name` holds `word`."""
        return word in self.sets[name]

    def group(self, name: str, word: str) -> str | None:
        """Return which part of the table `name` holds `word`: group("times", "dawn") is "morning"."""
        return self.groups[name].get(word)

    def sort(self, noun: str) -> str:
        """Return what a noun is ("animal", "building", "food"), "" if that is not known."""
        return self.sorts.get(noun, "")

    def number(self, word: str) -> int:
        """Return the number that a word is ("sixty-one"), 0 for none and for one that is not known."""
        parts = [self.numbers.get(part, 0) for part in word.split("-")]
        return int(word) if word.isdigit() else sum(parts) if all(parts) else 0

    def noun_lemma(self, noun: str) -> str:
        """Return a noun's lemma where the parser's is wrong ("geese"); what is a noun stays ("hat")."""
        return noun if noun in self.sorts else self.lemmas.get(noun, noun)

    def is_a(self, kind: str, noun: str) -> bool:
        """Return whether a noun names a thing of a kind that verbs ask for: "food", "opens"."""
        return self.sort(noun) == kind or noun in self.sets.get(f"is_a.{kind}", frozenset())

    def wants(self, verb: str, particle: str = "") -> frozenset[str]:
        """Return the kinds of things that a verb asks for: wants("eat") is {"food"}."""
        return self.asked.get(verb, frozenset()) | self.asked.get(f"{verb}_{particle}", frozenset())

    def tells_when(self, noun: str) -> bool:
        """Return whether a lemma names a time of day or year, or a length of time."""
        return self.has("time_nouns", noun) or self.has("seasons", noun) or self.group("times", noun) is not None

    def is_time(self, noun: str, part: str) -> bool:
        """Return whether a lemma, or a noun by its `part` of speech, tells when or how long."""
        day = noun.removesuffix("s") if part == "PROPN" else noun  # "on Sundays"
        lasts = self.sort(noun) == "time" and part == "NOUN" and noun not in self.sets["place"]
        return self.tells_when(day) or self.tells_when(noun) or lasts

    def is_place(self, noun: str) -> bool:
        """Return whether a scene can be set in or on it."""
        return noun in self.sets["place"] or (
            self.sort(noun) in PLACES - {"vehicle"} and noun not in self.sets["not_place"]
        )


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
    for kind in ("place", "thing", "vehicle", "building", "land", "group", "animal", "person", "being"):
        special = kind == "place"
        sorts.update({noun: kind for noun in sets[kind] if not (special and noun in sorts)})
    sorts.update(dict.fromkeys((one for one in sets["colours"] if sorts.get(one) == "person"), "abstract"))
    feelings = {word: name for name, words in _yaml("feelings.yaml").items() for word in words.split()}
    asks = [(verb, name[6:]) for name, verbs in sets.items() if name.startswith("wants.") for verb in verbs]
    asked = {verb: frozenset(kind for one, kind in asks if one == verb) for verb, _ in asks}
    sexes: dict[str, Sex] = {}
    for sex in _SEXES:
        sexes.update(dict.fromkeys(sets[sex], sex))
    for name in ("titles", "kin"):
        sexes.update({noun: sex for sex in _SEXES for noun in sets[f"{name}.{sex}"]})
    ages = {noun: age for name, age in _AGES for noun in sets[name]}
    return Words(sets, groups, numbers, sorts, feelings, lemmas, asked, sexes, ages)


def age_in_years(years: int) -> Age:
    """Return which of the three ages a number of years is."""
    return "child" if years < _GROWN else "old" if years >= _AGED else "adult"
