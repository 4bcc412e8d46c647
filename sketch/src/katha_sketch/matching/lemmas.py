"""Words reduced to what the `lemma-set` rule compares: stems by rule and table, synonym groups, negators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from katha.jsonio import shipped_table

_TOKEN = re.compile(r"[a-z]+|[,;.:!?]")
_DOUBLED = re.compile(r"([bdgklmnprt])\1$")
_SUFFIXES = ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "s", "ly")
_VOWEL = re.compile(r"[aeiouy]")


@dataclass(frozen=True)
class Lexicon:
    """The closed word lists of lexicon.yaml. `group` maps a stem to the first of its synonym group.

    irregular: verb forms to their base. forms: these and every other word form to the word that stands for it.
    around: what judges say around an answer, and what stands for it. genders: stems of those who are he or she.
    anyone: stems that may stand for whoever is asked about.
    """

    irregular: Mapping[str, str]
    forms: Mapping[str, str]
    stop: frozenset[str]
    negators: frozenset[str]
    local: frozenset[str]
    group: Mapping[str, str]
    opposites: frozenset[tuple[str, str]]
    around: tuple[tuple[re.Pattern[str], str], ...]
    genders: Mapping[str, frozenset[str]]
    anyone: frozenset[str]


@dataclass(frozen=True)
class Word:
    """One word of an answer: as written, its stem's group, and whether it is a content word, a negator, a mark."""

    surface: str
    stem: str
    content: bool
    negator: bool
    mark: bool


@cache
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    raw = shipped_table("katha_sketch.matching", "lexicon.yaml")
    verbs: dict[str, str] = {str(form): str(base) for form, base in raw["irregular"].items()}
    irregular = verbs | {str(form): str(base) for form, base in raw["forms"].items()}
    group: dict[str, str] = {}
    for words in raw["synonyms"]:
        first = _strip(irregular.get(words[0], words[0]))
        group |= {_strip(irregular.get(word, word)): first for word in words}
    pairs = {tuple(_grouped(word, irregular, group) for word in pair) for pair in raw["opposites"]}
    both = {(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}
    return Lexicon(
        verbs,
        irregular,
        frozenset(_strip(irregular.get(word, word)) for word in map(str, raw["stop"])),
        frozenset(_grouped(str(word), irregular, group) for word in raw["negators"]),
        frozenset(_grouped(str(word), irregular, group) for word in raw["local"]),
        group,
        frozenset(both),
        tuple((re.compile(pattern), instead) for pattern, instead in raw["around"]),
        {
            pronoun: frozenset(_grouped(word, irregular, group) for word in raw[name])
            for pronoun, name in (("he", "male"), ("she", "female"))
        },
        frozenset(_grouped(word, irregular, group) for word in raw["anyone"]),
    )


def _strip(word: str) -> str:
    """`word` without its inflection: bite, bites, biting and bited all give one stem."""
    for suffix in _SUFFIXES:
        kept = word[: -len(suffix)]
        if word.endswith(suffix) and len(kept) >= 2 and _VOWEL.search(kept) and not word.endswith(("ss", "us", "is")):
            word = kept + "y" if suffix in ("ied", "ies") else _DOUBLED.sub(r"\1", kept)
            break
    word = _DOUBLED.sub(r"\1", word) if len(word) > 3 else word
    return (
        word[:-1] + "i" if word.endswith("y") and len(word) > 2 else word.removesuffix("e") if len(word) > 3 else word
    )


def _grouped(word: str, irregular: Mapping[str, str], group: Mapping[str, str]) -> str:
    stemmed = _strip(irregular.get(word, word))
    return group.get(stemmed, stemmed)


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The stem of a lower-case word, or of the first word of its synonym group."""
    words = lexicon()
    return _grouped(word, words.forms, words.group)


@lru_cache(maxsize=16384)
def read_words(text: str) -> tuple[Word, ...]:
    """The words and marks of `text` in order."""
    words = lexicon()
    lower = text.lower()
    for pattern, instead in words.around:
        lower = pattern.sub(instead, lower)
    plain = lower.replace("n't", "n not").replace("\u2019", "'").replace("'s", "").replace("'", "")
    made = []
    for surface in _TOKEN.findall(plain):
        mark = not surface.isalpha()
        base = stem(surface)
        negator = base in words.negators
        small = _strip(words.forms.get(surface, surface)) in words.stop
        made.append(Word(surface, base, not (mark or small), negator, mark))
    return tuple(made)
