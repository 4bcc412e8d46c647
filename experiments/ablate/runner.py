"""A suite of modes over many stories: every distinct frame is drawn once and every distinct question asked once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from katha import __version__
from katha.agents.context import RunContext
from katha.agents.critique import ask_all, question_id
from katha.agents.frames import images_of
from katha.agents.graph import Graph, build_graph
from katha.agents.nodes import final_boards
from katha.agents.plan import plan_with, prepare_story
from katha.agents.record import prompt_hashes
from katha.agents.state import OF_ONE_STORY, Emit, RunState, unheard
from katha.compass.modes import Row
from katha.compass.score import BoardFeatures, BoardKey, TransitionFeatures, TransitionKey, board_key
from katha.config import cache_folder
from katha.errors import (
    MissingExtraError,
    OutputFolderError,
    PlanError,
    TransientRenderError,
    UnknownPluginError,
    UsageError,
)
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.eval_bridge.scoring.audit import require_separate
from katha.experiments.ablate.folder import (
    HELD_OUT,
    AblationFolder,
    AblationJob,
    AblationResult,
    RowBoard,
    StoryResult,
    drawn_by,
    protocol_of,
)
from katha.experiments.ablate.table import write_table
from katha.jsonio import digest, read_json, write_json
from katha.schema import Answer, Board, Condition, Event, Plan, Role, StoryRecord
from katha.store import RunFolder, Store
from katha.store.artifacts import FrameIndex

if TYPE_CHECKING:
    from langgraph.types import StreamMode

# ---
# One story under every row of a suite: the plan, the questions, the measured boards and the answers are shared.
#
# Each row runs the same LangGraph machine as `katha run`, up to its decision; boards that rows have in common are
# drawn, measured and judged once.


_IMAGES: tuple[Condition, ...] = ("image", "text+image")
_ID = 16


class BenchFolder(RunFolder):
    """Where the rows of one story keep what a run writes into its folder: pictures and answers, in memory."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._pictures: dict[str, bytes] = {}
        self.rows: list[Answer] = []

    def add_panel(self, sha256: str, png: bytes) -> Path:
        """Keep a picture (its durable copy is the cache's)."""
        with self._lock:
            self._pictures[sha256] = png
        return self.panels / f"{sha256}.png"

    def panel(self, sha256: str) -> bytes | None:
        """The picture of that hash, or None."""
        return self._pictures.get(sha256)

    def append_answers(self, rows: Iterable[Answer]) -> None:
        """Keep answers (their durable copies are the cache's)."""
        with self._lock:
            self.rows += rows

    def sync_answers(self) -> None:
        """Nothing is written here."""


