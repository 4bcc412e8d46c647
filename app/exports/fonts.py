"""Fonts for any script: the user's own first, then what is installed, then what comes with packages; and how words of
any script are broken into lines and ordered on them."""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Self

from katha.app.exports.board import ExportBoard
from katha.errors import InputFileError, UsageError

_FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "~/Library/Fonts",
    "C:/Windows/Fonts",
)
_PACKAGED = {"reportlab": "fonts", "matplotlib": "mpl-data/fonts/ttf"}
"""Packages that bring fonts, for machines that have none."""
_PREFERRED = ("NotoSans-Regular", "DejaVuSans", "Arial", "LiberationSans-Regular")
_PLAIN = ("-regular", "sans")
_SIGNS = ("So", "Sk", "Cf", "Mn")


class Fonts:
    """Which font draws which letters.

    Args:
        own: TrueType files that are tried first; of a collection (.ttc) the first face.

    Raises:
        InputFileError: one of them does not exist or is not a TrueType font.
    """

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._letters: dict[Path, frozenset[int]] = {}
        self._own = tuple(own)
        self._installed: tuple[Path, ...] | None = None
        for path in self._own:
            if not path.is_file() or not self._of(path):
                what, hint = _refused(path)
                raise InputFileError(f"{str(path)!r} {what}.", hint=hint)

    def runs(self, text: str) -> list[tuple[Path, str]]:
        """Return `text` in pieces, each with a font that has its letters.

        Blanks stay with the piece before them. What no font has is drawn with the first one, as its empty box.
        """
        plain = self.best(text)
        letters = self._of(plain)
        chosen: list[tuple[Path, str]] = []
        for letter in text:
            if letter.isspace() or ord(letter) in letters:
                font = chosen[-1][0] if letter.isspace() and chosen else plain
            else:
                font = next((path for path in self._all() if ord(letter) in self._of(path)), plain)
            chosen.append((font, letter))
        return [(font, "".join(part for _, part in parts)) for font, parts in groupby(chosen, key=lambda item: item[0])]

    def best(self, text: str) -> Path:
        """Return the first font that has every letter of `text`, else the one that has most of them.

        Pictures among them (emoji and other signs) do not choose the font of the words that they stand in.
        """
        letters = [letter for letter in text if not letter.isspace()]
        wanted = {ord(letter) for letter in letters if unicodedata.category(letter) not in _SIGNS} or set(
            map(ord, letters)
        )
        best, most = None, -1
        for path in self._all():
            held = len(wanted & self._of(path))
            if held == len(wanted):
                return path
            if held > most:
                best, most = path, held
        if best is None:
            raise InputFileError("No TrueType font was found.", hint="Give one with --font FILE.ttf.")
        return best

    def lacks(self, font: Path, text: str) -> bool:
        """Return whether a font has not every letter of `text`."""
        return any(ord(letter) not in self._of(font) for letter in text if not letter.isspace())

    def checked(self, sheet: ExportBoard) -> Self:
        """Return these fonts, if they have every letter of a board's words.

        Raises:
            UsageError: no font has some of them; boxes would stand in their place.
        """
        said = (part for shot in sheet.shots for part in (shot.caption, shot.dialogue, shot.action, shot.notes))
        lacking = self.missing(sheet.title + "".join(said))
        if lacking:
            raise UsageError(
                f"No font on this machine has the letters {lacking[:24]!r}.",
                hint="Give a TrueType font that has them with --font FILE.ttf, or leave captions out with --plain.",
            )
        return self

    def missing(self, text: str) -> str:
        """Return the letters of `text` that no font has, each once."""
        lacking = {letter for letter in text if not letter.isspace() and letter.isprintable()}
        for path in self._all():
            lacking = {letter for letter in lacking if ord(letter) not in self._of(path)}
            if not lacking:
                break
        return "".join(sorted(lacking))

    def _all(self) -> tuple[Path, ...]:
        if self._installed is None:
            self._installed = (*self._own, *sorted(_found(), key=_order))
        return self._installed

    def _of(self, path: Path) -> frozenset[int]:
        if path not in self._letters:
            self._letters[path] = _letters(path)
        return self._letters[path]


def _found() -> Iterator[Path]:
    for name in _FOLDERS:
        folder = Path(name).expanduser()
        if folder.is_dir():
            yield from folder.rglob("*.tt[cf]")
    for name, where in _PACKAGED.items():
        package = importlib.util.find_spec(name)
        if package is not None and package.origin is not None:
            found = (Path(package.origin).parent / where).glob("*.ttf")
            # A font of last resort has a box for every letter there is.
            yield from (path for path in found if not path.name.startswith("LastResort"))


def _order(path: Path) -> tuple[int, int, str]:
    """Order upright faces of the usual families first."""
    stem = path.stem
    rank = _PREFERRED.index(stem) if stem in _PREFERRED else len(_PREFERRED)
    return rank, 0 if stem.lower().endswith(_PLAIN) else 1, path.name


def _letters(path: Path) -> frozenset[int]:
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with TTFont(path, lazy=True, fontNumber=0) as font:
            return frozenset(font.getBestCmap() or ()) if "glyf" in font else frozenset()
    except (TTLibError, OSError, ValueError, KeyError, AssertionError):
        return frozenset()


