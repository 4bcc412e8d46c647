"""One story under every row of a suite.

Each row runs the same LangGraph machine as `katha run`, up to its decision. Plan, questions, measured boards and
answers are shared: every distinct frame is drawn once and every distinct question asked once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from langgraph.types import StreamMode

from katha.agents.context import MeasuredBoards, PreparedStory, RunContext, plan_within, prepare_story
from katha.agents.critique import ask_all, question_id
from katha.agents.folder import MemoryFiles
from katha.agents.frames import images_of
from katha.agents.graph import Graph, final_boards
from katha.agents.state import OF_ONE_STORY, Emit, RunState, ignore_event
from katha.compass.modes import SuiteRow
from katha.compass.repair import board_key, board_mark
from katha.errors import KathaError, MissingExtraError, PlanError, TransientRenderError, UnknownPluginError, UsageError
from katha.eval_bridge.judging.answers import FAILED
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.eval_bridge.scoring.audit import require_separate
from katha.experiments.ablate.job import (
    HELD_OUT,
    OWN,
    AblationJob,
    RowBoard,
    StoryResult,
    drawn_by,
    protocol_of,
)
from katha.experiments.runner import worth_another_try
from katha.schema import ASKED, Answer, Board, Event, Plan, Role, StoryRecord
from katha.store import Store

_ID = 16


class StoryBench:
    """One story. `run` gives the boards of a row, `judge` the reporting answers of a board."""

    def __init__(
        self,
        record: StoryRecord,
        folder: Path,
        job: AblationJob,
        store: Store,
        graph: Graph,
        rule: Rule,
        emit: Emit = ignore_event,
    ) -> None:
        self.record, self.job, self._store, self._graph, self._rule = record, job, store, graph, rule
        self._files, self._emit = MemoryFiles(folder), emit
        self._plans: dict[str, Plan] = {}
        self._measured: dict[tuple[str, str | None, int], MeasuredBoards] = {}
        self._reported: dict[tuple[object, ...], list[Answer]] = {}

    @property
    def rows(self) -> list[Answer]:
        """Every answer so far, as it came."""
        return self._files.rows

    @property
    def unanswered(self) -> bool:
        """Return whether a question got no answer that the same command can still get."""
        return any(row.status in FAILED for row in self.rows)

    @cached_property
    def story(self) -> StoryRecord:
        """The story with its questions, the same for every row: its own, or those of the first row's plan."""
        return prepare_story(self.record, self._plan(self.job.suite.rows[0]))

    @property
    def questions_from(self) -> str:
        """The planner whose transitions the questions were built from; empty where the record brings them."""
        if self.record.recoverability_questions or self.record.transitions:
            return ""
        plan = self._plan(self.job.suite.rows[0])
        return plan.transitions_from or plan.planner

    def open(self, row: SuiteRow, seeds: Sequence[int], reporter: str | None = None) -> RunContext:
        """Return the surroundings of one run of `row`, with what the story's runs share.

        reporter: the judge that is held out, if one is.
        """
        config = self.job.row_config(row, self.record).model_copy(update={"seeds": tuple(seeds)})
        return RunContext.open(
            self.record,
            config,
            self.job.plugins(row, reporter),
            self._store,
            self._files,
            mode=self.job.mode(row),
            matching=self._rule,
            measured=self._measured.setdefault(
                (drawn_by(config), reporter, self.job.mode(row).readings), MeasuredBoards(boards={})
            ),
            ready=PreparedStory(self._plan(row), self.story),
        )

    def _plan(self, row: SuiteRow) -> Plan:
        config, made = self.job.row_config(row, self.record), self.job.plugins(row)
        key = drawn_by(config)
        if key not in self._plans:
            try:
                limit = made.renderer.capabilities.prompt_tokens
                self._plans[key] = plan_within(made.planner, self.record, config, limit, plans=self._store.plans)
            except (MissingExtraError, UnknownPluginError, PlanError):
                raise
            except UsageError as error:  # this story cannot be planned; another one may
                raise PlanError(error.message, hint=error.hint) from error
        return self._plans[key]

    def wanted(self) -> Iterator[tuple[SuiteRow, tuple[int, ...], str | None]]:
        """Yield every row with the run's seeds, once for each board that the row reports: its own seed first; and the
        judge that reports it (see `AblationJob.reporters`)."""
        seeds = self.job.config.seeds
        for row in self.job.suite.rows:
            found = self.job.plugins(row).renderer.capabilities.source == "found"
            one = found or self.job.mode(row).report == "selected"
            for seed in seeds[:1] if one else seeds:
                for reporter in self.job.reporters(row):
                    yield row, seeds if one else (seed, *(other for other in seeds if other != seed)), reporter

    def method(self, row: SuiteRow, seeds: Sequence[int]) -> str:
        """Return the name of the board that begins with the first of `seeds`, where a row has one a seed."""
        return row.name if self.job.mode(row).report == "selected" else f"{row.name}@{seeds[0]}"

    def run(self, row: SuiteRow, seeds: Sequence[int], reporter: str | None = None) -> RowBoard:
        """Return the board of `row` that begins with the first of `seeds`, chosen without the judge that reports it.

        Raises:
            RenderError: a frame could not be made. UsageError: the story cannot be planned or drawn.
        """
        context = self.open(row, seeds, reporter)
        self._store.frames.looked_up.clear()
        start = len(self.rows)
        candidates, decision, final = final_boards(self._drive(context), context)
        known = context.measured.boards or {}
        measured = [known[board_key(item.board.frames)] for item in candidates]
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
            frames=sorted(key[:_ID] for key in self._store.frames.looked_up),
            questions=sorted(
                {*(name for item in measured for name in item.asked), *map(question_id, self.rows[start:])}
            ),
            judge=reporter,
            mark=board_mark(kept.board.frames),
        )

    def _drive(self, context: RunContext) -> RunState:
        """Run the machine from plan to decision."""
        config: Any = {"recursion_limit": 1000}
        modes: list[StreamMode] = ["values"] if self._emit is ignore_event else ["custom", "values"]
        values = RunState(timings={})
        for kind, chunk in self._graph.stream(values, config, context=context, stream_mode=modes):
            if kind == "custom":
                self._emit(cast(Event, chunk))
            else:
                values = cast(RunState, chunk)
        return values

    def judge(self, made: RowBoard, row: SuiteRow) -> list[Answer]:
        """Return the answers to the row's questions about its board; those to the text alone name no method."""
        rows = self.report(self.open(row, self.job.config.seeds, made.judge), made.board, row, made.method)
        made.questions = sorted({*made.questions, *map(question_id, rows)})
        return rows

    def judge_own(self, made: RowBoard, row: SuiteRow) -> list[Answer]:
        """Return the answers of the judges that steered to the row's reporting questions, under the board's label; none
        where all report."""
        if self.job.plugins(row, made.judge).steering is None or protocol_of(row) != HELD_OUT:
            return []
        context = self.open(row, self.job.config.seeds, made.judge)
        return self.report(context, made.board, row, made.label, by="steering")

    def report(
        self, context: RunContext, board: Board, row: SuiteRow, method: str, by: Role = "reporting"
    ) -> list[Answer]:
        """Return the answers about `board` under `method`; a board that was judged before is not judged again."""
        variant = context.config.variant if row.prompts == "held_out" else STEERING_VARIANT
        shown, images = tuple(frame.sha256 for frame in board.frames), images_of(context, board)
        rows: list[Answer] = []
        for condition in ASKED:
            seen = "image" in condition
            key = (condition, shown if seen else (), row.half, variant, context.plugins.asked(by))
            if key not in self._reported:
                self._reported[key] = ask_all(
                    context,
                    condition,
                    images if seen else (),
                    context.questions(row.half),
                    method="board" if seen else None,
                    role=row.half,
                    stage="judge",
                    emit=self._emit,
                    variant=variant,
                    by=by,
                )
            rows += [item.model_copy(update={"method": method}) if seen else item for item in self._reported[key]]
        return rows


