"""The normal form of a text: one sign for one letter, no invisible signs, words whole again."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e\u2066-\u2069\u180e\ufff9-\ufffc\u034f]")
_JOINER = re.compile("(?<=[A-Za-z])[\u200c\u200d]|[\u200c\u200d](?=[A-Za-z])")
_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_BREAKS = re.compile("\r\n?|[\u2028\u0085\x0b]")
_DIVIDED = re.compile(
    "(?P<left>[^\\W\\d_]+)(?:-|\u2010|\u00ac|\u00ad)[ \t]*\n[ \t]*(?P<right>[a-z\u00df-\u00ff][^\\W\\d_]*)"
)
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]+);?")
_PREFIXES = frozenset(
    [
        "self",
        "well",
        "half",
        "ex",
        "non",
        "co",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "mother",
        "father",
        "sister",
        "brother",
        "son",
        "daughter",
        "ill",
        "far",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "old",
        "new",
        "long",
        "short",
        "ever",
        "cross",
        "good",
        "blue",
        "so",
        "merry",
        "hard",
        "high",
        "low",
        "left",
        "right",
        "full",
        "open",
        "great",
        "step",
        "brand",
        "wide",
        "all",
    ]
)
"""What keeps its hyphen at a line's end: "well-known"."""


def normal(text: str) -> str:
    """Return `text` in its normal form; line ends, quotes and the words themselves stay.

    Mojibake, entities of HTML, ligatures and wide letters are mended; letters of mathematics are plain ones; soft
    hyphens and signs without width go; words that a line's end divides are joined.
    """
    import ftfy

    plain = _BREAKS.sub("\n", text).replace("\u2029", "\n\n").replace("\f", "\n\n")
    config = ftfy.TextFixerConfig(
        unescape_html=False,
        uncurl_quotes=False,
        normalization="NFC",
        fix_line_breaks=False,
        remove_terminal_escapes=True,
    )
    plain = ftfy.fix_text(plain, config)
    for _ in range(2):  # "&amp;nbsp;"
        plain = _ENTITY.sub(_unescaped, plain)
    plain = _letters(plain)
    plain = joined(plain)
    plain = _BLANKS.sub(" ", _JOINER.sub("", _INVISIBLE.sub("", plain)))
    return "\n".join(line.rstrip() for line in plain.split("\n"))


def _unescaped(found: re.Match[str]) -> str:
    import html

    told = html.unescape(found[0])
    return told if told != found[0] and (found[0].endswith(";") or found[0].startswith("&#")) else found[0]


def _letters(text: str) -> str:
    """Return a text whose letters and digits are the plain ones: those joined as one sign, wide, or mathematical."""
    if text.isascii():
        return text
    return "".join(_letter(one) for one in text)


def _letter(sign: str) -> str:
    if sign.isascii() or unicodedata.category(sign) not in ("Ll", "Lu", "Nd", "So"):
        return sign
    plain = unicodedata.normalize("NFKC", sign)
    return plain if plain != sign and plain.isalnum() and plain.isascii() else sign


def joined(text: str) -> str:
    """Return a text whose words are whole where the end of a line divides them."""
    lower = text.lower()

    def whole(found: re.Match[str]) -> str:
        left, right = found["left"], found["right"]
        kept = left.lower() in _PREFIXES or re.search(rf"\b{re.escape(left.lower())}-{re.escape(right.lower())}", lower)
        return f"{left}-{right}" if kept else f"{left}{right}"

    told = _DIVIDED.sub(whole, text)
    return re.sub(r"(?<=[^\W\d_])-[ \t]*\n[ \t]*(?=[A-Z][a-z])", "-", told)  # "Smith-\nJones"
