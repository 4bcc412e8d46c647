"""Choose the compass's settings on validation stories and freeze them (Sec. G.4, Table 43).

The loop over settings asks no judge and draws no frame: every board that a setting could end with was measured before.
What is minimised is the common-valid STG of the boards on the validation stories' reporting questions: on those valid
for the plain board of every seed, so that no setting gains by making a question invalid (hardly any is valid for every
board that some setting could end with, which are dozens a story). On test stories these questions stay unseen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from katha.agents.context import Plugins, models_of, protocol_of_config
from katha.agents.critique import measure
from katha.agents.folder import prompt_hashes
from katha.agents.frames import draw_board, draw_bridge, insertion_seeds
from katha.agents.graph import build_graph
from katha.agents.state import OF_ONE_STORY, BridgeTask, ignore_event
from katha.compass.lock import (
    TEST_SPLITS,
    Lock,
    LockedStories,
    code_sha256,
    near_duplicate,
    sentence_hashes,
    text_sha256,
    write_lock,
)
from katha.compass.modes import Suite, SuiteRow
from katha.compass.repair import BoardFeatures, board_key
from katha.compass.tuning import (
    CandidateData,
    Counts,
    RepairData,
    StoryData,
    choose,
    possible_weakest,
    unchosen,
)
from katha.config import Settings, katha_version
from katha.errors import JudgeError, TransientRenderError, UsageError
from katha.eval_bridge.judging.answers import Outcome, outcome_of
from katha.eval_bridge.matching.match import Matching
from katha.eval_bridge.scoring.gate import chance_of, why_not_counted
from katha.eval_bridge.scoring.outcomes import collect
from katha.eval_bridge.scoring.rows import row_counts
from katha.experiments.ablate.bench import StoryBench
from katha.experiments.ablate.job import AblationJob
from katha.experiments.runner import Experiment, ExperimentEnd, ExperimentState, OnStep, read_kept
from katha.jsonio import write_json
from katha.schema import DIMENSIONS, Answer, Board, StoryRecord
from katha.schema.scores import BlockName
from katha.schema.tables import TuningResult
from katha.store import Status, StoreKind, Workspace

_MODE = "full"
_SUMMARY = ("stg", "ci95", "default_stg", "gain", "cross_validated", "tried")


def measured(bench: StoryBench, identity: str) -> StoryData:
    """Return what any setting could make of a story: the features and outcomes of its candidates and their repairs.

    All boards are measured with steering questions and judged with reporting questions.

    Raises:
        RenderError: a frame could not be made. UsageError: the story cannot be planned or drawn.
    """
    row, story = bench.job.suite.rows[0], bench.story
    context = bench.open(row, bench.job.config.seeds)

    answers: list[Answer] = []
    names: list[str] = []

    def look(name: str, board: Board) -> BoardFeatures:
        """Return a board's features; its reporting answers are put to the others."""
        measure(context, name, board, ignore_event)
        names.append(name)
        answers.extend(bench.report(context, board, row, name))
        return (context.measured.boards or {})[board_key(board.frames)]

    def repair(board: Board, pair: tuple[int, int], seed: int) -> RepairData:
        repaired = draw_bridge(context, BridgeTask(seed=seed, board=board, pair=pair, prompt=None), ignore_event)
        features = look(f"{repaired.method}/{board.seed}", repaired)
        closest = max((step.adjacent for step in features.transitions if step.pair == pair), default=0.0)
        return RepairData(seed=seed, features=features, closest=closest, counts=[])

    def candidate(seed: int) -> CandidateData:
        board = draw_board(context, seed, ignore_event)
        features = look(f"candidate:{seed}", board)
        pairs = possible_weakest(features.transitions) if context.mode.insert != "none" else []
        repairs = {
            f"{pair[0]}-{pair[1]}": [repair(board, pair, other) for other in insertion_seeds(context, board)]
            for pair in pairs
        }
        return CandidateData(seed=seed, features=features, counts=[], repairs=repairs)

    made = [candidate(seed) for seed in bench.job.config.seeds]
    plain = [f"candidate:{one.seed}" for one in made]
    counted = iter(_counted(story, answers, names, plain, context.matching))
    for one in made:  # in the order in which they were looked at
        for data in (one, *(board for row_of in one.repairs.values() for board in row_of)):
            data.counts, data.own, data.raw = next(counted)
    asked = [chance_of(item) for item in story.recoverability_questions if item.role == "reporting"]
    chance = sum(asked) / len(asked) if asked else 0.0
    return StoryData(story_id=story.story_id, identity=identity, chance=chance, candidates=made)


