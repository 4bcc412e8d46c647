"""What an ablation is made from, and its folder: one small folder a story, from which alone the table is made."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from katha.agents.context import Plugins, check_able, load_plugins
from katha.agents.folder import prompt_hashes
from katha.compass.modes import Mode, Suite, SuiteRow, load_modes
from katha.config import Settings, identity_of, katha_version
from katha.errors import (
    AbsentModelError,
    KathaError,
    MissingExtraError,
    ModelError,
    RecordError,
    UnknownPluginError,
    UsageError,
)
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import kept_rule
from katha.eval_bridge.people.judgments import Judgment, read_judgments
from katha.experiments.runner import (
    ExperimentResult,
    ExperimentState,
    PluginPool,
    read_kept,
    read_records,
    write_records,
)
from katha.jsonio import digest, file_sha256, read_bytes, sha256_hex, write_bytes_atomic, write_json
from katha.protocols import PlanRequest
from katha.registry import Family, default_registry
from katha.schema import Answer, Board, CandidateScore, Decision, Record, StoryRecord
from katha.schema.tables import AblationTable, HumanFile
from katha.store import StoreKind, Workspace


class RowBoard(Record):
    """One board that a row ends with.

    method: the row's name, with `@SEED` where the row reports the mean over seeds. score: the board's, by Eq. 24.
    before: the board without what was inserted, if anything was. frames, questions: short names of the distinct frames
    and questions that this board alone would have needed. judge: who reports it, where each judge reports the boards
    that the others chose; None: every judge that reports at all. mark: its steering answers are those in
    `steering.jsonl` whose method ends with `#MARK`, before any `/transition:A-B`.
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
    judge: str | None = None
    mark: str = Field(default="", exclude_if=lambda mark: not mark)

    @property
    def label(self) -> str:
        """The board's name among all boards of the story."""
        return self.method if self.judge is None else f"{self.method}, reported by {self.judge}"


class StoryResult(Record):
    """`stories/STORY_ID/result.json`: everything of one story; `invalid` says by method why a row has no board.

    questions_from: the planner whose transitions the questions were built from; empty where the record brings them.
    again: a board or an answer is missing that the same command tries to get again. files: the sha256 of each file
    beside `result.json`.
    """

    format: Literal[1] = 1
    identity: str
    story_id: str
    title: str
    boards: list[RowBoard]
    invalid: dict[str, str] = {}
    seconds: float = 0.0
    questions_from: str = ""
    again: bool = Field(default=False, exclude_if=lambda again: not again)
    files: dict[str, str] = {}


HELD_OUT = "held_out-held_out"
"""The protocol: reporting prompts and reporting questions. Its rows are `answers.jsonl`, the others' carry a name."""


OWN = "own"
"""Where the reporting answers of the judges that steered are kept, apart from every number but `optimism`."""


def protocol_of(row: SuiteRow) -> str:
    """Return the name of how a row is asked: its prompts and its questions."""
    return f"{row.prompts}-{row.questions}"


class AblationState(ExperimentState):
    """`ablation.json`: the suite, and everything that its boards and answers were made with."""

    differs: ClassVar[str] = "other rows, settings or plug-ins"

    stories_sha256: str
    suite: Mapping[str, object]
    config: Mapping[str, object] = {}
    lock: Mapping[str, str | None] | None = None
    stories: list[str] = []
    plugins: Mapping[str, Mapping[str, object]] = {}
    prompts: Mapping[str, str] = {}
    command: list[str] = []
    human: HumanFile | None = None

    @property
    def subject(self) -> str:
        """The suite."""
        return f" of the suite {self.suite.get('name')!r}"


AblationResult = ExperimentResult[AblationState, AblationTable]
ABLATION = StoreKind(
    "ablation",
    "ablation.json",
    AblationState,
    early=frozenset(("panels",)),
    results=("*.json", "*.jsonl", "stories/*/*.json*", "panels/*.png"),
)


