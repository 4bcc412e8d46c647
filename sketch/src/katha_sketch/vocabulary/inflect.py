"""English inflection by rule and table: plurals, third person, past, participles. Forward only, so it is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Form", "Inflector", "VerbForm"]

VerbForm = Literal["base", "third", "past", "participle", "ing"]
_VOWELS = frozenset("aeiou")


@dataclass(frozen=True)
class Form:
    """One surface form of a word and what it is a form of."""

    surface: str
    form: str


class Inflector:
    """Inflects words with tables of irregular forms; phrases inflect at their verb (first) or noun (last) word."""

    def __init__(
        self, plurals: Mapping[str, str], verbs: Mapping[str, tuple[str, str]], doubling: frozenset[str]
    ) -> None:
        self._plurals = plurals
        self._verbs = verbs
        self._doubling = doubling

    def plural(self, noun: str) -> str:
        """The plural of a noun or noun phrase ("old man" -> "old men")."""
        if noun in self._plurals:
            return self._plurals[noun]
        head, _, last = noun.rpartition(" ")
        if last in self._plurals:
            return f"{head} {self._plurals[last]}".strip()
        if last.endswith(("s", "x", "z", "ch", "sh")):
            return f"{noun}es"
        if last.endswith("y") and last[-2:-1] not in _VOWELS:
            return f"{noun[:-1]}ies"
        if last.endswith("man") and last not in {"caiman", "human"}:
            return f"{noun[:-2]}en"
        return f"{noun}s"

    def verb(self, phrase: str, form: VerbForm) -> str:
        """A form of a verb or verb phrase: `verb("cry out", "past")` is "cried out"."""
        first, _, rest = phrase.partition(" ")
        makers: dict[str, Callable[[str], str]] = {
            "base": str,
            "third": self._third,
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

    def _third(self, verb: str) -> str:
        if verb in {"be", "have"}:
            return "is" if verb == "be" else "has"
        if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
            return f"{verb}es"
        if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
            return f"{verb[:-1]}ies"
        return f"{verb}s"

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
