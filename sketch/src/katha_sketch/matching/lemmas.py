"""Words reduced to stems by rule and table, in synonym groups, with what denies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from katha.jsonio import shipped_table
from katha.schema import Question

_TOKEN = re.compile(r"[a-z]+|[,;.:!?]")
_DOUBLED = re.compile(r"([bdgklmnprt])\1$")
_SUFFIXES = ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "s", "ly")
_VOWEL = re.compile(r"[aeiouy]")


@dataclass(frozen=True)
class Lexicon:
    """The closed word lists of lexicon.yaml. `group` maps a stem to the first of its synonym group.

    irregular: verb forms to their base. forms: these and every other word form to the word that stands for it.
    around: what judges say around an answer, and what stands for it.
    """

    irregular: Mapping[str, str]
    forms: Mapping[str, str]
    stop: frozenset[str]
    negators: frozenset[str]
    group: Mapping[str, str]
    around: tuple[tuple[re.Pattern[str], str], ...]


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
    return Lexicon(
        verbs,
        irregular,
        frozenset(_strip(irregular.get(word, word)) for word in map(str, raw["stop"])),
        frozenset(_grouped(str(word), irregular, group) for word in raw["negators"]),
        group,
        tuple((re.compile(pattern), instead) for pattern, instead in raw["around"]),
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


@lru_cache(maxsize=16384)
def _told(text: str) -> tuple[str, ...]:
    return tuple(word.stem for word in read_words(text) if (word.content or word.negator) and not word.mark)


def stands_for(text: str, question: Question) -> bool:
    """Return whether a text has the words of an accepted answer, by their stems and in their order.

    It may have more of them where no order is asked for and the accepted answer begins with the right doer: "The hare
    sleeps under a tree" says "the hare slept".
    """
    said, gold = _told(text), _told(question.gold_answer)
    for one in (gold, *map(_told, question.accepted_answers)):
        if one and one == said:
            return True
        whole = len(one) > 1 and one[:1] == gold[:1] and question.question_type != "temporal_order"
        if whole and any(said[at : at + len(one)] == one for at in range(len(said))):
            return True
    return False
