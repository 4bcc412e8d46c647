"""Pictures, as content-addressed and immutable bytes: in a folder, or in an object store that many machines share.

Whatever is found damaged (flipped, cut, of another form, replaced by a folder) is moved to `quarantine` and made again
when it is needed.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from katha.addresses import shown
from katha.errors import (
    CorruptEntryError,
    InputFileError,
    KathaError,
    MissingExtraError,
    StoreError,
    UsageError,
    first_line,
)
from katha.installing import install_line
from katha.jsonio import canonical, loads, read_bytes, sha256_hex, write_bytes_atomic
from katha.sqlite_index import file_lock, retry_while_locked, set_aside, told


class Objects(Protocol):
    """Content-addressed bytes, written once, never changed and verified by their hash.

    Every method raises `StoreError` where the place cannot be reached or refuses; absence is never guessed from that.
    """

    failures: dict[str, StoreError]
    """What could not be written to its place, by hash; it is kept on this machine until it can be."""

    def put(self, data: bytes) -> str:
        """Store `data` durably and return its sha256."""
        ...

    def get(self, sha256: str) -> bytes:
        """Return the bytes of that hash, verified; CorruptEntryError where they have another, StoreError without."""
        ...

    def find(self, sha256: str) -> bytes | None:
        """Return the verified bytes, or None when they are missing or were just quarantined."""
        ...

    def names(self) -> Iterator[str]:
        """Yield the hash of everything that is stored."""
        ...

    def verify(self, sha256: str) -> bool:
        """Return whether the bytes are in their place, for everybody, and have their hash."""
        ...

    def written(self, sha256: str) -> float:
        """Return when it was stored, in seconds since 1970 by the clock of the place."""
        ...

    def size(self, sha256: str) -> int:
        """Return its bytes."""
        ...

    def remove(self, sha256: str) -> None:
        """Remove it, if it is there."""
        ...

    def identity(self, fresh: str) -> str:
        """Return the name that the place was given when it was first used: `fresh` where that is now."""
        ...


_SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Content-addressed bytes: a file is named by its sha256, in one of 256 folders, and checked whenever it is read.

    What fails its hash is moved to `quarantine`.
    """

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self.folder = folder
        self.quarantine = quarantine
        self.failures: dict[str, StoreError] = {}  # a disk that refuses a file ends the command

    def path(self, sha256: str) -> Path:
        """Return where the blob of that hash is or would be (the name is checked: it becomes a path).

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
        with suppress(InputFileError):
            if read_bytes(path) == data:
                return sha256
        for place in (self.folder, path.parent):
            if os.path.lexists(place) and not place.is_dir():
                set_aside(place, self.quarantine)
        if path.is_dir():
            set_aside(path, self.quarantine, f"blob-{sha256}")
        write_bytes_atomic(path, data)
        return sha256

    def get(self, sha256: str) -> bytes:
        """Return the bytes of that hash, verified.

        Raises:
            CorruptEntryError: the bytes do not have their hash; they are in quarantine now.
            StoreError: there is no such blob, or it cannot be read.
        """
        path = self.path(sha256)
        data: bytes | None = None
        try:
            data = read_bytes(path)
        except InputFileError as error:
            if not path.exists() or path.is_file():
                raise StoreError(f"Cannot read the stored file: {error.message}", hint=error.hint) from error
        if data is not None and sha256_hex(data) == sha256:
            return data
        moved = set_aside(path, self.quarantine, f"blob-{sha256}")
        raise CorruptEntryError(
            f"The stored file {str(path)!r} does not have its hash any more; it was moved to {str(moved)!r}.",
            hint="It is made again when it is needed.",
        )

    def find(self, sha256: str) -> bytes | None:
        """Return the verified bytes, or None when they are missing or were just quarantined."""
        with suppress(CorruptEntryError):
            return self.get(sha256) if self.path(sha256).exists() else None
        return None

    def names(self) -> Iterator[str]:
        """Yield the hash of every blob; what has no such name is left alone."""
        for folder in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                if _SHA256.fullmatch(folder.name + path.name):
                    yield folder.name + path.name

    def verify(self, sha256: str) -> bool:
        """Return whether the file is there and has its hash."""
        return self.find(sha256) is not None

    def written(self, sha256: str) -> float:
        """Return when the file was last written, in seconds since 1970."""
        path = self.path(sha256)
        with told("Cannot look at", path):
            return path.stat().st_mtime

    def size(self, sha256: str) -> int:
        """Return the bytes of the file."""
        path = self.path(sha256)
        with told("Cannot look at", path):
            return path.stat().st_size

    def remove(self, sha256: str) -> None:
        """Remove the file, if it is there."""
        path = self.path(sha256)
        with told("Cannot remove", path):
            path.unlink(missing_ok=True)

    def identity(self, fresh: str) -> str:
        """Return the name of a folder that many machines share, from a file in it; `fresh` where it had none."""
        path = self.folder / IDENTITY
        with file_lock(self.folder / f".{IDENTITY}.lock"):
            if not path.exists():
                write_bytes_atomic(path, canonical({"format": 1, "id": fresh}))
        return read_identity(read_bytes(path), str(path))


IDENTITY = "katha-objects.json"


def read_identity(data: bytes, place: str) -> str:
    """Return the name of a place of objects, from its file.

    Raises:
        StoreError: the file is not what katha wrote.
    """
    try:
        return str(loads(data.decode("utf-8"))["id"])
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{place!r} is not the file that katha wrote.", hint="Bring back the one that was.") from error


_OPTIONS: dict[str, dict[str, object]] = {
    "s3": {"config_kwargs": {"connect_timeout": 5, "read_timeout": 60, "retries": {"max_attempts": 2}}},
}
"""How long a place is waited for in one try: the libraries' own figures are minutes for an address that is wrong."""
T = TypeVar("T")


