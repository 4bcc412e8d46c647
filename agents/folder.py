"""The files of one run, in a folder or in memory: pictures, plan, the growing answer log and results; and `run.json`,
what a run was made from and what it cost.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from pydantic import BaseModel, SerializerFunctionWrapHandler, ValidationError, model_serializer

from katha.config import Settings, identity_of, katha_version
from katha.errors import OutputFolderError, StoreError
from katha.eval_bridge.judging.answers import answer_line
from katha.jsonio import canonical, digest, read_json, sha256_hex, write_bytes_atomic, write_json
from katha.schema import CONDITIONS, Answer, Board, Candidates, Plan, StoryRecord
from katha.schema.scores import Scores
from katha.schema.tables import ServiceUse
from katha.store import Kind, State, Store, Workspace

_PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "pydantic", "numpy", "pillow", "onnxruntime", "resvg-py")


class MemoryFiles:
    """Pictures and answers of a run that leaves no folder (a row of a suite); durable copies are the cache's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pictures: dict[str, bytes] = {}
        self.rows: list[Answer] = []
        self._lock = threading.Lock()

    def panel(self, sha256: str) -> bytes | None:
        """Return the picture of that hash, or None."""
        return self.pictures.get(sha256)

    def add_panel(self, sha256: str, png: bytes) -> None:
        """Keep a picture."""
        self.pictures[sha256] = png

    def append_answers(self, rows: Iterable[Answer]) -> None:
        """Keep answers, in the order in which they came; several branches may bring some."""
        with self._lock:
            self.rows += rows

    def sync_answers(self) -> None:
        """Memory is as durable as it gets."""


class RunRecord(State):
    """`run.json`: what a run was made from, how far it is, and what it cost."""

    katha: str
    run_id: str
    story_id: str = ""
    record_sha256: str = ""
    given_plan_sha256: str | None = None
    config: Mapping[str, object] = {}
    """The settings as they were written; another version of katha may have others."""
    planner: Mapping[str, object] | None = None
    renderer: Mapping[str, object] | None = None
    bridge_renderer: Mapping[str, object] | None = None
    judges: list[Mapping[str, object]] = []
    similarity: Mapping[str, object] | None = None
    matching: str = ""
    prompts: Mapping[str, str] = {}
    versions: Mapping[str, str] = {}
    seeds: list[int] = []
    timings: Mapping[str, float] = {}
    paid: Mapping[str, int] = {}
    command: list[str] = []
    notes: list[str] = []
    failures: list[Mapping[str, object]] = []
    services: list[ServiceUse] = []
    redone: list[Mapping[str, object]] = []
    coverage: Mapping[str, object] | None = None
    """How many of the story's sentences were read and drawn, and which were not."""

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        """A run that no service drew for, that nobody changed, with an answer to every question, has no such keys."""
        dump: dict[str, object] = handler(self)
        return {
            key: value
            for key, value in dump.items()
            if value or key not in ("services", "redone", "failures", "coverage", "files", "sizes")
        }

    @property
    def subject(self) -> str:
        """The story."""
        return f" of {self.story_id!r}"

    def identity(self) -> Mapping[str, object]:
        """Return everything that can change the run's files."""
        return {
            "another story (or another version of it)": self.record_sha256,
            "other settings": identity_of(self.config),
            "another plan": self.given_plan_sha256,
            "another version of katha": self.katha,
            "another planner": self.planner,
            "another renderer": self.renderer,
            "another bridge renderer": self.bridge_renderer,
            "other judges": self.judges,
            "another similarity model": self.similarity,
            "other prompts": self.prompts,
        }


