"""Boards of a comparison by workers: an item is one story by one method with one seed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from katha.agents.context import Plugins
from katha.agents.state import OF_ONE_STORY
from katha.errors import BudgetError
from katha.experiments.cluster.stage_models import ItemLoad, Memory, StageModels, WrongStage, drawn_at, planned_at
from katha.experiments.cluster.work import HERE, Drains, Ending, Station, Work, WorkItem, open_store
from katha.experiments.comparison.job import BoardDrawer, CompareJob, Failure
from katha.experiments.comparison.methods import Method
from katha.jsonio import digest
from katha.models.client import keyless
from katha.schema import Plan, StoryRecord

OnBoard = Callable[["BoardPart", Plan | None, Memory], None]
"""Hears of a board that was tried: the plan that it was drawn from, and what its models gave that no cache keeps."""


@dataclass(frozen=True)
class BoardPart:
    """One board: `name` as it is judged, and the plan that it is drawn from, where there is one."""

    method: Method
    name: str
    seed: int
    record: StoryRecord
    plan: Plan | None = None
    plans: bool = False
    """Whether the plan is all that is wanted."""


@dataclass(frozen=True)
class DrawingStations:
    """Opens stations that draw boards. given: plug-ins that are there already, for a station of the command's own."""

    job: CompareJob
    owner: str
    given: Mapping[str, Plugins] | None = None

    def __call__(self, stage: str) -> Station:
        """Return the station of a stage."""
        models = StageModels(stage, open_store(self.owner))
        job = replace(self.job, given=self.given or {}, seen=models.plugins)
        with keyless():
            job.plugins  # noqa: B018 - made here, where no key is asked for

        def draw(part: BoardPart) -> tuple[Plan | None, Memory]:
            with tempfile.TemporaryDirectory(prefix="katha-") as place:
                drawer = BoardDrawer(job, Path(place), models.store)
                if part.plans:
                    with suppress(*OF_ONE_STORY, BudgetError):  # the drawing tells of it
                        return drawer.plan(part.method, part.record), {}
                    return None, {}
                if part.plan is not None:
                    drawer.keep_plan(part.method, part.record, part.plan)
                drawer.draw(part.method, part.name, part.seed, part.record)
                return drawer.kept_plan(part.method, part.record), models.memory

        def work(load: ItemLoad) -> Ending:
            return models.work(load, draw)

        return work


class Again:
    """Draws boards again that workers have drawn, or could not draw: from the cache and their memory, by no model."""

    def __init__(self, drawer: BoardDrawer) -> None:
        self._plain, self._models = drawer, StageModels("", drawer.store)
        job = replace(drawer.job, given=drawer.job.plugins, seen=self._models.plugins)
        self._drawer = BoardDrawer(job, drawer.out, drawer.store)

    def draw(self, part: BoardPart, memory: Memory) -> Failure | None:
        """Draw one board, or return the reason why there is none."""
        self._models.memory, self._models.before = memory, frozenset(memory)
        try:
            return self._drawer.draw(part.method, part.name, part.seed, part.record)
        except WrongStage:  # a worker has another version of a model
            return self._plain.draw(part.method, part.name, part.seed, part.record)


@dataclass(frozen=True)
class BoardsByStages:
    """The boards of a comparison, by `fleet`; `keep` hears of each."""

    fleet: Drains
    job: CompareJob
    owner: str
    logs: Path
    keep: OnBoard

    def plan(self, parts: Sequence[BoardPart]) -> None:
        """Have the plans made that need a model, once for all renderers and seeds; errors are those of `draw`."""
        open_ones = {
            (digest(self.job.plugins[part.method.name].planner.spec()), part.record.story_id): part
            for part in reversed(parts)
            if part.plan is None and planned_at(part.method.config) != HERE
        }
        self._drain(
            [
                WorkItem(
                    planned_at(part.method.config),
                    f"the plan of {part.record.story_id}",
                    ItemLoad(replace(part, plans=True)),
                )
                for part in reversed(open_ones.values())
            ]
        )

    def draw(self, parts: Sequence[BoardPart]) -> None:
        """Have the boards drawn.

        Raises:
            UsageError: there is no such cluster. StoreError: the disk failed.
        """
        made = self.job.plugins
        self._drain(
            [
                WorkItem(
                    drawn_at(part.method.config.renderer, made[part.method.name].renderer),
                    f"{part.record.story_id} by {part.method.name}, seed {part.seed}",
                    ItemLoad(part),
                )
                for part in parts
            ]
        )

    def _drain(self, items: Sequence[WorkItem]) -> None:
        if not items:
            return

        def kept(item: WorkItem, told: tuple[Plan | None, Memory]) -> None:
            self.keep(item.load.of, *told)

        opener = DrawingStations(replace(self.job, prepare=list, budget=None, given={}, seen=None), self.owner)
        home = DrawingStations(opener.job, self.owner, self.job.plugins)
        work = Work(items, opener, kept, total=len(items), home=home)
        self.fleet.drain(work, self.owner, self.logs)