class RemoteObjects:
    """Objects behind a URL that fsspec knows (`s3://BUCKET/FOLDER`, `gs://BUCKET/FOLDER`).

    They lie as in a folder of `Blobs`. `local` keeps a verified copy of what is written or read, so that nothing is
    fetched twice, and what a lost place cannot take: `outbox` (a record of the kind `OBJECT` each) says what it lacks.
    """

    def __init__(self, url: str, local: Blobs, outbox: Callable[[str], None], patience: float) -> None:
        """patience: seconds that a place may fail before it is given up.

        Raises:
            UsageError: there is no such kind of place. MissingExtraError: fsspec lacks the package for it.
        """
        self.place = shown(url)
        self.failures: dict[str, StoreError] = {}
        self._local, self._outbox, self._patience = local, outbox, patience
        self._files, self._root = _open(url)

    def put(self, data: bytes) -> str:
        """Store `data`, here and there. What the place does not take is in `failures`, and goes there later."""
        sha256 = self._local.put(data)
        try:
            self.send(sha256)
        except StoreError as error:
            self._outbox(sha256)
            self.failures[sha256] = error
        return sha256

    def send(self, sha256: str) -> None:
        """Write a file that this machine has to the place, unless it is there; what is there is not written over.

        Raises:
            StoreError: the place cannot be reached or refuses it.
        """
        data, path = self._local.get(sha256), self._path(sha256)

        def write() -> None:
            try:
                self._files.pipe_file(path, data, mode="create")
            except FileExistsError:
                if self._files.size(path) != len(data):
                    self._set_aside(sha256, self._files.cat_file(path))
                    self._files.pipe_file(path, data)

        self._try("cannot take a picture", write, 0.0 if self.failures else self._patience)

    def get(self, sha256: str) -> bytes:
        """Return the bytes of that hash, verified.

        Raises:
            CorruptEntryError: the bytes do not have their hash; they are in quarantine now.
            StoreError: there are none, or the place cannot be reached.
        """
        known = self._local.find(sha256)
        if known is not None:
            return known
        data = self._fetch(sha256)
        if data is None:
            raise StoreError(f"There is no {sha256} in {self.place}.", hint="It is made again when it is needed.")
        self._local.put(data)
        return data

    def find(self, sha256: str) -> bytes | None:
        """Return the verified bytes, or None when they are missing or were just quarantined."""
        known = self._local.find(sha256)
        if known is None:
            with suppress(CorruptEntryError):
                known = self._fetch(sha256)
                if known is not None:
                    self._local.put(known)
        return known

    def names(self) -> Iterator[str]:
        """Yield the hash of every object; what has no such name is left alone."""

        def listed() -> list[str]:
            self._files.invalidate_cache()
            return sorted(self._files.find(self._root))

        for path in self._try("cannot be listed", listed):
            name = "".join(path.rsplit("/", 2)[-2:])
            if _SHA256.fullmatch(name):
                yield name

    def verify(self, sha256: str) -> bool:
        """Return whether the object is there and has its hash; what this machine has of it takes its place."""
        with suppress(CorruptEntryError):
            if self._fetch(sha256) is not None:
                return True
        if self._local.find(sha256) is None:
            return False
        self.send(sha256)
        return True

    def written(self, sha256: str) -> float:
        """Return when the object was written, in seconds since 1970 by the clock of its place."""
        path = self._path(sha256)
        found: datetime = self._try("cannot be looked at", lambda: self._files.modified(path))
        return found.timestamp()

    def size(self, sha256: str) -> int:
        """Return the bytes of the object."""
        path = self._path(sha256)
        return int(self._try("cannot be looked at", lambda: self._files.size(path)))

    def remove(self, sha256: str) -> None:
        """Remove the object; the copies of machines stay."""
        path = self._path(sha256)

        def gone() -> None:
            with suppress(FileNotFoundError):
                self._files.rm_file(path)

        self._try("refuses to remove a picture", gone)

    def identity(self, fresh: str) -> str:
        """Return the name of the place, from an object in it; `fresh` where it had none."""
        path, mine = f"{self._root}/{IDENTITY}", canonical({"format": 1, "id": fresh})

        def named() -> bytes:
            try:
                return bytes(self._files.cat_file(path))
            except FileNotFoundError:
                with suppress(FileExistsError):  # another machine was faster
                    self._files.pipe_file(path, mine, mode="create")
            return bytes(self._files.cat_file(path))

        # At once or not at all: an address that is wrong should say so.
        return read_identity(self._try("cannot be used", named, 0.0), f"{self.place}/{IDENTITY}")

    def _path(self, sha256: str) -> str:
        return f"{self._root}/{self._local.path(sha256).relative_to(self._local.folder).as_posix()}"

    def _fetch(self, sha256: str) -> bytes | None:
        path = self._path(sha256)

        def read() -> bytes | None:
            try:
                return bytes(self._files.cat_file(path))
            except FileNotFoundError:
                return None

        data = self._try("cannot give a picture", read)
        if data is None or sha256_hex(data) == sha256:
            return data
        kept = self._set_aside(sha256, data)
        raise CorruptEntryError(
            f"The object {sha256} in {self.place} does not have its hash any more; it was moved to {str(kept)!r}.",
            hint="It is made again when it is needed.",
        )

    def _set_aside(self, sha256: str, data: bytes) -> Path:
        """Move what was found in the place of an object into the quarantine of this machine."""
        kept = self._local.quarantine / f"blob-{sha256}"
        write_bytes_atomic(kept, data)
        with suppress(FileNotFoundError):  # another machine was faster
            self._files.rm_file(self._path(sha256))
        return kept

    def _try(self, refused: str, work: Callable[[], T], patience: float | None = None) -> T:
        """Do something at the place, more than once while it fails.

        Raises:
            StoreError: it still fails after `patience` seconds.
        """
        seconds = self._patience if patience is None else patience
        try:
            return retry_while_locked(
                work, seconds, lambda error: not isinstance(error, (*_SURE, KathaError)) and not _is_full(error)
            )
        except KathaError:
            raise
        except Exception as error:  # the libraries behind fsspec raise errors of their own
            hint = "Free some space there" if _is_full(error) else "Check KATHA_OBJECTS and its keys"
            raise StoreError(
                f"The object store {self.place} {refused}: {first_line(error)[:300].rstrip('.')}.",
                hint=f"{hint}, and run the same command again: what is done is kept.",
            ) from error