class _Watched(FrameIndex):
    """The frame index, which remembers what was asked of it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.index, store.blobs, store.owner)
        self.asked: set[str] = set()

    def get(self, key: str) -> str | None:
        self.asked.add(key[:_ID])
        return super().get(key)


class StoryBench:
    """One story. `run` gives the boards of a row, `judge` the reporting answers of a board."""

    def __init__(
        self, record: StoryRecord, job: AblationJob, store: Store, folder: Path, graph: Graph, rule: Rule
    ) -> None:
        self._record, self._job, self._store, self._graph, self._rule = record, job, store, graph, rule
        self._folder = BenchFolder(folder)
        self._frames = _Watched(store)
        store.frames = self._frames
        self._plans: dict[str, Plan] = {}
        self._features: dict[str, dict[BoardKey, BoardFeatures]] = {}
        self._transitions: dict[str, dict[TransitionKey, tuple[TransitionFeatures, list[Answer]]]] = {}
        self._reported: dict[tuple[Any, ...], list[Answer]] = {}
        self._ready: StoryRecord | None = None

    @property
    def steering(self) -> list[Answer]:
        """Every steering answer so far."""
        return [row for row in self._folder.rows if row.role == "steering"]

    def story(self) -> StoryRecord:
        """The story with its questions, the same for every row: its own, or those of the first row's plan.

        Raises:
            UsageError: the story cannot be planned.
        """
        if self._ready is None:
            row = self._job.suite.rows[0]
            self._ready = prepare_story(self._context(row, self._job.config.seeds), self._plan(row))
        return self._ready

    def open(self, row: Row, seeds: Sequence[int]) -> RunContext:
        """The surroundings of one run of `row`, with what the story's runs share.

        Raises:
            UsageError: the story cannot be planned.
        """
        context = self._context(row, seeds)
        context.use(self._plan(row), self.story())
        made_by = drawn_by(context.config)
        context.measured = self._features.setdefault(made_by, {})
        context.transitions = self._transitions.setdefault(made_by, {})
        return context

    def _plan(self, row: Row) -> Plan:
        config, made = self._job.row_config(row, self._record), self._job.plugins(row)
        key = drawn_by(config)
        if key not in self._plans:
            try:
                self._plans[key] = plan_with(made.planner, made.renderer, self._record, config)
            except (MissingExtraError, UnknownPluginError, PlanError):
                raise
            except UsageError as error:  # this story cannot be planned; another one may
                raise PlanError(error.message, hint=error.hint) from error
        return self._plans[key]

    def _context(self, row: Row, seeds: Sequence[int]) -> RunContext:
        config = self._job.row_config(row, self._record).model_copy(update={"seeds": tuple(seeds)})
        context = RunContext(self._record, config, self._job.plugins(row), self._store, self._folder)
        context.mode, context.matching = row.build_mode(), self._rule
        return context

    def seeds(self, row: Row) -> list[tuple[int, ...]]:
        """The run's seeds, once for each board that the row reports: its own seed first."""
        seeds = self._job.config.seeds
        found = self._job.plugins(row).renderer.capabilities.source == "found"
        if found or row.build_mode().report == "selected":
            return [seeds]
        return [(seed, *(other for other in seeds if other != seed)) for seed in seeds]

    def method(self, row: Row, seeds: Sequence[int]) -> str:
        """The name of the board that begins with the first of `seeds`, where a row has one a seed."""
        return row.name if row.build_mode().report == "selected" else f"{row.name}@{seeds[0]}"

    def run(self, row: Row, seeds: Sequence[int], emit: Emit) -> RowBoard:
        """The board of `row` that begins with the first of `seeds`.

        Raises:
            RenderError: a frame could not be made. UsageError: the story cannot be planned or drawn.
        """
        context = self.open(row, seeds)
        known = self._features[drawn_by(context.config)]
        self._frames.asked, start = set(), len(self._folder.rows)
        candidates, decision, final = final_boards(self._drive(context, emit), context)
        measured = [known[board_key(item.board.frames)] for item in candidates]
        paired = map(question_id, self._folder.rows[start:])
        left = decision.inserted if decision.accepted and decision.inserted else decision.selected
        kept = next(item for item in candidates if item.name == left)
        before = next(item for item in candidates if item.name == decision.selected)
        method = self.method(row, seeds)
        return RowBoard(
            row=row.name,
            method=method,
            seed=seeds[0],
            board=final.model_copy(update={"method": method}),
            decision=decision,
            score=kept.score,
            before=before.board if kept is not before else None,
            frames=sorted(self._frames.asked),
            questions=sorted({*(name for features in measured for name in features.asked), *paired}),
        )

    def _drive(self, context: RunContext, emit: Emit) -> RunState:
        """The machine from plan to decision."""
        config: Any = {"recursion_limit": 1000}
        modes: list[StreamMode] = ["values"] if emit is unheard else ["custom", "values"]
        values = RunState(timings={})
        for kind, chunk in self._graph.stream(values, config, context=context, stream_mode=modes):
            if kind == "custom":
                emit(cast(Event, chunk))
            else:
                values = cast(RunState, chunk)
        return values

    def judge(self, made: RowBoard, row: Row, emit: Emit) -> list[Answer]:
        """The answers to the row's questions about its board, under its method's name; text-only rows name none."""
        context = self.open(row, self._job.config.seeds)
        rows = self.report(context, made.board, row, made.method, emit)
        made.questions = sorted({*made.questions, *map(question_id, rows)})
        return rows

    def report(self, context: RunContext, board: Board, row: Row, method: str, emit: Emit) -> list[Answer]:
        """The answers about `board` under `method`; a board that was judged before is not judged again."""
        role: Role = "reporting" if row.questions == "held_out" else "steering"
        variant = context.config.variant if row.prompts == "held_out" else STEERING_VARIANT
        rows = list(self._answers(context, "text", (), [], role, variant, emit))
        images = images_of(context, board)
        names = tuple(frame.sha256 for frame in board.frames)
        for condition in _IMAGES:
            own = self._answers(context, condition, names, images, role, variant, emit)
            rows += [item.model_copy(update={"method": method}) for item in own]
        return rows

    def _answers(
        self,
        context: RunContext,
        condition: Condition,
        names: tuple[str, ...],
        images: Sequence[bytes],
        role: Role,
        variant: str,
        emit: Emit,
    ) -> list[Answer]:
        key = (condition, names, role, variant)
        if key not in self._reported:
            method = None if condition == "text" else "board"
            questions = context.questions(role)
            self._reported[key] = ask_all(
                context,
                condition,
                images,
                questions,
                method=method,
                role=role,
                stage="judge",
                emit=emit,
                variant=variant,
            )
        return self._reported[key]

    def pictures(self, boards: Iterable[Board]) -> dict[str, bytes]:
        """The pictures of `boards` by hash."""
        names = {frame.sha256 for board in boards for frame in board.frames}
        return {name: png for name in sorted(names) if (png := self._folder.panel(name)) is not None}


