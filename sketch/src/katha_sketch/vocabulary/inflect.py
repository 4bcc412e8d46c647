"""English inflection: the number of nouns by a library, the forms of verbs by rule and table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pluralizer import Pluralizer

__all__ = ["Form", "Inflector", "VerbForm", "is_plural", "plural", "singular", "third"]

VerbForm = Literal["base", "third", "past", "participle", "ing"]
_VOWELS = frozenset("aeiou")
_WITH_S = (
    "abdomen ache caiman carmen german headache lens moustache norman omen roman shaman specimen stomachache talisman "
    "toothache"
)
"""Nouns with a plural in "s" (or "es") for which the library has another."""
_NO_NOUNS = (
    "are does has have he her him his i is it its me my our she that their them these they this those us was we were"
)
"""What the library inflects and is no noun."""
_MANY = ("cattle", "police", "scissors")
"""What is several and looks like one."""


@cache
def _number() -> Pluralizer:
    """Return the library, taught what it lacks; it is loaded when the first noun is asked for."""
    from pluralizer import Pluralizer

    known = Pluralizer()
    known.add_plural_rule(re.compile("[\u00e8\u00e9]$"), "$0s")  # "cafés"
    known.add_irregular_rule("daisy", "daisies")
    for noun in _WITH_S.split():
        known.add_irregular_rule(noun, f"{noun}es" if noun.endswith("s") else f"{noun}s")
    for word in _NO_NOUNS.split():
        known.add_irregular_rule(word, word)
    return known


@lru_cache(maxsize=8192)
def plural(noun: str) -> str:
    """Return the plural of a noun or of a phrase: "old men", "bunches of grapes"; a plural stays."""
    return _at_head(noun, _number().plural)


@lru_cache(maxsize=8192)
def singular(noun: str) -> str:
    """Return the singular of a noun or of a phrase: "old man", "bunch of grapes"; a singular stays."""
    return _at_head(noun, _number().singular)


def _at_head(phrase: str, change: Callable[[str], str]) -> str:
    """Return a phrase with its head changed: the last word before "of"."""
    whole, of, rest = phrase.partition(" of ")
    before, space, head = whole.rpartition(" ")
    return f"{before}{space}{change(head)}{of}{rest}"


def is_plural(noun: str) -> bool:
    """Return whether a noun is in the plural; of one that is spelt alike in both ("sheep") it is not told."""
    return noun in _MANY or singular(noun) != noun


def third(verb: str) -> str:
    """Return a verb in the third person of the present: "carries", "is", "does"."""
    if verb in {"be", "have"}:
        return "is" if verb == "be" else "has"
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ies"
    return f"{verb}s"


@dataclass(frozen=True)
class Form:
    """One surface form of a word and what it is a form of."""

    surface: str
    form: str


class Inflector:
    """Inflects verbs with a table of irregular forms; phrases inflect at their first word."""

    def __init__(self, verbs: Mapping[str, tuple[str, str]], doubling: frozenset[str]) -> None:
        self._verbs = verbs
        self._doubling = doubling

    def verb(self, phrase: str, form: VerbForm) -> str:
        """A form of a verb or verb phrase: `verb("cry out", "past")` is "cried out"."""
        first, _, rest = phrase.partition(" ")
        makers: dict[str, Callable[[str], str]] = {
            "base": str,
            "third": third,
            "past": self._past,
            "participle": self._participle,
        }
        made = makers[form](first) if form in makers else self._ing(first)
        return f"{made} {rest}".strip()

    def verb_forms(self, phrase: str) -> Iterator[Form]:
        """Every form of a verb phrase, the base form first."""
        forms: tuple[VerbForm, ...] = ("base", "third", "past", "participle", "ing")
        for form in forms:
            yield Form(self.verb(phrase, form), form)
        first, _, rest = phrase.partition(" ")
        past, participle = self._verbs.get(first, ("", ""))
        regular = self._regular_past(first)
        if past and regular in {past, participle} and past != participle:
            yield Form(f"{participle} {rest}".strip(), "past")
            yield Form(f"{past} {rest}".strip(), "participle")

    def _past(self, verb: str) -> str:
        return self._verbs[verb][0] if verb in self._verbs else self._regular_past(verb)

    def _participle(self, verb: str) -> str:
        return self._verbs[verb][1] if verb in self._verbs else self._regular_past(verb)

    def _regular_past(self, verb: str) -> str:
        if verb.endswith("e"):
            return f"{verb}d"
        if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
            return f"{verb[:-1]}ied"
        return f"{self._doubled(verb)}ed"

    def _ing(self, verb: str) -> str:
        if verb.endswith("ie"):
            return f"{verb[:-2]}ying"
        if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and verb != "be":
            return f"{verb[:-1]}ing"
        return f"{self._doubled(verb)}ing"

    def _doubled(self, verb: str) -> str:
        return verb + verb[-1] if verb in self._doubling else verb
