"""A suite over all stories, in its folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from katha.agents.graph import build_graph
from katha.agents.state import Emit, ignore_event
from katha.eval_bridge.judging.answers import outcome_of
from katha.eval_bridge.judging.engine import prefix_caches
from katha.eval_bridge.judging.entrance import results_of
from katha.experiments.ablate.bench import StoryBench, StoryMade, run_rows
from katha.experiments.ablate.job import AblationFolder, AblationJob, AblationResult, AblationState
from katha.experiments.ablate.table import write_table
from katha.experiments.ablate.tally import SuiteFolder
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.progress import OnWorkers, unheard
from katha.experiments.cluster.stage_models import stages_of
from katha.experiments.cluster.suites import rows_by_stages
from katha.experiments.cluster.work import Drains, Turns
from katha.experiments.runner import Experiment, ExperimentEnd, OnStep, read_kept
from katha.schema import StoryRecord
from katha.schema.tables import AblationTable
from katha.store import Status


def run_ablation(
    job: AblationJob,
    out: Path,
    *,
    on_story: OnStep | None = None,
    on_event: Emit | None = None,
    fleet: Fleet | None = None,
    heard: OnWorkers = unheard,
    join: Sequence[Path] = (),
) -> AblationResult:
    """Run the suite of `job` into the folder `out` and leave `table.json` there.

    The same call again does nothing (with other judgments by people, it makes the table again); after a kill it goes
    on, pays for nothing twice and ends with the same bytes. A board that cannot be made is invalid with its reason and
    stops nothing; where another try may help, the same call draws it again. The workers of a `fleet` run the stories.
    Without one, models that fill the memory take turns: all drawing of up to 64 stories, then all judging, and what a
    repair adds; `heard` is told how that stands. What is whole in the folders of `join` is taken from there.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`).
        JudgeError, StoreError: the work failed; call again to go on.
    """
    job.settle()
    return _Ablation(job, AblationFolder(out), on_event or ignore_event, fleet, heard, join).run(on_story)


_AT_ONCE = 64
"""Stories that go through all stages together: more save few loads, and a kill loses more of what no cache keeps."""


class _Ablation(Experiment[AblationState, AblationTable]):
    folder: AblationFolder

    def __init__(
        self,
        job: AblationJob,
        folder: AblationFolder,
        emit: Emit,
        fleet: Fleet | None,
        heard: OnWorkers,
        join: Sequence[Path],
    ) -> None:
        super().__init__(folder)
        self._join = join
        self._job, self._emit, self._fleet, self._heard = job, emit, fleet, heard
        self._human = job.people.mark() if job.people is not None else None

    def begin(self) -> AblationState:
        return self._job.state()

    def resumed(self, known: AblationState, fresh: AblationState) -> AblationState:
        return super().resumed(known if known.stories_sha256 == fresh.stories_sha256 else fresh, fresh)

    def stored(self, known: AblationState, fresh: AblationState) -> AblationTable | None:
        same = known.human == self._human and known.stories_sha256 == fresh.stories_sha256
        return read_kept(self.folder.table, AblationTable) if same and known.status == "finished" else None

    def work(self) -> Iterator[str]:
        wanted = {record.story_id: self._job.story_identity(record) for record in self._job.records}
        for other in self._join:
            self.folder.take(other, wanted)
        graph, rule = build_graph(reports=False), self._job.rule(self._job.config.matching, self.folder.path)
        for records, brought in self._brought():
            for record in records:
                if record.story_id not in brought and self._open(record):
                    place = self.folder.story(record.story_id)
                    self._keep(run_rows(StoryBench(record, place, self._job, self.store, graph, rule, self._emit)))
                yield record.story_id

    def _open(self, record: StoryRecord) -> bool:
        """Return whether something of the story is still to be done."""
        known = self.folder.result(record.story_id, self._job.story_identity(record))
        return known is None or known.again or not known.boards

    def _keep(self, made: StoryMade) -> None:
        pictures = {name: self.store.blobs.get(name) for name in made.pictures}
        self.folder.keep(made.result, made.story, made.answers, made.steering, pictures)

    def _brought(self) -> Iterator[tuple[Sequence[StoryRecord], set[str]]]:
        """Yield the stories, some at a time, and which of them workers or stages have ended."""
        records, job = self._job.records, self._job
        if self._fleet is not None:
            yield records, self._by_stages(self._fleet, records)
        elif len({stage for row in job.suite.rows for stage in stages_of(job.row_config(row), job.plugins(row))}) > 1:
            turns = Turns(self._heard)
            for start in range(0, len(records), _AT_ONCE):
                some = records[start : start + _AT_ONCE]
                yield some, self._by_stages(turns, some)
        else:
            yield records, set()

    def _by_stages(self, drains: Drains, records: Sequence[StoryRecord]) -> set[str]:
        """Have what is to be done run stage by stage; the stories that were ended."""
        left = [record for record in records if self._open(record)]
        owner, logs, alone = self.state.identity_sha256[:32], self.folder.path / "workers", self._fleet is None
        return rows_by_stages(drains, self._job, left, owner, logs, self._keep, emit=self._emit, side_by_side=not alone)

    def conclude(self) -> ExperimentEnd[AblationTable]:
        tally = SuiteFolder(self._job, self.folder)
        judges = {name: judge for row in self._job.suite.rows for name, judge in self._job.plugins(row).judges.items()}
        table = write_table(tally, results_of(judges, self.store))
        self.save(human=self._human)
        rows = self.folder.every_answer(result.story_id for result in tally.results)
        reasons = [reason for result in tally.results for reason in result.invalid.values()]
        again: Status | None = "incomplete" if any(result.again for result in tally.results) else None
        return ExperimentEnd(table, outcome_of(rows, unusable=reasons).with_caches(prefix_caches(judges)), again)
