"""Bytes to text: the encoding of a file, by its mark or its form; a code page is read where it is sure, or named."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from katha.errors import InputFileError
from katha.jsonio import read_bytes

_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KNOWN: Mapping[bytes, str] = MappingProxyType(
    {
        b"PK\x03\x04": "a zip archive (a Word, OpenDocument or EPUB file is one)",
        b"%PDF": "a PDF",
        b"{\\rtf": "a Rich Text file",
        b"\xd0\xcf\x11\xe0": "an old Office file",
        b"\x89PNG": "a picture",
        b"\xff\xd8\xff": "a picture",
        b"GIF8": "a picture",
        b"\x1f\x8b": "a gzip archive",
        b"SQLite": "a database",
    }
)
"""How files begin that are no text, and what they are."""
_USUAL = ("latin_1", "cp1252")
_LOOKED_AT = 4_000
# In UTF-16 of any European language every second byte is null; in UTF-8 none is.
_FEWEST_NULLS = 0.3
_SHOWN = 60


@dataclass(frozen=True)
class Decoded:
    """A file's text, and the encoding that it was read in."""

    text: str
    encoding: str


def decode_file(path: Path, *, limit: int, encoding: str | None = None) -> Decoded:
    """Return the text of a file: UTF-8, UTF-16 or UTF-32 by its mark or its form, a code page where that is sure
    (`pages`), or what `encoding` says.

    Raises:
        InputFileError: it cannot be read, is not text, or is in a code page that is not sure; the likely one is named.
    """
    data = read_bytes(path, limit=limit)
    if encoding is not None:
        return Decoded(_as_told(path, data, encoding), encoding)
    for mark, name in _MARKS:
        if data.startswith(mark):
            return Decoded(_decoded(path, data, name), name.removesuffix("-sig"))
    kind = next((said for begins, said in _KNOWN.items() if data.startswith(begins)), None)
    if kind is not None:
        raise InputFileError(
            f"{str(path)!r} is a binary file, not text: {kind}.",
            hint="Save the story as plain text in UTF-8 and give that.",
        )
    wide = _wide(data)
    if wide is not None:
        return Decoded(_decoded(path, data, wide), wide)
    if b"\0" in data:
        raise InputFileError(f"{str(path)!r} is a binary file, not text.", hint="Give a UTF-8 text file.")
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as error:
        from katha.intake.pages import sure_page

        page = sure_page(data)
        if page is None:
            raise _strange(path, data, error.start) from error
        return Decoded(data.decode(page), page)


def _wide(data: bytes) -> str | None:
    """Return UTF-16's name where every second byte of a text without a mark is null."""
    head = data[:_LOOKED_AT]
    if len(head) < 4 or len(data) % 2:
        return None
    even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / len(head[1::2])
    if max(even, odd) < _FEWEST_NULLS or min(even, odd) > 0.02:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _decoded(path: Path, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise InputFileError(
            f"{str(path)!r} begins as {name} and is damaged (byte {error.start}).", hint="Save it as UTF-8."
        ) from error


def _as_told(path: Path, data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise InputFileError(
            f"There is no encoding {encoding!r}.", hint="Python's names: cp1252, shift_jis."
        ) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise InputFileError(f"{str(path)!r} is not in {encoding}.", hint="Name another one.") from error


def likely_encoding(data: bytes) -> tuple[str, str] | None:
    """Return the code page in which bytes read best, and the line that shows it; None where they read in none."""
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    if best is None:
        return None
    text, name = str(best), best.encoding
    for usual in _USUAL:  # where the letters are the same, the name that most people know
        try:
            name = usual if data.decode(usual) == text else name
        except UnicodeDecodeError:
            continue
    line = next((one for one in text.splitlines() if not one.isascii()), text)
    at = next((number for number, letter in enumerate(line) if not letter.isascii()), 0)
    return name, line[max(0, at - _SHOWN // 2) : at + _SHOWN // 2].strip()


def _strange(path: Path, data: bytes, at: int) -> InputFileError:
    found = likely_encoding(data)
    said = f"{str(path)!r} is not UTF-8 text (byte {at})"
    if found is None:
        return InputFileError(f"{said}.", hint="Save it as UTF-8 and try again.")
    name, line = found
    return InputFileError(
        f"{said}; it may be {name} ({line!r}).",
        hint=f"Save it as UTF-8: `katha read {path} --encoding {name} --text > utf8.txt` does, where that reads right.",
    )