# ---
# Story by story: run every row, judge its boards, keep the result; then the table. After a kill it goes on.


OnStory = Callable[[str, int], None]


def run_ablation(
    job: AblationJob, out: Path, *, on_story: OnStory | None = None, on_event: Emit | None = None
) -> AblationResult:
    """Run the suite of `job` into the folder `out` and leave `table.json` there.

    The same call again does nothing (with other judgments by people, it makes the table again); after a kill it goes
    on, pays for nothing twice and ends with the same bytes.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`).
        JudgeError, StoreError: the work failed; call again to go on.
    """
    job.settle()
    folder = AblationFolder(out)
    with folder.claim():
        state = _begin(job, folder)
        human = job.people.mark() if job.people is not None else None
        if state["status"] == "finished" and folder.table.is_file() and state.get("human") == human:
            return AblationResult(out, read_json(folder.table), reused=True)
        with Store(cache_folder(), owner=state["identity"]) as store:
            graph, rule = build_graph(reports=False), folder.rule(job.config.matching)
            for place, record in enumerate(job.records, 1):
                if folder.finished(record.story_id, job.story_identity(record)) is None:
                    _run_story(job, folder, store, (graph, rule), record, on_event or unheard)
                if on_story is not None:
                    on_story(record.story_id, place)
            store.flush()
        table = write_table(job, folder)
        write_json(folder.state, {**state, "status": "finished", "human": human})
        return AblationResult(out, table, reused=False)


def _begin(job: AblationJob, folder: AblationFolder) -> dict[str, Any]:
    """Write down what is about to run, or find that it is what ran here before.

    Raises:
        OutputFolderError: the folder holds another ablation.
    """
    stories = digest([record.model_dump(mode="json") for record in job.records])
    known = folder.read_state()
    fresh = {
        "format": 1,
        "katha": __version__,
        "identity": job.identity,
        "stories_sha256": stories,
        "status": "running",
        "suite": job.suite.model_dump(mode="json"),
        "config": job.config.model_dump(mode="json"),
        "lock": dict(job.lock) if job.lock else None,
        "stories": [record.story_id for record in job.records],
        "plugins": {row.name: job.plugins(row).specs() for row in job.suite.rows},
        "prompts": prompt_hashes(),
        "command": list(job.command),
    }
    if known is not None:
        if known["identity"] != fresh["identity"]:
            raise OutputFolderError(
                f"{str(folder.path)!r} holds another ablation (suite {known['suite']['name']!r}, or other settings).",
                hint="Choose another --out: what both have in common is in the cache and is not paid for again.",
            )
        if known["stories_sha256"] == stories:
            return known
    write_json(folder.state, fresh)
    return fresh


def _run_story(
    job: AblationJob,
    folder: AblationFolder,
    store: Store,
    machine: tuple[Graph, Rule],
    record: StoryRecord,
    emit: Emit,
) -> None:
    """Every row of one story. A row that has no board is invalid with its reason and stops nothing."""
    started = time.perf_counter()
    bench = StoryBench(record, job, store, folder.story(record.story_id), *machine)
    boards: list[RowBoard] = []
    invalid: dict[str, str] = {}
    answers: dict[str, list[Answer]] = {}
    story: StoryRecord | None = None
    try:
        story = bench.story()
    except (MissingExtraError, UnknownPluginError):
        raise
    except UsageError as error:
        invalid = {bench.method(row, seeds): error.message for row in job.suite.rows for seeds in bench.seeds(row)}
    for row in job.suite.rows if story is not None else ():
        for seeds in bench.seeds(row):
            try:
                made = bench.run(row, seeds, emit)
            except TransientRenderError:
                raise
            except OF_ONE_STORY as error:
                invalid[bench.method(row, seeds)] = error.message
                continue
            answers.setdefault(protocol_of(row), []).extend(bench.judge(made, row, emit))
            boards.append(made)
    if story is not None:
        lengths = {len(item.board.frames) for item in boards}
        require_separate(story, answers.get(HELD_OUT, []), bench.steering, lengths)
    result = StoryResult(
        identity=job.story_identity(record),
        story_id=record.story_id,
        title=record.title,
        boards=boards,
        invalid=invalid,
        seconds=round(time.perf_counter() - started, 3),
    )
    kept = {protocol: _once(rows) for protocol, rows in answers.items()}
    folder.keep(result, story, kept, bench.steering, bench.pictures([item.board for item in boards]))


def _once(rows: list[Answer]) -> list[Answer]:
    """Text-only rows hold for every method and are kept once."""
    seen: dict[tuple[str | None, str, str, str], Answer] = {}
    for row in rows:
        seen[row.method, row.judge, row.question_id, row.condition] = row
    return list(seen.values())
