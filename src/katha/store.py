"""Where things are kept: the cache that commands share, and the one folder of each command.

The cache (`Store`) has content-addressed images, an SQLite index of answers and frames, and claims on work under way.

Every command that writes a folder (run, redo, eval, ablate, compare, tune, train) writes it through a `Workspace`. Its
`Kind` names the state file, which is the first file of the folder and says what the others were made from; a folder
without it belongs to somebody else and is left alone.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from filelock import lock_descriptor
from pydantic import BaseModel, ConfigDict, ValidationError

from katha.errors import CorruptEntryError, InputFileError, OutputFolderError, StoreError
from katha.jsonio import PARTIAL, canonical, digest, loads, read_json, sha256_hex, write_bytes_atomic, write_json
from katha.schema import Answer

_POLL_SECONDS = 0.005


class LockTaken(StoreError):
    """Another process holds the lock, and the caller did not want to wait."""


@contextmanager
def _told(what: str, path: Path, hint: str | None = None) -> Iterator[None]:
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
    with _told("Cannot make the lock", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        with _told("Cannot lock", path):
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
        with suppress(OSError):
            if path.read_bytes() == data:
                return sha256
        write_bytes_atomic(path, data)
        return sha256

    def get(self, sha256: str) -> bytes:
        """Return the bytes of that hash, verified.

        Raises:
            CorruptEntryError: the bytes do not have their hash; they are in quarantine now.
            StoreError: there is no such blob, or it cannot be read.
        """
        path, moved = self.path(sha256), self.quarantine / f"blob-{sha256}"
        with _told("Cannot read the stored file", path):
            data = path.read_bytes()
        if sha256_hex(data) == sha256:
            return data
        with _told("Cannot move the corrupted file", path), suppress(FileNotFoundError):  # another process was faster
            self.quarantine.mkdir(parents=True, exist_ok=True)
            os.replace(path, moved)
        raise CorruptEntryError(
            f"The stored file {str(path)!r} does not have its hash any more; it was moved to {str(moved)!r}.",
            hint="It is made again when it is needed.",
        )

    def find(self, sha256: str) -> bytes | None:
        """Return the verified bytes, or None when they are missing or were just quarantined."""
        with suppress(CorruptEntryError):
            return self.get(sha256) if self.path(sha256).exists() else None
        return None


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
            kept = self.quarantine / f"{kind}-{sha256_hex(key.encode())}"
            try:
                self.quarantine.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(data)
            except OSError as error:
                if error.errno != errno.ENOSPC:  # a full disk does not stop the work for a look at a broken record
                    raise StoreError(f"Cannot write {str(kept)!r}: {error.strerror}.") from error
            self.drop(kind, key)
            return None

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
            except sqlite3.Error as error:
                raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> StoreError:
        full = "full" in str(error) or "disk I/O" in str(error)
        hint = "Free some space and run the same command again." if full else "Run the same command again."
        return StoreError(f"The cache {str(self.path)!r} refused a record: {error}.", hint=hint)

    def _open(self) -> sqlite3.Connection:
        """Open the database; what is none any more is set aside with its companions, and new records start empty."""
        hint = "Name a folder that can be written in KATHA_CACHE."
        try:
            with _told("Cannot write the cache", self.path, hint):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    return self._connect()
                except sqlite3.OperationalError:
                    raise
                except sqlite3.DatabaseError:
                    self.quarantine.mkdir(parents=True, exist_ok=True)
                    for suffix in ("", "-wal", "-shm"):
                        with suppress(FileNotFoundError):
                            name = self.path.name + suffix
                            self.path.with_name(name).replace(self.quarantine / name)
                    return self._connect()
        except sqlite3.Error as error:
            raise self._explain(error) from error

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


class AnswerCache:
    """Answers by the hash of everything that can change them. A typed failure is never kept as an answer."""

    def __init__(self, index: Index) -> None:
        self._index = index

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
            self._index.put("answer", key, canonical(answer.model_dump(mode="json")))

    def asked(self) -> int:
        """Return how many kept answers this run has paid for, over all its processes."""
        return self._index.paid("answer")


class FrameIndex:
    """Which image a request to a renderer gave. A hit whose bytes are gone or corrupted is no hit.

    looked_up: the keys that were asked for since somebody cleared it: what a board needs, drawn now or before.
    """

    def __init__(self, index: Index, blobs: Blobs) -> None:
        self._index = index
        self._blobs = blobs
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
        self._index.put("frame", key, sha256.encode("ascii"))
        return self.get(key) or sha256

    def put_receipt(self, sha256: str, receipt: Mapping[str, object]) -> None:
        """Remember how the image came about: which service and version drew it, when, and for how much."""
        self._index.put("receipt", sha256, canonical(dict(receipt)))

    def receipt(self, sha256: str) -> dict[str, object] | None:
        """Return how the image came about, if its renderer said."""
        data = self._index.get("receipt", sha256)
        value = loads(data.decode("utf-8")) if data is not None else None
        return value if isinstance(value, dict) else None

    def rendered(self) -> int:
        """Return how many remembered frames this run has paid for, over all its processes."""
        return self._index.paid("frame")


_CLAIM_FILES = 256


class Store:
    """Everything under one cache folder. Two processes may use one folder at once.

    `owner` is the id of the run on whose account new records are paid (it makes the paid counts survive a kill).
    """

    def __init__(self, folder: Path, owner: str = "") -> None:
        self.folder = folder
        quarantine = folder / "quarantine"
        self.index = Index(folder / "index.sqlite", quarantine, owner)
        self.blobs = Blobs(folder / "blobs", quarantine)
        self.answers = AnswerCache(self.index)
        self.frames = FrameIndex(self.index, self.blobs)

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

    def __exit__(self, *_: object) -> None:
        self.close()


Status = Literal["running", "finished", "incomplete", "budget_stopped"]
"""`running` is also what a killed command leaves; `incomplete` has questions or boards that the same command tries
again; `budget_stopped` goes on with a larger budget."""

_LOCK = ".lock"
_HINT = "Choose another --out."


class State(BaseModel):
    """What every state file holds. A command's own fields are its subclass's; keys of other versions are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    format: Literal[1]
    katha: str = ""
    status: Status = "running"

    def identity(self) -> Mapping[str, object]:
        """Return what makes two folders the same: what must be equal, by the words for a difference (`other prompts`).

        The words end the sentence "'out' holds a katha run with ...".
        """
        return {}

    @property
    def subject(self) -> str:
        """What the folder is about, as it follows its kind in a sentence (` of 'the_lion'`), or nothing."""
        return ""


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Kind(Generic[S]):
    """What the folders of one command have in common.

    name: what they hold, as in "a katha run". file: the state file's name. state: what it holds. early: names that may
    stand in the folder before its state file does. drafts: globs of what a refused command takes back, where the
    folders in `early` are empty.
    """

    name: str
    file: str
    state: type[S]
    early: frozenset[str] = frozenset()
    drafts: tuple[str, ...] = ()


