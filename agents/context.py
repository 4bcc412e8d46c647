"""What the nodes work with and never keep in the state: plug-ins, the cache, the run's folder, and their locks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.agents.drawers import make_bridge, make_planner, make_renderer
from katha.agents.spending import capped, require_prices
from katha.compass.features import BoardFeatures, BoardKey, TransitionFeatures, TransitionKey
from katha.compass.modes import Mode, load_mode
from katha.config import RunConfig
from katha.errors import OutputFolderError, UsageError
from katha.jsonio import digest, read_json
from katha.protocols import Judge, Planner, Renderer, Similarity
from katha.registry import default_registry
from katha.schema import Answer, Plan, Question, Role, StoryRecord, Transition
from katha.store import RunFolder, Store

if TYPE_CHECKING:
    from katha.eval_bridge.budget import Budget
    from katha.eval_bridge.matching import Rule

__all__ = ["Plugins", "RunContext", "check_able", "frame_size", "load_plugins", "plan_sha256"]


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
    from katha.eval_bridge.judges.making import make_judges

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
    from katha.eval_bridge.rules import make_decider, open_rule
    from katha.eval_bridge.verdicts import VERDICTS

    path = folder / VERDICTS
    return open_rule(name, [path], decider=make_decider(name), keep=path)


def plan_sha256(plan: Plan) -> str:
    """The hash of a plan's content."""
    return digest(plan.model_dump(mode="json"))
