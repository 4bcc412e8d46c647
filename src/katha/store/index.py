"""The small records of the cache: one SQLite database in WAL mode.

Why not a file per record: a suite asks hundreds of thousands of questions with answers of a few hundred bytes, which
as files would take a block and an inode each; SQLite gives atomic writes, two writing processes and one grouped flush.

Durability: a committed record survives a killed process. The write-ahead log is flushed to the disk by the first
commit that comes a second or more after the last flush, and by `flush()`; so a power cut costs at most a second of
quick answers, while slow (paid) answers are flushed one by one.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from katha.errors import StoreError
from katha.jsonio import sha256_hex
from katha.store.blobs import quarantine_bytes
from katha.store.locking import file_lock

__all__ = ["Index"]

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
        """The record, verified; a record that fails its hash is quarantined and gone."""
        with self._lock:
            rows = self._run("SELECT value, sha256 FROM entries WHERE kind = ? AND key = ?", kind, key)
            if not rows:
                return None
            value, sha256 = rows[0]
            data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            if sha256_hex(data) != sha256:
                quarantine_bytes(self.quarantine, f"{kind}-{sha256_hex(key.encode())}", data)
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
        """How many records of `kind` that owner has paid for."""
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

    def _quarantine_database(self) -> None:
        """Set a database that is not one any more aside, with its companions; new records start empty."""
        self.quarantine.mkdir(parents=True, exist_ok=True)
        for suffix in ("", "-wal", "-shm"):
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                source.replace(self.quarantine / source.name)
