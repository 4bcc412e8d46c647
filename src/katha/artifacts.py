"""What the cache is made of: content-addressed files, small records in SQLite, and locks between processes.

Whatever is found damaged (flipped, cut, of another form, replaced by a folder) is moved to `quarantine` and made again
when it is needed: a cache never has to be removed by hand.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import lock_descriptor

from katha.errors import CorruptEntryError, InputFileError, StoreError
from katha.jsonio import read_bytes, sha256_hex, write_bytes_atomic

_POLL_SECONDS = 0.005


class LockTaken(StoreError):
    """Another process holds the lock, and the caller did not want to wait."""


def set_aside(path: Path, quarantine: Path, name: str = "") -> Path | None:
    """Move what is at `path` into the folder `quarantine`, under its own name or `name`, beside what is there already.

    Gives where it is now; None where it is gone already (another process was faster).

    Raises:
        StoreError: it cannot be moved.
    """
    with told("Cannot move the damaged", path):
        if quarantine.exists() and not quarantine.is_dir():
            os.replace(quarantine, quarantine.with_name(f"{quarantine.name}.file"))
        quarantine.mkdir(parents=True, exist_ok=True)
        wanted, number = quarantine / (name or path.name), 0
        target = wanted
        while os.path.lexists(target):
            number += 1
            target = wanted.with_name(f"{wanted.name}.{number}")
        try:
            os.rename(path, target)
        except FileNotFoundError:
            return None
    return target


@contextmanager
def told(what: str, path: Path, hint: str | None = None) -> Iterator[None]:
    """Raise what the system refuses as a `StoreError` that says what was tried."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what} {str(path)!r}: {error.strerror}.", hint=hint) from error


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold `path` alone between processes and threads; the system lets go of it when the process dies.

    The file stays: removing it would let two processes hold two files of one name. `filelock`'s lock on a descriptor
    is used, not its `FileLock`, whose bookkeeping takes 50 times as long as the lock: one is taken for every packet.

    Raises:
        LockTaken: somebody else holds it and `wait` is False. StoreError: the file cannot be made or locked.
    """
    hint = "Name a folder that can be written in KATHA_CACHE." if path.name.startswith("index") else None
    with told("Cannot make the lock", path, hint):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            path.rmdir()  # only one that is empty: nothing of anybody's is lost
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o644)
    try:
        with told("Cannot lock", path):
            held = lock_descriptor(handle, blocking=wait, poll_interval=_POLL_SECONDS)
        if not held:
            raise LockTaken(f"{str(path)!r} is held by another process.")
        yield
    finally:
        os.close(handle)


_SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Content-addressed bytes: a file is named by its sha256, in one of 256 folders, and checked whenever it is read.

    What fails its hash is moved to `quarantine`.
    """

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self.folder = folder
        self.quarantine = quarantine

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


# The small records of the cache: one SQLite database in WAL mode.
#
# Why not a file per record: a suite asks hundreds of thousands of questions with answers of a few hundred bytes,
# which as files would take a block and an inode each; SQLite gives atomic writes, two writing processes and one
# grouped flush.
#
# Durability: a committed record survives a killed process. The write-ahead log is flushed to the disk by the first
# commit that comes a second or more after the last flush, and by `flush()`; so a power cut costs at most a second of
# quick answers, while slow (paid) answers are flushed one by one.

