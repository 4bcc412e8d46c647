"""Pictures of characters that the user brings (a sheet, a photograph, a drawing), for every renderer that uses them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from katha.errors import InputFileError, UsageError
from katha.jsonio import sha256_hex
from katha.pictures import as_png, decode, read_picture
from katha.schema import Character

if TYPE_CHECKING:
    from PIL.Image import Image

_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif"))
_SMALLEST = 16
_LONGEST = 8
"""The longest side over the shortest that FLUX.2's own input check takes."""
# Larger photographs are scaled down: they are kept with every run, and no renderer draws larger.
_KEPT_SIDE = 2048
_ARTICLE = re.compile(r"^(the|an?) ")


def _plain(name: str) -> str:
    """Return what is compared of a name: small letters, blanks for other signs, no article."""
    return _ARTICLE.sub("", re.sub(r"[\W_]+", " ", name.casefold()).strip())


class CharacterPictures(Mapping[str, bytes]):
    """A picture's bytes by the name of the plan's character: the files `NAME.png` of a folder, and `NAME=FILE`.

    A folder's file stands for a character whatever its capitals, an article, or `_` and `-` for blanks. Every picture
    is read and looked at once, before anything is drawn.
    """

    def __init__(self, folder: Path | None = None, given: Sequence[str] = ()) -> None:
        """Read the pictures; one that is given by name goes before the folder's.

        Raises:
            UsageError: no such folder, no picture in it, two pictures of one character, or no NAME=FILE.
            InputFileError: a picture is missing, unreadable, too small, or too long for its height.
        """
        self._files: dict[str, Path] = {}
        self._pictures: dict[str, bytes] = {}
        for pictures in (_found(folder.expanduser()) if folder is not None else [], [_split(item) for item in given]):
            seen: dict[str, Path] = {}
            for name, path in pictures:
                key = _plain(name)
                if key in seen:
                    message = f"The character {name!r} has two references, {seen[key].name!r} and {path.name!r}."
                    raise UsageError(message, hint="Give one picture a character.")
                seen[key] = self._files[key] = path
                self._pictures[key] = _read(name, path)

    def __getitem__(self, name: str) -> bytes:
        return self._pictures[_plain(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pictures)

    def __len__(self) -> int:
        return len(self._pictures)

    def spec(self) -> dict[str, str]:
        """Return the pictures' hashes by name; where they lie changes nothing."""
        return {name: sha256_hex(data) for name, data in sorted(self._pictures.items())}

    def unused(self, characters: Iterable[Character]) -> str | None:
        """Return a sentence for a board none of whose characters has a picture here; None where one has, or none is."""
        names = sorted({character.name for character in characters})
        if not names or not self._pictures or any(name in self for name in names):
            return None
        files = ", ".join(sorted(path.name for path in self._files.values()))
        return f"None of the reference pictures ({files}) is of a character of this board ({', '.join(names)})."


def _split(item: str) -> tuple[str, Path]:
    name, equals, file = (part.strip() for part in item.partition("="))
    if not (name and equals and file):
        raise UsageError(f"The reference {item!r} is not NAME=FILE.", hint="For example reference=lion=lion.png.")
    return name, Path(file).expanduser()


def _found(folder: Path) -> list[tuple[str, Path]]:
    if not folder.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r} with pictures of characters.", hint="Check --characters.")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES and path.name[0] != ".")
    if not paths:
        hint = "Name each picture after its character: lion.png."
        raise UsageError(f"The folder {str(folder)!r} holds no picture of a character.", hint=hint)
    return [(path.stem, path) for path in paths]


def _read(name: str, path: Path) -> bytes:
    data = read_picture(path, f"The reference of {name!r} ({str(path)!r})")
    decode_reference(data, f"The reference of {name!r} ({str(path)!r})", f"The reference of {name!r}, {str(path)!r},")
    return data


def reference_png(data: bytes, what: str) -> bytes:
    """Return a character's picture as it is kept: a PNG of at most 2048 pixels a side without metadata.

    Raises:
        InputFileError: it is unreadable, too small, or too long for its height; the sentence begins with `what`.
    """
    picture = decode_reference(data, what)
    picture.thumbnail((_KEPT_SIDE, _KEPT_SIDE))
    return as_png(picture)


def decode_reference(data: bytes, where: str, what: str | None = None) -> Image:
    """Return a character's picture, decoded; `what`: what a message about its size names, if not `where`.

    Raises:
        InputFileError: as for `reference_png`.
    """
    picture = decode(data, where)
    hint = ""
    if min(picture.size) < _SMALLEST:
        hint = f"Give a picture of at least {_SMALLEST}x{_SMALLEST}."
    elif max(picture.size) > _LONGEST * min(picture.size):
        hint = f"Give a picture of which no side is more than {_LONGEST} times the other."
    if hint:
        raise InputFileError(f"{what or where} has {picture.width}x{picture.height} pixels.", hint=hint)
    return picture


def joined(pictures: Sequence[Image]) -> Image:
    """Return one picture of all, each as tall as the first: in a row, from four on in rows, nearly a square."""
    from PIL import Image

    columns = len(pictures) if len(pictures) < 4 else math.ceil(len(pictures) ** 0.5)
    height = pictures[0].height
    fitted = [one.resize((max(1, round(one.width * height / one.height)), height)) for one in pictures]
    rows = [fitted[start : start + columns] for start in range(0, len(fitted), columns)]
    whole = Image.new("RGB", (max(sum(one.width for one in row) for row in rows), height * len(rows)), "white")
    for number, row in enumerate(rows):
        left = 0
        for one in row:
            whole.paste(one, (left, number * height))
            left += one.width
    return whole


def at_most(pictures: Sequence[Image], count: int) -> list[Image]:
    """Return `count` pictures at most: those that are too many stand together in the last one."""
    if len(pictures) <= count:
        return list(pictures)
    return [*pictures[: count - 1], joined(pictures[count - 1 :])]
