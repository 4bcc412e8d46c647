"""What the nodes work with and never keep in the state: plug-ins, settings, the cache, the run's folder and its
budget.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from katha.compass.modes import Mode, load_mode
from katha.compass.score import BoardFeatures, BoardKey, TransitionFeatures, TransitionKey
from katha.config import RunConfig
from katha.errors import BudgetError, OutputFolderError, UsageError
from katha.eval_bridge.judging.budget import Budget, Metered, Tally
from katha.jsonio import digest, read_json
from katha.protocols import (
    CostsMoney,
    Evidence,
    Judge,
    JudgePrompt,
    JudgeReply,
    KeepsReceipts,
    Planner,
    Renderer,
    Similarity,
)
from katha.registry import default_registry, option_names
from katha.schema import Answer, Plan, Question, Role, StoryRecord, Transition
from katha.store import RunFolder, Store

if TYPE_CHECKING:
    from katha.eval_bridge.judging.budget import Budget
    from katha.eval_bridge.matching.match import Rule

# ---
# Planners and renderers made from a run's settings: each with its options, and `memory` for those that have it.


def make_planner(config: RunConfig) -> Planner:
    """The planner.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: it has no such option.
    """
    made: Planner = default_registry("planners").configure(config.planner, config.planner_options)
    return made


def make_renderer(config: RunConfig) -> Renderer:
    """The board's renderer.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: it has no such option.
    """
    return _make(config.renderer, config.renderer_options, config.memory)


def make_bridge(config: RunConfig) -> Renderer | None:
    """Who draws inserted frames, if that is not the board's renderer; errors are those of `make_renderer`."""
    bridge = config.bridge_renderer
    return _make(bridge, config.bridge_renderer_options, config.memory) if bridge is not None else None


def _make(spec: str, options: Mapping[str, Any], memory: str | None) -> Renderer:
    told = {"memory": memory} if memory is not None and "memory" in _options(spec) else {}
    made: Renderer = default_registry("renderers").configure(spec, {**told, **options})
    return made


def _options(spec: str) -> set[str]:
    return set(option_names(default_registry("renderers").load(spec)[0]))


