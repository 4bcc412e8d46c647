"""Many stories, each in a folder of its own, as Python, `katha run` and `katha plan` call it: one after another, or by
workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from katha.agents.context import (
    Plugins,
    check_able,
    freeze,
    limits_of,
    load_plugins,
    make_planner,
    require_drawers,
)
from katha.agents.folder import RunFolder, new_record
from katha.agents.state import OF_ONE_STORY, RunResult
from katha.app.drawing import given_names, load_plan, load_plans, plan_path, require_readers, settings_for
from katha.app.measuring import OnProgress
from katha.app.recording import recordable
from katha.app.reports.run_page import write_report
from katha.config import Settings, katha_version, split_settings
from katha.errors import OutputFolderError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.progress import OnWorkers
from katha.experiments.cluster.runs import FinishedRuns, Planning, StoryRun, plans_by_stages, runs_by_workers
from katha.experiments.cluster.stage_models import Memory
from katha.experiments.cluster.work import Drains, Turns, open_store
from katha.experiments.inputs.stories import RunOptions, choose_stories
from katha.jsonio import digest, write_json
from katha.plugin_boundary import spec_of
from katha.schema import Plan, StoryRecord
from katha.store import State, Status, StoreKind, Workspace
from katha.stories import check_scene_count, load_stories


@dataclass(frozen=True)
class StoryEnd:
    """What came of one story of many. out: its folder. frames, accepted, decision: of its board. failed: why it has
    none."""

    story_id: str
    out: Path
    status: Status = "finished"
    reused: bool = False
    frames: int = 0
    accepted: bool = False
    decision: str = ""
    failed: str = ""

    @classmethod
    def of(cls, part: StoryRun, result: RunResult) -> StoryEnd:
        """Return what came of a story that has a board."""
        decision = result.candidates.decision
        return cls(
            story_id=part.record.story_id,
            out=part.out,
            status=result.outcome.status(),
            reused=result.reused,
            frames=len(result.board.frames),
            accepted=decision.accepted,
            decision=decision.reason,
        )


@recordable
def run_stories(
    stories: str | Path | Sequence[StoryRecord],
    settings: Settings | str | None = None,
    *,
    out: Path | str = "out",
    plans: Path | str | None = None,
    lock: Path | str | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    on_workers: OnWorkers | None = None,
    **changes: Any,
) -> list[StoryEnd]:
    """Draw, measure and repair many stories, each into a folder of its own, with the files of `run_story`.

    The same call again does nothing twice; after a kill it goes on. A story that cannot be drawn stops no other.

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        out: The folder of the runs' folders: `out/STORY_ID`.
        plans: The folder that `plan_stories` wrote: `plans/STORY_ID/plan.json` is drawn instead of the planner's.
        lock: The lock that `tune` wrote: the frozen weights, thresholds and seeds.
        budget: Limits over the calls and dollars of judges and image services, for all stories together.
        on_progress: Hears each story's id, how many have ended, and of how many.
        on_workers: Hears how the work of several workers stands, and of those that are lost.
        **changes: Single settings, and what `RunOptions` has: `split`, `ids`, `workers`, `cluster`.

    Returns:
        What came of each story, in their order.

    Raises:
        UsageError: The stories, a setting or a folder is wrong; nothing was drawn or asked.
        KathaError: The work failed (JudgeError, BudgetError, StoreError); call again to go on.

    Example:
        >>> ends = run_stories("stories.jsonl", out="out/boards", workers="cuda:0-7")
        >>> [end.story_id for end in ends if end.failed]
    """
    options, rest = split_settings(RunOptions, changes)
    config = settings_for(settings, rest)
    if config.review:
        raise UsageError("--review asks a person about one story.", hint="Name it as FILE.jsonl#STORY_ID.")
    require_drawers(rest, [config.renderer, config.bridge_renderer])
    records = _chosen(stories, config, options)
    given = load_plans(Path(plans), records) if plans is not None else {}
    require_readers(config, records, given)
    plugins = load_plugins(config, budget)
    check_able(config, plugins)
    if lock is not None:
        config = _frozen(config, Path(lock), plugins, records, given_names(rest), given)
    job = _Runs(config, plugins, Path(out), records, given, on_progress)
    with options.fleet(budget, on_workers) or nullcontext() as fleet:
        return job.run(fleet)


def _chosen(stories: str | Path | Sequence[StoryRecord], config: Settings, options: RunOptions) -> list[StoryRecord]:
    read = load_stories(stories, config.mapping) if isinstance(stories, (str, Path)) else list(stories)
    return choose_stories(read, options.split, options.ids, stories)


def _frozen(
    config: Settings,
    lock: Path,
    plugins: Plugins,
    records: Sequence[StoryRecord],
    given: Collection[str],
    plans: Mapping[str, Plan | str],
) -> Settings:
    """Return `config` under the lock, to which every count of panels that the plans have is held."""
    counts = sorted({len(plan.panels) for plan in plans.values() if isinstance(plan, Plan)})
    asked = [config.model_copy(update={"panels": count}) for count in counts] or [config]
    return [freeze(each, lock, plugins, records, given) for each in asked][-1]


class _Runs:
    """The runs of one call. Stories are finished one at a time, each as soon as its workers have."""

    def __init__(
        self,
        config: Settings,
        plugins: Plugins,
        out: Path,
        records: Sequence[StoryRecord],
        plans: Mapping[str, Plan | str],
        heard: OnProgress | None,
    ) -> None:
        """plans: by the story's id, what is drawn instead of the planner's, or why it cannot be."""
        self._config, self._plugins, self._out, self._heard = config, plugins, out, heard
        self._owner = digest([str(out.absolute()), config.model_dump(mode="json")])[:32]
        self._misfits = {name: why for name, why in plans.items() if isinstance(why, str)}
        self._open: set[str] = set()
        self._parts = [self._part(record, plans.get(record.story_id)) for record in records]
        self._ended = 0

    def _part(self, record: StoryRecord, plan: Plan | str | None) -> StoryRun:
        """Return one story's run, which its folder holds already or can take.

        Raises:
            OutputFolderError: the folder holds another run.
        """
        folder = RunFolder(self._out / record.story_id)
        part = StoryRun(record, folder.path, uuid4().hex, plan if isinstance(plan, Plan) else None)
        if record.story_id in self._misfits:
            return part
        config = part.settings(self._config)
        known = folder.resume(new_record(record, config, self._plugins.specs(), part.plan))
        try:
            if config.panels is not None:
                check_scene_count(record, config.panels)
        except OF_ONE_STORY as error:
            self._misfits[record.story_id] = str(error)
        else:
            if known is None or known.status != "finished":
                self._open.add(record.story_id)
        return part if known is None else replace(part, run_id=known.run_id)

    def run(self, fleet: Fleet | None) -> list[StoryEnd]:
        """Run every story, by the workers of `fleet` where there is one, and return what came of each."""
        with closing(open_store(self._owner)) as store:
            finished = FinishedRuns(self._config, self._plugins, store)
            ends = self._by_workers(fleet, finished) if fleet is not None else {}
            for part in self._parts:
                if part.record.story_id not in ends:
                    ends[part.record.story_id] = self._end(finished, part, None)
        return [ends[part.record.story_id] for part in self._parts]

    def _by_workers(self, fleet: Fleet, finished: FinishedRuns) -> dict[str, StoryEnd]:
        """Have the workers run what is to be done; what came of the stories that they ended."""
        ends: dict[str, Future[StoryEnd]] = {}
        wanted = [part for part in self._parts if part.record.story_id in self._open]
        with ThreadPoolExecutor(1, "stories") as hand:  # beside the handing out, which must not wait

            def keep(part: StoryRun, memory: Memory) -> None:
                ends[part.record.story_id] = hand.submit(self._end, finished, part, memory)

            try:
                logs = self._out / "workers"
                runs_by_workers(fleet, self._config, self._plugins, wanted, self._owner, logs, keep)
                return {name: end.result() for name, end in ends.items()}
            finally:
                hand.shutdown(wait=False, cancel_futures=True)

    def _end(self, finished: FinishedRuns, part: StoryRun, memory: Memory | None) -> StoryEnd:
        name = part.record.story_id
        try:
            if name in self._misfits:
                end = StoryEnd(name, part.out, "incomplete", failed=self._misfits[name])
            else:
                result = finished.run(part, memory)
                write_report(result.out)
                end = StoryEnd.of(part, result)
        except (*OF_ONE_STORY, OutputFolderError) as error:
            end = StoryEnd(name, part.out, "incomplete", failed=str(error))
        self._ended += 1
        if self._heard is not None:
            self._heard(name, self._ended, len(self._parts))
        return end


class PlansState(State):
    """`plans.json`: what the plans of a folder are made by, and the hash of each story that it was asked for."""

    made_by: str = ""
    stories: Mapping[str, str] = {}

    def identity(self) -> Mapping[str, object]:
        """Return the hash of planner and settings."""
        return {"another planner or other settings": self.made_by}


@dataclass(frozen=True)
class StoryPlan:
    """What came of planning one story of many. path: the plan's file. plan: None where there is none, and `failed` says
    why. reused: it was there."""

    story_id: str
    path: Path
    plan: Plan | None = None
    reused: bool = False
    failed: str = ""


@recordable
def plan_stories(
    stories: str | Path | Sequence[StoryRecord],
    settings: Settings | str | None = None,
    *,
    out: Path | str = "out/plans",
    on_progress: OnProgress | None = None,
    on_workers: OnWorkers | None = None,
    **changes: Any,
) -> list[StoryPlan]:
    """Plan many stories, each into a file of its own: `out/STORY_ID/plan.json`. Draws nothing.

    The same call again plans nothing twice; after a kill it goes on. A plan that is there stays, edited or not. A story
    that cannot be planned stops no other.

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        out: The folder of the plans.
        on_progress: Hears each story's id, how many have ended, and of how many.
        on_workers: Hears how the work of several workers stands, and of those that are lost.
        **changes: Single settings (`planner`, `panels`), and of `RunOptions`: `split`, `ids`, `workers`, `cluster`.

    Returns:
        What came of each story, in their order.

    Raises:
        UsageError: The stories, a setting or the folder is wrong; nothing was planned.
        KathaError: The work failed (ModelError, StoreError); call again to go on.

    Example:
        >>> plans = plan_stories("stories.jsonl", planner="gemma-st", workers="cuda:0-7")
        >>> [found.failed for found in plans if found.plan is None]
    """
    options, rest = split_settings(RunOptions, changes)
    config = settings_for(settings, rest)
    planning = Planning(config, *limits_of(config), make_planner(config))
    job = _Plans(planning, Path(out), _chosen(stories, config, options), on_progress)
    with options.fleet(None, on_workers) or nullcontext() as fleet:
        return job.run(fleet)


class _Plans:
    """The plans of one call. Each is written as soon as it is there."""

    KIND: ClassVar[StoreKind[PlansState]] = StoreKind("planning", "plans.json", PlansState)

    def __init__(self, planning: Planning, out: Path, records: Sequence[StoryRecord], heard: OnProgress | None) -> None:
        self._planning, self._records, self._heard = planning, records, heard
        self._folder = Workspace(out, self.KIND)
        config = planning.config
        limits = [config.model_dump()["panels"], config.style, planning.able.prompt_tokens, repr(planning.words)]
        planner = spec_of(planning.given, "planner") if planning.given is not None else None
        self._fresh = PlansState(
            format=1,
            katha=katha_version(),
            made_by=digest([planner, limits]),
            stories={record.story_id: digest(record.model_dump(mode="json")) for record in records},
        )
        self._ends: dict[str, StoryPlan] = {}

    def run(self, fleet: Fleet | None) -> list[StoryPlan]:
        """Plan what is not planned yet: by the workers of `fleet`; what they leave, and all without them, here."""
        folder = self._folder
        with folder.claim():
            known = folder.resume(self._fresh)
            before = known.stories if known is not None else {}
            self._same(before)
            state = folder.write(self._fresh.model_copy(update={"stories": {**before, **self._fresh.stories}}))
            self._look()
            by: list[Drains] = [*([fleet] if fleet is not None else []), Turns()]
            for drains in by:
                wanted = [record for record in self._records if record.story_id not in self._ends]
                if wanted:
                    logs = folder.path / "workers"
                    plans_by_stages(drains, self._planning, wanted, state.made_by[:32], logs, self._keep)
            ends = [self._ends[record.story_id] for record in self._records]
            whole = all(end.plan is not None for end in ends)
            folder.write(state.model_copy(update={"status": "finished" if whole else "incomplete"}))
        return ends

    def _same(self, before: Mapping[str, str]) -> None:
        changed = [name for name, made in self._fresh.stories.items() if before.get(name, made) != made]
        if changed:
            raise OutputFolderError(
                f"{str(self._folder.path)!r} holds the plan of another version of {changed[0]!r}.",
                hint="Choose another --out, or remove that plan's folder and the story's line in plans.json.",
            )

    def _look(self) -> None:
        """End the stories that have a plan, and those that cannot have one."""
        for record in self._records:
            path = self._path(record)
            try:
                if self._planning.config.panels is not None:
                    check_scene_count(record, self._planning.config.panels)
                if path.exists():
                    self._end(StoryPlan(record.story_id, path, load_plan(path, record), reused=True))
            except OF_ONE_STORY as error:
                self._end(StoryPlan(record.story_id, path, failed=str(error)))

    def _path(self, record: StoryRecord) -> Path:
        return plan_path(self._folder.path, record)

    def _keep(self, record: StoryRecord, made: Plan | str) -> None:
        path = self._path(record)
        if isinstance(made, Plan):
            write_json(path, made.model_dump(mode="json"))
            self._end(StoryPlan(record.story_id, path, made))
        else:
            self._end(StoryPlan(record.story_id, path, failed=made))

    def _end(self, end: StoryPlan) -> None:
        self._ends[end.story_id] = end
        if self._heard is not None:
            self._heard(end.story_id, len(self._ends), len(self._records))
