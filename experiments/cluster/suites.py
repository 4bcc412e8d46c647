"""Suites by workers: an item is one story under every row, which goes from stage to stage until nothing is left."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from katha.agents.context import Plugins
from katha.agents.frames import draw_board
from katha.agents.graph import build_graph
from katha.agents.state import OF_ONE_STORY, Emit, ignore_event
from katha.config import Settings
from katha.experiments.ablate.bench import StoryBench, StoryMade, run_rows
from katha.experiments.ablate.job import AblationJob, drawn_by
from katha.experiments.cluster.stage_models import ItemLoad, StageModels, WrongStage, drawn_at, load_for, planned_at
from katha.experiments.cluster.work import HERE, HOME, Drains, Ending, Station, Work, WorkItem, open_store
from katha.schema import StoryRecord


@dataclass(frozen=True)
class _Part:
    """A story under every row, or (with a seed) its drawings with that seed alone."""

    record: StoryRecord
    seed: int | None = None


def _draw(bench: StoryBench, seed: int) -> None:
    """Draw the boards of one seed, each distinct one once."""
    drawn: set[str] = set()
    for row in bench.job.suite.rows:
        config = bench.job.row_config(row, bench.record)
        if drawn_by(config) not in drawn:
            drawn.add(drawn_by(config))
            with suppress(*OF_ONE_STORY):  # the story itself tells of it
                draw_board(bench.open(row, (seed,)), seed, ignore_event)


def _look_ahead(bench: StoryBench) -> None:
    """Do what else this station can do for the story, in every row, before the story goes on."""
    for row, seeds, reporter in bench.wanted():
        with suppress(WrongStage, *OF_ONE_STORY):
            made = bench.run(row, seeds, reporter)
            bench.judge(made, row)
            bench.judge_own(made, row)


@dataclass(frozen=True)
class Suites:
    """Opens stations that run stories. given: plug-ins that are there already, for a station of the command's own; what
    happens in it is told to `emit`."""

    job: AblationJob
    owner: str
    given: Plugins | None = None
    emit: Emit = ignore_event

    def __call__(self, stage: str) -> Station:
        """Return the station of a stage."""
        models = StageModels(stage, open_store(self.owner))
        made = self.given or load_for(self.job.config)
        job = replace(self.job, given=made, seen=models.plugins, human=None)
        place = Path(tempfile.mkdtemp(prefix="katha-"))
        weakref.finalize(models, shutil.rmtree, place, ignore_errors=True)
        graph, rule = build_graph(reports=False), job.rule(job.config.matching, place)

        def run(of: _Part) -> StoryMade | None:
            bench = StoryBench(of.record, place, job, models.store, graph, rule, self.emit)
            if of.seed is not None:
                _draw(bench, of.seed)
                return None
            try:
                return run_rows(bench)
            except WrongStage:
                _look_ahead(bench)
                raise

        def work(load: ItemLoad) -> Ending:
            return models.work(load, run)

        return work


def first_stage(config: Settings, made: Plugins) -> str:
    """Return where a story begins: with its planner's model, else its renderer's, else anywhere."""
    stages = (planned_at(config), drawn_at(config.renderer, made.renderer))
    return next((stage for stage in stages if stage not in (HERE, HOME)), stages[1] if HOME in stages else HERE)


def rows_by_stages(
    fleet: Drains,
    job: AblationJob,
    records: Sequence[StoryRecord],
    owner: str,
    logs: Path,
    keep: Callable[[StoryMade], None],
    *,
    emit: Emit = ignore_event,
    side_by_side: bool = True,
) -> set[str]:
    """Have the stories run stage by stage under every row, `keep` what came of each, and return who ended.

    Gives the ids of the stories that ended. emit: hears what happens in this process. side_by_side: whether several
    draw at once, so that a story's seeds are
    items of their own.

    Raises:
        UsageError: there is no such cluster. StoreError: the disk failed.
    """
    ended: set[str] = set()
    made = job.plugins(job.suite.rows[0])
    begin = first_stage(job.row_config(job.suite.rows[0]), made)
    drawn = drawn_at(job.config.renderer, made.renderer)
    several = side_by_side and begin == drawn not in (HERE, HOME) and made.renderer.capabilities.source == "drawn"
    seeds = job.config.seeds if several and len(job.config.seeds) > 1 else ()

    def items() -> Iterator[WorkItem]:
        for record, seed in product(records, seeds):
            yield WorkItem(begin, f"{record.story_id}, seed {seed}", ItemLoad(_Part(record, seed)))
        for record in records:
            yield WorkItem(begin, record.story_id, ItemLoad(_Part(record)))

    def kept(item: WorkItem, told: StoryMade | None) -> None:
        # Another identity: a worker has another version of a model, and the command does the story itself.
        if told is not None and told.result.identity == job.story_identity(item.load.of.record):
            keep(told)
            ended.add(told.result.story_id)

    opener = Suites(replace(job, given=None, seen=None, human=None), owner)
    home = Suites(opener.job, owner, job.made, emit)
    fleet.drain(Work(items(), opener, kept, total=len(records) * (len(seeds) + 1), home=home), owner, logs)
    return ended
