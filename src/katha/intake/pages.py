"""Which code page a text is in, where that is sure: no page whose letters its language has gives another reading.

charset-normalizer finds a likely page for any bytes, and is often wrong with a few sentences (docs/research/intake.md).
A story is read only where one reading is left: a language is known by its small words, and its letters say the page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType

from katha.intake.names import words

_PAGES = (
    *("cp1252", "cp1250", "cp1254", "iso8859_2", "iso8859_9", "mac_roman", "cp850", "cp437", "cp852"),
    *("cp1251", "koi8_u", "cp866", "mac_cyrillic", "iso8859_5", "cp1253", "iso8859_7", "cp1255"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "cp949"),
)
_FEWEST_SIGNS = 6
_FEWEST_WORDS = 3
_MOST_FOREIGN = 0.5
_SMALL_SIGNS = 0.05
_JAPANESE = frozenset(("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC"))
_EAST: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "shift_jis": _JAPANESE,
        "euc_jp": _JAPANESE,
        "gb18030": frozenset(("CJK",)),
        "big5": frozenset(("CJK",)),
        "cp949": frozenset(("HANGUL",)),
    }
)
"""What a text is of in each page of the East."""
_WORDS_OF_ONE = "\u00e0\u00e9\u00e8\u00f3\u00e5\u00f6"
_IN_WORD = re.compile("(?<=[^\\W\\d_])[\u20ac\u00a3\u00b0\u00a7\u00a9\u2022](?=[^\\W\\d_])")
_NO_SIGNS = frozenset(("Cc", "Co", "Cn", "So", "Sk", "Sm", "Sc"))
_LETTERS = re.compile(r"[^\W\d_]+")
_OPENS, _CLOSES = "\u2018\u201c\u201e\u201a\u00ab\u2039\u00bf\u00a1", "\u2019\u201d\u00bb\u203a\u2026"
_NO_PLACE = re.compile(
    rf"(?<=[^\W\d_])[{_OPENS.replace(chr(0x201C), '')}](?=[^\W\d_])|(?<=\s)[\u2026\u2019\u201d](?=\s)"
)
_SIGNS = frozenset(f"{_OPENS}{_CLOSES}\u2013\u2014\u2022\u2116\u00a0\u00ad")
_MONEY = frozenset("\u20ac\u00a3\u00b0\u00a7\u00a9")


def sure_page(data: bytes) -> str | None:
    """Return the code page of a text that is not in UTF-8; None where too few of its signs are beyond ASCII, or where
    several pages read well or none does."""
    if sum(one > 0x7F for one in data) < _FEWEST_SIGNS:
        return None
    found: dict[str, str] = {}
    for page in _PAGES:
        try:
            text = data.decode(page)
        except UnicodeDecodeError:
            continue
        if _reads_well(text, page):
            found.setdefault(text, page)
    return next(iter(found.values())) if len(found) == 1 else None


def _reads_well(text: str, page: str) -> bool:
    foreign = [one for one in text if not one.isascii() and one.isalpha()]
    signs = [one for one in text if not one.isascii() and not one.isalpha()]
    letters = sum(map(str.isalpha, text))
    if len(foreign) > _MOST_FOREIGN * letters:
        return _reads_well_elsewhere(text, foreign, page)
    return (
        set(signs) <= _SIGNS | _MONEY
        and _IN_WORD.search(text) is None
        and _NO_PLACE.search(text) is None
        and all(unicodedata.name(one, "").startswith("LATIN") for one in foreign)
        and not any(_is_broken(word) for word in _LETTERS.findall(text))
        and {one.lower() for one in foreign} <= _alphabet(text)
    )


def _is_broken(word: str) -> bool:
    """Return whether a letter beyond ASCII is a capital after a small one, or a word alone that no language has."""
    if len(word) == 1:
        return not word.isascii() and word.lower() not in _WORDS_OF_ONE
    return any(two.isupper() and not two.isascii() and one.islower() for one, two in pairwise(word))


def _alphabet(text: str) -> frozenset[str]:
    """Return the letters beyond ASCII of the language whose small words a text has most of; none where it has few."""
    told = [word.lower() for word in re.findall(r"(?<![^\W\d_])[A-Za-z]+(?![^\W\d_])", text)]
    counts = {name: sum(word in small for word in told) for name, (small, _) in _languages().items()}
    best, *others = sorted(counts, key=counts.__getitem__, reverse=True)
    if counts[best] < _FEWEST_WORDS or counts[best] == counts[others[0]]:
        return frozenset()
    return _languages()[best][1]


@cache
def _languages() -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    """Return small words in ASCII and letters beyond it, by language."""
    return {
        str(name): (frozenset(map(str, told["words"])), frozenset(str(told["letters"])))
        for name, told in words()["languages"].items()
    }


def _reads_well_elsewhere(text: str, foreign: list[str], page: str) -> bool:
    """Return whether a text that is not in Latin letters is of one other script, as a language writes it."""
    scripts = [unicodedata.name(one, "?").split()[0].split("-")[0] for one in foreign]
    share = {name: scripts.count(name) / len(scripts) for name in set(scripts)}
    signs = {one for one in text if not one.isascii() and not one.isalpha()}
    if share.keys() in ({"CYRILLIC"}, {"GREEK"}, {"HEBREW"}):
        upper = any(map(str.isupper, foreign)) or share.keys() == {"HEBREW"}
        return upper and signs <= _SIGNS and not any(map(_has_late_capital, _LETTERS.findall(text)))
    small = sum(one in words()["small_signs"][page] for one in foreign) / len(foreign) if page in _EAST else 0.0
    return (
        small >= _SMALL_SIGNS
        and share.keys() <= _EAST.get(page, set())
        and not {unicodedata.category(one) for one in signs} & _NO_SIGNS
    )


def _has_late_capital(word: str) -> bool:
    return not word.isupper() and any(one.isupper() for one in word[1:])
