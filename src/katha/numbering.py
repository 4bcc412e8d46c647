"""The numbers in the names of pictures, and what each of them counts: a scene, a take, a seed.

Words beside the numbers say it, in the languages and by the programs of `configs/naming.yaml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from katha.configs import load_config

Key = tuple[Any, ...]
NUMBER = "#"
_LETTER = "*"
SIGNS = frozenset((NUMBER, _LETTER))
"""What stands for a number, and for a number's letter, among the words of a name."""


@dataclass(frozen=True)
class Number:
    """A number of a name. kind: place, beside, copy, total, time, plain. label: its word as `naming.yaml` calls it."""

    value: int
    kind: str = "plain"
    label: str = ""
    letter: str = ""
    lead: str = ""
    width: int = 0
    opens: bool = False
    closes: bool = False
    behind: str = ""
    digits: str = ""

    @property
    def key(self) -> Key:
        return (self.lead, self.value, self.letter)


@dataclass(frozen=True)
class Name:
    name: str
    numbers: tuple[Number, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    kinds: Mapping[str, tuple[str, str, int]]
    totals: frozenset[str]
    companions: frozenset[str]
    programs: Mapping[str, tuple[re.Pattern[str], bool]]
    counters: tuple[tuple[str, ...], ...] = field(default=())
    months: tuple[str, ...] = field(default=())


@cache
def vocabulary() -> Vocabulary:
    rows = load_config("naming.yaml")
    kinds: dict[str, tuple[str, str, int]] = {}
    for kind in ("place", "beside"):
        for rank, (label, words) in enumerate(rows[kind].items()):
            kinds |= {plain(word): (kind, label, rank) for word in words}
    kinds |= {plain(word): ("copy", "copy", 0) for word in rows["copy"]}
    programs = {name: (re.compile(row["name"], re.IGNORECASE), row["loose"]) for name, row in rows["programs"].items()}
    counters = tuple(tuple(map(plain, words)) for words in rows["counters"])
    totals, companions = frozenset(map(plain, rows["total"])), frozenset(map(plain, rows["companions"]))
    return Vocabulary(kinds, totals, companions, programs, counters, tuple(map(str, rows["months"])))


def plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_ORIENTAL = "〇零一二三四五六七八九十百"
_SPELT = re.compile(rf"(?:(?<=第)|(?<![^\W_]))[{_ORIENTAL}]+(?=$|[\W_]|[章幕页頁張张格镜鏡場场回話话图圖コ])")
_TOKEN = re.compile(
    r"(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<time>(?<!\d)(?:19|20)\d\d(?P<sep>[-_.]?)(?:0[1-9]|1[0-2])(?P=sep)(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"(?:(?: (?:at|um|à|om|kl\.?|alle|a las) |[-_ .t])+[0-2]\d[-_.:h]?[0-5]\d[-_.:m]?[0-5]\d\d{0,3}(?!\d))?)"
    r"|(?P<stamp>(?<!\d)20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[0-2]\d[0-5]\d[0-5]\d(?!\d))"
    r"|(?P<size>(?<!\d)\d{2,5}x\d{2,5}(?!\d))"
    r"|(?P<hash>(?<![^\W_])(?=[0-9a-f]*[a-f])(?=(?:[a-f]*\d){2})[0-9a-f]{8,64}(?![^\W_]))"
    r"|(?P<copy>[(\[]\s*\d{1,4}\s*[)\]]$)"
    r"|(?P<number>\d+(?:\.\d{1,4}(?![\d.]))?)"
    r"|(?P<word>[^\W\d_]+)"
)
_HALF_DAY = re.compile(r"(?<!\d)(1[0-2]|0?[1-9])([-_.:])([0-5]\d)\2([0-5]\d)[ _]?([ap])\.?m\b")
_DAY = re.compile(r"(?<![^\W\d_])([a-z]{3})[a-z]*\.? (\d{1,2}), ((?:19|20)\d\d),?(?= |$)")
_RUN = re.compile(r"[^\W_]+")
_PIECES = re.compile(r"\d+|\D+")
_ORDINAL = frozenset(("st", "nd", "rd", "th"))
# Longer numbers in file names are hashes and order nothing.
_MOST_DIGITS = 30
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


def value_of(digits: str) -> int:
    return int(digits[:_MOST_DIGITS])


def _oriental(text: str) -> str:
    """Return a Chinese numeral below a thousand as digits."""
    total, digit = 0, 0
    for sign in text:
        value = _ORIENTAL.index(sign)
        if value < 2:
            digit = 0
        elif sign in "十百":
            total, digit = total + (digit or 1) * (10 if sign == "十" else 100), 0
        else:
            digit = 10 * digit + value - 1 if digit else value - 1
    return str(total + digit)


