"""The folder of one evaluation: who may write in it, which answers it holds, and its answers in one fixed order.

Answers are appended as they arrive, in whatever order; `tidy` leaves each question's last answer once, in story-major
order, so that a run that was killed and taken up again ends with the bytes of one that was not."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, OutputFolderError, StoreError
from katha.eval_bridge.judging.answers import AnswerLog, iter_answers
from katha.eval_bridge.matching.verdicts import VERDICTS
from katha.jsonio import canonical, read_json, write_json
from katha.schema import Answer, AnswerStatus
from katha.store import LockTaken, file_lock

SETTLED: frozenset[AnswerStatus] = frozenset(("ok", "unparseable", "refused", "truncated"))
"""What a judge has said, well or badly: not asked again. Every other status is asked again by the same command."""

Order = Callable[[Answer], tuple[int, ...] | None]
"""A row's place, or None for a row that is no part of the evaluation (any more)."""

_LOCK = ".lock"
_HINT = "Choose another --out."
_SYNC_SECONDS = 1.0


class EvalFolder:
    """`OUT` of one evaluation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.eval_json = path / "eval.json"
        self.stories = path / "stories.jsonl"
        self.answers = path / "answers.jsonl"
        self.controls = path / "controls.jsonl"
        self.left = path / "left.jsonl"
        self.verdicts = path / VERDICTS
        self.variants = path / "contrastive_variants.jsonl"
        self.scores = path / "scores.json"
        self.report = path / "report.html"
        self.batches = path / "batches"

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone.

        Raises:
            OutputFolderError: it cannot be written, holds something else, or another katha is working in it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            entries = {entry.name for entry in self.path.iterdir()}
        except OSError as error:
            raise OutputFolderError(f"Cannot use {str(self.path)!r}: {error.strerror}.", hint=_HINT) from error
        if entries - {_LOCK} and not self.eval_json.exists():
            raise OutputFolderError(
                f"{str(self.path)!r} holds files that are not of an evaluation, {sorted(entries)[0]!r} for one.",
                hint=_HINT,
            )
        try:
            with file_lock(self.path / _LOCK, wait=False):
                yield
        except LockTaken as error:
            raise OutputFolderError(
                f"Another katha is working in {str(self.path)!r}.", hint=f"Wait for it. {_HINT}"
            ) from error

    def read(self) -> dict[str, Any] | None:
        """`eval.json`, or None when there is none.

        Raises:
            OutputFolderError: there is one, but it is not an evaluation's.
        """
        if not self.eval_json.exists():
            return None
        try:
            value = read_json(self.eval_json)
        except InputFileError as error:
            raise OutputFolderError(error.message, hint=_HINT) from error
        if not isinstance(value, dict) or value.get("format") != 1 or "identity" not in value:
            raise OutputFolderError(f"{str(self.eval_json)!r} is not of a katha evaluation.", hint=_HINT)
        return value

    def write(self, state: Mapping[str, Any]) -> None:
        """Write `eval.json`, atomically."""
        write_json(self.eval_json, dict(state))

    def settled(self) -> set[bytes]:
        """The marks of the questions that are answered already, by the last row of each."""
        latest: dict[bytes, bytes | None] = {}
        for path in (self.answers, self.controls):
            for row in iter_answers(path) if path.exists() else ():
                key = mark(row.method, row.judge, row.story_id, row.question_id, row.condition)
                sign = mark(row.method, row.judge, row.story_id, row.question_id, row.packet_sha256)
                latest[key] = sign if row.status in SETTLED else None
        return {sign for sign in latest.values() if sign is not None}

    def forget(self, judges: frozenset[str]) -> None:
        """Drop the rows of judges that are not what they were."""
        for path in (self.answers, self.controls):
            if judges and path.exists():
                kept, start = [], 0
                with path.open("rb") as file:
                    for line in file:
                        if line.endswith(b"\n") and Answer.model_validate_json(line).judge not in judges:
                            kept.append((start, len(line)))
                        start += len(line)
                _rewrite(path, kept)

    def tidy(self, path: Path, order: Order) -> int:
        """Leave the last row of each key, in order; the number of rows that remain."""
        if not path.exists():
            return 0
        latest: dict[tuple[int, ...], tuple[int, int]] = {}
        places: list[tuple[int, ...]] = []
        start = 0
        with path.open("rb") as file:
            for line in file:
                row = Answer.model_validate_json(line) if line.endswith(b"\n") else None
                place = order(row) if row is not None else None
                if place is not None:
                    latest[place] = (start, len(line))
                places.append(place or ())
                start += len(line)
        if places != sorted(latest):
            _rewrite(path, [latest[place] for place in sorted(latest)])
        return len(latest)


def mark(method: str | None, judge: str, story: str, question: str, about: str) -> bytes:
    """Sixteen bytes that stand for one question put to one judge about one packet (or condition)."""
    return hashlib.blake2b(canonical([method, judge, story, question, about]), digest_size=16).digest()


def _rewrite(path: Path, spans: list[tuple[int, int]]) -> None:
    """Copy the lines at `spans` over the file, atomically, without holding them all."""
    fresh = path.with_name(f".{path.name}.fresh")
    try:
        with path.open("rb") as source, fresh.open("wb") as target:
            for start, length in spans:
                source.seek(start)
                target.write(source.read(length))
            target.flush()
            os.fsync(target.fileno())
        fresh.replace(path)
    except OSError as error:
        raise StoreError(
            f"Cannot write {str(path)!r}: {error.strerror}.", hint="Run the same command again."
        ) from error


class Writer:
    """An answer log that is on the disk within a second of every slow answer, without a flush for every quick one.

    Several threads may write to it.
    """

    def __init__(self, log: AnswerLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock, self._synced = log, clock, clock()
        self._lock = threading.Lock()

    def __call__(self, answer: Answer) -> None:
        """Append one answer."""
        with self._lock:
            self._log.append(answer)
            if self._clock() - self._synced >= _SYNC_SECONDS:
                self._log.sync()
                self._synced = self._clock()
