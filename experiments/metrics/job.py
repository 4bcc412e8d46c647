"""Measure boards into a folder: `measured.jsonl` as it comes, then `values.jsonl`, `values.csv` and `table.*`.

A piece of work is one board under one metric. What is measured is kept when it is there; the same command measures
nothing again, after a kill it goes on, and what a judge could not be reached for is tried again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from katha.config import cache_folder, katha_version
from katha.errors import UsageError
from katha.eval_bridge.bench.boards import BoardProblem
from katha.eval_bridge.judging.abilities import threads_of
from katha.eval_bridge.judging.answers import LineLog, Outcome, OutcomeCounter, Status, iter_log
from katha.eval_bridge.judging.budget import Account, Budget, CallEstimate, Limits, Weighed, require_prices
from katha.eval_bridge.judging.engine import JudgingEngine, Retry
from katha.eval_bridge.metrics.base import AnyMetric, Metric, SetMetric, measure_board, measure_set, mode_of
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext
from katha.eval_bridge.metrics.features import Features
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.measured import BoardWork, Measuring, by_workers, measured_by_workers
from katha.experiments.evaluation.judging import in_turn
from katha.experiments.metrics.sources import BoardPlace, BoardSource
from katha.experiments.metrics.tables import make_table, write_files
from katha.experiments.runner import Experiment, ExperimentEnd, ExperimentResult, ExperimentState, OnStep, read_kept
from katha.jsonio import canonical, digest
from katha.plugin_boundary import spec_of
from katha.protocols import Judge, JudgeReply, can
from katha.schema.metrics import MetricMode, MetricTable, MetricValue
from katha.store import AnswerCache, Store, StoreKind, Workspace

_AGAIN = ("transport_failed:", "budget_stopped:")
"""How the reasons begin of values that the same command tries to get again."""
_ANYTHING = "1. Score: 1"
_PRETENDED = JudgeReply(
    "ok", answer=_ANYTHING, raw=_ANYTHING, usage={"probabilities": {"Yes": 0.5, "No": 0.5, "1": 0.5}}
)
"""What a dry run takes a judge to say: a list, a score and a word, so that what is asked next is counted, too."""


class MetricSeconds(BaseModel):
    """What one metric took on this machine.

    pieces: boards, or methods of a metric of sets. pictures: in them. seconds: with those of its judge's answers.
    """

    model_config = ConfigDict(frozen=True)

    pieces: int = 0
    pictures: int = 0
    seconds: float = 0.0

    def more(self, pictures: int, seconds: float) -> MetricSeconds:
        """Return it with one more piece."""
        return MetricSeconds(
            pieces=self.pieces + 1, pictures=self.pictures + pictures, seconds=round(self.seconds + seconds, 6)
        )


class MetricsState(ExperimentState):
    """`metrics.json`: what was measured, how, and what asking came to.

    seconds: by metric, of what was measured now and not found (ViStoryBench, Table S9).
    """

    differs: ClassVar[str] = "other boards, metrics, mode or judge"

    command: list[str] = []
    metrics: Mapping[str, Mapping[str, object]] = {}
    mode: str | None = None
    judge: Mapping[str, object] | None = None
    boards: int = 0
    calls: Account | None = None
    budget: Limits | None = None
    seconds: Mapping[str, MetricSeconds] = Field(default={}, exclude_if=lambda value: not value)


METRICS = StoreKind("measurement", "metrics.json", MetricsState)
MetricsResult = ExperimentResult[MetricsState, MetricTable]


class _Measured(BaseModel):
    """One line of `measured.jsonl`: the values of one board under one metric."""

    model_config = ConfigDict(frozen=True)

    key: str
    values: tuple[MetricValue, ...]

    @property
    def again(self) -> bool:
        """Return whether the same command tries to measure it again."""
        return any(value.reason is not None and value.reason.startswith(_AGAIN) for value in self.values)


@dataclass
class MetricsJob:
    """What is measured by what.

    metrics: by name. mode: `paper` or `code`; None: each metric's first. judge: of plain prompts. workers: how many
    boards are measured side by side. seed: of what a measure draws. options: by name what each metric
    was made with, so that a worker can make it; those without are measured here.
    """

    sources: Sequence[BoardSource]
    metrics: Mapping[str, AnyMetric]
    mode: MetricMode | None = None
    judge: Judge | None = None
    judge_name: str = ""
    budget: Budget | None = None
    workers: int = 1
    seed: int = 42
    command: Sequence[str] = ()
    retry: Retry | None = None
    features: Path | None = None
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        asks = [name for name, metric in self.metrics.items() if "judge" in metric.card.needs]
        if self.judge is not None and asks and not can(self.judge, Judge.ask_plainly):
            raise UsageError(
                f"The judge {self.judge_name!r} answers katha's own questions only, and {asks[0]!r} asks others.",
                hint="Give --judge openai:MODEL, anthropic:MODEL or local:MODEL.",
            )
        if asks and self.judge is None:
            raise UsageError(f"The metric {asks[0]!r} needs a judge.", hint="Give --judge, or leave the metric out.")
        titles: dict[str, str] = {}
        for name, metric in self.metrics.items():
            if titles.setdefault(metric.card.name, name) != name:
                raise UsageError(
                    f"The metrics {titles[metric.card.name]!r} and {name!r} both call themselves {metric.card.name!r}.",
                    hint="Measure them with two commands, each with its own --out.",
                )
        require_prices({self.judge_name: self.judge} if self.judge is not None else {}, self.budget or Budget())

    @property
    def boards(self) -> list[BoardPlace]:
        """Every board, in the order of sources, methods and stories."""
        return [board for source in self.sources for board in source.boards]

    @cached_property
    def specs(self) -> dict[str, dict[str, object]]:
        """Everything that can change a value, by metric."""
        return {name: spec_of(metric, f"metric {name!r}") for name, metric in self.metrics.items()}

    def pool(self) -> Iterator[tuple[str, bytes]]:
        """Yield the gold pictures of every story once, one by one."""
        seen: set[str] = set()
        for place in self.boards:
            if place.record.story_id not in seen:
                seen.add(place.record.story_id)
                try:
                    yield from ((place.record.story_id, data) for data in place.read().references)
                except BoardProblem:
                    seen.discard(place.record.story_id)

    def context(self, metric: AnyMetric, features: Features, engine: JudgingEngine | None) -> MetricContext:
        """Return what a metric works with."""
        return MetricContext(
            mode=mode_of(metric.card, self.mode),
            features=features,
            engine=engine,
            judge=self.judge_name if engine is not None else None,
            pool=self.pool,
            seed=self.seed,
        )

    def state(self) -> MetricsState:
        """Return what the folder begins with."""
        judge = spec_of(self.judge, "judge") if self.judge is not None else None
        identity = {
            "boards": [[place.method, place.record.model_dump(mode="json"), place.mark] for place in self.boards],
            "metrics": self.specs,
            "judge": judge,
            "mode": self.mode,
            "seed": self.seed,
        }
        return MetricsState(
            format=1,
            katha=katha_version(),
            identity=digest(identity),
            command=list(self.command),
            metrics=self.specs,
            mode=self.mode,
            judge=judge,
            boards=len(self.boards),
        )


def measure(job: MetricsJob, out: Path, *, on_board: OnStep | None = None, fleet: Fleet | None = None) -> MetricsResult:
    """Measure into the folder `out`. The same call again does nothing; after a kill it goes on.

    The workers of a `fleet` measure boards by what asks no judge; the rest is measured here.

    Raises:
        UsageError: something is wrong with the input (OutputFolderError: with `out`). JudgeError, StoreError: the work
        failed; call again to go on.
    """
    return _Measurement(job, Workspace(out, METRICS), on_board, fleet).run()


class _LookedUp(AnswerCache):
    """The cache of a dry run: what it holds counts, and nothing is kept in it."""

    def put(self, key: str, answer: object) -> None:
        """Keep nothing."""


def estimate(job: MetricsJob) -> CallEstimate:
    """Return what measuring would ask of the judge beyond what the cache holds. Nothing is asked and nothing written.

    The judge is taken to answer everything, so that questions that depend on answers are counted.
    """
    found = CallEstimate()
    if job.judge is None:
        return found
    with Store(cache_folder(), owner="estimate") as store:
        store.answers = _LookedUp(store.index)
        engine = JudgingEngine({job.judge_name: Weighed(job.judge, found, pretended=_PRETENDED)}, store)
        features = Features(job.features)
        asking = {name: metric for name, metric in job.metrics.items() if "judge" in metric.card.needs}
        for place in job.boards:
            for metric in asking.values():
                if isinstance(metric, Metric):
                    list(_of_board(metric, place, job.context(metric, features, engine)))
        found.reused = engine.tallies[job.judge_name].reused
        features.close()
    return found


def _of_board(metric: Metric, place: BoardPlace, context: MetricContext) -> Iterator[MetricValue]:
    """Yield the values of one board; a board that cannot be read is a null of every part."""
    try:
        board = place.read()
    except BoardProblem as problem:
        for part in metric.card.parts:
            yield MetricValue(
                metric=metric.card.name,
                part=part.name,
                method=place.method,
                story_id=place.record.story_id,
                n=0,
                reason=f"the board cannot be used: {problem.message.rstrip('.')}",
            )
        return
    yield from measure_board(metric, board, context)


class _Measurement(Experiment[MetricsState, MetricTable]):
    def __init__(
        self, job: MetricsJob, folder: Workspace[MetricsState], on_board: OnStep | None, fleet: Fleet | None
    ) -> None:
        super().__init__(folder)
        self._on_board, self._told, self._fleet = on_board, 0, fleet
        self._job, self._path = job, folder.path
        self._log = self._path / "measured.jsonl"
        self._done: set[str] = set()
        self._engine: JudgingEngine | None = None
        self._seconds: dict[str, MetricSeconds] = {}
        self._timed = threading.Lock()

    def begin(self) -> MetricsState:
        return self._job.state()

    def stored(self, known: MetricsState, fresh: MetricsState) -> MetricTable | None:
        return read_kept(self._path / "table.json", MetricTable) if known.status == "finished" else None

    def work(self) -> Iterator[str]:
        job, budget = self._job, self._job.budget or Budget()
        self._budget = budget
        if job.judge is not None:
            self._engine = JudgingEngine({job.judge_name: job.judge}, self.store, budget=budget, retry=job.retry)
        self._done = {row.key for row in self._rows() if not row.again}
        features = Features(job.features)
        with LineLog(self._log) as log:
            write = partial(_append, log, threading.Lock())
            self._by_workers(write)
            board_work = partial(self._board, features, write)
            in_turn(board_work, job.boards, self._at_once(), self._tell, threading.Event())
            for name, metric in job.metrics.items():
                if isinstance(metric, SetMetric):
                    self._set(name, metric, features, write)
        features.close()
        yield from ()

    def _by_workers(self, write: Callable[[_Measured], None]) -> None:
        """Have the workers measure what they can of what is open."""
        metrics = {name: made for name, made in by_workers(self._job.metrics).items() if name in self._job.options}
        if self._fleet is None or not metrics:
            return

        def boards() -> Iterator[tuple[str, BoardWork]]:
            for place in self._job.boards:
                keys = {name: self._key(name, place.method, place.record.story_id, place.mark) for name in metrics}
                wanted = {name: key for name, key in keys.items() if key not in self._done}
                if wanted:
                    with suppress(BoardProblem):  # reported when the rest is measured
                        yield f"{place.method}: {place.record.story_id}", BoardWork(place.read(), wanted)

        def keep(key: str, values: tuple[MetricValue, ...]) -> None:
            write(_Measured(key=key, values=values))
            self._done.add(key)

        asked = {name: (self._job.options[name], self._job.specs[name]) for name in metrics}
        opener = Measuring(asked, self._job.mode, self._job.seed)
        owner, logs = self.state.identity_sha256[:32], self._path / "workers"
        measured_by_workers(self._fleet, opener, boards(), owner, logs, keep)

    def _tell(self, place: BoardPlace) -> None:
        self._told += 1
        if self._on_board is not None:
            self._on_board(f"{place.method}: {place.record.story_id}", self._told)

    def _at_once(self) -> int:
        """Return how many boards are measured side by side: more than one only where the judge waits for a server."""
        if self._job.judge is None:
            return self._job.workers
        return max(1, min(self._job.workers, threads_of(self._job.judge)))

    def _key(self, name: str, *of: str) -> str:
        """Return the key of a piece of work under the metric that was asked for by `name`."""
        return digest([self._job.specs[name], mode_of(self._job.metrics[name].card, self._job.mode), *of])

    def _board(self, features: Features, write: Callable[[_Measured], None], place: BoardPlace) -> None:
        read: list[MetricBoard] = []

        def once() -> MetricBoard:
            if not read:
                read.append(place.read())
            return read[0]

        shared = BoardPlace(place.method, place.record, once, place.mark)
        for name, metric in self._job.metrics.items():
            key = self._key(name, place.method, place.record.story_id, place.mark)
            if isinstance(metric, Metric) and key not in self._done:
                context, started = self._job.context(metric, features, self._engine), time.perf_counter()
                values = tuple(_of_board(metric, shared, context))
                self._took(name, len(read[0].images) if read else 0, started)
                write(_Measured(key=key, values=values))

    def _took(self, name: str, pictures: int, started: float) -> None:
        """Count what a piece of work under a metric took."""
        with self._timed:
            known = self._seconds.get(name, MetricSeconds())
            self._seconds[name] = known.more(pictures, time.perf_counter() - started)

    def _set(self, name: str, metric: SetMetric, features: Features, write: Callable[[_Measured], None]) -> None:
        methods: dict[str, list[BoardPlace]] = {}
        for place in self._job.boards:
            methods.setdefault(place.method, []).append(place)
        for method, places in methods.items():
            key = self._key(name, method, *(place.mark for place in places))
            if key not in self._done:
                context, started = self._job.context(metric, features, self._engine), time.perf_counter()
                pictures = 0

                def boards(places: Sequence[BoardPlace] = places) -> Iterator[MetricBoard]:
                    nonlocal pictures
                    for board in _readable(places):
                        pictures += len(board.images)
                        yield board

                values = tuple(measure_set(metric, method, boards(), context))
                self._took(name, pictures, started)
                write(_Measured(key=key, values=values))

    def _rows(self) -> Iterator[_Measured]:
        if self._log.exists():
            yield from iter_log(self._log, lambda line, number: _Measured.model_validate_json(line))

    def values(self) -> list[MetricValue]:
        """Return what is measured, each piece by its last row, in the order of what it is of."""
        latest = {row.key: row.values for row in self._rows()}
        return sorted((value for values in latest.values() for value in values), key=lambda value: value.key)

    def conclude(self) -> ExperimentEnd[MetricTable]:
        job, values = self._job, self.values()
        open_ones = any(value.reason is not None and value.reason.startswith(_AGAIN) for value in values)
        counted = self._engine.outcome if self._engine is not None else OutcomeCounter()
        outcome = counted.outcome()
        status: Status = "incomplete" if open_ones else "finished"
        status = "budget_stopped" if self._budget.stopped else status
        table = make_table(job.metrics, job.mode, job.sources, values)
        table = table.model_copy(update={"judge": job.judge_name or None, "status": status})
        write_files(self._path, table, values)
        calls = self._engine.tallies[job.judge_name].account() if self._engine is not None else None
        told = {"calls": calls, "budget": self._budget.limits(), "seconds": self._seconds}
        self.state = self.state.model_copy(update=told)
        return ExperimentEnd(table, Outcome.of_finished(outcome.statuses, outcome.causes), status)


def _append(log: LineLog, lock: threading.Lock, row: _Measured) -> None:
    with lock:
        log.write(canonical(row.model_dump(mode="json")) + b"\n")


def _readable(places: Sequence[BoardPlace]) -> Iterator[MetricBoard]:
    """Yield the boards that can be read, one by one."""
    for place in places:
        try:
            yield place.read()
        except BoardProblem:
            continue
