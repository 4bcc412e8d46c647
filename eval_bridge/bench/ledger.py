"""What has to be remembered across lines: ids and links, in a temporary SQLite file, so that memory stays flat."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from katha.jsonio import sha256_hex

__all__ = ["Ledger"]

_SCHEMA = """
CREATE TABLE stories (file TEXT, story TEXT, line INTEGER, type TEXT, moral TEXT, resolution TEXT, split TEXT,
                      questions INTEGER, digest TEXT, PRIMARY KEY (file, story));
CREATE TABLE variants (id TEXT PRIMARY KEY, story TEXT, file TEXT, line INTEGER, type TEXT, moral TEXT, digest TEXT);
CREATE TABLE validations (story TEXT PRIMARY KEY, file TEXT, line INTEGER, moral TEXT, resolution TEXT);
CREATE TABLE questions (file TEXT, id TEXT, story TEXT, PRIMARY KEY (file, id));
CREATE TABLE promised (id TEXT, story TEXT, file TEXT, line INTEGER);
CREATE TABLE texts (story TEXT PRIMARY KEY, digest TEXT);
CREATE INDEX variants_by_story ON variants (story);
"""


class Ledger:
    """Append rows while streaming, then ask what does not fit together. SQLite spills to disk what is too much."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")
        self._db.execute("PRAGMA temp_store = FILE")
        self._db.executescript(_SCHEMA)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def add(self, table: str, **values: Any) -> bool:
        """Insert a row; False when its key is there already."""
        marks = ", ".join("?" * len(values))
        sql = f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({marks})"
        return self._db.execute(sql, tuple(values.values())).rowcount == 1

    def take(self, file: str, question: str, story: str) -> str | None:
        """The story of `file` that has the question id already; None when `story` is the first, or the same."""
        if self.add("questions", file=file, id=question, story=story):
            return None
        owner = next(self.ask("SELECT story FROM questions WHERE file = ? AND id = ?", file, question))[0]
        return None if owner == story else str(owner)

    def ask(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, streamed."""
        return iter(self._db.execute(sql, values))

    def count(self, sql: str, *values: Any) -> int:
        """The one number that a query answers."""
        return int(next(self.ask(sql, *values))[0])

    @staticmethod
    def digest(text: str) -> str:
        """A short digest, so that texts can be compared without being kept."""
        return sha256_hex(text.encode("utf-8"))[:32]