class RunFolder(Workspace[RunRecord]):
    """`OUT` of one run."""

    KIND = Kind(
        name="run",
        file="run.json",
        state=RunRecord,
        early=frozenset(("panels",)),
        drafts=("story.jsonl", "plan.json", "answers.jsonl", "graph.sqlite*"),
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path, self.KIND)
        self.panels = path / "panels"
        self.story = path / "story.jsonl"
        self.plan = path / "plan.json"
        self.storyboard = path / "storyboard.json"
        self.candidates = path / "candidates.json"
        self.answers = path / "answers.jsonl"
        self.scores = path / "scores.json"
        self.graph = path / "graph.sqlite"
        self.versions = path / "versions"
        self._pending = self.versions / "pending"
        self._versioned = (self.state_file, self.storyboard, self.candidates, self.answers, self.scores)
        self._lock = threading.Lock()

    def add_panel(self, sha256: str, png: bytes) -> None:
        """Put one image into `panels/` (atomic; the durable copy is the cache's)."""
        if self.panel(sha256) is None:
            write_bytes_atomic(self.panels / f"{sha256}.png", png, durable=False)

    def panel(self, sha256: str) -> bytes | None:
        """Return the image of that hash, or None when it is missing or its bytes have changed."""
        try:
            data = (self.panels / f"{sha256}.png").read_bytes()
        except OSError:
            return None
        return data if sha256_hex(data) == sha256 else None

    def append_answers(self, rows: Iterable[Answer]) -> None:
        """Add rows to the log in one write; `sync_answers` makes them survive a power cut."""
        data = b"".join(map(answer_line, rows))
        if not data:
            return
        with self._log() as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    data = b"\n" + data  # a kill tore the last line: close it, so that it takes nothing with it
            file.write(data)

    def sync_answers(self) -> None:
        """Wait until the log is on the disk: before a checkpoint says that its rows are there."""
        with self._log() as file:
            os.fsync(file.fileno())

    @contextmanager
    def _log(self) -> Iterator[BinaryIO]:
        try:
            with self._lock, self.answers.open("a+b") as file:
                yield file
        except OSError as error:
            hint = "Free some space and run the same command again."
            raise StoreError(f"Cannot write {str(self.answers)!r}: {error.strerror}.", hint=hint) from error

    def read_answers(self) -> list[Answer]:
        """Return the log's rows in a fixed order, the last of each key; torn lines (after a kill) are left out."""
        rows: dict[tuple[str, ...], Answer] = {}
        for line in self.answers.read_bytes().split(b"\n") if self.answers.exists() else ():
            with suppress(ValidationError):
                row = Answer.model_validate_json(line)
                rows[_order(row)] = row
        return [rows[key] for key in sorted(rows)]

    def write_answers(self, rows: Iterable[Answer]) -> None:
        """Replace the log by `rows`, atomically."""
        write_bytes_atomic(self.answers, b"".join(map(answer_line, sorted(rows, key=_order))))

    def save_plan(self, plan: Plan, story: StoryRecord) -> None:
        """Write `plan.json` and `story.jsonl`, atomically."""
        write_json(self.plan, plan.model_dump(mode="json"))
        write_bytes_atomic(self.story, canonical(story.model_dump(mode="json")) + b"\n")

    def load_plan(self) -> Plan:
        """Return what `plan.json` holds."""
        return Plan.model_validate(read_json(self.plan))

    def load_story(self) -> StoryRecord:
        """Return the one line of `story.jsonl`."""
        return StoryRecord.model_validate(read_json(self.story))

    def save_results(self, candidates: Candidates, scores: Scores, board: Board) -> None:
        """Write `candidates.json`, `scores.json` and, last, `storyboard.json`, each atomically."""
        write_json(self.candidates, candidates.model_dump(mode="json"))
        write_json(self.scores, scores.model_dump(mode="json"))
        write_json(self.storyboard, board.model_dump(mode="json"))

    def keep_version(self, number: int) -> str:
        """Copy the files that a change is about to replace into `versions/NNN`, durably, and mark the change as begun.

        `restore` brings them back until `commit_version` is called. Gives the version's name.
        """
        name = f"{number:03d}"
        for path in self._versioned:
            write_bytes_atomic(self.versions / name / path.name, path.read_bytes())
        write_bytes_atomic(self._pending, name.encode("ascii"))
        return name

    def commit_version(self) -> None:
        """The change is whole: the old version stays for reading only."""
        self._pending.unlink(missing_ok=True)

    def restore(self) -> bool:
        """Undo a change that was killed half way; True when there was one.

        Raises:
            OutputFolderError: `versions/pending` names no version of this run (a received folder may hold anything).
        """
        if not self._pending.exists():
            return False
        name = self._pending.read_bytes()
        version = self.versions / name.decode("ascii", "replace")
        try:
            if re.fullmatch(rb"\d{3,9}", name) is None or version.is_symlink():
                raise FileNotFoundError
            files = [(path, (version / path.name).read_bytes()) for path in self._versioned]
        except OSError as error:
            raise OutputFolderError(
                f"{str(self._pending)!r} names no version of this run.", hint="Remove that file, or the folder."
            ) from error
        for path, data in files:
            write_bytes_atomic(path, data)
        self._pending.unlink()
        shutil.rmtree(version)
        return True

    def whole(self) -> bool:
        """Return whether every file of a finished run is there (its panels apart)."""
        return all(path.is_file() for path in (self.story, self.plan, *self._versioned))