class Workspace(Generic[S]):
    """The folder `path` of one command."""

    def __init__(self, path: Path, kind: Kind[S]) -> None:
        self.path = path
        self.kind = kind
        self.state_file = path / kind.file

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone; the system lets go of it when the process dies.

        Raises:
            OutputFolderError: it is a file, cannot be written, holds something else, or another katha is working in it.
        """
        name = str(self.path)
        try:
            self._refuse_foreign()
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise OutputFolderError(f"Cannot use the folder {name!r}: {error.strerror}.", hint=_HINT) from error
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.path / _LOCK, wait=False))
            except LockTaken as error:
                hint = "Wait for it, or choose another --out."
                raise OutputFolderError(f"Another katha is working in {name!r}.", hint=hint) from error
            except StoreError as error:
                raise OutputFolderError(error.message, hint=_HINT) from error
            yield

    def _refuse_foreign(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise OutputFolderError(f"{str(self.path)!r} is a file, not a folder.", hint=_HINT)
        entries = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        ours = {_LOCK, *self.kind.early}
        strange = [name for name in entries if name not in ours and not (name[0] == "." and name.endswith(PARTIAL))]
        if strange and self.kind.file not in entries:
            raise OutputFolderError(
                f"{str(self.path)!r} holds files that are not of a katha {self.kind.name}, {strange[0]!r} for one.",
                hint=_HINT,
            )
        self.read()

    def read(self) -> S | None:
        """Return what the state file holds, or None when there is none.

        Raises:
            OutputFolderError: there is one, but it is not of this kind.
        """
        if not self.state_file.exists():
            return None
        try:
            return self.kind.state.model_validate(read_json(self.state_file))
        except InputFileError as error:
            raise OutputFolderError(error.message, hint=_HINT) from error
        except ValidationError as error:
            name = self.kind.name
            raise OutputFolderError(f"{str(self.state_file)!r} is not of a katha {name}.", hint=_HINT) from error

    def resume(self, fresh: S) -> S | None:
        """Return the state that the folder was begun with, where it is that of `fresh`; None where the folder is new.

        Raises:
            OutputFolderError: the folder holds another one of its kind; what differs is named.
        """
        known = self.read()
        if known is None:
            return None
        before, now = known.identity(), fresh.identity()
        differs = [words for words, value in now.items() if digest(before.get(words)) != digest(value)]
        if differs:
            raise OutputFolderError(
                f"{str(self.path)!r} holds a katha {self.kind.name}{known.subject} with {' and '.join(differs)}.",
                hint="Choose another --out (what both have in common is in the cache), or remove that folder.",
            )
        return known

    def write(self, state: S) -> S:
        """Write the state file, atomically, and return `state`."""
        write_json(self.state_file, state.model_dump(mode="json"))
        return state

    def finish(self, state: S, status: Status = "finished") -> S:
        """Write the state file a last time: the folder holds everything that `status` says it does, and no more."""
        for torn in self.path.rglob(f".*{PARTIAL}"):
            torn.unlink(missing_ok=True)
        return self.write(state.model_copy(update={"status": status}))

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return which of these files are not there."""
        return [name for name in names if not (self.path / name).is_file()]

    def abandon(self) -> None:
        """Take back a command that was refused before it made anything: the corrected one may use the folder."""
        early = [self.path / name for name in sorted(self.kind.early)]
        if any(any(folder.iterdir()) for folder in early if folder.is_dir()):
            return
        for pattern in (*self.kind.drafts, self.kind.file, f".*{PARTIAL}", _LOCK):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        for folder in (*early, self.path):
            with suppress(OSError):  # it is gone already, or somebody put a file into it
                folder.rmdir()