def _counted(
    story: StoryRecord, answers: Sequence[Answer], names: Sequence[str], plain: Sequence[str], rule: Matching
) -> Iterator[tuple[Counts, Counts, Counts]]:
    """Yield each board's counts on the questions valid for every plain board, on its own valid ones, and on every
    scored one; each of shape (dimensions, 4)."""
    outcomes = collect([story], answers, matching=rule, selection="reporting")
    known = [name for name in names if name in outcomes.methods]
    shared = [name for name in plain if name in known]
    empty: Counts = [[0.0] * 4 for _ in DIMENSIONS]

    def counts(name: str, *, filtered: bool = True, among: Sequence[str] = ()) -> Counts:
        found = row_counts(outcomes, [name], [story.story_id], filtered=filtered, among=among)
        table: Counts = found.counts[0, 0].tolist()
        return table

    for name in names:
        if name not in known:
            yield empty, empty, empty
        else:
            yield counts(name, among=shared), counts(name), counts(name, filtered=False)


def _why_unmeasured(stories: Sequence[StoryData]) -> str | None:
    """Return why the plain boards of these stories cannot be measured with the judge, or None where they can."""

    def counts(block: BlockName) -> NDArray[np.float64]:
        return np.array([np.sum([one.on(block) for one in item.candidates], axis=(0, 1)) for item in stories])

    return why_not_counted(counts("raw"), counts("filtered"), np.array([item.chance for item in stories]))


@dataclass(frozen=True)
class TuneResult:
    """Where the lock is, if one was written, and how it was chosen (`tuning.json`)."""

    lock: Path | None
    chosen: TuningResult
    status: Status
    outcome: Outcome


@dataclass
class TuneJob:
    """Validation stories and what is tried on them; `others` are stories of the same file, frozen but never used.

    keep: write a lock even where the choice is not shown to be better than the settings before.
    """

    records: Sequence[StoryRecord]
    others: Sequence[StoryRecord]
    config: Settings
    settings: int = 10_000
    resamples: int = 2_000
    seed: int = 42
    given: Plugins | None = None
    keep: bool = False
    work: AblationJob = field(init=False)

    def __post_init__(self) -> None:
        self._require_apart()
        row = SuiteRow(name=_MODE, mode=_MODE)
        suite = Suite(name="tune", about="Tuning.", baseline=_MODE, rows=(row,))
        self.work = AblationJob(self.records, suite, self.config, given=self.given)

    def _require_apart(self) -> None:
        outside = {text_sha256(record): record.story_id for record in self.others}
        ids = set(outside.values())
        for record in self.records:
            name = record.story_id
            if name in ids:
                raise UsageError(f"The story {name!r} is in the tuning set and outside it.")
            if record.split in TEST_SPLITS:
                raise UsageError(
                    f"The story {name!r} is of the split {record.split!r}, so nothing may be chosen on it.",
                    hint="Tune on validation stories (--split validation).",
                )
            other = outside.get(text_sha256(record))
            if other is not None:
                raise UsageError(
                    f"The stories {name!r}, in the tuning set, and {other!r}, outside it, have the same words.",
                    hint="Remove one of them.",
                )
        near = near_duplicate(
            {record.story_id: sentence_hashes(record) for record in self.records},
            {record.story_id: sentence_hashes(record) for record in self.others},
        )
        if near is not None:
            raise UsageError(
                f"The stories {near[0]!r}, in the tuning set, and {near[1]!r}, outside it, tell the same in nearly all "
                "sentences.",
                hint="Remove one of them.",
            )


class TuningState(ExperimentState):
    """`ablation.json` of a tuning: it keeps its stories as a suite of one row does."""

    differs: ClassVar[str] = "other settings or plug-ins"

    suite: Mapping[str, object]