class AblationFolder(Workspace[AblationState]):
    """`OUT` of `katha ablate`. A story's folder is whole when its `result.json` is there."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ABLATION)
        self.table = path / "table.json"
        self.scores = path / "scores.json"
        self.stories = path / "stories.jsonl"
        self.panels = path / "panels"

    def story(self, story_id: str) -> Path:
        """Return the folder of one story."""
        return self.path / "stories" / story_id

    def result(self, story_id: str, identity: str) -> StoryResult | None:
        """Return the story's result if it is there, whole, and was made from the same things."""
        found = read_kept(self.story(story_id) / "result.json", StoryResult)
        return found if found is not None and found.identity == identity and self._whole(found) else None

    def _whole(self, result: StoryResult) -> bool:
        """Return whether the story's files are as they were left, and its pictures are there."""
        pictures = {frame.sha256 for item in result.boards for frame in item.board.frames}
        same = all(self._hash(result.story_id, name) == sha256 for name, sha256 in result.files.items())
        return same and all((self.panels / f"{sha256}.png").is_file() for sha256 in pictures)

    def _hash(self, story_id: str, name: str) -> str | None:
        path = self.story(story_id) / Path(name).name
        return file_sha256(path) if path.is_file() else None

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
            write_records(place / "story.jsonl", [story])
        for protocol, rows in answers.items():
            write_records(place / _answers_name(protocol), rows, durable=False)
        write_records(place / "steering.jsonl", steering, durable=False)
        names = [*(["story.jsonl"] if story is not None else []), *map(_answers_name, answers), "steering.jsonl"]
        files = {name: file_sha256(place / name) for name in sorted(names)}
        write_json(place / "result.json", result.model_copy(update={"files": files}).model_dump(mode="json"))

    def answers(self, story_id: str, protocol: str = HELD_OUT) -> list[Answer]:
        """Return a story's rows under one protocol."""
        return read_records(self.story(story_id) / _answers_name(protocol), Answer)

    def every_answer(self, order: Iterable[str]) -> Iterator[Answer]:
        """Yield the rows of all protocols, and those that steered, story by story."""
        for story_id in order:
            for path in (*sorted(self.story(story_id).glob("answers*.jsonl")), self.story(story_id) / "steering.jsonl"):
                yield from read_records(path, Answer)

    def prepared(self, story_id: str) -> list[StoryRecord]:
        """Return the story as it was used; nothing when it could not be prepared."""
        return read_records(self.story(story_id) / "story.jsonl", StoryRecord)

    def take(self, other: Path, wanted: Mapping[str, str]) -> int:
        """Copy stories of another ablation of the same suite, settings and plug-ins; wanted: identities by story.

        Returns:
            How many of the stories that are wanted it holds, whole.

        Raises:
            UsageError: it holds none of them, or is not an ablation.
        """
        source, taken = AblationFolder(other), 0
        for story_id, identity in wanted.items():
            found = source.result(story_id, identity)
            taken += found is not None
            if found is None or self.result(story_id, identity) is not None:
                continue
            place = self.story(story_id)
            place.mkdir(parents=True, exist_ok=True)
            self.panels.mkdir(exist_ok=True)
            for name in {frame.sha256 for item in found.boards for frame in item.board.frames}:
                shutil.copyfile(source.panels / f"{name}.png", self.panels / f"{name}.png")
            for name in [*found.files, "result.json"]:  # which says that the rest is there
                shutil.copyfile(source.story(story_id) / Path(name).name, place / Path(name).name)
        if not taken:
            hint = "Join ablations of the same suite, settings and katha, and name all their stories."
            raise UsageError(f"{str(other)!r} holds none of these stories as this suite would make them.", hint=hint)
        return taken

    def gather(self, order: Iterable[str]) -> None:
        """Join the stories' files into `stories.jsonl` and `answers.jsonl`, in this order."""
        stories = list(order)
        for name, target in (("story.jsonl", self.stories), ("answers.jsonl", self.path / "answers.jsonl")):
            partial = target.with_suffix(".partial")
            with partial.open("wb") as out:
                for story_id in stories:
                    with suppress(FileNotFoundError), (self.story(story_id) / name).open("rb") as file:
                        shutil.copyfileobj(file, out)
            os.replace(partial, target)


