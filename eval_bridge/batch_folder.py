"""The batches of one evaluation on disk: `OUT/batches/`, where every step is durable before the next one is taken.

A batch's requests are written first, then its record with the state `ready`; the uploaded file's id and the batch's id
(`sent`) go into the record before anything is waited for; its results (`ended`) are a file before they are used; and
when their answers are in the log it is `closed`. A kill between two steps is made good from the record alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from katha.eval_bridge.judges.batches import BatchResult, Sent
from katha.jsonio import canonical, read_json, write_json

__all__ = ["BatchFolder", "Chunk", "ChunkWriter", "read_result"]


@dataclass(frozen=True)
class Chunk:
    """One batch: whose it is (judge and the hash of its specification), how far it is, and the keys of its requests."""

    number: int
    judge: str
    spec: str
    state: str
    since: str
    keys: tuple[str, ...]
    file_id: str | None = None
    batch_id: str | None = None

    @property
    def sent(self) -> Sent:
        """What a vendor may be asked about it."""
        return Sent(len(self.keys), datetime.fromisoformat(self.since), self.file_id)


class BatchFolder:
    """`OUT/batches/`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def chunks(self, judge: str | None = None) -> list[Chunk]:
        """The batches that are not closed, in order."""
        return [chunk for chunk in self._all() if chunk.state != "closed" and judge in (None, chunk.judge)]

    def ids(self) -> frozenset[str]:
        """The vendors' ids of all batches, closed ones included."""
        return frozenset(chunk.batch_id for chunk in self._all() if chunk.batch_id is not None)

    def _all(self) -> Iterator[Chunk]:
        for path in sorted(self.path.glob("[0-9]*.json")):
            value = read_json(path)
            yield Chunk(**{**value, "keys": tuple(value["keys"])})

    def requests(self, chunk: Chunk) -> Path:
        """The file of a batch's requests."""
        return self.path / f"{chunk.number:06d}.requests.jsonl"

    def results(self, chunk: Chunk) -> Path:
        """The file of a batch's results."""
        return self.path / f"{chunk.number:06d}.results.jsonl"

    def keep(self, chunk: Chunk, **changes: Any) -> Chunk:
        """Write a batch's record, durably."""
        fresh = replace(chunk, **changes)
        write_json(self.path / f"{chunk.number:06d}.json", asdict(fresh))
        return fresh

    def keep_results(self, chunk: Chunk, results: Iterable[BatchResult]) -> Chunk:
        """Write what came of a batch, then say so; its requests are not needed any more."""
        lines = (canonical({"key": one.key, "body": one.body, "error": one.error}) + b"\n" for one in results)
        target = self.results(chunk)
        fresh = target.with_suffix(".part")
        with fresh.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
        done = self.keep(chunk, state="ended")
        self.requests(chunk).unlink(missing_ok=True)
        return done

    def close(self) -> None:
        """The answers of every batch that has ended are in the log."""
        for chunk in self.chunks():
            if chunk.state == "ended":
                self.keep(chunk, state="closed")

    def begin(self, judge: str, spec: str) -> ChunkWriter:
        """A new batch to write requests into."""
        self.path.mkdir(parents=True, exist_ok=True)
        taken = [int(path.name.partition(".")[0]) for path in self.path.glob("[0-9]*.json")]
        now = datetime.now(UTC).isoformat()
        return ChunkWriter(self, Chunk(max(taken, default=0) + 1, judge, spec, "ready", now, ()))

    def index(self, judge: str) -> dict[str, tuple[Path, int]]:
        """Where the result of each key is, over the judge's batches that have ended."""
        places: dict[str, tuple[Path, int]] = {}
        for chunk in self.chunks(judge):
            if chunk.state == "ended":
                path, wanted = self.results(chunk), set(chunk.keys)
                places |= {key: (path, start) for key, start in _starts(path) if key in wanted}
        return places


def read_result(place: tuple[Path, int]) -> BatchResult:
    """The result at a place of the index."""
    with place[0].open("rb") as file:
        file.seek(place[1])
        row = json.loads(file.readline())
    return BatchResult(row["key"], row["body"], row["error"])


class ChunkWriter:
    """Writes the requests of one batch; `seal` makes the batch known."""

    def __init__(self, folder: BatchFolder, chunk: Chunk) -> None:
        self._folder, self._chunk = folder, chunk
        self._file: BinaryIO = folder.requests(chunk).open("wb")
        self.keys: list[str] = []
        self.size = 0

    def add(self, key: str, request: Mapping[str, Any]) -> None:
        """Write one request."""
        line = canonical({"key": key, "request": dict(request)}) + b"\n"
        self._file.write(line)
        self.keys.append(key)
        self.size += len(line)

    def seal(self) -> Chunk:
        """Everything is written: keep the requests, then the record."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._folder.keep(self._chunk, keys=tuple(self.keys))


def _starts(path: Path) -> Iterator[tuple[str, int]]:
    start = 0
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)["key"], start
            start += len(line)
