"""The folder of an ablation: one small folder a story; the table is made from these alone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from katha import __version__
from katha.agents.context import Plugins, check_able, load_plugins, make_planner, make_renderer, require_prices
from katha.agents.record import prompt_hashes
from katha.compass.modes import Row, Suite, load_modes
from katha.config import RunConfig, identity_of
from katha.errors import (
    AbsentModelError,
    InputFileError,
    KathaError,
    MissingExtraError,
    ModelError,
    OutputFolderError,
    RecordError,
    UnknownPluginError,
    UsageError,
)
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import make_decider, open_rule
from katha.eval_bridge.matching.verdicts import VERDICTS
from katha.eval_bridge.people.files import read_judgments
from katha.jsonio import canonical, digest, read_json, sha256_hex, write_bytes_atomic, write_json
from katha.registry import Family, default_registry
from katha.schema import Answer, Board, CandidateScore, Decision, Record, StoryRecord
from katha.store import LockTaken, file_lock

# ---
# What an ablation keeps of each story, as written to `stories/STORY_ID/result.json`.


class RowBoard(Record):
    """One board that a row ends with.

    method: the row's name, with `@SEED` where the row reports the mean over seeds. score: the board's, by Eq. 24.
    before: the board without what was inserted, if anything was. frames, questions: short names of the distinct frames
    and questions that this board alone would have needed.
    """

    row: str
    method: str
    seed: int
    board: Board
    decision: Decision
    score: CandidateScore
    before: Board | None = None
    frames: list[str]
    questions: list[str]


class StoryResult(Record):
    """Everything of one story; `invalid` says by method why a row has no board."""

    format: Literal[1] = 1
    identity: str
    story_id: str
    title: str
    boards: list[RowBoard]
    invalid: dict[str, str] = {}
    seconds: float = 0.0


# ---
# The folder of an ablation: one small folder a story, finished ones stay; the table is made from these alone.


_LOCK = ".lock"
HELD_OUT = "held_out-held_out"
"""The protocol: reporting prompts and reporting questions. Its rows are `answers.jsonl`, the others' carry a name."""


def protocol_of(row: Row) -> str:
    """The name of how a row is asked: its prompts and its questions."""
    return f"{row.prompts}-{row.questions}"


