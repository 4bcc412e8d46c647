"""What the cache of one machine is made of beside its pictures: small records in SQLite, and locks between processes.

`Index` is what a store asks of its records and claims; `katha.postgres` has the one that many machines share, and
`katha.blob_store` the pictures.

Whatever is found damaged (flipped, cut, of another form, replaced by a folder) is moved to `quarantine` and made again
when it is needed: a cache never has to be removed by hand.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from filelock import lock_descriptor

from katha.errors import StoreError
from katha.jsonio import sha256_hex

# Locks are held for a single small write.
_POLL_SECONDS = 0.005


class IndexRecord(NamedTuple):
    """One record of an index, its bytes verified."""

    kind: str
    key: str
    owner: str
    value: bytes


class Index(Protocol):
    """Records by `(kind, key)`, and claims on work under way.

    Every method but `close` raises `StoreError` where the disk or the database fails; what was recorded stays.
    """

    def get(self, kind: str, key: str) -> bytes | None:
        """Return the record, verified; a record that fails its hash is quarantined and gone."""
        ...

    def put(self, kind: str, key: str, value: bytes, owner: str | None = None) -> None:
        """Record `value`; the first writer wins. `owner` paid for it: the one that the index was opened for."""
        ...

    def drop(self, kind: str, key: str) -> None:
        """Forget one record."""
        ...

    def paid(self, kind: str) -> int:
        """Return how many records of `kind` the owner has paid for, over all its processes."""
        ...

    def records(self, kind: str = "") -> Iterator[IndexRecord]:
        """Yield the records (of one kind) in the order of their keys; broken ones are left out."""
        ...

    def check(self) -> tuple[int, int]:
        """Look at every record; return how many there are, and how many were broken (they are in quarantine now)."""
        ...

    def claim(self, work: str) -> AbstractContextManager[None]:
        """Hold a piece of work alone, between threads, processes and whatever machines share the index."""
        ...

    def sweep(self) -> int:
        """Remove what claims of the dead have left; return how many."""
        ...

    def flush(self) -> None:
        """Make everything recorded so far survive a power cut."""
        ...

    def close(self) -> None:
        """Let go of the file or the server; the records stay."""
        ...


T = TypeVar("T")


def retry_while_locked(work: Callable[[], T], seconds: float, passes: Callable[[BaseException], bool]) -> T:
    """Return what `work` gives; what it raises that `passes` by waiting is tried again for so many seconds."""
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential

    pauses = wait_exponential(multiplier=0.05, max=2.0)
    return Retrying(stop=stop_after_delay(seconds), wait=pauses, retry=retry_if_exception(passes), reraise=True)(work)


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


def keep_broken(quarantine: Path, kind: str, key: str, data: bytes) -> None:
    """Write a record that fails its hash into the folder `quarantine`.

    Raises:
        StoreError: it cannot be written, and that is not because the disk is full.
    """
    kept = quarantine / f"{kind}-{sha256_hex(key.encode('utf-8', 'replace'))}"
    try:
        quarantine.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(data)
    except OSError as error:
        if error.errno != errno.ENOSPC:  # a full disk does not stop the work for a look at a broken record
            raise StoreError(f"Cannot write {str(kept)!r}: {error.strerror}.") from error


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
        LockTaken: another process holds it and `wait` is False. StoreError: the file cannot be made or locked.
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
# Claims share so many files: two of a thousand works rarely meet, and a folder stays small.
_CLAIM_FILES = 256
_PAGE = 500
# A writer on a slow network drive can hold the database for seconds.
_BUSY_SECONDS = 60.0
_NEW = "IF NOT EXISTS "
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises; of a damaged file, the text of an error or of a column may be no text."""
_DAMAGE = ("malformed", "not a database", "file is encrypted", "unsupported file format", "corrupt", "no such")
_SCHEMA = """CREATE TABLE IF NOT EXISTS entries (
    kind TEXT NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, sha256 TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID"""


class SqliteIndex:
    """The index of one machine: records by `(kind, key)`, each with its sha256 and who paid for it (`owner`).

    Claims are locks on files in the folder `claims` beside it, which the system lets go of when a process dies.
    """

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
            keep_broken(self.quarantine, kind, key, data)
            self.drop(kind, key)
            return None

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

    def put(self, kind: str, key: str, value: bytes, owner: str | None = None) -> None:
        """Record `value`; the first writer wins. `owner` paid for it: the index's unless told.

        Raises:
            StoreError: the disk is full or refused the write; nothing recorded before is lost.
        """
        with self._lock:
            flush = time.monotonic() - self._flushed >= _FLUSH_SECONDS
            if flush:
                self._run("PRAGMA synchronous = FULL")
            self._run(
                "INSERT OR IGNORE INTO entries (kind, key, owner, sha256, value) VALUES (?, ?, ?, ?, ?)",
                *(kind, key, self._owner if owner is None else owner, sha256_hex(value), value),
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

    def records(self, kind: str = "") -> Iterator[IndexRecord]:
        """Yield the records (of one kind) in the order of their keys; broken ones are left out."""
        last = ("", "")
        page = (
            "SELECT kind, key, owner, sha256, value FROM entries WHERE (kind, key) > (?, ?) "
            "AND (? = '' OR kind = ?) ORDER BY kind, key LIMIT ?"
        )
        while rows := self._run(page, *last, kind, kind, _PAGE):
            last = (str(rows[-1][0]), str(rows[-1][1]))
            for of, key, owner, sha256, value in rows:
                if isinstance(value, bytes) and sha256_hex(value) == sha256:
                    yield IndexRecord(str(of), str(key), str(owner), value)

    def claim(self, work: str) -> AbstractContextManager[None]:
        """Hold a piece of work alone. Hold one claim at a time per thread: different work may share a file."""
        number = int(sha256_hex(work.encode("utf-8"))[:8], 16) % _CLAIM_FILES
        claims = self.path.parent / "claims"
        # In this order: another thread may make the folder between the two questions.
        if os.path.lexists(claims) and not claims.is_dir():
            set_aside(claims, self.quarantine)
        return file_lock(claims / f"{number:02x}")

    def sweep(self) -> int:
        """Return 0: the system lets go of the claims of the dead."""
        return 0

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
