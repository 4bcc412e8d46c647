"""What is compared: methods, each a name and the settings of its own, and what makes two comparisons the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from katha import __version__
from katha.agents.context import (
    Plugins,
    capped,
    check_able,
    fitting_options,
    make_bridge,
    make_planner,
    make_renderer,
    require_prices,
)
from katha.agents.record import prompt_hashes
from katha.compass.modes import load_mode
from katha.config import RunConfig, identity_of
from katha.errors import UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.make import make_judges
from katha.eval_bridge.scoring.outcomes import ENSEMBLE
from katha.experiments.evaluate import name_judges
from katha.jsonio import digest, read_text
from katha.protocols import Judge, Similarity
from katha.registry import default_registry
from katha.schema import StoryRecord

# ---
# What is compared: methods, each a name and the settings that it has of its own.


_FIELDS = frozenset(
    (
        *("planner", "planner_options", "renderer", "renderer_options"),
        *("bridge_renderer", "bridge_renderer_options", "mode", "size", "memory"),
    )
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+:/-]{0,63}")


@dataclass(frozen=True)
class Method:
    """One way to make a board: `config` differs from the other methods' in planner, renderer or mode only."""

    name: str
    config: RunConfig

    @property
    def slug(self) -> str:
        """The name as part of a path."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.name)[:40]}-{digest(self.name)[:6]}"

    @property
    def repairs(self) -> bool:
        """Whether the mode measures boards with steering questions, so that only the reporting ones may be shown."""
        mode = load_mode(self.config.mode)
        return mode.insert != "none" or mode.select == "best"


def cross_methods(
    config: RunConfig,
    planners: Sequence[str] = (),
    renderers: Sequence[str] = (),
    modes: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> list[Method]:
    """Every planner with every renderer in every mode; what is not given is `config`'s. A name says what varies.

    options: of the renderers; each gets those that it has.

    Raises:
        UsageError: fewer than two methods, or two that are the same; or an option that none of the renderers has.
    """
    asked = (
        tuple(planners) or (config.planner,),
        tuple(renderers) or (config.renderer,),
        tuple(modes) or (config.mode,),
    )
    fitting = fitting_options(asked[1], options or {})
    varies = [len(part) > 1 for part in asked]
    made = []
    for planner, renderer, mode in product(*asked):
        parts = [_short(part) for part, shown in zip((planner, renderer, mode), varies, strict=True) if shown]
        changed = config.with_plugins(planner=planner, renderer=renderer, renderer_options=fitting[renderer], mode=mode)
        made.append(Method(" + ".join(parts) or _short(renderer), changed))
    return _checked(made)


def read_methods(path: Path, config: RunConfig) -> list[Method]:
    """The methods that a YAML file lists: a name each, and planner, renderer, mode and their options where they differ.

    Raises:
        UsageError: the file is no such list; the row and the field are named.
    """
    try:
        rows = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise UsageError(f"{str(path)!r} is not YAML: {error}.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("name") for row in rows):
        raise UsageError(f"{str(path)!r} must be a list of methods with a name each.", hint="See docs/renderers.md.")
    return _checked([_read(path, place, row, config) for place, row in enumerate(rows, 1)])


def _read(path: Path, place: int, row: Mapping[str, Any], config: RunConfig) -> Method:
    where = f"{str(path)!r}, method {place} ({row['name']!r})"
    strange = sorted(set(row) - _FIELDS - {"name"})
    if strange:
        known = ", ".join(sorted(_FIELDS))
        raise UsageError(f"{where} has the unknown field {strange[0]!r}.", hint=f"Known: name, {known}.")
    values = {key: value for key, value in row.items() if key != "name"}
    try:
        return Method(str(row["name"]), config.with_plugins(**values))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}, {field!r}: {first['msg'].removeprefix('Value error, ')}.") from error


def _short(spec: str) -> str:
    """A plug-in's name for people: a path becomes its last part."""
    name, colon, argument = spec.partition(":")
    short = argument.rstrip("/").rpartition("/")[2] if "/" in argument else argument
    return re.sub(r"[^A-Za-z0-9 ._+:/-]+", "-", f"{name}{colon}{short}")[:48]


def _checked(methods: Iterable[Method]) -> list[Method]:
    found = list(methods)
    names = [method.name for method in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"Two methods are called {twice[0]!r}.", hint="Give each its own name with --methods FILE.")
    bad = next((name for name in names if not _NAME.fullmatch(name) or name == ENSEMBLE), None)
    if bad is not None:
        raise UsageError(f"{bad!r} cannot name a method.", hint="Use letters, digits, blanks and . _ + : / -.")
    if len(found) < 2:
        raise UsageError("There is one method only, so nothing to compare.", hint="Give --renderer or --planner twice.")
    for method in found:
        load_mode(method.config.mode)
    return found


# ---
# What a comparison is made from, and what makes two of them the same.


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