def _order(row: Answer) -> tuple[str, ...]:
    return (row.method or "", row.story_id, str(CONDITIONS.index(row.condition)), row.question_id, row.judge)


def new_record(record: StoryRecord, config: Settings, specs: Mapping[str, object], given: Plan | None) -> RunRecord:
    """Return the record of a run that begins, with plug-ins of these specifications."""
    return RunRecord.model_validate(
        {
            "format": 1,
            "katha": katha_version(),
            "run_id": uuid4().hex,
            "story_id": record.story_id,
            "record_sha256": digest(record.model_dump(mode="json")),
            "given_plan_sha256": digest(given.model_dump(mode="json")) if given is not None else None,
            "config": config.model_dump(mode="json"),
            **specs,
            "matching": config.matching,
            "prompts": prompt_hashes(),
            "versions": _versions(),
            "seeds": list(config.seeds),
            "command": list(sys.argv),
        }
    )


def prompt_hashes() -> dict[str, str]:
    """Return the sha256 of every file under `prompts/` that can reach a model, by its name."""
    found: dict[str, str] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry, f"{prefix}{entry.name}/")
            elif entry.name.endswith((".j2", ".yaml")):
                found[prefix + entry.name] = sha256_hex(entry.read_bytes())

    walk(files("katha.prompts"), "")
    return dict(sorted(found.items()))


def _versions() -> dict[str, str]:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class _Receipt(BaseModel):
    """How a service says that a frame came about."""

    service: str
    model: str
    served: str
    date: str
    tokens: dict[str, int]
    cost: float | None


def by_service(store: Store, hashes: Iterable[str]) -> list[ServiceUse]:
    """Return which services drew these frames: model as asked and as served, dates, frames, tokens and dollars (G.5).

    A frame that another run paid for counts with its own date; `cost` is None while a price is unknown.
    """
    found: dict[tuple[str, str, str], list[_Receipt]] = {}
    for known in filter(None, map(store.frames.receipt, sorted(set(hashes)))):
        receipt = _Receipt.model_validate(known)
        found.setdefault((receipt.service, receipt.model, receipt.served), []).append(receipt)
    rows = []
    for (service, model, served), receipts in sorted(found.items()):
        dates, costs, tokens = (
            sorted({item.date for item in receipts}),
            [item.cost for item in receipts],
            Counter[str](),
        )
        for item in receipts:
            tokens.update(item.tokens)
        cost = None if None in costs else sum((item or 0.0 for item in costs), 0.0)
        rows.append(
            ServiceUse(
                service=service, model=model, served=served, dates=dates, frames=len(receipts), tokens=tokens, cost=cost
            )
        )
    return rows


def paid(store: Store, candidates: Candidates, answers: Iterable[Answer]) -> dict[str, int]:
    """Return what this run drew and asked itself, over all its processes, and what it found already paid for."""
    frames = {
        (frame.sha256, frame.prompt, frame.seed, frame.kind, frame.scene, frame.transition)
        for item in candidates.candidates
        for frame in item.board.frames
    }
    questions = {(row.judge, row.packet_sha256, row.prompt_sha256) for row in answers if row.status == "ok"}
    rendered, asked = store.frames.rendered(), store.answers.asked()
    return {
        "frames_rendered": rendered,
        "frames_reused": max(0, len(frames) - rendered),
        "questions_asked": asked,
        "questions_reused": max(0, len(questions) - asked),
    }