class AblationFolder:
    """`OUT` of `katha ablate`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "ablation.json"
        self.table = path / "table.json"
        self.scores = path / "scores.json"
        self.stories = path / "stories.jsonl"
        self.panels = path / "panels"

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone.

        Raises:
            OutputFolderError: it cannot be written, holds something else, or another katha is working in it.
        """
        hint = "Choose another --out."
        try:
            if self.path.exists() and not self.path.is_dir():
                raise OutputFolderError(f"{str(self.path)!r} is a file, not a folder.", hint=hint)
            entries = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
            if entries - {_LOCK} and not self.state.exists():
                named = sorted(entries - {_LOCK})[0]
                raise OutputFolderError(
                    f"{str(self.path)!r} holds files of something else, {named!r} for one.", hint=hint
                )
            self.panels.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputFolderError(f"Cannot write {str(self.path)!r}: {error.strerror}.", hint=hint) from error
        try:
            with file_lock(self.path / _LOCK, wait=False):
                yield
        except LockTaken as error:
            raise OutputFolderError(f"Another katha is working in {str(self.path)!r}.", hint=hint) from error

    def read_state(self) -> dict[str, Any] | None:
        """`ablation.json`, or None when there is none.

        Raises:
            OutputFolderError: there is one, but not of an ablation.
        """
        if not self.state.exists():
            return None
        try:
            value = read_json(self.state)
        except InputFileError as error:
            raise OutputFolderError(error.message, hint="Choose another --out.") from error
        if not isinstance(value, dict) or value.get("format") != 1 or "suite" not in value:
            raise OutputFolderError(f"{str(self.state)!r} is not of an ablation.", hint="Choose another --out.")
        return value

    def rule(self, name: str) -> Rule:
        """The matching rule of that name; what a model decides for it is kept here."""
        path = self.path / VERDICTS
        return open_rule(name, [path], decider=make_decider(name), keep=path)

    def story(self, story_id: str) -> Path:
        """The folder of one story."""
        return self.path / "stories" / story_id

    def finished(self, story_id: str, identity: str) -> StoryResult | None:
        """The story's result if it is there and was made from the same things."""
        try:
            found = StoryResult.model_validate(read_json(self.story(story_id) / "result.json"))
        except (InputFileError, ValidationError):
            return None
        return found if found.identity == identity else None

    def keep(
        self,
        result: StoryResult,
        story: StoryRecord | None,
        answers: Mapping[str, Iterable[Answer]],
        steering: Iterable[Answer],
        pictures: Mapping[str, bytes],
    ) -> None:
        """Write everything of one story; `result.json` comes last and says that the rest is there."""
        place = self.story(result.story_id)
        for name, png in pictures.items():
            path = self.panels / f"{name}.png"
            if not path.exists():
                write_bytes_atomic(path, png, durable=False)
        if story is not None:
            write_bytes_atomic(place / "story.jsonl", canonical(story.model_dump(mode="json")) + b"\n")
        for protocol, rows in answers.items():
            _write_rows(place / _answers_name(protocol), rows)
        _write_rows(place / "steering.jsonl", steering)
        write_json(place / "result.json", result.model_dump(mode="json"))

    def answers(self, story_id: str, protocol: str = HELD_OUT) -> list[Answer]:
        """A story's rows under one protocol."""
        path = self.story(story_id) / _answers_name(protocol)
        if not path.exists():
            return []
        return [Answer.model_validate_json(line) for line in path.read_bytes().splitlines()]

    def prepared(self, story_id: str) -> StoryRecord | None:
        """The story as it was used, or None when it could not be prepared."""
        path = self.story(story_id) / "story.jsonl"
        return StoryRecord.model_validate_json(path.read_bytes()) if path.exists() else None

    def gather(self, order: Iterable[str]) -> None:
        """Join the stories' files into `stories.jsonl` and `answers.jsonl`, in this order."""
        names = {"story.jsonl": self.stories, "answers.jsonl": self.path / "answers.jsonl"}
        stories = list(order)
        for name, target in names.items():
            partial = target.with_suffix(".partial")
            with partial.open("wb") as out:
                for story_id in stories:
                    with suppress(FileNotFoundError), (self.story(story_id) / name).open("rb") as file:
                        shutil.copyfileobj(file, out)
            os.replace(partial, target)


def _answers_name(protocol: str) -> str:
    return "answers.jsonl" if protocol == HELD_OUT else f"answers.{protocol}.jsonl"


def _write_rows(path: Path, rows: Iterable[Answer]) -> None:
    data = b"".join(canonical(row.model_dump(mode="json")) + b"\n" for row in rows)
    write_bytes_atomic(path, data, durable=False)


# ---
# People's judgments of an ablation's boards, read and checked against the suite before any work.
#
# The file has the columns of `katha bench calibrate` and `katha score --human`, one judgment a row. `method` names a
# row, a row's board (`ROW@SEED`), or the mode of rows that change nothing about it. Without it a judgment is about
# every row, where all rows have the same boards, or about the text alone. Judgments of modes that the suite lacks are
# left out, so that one study serves several suites.


Judgment = Mapping[str, Any]


