"""Content-addressed bytes: a file is named by its sha256, in one of 256 folders, and checked whenever it is read."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from katha.errors import CorruptEntryError, StoreError
from katha.jsonio import sha256_hex, write_bytes_atomic

__all__ = ["Blobs", "quarantine_bytes"]

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The blobs under `folder`; what fails its hash is moved to `quarantine`."""

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self.folder = folder
        self.quarantine = quarantine

    def path(self, sha256: str) -> Path:
        """Where the blob of that hash is or would be (the name is checked: it becomes a path).

        Raises:
            StoreError: `sha256` is not a lower-case hexadecimal sha256.
        """
        if _SHA256.fullmatch(sha256) is None:
            raise StoreError(f"{sha256!r} is not a sha256.")
        return self.folder / sha256[:2] / sha256[2:]

    def put(self, data: bytes) -> str:
        """Store `data` durably and return its sha256; writing the same bytes twice is one file.

        Raises:
            StoreError: the disk is full or refused the write; nothing stored before is touched.
        """
        sha256 = sha256_hex(data)
        path = self.path(sha256)
        if not self._is_there(path, data):
            write_bytes_atomic(path, data)
        return sha256

    def get(self, sha256: str) -> bytes:
        """The bytes of that hash, verified.

        Raises:
            CorruptEntryError: the bytes do not have their hash; they are in quarantine now.
            StoreError: there is no such blob, or it cannot be read.
        """
        path = self.path(sha256)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise StoreError(f"Cannot read the stored file {str(path)!r}: {error.strerror}.") from error
        if sha256_hex(data) != sha256:
            moved = self._quarantine(path, sha256)
            raise CorruptEntryError(
                f"The stored file {str(path)!r} does not have its hash any more; it was moved to {str(moved)!r}.",
                hint="It is made again when it is needed.",
            )
        return data

    def find(self, sha256: str) -> bytes | None:
        """The verified bytes, or None when they are missing or were just quarantined."""
        if not self.path(sha256).exists():
            return None
        try:
            return self.get(sha256)
        except CorruptEntryError:
            return None

    @staticmethod
    def _is_there(path: Path, data: bytes) -> bool:
        try:
            return path.read_bytes() == data
        except OSError:
            return False

    def _quarantine(self, path: Path, sha256: str) -> Path:
        target = self.quarantine / f"blob-{sha256}"
        try:
            self.quarantine.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
        except FileNotFoundError:
            pass  # another process was faster
        except OSError as error:
            raise StoreError(f"Cannot move the corrupted file {str(path)!r}: {error.strerror}.") from error
        return target


def quarantine_bytes(folder: Path, name: str, data: bytes) -> None:
    """Keep `data` under `folder/name` for a person to look at; a full disk does not stop the work for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise StoreError(f"Cannot write {str(folder / name)!r}: {error.strerror}.") from error
