"""What the nodes of a run work with and never keep in the state: settings, plug-ins, the cache and the run's files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from katha.agents.folder import RunFiles, RunFolder
from katha.compass.modes import Mode, load_mode
from katha.compass.repair import BoardFeatures, BoardKey, TransitionFeatures, TransitionKey
from katha.config import RunConfig
from katha.errors import BudgetError, OutputFolderError, UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.budget import require_prices as require_judge_prices
from katha.eval_bridge.judging.engine import JudgingEngine
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import kept_rule
from katha.jsonio import digest
from katha.protocols import (
    CostsMoney,
    Judge,
    KeepsReceipts,
    Planner,
    Renderer,
    Similarity,
)
from katha.registry import default_registry, option_names
from katha.schema import Answer, Plan, Question, Role, StoryRecord, Transition
from katha.store import Store

# Planners and renderers made from a run's settings: each with its options, and `memory` for those that have it.


def make_planner(config: RunConfig) -> Planner:
    """Return the planner.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: it has no such option.
    """
    made: Planner = default_registry("planners").configure(config.planner, config.planner_options)
    return made


def make_renderer(config: RunConfig) -> Renderer:
    """Return the board's renderer.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: it has no such option.
    """
    return _make(config.renderer, config.renderer_options, config.memory)


def make_bridge(config: RunConfig) -> Renderer | None:
    """Return who draws inserted frames, if that is not the board's renderer; errors are those of `make_renderer`."""
    bridge = config.bridge_renderer
    return _make(bridge, config.bridge_renderer_options, config.memory) if bridge is not None else None


def _make(spec: str, options: Mapping[str, Any], memory: str | None) -> Renderer:
    told = {"memory": memory} if memory is not None and "memory" in _options(spec) else {}
    made: Renderer = default_registry("renderers").configure(spec, {**told, **options})
    return made


def _options(spec: str) -> set[str]:
    return set(option_names(default_registry("renderers").load(spec)[0]))