def _answers_name(protocol: str) -> str:
    return "answers.jsonl" if protocol == HELD_OUT else f"answers.{protocol}.jsonl"


class Judgments:
    """A file of people's judgments of an ablation's boards, read and checked against the suite before any work.

    The file has the columns of `katha bench calibrate` and `katha score --human`, one judgment a row. `method` names a
    row, a row's board (`ROW@SEED`), or the mode of rows that change nothing about it. Without it a judgment is about
    every row, where all rows have the same boards, or about the text alone. Judgments of modes that the suite lacks are
    left out, so that one study serves several suites.
    """

    def __init__(self, path: Path, suite: Suite, seeds: tuple[int, ...]) -> None:
        """Read the judgments in `path`.

        Raises:
            InputFileError, RecordError: see `read_judgments`; or a judgment is about boards that no suite has, or does
                not say which.
        """
        self.path, self.suite, self.seeds = path, suite, seeds
        self._alike = len({row.mode for row in suite.rows}) == 1 and all(map(_plain, suite.rows))
        self.rows = [row for row in read_judgments(path) if "story_id" in row]
        if not self.rows:
            raise RecordError(f"{str(path)!r} has no judgment of a story.", hint="Give the column story_id.")
        for row in self.rows:
            self._check(row)

    def mark(self) -> HumanFile:
        """Return the file's name and hash, kept with the table."""
        return HumanFile(file=self.path.name, sha256=sha256_hex(read_bytes(self.path)))

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

    def unused(self, stories: Collection[str]) -> int:
        """Return how many are about other stories than these, or about boards that the suite lacks."""
        used = {item["line"] for row in self.suite.rows for item in self.about(row) if item["story_id"] in stories}
        return len(self.rows) - len(used)

    def about(self, row: SuiteRow) -> list[Judgment]:
        """Return the judgments of the row's boards; of what was said about no pictures, everything."""
        names = _names(row)
        return [
            item
            for item in self.rows
            if (
                item["method"].partition("@")[0] in names
                if "method" in item
                else self._alike or item.get("condition") in ("text", "none")
            )
        ]


def _plain(row: SuiteRow) -> bool:
    return not (row.change or row.compass or row.planner or row.renderer or row.renderer_options)


def _names(row: SuiteRow) -> set[str]:
    return {row.name, row.mode} if _plain(row) else {row.name}


_FAMILIES: tuple[tuple[Family, str], ...] = (("planners", "planner"), ("renderers", "renderer"))
_OF_ROW = ("planner", "renderer", "renderer_options")
_ABSENT = (AbsentModelError, MissingExtraError, ModelError)
"""What a plug-in raises that needs something which is not on this machine."""


