"""Whom a script names: cues and capitals made into names as a story writes them, never with marks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache, partial
from typing import Any

from katha.configs import load_config

MARKS = re.compile(r"[\[\]{}()<>|#*~\"@:;=+\\^\u201c\u201d\u00ab\u00bb\u2022]|(?<!\w)_|_(?!\w)")
"""What no name holds."""
_ROLE = re.compile(r"\b(?:an?|the|another|his|her|their|my|our|some|two|three|every|each)\s+(?:[a-z-]+\s+){0,2}", re.I)
_NUMBERED = re.compile(r"^(?P<what>[^\d#]+?)\s*#?\s*(?P<number>\d+)$")
_CAPITALS = re.compile(r"(?<![\w.])[^\W\d_a-z][\w'\u2019-]*[^\W\d_a-z](?:['\u2019][sS])?(?![\w])")
TITLES = ("mr", "mrs", "ms", "dr", "st", "prof", "sgt", "capt", "lt", "col", "sir")


@cache
def words() -> Any:
    """Return the words by which lines are known (`configs/intake.yaml`)."""
    return load_config("intake.yaml")


@cache
def word_set(name: str) -> frozenset[str]:
    """Return one list of them in small letters."""
    return frozenset(str(one).lower() for one in words()[name])


def bare(name: str) -> str:
    """Return a name without marks and what stands around it."""
    plain = "".join(one if unicodedata.category(one) not in ("So", "Sk", "Cn", "Co") else " " for one in name)
    return " ".join(MARKS.sub(" ", plain).split()).strip(" .,!?-\u2013\u2014'\u2019/&")


def is_title_case(text: str) -> bool:
    """Return whether a name is written with capitals and small letters."""
    return any(one.islower() for one in text) and text[:1].isupper()


def cased(cue: str) -> str:
    """Return a cue in capitals as a name: "O'BRIEN" is "O'Brien", "DR. LEE" "Dr. Lee"."""
    if any(one.islower() for one in cue):
        return re.sub(
            r"(?<!\w)(Mc|Mac|De|Di|La|Le|Van|Du)?([^\W\d_a-z]{2,})(?!\w)|(?<!\w)[^\W\d_a-z][^\W\d_]*[^\W\d_a-z]{2}[^\W\d_]*",
            _mixed,
            cue,
        )
    told = re.sub(r"[^\W_]+", lambda found: found[0].capitalize() if found[0].isalpha() else found[0], cue)
    return re.sub(r"(?<=\w['\u2019])S\b", "s", told)


def _as_told(name: str, found: re.Match[str]) -> str:
    """A name where a line has it in capitals, with what ends it: "NURSES", "MIA'S"."""
    return name + (found["many"] or "").lower()


def _mixed(found: re.Match[str]) -> str:
    """A name in letters of both cases: "McDUCK" is "McDuck", "WaLTER" "Walter"."""
    before = next((one for one in ("Mac", "Mc", "De", "Van") if found[0].startswith(one)), "")
    rest = found[0][len(before) :]
    return before + rest.capitalize() if any(one.islower() for one in found[0]) else found[0]


class Names:
    """The people of one text.

    Args:
        text: All of it, in which a name may stand in small letters.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, str] = {}
        self.looks: dict[str, str] = {}

    @property
    def cast(self) -> list[str]:
        """The names so far, roles ("the dealer") left out."""
        return list(dict.fromkeys(name for name in self._known.values() if name[:1].isupper()))

    def add(self, cue: str, look: str = "") -> str:
        """Return the name of a cue, which is known from now on: "McAdam", "the old man"; "" where there is none."""
        told = bare(cue)
        if not any(one.isalpha() for one in told):
            return ""
        key = told.lower()
        if key not in self._known:
            self._known[key] = self._name(told)
        name = self._known[key]
        if look and name[:1].isupper():
            self.looks.setdefault(name, " ".join(look.split()))
        return name

    def _name(self, told: str) -> str:
        if is_title_case(told) and told.split()[0].lower() not in ("the", "a", "an"):
            role = told.lower() in word_set("roles")
            return f"the {told.lower()}" if role and self._is_role(told) else cased(told)
        parts = told.lower().split()
        if parts[0] in ("the", "a", "an"):
            return " ".join(["the", *parts[1:]])
        numbered = _NUMBERED.match(told)
        if numbered is not None:
            return f"{cased(numbered['what'])} {numbered['number']}"
        if all(part.strip(".") in word_set("roles") for part in parts):
            return f"the {told.lower()}"
        found = re.search(rf"(?<!\w){re.escape(told)}(?!\w)", self._text.replace(told, "\0" * len(told)), re.IGNORECASE)
        if found is not None and is_title_case(found[0]):
            return " ".join(found[0].split())
        return f"the {told.lower()}" if self._is_role(told) else cased(told)

    def _is_role(self, told: str) -> bool:
        """Return whether the text has an article before it somewhere: "a DEALER shuffles", "the dealer"."""
        return re.search(_ROLE.pattern + re.escape(told) + r"(?!\w)", self._text, re.IGNORECASE) is not None

    def known(self, told: str) -> str | None:
        """Return the name that a word is known for."""
        return self._known.get(bare(told).lower())

    def told(self, text: str) -> str:
        """Return a line without words in capitals: names as names, other words in small letters."""
        for key in sorted(self._known, key=len, reverse=True):
            if not key.islower() and not key:
                continue
            name = self._known[key]
            plain = name.removeprefix("the ") if name.startswith("the ") else name
            many = r"(?P<many>['\u2019]?S(?!\w))?"
            text = re.sub(rf"(?<!\w){re.escape(key.upper())}{many}(?!\w)", partial(_as_told, plain), text)
        return _CAPITALS.sub(lambda found: self._word(found, text), text)

    def _is_called(self, word: str, after: str) -> bool:
        """Return whether a word in capitals is a person: described ("MARA, a tall woman"), or a name elsewhere and not
        a thing ("his GLOCK")."""
        if word.lower() in word_set("roles"):
            return False
        if _TOLD_OF.match(after) is not None:
            return True
        thing = re.search(rf"{_OF_THINGS}{re.escape(word)}\b", self._text, re.IGNORECASE)
        return thing is None and self._is_name(word) and word.lower() not in TITLES

    def _is_name(self, word: str) -> bool:
        return re.search(rf"(?<=[a-z,;] ){re.escape(cased(word))}\b", self._text) is not None

    def _word(self, found: re.Match[str], text: str) -> str:
        word = found[0]
        plain = re.sub(r"['\u2019][sS]$", "", word)
        ending = "'s" if plain != word else ""
        name = self.known(plain)
        if name is not None:
            return name.removeprefix("the ") + ending
        letters = [one for one in word if one.isalpha()]
        if len(letters) < 2 or word in ("OK", "TV", "I'M", "UFO", "USA", "NASA", "DVD", "CD", "PC", "ID"):
            return word
        if self._is_called(plain, text[found.end() :]):
            return self.add(plain).removeprefix("the ") + ending
        if self._is_name(plain):  # a make, or a title: "his GLOCK"
            return cased(plain) + ending
        begins = re.search(r"(?:\A|[.!?\"\u201d]\s*)$", text[: found.start()]) is not None
        return word.capitalize() if begins else word.lower()