def fitting_options(specs: Iterable[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return by renderer those of the options `given` that it has.

    Raises:
        UsageError: none of the renderers has one of them.
    """
    known = {spec: _options(spec) if given else set[str]() for spec in specs}
    stray = next((name for name in given if not any(name in names for names in known.values())), None)
    if stray is not None:
        raise UsageError(f"No renderer here has an option {stray!r}.", hint="See `katha renderers`.")
    return {spec: {name: value for name, value in given.items() if name in names} for spec, names in known.items()}


def require_memory(memory: str | None, specs: Iterable[str | None]) -> None:
    """Refuse a `--memory` that no renderer would listen to.

    Raises:
        UsageError: none of the renderers `specs` (None: there is none) keeps a model in memory.
    """
    if memory is not None and not any("memory" in _options(spec) for spec in specs if spec is not None):
        raise UsageError(
            "--memory is given, but no renderer here keeps a model in memory.", hint="Use --renderer sdxl:MODEL."
        )


# Pictures within a command's budget: asked for before each one, settled with what it did cost.


T = TypeVar("T")
_STOPPED = "The budget is used up; what was paid for is kept."
_HINT = "Give the same command again, with a higher --max-cost or --max-calls, to go on."


def paid(budget: Budget | None, renderer: Renderer, draw: Callable[[], T]) -> T:
    """Return what `draw` gives, which asks `renderer` for one frame; free where no frame of it costs anything.

    Raises:
        BudgetError: the frame could cost more than is left; it was not asked for.
    """
    if budget is None or not isinstance(renderer, CostsMoney):
        return draw()
    each = renderer.frame_price or 0.0
    if not budget.grant(1, each):
        raise BudgetError(_STOPPED, hint=_HINT)
    cost = 0.0  # a call that failed is a call; a service charges for pictures
    try:
        drawn = draw()
        cost = _cost(renderer, each)
    finally:
        budget.settle(each, cost)
    return drawn


def _cost(renderer: Renderer, expected: float) -> float:
    """Return what the frame given last did cost, or was expected to."""
    known = renderer.receipt().get("cost") if isinstance(renderer, KeepsReceipts) else None
    return expected if known is None else float(known)


def require_prices(budget: Budget | None, renderers: Mapping[str, Renderer | None]) -> None:
    """Refuse a budget in dollars over pictures whose price is unknown; `renderers` by the names they were asked for.

    Raises:
        UsageError: the renderer is named.
    """
    for name, renderer in renderers.items() if budget is not None and budget.max_cost is not None else ():
        if isinstance(renderer, CostsMoney) and renderer.frame_price is None:
            raise UsageError(
                f"The price of a picture by {name!r} is unknown, so --max-cost cannot hold.",
                hint="Give --renderer-option price=DOLLARS, or limit it by --max-calls.",
            )


# All plug-ins of a run, and whether they can do what it asks.


@dataclass(frozen=True)
class Plugins:
    """The planner, renderer, judges (by the name they were asked for) and similarity of a run.

    `bridge` draws inserted frames; None when the renderer does. `budget` limits what frames may cost.
    """

    planner: Planner
    renderer: Renderer
    judges: Mapping[str, Judge]
    similarity: Similarity
    bridge: Renderer | None = None
    budget: Budget | None = None

    @property
    def inserter(self) -> Renderer:
        """Who draws inserted frames."""
        return self.renderer if self.bridge is None else self.bridge

    def specs(self) -> dict[str, object]:
        """Return everything of theirs that can change a result, for `run.json`."""
        return {
            "planner": dict(self.planner.spec()),
            "renderer": dict(self.renderer.spec()),
            "bridge_renderer": dict(self.bridge.spec()) if self.bridge is not None else None,
            "judges": [dict(judge.spec()) for judge in self.judges.values()],
            "similarity": dict(self.similarity.spec()),
        }


def load_plugins(config: RunConfig, budget: Budget | None = None) -> Plugins:
    """Make the plug-ins that `config` names, their pictures and replies within `budget`.

    Raises:
        UnknownPluginError: there is no such plug-in. MissingExtraError: a package that it needs is missing.
        UsageError: the budget is in dollars and a price is unknown.
    """
    judges = dict(
        make_judges(
            config.judges,
            base_url=config.base_url,
            verify_reuse=config.verify_reuse,
            options=config.judge_options,
        )
    )
    if budget is not None:
        require_judge_prices(judges, budget)
    renderer, bridge = make_renderer(config), make_bridge(config)
    require_prices(budget, {config.renderer: renderer, str(config.bridge_renderer): bridge})
    return Plugins(
        planner=make_planner(config),
        renderer=renderer,
        judges=judges,
        similarity=default_registry("similarities").create(config.similarity),
        bridge=bridge,
        budget=budget,
    )


def check_able(config: RunConfig, plugins: Plugins) -> None:
    """Refuse a run whose renderers cannot do what it asks, before anything is drawn.

    Raises:
        UsageError: a size that cannot be drawn, or a mode that inserts a frame and nobody who can draw it.
    """
    frame_size(config, plugins.renderer)
    mode = load_mode(config.mode)
    if mode.insert != "none" and plugins.inserter.capabilities.insertion == "none":
        who = config.bridge_renderer or config.renderer
        raise UsageError(
            f"The mode {config.mode!r} inserts a frame, and the renderer {who!r} cannot draw one.",
            hint="Give --bridge-renderer NAME, or --mode base.",
        )


def frame_size(config: RunConfig, renderer: Renderer) -> tuple[int, int]:
    """Return the frames' width and height in pixels.

    Raises:
        UsageError: the renderer cannot draw that size.
    """
    able = renderer.capabilities
    if able.source == "found" and config.size is not None:
        raise UsageError(f"The pictures of {config.renderer!r} have their own size.", hint="Leave --size out.")
    size = config.size or able.default_size
    if able.sizes is not None and size not in able.sizes:
        known = ", ".join(f"{width}x{height}" for width, height in able.sizes)
        raise UsageError(f"The renderer {config.renderer!r} cannot draw {size[0]}x{size[1]}.", hint=f"Use {known}.")
    if able.sizes is None and any(side % able.size_multiple or side < 1 for side in size):
        hint = f"Use multiples of {able.size_multiple}."
        raise UsageError(f"The renderer {config.renderer!r} cannot draw {size[0]}x{size[1]}.", hint=hint)
    return size


@dataclass(frozen=True)
class Measured:
    """What was measured, by the frames that it was measured on.

    boards: features of whole boards, for the other modes of a suite; None: each board is measured under its own name.
    transitions: features and answers of a transition's frames, for all boards that share them.
    """

    boards: dict[BoardKey, BoardFeatures] | None = None
    transitions: dict[TransitionKey, tuple[TransitionFeatures, list[Answer]]] = field(default_factory=dict)


@dataclass
class Prepared:
    """The plan and the story with its questions; None until the machine has made them or read them from a folder."""

    plan: Plan | None = None
    story: StoryRecord | None = None


@dataclass(frozen=True)
class RunContext:
    """The surroundings of one run; `RunContext.open` makes one.

    record: the story as given. size: of the frames, width and height in pixels. matching: the rule that matches
    answers. engine: asks the judges. given_plan: drawn instead of the planner's.
    """

    record: StoryRecord
    config: RunConfig
    plugins: Plugins
    store: Store
    files: RunFiles
    mode: Mode
    size: tuple[int, int]
    matching: Rule
    engine: JudgingEngine
    given_plan: Plan | None = None
    measured: Measured = field(default_factory=Measured, repr=False)
    ready: Prepared = field(default_factory=Prepared, repr=False)
    renderer_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def open(
        cls,
        record: StoryRecord,
        config: RunConfig,
        plugins: Plugins,
        store: Store,
        files: RunFiles,
        *,
        given_plan: Plan | None = None,
        mode: Mode | None = None,
        matching: Rule | None = None,
        measured: Measured | None = None,
        ready: Prepared | None = None,
    ) -> Self:
        """Return the surroundings of a run of `record` by `config`.

        mode, matching: instead of those that `config` names. measured: what runs over the same frames share. ready:
        a plan and story that are prepared already.

        Raises:
            UsageError: the renderer cannot draw that size. UnknownPluginError: no such mode or matching rule.
        """
        return cls(
            record=record,
            config=config,
            plugins=plugins,
            store=store,
            files=files,
            mode=mode or load_mode(config.mode),
            size=frame_size(config, plugins.renderer),
            matching=matching or kept_rule(config.matching, files.path),
            given_plan=given_plan,
            measured=measured or Measured(),
            ready=ready or Prepared(),
            engine=JudgingEngine(plugins.judges, store, budget=plugins.budget, when_spent="stop"),
        )

    @property
    def folder(self) -> RunFolder:
        """The run's folder; rows of a suite have none, and their machine ends before anything is written."""
        if not isinstance(self.files, RunFolder):
            raise TypeError(f"{str(self.files.path)!r} is no run's folder.")
        return self.files

    @property
    def prepared(self) -> bool:
        """Whether plan and questions are there already, as for the second mode of a story."""
        return self.ready.plan is not None and self.ready.story is not None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of base boards: the run's, or the first where a story has one board whatever the seed."""
        found = self.plugins.renderer.capabilities.source == "found"
        return self.config.seeds[:1] if found else self.config.seeds

    @property
    def candidate_seeds(self) -> tuple[int, ...]:
        """The seeds whose boards are candidates in this mode."""
        return self.mode.candidate_seeds(self.seeds)[: self.config.candidates]

    def use(self, plan: Plan, story: StoryRecord | None = None) -> None:
        """Go on with this plan (and story)."""
        self.ready.plan, self.ready.story = plan, story or self.ready.story

    def plan(self, sha256: str | None = None) -> Plan:
        """Return the plan in use; with `sha256`, checked against the one that the run began with.

        Raises:
            OutputFolderError: `plan.json` was changed since.
        """
        if self.ready.plan is None:
            self.ready.plan = self.folder.load_plan()
        if sha256 is not None and plan_sha256(self.ready.plan) != sha256:
            raise OutputFolderError(
                f"{str(self.files.path / 'plan.json')!r} was changed while the run was under way.",
                hint="Copy it elsewhere and run it with --plan into another --out.",
            )
        return self.ready.plan

    def story(self) -> StoryRecord:
        """Return the story with its questions as used (`story.jsonl`)."""
        if self.ready.story is None:
            self.ready.story = self.folder.load_story()
        return self.ready.story

    def trajectory(self) -> list[Transition]:
        """Return the transitions that a board is measured and repaired by: the record's own, else the plan's."""
        return self.record.transitions or self.plan().transitions

    def questions(self, role: Role) -> list[Question]:
        """Return the steering or the reporting questions, in order."""
        return [item for item in self.story().recoverability_questions if item.role == role]


def plan_sha256(plan: Plan) -> str:
    """Return the hash of a plan's content."""
    return digest(plan.model_dump(mode="json"))
