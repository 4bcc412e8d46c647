"""A character's look by fields: build, skin, hair and clothing, put into the phrase that every prompt says.

The words of the fields are in `configs/looks.yaml`. What a look says already of a field gives way to it; everything
else of the look stays letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from pydantic import TypeAdapter

from katha.configs import load_config

LookField = Literal["build", "skin", "hair", "clothing"]
LOOK_FIELDS: tuple[LookField, ...] = get_args(LookField)
"""The fields, in the order in which a look says them."""
_CUT = re.compile(
    r"(\s*[,;]\s*(?:and\s+)?(?:(?:with|wearing|dressed in|in)\s+)?|\s+(?:and|with|wearing|dressed in|in)\s+)",
    re.IGNORECASE,
)
_JOINS = (" and ", ", ", "; ", ", and ")
_WORN = re.compile(r"^(?:wearing|dressed|in)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Words:
    said: str
    knows: frozenset[str]
    before: frozenset[str]


@cache
def _fields() -> Mapping[LookField, _Words]:
    return TypeAdapter(dict[LookField, _Words]).validate_python(load_config("looks.yaml"))


def worded_look(field: LookField, words: str) -> str:
    """Return what stands in a field as a phrase: "red" is "red hair", "a long braid" stays."""
    plain = " ".join(words.split()).strip(" .,;")
    known = _fields()[field]
    if field == "clothing":
        return plain if _WORN.match(plain) else known.said.format(plain)
    if not known.knows.isdisjoint(_bare(plain)):
        return plain
    said = known.said.format(plain)
    return re.sub(r"^a (?=[aeiou])", "an ", said) if not re.match(r"a an? ", said) else said[2:]


def says(look: str, field: LookField, kind: str = "") -> bool:
    """Return whether the look of a character of a kind says something of a field."""
    return _without(look, field, kind) != look


def dressed(look: str, told: Mapping[LookField, str], kind: str = "") -> str:
    """Return the look of a character of a kind with what the fields say; an empty text takes away what it says of that
    field."""
    for field in told:
        look = _without(look, field, kind)
    given = {field: " ".join(told[field].split()).strip(" .,;") for field in LOOK_FIELDS if field in told}
    for field in ("hair", "skin", "build"):  # the outermost last: "a tall bald man"
        if given.get(field) and _is_before(field, given[field]):
            look = _led(look, given[field])
            given[field] = ""
    phrases = [worded_look(field, given[field]) for field in LOOK_FIELDS if given.get(field) and field != "clothing"]
    if phrases:
        said = f"{', '.join(phrases[:-1])} and {phrases[-1]}" if len(phrases) > 1 else phrases[0]
        look = f"{look}{', ' if re.search(r' (?:with|wearing) ', look) else ' with '}{said}" if look else said
    if given.get("clothing"):
        worn = worded_look("clothing", given["clothing"])
        look = f"{look}, {worn}" if look else worn
    return look


def _led(look: str, words: str) -> str:
    """A look that begins with some words, after its article if there is one."""
    article = re.match(r"(?:an?|the)(?=\s)", look, re.IGNORECASE)
    if article is None:
        return f"{words} {look}"
    right = _article(article[0], words) if article[0].lower() != "the" else article[0]
    return f"{right} {words}{look[article.end() :]}"


def _is_before(field: LookField, words: str) -> bool:
    """Return whether words stand before what the character is: "tall and thin"."""
    several = [word for word in re.split(r"[,\s]+", words.lower()) if word != "and"]
    return bool(several) and _fields()[field].before.issuperset(several)


def _bare(text: str) -> set[str]:
    """The words of a text, those of a compound apart as well."""
    lower = text.lower()
    return {*re.findall(r"[\w-]+", lower), *re.findall(r"\w+", lower)}


def _without(look: str, field: LookField, kind: str) -> str:
    """A look without its phrases of a field; its beginning, which says what the character is, loses words only."""
    known = _fields()[field]
    named = re.search(rf"\b{re.escape(kind.split()[-1])}\b", look, re.IGNORECASE) if kind.split() else None
    end = named.end() if named is not None else 0
    first, *rest = _CUT.split(look[end:])
    head, before = look[:end] + first, look[:end] + first
    for word in known.before:
        head = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])(?:\s*,|\s+and\b)?\s+", "", head, flags=re.IGNORECASE)
    if head != before:
        head = re.sub(
            r"^(an?)(?=\s)", lambda found: _article(found[1], head[len(found[1]) :]), head, flags=re.IGNORECASE
        )
    kept: list[tuple[str, str]] = []
    led = ""
    for cut, phrase in zip(rest[::2], rest[1::2], strict=True):
        worn = field == "clothing" and bool(re.search(r"wearing|dressed", cut))
        if worn or not known.knows.isdisjoint(_bare(phrase)):
            led = led or ("" if cut.lower() in _JOINS else cut)
            continue
        goes_on = bool(led) and cut.lower() in _JOINS and not phrase.lower().split()[0].endswith("ing")
        kept.append((led if goes_on else cut, phrase))
        led = ""
    return head + "".join(f"{cut}{phrase}" for cut, phrase in kept)


def _article(article: str, after: str) -> str:
    """The article that goes with what comes after it."""
    right = "an" if after.lstrip()[:1].lower() in tuple("aeiou") else "a"
    return right.capitalize() if article[0].isupper() else right
