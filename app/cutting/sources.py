"""Pages that frames are cut from: a picture, a folder of pictures, an archive of them (CBZ), or a PDF."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from katha.errors import InputFileError
from katha.jsonio import digest, file_sha256, open_input
from katha.numbering import natural
from katha.pictures import MAX_BYTES, decode, read_picture
from katha.renderers.folder import SUFFIXES
from katha.renderers.pages import Pages
from katha.renderers.projects import require_inside

if TYPE_CHECKING:
    from PIL.Image import Image

# More pictures than a book has: a folder of a whole disk is a slip.
_MOST = 2_000


class PageSource(Protocol):
    """The pages of one book, in order."""

    def __len__(self) -> int: ...

    def sha256(self) -> str:
        """Return what tells that a page was changed."""
        ...

    def page(self, place: int) -> Image:
        """Return the page at `place` (from 0) in RGB."""
        ...


def open_source(path: Path) -> PageSource:
    """Return the pages in a file or folder.

    Raises:
        InputFileError: it is not there, holds no page, or is of another kind.
    """
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputFileError(f"There is no {str(path)!r}.", hint="Name a folder, picture, CBZ, PDF or film.")
    if path.is_dir():
        return _Files(sorted((item for item in path.iterdir() if _is_page(item.name)), key=_named), path)
    if suffix in SUFFIXES:
        return _Files([path], path.parent)
    if suffix == ".pdf":
        return _Document(path)
    if suffix in (".cbz", ".zip"):
        return _Archive(path)
    hint = "Give a folder of pictures, a picture, a CBZ, a PDF or a film."
    raise InputFileError(f"{str(path)!r} is nothing that frames are cut from.", hint=hint)


def _is_page(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES and not Path(name).name.startswith(".")


def _named(path: Path) -> list[tuple[int, str]]:
    return natural(path.name)


class _Files:
    def __init__(self, paths: Sequence[Path], folder: Path) -> None:
        if not paths:
            raise InputFileError(f"{str(folder)!r} holds no picture.", hint="Give PNG, JPEG or WebP files.")
        self._paths, self._folder = paths, folder

    def __len__(self) -> int:
        return len(self._paths)

    def sha256(self) -> str:
        return digest([[path.name, file_sha256(path)] for path in self._paths])

    def page(self, place: int) -> Image:
        path = self._paths[place]
        name = f"Page {place + 1} ({str(path)!r})"
        require_inside(path, self._folder, name)
        return decode(read_picture(path, name), name)


class _Document:
    def __init__(self, path: Path) -> None:
        self._path, self._pages = path, Pages(path)

    def __len__(self) -> int:
        return len(self._pages)

    def sha256(self) -> str:
        return file_sha256(self._path)

    def page(self, place: int) -> Image:
        (png,) = self._pages.pngs([place], repr(str(self._path)))
        return decode(png)


class _Archive:
    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as archive:
            names = [item.filename for item in archive.infolist() if not item.is_dir() and _is_page(item.filename)]
        if not 0 < len(names) <= _MOST:
            raise InputFileError(f"{str(path)!r} holds {len(names):,} pictures; 1 to {_MOST:,} are read.")
        self._names = sorted(names, key=natural)

    def _opened(self) -> zipfile.ZipFile:
        try:
            with open_input(self._path):  # a regular file
                return zipfile.ZipFile(self._path)
        except zipfile.BadZipFile as error:
            raise InputFileError(
                f"{str(self._path)!r} is not an archive that can be read.", hint="Pack it again."
            ) from error

    def __len__(self) -> int:
        return len(self._names)

    def sha256(self) -> str:
        return file_sha256(self._path)

    def page(self, place: int) -> Image:
        name = f"Page {place + 1} of {str(self._path)!r} ({self._names[place]!r})"
        try:
            with self._opened() as archive, archive.open(self._names[place]) as file:
                data = file.read(MAX_BYTES + 1)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            raise InputFileError(f"{name} cannot be unpacked.", hint="Pack it again, without a password.") from error
        return decode(data, name)
