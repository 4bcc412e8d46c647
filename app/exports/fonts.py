"""Fonts for any script: the user's own first, then what is installed, then what comes with packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Self

from katha.app.exports.board import Sheet
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


class Fonts:
    """Which font draws which letters.

    Args:
        own: TrueType files that are tried first.

    Raises:
        InputFileError: one of them does not exist or is no TrueType font.
    """

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._letters: dict[Path, frozenset[int]] = {}
        self._own = tuple(own)
        self._installed: tuple[Path, ...] | None = None
        for path in self._own:
            if not path.is_file() or not self._of(path):
                raise InputFileError(f"{str(path)!r} is no TrueType font.", hint="Give a file that ends in .ttf.")

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
        """Return the first font that has every letter of `text`, else the one that has most of them."""
        wanted = {ord(letter) for letter in text if not letter.isspace()}
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

    def checked(self, sheet: Sheet) -> Self:
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
            yield from folder.rglob("*.ttf")
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
        with TTFont(path, lazy=True) as font:
            return frozenset(font.getBestCmap() or ()) if "glyf" in font else frozenset()
    except (TTLibError, OSError, ValueError, KeyError, AssertionError):
        return frozenset()
