"""What a comparison is made from, and its boards: drawn by every method from the same plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import ClassVar

from katha.agents.context import (
    Plugins,
    PreparedStory,
    RunContext,
    check_able,
    judges_address,
    make_similarity,
    plan_within,
)
from katha.agents.folder import MemoryFiles, RunFolder, prompt_hashes
from katha.agents.frames import draw_board
from katha.agents.run import run_story
from katha.agents.state import OF_ONE_STORY, ignore_event
from katha.config import Settings, identity_of, katha_version, require_chosen
from katha.errors import BudgetError, PlanError, TransientRenderError, UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.budget import require_prices as require_judge_prices
from katha.eval_bridge.judging.engine import Retry
from katha.experiments.comparison.methods import Method
from katha.experiments.evaluation.evaluate import Prepare, name_judges
from katha.experiments.runner import ExperimentResult, ExperimentState, PluginPool, read_kept, worth_another_try
from katha.jsonio import digest, dumps, write_bytes_atomic, write_json
from katha.protocols import Judge, PlanRequest
from katha.schema import Plan, Record, StoryRecord
from katha.schema.scores import Selection
from katha.schema.tables import CompareTable
from katha.store import Store, StoreKind


class Failure(Record):
    """Why a story has no board. again: the same command tries it again."""

    reason: str
    again: bool


class CompareState(ExperimentState):
    """`compare.json`: the methods, what they were made with, and by board and story why one is missing."""

    differs: ClassVar[str] = "other stories, methods or settings"

    command: list[str] = []
    config: Mapping[str, object] = {}
    methods: list[Mapping[str, object]]
    failures: Mapping[str, Mapping[str, Failure]] = {}


CompareResult = ExperimentResult[CompareState, CompareTable]
_BOARD = "boards/*/*/*"
COMPARISON = StoreKind(
    "comparison",
    "compare.json",
    CompareState,
    results=("*.json", "*.jsonl", "plans/*/*.json", "judging/*.json*", f"{_BOARD}/*.json*", f"{_BOARD}/panels/*.png"),
    nested=("run.json", "eval.json"),
)


@dataclass
class CompareJob:
    """Methods over stories. `config` is what they share; `prepare` fills in questions, halves and options.

    retry: how a frame is asked for again where a service is busy or a network fails, as in a run.
    reference: the method that the others are held against; None: every pair.
    budget: what its pictures and answers may cost. given: plug-ins by method instead of the named ones, and judges (for
    tests and callers that made them). seen: how a worker has the plug-ins of a method.
    """

    records: Sequence[StoryRecord]
    methods: Sequence[Method]
    config: Settings
    prepare: Prepare = list
    resamples: int = 10_000
    seed: int = 42
    command: Sequence[str] = ()
    budget: Budget | None = None
    reference: str | None = None
    retry: Retry = field(default_factory=Retry)
    given: Mapping[str, Plugins] = field(default_factory=dict)
    seen: Callable[[Settings, Plugins], Plugins] | None = None

    @cached_property
    def judges(self) -> dict[str, Judge]:
        """The judges by the name that their answers carry."""
        if self.given:
            return dict(next(iter(self.given.values())).judges)
        config = self.config
        require_chosen(config, ("judges",))
        made = make_judges(
            config.judges,
            base_url=judges_address(config),
            verify_reuse=config.verify_reuse,
            patience=config.patience,
            options=config.judge_options,
        )
        return name_judges(made)

    @cached_property
    def plugins(self) -> dict[str, Plugins]:
        """Each method's plug-ins; equal ones are made once.

        Raises:
            UnknownPluginError, MissingExtraError: a plug-in cannot be made. UsageError: it cannot do what is asked.
        """
        made = dict(self.given)
        if not made:
            require_judge_prices(self.judges, self.budget or Budget())
            shelf = PluginPool(self.judges, make_similarity(self.config), self.budget)
            made = {method.name: shelf.plugins(method.config) for method in self.methods}
        for method in self.methods:
            check_able(method.config, made[method.name])
        if self.seen is not None:
            made = {method.name: self.seen(method.config, made[method.name]) for method in self.methods}
        return made

    @property
    def prompt_tokens(self) -> int | None:
        """The strictest prompt limit of all renderers, so that every one of them gets the same plan."""
        limits = [made.renderer.capabilities.prompt_tokens for made in self.plugins.values()]
        return min((limit for limit in limits if limit is not None), default=None)

    def seeds(self, method: Method) -> tuple[int, ...]:
        """Return a seed for each board: one where a renderer has no seeds, or the mode chooses one (Table 44)."""
        able = self.plugins[method.name].renderer.capabilities
        several = able.source == "drawn" and able.deterministic and not method.repairs
        return method.config.seeds if several else method.config.seeds[:1]

    def boards(self, method: Method) -> dict[str, int]:
        """Return the names of a method's boards as they are judged, each with its seed."""
        seeds = self.seeds(method)
        return {f"{method.name}@{seed}" if len(seeds) > 1 else method.name: seed for seed in seeds}

    @property
    def selection(self) -> Selection:
        """Return which questions are asked: all, or the reporting half where a mode chooses by the steering half."""
        return "reporting" if any(method.repairs for method in self.methods) else "all"

    def state(self) -> CompareState:
        """Return what the folder begins with; its identity is of everything that a finished comparison depends on."""
        config = self.config.model_dump(mode="json")
        plugins = {name: made.specs() for name, made in self.plugins.items()}
        configs = {method.name: method.config.model_dump(mode="json") for method in self.methods}
        identity = {
            "katha": katha_version(),
            "stories": [record.model_dump(mode="json") for record in self.records],
            "methods": [[name, identity_of(own)] for name, own in configs.items()],
            "plugins": plugins,
            "config": identity_of(config),
            "resamples": [self.resamples, self.seed],
            **({"reference": self.reference} if self.reference is not None else {}),
            "prompts": prompt_hashes(),
        }
        return CompareState(
            format=1,
            katha=katha_version(),
            identity=digest(identity),
            command=list(self.command),
            config=config,
            methods=[
                {"name": item.name, "slug": item.slug, "config": configs[item.name], "plugins": plugins[item.name]}
                for item in self.methods
            ],
        )