def _refused(path: Path) -> tuple[str, str]:
    """Return what a file is that has no TrueType outlines, and what to give instead."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with TTFont(path, lazy=True, fontNumber=0) as font:
            if "CFF " in font or "CFF2" in font:
                return "has PostScript outlines (CFF), which are not embedded", "Give a file that ends in .ttf or .ttc."
            if {"CBDT", "sbix", "SVG "} & set(font.keys()):
                return "has coloured pictures in place of outlines", "Give one with outlines, such as Noto Emoji."
    except (TTLibError, OSError, ValueError, AssertionError):
        pass
    return "is no TrueType font", "Give a file that ends in .ttf or .ttc."


# Lines. A font's own tables join and place letters within a word (HarfBuzz does that); what is left is where a line
# ends and, where some words run from right to left, in which order they stand on it.

_OPENING, _CLOSING = "\u201c\u2018\u300c\u300e\uff08\u300a\u3010", "\u201d\u2019\u300d\u300f\uff09\u300b\u3011"
_NEVER_FIRST = frozenset(_CLOSING + "\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1a\uff1b\u2026\u30fc\u3005")


def has_no_blanks(letter: str) -> bool:
    """Return whether a letter's script is written without blanks, so that a line may end beside it."""
    return any(
        first <= letter <= last for first, last in (("\u2e80", "\u9fff"), ("\uac00", "\ud7af"), ("\uff00", "\uffef"))
    )


def needs_shaping(text: str) -> bool:
    """Return whether letters of a text are joined, reordered or stacked; others look better without odd ligatures."""
    return any(
        unicodedata.combining(letter) or (letter >= "\u0590" and letter.isalpha() and not has_no_blanks(letter))
        for letter in text
    )


def broken(text: str, width: float, measure: Callable[[str], float]) -> list[str]:
    """Return `text` in lines that are no wider than `width`, as `measure` gives it.

    Lines end at blanks, or between letters of scripts that have none, never before a closing mark; a word that is
    wider than a line is broken anywhere.
    """
    lines: list[str] = []
    for piece in _pieces(text):
        joined = f"{lines[-1]}{piece}" if lines else piece.lstrip()
        if lines and measure(joined.rstrip()) <= width:
            lines[-1] = joined
            continue
        rest = piece.lstrip()
        while measure(rest.rstrip()) > width and len(rest) > 1:
            fits = next((at for at in range(len(rest) - 1, 1, -1) if measure(rest[:at]) <= width), 1)
            lines.append(rest[:fits])
            rest = rest[fits:]
        lines.append(rest)
    return [line.strip() for line in lines]


def _pieces(text: str) -> list[str]:
    """Return what may stand on a line of its own, with the blank before it."""
    pieces: list[str] = []
    for letter in " ".join(text.split()):
        opens = not pieces or letter == " "
        if not opens and has_no_blanks(letter) and letter not in _NEVER_FIRST:
            opens = pieces[-1][-1] not in _OPENING and pieces[-1] != " "
        elif not opens:
            opens = has_no_blanks(pieces[-1][-1]) and letter not in _NEVER_FIRST and pieces[-1][-1] not in _OPENING
        if opens:
            pieces.append(letter)
        else:
            pieces[-1] += letter
    return pieces


def is_leftward(text: str) -> bool:
    """Return whether a text begins with a letter of a script that runs from right to left."""
    found = (unicodedata.bidirectional(letter) for letter in text)
    return next((kind != "L" for kind in found if kind in ("L", "R", "AL")), False)


def has_leftward(text: str) -> bool:
    """Return whether any letter of a text runs from right to left."""
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)


def as_seen(line: str, leftward: bool) -> str:
    """Return a line's words from left to right as they are seen, by the bidirectional algorithm (UAX 9) over words.

    Letters within a word are left to the shaping. Numbers and marks between words of one direction go with them.
    leftward: whether the whole text runs from right to left.
    """
    words = line.split(" ")
    alone = [_direction(word) for word in words]
    runs = [*alone]
    for at, run in enumerate(runs):
        if run is None:  # a number or a mark
            before = next((item for item in reversed(runs[:at]) if item is not None), leftward)
            after = next((item for item in runs[at + 1 :] if item is not None), leftward)
            counted = before is False and any(map(str.isdigit, words[at]))  # a number goes with the Latin before it
            runs[at] = before if before == after or counted else leftward
    words = [_turned(word) if run and own is None else word for word, run, own in zip(words, runs, alone, strict=True)]
    ordered: list[str] = []
    held: list[str] = []
    for word, run in zip(words, runs, strict=True):
        if run == leftward:
            ordered += [*reversed(held), word]
            held = []
        else:
            held.append(word)
    ordered += reversed(held)
    return " ".join(reversed(ordered) if leftward else ordered)


def _turned(word: str) -> str:
    """Return a number or marks as they stand among words from right to left: the marks around digits change sides."""
    core = word.strip("".join(letter for letter in word if not letter.isalnum()))
    before, _, after = word.partition(core) if core else ("", "", word)
    marks = str.maketrans("()[]{}<>\u00ab\u00bb", ")(][}{><\u00bb\u00ab")
    return after[::-1].translate(marks) + core + before[::-1].translate(marks)


def _direction(word: str) -> bool | None:
    """Return whether a word runs from right to left; None where it has no letter that says so."""
    return is_leftward(word) if any(unicodedata.bidirectional(letter) in ("L", "R", "AL") for letter in word) else None
