"""The places of `configs/places.yaml`: what each is called, and how well a sentence's words fit it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from katha.configs import load_config
from katha.text.words import load_words

__all__ = ["Setting", "named", "opened_by", "plain", "settings", "stood_in", "words_of"]

_WORD = re.compile(r"[a-zà-ÿ][a-zà-ÿ'-]*")
_QUOTED = re.compile(r'["\u201c][^"\u201d]*["\u201d]?')
_SHOWN = re.compile(
    r"\b(?:painting|picture|photograph|photo|drawing|poster|story|stories|book|dream|film|map|portrait|song|letter)s?"
    r" (?:of|about|from) [^,.;!?]*"
)
"""What is only painted, told or dreamt of is not there."""
_NOT_THERE = re.compile(
    r"\b(?:to|from|towards?|for|about|like|past) (?:(?:the|a|an|his|her|their|its|my|our) )?(?:\w+ )?$"
)
"""What stands before a place where nobody is yet, or any more."""
_SURE, _TRADE, _NAME, _FITS, _MOST = 3.0, 1.5, 1.5, 1.0, 6.0
"""What a word brings that is hardly found elsewhere, a trade (a baker in a boat is in no bakery), the name of the place
told by the way, a word that fits; and most that a sentence's words bring."""
_WHO = ("person", "group", "being")


@dataclass(frozen=True)
class Setting:
    """One place of places.yaml with the words that tell it."""

    place: str
    names: frozenset[str]
    sure: frozenset[str]
    fits: frozenset[str]
    like: frozenset[str]
    home: bool = False
    open: bool = False
    yard: str = ""
    instead: str = ""
    vague: frozenset[str] = frozenset()

    def score(self, words: frozenset[str]) -> float:
        """Return how well the words of a sentence fit."""
        tables = load_words()
        sure = sum(_TRADE if tables.sort(word.split()[-1]) in _WHO else _SURE for word in words & self.sure)
        return min(_MOST, sure + _NAME * len(words & self.names) + _FITS * len((words & self.fits) - self.names))


@cache
def settings() -> tuple[Setting, ...]:
    """Return every place of places.yaml, in its order."""
    rows: Mapping[str, Mapping[str, str]] = load_config("places.yaml")
    return tuple(
        Setting(
            place,
            _listed(row, "names"),
            _listed(row, "sure"),
            _listed(row, "fits"),
            _listed(row, "like"),
            bool(row.get("home")),
            bool(row.get("open")),
            str(row.get("yard", "")),
            str(row.get("instead", "")),
            _listed(row, "vague"),
        )
        for place, row in rows.items()
        if place != "does"
    )


@cache
def _does() -> frozenset[str]:
    return frozenset(str(load_config("places.yaml")["does"]).split())


def _listed(row: Mapping[str, str], part: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in str(row.get(part, "")).split())


def plain(text: str) -> str:
    """Return a sentence in small letters without what is said, and without what pictures and stories are of."""
    return _SHOWN.sub(" ", _QUOTED.sub(" ", text.lower()))


@cache
def _names() -> Mapping[str, Setting]:
    """The first place of each name."""
    found: dict[str, Setting] = {}
    for one in settings():
        for name in (one.place.removeprefix("the "), *sorted(one.names)):
            found.setdefault(name, one)
    return found


def named(text: str) -> Setting | None:
    """Return the place that a phrase names ("the old football pitch"); the last words of it go before the first."""
    words = [_singular(word) for word in _WORD.findall(text.lower())]
    spelt = _WORD.findall(text.lower())
    for size in (3, 2, 1):
        for at in range(len(words) - size, -1, -1):
            for some in (spelt, words):
                if (found := _names().get(" ".join(some[at : at + size]))) is not None:
                    return found
    return None


_AT_FIRST = re.compile(
    r"(?:(?:out|back|down|up|over|high) )?(?:at|in|on|aboard|inside) (?:(?:the|a|an|his|her|their|its|my|our) )?"
    r"([\w'-]+(?: [\w'-]+)?(?: [\w'-]+)?)"
)


_INSIDE = re.compile(r"\b(?:in|inside|aboard|at|on) (?:the|a|an|his|her|their|its|my|our) ([\w'-]+(?: [\w'-]+)?)")


def opened_by(text: str) -> Setting | None:
    """Return the place with which a sentence begins: "On the bus home there was nothing to look at"."""
    return _in_phrase(_AT_FIRST.match(plain(text).lstrip()))


def stood_in(text: str) -> Setting | None:
    """Return the place that a sentence names behind "in", "at" or "on": "the two men met in a taxi rank"."""
    return next((one for found in _INSIDE.finditer(plain(text)) if (one := _in_phrase(found)) is not None), None)


def _in_phrase(found: re.Match[str] | None) -> Setting | None:
    """The first place in the words behind a preposition."""
    words = found[1].split() if found is not None else []
    spans = [(at, size) for at in range(len(words)) for size in (2, 1) if at + size <= len(words)]
    return next((one for at, size in spans if (one := _names().get(" ".join(words[at : at + size])))), None)


def words_of(text: str, verbs: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the words that tell a place: nouns in the singular, `verbs` in base form, alone and by twos; without the
    names of places to or from which something goes."""
    said = plain(text)
    spelt = [
        found
        for found in _WORD.finditer(said)
        if _singular(found[0]) not in verbs
        and not (_singular(found[0]) in _names() and _NOT_THERE.search(said[: found.start()]))
    ]
    bare = [_singular(found[0]) for found in spelt]
    twos = {f"{one} {two}" for one, two in pairwise(bare)}
    return frozenset({*bare, *(found[0] for found in spelt), *twos, *(verbs & _does())})


def _singular(word: str) -> str:
    for ending, instead in (("ies", "y"), ("ves", "f"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("'s", "")):
        if word.endswith(ending):
            return word[: -len(ending)] + instead
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
