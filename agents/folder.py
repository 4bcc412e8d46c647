"""The files of one run, in a folder or in memory: pictures, plan, the growing answer log and results; and `run.json`,
what a run was made from and what it cost.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO, Self
from uuid import uuid4

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from katha.agents.state import RunResult
from katha.config import Settings, identity_of, katha_version
from katha.errors import InputFileError, OutputFolderError, PlanError, StoreError, UsageError
from katha.eval_bridge.judging.answers import Cause, Outcome, answer_line, outcome_of
from katha.jsonio import (
    MOST_JSON,
    canonical,
    digest,
    read_json,
    read_record,
    read_text,
    sha256_hex,
    write_bytes_atomic,
    write_json,
)
from katha.schema import ASKED, Answer, Board, Candidates, Plan, StoryRecord
from katha.schema.scores import Scores, ServiceUse
from katha.store import State, Store, StoreKind, Workspace

FIRST_VERSION = "001"
CAST = "cast"
"""The name of the cast's drawing among the sources."""
_PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "pydantic", "numpy", "pillow", "onnxruntime", "resvg-py")


class MemoryFiles:
    """Pictures and answers of a run that leaves no folder (a row of a suite); durable copies are the cache's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pictures: dict[str, bytes] = {}
        self.sources: dict[str, bytes] = {}
        self.rows: list[Answer] = []
        self._lock = threading.Lock()

    def panel(self, sha256: str) -> bytes | None:
        """Return the picture of that hash, or None."""
        return self.pictures.get(sha256)

    def add_panel(self, sha256: str, png: bytes) -> None:
        """Keep a picture."""
        self.pictures[sha256] = png

    def source(self, name: str) -> bytes | None:
        """Return the drawing of a picture by its hash, or the cast's; None where there is none."""
        return self.sources.get(name)

    def add_source(self, name: str, source: bytes) -> None:
        """Keep the drawing of a picture, or the cast's."""
        self.sources.setdefault(name, source)

    def append_answers(self, rows: Iterable[Answer]) -> None:
        """Keep answers, in the order in which they came; several branches may bring some."""
        with self._lock:
            self.rows += rows

    def sync_answers(self) -> None:
        """Memory is as durable as it gets."""