_FLUSH_SECONDS = 1.0
_BUSY_SECONDS = 60.0
_NEW = "IF NOT EXISTS "
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises; of a damaged file, the text of an error or of a column may be no text."""
_DAMAGE = ("malformed", "not a database", "file is encrypted", "unsupported file format", "corrupt", "no such")
_SCHEMA = """CREATE TABLE IF NOT EXISTS entries (
    kind TEXT NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, sha256 TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID"""


class Index:
    """Records by `(kind, key)`, each with the sha256 of its bytes and the run (`owner`) that paid for it."""

    def __init__(self, path: Path, quarantine: Path, owner: str = "") -> None:
        self.path = path
        self.quarantine = quarantine
        self._owner = owner
        self._lock = threading.RLock()
        self._flushed = time.monotonic()
        with file_lock(path.with_suffix(".lock")):
            self._connection = self._open()

    def get(self, kind: str, key: str) -> bytes | None:
        """Return the record, verified; a record that fails its hash is quarantined and gone."""
        with self._lock:
            rows = self._run("SELECT value, sha256 FROM entries WHERE kind = ? AND key = ?", kind, key)
            if not rows:
                return None
            value, sha256 = rows[0]
            data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            if sha256_hex(data) == sha256:
                return data
            self._keep_broken(kind, key, data)
            self.drop(kind, key)
            return None

    def _keep_broken(self, kind: str, key: str, data: bytes) -> None:
        kept = self.quarantine / f"{kind}-{sha256_hex(key.encode('utf-8', 'replace'))}"
        try:
            self.quarantine.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(data)
        except OSError as error:
            if error.errno != errno.ENOSPC:  # a full disk does not stop the work for a look at a broken record
                raise StoreError(f"Cannot write {str(kept)!r}: {error.strerror}.") from error

    def check(self) -> tuple[int, int]:
        """Look at every record; return how many there are, and how many were broken (they are in quarantine now)."""
        broken = 0
        if self._run("PRAGMA quick_check(1)") != [("ok",)]:
            broken += 1
            self._mend()
        keys = self._run("SELECT kind, key FROM entries")
        for kind, key in keys:
            broken += self.get(str(kind), str(key)) is None
        return len(keys), broken

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Record `value`; the first writer wins.

        Raises:
            StoreError: the disk is full or refused the write; nothing recorded before is lost.
        """
        with self._lock:
            flush = time.monotonic() - self._flushed >= _FLUSH_SECONDS
            if flush:
                self._run("PRAGMA synchronous = FULL")
            self._run(
                "INSERT OR IGNORE INTO entries (kind, key, owner, sha256, value) VALUES (?, ?, ?, ?, ?)",
                *(kind, key, self._owner, sha256_hex(value), value),
            )
            if flush:
                self._run("PRAGMA synchronous = NORMAL")
                self._flushed = time.monotonic()

    def drop(self, kind: str, key: str) -> None:
        """Forget one record."""
        self._run("DELETE FROM entries WHERE kind = ? AND key = ?", kind, key)

    def paid(self, kind: str) -> int:
        """Return how many records of `kind` the owner has paid for, over all its processes."""
        counted = self._run("SELECT COUNT(*) FROM entries WHERE kind = ? AND owner = ?", kind, self._owner)
        return int(counted[0][0]) if self._owner else 0

    def flush(self) -> None:
        """Make everything recorded so far survive a power cut."""
        with self._lock:
            self._run("PRAGMA wal_checkpoint(PASSIVE)")
            self._flushed = time.monotonic()

    def close(self) -> None:
        """Close the database; the records stay."""
        with self._lock:
            self._connection.close()

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except _FAILURES as error:
                if not _is_damage(error):
                    raise self._explain(error) from error
            self._mend()
            try:
                return self._connection.execute(statement, values).fetchall()
            except _FAILURES as error:
                raise self._explain(error) from error

    def _mend(self) -> None:
        """Set a damaged database aside, and begin a new one with every record of it that can still be read."""
        with suppress(sqlite3.Error):
            self._connection.close()
        with file_lock(self.path.with_suffix(".lock")):
            try:
                self._connection = self._connect()  # another process may have mended it
                if self._connection.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]:
                    return
                self._connection.close()
            except _FAILURES:
                pass
            self._connection = self._begin_anew()

    def _begin_anew(self) -> sqlite3.Connection:
        moved = [set_aside(path, self.quarantine) for path in self._files() if os.path.lexists(path)]
        connection = self._connect()
        for path in moved[:1]:
            if path is not None and path.is_file():
                _salvage(path, connection)
        return connection

    def _files(self) -> list[Path]:
        """The database and its companions."""
        return [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm")]

    def _explain(self, error: Exception) -> StoreError:
        full = "full" in str(error) or "disk I/O" in str(error)
        hint = "Free some space and run the same command again." if full else "Run the same command again."
        return StoreError(f"The cache {str(self.path)!r} refused a record: {error}.", hint=hint)

    def _open(self) -> sqlite3.Connection:
        """Open the database; what is none any more is set aside with its companions, and new records start empty."""
        hint = "Name a folder that can be written in KATHA_CACHE."
        try:
            with told("Cannot write the cache", self.path, hint):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    return self._connect()
                except _FAILURES as error:
                    if not _is_damage(error) and not any(path.is_dir() for path in self._files()):
                        raise
                return self._begin_anew()
        except _FAILURES as error:
            raise self._explain(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        connection.text_factory = _text
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            found = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entries'").fetchall()
            if [" ".join(str(sql).split()) for (sql,) in found] != [" ".join(_SCHEMA.replace(_NEW, "").split())]:
                raise sqlite3.DatabaseError("file is not a database of katha's: malformed schema")
            connection.execute("SELECT COUNT(*) FROM (SELECT 1 FROM entries LIMIT 1)").fetchall()
        except _FAILURES:
            connection.close()
            raise
        return connection


def _text(data: bytes) -> str:
    """Return a column's text; of a damaged one, what can be read: its record then fails its hash."""
    return data.decode("utf-8", "replace")


def _is_damage(error: Exception) -> bool:
    """Return whether an error is one of the file's form, and not of the disk or of another process."""
    if not isinstance(error, sqlite3.Error):
        return True
    plain = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
    return plain or any(word in str(error) for word in _DAMAGE)


def _salvage(path: Path, into: sqlite3.Connection) -> None:
    """Copy the records of a damaged database that can still be read and have their hash: from both ends."""
    for order in ("", " ORDER BY kind DESC, key DESC"):
        with suppress(*_FAILURES), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as old:
            old.text_factory = _text
            for kind, key, owner, sha256, value in old.execute(f"SELECT * FROM entries{order}"):
                if isinstance(value, bytes) and sha256_hex(value) == sha256:
                    row = (str(kind), str(key), str(owner), sha256, value)
                    into.execute("INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?)", row)