def _of_whole_day(clock: re.Match[str]) -> str:
    """Return a time of twelve hours as one of twenty-four: "9.02.33 PM" is "21.02.33"."""
    hour = int(clock[1]) % 12 + (12 if clock[5] == "p" else 0)
    return f"{hour:02d}{clock[2]}{clock[3]}{clock[2]}{clock[4]}"


def _as_date(found: re.Match[str]) -> str:
    """Return "nov 28, 2026" as "2026-11-28"."""
    months = vocabulary().months
    return f"{found[3]}-{months.index(found[1]) + 1:02d}-{int(found[2]):02d}" if found[1] in months else found[0]


def _opaque(stem: str) -> str:
    """Blank out ids such as `A1B2C`: letters and digits in turn, with no word that is known among them."""
    known = vocabulary().kinds

    def told(run: re.Match[str]) -> str:
        pieces = _PIECES.findall(run[0])
        regular = re.fullmatch(r"(?:[^\W\d_]+\d{2,})+[^\W\d_]?", run[0]) is not None
        strange = len(pieces) >= 4 and not regular and not any(piece in known for piece in pieces)
        return " " if strange and not re.fullmatch(r"[0-9a-f]{8,}|\d+x\d+", run[0]) else run[0]

    return _RUN.sub(told, stem)


class _Reading:
    """One name as it is read, token by token."""

    def __init__(self, text: str) -> None:
        self.numbers: list[Number] = []
        self.words: list[str] = []
        self.text = text
        self._word, self._word_end, self._number_end, self._after_id = "", -1, -1, False

    def take(self, token: re.Match[str]) -> None:
        """Take the next token."""
        kind, said = str(token.lastgroup), token[0]
        if kind in ("id", "hash"):
            self._word, self._after_id = "", True
        elif kind == "word":
            self._take_word(said, token)
        else:
            self.numbers.append(self._counted(self._number(kind, said, token), kind, token.start()))
            self.words.append(NUMBER)
            self._word, self._number_end = "", token.end()

    def _take_word(self, said: str, token: re.Match[str]) -> None:
        glued = bool(self.numbers) and token.start() == self._number_end
        if glued and said in _ORDINAL:
            return
        if self.numbers and not self._word:
            ends = token.end() == len(self.text.rstrip())
            near = glued or (ends and _close(self.text[self._number_end : token.start()]))
            if near and _is_letter(said):
                self.numbers[-1] = replace(self.numbers[-1], letter=said, closes=ends)
                self.words.append(_LETTER)
                return
            if not self.numbers[-1].behind:
                self.numbers[-1] = replace(self.numbers[-1], behind=said)
        self.words.append(said)
        self._word, self._word_end = said, token.end()

    def _number(self, kind: str, said: str, token: re.Match[str]) -> Number:
        digits = "".join(sign for sign in said if sign.isdecimal())
        whole, _, part = said.partition(".") if kind == "number" else (digits, "", "")
        return Number(
            value_of(whole),
            letter=f".{int(part):04d}" if part else "",
            width=len(whole),
            opens=not self.text[: token.start()].strip(" _-.([#"),
            closes=not self.text[token.end() :].strip(" _-.)]"),
            digits=digits,
        )

    def _counted(self, made: Number, kind: str, start: int) -> Number:
        """Return a number with what it counts: by its form, or by the word before it."""
        known, word = vocabulary(), self._word
        if kind in ("time", "stamp"):
            # A date alone sorts before all hours of it.
            return replace(made, value=value_of(made.digits.ljust(14, "0")), kind="time", label="time")
        if kind == "size":
            return replace(made, kind="beside", label="setting")
        if kind == "copy" and not made.opens:
            return replace(made, kind="copy", label="copy")
        if self._after_id:
            return replace(made, kind="beside", label="variant")
        if word in known.totals and self.numbers:
            return replace(made, kind="total", label="total")
        if word in known.kinds:
            return replace(made, kind=known.kinds[word][0], label=known.kinds[word][1])
        leads = _is_letter(word) and _close(self.text[self._word_end : start])
        return replace(made, lead=word) if leads else made


def read_name(name: str) -> Name:
    """Return the numbers of a file's name with what each of them counts."""
    stem = plain(Path(name).stem).strip()
    stem = _SPELT.sub(lambda spelt: _oriental(spelt[0]), stem)
    stem = _HALF_DAY.sub(_of_whole_day, _DAY.sub(_as_date, stem))
    reading = _Reading(stem if _UUID.search(stem) else _opaque(stem))
    for token in _TOKEN.finditer(reading.text):
        reading.take(token)
    return Name(name, tuple(reading.numbers), tuple(reading.words))


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()


def _close(gap: str) -> bool:
    return len(gap) <= 1


def natural(name: str) -> list[tuple[int, str]]:
    """Return what names are sorted by as a file manager sorts them: the numbers in them count as numbers."""
    parts = re.split(r"(\d+)", plain(name))
    return [(value_of(part), "") if part.isdecimal() else (-1, part) for part in parts if part]
