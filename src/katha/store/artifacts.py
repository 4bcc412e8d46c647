"""The cache that runs share: content-addressed images, the SQLite index of answers and frames, and claims on work
under way.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import lock_descriptor
from pydantic import ValidationError

from katha.errors import CorruptEntryError, StoreError
from katha.jsonio import canonical, loads, sha256_hex, write_bytes_atomic
from katha.schema import Answer

_POLL_SECONDS = 0.005


class LockTaken(StoreError):
    """Another process holds the lock, and the caller did not want to wait."""


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold `path` alone between processes and threads; the system lets go of it when the process dies.

    The file stays: removing it would let two processes hold two files of one name. `filelock`'s lock on a descriptor
    is used, not its `FileLock`, whose bookkeeping takes 50 times as long as the lock: one is taken for every packet.

    Raises:
        LockTaken: somebody else holds it and `wait` is False. StoreError: the file cannot be made or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"Cannot make the lock {str(path)!r}: {error.strerror}.") from error
    try:
        try:
            held = lock_descriptor(handle, blocking=wait, poll_interval=_POLL_SECONDS)
        except OSError as error:
            raise StoreError(f"Cannot lock {str(path)!r}: {error.strerror}.") from error
        if not held:
            raise LockTaken(f"{str(path)!r} is held by another process.")
        yield
    finally:
        os.close(handle)


# Content-addressed bytes: a file is named by its sha256, in one of 256 folders, and checked whenever it is read.

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The blobs under `folder`; what fails its hash is moved to `quarantine`."""

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
        if not self._is_there(path, data):
            write_bytes_atomic(path, data)
        return sha256

    def get(self, sha256: str) -> bytes:
        """Return the bytes of that hash, verified.

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
        """Return the verified bytes, or None when they are missing or were just quarantined."""
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
_SCHEMA = """CREATE TABLE IF NOT EXISTS entries (
    kind TEXT NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, sha256 TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (kind, key)) WITHOUT ROWID"""


class Index:
    """Records by `(kind, key)`, each with the sha256 of its bytes and the run (`owner`) that paid for it."""

    def __init__(self, path: Path, quarantine: Path) -> None:
        self.path = path
        self.quarantine = quarantine
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
            if sha256_hex(data) != sha256:
                self._keep_for_a_look(f"{kind}-{sha256_hex(key.encode())}", data)
                self.drop(kind, key)
                return None
            return data

    def put(self, kind: str, key: str, value: bytes, owner: str = "", *, replace: bool = False) -> None:
        """Record `value`; the first writer wins unless `replace`.

        Raises:
            StoreError: the disk is full or refused the write; nothing recorded before is lost.
        """
        verb = "REPLACE" if replace else "IGNORE"
        with self._lock:
            flush = time.monotonic() - self._flushed >= _FLUSH_SECONDS
            if flush:
                self._run("PRAGMA synchronous = FULL")
            self._run(
                f"INSERT OR {verb} INTO entries (kind, key, owner, sha256, value) VALUES (?, ?, ?, ?, ?)",
                *(kind, key, owner, sha256_hex(value), value),
            )
            if flush:
                self._run("PRAGMA synchronous = NORMAL")
                self._flushed = time.monotonic()

    def drop(self, kind: str, key: str) -> None:
        """Forget one record."""
        self._run("DELETE FROM entries WHERE kind = ? AND key = ?", kind, key)

    def count(self, kind: str, owner: str) -> int:
        """Return how many records of `kind` that owner has paid for."""
        return int(self._run("SELECT COUNT(*) FROM entries WHERE kind = ? AND owner = ?", kind, owner)[0][0])

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
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> StoreError:
        full = "full" in str(error) or "disk I/O" in str(error)
        hint = "Free some space and run the same command again." if full else "Run the same command again."
        return StoreError(f"The cache {str(self.path)!r} refused a record: {error}.", hint=hint)

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._connect()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._quarantine_database()
                return self._connect()
        except sqlite3.Error as error:
            raise self._explain(error) from error
        except OSError as error:
            hint = "Name a folder that can be written in KATHA_CACHE."
            raise StoreError(f"Cannot write the cache {str(self.path)!r}: {error.strerror}.", hint=hint) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            connection.execute("SELECT COUNT(*) FROM (SELECT 1 FROM entries LIMIT 1)").fetchall()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _keep_for_a_look(self, name: str, data: bytes) -> None:
        """Put a broken record into quarantine; a full disk does not stop the work for it."""
        try:
            self.quarantine.mkdir(parents=True, exist_ok=True)
            (self.quarantine / name).write_bytes(data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise StoreError(f"Cannot write {str(self.quarantine / name)!r}: {error.strerror}.") from error

    def _quarantine_database(self) -> None:
        """Set a database that is not one any more aside, with its companions; new records start empty."""
        self.quarantine.mkdir(parents=True, exist_ok=True)
        for suffix in ("", "-wal", "-shm"):
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                source.replace(self.quarantine / source.name)


class AnswerCache:
    """Answers by the hash of everything that can change them. A typed failure is never kept as an answer."""

    def __init__(self, index: Index, owner: str = "") -> None:
        self._index = index
        self._owner = owner

    def get(self, key: str) -> Answer | None:
        """Return the answer of that key, or None when it has to be asked (again)."""
        data = self._index.get("answer", key)
        if data is None:
            return None
        try:
            return Answer.model_validate_json(data)
        except ValidationError:
            self._index.drop("answer", key)  # written by an older katha: ask again
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer as soon as it is there; anything but `ok` is dropped, so that it is asked again next time."""
        if answer.status == "ok":
            self._index.put("answer", key, canonical(answer.model_dump(mode="json")), self._owner)

    def asked(self) -> int:
        """Return how many kept answers this run has paid for, over all its processes."""
        return self._index.count("answer", self._owner) if self._owner else 0