@dataclass(frozen=True)
class Judgments:
    """A file of judgments, read and checked against a suite before any work."""

    path: Path
    suite: Suite
    seeds: tuple[int, ...]
    rows: tuple[Judgment, ...]

    @classmethod
    def read(cls, path: Path, suite: Suite, seeds: tuple[int, ...]) -> Judgments:
        """The judgments in `path`.

        Raises:
            InputFileError, RecordError: see `read_judgments`; or a judgment is about boards that no suite has, or does
                not say which.
        """
        rows = tuple(row for row in read_judgments(path) if "story_id" in row)
        if not rows:
            raise RecordError(f"{str(path)!r} has no judgment of a story.", hint="Give the column story_id.")
        made = cls(path, suite, seeds, rows)
        for row in rows:
            made._check(row)
        return made

    def mark(self) -> dict[str, str]:
        """The file's name and hash, kept with the table."""
        return {"file": self.path.name, "sha256": sha256_hex(self.path.read_bytes())}

    def _check(self, row: Judgment) -> None:
        where = f"{str(self.path)!r}, line {row['line']}"
        names = {name for item in self.suite.rows for name in _names(item)}
        if "method" in row:
            name, _, seed = row["method"].partition("@")
            if name not in {*names, *load_modes()} or (seed and seed not in map(str, self.seeds)):
                raise RecordError(
                    f"{where}: the suite has no boards {row['method']!r}.",
                    hint=f"They are {', '.join(sorted(names))}, each with @SEED for one board.",
                )
        elif row.get("condition") != "text" and not self._alike:
            raise RecordError(f"{where}: it does not say which boards it is about.", hint="Give the column method.")

    @cached_property
    def _alike(self) -> bool:
        """Whether all rows have the same boards."""
        return len({row.mode for row in self.suite.rows}) == 1 and all(map(_plain, self.suite.rows))

    def unused(self, stories: Collection[str]) -> int:
        """Judgments of other stories than these, or of boards that the suite lacks."""
        used = {item["line"] for row in self.suite.rows for item in self.about(row) if item["story_id"] in stories}
        return len(self.rows) - len(used)

    def about(self, row: Row) -> list[Judgment]:
        """The judgments of the row's boards; of what was said about the text alone, everything."""
        return [item for item in self.rows if self._is_about(item, row)]

    def _is_about(self, item: Judgment, row: Row) -> bool:
        if "method" not in item:
            return self._alike or item.get("condition") == "text"
        return item["method"].partition("@")[0] in _names(row)


def _plain(row: Row) -> bool:
    return not (row.change or row.compass or row.planner or row.renderer or row.renderer_options)


def _names(row: Row) -> set[str]:
    return {row.name, row.mode} if _plain(row) else {row.name}


# ---
# What an ablation is made from, and what makes two of them the same.


_FAMILIES: tuple[tuple[Family, str], ...] = (("planners", "planner"), ("renderers", "renderer"))
_OF_ROW = ("planner", "renderer", "renderer_options")
_ABSENT = (AbsentModelError, MissingExtraError, ModelError)
"""What a plug-in raises that needs something which is not on this machine."""


@dataclass(frozen=True)
class AblationResult:
    """A finished ablation. `reused`: the folder already held it and nothing was done."""

    out: Path
    table: dict[str, Any]
    reused: bool


