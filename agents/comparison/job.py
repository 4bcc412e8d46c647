"""What a comparison is made from, and what makes two of them the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from katha import __version__
from katha.agents.comparison.methods import Method
from katha.agents.context import Plugins, check_able
from katha.agents.drawers import make_bridge, make_planner, make_renderer
from katha.agents.record import prompt_hashes
from katha.agents.spending import capped, require_prices
from katha.config import RunConfig, identity_of
from katha.eval_bridge.budget import Budget
from katha.eval_bridge.evaluation import name_judges
from katha.eval_bridge.judges.making import make_judges
from katha.jsonio import digest
from katha.protocols import Judge, Similarity
from katha.registry import default_registry
from katha.schema import StoryRecord

__all__ = ["CompareJob", "CompareResult"]

Prepare = Callable[[Sequence[StoryRecord]], list[StoryRecord]]


@dataclass(frozen=True)
class CompareResult:
    """A finished comparison. `reused`: the folder already held it and nothing was done."""

    out: Path
    table: dict[str, Any]
    reused: bool


@dataclass
class CompareJob:
    """Methods over stories. `config` is what they share; `prepare` fills in questions, halves and options.

    budget: what its pictures and answers may cost. given: plug-ins by method instead of the named ones, and judges (for
    tests and callers that made them).
    """

    records: Sequence[StoryRecord]
    methods: Sequence[Method]
    config: RunConfig
    prepare: Prepare = list
    resamples: int = 10_000
    seed: int = 42
    command: Sequence[str] = ()
    budget: Budget | None = None
    given: Mapping[str, Plugins] = field(default_factory=dict)

    @cached_property
    def judges(self) -> dict[str, Judge]:
        """The judges by the name that their answers carry."""
        if self.given:
            return dict(next(iter(self.given.values())).judges)
        config = self.config
        return name_judges(
            make_judges(
                config.judges,
                base_url=config.base_url,
                verify_reuse=config.verify_reuse,
                options=config.judge_options,
            )
        )

    @cached_property
    def plugins(self) -> dict[str, Plugins]:
        """Each method's plug-ins; equal ones are made once.

        Raises:
            UnknownPluginError, MissingExtraError: a plug-in cannot be made. UsageError: it cannot do what is asked.
        """
        made: dict[str, Any] = {}
        found = {}
        for method in self.methods:
            found[method.name] = self.given.get(method.name) or self._assemble(method.config, made)
            check_able(method.config, found[method.name])
        return found

    def _assemble(self, config: RunConfig, made: dict[str, Any]) -> Plugins:
        """The plug-ins of one method; those in `made` are used again where their settings are the same."""

        def once(kind: str, make: Callable[[RunConfig], Any]) -> Any:
            key = digest([kind, getattr(config, kind), getattr(config, f"{kind}_options"), config.memory])
            if key not in made:
                made[key] = make(config)
            return made[key]

        renderer, bridge = once("renderer", make_renderer), once("bridge_renderer", make_bridge)
        require_prices(self.budget, {config.renderer: renderer, str(config.bridge_renderer): bridge})
        return Plugins(
            planner=once("planner", make_planner),
            renderer=renderer,
            judges=capped(self.judges, self.budget),
            similarity=self._similarity,
            bridge=bridge,
            budget=self.budget,
        )

    @cached_property
    def _similarity(self) -> Similarity:
        made: Similarity = default_registry("similarities").create(self.config.similarity)
        return made

    @property
    def prompt_tokens(self) -> int | None:
        """The strictest prompt limit of all renderers, so that every one of them gets the same plan."""
        limits = [made.renderer.capabilities.prompt_tokens for made in self.plugins.values()]
        known = [limit for limit in limits if limit is not None]
        return min(known) if known else None

    def seeds(self, method: Method) -> tuple[int, ...]:
        """One board a seed; one board where a renderer has no seeds, and where the mode chooses one (Table 44)."""
        able = self.plugins[method.name].renderer.capabilities
        several = able.source == "drawn" and able.deterministic and not method.repairs
        return method.config.seeds if several else method.config.seeds[:1]

    def boards(self, method: Method) -> dict[str, int]:
        """The names of a method's boards as they are judged, each with its seed."""
        seeds = self.seeds(method)
        return {f"{method.name}@{seed}" if len(seeds) > 1 else method.name: seed for seed in seeds}

    @property
    def selection(self) -> Any:
        """Which questions are asked: all, or the reporting half where a mode chooses by the steering half."""
        return "reporting" if any(method.repairs for method in self.methods) else "all"

    def identity(self) -> str:
        """The hash of everything that a finished comparison depends on."""
        return digest(
            {
                "katha": __version__,
                "stories": [record.model_dump(mode="json") for record in self.records],
                "methods": [
                    [method.name, identity_of(method.config.model_dump(mode="json"))] for method in self.methods
                ],
                "plugins": {name: made.specs() for name, made in self.plugins.items()},
                "config": identity_of(self.config.model_dump(mode="json")),
                "resamples": [self.resamples, self.seed],
                "prompts": prompt_hashes(),
            }
        )