class FrameIndex:
    """Which image a request to a renderer gave. A hit whose bytes are gone or corrupted is no hit.

    looked_up: the keys that were asked for since somebody cleared it: what a board needs, drawn now or before.
    """

    def __init__(self, index: Index, blobs: Blobs, owner: str = "") -> None:
        self._index = index
        self._blobs = blobs
        self._owner = owner
        self.looked_up: set[str] = set()

    def get(self, key: str) -> str | None:
        """Return the image's sha256, its bytes verified; None when the frame has to be drawn (again)."""
        self.looked_up.add(key)
        found = self._index.get("frame", key)
        if found is None:
            return None
        sha256 = found.decode("ascii")
        if self._blobs.find(sha256) is None:
            self._index.drop("frame", key)
            return None
        return sha256

    def put(self, key: str, sha256: str) -> str:
        """Remember the image of a request and return the one that counts: the first writer's."""
        self._index.put("frame", key, sha256.encode("ascii"), self._owner)
        return self.get(key) or sha256

    def put_receipt(self, sha256: str, receipt: Mapping[str, object]) -> None:
        """Remember how the image came about: which service and version drew it, when, and for how much."""
        self._index.put("receipt", sha256, canonical(dict(receipt)), self._owner)

    def receipt(self, sha256: str) -> dict[str, object] | None:
        """Return how the image came about, if its renderer said."""
        data = self._index.get("receipt", sha256)
        value = loads(data.decode("utf-8")) if data is not None else None
        return value if isinstance(value, dict) else None

    def rendered(self) -> int:
        """Return how many remembered frames this run has paid for, over all its processes."""
        return self._index.count("frame", self._owner) if self._owner else 0


_CLAIM_FILES = 256


class Store:
    """Everything under one cache folder. Two processes may use one folder at once.

    `owner` is the id of the run on whose account new records are paid (it makes the paid counts survive a kill).
    """

    def __init__(self, folder: Path, owner: str = "") -> None:
        self.folder = folder
        self.owner = owner
        quarantine = folder / "quarantine"
        self.index = Index(folder / "index.sqlite", quarantine)
        self.blobs = Blobs(folder / "blobs", quarantine)
        self.answers = AnswerCache(self.index, owner)
        self.frames = FrameIndex(self.index, self.blobs, owner)

    def claim(self, work: str) -> AbstractContextManager[None]:
        """Hold a piece of work (a batch of frames, the questions of one packet) while it is done.

        A second process that wants the same work waits, then finds it in the cache: nothing is paid twice. Hold one
        claim at a time per thread.
        """
        number = int(sha256_hex(work.encode("utf-8"))[:8], 16) % _CLAIM_FILES
        return file_lock(self.folder / "claims" / f"{number:02x}")

    def flush(self) -> None:
        """Make everything stored so far survive a power cut."""
        self.index.flush()

    def close(self) -> None:
        """Close the cache; what is in it stays."""
        self.index.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