def _panels(config: Settings, record: StoryRecord) -> int:
    """Return how many panels every method's board of a story has."""
    return len(record.scenes) or config.panels or PlanRequest().panels


@dataclass
class BoardDrawer:
    """Draws the boards of a comparison into the folder `out`, from the cache where it has their frames."""

    job: CompareJob
    out: Path
    store: Store

    def folder(self, method: Method, seed: int) -> Path:
        """Return where a method's boards of one seed are, a folder a story."""
        return self.out / "boards" / method.slug / str(seed)

    def draw(self, method: Method, name: str, seed: int, record: StoryRecord) -> Failure | None:
        """Draw one board, or return the reason why there is none."""
        folder = self.folder(method, seed) / record.story_id
        try:
            plan = self.plan(method, record)
            if method.repairs:
                return self._repair(method, folder, record, plan)
            self._patiently(lambda: self._board(method, name, seed, RunFolder(folder), record, plan))
        except (*OF_ONE_STORY, BudgetError) as error:
            return Failure(reason=str(error), again=worth_another_try(error))
        return None

    def _patiently(self, draw: Callable[[], None]) -> None:
        """Draw, and again where the failure is worth another try: frames that came are kept."""
        for failures in count(1):
            try:
                return draw()
            except TransientRenderError:
                if failures >= self.job.retry.attempts:
                    raise
                self.job.retry.wait(failures)

    def plan_file(self, method: Method, record: StoryRecord) -> Path:
        """Return where the plan of one planner is kept."""
        config, planner = method.config, self.job.plugins[method.name].planner
        panels = len(record.scenes) or config.model_dump()["panels"] or PlanRequest().panels
        key = digest([dict(planner.spec()), panels, config.style, self.job.prompt_tokens])
        return self.out / "plans" / key[:12] / f"{record.story_id}.json"

    def kept_plan(self, method: Method, record: StoryRecord) -> Plan | None:
        """Return the plan of one planner if it is there and whole."""
        return read_kept(self.plan_file(method, record), Plan)

    def plan(self, method: Method, record: StoryRecord) -> Plan:
        """Return the plan of one planner, made once for all renderers and kept."""
        config, kept = method.config, self.kept_plan(method, record)
        if kept is not None:
            return kept
        planner, counted = self.job.plugins[method.name].planner, {"panels": _panels(config, record)}
        try:
            counts, limit = config.model_copy(update=counted), self.job.prompt_tokens
            plan = plan_within(planner, record, counts, limit, plans=self.store.plans)
        except UsageError as error:
            raise PlanError(f"no plan by {config.planner!r}: {error.message}") from error
        self.keep_plan(method, record, plan)
        return plan

    def keep_plan(self, method: Method, record: StoryRecord, plan: Plan) -> None:
        """Keep the plan of one planner."""
        write_json(self.plan_file(method, record), plan.model_dump(mode="json"))

    def scenes(self, method: Method, record: StoryRecord) -> RunContext:
        """Return the surroundings in which the scenes of a story are drawn, whatever the seed; nothing is written."""
        plan = self.plan(method, record)
        config = method.config.model_copy(update={"matching": "exact-set", "panels": len(plan.panels)})
        made, files = self.job.plugins[method.name], MemoryFiles(self.out)
        return RunContext.open(record, config, made, self.store, files, ready=PreparedStory(plan, record))

    def _board(self, method: Method, name: str, seed: int, folder: RunFolder, record: StoryRecord, plan: Plan) -> None:
        update = {"mode": "base", "seeds": (seed,), "matching": "exact-set", "panels": len(plan.panels)}
        config, made = method.config.model_copy(update=update), self.job.plugins[method.name]
        context = RunContext.open(record, config, made, self.store, folder, ready=PreparedStory(plan, record))
        board = draw_board(context, seed, ignore_event).model_copy(update={"method": name})
        data = dumps(board.model_dump(mode="json")).encode("utf-8")
        # A file that holds it already stays as it is: its time tells whether a board has changed.
        if not folder.storyboard.is_file() or folder.storyboard.read_bytes() != data:
            write_bytes_atomic(folder.storyboard, data)

    def _repair(self, method: Method, folder: Path, record: StoryRecord, plan: Plan) -> Failure | None:
        """Run the story; a board that was chosen and repaired without the judge's answers is none."""
        config = method.config.model_copy(update={"panels": len(plan.panels)})
        made = self.job.plugins[method.name]
        outcome = run_story(record, config, folder, plan=plan, plugins=made.part()).outcome
        told = " ".join(map(str.strip, outcome.sentences()[:2]))
        return Failure(reason=told, again=True) if outcome.failed else None