_WHERE_THERE = frozenset(
    ("services", "redone", "replay", "failures", "coverage", "files", "sizes", "effect", "stale", "spent")
)
"""The keys of `run.json` that are there where they say something."""


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
    """What a person has changed since, in order: `frame` and `seed` of a frame drawn again, or `edits` (their JSON) and
    `says`; `version` is the version that it was done to."""
    replay: list[Mapping[str, object]] = []
    """What of it is to be done once more, while files that were lost are made again."""
    version: str = Field(default=FIRST_VERSION, pattern=r"^[0-9]{3,9}$")
    """The name of the board's state; `001` is the board as it was drawn."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        """An older katha numbered its versions by what was redone."""
        if self.redone and self.version == FIRST_VERSION:
            return self.model_copy(update={"version": f"{len(self.redone) + 1:03d}"})
        return self

    coverage: Mapping[str, object] | None = None
    """How many of the story's sentences were read and drawn, and which were not."""
    effect: Mapping[str, object] | None = None
    """What choosing a seed did to the score (`seed`), and what the repair did (`repair`); of a board that a person has
    changed since there is none."""
    spent: float = 0.0
    """US dollars that the run has cost so far, over all its processes and edits, as far as prices are known."""
    stale: list[int] = []
    """The numbers of inserted frames that are older than a picture beside them."""

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        """A run that no service drew for, that nobody changed, with an answer to every question, has no such keys."""
        dump: dict[str, object] = handler(self)
        return {
            key: value
            for key, value in dump.items()
            if value or key not in _WHERE_THERE
            if key != "version" or value != FIRST_VERSION
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

    KIND = StoreKind(
        name="run",
        file="run.json",
        state=RunRecord,
        early=frozenset(("panels",)),
        drafts=("calls.txt", "story.jsonl", "plan.json", "answers.jsonl", "graph.sqlite*"),
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path, self.KIND)
        self.panels = path / "panels"
        self.story = path / "story.jsonl"
        self.plan = path / "plan.json"
        self.calls = path / "calls.txt"
        self.storyboard = path / "storyboard.json"
        self.candidates = path / "candidates.json"
        self.answers = path / "answers.jsonl"
        self.scores = path / "scores.json"
        self.graph = path / "graph.sqlite"
        self.titled = path / "title.txt"
        self.versions = path / "versions"
        self._pending = self.versions / "pending"
        self._edited = self.versions / "edited.json"
        self._results_of = (self.state_file, self.storyboard, self.candidates, self.answers, self.scores)
        self._versioned = (*self._results_of, self.plan, self.story)
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

    def source(self, name: str) -> bytes | None:
        """Return the drawing of a picture by its hash, or that of `cast`; None where there is none."""
        path = self._source(name)
        return path.read_bytes() if path.is_file() else None

    def add_source(self, name: str, source: bytes) -> None:
        """Put the drawing of a picture beside it, or the cast into the folder, where it is not there."""
        if not self._source(name).is_file():
            write_bytes_atomic(self._source(name), source, durable=False)

    def _source(self, name: str) -> Path:
        return self.path / "cast.svg" if name == CAST else self.panels / f"{name}.svg"

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
        return read_record(self.plan, Plan)

    def load_story(self) -> StoryRecord:
        """Return the one line of `story.jsonl`."""
        return read_record(self.story, StoryRecord)

    def title(self, story: StoryRecord) -> str:
        """Return what the board is called: by a person (`title.txt`), by its story, else by the story's id."""
        given = read_text(self.titled).strip() if self.titled.is_file() and not self.titled.is_symlink() else ""
        return given or story.title or story.story_id.replace("_", " ")

    def save_results(self, candidates: Candidates, scores: Scores, board: Board) -> None:
        """Write `candidates.json`, `scores.json` and, last, `storyboard.json`, each atomically."""
        write_json(self.candidates, candidates.model_dump(mode="json"))
        write_json(self.scores, scores.model_dump(mode="json"))
        write_json(self.storyboard, board.model_dump(mode="json"))

    def load_outcome(self, first: Cause | None = None) -> Outcome:
        """Return what came of asking; `first`: what failed first, where the process that asked still knows."""
        return outcome_of(self.read_answers(), first=first)

    def load_result(self, *, reused: bool, first: Cause | None = None) -> RunResult:
        """Return the result that the folder of a run holds that went to its end."""
        plan, state = self.load_plan(), self.read()
        return RunResult(
            outcome=self.load_outcome(first),
            out=self.path,
            scores=read_record(self.scores, Scores),
            candidates=read_record(self.candidates, Candidates),
            board=read_record(self.storyboard, Board),
            reused=reused,
            coverage=plan.coverage,
            renewed=tuple(plan.renewed),
            notes=tuple(state.notes) if state is not None else (),
        )

    # Versions: `versions/NNN` has the small files of a state of the board; pictures are never taken away. The state
    # that stands in the folder itself is copied there before it is left.

    def version_folder(self, name: str) -> Path:
        """Return where a version is read: the folder itself for the current one.

        Raises:
            UsageError: there is no such version.
        """
        state = self.read()
        if state is not None and state.version == name and not self._pending.exists():
            return self.path
        place = self.versions / name
        if re.fullmatch(r"\d{3,9}", name) is None or place.is_symlink() or not (place / self.state_file.name).is_file():
            known = ", ".join(self.version_names()) or "none"
            raise UsageError(f"There is no version {name!r}.", hint=f"Known: {known}.")
        return place

    def version_names(self) -> list[str]:
        """Return the names of all versions, the current one among them, in the order in which they were made."""
        state, found = self.read(), set[str]()
        for place in self.versions.iterdir() if self.versions.is_dir() else ():
            if re.fullmatch(r"\d{3,9}", place.name) and (place / self.state_file.name).is_file():
                found.add(place.name)
        return sorted({*found, *([state.version] if state is not None else [])}, key=int)

    def keep_version(self, state: RunRecord) -> str:
        """Copy the current version into `versions/`, durably, and mark that a change of it has begun.

        `restore` brings it back until `commit_version` is called. Gives the name of the version to come.

        Raises:
            OutputFolderError: a link stands in the way, which would lead out of the folder.
        """
        names = self.version_names()
        for place in (self.versions, *(self.versions / name for name in names)):
            if place.is_symlink():
                raise OutputFolderError(f"{str(place)!r} is a link.", hint="Remove it.")
        for name in {*names} - {state.version}:  # versions of an older katha, which changed neither
            for path in (self.plan, self.story):
                if not (self.versions / name / path.name).exists():
                    write_bytes_atomic(self.versions / name / path.name, path.read_bytes())
        for path in self._versioned:
            write_bytes_atomic(self.versions / state.version / path.name, path.read_bytes())
        write_bytes_atomic(self._pending, state.version.encode("ascii"))
        return f"{max(map(int, names)) + 1:03d}"

    def enter_version(self, name: str) -> None:
        """Put the files of a version into the folder, between `keep_version` and `commit_version`."""
        place = self.version_folder(name)
        for path in self._versioned:
            write_bytes_atomic(path, (place / path.name).read_bytes())

    def keep_plan(self, state: RunRecord) -> None:
        """Keep a copy of the version's plan: what a person changes in `plan.json` is found by it."""
        write_bytes_atomic(self.versions / state.version / self.plan.name, self.plan.read_bytes())

    def kept_plan(self, state: RunRecord) -> Plan | None:
        """Return the plan as the version has it, or None where no copy was kept."""
        place = self.versions / state.version / self.plan.name
        return read_record(place, Plan) if place.is_file() and not place.is_symlink() else None

    def first_plan(self, state: RunRecord) -> Plan | None:
        """Return the plan that a run which is gone on with, or made again, begins with, as far as it is there."""
        redone = bool(state.redone or state.replay)
        path = self.versions / FIRST_VERSION / self.plan.name if redone else self.plan
        try:
            return read_record(path, Plan) if path.is_file() and not path.is_symlink() else None
        except (InputFileError, ValidationError):
            return None

    def first_story(self, state: RunRecord) -> StoryRecord:
        """Return the story that such a run begins with; the questions that katha made of its plan are made again."""
        redone = bool(state.redone or state.replay)
        path = self.versions / FIRST_VERSION / self.story.name if redone else self.story
        story = read_record(path if path.is_file() else self.story, StoryRecord)
        own = re.compile(rf"{re.escape(story.story_id)}_q\d+")
        if all(own.fullmatch(item.question_id) for item in story.recoverability_questions):
            return story.model_copy(update={"recoverability_questions": []})
        return story

    def edited_plan(self, state: RunRecord) -> Plan | None:
        """Return the plan that a person wrote into `plan.json` since the version was made; None where nobody did, or
        where the file is torn or holds nothing of a plan. Every other result is as it was left.

        Raises:
            PlanError: what a person wrote is not a plan; the line or the field is named.
        """
        if self.damaged(state) not in ([], [self.plan.name]):
            return None
        path = self.plan if self.damaged(state) else self._edited
        if not path.is_file() or not path.read_bytes().rstrip().endswith(b"}"):
            return None
        kept = self.versions / state.version / self.plan.name
        hint = f"Correct it there, or copy {str(kept)!r} over it, which is the plan as it was drawn."
        try:
            value = read_json(path, limit=MOST_JSON)
        except InputFileError as error:
            raise PlanError(f"{str(error).rstrip('.')}.", hint=hint) from error
        if not isinstance(value, dict) or Plan.model_fields.keys().isdisjoint(value):
            return None  # something else in the plan's place: damage
        try:
            return Plan.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the whole file"
            raise PlanError(f"{str(path)!r} is not a plan: {field}: {first['msg']}.", hint=hint) from error

    def put_aside(self, edited: Plan, known: Plan) -> None:
        """Keep what a person wrote until it is taken over, and put the version's own plan into its place."""
        write_json(self._edited, edited.model_dump(mode="json"))
        write_json(self.plan, known.model_dump(mode="json"))

    def put_back(self) -> None:
        """Put what a person wrote into `plan.json` again: it could not be taken over."""
        if self._edited.is_file():
            write_bytes_atomic(self.plan, self._edited.read_bytes())

    def forget_edited(self) -> None:
        """What a person wrote is in the version now."""
        self._edited.unlink(missing_ok=True)

    def commit_version(self) -> None:
        """The change is whole."""
        self._pending.unlink(missing_ok=True)

    def pending_version(self) -> str | None:
        """Return the version that a change has begun from and not ended."""
        return self._pending.read_bytes().decode("ascii", "replace") if self._pending.exists() else None

    def restore(self) -> bool:
        """Undo a change that was killed half way; True when there was one.

        Raises:
            OutputFolderError: `versions/pending` names no version of this run (a received folder may hold anything).
        """
        name = self.pending_version()
        if name is None:
            return False
        version = self.versions / name
        try:
            if re.fullmatch(r"\d{3,9}", name, re.ASCII) is None or version.is_symlink():
                raise FileNotFoundError
            files = [(path, (version / path.name).read_bytes()) for path in self._results_of]
            files += [
                (path, kept.read_bytes()) for path in (self.plan, self.story) if (kept := version / path.name).is_file()
            ]
        except OSError as error:
            raise OutputFolderError(
                f"{str(self._pending)!r} names no version of this run.", hint="Remove that file, or the folder."
            ) from error
        for path, data in files:
            write_bytes_atomic(path, data)
        self._pending.unlink()
        return True

    def stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Return what tells that a file of a finished run has changed: each is written anew, never into the old one."""
        found = [path.stat() for path in self._versioned if path.is_file()]
        return tuple((item.st_ino, item.st_size, item.st_mtime_ns) for item in found)

    def whole(self) -> bool:
        """Return whether every file of a finished run is there (its panels apart)."""
        return all(path.is_file() for path in self._versioned)


class RunSummary(MemoryFiles):
    """A look at a finished run that changes nothing of it: new pictures join its panels, answers stay in memory."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder.path)
        self._folder = folder

    def panel(self, sha256: str) -> bytes | None:
        """Return the picture of that hash, or None."""
        return self._folder.panel(sha256)

    def add_panel(self, sha256: str, png: bytes) -> None:
        """Keep a picture."""
        self._folder.add_panel(sha256, png)


def _order(row: Answer) -> tuple[str, ...]:
    return (row.method or "", row.story_id, str(ASKED.index(row.condition)), row.question_id, row.judge)


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
    pictures: tuple[str, ...] = ()
    """The hashes of the portraits that it was drawn from."""


def by_service(store: Store, hashes: Iterable[str]) -> list[ServiceUse]:
    """Return which services drew these frames: model as asked and as served, dates, frames, tokens and dollars (G.5).

    A frame that another run paid for counts with its own date; `cost` is None while a price is unknown.
    """
    found: dict[tuple[str, str, str], list[_Receipt]] = {}
    drawn = {item: known for item in set(hashes) if (known := store.frames.receipt(item)) is not None}
    portraits = {item for known in drawn.values() for item in _Receipt.model_validate(known).pictures}
    drawn |= {item: known for item in portraits if (known := store.frames.receipt(item)) is not None}
    for _, known in sorted(drawn.items()):
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


def paid(store: Store, boards: Iterable[Board], answers: Iterable[Answer]) -> dict[str, int]:
    """Return what this run drew and asked itself, over all its processes, and what it found already paid for."""
    frames = {
        (frame.sha256, frame.prompt, frame.seed, frame.kind, frame.scene, frame.transition)
        for board in boards
        for frame in board.frames
    }
    questions = {(row.judge, row.packet_sha256, row.prompt_sha256) for row in answers if row.status == "ok"}
    rendered, asked = store.frames.rendered(), store.answers.asked()
    return {
        "frames_rendered": rendered,
        "frames_reused": max(0, len(frames) - rendered),
        "questions_asked": asked,
        "questions_reused": max(0, len(questions) - asked),
    }