_SURE = (PermissionError, FileNotFoundError, FileExistsError)
"""What does not go away by waiting."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_FULL_CODES, _FULL_STATUS = ("QuotaExceeded", "XMinioStorageFull"), 507


def _is_full(error: BaseException | None) -> bool:
    """Return whether a place has no room left. S3 has no code for that; its servers have their own."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            return True
        said = getattr(error, "response", None)
        if isinstance(said, dict):
            code, status = said.get("Error", {}).get("Code"), said.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return code in _FULL_CODES or status == _FULL_STATUS
        error = error.__cause__
    return False


def _open(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for `url`, and the folder in it.

    Raises:
        UsageError: there is no such kind of place. MissingExtraError: fsspec lacks the package for it.
    """
    scheme = url.partition("://")[0]
    try:
        import fsspec

        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False, **_OPTIONS.get(scheme, {}))
    except ImportError as error:
        raise MissingExtraError(f"Objects at {scheme}:// need more packages.", hint=install_line("cluster")) from error
    except ValueError as error:
        raise UsageError(
            f"KATHA_OBJECTS cannot be {shown(url)!r}: {first_line(error)}.",
            hint="Name a folder, s3://BUCKET/FOLDER or gs://BUCKET/FOLDER.",
        ) from error
    return files, root.rstrip("/")