TUNING = StoreKind("tuning", "ablation.json", TuningState)


def tune(job: TuneJob, out: Path, lock: Path, *, on_story: OnStep | None = None) -> TuneResult:
    """Measure the stories into the folder `out`, choose, and write `lock` where the choice is shown to be better (or
    `job.keep` asks for it). After a kill it goes on.

    Raises:
        UsageError: something is wrong with the input, before any work. JudgeError, StoreError: the work failed.
    """
    job.work.settle()
    made = _Tuning(job, Workspace(out, TUNING), lock).run(on_story)
    return TuneResult(lock if made.table.better or job.keep else None, made.table, made.status, made.outcome)


class _Tuning(Experiment[TuningState, TuningResult]):
    def __init__(self, job: TuneJob, folder: Workspace[TuningState], lock: Path) -> None:
        super().__init__(folder)
        self._job, self._lock = job, lock
        self._stories: list[StoryData] = []
        self._invalid: dict[str, str] = {}
        self._rows: list[Answer] = []

    def begin(self) -> TuningState:
        identity = self._job.work.identity
        return TuningState(format=1, katha=katha_version(), identity=identity, suite={"name": "tune"})

    def stored(self, known: TuningState, fresh: TuningState) -> None:
        """What was measured is kept; the choice is made anew, for it depends on how much is tried."""

    def work(self) -> Iterator[str]:
        work, out = self._job.work, self.folder.path
        graph, rule = build_graph(reports=False), work.rule(self._job.config.matching, out)
        for record in self._job.records:
            place, identity = out / "stories" / record.story_id, work.story_identity(record)
            data = read_kept(place / "features.json", StoryData)
            if data is None or data.identity != identity:
                bench = StoryBench(record, place, work, self.store, graph, rule)
                try:
                    data = measured(bench, identity)
                except TransientRenderError:
                    raise  # nothing is chosen without a story that may come back
                except OF_ONE_STORY as error:
                    data, self._invalid[record.story_id] = None, error.message
                self._rows += bench.rows
                if data is not None and not bench.unanswered:
                    write_json(place / "features.json", data.model_dump(mode="json"))
            self._stories += [data] if data is not None else []
            yield record.story_id

    def conclude(self) -> ExperimentEnd[TuningResult]:
        job = self._job
        if not self._stories:
            reason = next(iter(self._invalid.values()), "there is none")
            raise UsageError(f"No validation story could be measured: {reason}", hint="Check the stories.")
        outcome = outcome_of(self._rows)
        boards = [one.counts for item in self._stories for one in item.candidates]
        if outcome.failed or not any(row[0] for counts in boards for row in counts):
            told = " ".join(map(str.strip, outcome.sentences()))
            self.finish(outcome, "incomplete")
            raise JudgeError(told or "No question of these stories is valid, so nothing can be chosen.")
        started = time.perf_counter()
        chosen = choose(self._stories, job.config.seeds, job.config.compass, job.settings, job.resamples, job.seed)
        if (why := _why_unmeasured(self._stories)) is not None:
            chosen = unchosen(chosen, why)
        taken = round(time.perf_counter() - started, 2)
        chosen = chosen.model_copy(update={"invalid_stories": self._invalid, "seconds": taken})
        write_json(self.folder.path / "tuning.json", chosen.model_dump(mode="json"))
        if chosen.better or job.keep:
            self._freeze(chosen)
        return ExperimentEnd(chosen, outcome)

    def _freeze(self, chosen: TuningResult) -> None:
        """Write the lock of what was chosen."""
        job, values = self._job, dict(chosen.setting)
        used = {item.story_id for item in self._stories}
        told = chosen.model_dump(mode="json")
        lock = Lock(
            katha=katha_version(),
            code_sha256=code_sha256(),
            candidates=int(values.pop("candidates")),
            seeds=job.config.seeds,
            settings=job.config.compass.model_validate(values),
            stories=LockedStories.of([record for record in job.records if record.story_id in used], job.others),
            protocol=protocol_of_config(job.config),
            models=models_of(job.work.plugins(job.work.suite.rows[0])),
            prompts=prompt_hashes(),
            validation={key: told[key] for key in _SUMMARY},
        )
        write_lock(lock, self._lock)