def fitting_options(specs: Iterable[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By renderer, those of the options `given` that it has.

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


# ---
# Pictures within a command's budget: asked for before each one, settled with what it did cost.


T = TypeVar("T")
_STOPPED = "The budget is used up; what was paid for is kept."
_HINT = "Give the same command again, with a higher --max-cost or --max-calls, to go on."


def paid(budget: Budget | None, renderer: Renderer, draw: Callable[[], T]) -> T:
    """What `draw` gives, which asks `renderer` for one frame; free where no frame of it costs anything.

    Raises:
        BudgetError: the frame could cost more than is left; it was not asked for.
    """
    if budget is None or not isinstance(renderer, CostsMoney):
        return draw()
    each = renderer.frame_price or 0.0
    if not budget.grant(1, each):
        raise BudgetError(_STOPPED, hint=_HINT)
    cost: float | None = 0.0  # a call that failed is a call; a service charges for pictures
    try:
        drawn = draw()
        cost = _cost(renderer, each)
    finally:
        budget.settle(each, cost)
    return drawn


def _cost(renderer: Renderer, expected: float) -> float:
    """What the frame given last did cost, or was expected to."""
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


def capped(judges: Mapping[str, Judge], budget: Budget | None) -> dict[str, Judge]:
    """The judges of a run within `budget`.

    Raises:
        UsageError: the budget is in dollars and a judge's price is unknown.
    """
    return {name: judge if budget is None else _Capped(judge, budget) for name, judge in judges.items()}


class _Capped:
    """A judge of a run, which stops the run when the budget is used up: a run with unasked questions is not finished.

    In `katha eval` and for a comparison's boards such questions are counted as `budget_stopped` instead.
    """

    def __init__(self, judge: Judge, budget: Budget) -> None:
        """Take the judge's price.

        Raises:
            UsageError: the budget is in dollars and the judge's price is unknown.
        """
        self._metered = Metered(judge, budget, Tally())
        self.always_chooses = self._metered.always_chooses
        self.exclusive, self.concurrency = self._metered.exclusive, self._metered.concurrency

    def spec(self) -> Mapping[str, Any]:
        """The inner judge's."""
        return self._metered.spec()

    @property
    def amended(self) -> Mapping[str, Any]:
        """The inner judge's."""
        return self._metered.amended

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt.

        Raises:
            BudgetError: the budget is used up; the replies before are kept.
        """
        for reply in self._metered.ask(evidence, prompts):
            if reply.status == "budget_stopped":
                raise BudgetError(_STOPPED, hint=_HINT)
            yield reply

    def close(self) -> None:
        """Let the inner judge go of its memory, if it can."""
        self._metered.close()


# ---
# What the nodes work with and never keep in the state: plug-ins, the cache, the run's folder, and their locks.


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

    def specs(self) -> dict[str, Any]:
        """Everything of theirs that can change a result, for `run.json`."""
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
    from katha.eval_bridge.judging.make import make_judges

    judges = make_judges(
        config.judges,
        base_url=config.base_url,
        verify_reuse=config.verify_reuse,
        options=config.judge_options,
    )
    renderer, bridge = make_renderer(config), make_bridge(config)
    require_prices(budget, {config.renderer: renderer, str(config.bridge_renderer): bridge})
    return Plugins(
        planner=make_planner(config),
        renderer=renderer,
        judges=capped(dict(judges), budget),
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
    """The frames' width and height in pixels.

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


@dataclass
class RunContext:
    """The surroundings of one run. `record` is the story as given; `story` has its questions prepared.

    `measured` keeps the features of boards for the other modes of a suite; None: each board is measured by its name.
    `transitions` keeps what was measured on a transition's frames, and the answers, for the boards that share them.
    """

    record: StoryRecord
    config: RunConfig
    plugins: Plugins
    store: Store
    folder: RunFolder
    given_plan: Plan | None = None
    mode: Mode = field(init=False)
    size: tuple[int, int] = field(init=False)
    matching: Rule = field(init=False)
    measured: dict[BoardKey, BoardFeatures] | None = field(default=None, repr=False)
    transitions: dict[TransitionKey, tuple[TransitionFeatures, list[Answer]]] = field(default_factory=dict, repr=False)
    renderer_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    judge_locks: dict[str, threading.Lock] = field(init=False, repr=False)
    _plan: Plan | None = field(default=None, repr=False)
    _story: StoryRecord | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.mode = load_mode(self.config.mode)
        self.size = frame_size(self.config, self.plugins.renderer)
        self.matching = _matching(self.config.matching, self.folder.path)
        self.judge_locks = {name: threading.Lock() for name in self.plugins.judges}

    @property
    def prepared(self) -> bool:
        """Whether plan and questions are there already, as for the second mode of a story."""
        return self._plan is not None and self._story is not None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of base boards: the run's, or the first where a story has one board whatever the seed."""
        found = self.plugins.renderer.capabilities.source == "found"
        return self.config.seeds[:1] if found else self.config.seeds

    @property
    def candidate_seeds(self) -> tuple[int, ...]:
        """The seeds whose boards are candidates in this mode."""
        return self.mode.candidate_seeds(self.seeds)[: self.config.candidates]

    def keep(self, plan: Plan, story: StoryRecord) -> None:
        """Write the plan and the story with its questions into the folder, and go on with them."""
        self.folder.write(self.folder.plan, plan.model_dump(mode="json"))
        self.folder.write_line(self.folder.story, story.model_dump(mode="json"))
        self.use(plan, story)

    def use(self, plan: Plan, story: StoryRecord) -> None:
        """Go on with a plan and a story that are prepared already, without writing them."""
        self._plan, self._story = plan, story

    def plan(self, sha256: str | None = None) -> Plan:
        """The plan in use; with `sha256`, checked against the one that the run began with.

        Raises:
            OutputFolderError: `plan.json` was changed since.
        """
        if self._plan is None:
            self._plan = Plan.model_validate(read_json(self.folder.plan))
        if sha256 is not None and plan_sha256(self._plan) != sha256:
            raise OutputFolderError(
                f"{str(self.folder.plan)!r} was changed while the run was under way.",
                hint="Copy it elsewhere and run it with --plan into another --out.",
            )
        return self._plan

    def trajectory(self) -> list[Transition]:
        """The transitions that a board is measured and repaired by: the record's own annotation, else the plan's."""
        return self.record.transitions or self.plan().transitions

    def story(self) -> StoryRecord:
        """The story with its questions as used (`story.jsonl`)."""
        if self._story is None:
            self._story = StoryRecord.model_validate(read_json(self.folder.story))
        return self._story

    def questions(self, role: Role) -> list[Question]:
        """The steering or the reporting questions, in order."""
        return [item for item in self.story().recoverability_questions if item.role == role]


def _matching(name: str, folder: Path) -> Rule:
    from katha.eval_bridge.matching.rules import make_decider, open_rule
    from katha.eval_bridge.matching.verdicts import VERDICTS

    path = folder / VERDICTS
    return open_rule(name, [path], decider=make_decider(name), keep=path)


def plan_sha256(plan: Plan) -> str:
    """The hash of a plan's content."""
    return digest(plan.model_dump(mode="json"))
