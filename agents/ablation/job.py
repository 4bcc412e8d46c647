"""What an ablation is made from, and what makes two of them the same."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from katha import __version__
from katha.agents.ablation.judgments import Judgments
from katha.agents.context import Plugins, check_able, load_plugins
from katha.agents.drawers import make_planner, make_renderer
from katha.agents.record import prompt_hashes
from katha.agents.spending import require_prices
from katha.compass.suites import Row, Suite
from katha.config import RunConfig, identity_of
from katha.errors import (
    AbsentModelError,
    KathaError,
    MissingExtraError,
    ModelError,
    UnknownPluginError,
    UsageError,
)
from katha.jsonio import digest
from katha.registry import Family, default_registry
from katha.schema import StoryRecord

__all__ = ["AblationJob", "AblationResult", "drawn_by"]

_FAMILIES: tuple[tuple[Family, str], ...] = (("planners", "planner"), ("renderers", "renderer"))
_OF_ROW = ("planner", "renderer", "renderer_options")
_ABSENT = (AbsentModelError, MissingExtraError, ModelError)
"""What a plug-in raises that needs something which is not on this machine."""


@dataclass(frozen=True)
class AblationResult:
    """A finished ablation. `reused`: the folder already held it and nothing was done."""

    out: Path
    table: dict[str, Any]
    reused: bool


@dataclass
class AblationJob:
    """A suite over stories.

    config: everything that the rows do not replace; its mode is not used. given: plug-ins instead of the named ones
    (for tests and callers that made them). lock: the name and hash of the lock that froze `config.compass`, if any.
    human: people's judgments of the boards (see `judgments.py`); they change the table and no board.
    strict: refuse a row whose planner or renderer is not on this machine; otherwise `settle` leaves it out, and
    `not_run` says why.
    """

    records: Sequence[StoryRecord]
    suite: Suite
    config: RunConfig
    given: Plugins | None = None
    lock: Mapping[str, Any] | None = None
    resamples: int = 10_000
    seed: int = 42
    command: Sequence[str] = field(default_factory=lambda: list(sys.argv))
    strict: bool = False
    human: Path | None = None
    people: Judgments | None = field(init=False, default=None)
    whole: Suite = field(init=False)
    not_run: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = self.suite

    def row_config(self, row: Row, record: StoryRecord | None = None) -> RunConfig:
        """The configuration of one row (for one story: with as many panels as it has scenes)."""
        changes: dict[str, Any] = {"compass": row.settings(self.config.compass), "mode": row.mode}
        if record is not None and record.scenes:
            changes["panels"] = len(record.scenes)
        names: dict[str, Any] = {name: value for name in _OF_ROW if (value := getattr(row, name))}
        return self.config.with_plugins(**names).model_copy(update=changes)

    @cached_property
    def _made(self) -> dict[str, Plugins]:
        return {}

    def plugins(self, row: Row) -> Plugins:
        """The row's plug-ins; judges and similarity are the same objects for all rows."""
        config = self.row_config(row)
        key = drawn_by(config)
        if key not in self._made:
            first = next(iter(self._made.values()), None)
            self._made[key] = self._make(config, first)
        return self._made[key]

    def _make(self, config: RunConfig, first: Plugins | None) -> Plugins:
        if self.given is not None and drawn_by(config) == drawn_by(self.config):
            return self.given
        shared = first or self.given
        if shared is None:
            return load_plugins(config)
        renderer = make_renderer(config)
        require_prices(shared.budget, {config.renderer: renderer})
        return Plugins(
            make_planner(config),
            renderer,
            shared.judges,
            shared.similarity,
            shared.bridge,
            shared.budget,
        )

    def settle(self) -> None:
        """Refuse, before any work, what could not be run, and leave out the rows whose own planner or renderer needs a
        model or package that is not on this machine.

        Raises:
            UnknownPluginError: a row's planner or renderer is not installed. MissingExtraError: a package is missing.
            UsageError: no story, a judge that is not part of the run, or a frame size that cannot be drawn.
        """
        if not self.records:
            raise UsageError("There is no story to run the suite on.", hint="Check --split, or give another file.")
        for family, name in _FAMILIES:
            self._check_installed(family, name)
        for row in self.whole.rows:
            try:
                self._check_row(row)
            except KathaError as error:
                own = row.planner is not None or row.renderer is not None
                if isinstance(error, _ABSENT) and own and not self.strict:
                    self.not_run[row.name] = str(error)
                    continue
                error.message = f"The suite {self.whole.name!r}, row {row.name!r}: {error.message}"
                raise
        kept = tuple(row.name for row in self.whole.rows if row.name not in self.not_run)
        if not kept:
            name, reason = next(iter(self.not_run.items()))
            raise UsageError(f"No row of the suite {self.whole.name!r} can be run here. {name}: {reason}")
        self.suite = self.whole.only(kept)
        if self.human is not None:
            self.people = Judgments.read(self.human, self.whole, self.config.seeds)

    def _check_row(self, row: Row) -> None:
        judge = row.scoring.judge
        if judge not in (None, *self.config.judges, "ensemble"):
            raise UsageError(f"no judge {judge!r}; there is {', '.join(self.config.judges)}.")
        check_able(self.row_config(row), self.plugins(row))

    def _check_installed(self, family: Family, name: str) -> None:
        registry = default_registry(family)
        wanted = list(dict.fromkeys(value for row in self.suite.rows if (value := getattr(row, name)) is not None))
        known = registry.names()
        missing = [value for value in wanted if ":" not in value and value.split(":")[0] not in known]
        if missing:
            there = [row.name for row in self.suite.rows if getattr(row, name) not in missing]
            hint = f"Installed {family}: {', '.join(known)}. Give --rows {','.join(there)} to leave the others out."
            raise UnknownPluginError(
                f"The suite {self.suite.name!r} needs {family} that are not installed: {', '.join(missing)}.", hint=hint
            )

    @cached_property
    def identity(self) -> str:
        """The hash of everything that can change a result, stories apart."""
        specs = {row.name: self.plugins(row).specs() for row in self.suite.rows}
        return digest(
            {
                "katha": __version__,
                "suite": self.suite.model_dump(mode="json"),
                "modes": {row.name: row.build_mode().model_dump(mode="json") for row in self.suite.rows},
                "config": identity_of(self.config.model_dump(mode="json")),
                "plugins": specs,
                "prompts": prompt_hashes(),
                "lock": dict(self.lock) if self.lock else None,
                "statistics": [self.resamples, self.seed],
            }
        )

    def story_identity(self, record: StoryRecord) -> str:
        """The hash of everything that can change one story's result."""
        return digest([self.identity, record.model_dump(mode="json")])


def drawn_by(config: RunConfig) -> str:
    """What rows have in common that share a planner and a renderer."""
    return digest([config.planner, config.planner_options, config.renderer, config.renderer_options])
