"""The folder of one run: its files' names, panels, the growing answer log, and whose folder it is."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.errors import InputFileError, OutputFolderError, StoreError
from katha.jsonio import canonical, read_json, sha256_hex, write_bytes_atomic, write_json
from katha.schema import CONDITIONS, Answer
from katha.store.locking import LockTaken, file_lock

_LOCK = ".lock"


class RunFolder:
    """`OUT` of one run. Records go through here; who may write in it is decided by `claim`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.panels = path / "panels"
        self.run_json = path / "run.json"
        self.story = path / "story.jsonl"
        self.plan = path / "plan.json"
        self.storyboard = path / "storyboard.json"
        self.candidates = path / "candidates.json"
        self.answers = path / "answers.jsonl"
        self.scores = path / "scores.json"
        self.graph = path / "graph.sqlite"
        self.versions = path / "versions"
        self._lock = threading.Lock()

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone.

        Raises:
            OutputFolderError: it cannot be written, holds something else, or another katha is working in it.
        """
        self._refuse_foreign()
        try:
            self.panels.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise OutputFolderError(
                f"Cannot write the folder {str(self.path)!r}: {error.strerror}.", hint="Choose another --out."
            ) from error
        try:
            with file_lock(self.path / _LOCK, wait=False):
                yield
        except LockTaken as error:
            raise OutputFolderError(
                f"Another katha is working in {str(self.path)!r}.", hint="Wait for it, or choose another --out."
            ) from error

    def _refuse_foreign(self) -> None:
        hint = "Choose another --out."
        try:
            if self.path.exists() and not self.path.is_dir():
                raise OutputFolderError(f"{str(self.path)!r} is a file, not a folder.", hint=hint)
            entries = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        except OSError as error:
            raise OutputFolderError(
                f"Cannot read the folder {str(self.path)!r}: {error.strerror}.", hint=hint
            ) from error
        if entries - {_LOCK, "panels"} and not self.run_json.exists():
            raise OutputFolderError(
                f"{str(self.path)!r} holds files that are not of a katha run, {sorted(entries)[0]!r} for one.",
                hint=hint,
            )
        self.read_run()

    def read_run(self) -> dict[str, Any] | None:
        """`run.json`, or None when there is none.

        Raises:
            OutputFolderError: there is one, but it is not a katha run's.
        """
        if not self.run_json.exists():
            return None
        try:
            value = read_json(self.run_json)
        except InputFileError as error:
            raise OutputFolderError(f"{error.message}", hint="Choose another --out.") from error
        if not isinstance(value, dict) or value.get("format") != 1 or "katha" not in value:
            raise OutputFolderError(f"{str(self.run_json)!r} is not of a katha run.", hint="Choose another --out.")
        return value

    def add_panel(self, sha256: str, png: bytes) -> Path:
        """Put one image into `panels/` (atomic; the durable copy is the cache's)."""
        path = self.panels / f"{sha256}.png"
        if self.panel(sha256) is None:
            write_bytes_atomic(path, png, durable=False)
        return path

    def panel(self, sha256: str) -> bytes | None:
        """The image of that hash, or None when it is missing or its bytes have changed."""
        try:
            data = (self.panels / f"{sha256}.png").read_bytes()
        except OSError:
            return None
        return data if sha256_hex(data) == sha256 else None

    def append_answers(self, rows: Iterable[Answer]) -> None:
        """Add rows to the log in one write; `sync_answers` makes them survive a power cut."""
        data = b"".join(canonical(row.model_dump(mode="json")) + b"\n" for row in rows)
        if not data:
            return
        try:
            with self._lock, self.answers.open("a+b") as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":
                        data = b"\n" + data  # a kill tore the last line: close it, so that it takes nothing with it
                file.write(data)
        except OSError as error:
            hint = "Free some space and run the same command again."
            raise StoreError(f"Cannot write {str(self.answers)!r}: {error.strerror}.", hint=hint) from error

    def sync_answers(self) -> None:
        """Wait until the log is on the disk: before a checkpoint says that its rows are there."""
        try:
            with self._lock, self.answers.open("ab") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"Cannot write {str(self.answers)!r}: {error.strerror}.") from error

    def read_answers(self) -> list[Answer]:
        """The log's rows in a fixed order, the last of each key; torn lines (after a kill) are left out."""
        rows: dict[tuple[str, ...], Answer] = {}
        if not self.answers.exists():
            return []
        for line in self.answers.read_bytes().split(b"\n"):
            try:
                row = Answer.model_validate_json(line)
            except ValidationError:
                continue
            rows[_order(row)] = row
        return [rows[key] for key in sorted(rows)]

    def write_answers(self, rows: Iterable[Answer]) -> None:
        """Replace the log by `rows`, atomically."""
        ordered = sorted(rows, key=_order)
        data = b"".join(canonical(row.model_dump(mode="json")) + b"\n" for row in ordered)
        write_bytes_atomic(self.answers, data)

    def write(self, path: Path, value: Any) -> None:
        """Write one JSON file of the folder, atomically."""
        write_json(path, value)

    def write_line(self, path: Path, value: Any) -> None:
        """Write a JSON Lines file of one line, atomically."""
        write_bytes_atomic(path, canonical(value) + b"\n")

    def keep_version(self) -> Path:
        """Copy the files that a change is about to replace into `versions/NNN`, durably, and mark the change as begun.

        `restore` brings them back until `commit_version` is called.
        """
        number = len([path for path in self.versions.glob("[0-9]*") if path.is_dir()]) + 1
        version = self.versions / f"{number:03d}"
        for path in self._versioned():
            write_bytes_atomic(version / path.name, path.read_bytes())
        write_bytes_atomic(self._pending, version.name.encode("ascii"))
        return version

    def commit_version(self) -> None:
        """The change is whole: the old version stays for reading only."""
        self._pending.unlink(missing_ok=True)

    def restore(self) -> bool:
        """Undo a change that was killed half way; True when there was one."""
        if not self._pending.exists():
            return False
        version = self.versions / self._pending.read_text(encoding="ascii")
        for path in self._versioned():
            write_bytes_atomic(path, (version / path.name).read_bytes())
        self._pending.unlink()
        shutil.rmtree(version)
        return True

    @property
    def _pending(self) -> Path:
        return self.versions / "pending"

    def _versioned(self) -> list[Path]:
        return [self.run_json, self.storyboard, self.candidates, self.answers, self.scores]

    def tidy(self) -> None:
        """Remove what a killed process left half written in `panels/`."""
        for path in self.panels.glob(".*"):
            path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Take back a run that was refused before anything was drawn: the corrected input may use the folder."""
        if any(self.panels.iterdir()):
            return
        kept = (self.run_json, self.story, self.plan, self.answers, self.path / _LOCK, *self.path.glob("graph.sqlite*"))
        for path in kept:
            path.unlink(missing_ok=True)
        for folder in (self.panels, self.path):
            with suppress(OSError):
                folder.rmdir()

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """The files that a finished run must have and this one has not (a changed panel counts as missing)."""
        files = [self.story, self.plan, self.storyboard, self.candidates, self.answers, self.scores]
        absent = [file.name for file in files if not file.is_file()]
        return absent + [f"panels/{sha256}.png" for sha256 in hashes if self.panel(sha256) is None]


def _order(row: Answer) -> tuple[str, ...]:
    return (row.method or "", row.story_id, str(CONDITIONS.index(row.condition)), row.question_id, row.judge)