@dataclass
class AblationJob:
    """A suite over stories.

    config: everything that the rows do not replace; its mode is not used. given: plug-ins instead of the named ones
    (for tests and callers that made them). lock: the name and hash of the lock that froze `config.compass`, if any.
    human: people's judgments of the boards (see `judgments.py`); they change the table and no board.
    strict: refuse a row whose planner or renderer is not on this machine; otherwise `settle` leaves it out, and
    `not_run` says why.
    """

    records: Sequence[StoryRecord]
    suite: Suite
    config: RunConfig
    given: Plugins | None = None
    lock: Mapping[str, Any] | None = None
    resamples: int = 10_000
    seed: int = 42
    command: Sequence[str] = field(default_factory=lambda: list(sys.argv))
    strict: bool = False
    human: Path | None = None
    people: Judgments | None = field(init=False, default=None)
    whole: Suite = field(init=False)
    not_run: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = self.suite

    def row_config(self, row: Row, record: StoryRecord | None = None) -> RunConfig:
        """The configuration of one row (for one story: with as many panels as it has scenes)."""
        changes: dict[str, Any] = {"compass": row.settings(self.config.compass), "mode": row.mode}
        if record is not None and record.scenes:
            changes["panels"] = len(record.scenes)
        names: dict[str, Any] = {name: value for name in _OF_ROW if (value := getattr(row, name))}
        return self.config.with_plugins(**names).model_copy(update=changes)

    @cached_property
    def _made(self) -> dict[str, Plugins]:
        return {}

    def plugins(self, row: Row) -> Plugins:
        """The row's plug-ins; judges and similarity are the same objects for all rows."""
        config = self.row_config(row)
        key = drawn_by(config)
        if key not in self._made:
            first = next(iter(self._made.values()), None)
            self._made[key] = self._make(config, first)
        return self._made[key]

    def _make(self, config: RunConfig, first: Plugins | None) -> Plugins:
        if self.given is not None and drawn_by(config) == drawn_by(self.config):
            return self.given
        shared = first or self.given
        if shared is None:
            return load_plugins(config)
        renderer = make_renderer(config)
        require_prices(shared.budget, {config.renderer: renderer})
        return Plugins(
            make_planner(config),
            renderer,
            shared.judges,
            shared.similarity,
            shared.bridge,
            shared.budget,
        )

    def settle(self) -> None:
        """Refuse, before any work, what could not be run, and leave out the rows whose own planner or renderer needs a
        model or package that is not on this machine.

        Raises:
            UnknownPluginError: a row's planner or renderer is not installed. MissingExtraError: a package is missing.
            UsageError: no story, a judge that is not part of the run, or a frame size that cannot be drawn.
        """
        if not self.records:
            raise UsageError("There is no story to run the suite on.", hint="Check --split, or give another file.")
        for family, name in _FAMILIES:
            self._check_installed(family, name)
        for row in self.whole.rows:
            try:
                self._check_row(row)
            except KathaError as error:
                own = row.planner is not None or row.renderer is not None
                if isinstance(error, _ABSENT) and own and not self.strict:
                    self.not_run[row.name] = str(error)
                    continue
                error.message = f"The suite {self.whole.name!r}, row {row.name!r}: {error.message}"
                raise
        kept = tuple(row.name for row in self.whole.rows if row.name not in self.not_run)
        if not kept:
            name, reason = next(iter(self.not_run.items()))
            raise UsageError(f"No row of the suite {self.whole.name!r} can be run here. {name}: {reason}")
        self.suite = self.whole.only(kept)
        if self.human is not None:
            self.people = Judgments.read(self.human, self.whole, self.config.seeds)

    def _check_row(self, row: Row) -> None:
        judge = row.scoring.judge
        if judge not in (None, *self.config.judges, "ensemble"):
            raise UsageError(f"no judge {judge!r}; there is {', '.join(self.config.judges)}.")
        check_able(self.row_config(row), self.plugins(row))

    def _check_installed(self, family: Family, name: str) -> None:
        registry = default_registry(family)
        wanted = list(dict.fromkeys(value for row in self.suite.rows if (value := getattr(row, name)) is not None))
        known = registry.names()
        missing = [value for value in wanted if ":" not in value and value.split(":")[0] not in known]
        if missing:
            there = [row.name for row in self.suite.rows if getattr(row, name) not in missing]
            hint = f"Installed {family}: {', '.join(known)}. Give --rows {','.join(there)} to leave the others out."
            raise UnknownPluginError(
                f"The suite {self.suite.name!r} needs {family} that are not installed: {', '.join(missing)}.", hint=hint
            )

    @cached_property
    def identity(self) -> str:
        """The hash of everything that can change a result, stories apart."""
        specs = {row.name: self.plugins(row).specs() for row in self.suite.rows}
        return digest(
            {
                "katha": __version__,
                "suite": self.suite.model_dump(mode="json"),
                "modes": {row.name: row.build_mode().model_dump(mode="json") for row in self.suite.rows},
                "config": identity_of(self.config.model_dump(mode="json")),
                "plugins": specs,
                "prompts": prompt_hashes(),
                "lock": dict(self.lock) if self.lock else None,
                "statistics": [self.resamples, self.seed],
            }
        )

    def story_identity(self, record: StoryRecord) -> str:
        """The hash of everything that can change one story's result."""
        return digest([self.identity, record.model_dump(mode="json")])


def drawn_by(config: RunConfig) -> str:
    """What rows have in common that share a planner and a renderer."""
    return digest([config.planner, config.planner_options, config.renderer, config.renderer_options])
