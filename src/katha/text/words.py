"""The tables that the reader knows words by, loaded once, and which sense of a word a story means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import yaml

from katha.jsonio import shipped_table

__all__ = ["Age", "Sex", "Words", "about", "age_in_years", "inflected", "lives_from", "load_words", "said_plainly"]

Sex = Literal["male", "female"]
Age = Literal["child", "adult", "old"]
_SEXES: tuple[Sex, ...] = ("female", "male")
_AGES: tuple[tuple[str, Age], ...] = (
    ("kin_adult", "adult"), ("adult", "adult"), ("child", "child"), ("kin_old", "old"), ("old", "old"),
)  # fmt: skip
"""The tables of nouns that tell an age, the surest last."""
_GROWN, _AGED = 15, 60
_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
"""Where a sentence ends, roughly."""
_BEFORE, _AFTER = re.compile(r"([\w-]+) $"), re.compile(r" ([\w-]+)")
_DETERMINERS = frozenset(
    re.findall(r"\w+", "the a an this that these those his her its their my our your some any no each every")
)
_OBJECTS = _DETERMINERS - {"that"} | frozenset(re.findall(r"\w+", "it him them me us up down out off away"))
"""What stands behind a verb, and not behind a noun."""
_SUBJECTS = frozenset(
    re.findall(r"\w+", "he she it they we you i who to not never will can could would should must did does do")
)
_DOERS = frozenset({"person", "being", "animal"})
PLACES = frozenset({"building", "structure", "land", "water", "region", "vehicle", "place"})


def _yaml(name: str) -> dict[str, Any]:
    return dict(shipped_table("katha.text", name))


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


def inflected(word: str) -> str:
    """Return a noun in the plural or a verb in the third person: "boxes", "carries", "plays"."""
    if re.search(r"(?:s|x|z|ch|sh)$", word):
        return f"{word}es"
    return f"{word[:-1]}ies" if re.search(r"[^aeiou]y$", word) else f"{word}s"


# Which sense of a word a story means: by the words that stand around it.

_LIVING = ("person", "animal", "being", "kin", "male", "female", "child", "old", "adult", "group", "titles")


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

            def meant(found: re.Match[str], word: str = word, phrase: str = phrase) -> str:
                named = phrase.split()[0] == word and found.string[found.end() :].startswith(" of ")
                if named or _does(found):  # a deck of playing cards is a deck of cards already
                    return found[0]
                return inflected(phrase) if found[1] else phrase

            text = re.sub(rf"{before}\b{word}((?:e?s)?)\b", meant, text)
        return text


def _does(found: re.Match[str]) -> bool:
    """Whether a word is a verb by what stands beside it: the king seals the letter, and breaks its seal."""
    before, after = _BEFORE.search(found.string[: found.start()]), _AFTER.match(found.string[found.end() :])
    if before is not None and before[1].lower() in _DETERMINERS:
        return False  # pulls the plug out
    if after is not None and after[1].lower() in _OBJECTS:
        return True
    if before is None:
        return False
    one = before[1].lower()
    many = one.endswith("s") and not one.endswith("ss")
    doer = load_words().sort(one.removesuffix("s") if many else one) in _DOERS and bool(found[1]) != many
    return one in _SUBJECTS or before[1].istitle() or doer


def about(words: Words, text: str) -> Words:
    """Return the tables for a text: a knight is a thing in a story about chess."""
    meant = _meant_in(text)
    other: dict[str, str] = {}
    for at, sense in enumerate(_senses()):
        if at in meant:
            for word in sense.said:
                if sense.kind and (not sense.near or at in _first_meant(text, word)):
                    other.setdefault(word, sense.kind)
    return _with(words, tuple(sorted(other.items()))) if other else words


def said_plainly(text: str, sentence: str, story: str) -> str:
    """Return a text whose words say what they mean in this sentence of this story: "pushes the chess queen".

    The first sense whose cues are found counts; a word without cues beside it means what it meant when the story first
    had it: the crane that lifted a beam is that crane when it turns.
    """
    done: set[str] = set()
    near, far = _meant_in(sentence), _meant_in(story)
    for later in (False, True):
        for at, sense in enumerate(_senses()):
            fresh = {word: phrase for word, phrase in sense.said.items() if word not in done}
            if later:
                fresh = {word: phrase for word, phrase in fresh.items() if at in _first_meant(story, word)}
            if fresh and at in (far if later or not sense.near else near):
                text = replace(sense, said=fresh).instead(text)
                done |= set(fresh)
    return text


def lives_from(sentence: str, story: str) -> list[str]:
    """Return the things that a story lives from and a sentence does without naming them: "chessboard"."""
    meant = _meant_in(story)
    return [
        sense.shows
        for at, sense in enumerate(_senses())
        if sense.beside is not None and at in meant and sense.beside.search(sentence.lower())
    ]


@lru_cache(maxsize=64)
def _meant_in(text: str) -> frozenset[int]:
    """The senses, by their places, whose cues a text holds: one look at a long story, however many pictures it has."""
    lower = text.lower()
    return frozenset(at for at, sense in enumerate(_senses()) if sense.cues.search(lower))


@lru_cache(maxsize=512)
def _first_meant(text: str, word: str) -> frozenset[int]:
    """The senses whose cues stand in the first sentence of a text that has a word."""
    named = re.compile(rf"\b{re.escape(word)}(?:e?s)?\b")
    first = next((one for one in _ENDS.split(text.lower()) if named.search(one)), "")
    return _meant_in(first) if first else frozenset()


def _with(words: Words, other: tuple[tuple[str, str], ...]) -> Words:
    changed = dict(other)
    alive = {name: listed - changed.keys() for name, listed in words.sets.items() if name.split(".")[0] in _LIVING}
    groups = {name: {word: part for word, part in rows.items() if word not in changed or name not in _LIVING}
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
