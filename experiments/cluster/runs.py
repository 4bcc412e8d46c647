"""Stories by workers, planned or run: an item is one story, which is drawn, judged and repaired wherever the models for
it are.

Workers leave no folder: what they drew and asked is in the cache, and what no cache keeps comes back with the item. The
command then runs the story itself, by the same code as ever, and finds everything made. A plan comes back as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from katha.agents.context import Plugins, make_planner, panel_count, plan_within
from katha.agents.run import run_story
from katha.agents.state import OF_ONE_STORY, RunResult
from katha.config import Settings
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.stage_models import (
    ItemLoad,
    Memory,
    StageModels,
    WrongStage,
    drawn_at,
    load_for,
    planned_at,
)
from katha.experiments.cluster.suites import first_stage
from katha.experiments.cluster.work import Done, Drains, Ending, Station, Work, WorkItem, open_store
from katha.models.client import keyless
from katha.protocols import Capabilities, PanelWords, Planner
from katha.schema import Plan, StoryRecord
from katha.store import Store


@dataclass(frozen=True)
class StoryRun:
    """The run of one story. out: its folder. run_id: on whose account everything is, in whatever process. plan: drawn
    instead of the planner's."""

    record: StoryRecord
    out: Path
    run_id: str
    plan: Plan | None = None

    def settings(self, config: Settings) -> Settings:
        """Return `config` for this story: a plan that was given says how many panels there are."""
        return config if self.plan is None else config.model_copy(update={"panels": len(self.plan.panels)})


@dataclass(frozen=True)
class Running:
    """Opens stations that run stories. given: plug-ins that are there already, for a station of the command's own."""

    config: Settings
    owner: str
    given: Plugins | None = None

    def __call__(self, stage: str) -> Station:
        """Return the station of a stage."""
        models = StageModels(stage, open_store(self.owner))
        made = models.plugins(self.config, self.given or load_for(self.config))

        def run(part: StoryRun) -> Memory:
            with tempfile.TemporaryDirectory(prefix="katha-") as place, suppress(*OF_ONE_STORY):  # the command tells it
                of, config = Path(place) / "run", part.settings(self.config)
                run_story(part.record, config, of, plan=part.plan, plugins=made.part(), run_id=part.run_id)
            return models.memory

        def work(load: ItemLoad) -> Ending:
            return models.work(load, run)

        return work


class FinishedRuns:
    """Runs stories in the command's process that workers have run: from the cache and their memory, by no model."""

    def __init__(self, config: Settings, plugins: Plugins, store: Store) -> None:
        self._config, self._plain, self._models = config, plugins, StageModels("", store)
        self._seen = self._models.plugins(config, plugins)

    def run(self, part: StoryRun, memory: Memory | None) -> RunResult:
        """Return the finished run. memory: what its models gave that no cache keeps; None: no worker has run it.

        Raises:
            KathaError: those of `run_story`.
        """
        if memory is not None:
            self._models.memory, self._models.before = memory, frozenset(memory)
            with suppress(WrongStage):  # a worker has another version of a model: the command does it itself
                return self._run(part, self._seen)
        return self._run(part, self._plain)

    def _run(self, part: StoryRun, plugins: Plugins) -> RunResult:
        config = part.settings(self._config)
        return run_story(part.record, config, part.out, plan=part.plan, plugins=plugins.part(), run_id=part.run_id)


def runs_by_workers(
    fleet: Fleet,
    config: Settings,
    plugins: Plugins,
    parts: Sequence[StoryRun],
    owner: str,
    logs: Path,
    keep: Callable[[StoryRun, Memory], None],
) -> None:
    """Have workers run the stories; `keep` hears of each that ended, with what its models gave that no cache keeps.

    Raises:
        UsageError: there is no such cluster. StoreError: the disk failed.
    """
    planned, drawn = first_stage(config, plugins), drawn_at(config.renderer, plugins.renderer)
    home = Running(config, owner, plugins)
    items = (WorkItem(planned if part.plan is None else drawn, part.record.story_id, ItemLoad(part)) for part in parts)

    def kept(item: WorkItem, memory: Memory) -> None:
        keep(item.load.of, memory)

    work = Work(items, Running(config, owner), kept, total=len(parts), home=home)
    fleet.drain(work, owner, logs)


@dataclass(frozen=True)
class Planning:
    """Opens stations that plan stories. able, words: what the renderer can do, and what stands beside its found
    pictures. given: the planner that is there already, for a station of the command's own."""

    config: Settings
    able: Capabilities
    words: tuple[PanelWords, ...] = ()
    given: Planner | None = None

    def __call__(self, stage: str) -> Station:
        """Return the station of a stage: its planner, which stays from story to story."""
        with keyless():
            planner = self.given or make_planner(self.config)

        def work(record: StoryRecord) -> Ending:
            try:
                panels = panel_count(record, self.config, self.able, self.words)
                counted = self.config.model_copy(update={"panels": panels})
                return Done(plan_within(planner, record, counted, self.able.prompt_tokens, words=self.words))
            except OF_ONE_STORY as error:  # a story that cannot be planned is not planned by another worker either
                return Done(str(error))

        return work


def plans_by_stages(
    drains: Drains,
    planning: Planning,
    records: Sequence[StoryRecord],
    owner: str,
    logs: Path,
    keep: Callable[[StoryRecord, Plan | str], None],
) -> None:
    """Have the stories planned; `keep` hears of each that ended: its plan, or why there is none.

    planning: with the command's own planner.

    Raises:
        UsageError: there is no such cluster. KathaError: a planner of this process failed.
    """
    stage = planned_at(planning.config)
    items = (WorkItem(stage, record.story_id, record) for record in records)

    def kept(item: WorkItem, made: Plan | str) -> None:
        keep(item.load, made)

    opener = replace(planning, given=None)
    drains.drain(Work(items, opener, kept, total=len(records), home=planning), owner, logs)