@dataclass(frozen=True)
class StoryMade:
    """What came of one story: its result, the story as it was used, and the answers by protocol and of steering."""

    result: StoryResult
    story: StoryRecord | None
    answers: Mapping[str, Sequence[Answer]]
    steering: Sequence[Answer]

    @property
    def pictures(self) -> list[str]:
        """The hashes of the boards' pictures."""
        return sorted({frame.sha256 for item in self.result.boards for frame in item.board.frames})


def run_rows(bench: StoryBench) -> StoryMade:
    """Run every row of one story and return what came of it. A row that has no board is invalid, with its reason."""
    started = time.perf_counter()
    boards: list[RowBoard] = []
    invalid: dict[str, str] = {}
    answers: dict[str, list[Answer]] = {}
    story: StoryRecord | None = None
    lost: KathaError | None = None
    again = False
    try:
        story = bench.story
    except (MissingExtraError, UnknownPluginError):
        raise  # no story can be planned
    except UsageError as error:
        lost = error
    for row, seeds, reporter in bench.wanted():
        made: RowBoard | KathaError
        try:
            made = lost or bench.run(row, seeds, reporter)
        except OF_ONE_STORY as error:
            made = error
        if isinstance(made, RowBoard):
            boards.append(made)
            answers.setdefault(protocol_of(row), []).extend(bench.judge(made, row))
            if own := bench.judge_own(made, row):
                answers.setdefault(OWN, []).extend(own)
            continue
        invalid[bench.method(row, seeds)] = made.message
        again = again or worth_another_try(made)
        # A network that is gone after a board's tries is gone for the next row, too: the next story comes first.
        lost = made if isinstance(made, TransientRenderError) else lost
    asked = [item for item in bench.rows if item.role == "steering"]
    steering = {(item.method, item.judge, item.question_id, item.packet_sha256): item for item in asked}
    chosen = sorted(steering.values(), key=lambda item: str(item.method))  # whichever branch was first
    if story is not None:
        require_separate(story, answers.get(HELD_OUT, []), chosen, {len(item.board.frames) for item in boards})
    result = StoryResult(
        identity=bench.job.story_identity(bench.record),
        story_id=bench.record.story_id,
        title=bench.record.title,
        boards=boards,
        invalid=invalid,
        questions_from=bench.questions_from if story is not None else "",
        seconds=round(time.perf_counter() - started, 3),
        again=again or bench.unanswered,
    )
    kept = {  # each text-only row once: these hold for every method
        protocol: list({(item.method, item.judge, item.question_id, item.condition): item for item in rows}.values())
        for protocol, rows in answers.items()
    }
    return StoryMade(result, story, kept, chosen)