_OF_THINGS = r"(?<!\w)(?:an?|the|his|her|their|its|my|your|our|this|that|another)\s+(?-i:[A-Z]{2,}\s+)?"
_TOLD_OF = re.compile(r"\s*,\s+(?:an?|the|his|her|their|who|our|aged?|\d+)\b")


@lru_cache(maxsize=64)
def names_that_are_words(text: str) -> tuple[str, ...]:
    """Return the words that a text uses as names though they are words: "Will", "May", "Dawn"."""
    told = words()["names"]
    return tuple(
        name
        for name in (*told["months"], *told["modals"], *told["words"])
        if name in text and next(names_at(name, text), None) is not None
    )


def names_at(name: str, text: str, *, known: bool = False) -> Iterator[int]:
    """Yield where in a text a word stands for a person. known: it does elsewhere in the story, so that the beginning of
    a sentence needs no verb after it."""
    told = words()["names"]
    month, modal = name in told["months"], name in told["modals"]
    for found in re.finditer(rf"(?<![\w'\u2019-]){re.escape(name)}(?![\w-])", text):
        if _is_name(text[: found.start()], text[found.end() :], month=month, modal=modal, known=known):
            yield found.start()


_DATE = (
    r"(?:in|of|since|until|till|by|last|next|this|every|early|late|mid|during|from|to|and|or|through|before|after|on)"
    r"\s+$"
)
_SENTENCE = re.compile(r"(?:\A|[.!?\u2026][\"'\u2019\u201d)\]]*\s+|\n\s*|[\"\u201c:]\s*)$")
_AFTER = re.compile(
    r"(?:['\u2019]s\b|\s+(?:and\s+[A-Z]|(?:(?:always|never|then|also|just|quickly|slowly|finally|suddenly|happily)\s+)?"
    r"(?:(?!(?:the|this|his|need|indeed|is|was|red|bed|shed|sacred|hundred)\b)[a-z]+(?:ed|es)\b|(?:is|was|had|has|saw|ran|sat|"
    r"ate|took|gave|went|came|made|found|got|put|threw|drew|flew|grew|knew|said|told|stood|held|kept|left|met|sang|swam|"
    r"woke|wore|wrote|fell|felt|fed|hid|lost|paid|read|rode|rose|sold|sent|shook|slept|spoke|stole|swung|taught|thought|"
    r"understood|won|built|caught|bought|brought|began|bit|blew|broke|chose|cut|dug|drank|drove|forgot|forgave|fought|hit|"
    r"heard|hung|hurt|laid|led|let|lent|lit|lay|meant|rang|set|shot|shut|sank|slid|spent|split|spread|sprang|stuck|struck|"
    r"swept|tore|threw|wept|[a-z]{2,}s)\b)))"
)
_LATER = re.compile(r"\s+(?:you|we|I|he|she|they|it|there|this|that|the|a|an|any|some|my|your|his|her|not|be|have)\b")


def _is_name(before: str, after: str, *, month: bool, modal: bool, known: bool) -> bool:
    begins, acts = _SENTENCE.search(before[-12:]) is not None, _AFTER.match(after) is not None
    if month:
        dated = re.search(_DATE, before[-12:], re.IGNORECASE) is not None and not acts
        if dated or re.match(r"\s+\d|\s+(?:day|morning|evening|sun|rain|night)\b", after):
            return False
    if begins:
        asked = (modal or month) and _LATER.match(after) is not None
        return not asked and (acts or known)
    joined = re.search(r"(?:[A-Z][\w.]*|the|The)\s+$", before[-20:]) is not None and not month
    return acts or known or not joined


def looks_of(text: str) -> Iterable[tuple[str, str]]:
    """Yield the names in capitals that a bracket follows, and what is in it: "ROSA (70)"."""
    pattern = r"(?<!\w)([^\W\d_a-z][^a-z()\[\]\n,.;:!?\"]*[^\W\d_a-z.])\s*\(([^()\n]{1,120})\)"
    for found in re.finditer(pattern, text):
        yield found[1].strip(), found[2].strip()