@dataclass
class AblationJob:
    """A suite over stories.

    config: everything that the rows do not replace; its mode is not used. given: plug-ins instead of the named ones
    (for tests and callers that made them). lock: the name and hash of the lock that froze `config.compass`, if any.
    human: people's judgments of the boards (see `Judgments`); they change the table and no board.
    strict: refuse a row whose planner or renderer is not on this machine; otherwise `settle` leaves it out, and
    `not_run` says why. whole: the suite as given, with the rows that are left out of `suite`. seen: how a worker has
    the plug-ins of a row.
    """

    records: Sequence[StoryRecord]
    suite: Suite
    config: Settings
    given: Plugins | None = None
    lock: Mapping[str, str | None] | None = None
    resamples: int = 10_000
    seed: int = 42
    command: Sequence[str] = field(default_factory=lambda: list(sys.argv))
    strict: bool = False
    human: Path | None = None
    seen: Callable[[Settings, Plugins], Plugins] | None = None
    people: Judgments | None = field(init=False, default=None)
    whole: Suite = field(init=False)
    not_run: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = self.suite

    def mode(self, row: SuiteRow) -> Mode:
        """Return the row's mode as this job means it: with one candidate (a lock may say so) nothing is chosen among,
        so that the row reports every seed's own board, as the rows do that choose nothing."""
        mode = row.build_mode()
        if self.config.candidates == 1 and mode.select == "best":
            return mode.model_copy(update={"select": "first", "report": "mean_over_seeds"})
        return mode

    @property
    def chooses_nothing(self) -> list[str]:
        """The rows whose mode means something else here (see `mode`)."""
        return [row.name for row in self.suite.rows if self.mode(row).select != row.build_mode().select]

    def row_config(self, row: SuiteRow, record: StoryRecord | None = None) -> Settings:
        """Return the configuration of one row (for one story: with as many panels as it has scenes)."""
        own = {name: value for name in _OF_ROW if (value := getattr(row, name))}
        scenes = len(record.scenes) if record is not None else 0
        panels = scenes or self.config.panels or PlanRequest().panels
        changes = {"compass": row.settings(self.config.compass), "mode": row.mode, "panels": panels}
        return self.config.with_plugins(**own).model_copy(update=changes)

    @cached_property
    def made(self) -> Plugins:
        """The plug-ins of `config`: those that were given, or those that it names."""
        return self.given or load_plugins(self.config)

    def rule(self, matching: str, folder: Path) -> Rule:
        """Return a matching rule whose verdicts are kept in `folder`, and paid from the plug-ins' budget."""
        return kept_rule(matching, folder, self.config.base_url, self.made.budget)

    @cached_property
    def _shelf(self) -> PluginPool:
        return PluginPool.of(self.made, self.config)

    def plugins(self, row: SuiteRow, reporter: str | None = None) -> Plugins:
        """Return the row's plug-ins; what it has in common with other rows is the same object.

        reporter: the judge that is held out: it reports, and all others choose.
        """
        made = self._shelf.plugins(config := self.row_config(row))
        made = made if self.seen is None else self.seen(config, made)
        return made if reporter is None else replace(made, steering=tuple(n for n in made.judges if n != reporter))

    def reporters(self, row: SuiteRow) -> list[str | None]:
        """Return who reports a board of the row: None for every judge that reports; or, where there are several judges
        and none is named for steering, each of them in turn, on the board that the others chose (leave one out)."""
        made = self.plugins(row)
        if made.steering is not None or len(made.judges) < 2 or not self.mode(row).steers:
            return [None]
        return list(made.judges)

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
            judge = row.scoring.judge
            try:
                if judge not in (None, *self.config.judges, "ensemble"):
                    raise UsageError(f"no judge {judge!r}; there is {', '.join(self.config.judges)}.")
                check_able(self.row_config(row), self.plugins(row))
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
            self.people = Judgments(self.human, self.whole, self.config.seeds)

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

    @property
    def _specs(self) -> dict[str, dict[str, object]]:
        return {row.name: self.plugins(row).specs() for row in self.suite.rows}

    @cached_property
    def identity(self) -> str:
        """Return the hash of everything that can change a result, stories apart."""
        return digest(
            {
                "katha": katha_version(),
                "suite": self.suite.model_dump(mode="json"),
                "modes": {row.name: self.mode(row).model_dump(mode="json") for row in self.suite.rows},
                "config": identity_of(self.config.model_dump(mode="json")),
                "plugins": self._specs,
                "prompts": prompt_hashes(),
                "lock": dict(self.lock) if self.lock else None,
                "statistics": [self.resamples, self.seed],
            }
            | ({"held_out": "one judge"} if any(self.reporters(row) != [None] for row in self.suite.rows) else {})
        )

    def story_identity(self, record: StoryRecord) -> str:
        """Return the hash of everything that can change one story's result."""
        return digest([self.identity, record.model_dump(mode="json")])

    def state(self) -> AblationState:
        """Return what the folder begins with."""
        return AblationState(
            format=1,
            katha=katha_version(),
            identity=self.identity,
            stories_sha256=digest([record.model_dump(mode="json") for record in self.records]),
            suite=self.suite.model_dump(mode="json"),
            config=self.config.model_dump(mode="json"),
            lock=self.lock,
            stories=[record.story_id for record in self.records],
            plugins=self._specs,
            prompts=prompt_hashes(),
            command=list(self.command),
        )


def drawn_by(config: Settings) -> str:
    """Return what rows have in common that share a planner and a renderer."""
    return digest([config.planner, config.planner_options, config.renderer, config.renderer_options])
