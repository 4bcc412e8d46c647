"""The boards of a comparison: the same plan for every renderer, a folder a board, and each failure with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from katha.agents.comparison.job import CompareJob
from katha.agents.comparison.methods import Method
from katha.agents.context import RunContext
from katha.agents.draw import draw_board
from katha.agents.prepare import plan_within
from katha.agents.run import run_story
from katha.agents.types import OF_ONE_STORY, Emit
from katha.errors import BudgetError, TransientRenderError, UsageError
from katha.jsonio import digest, dumps, read_json, write_bytes_atomic, write_json
from katha.schema import Plan, StoryRecord
from katha.store import RunFolder, Store

__all__ = ["Artist"]

Failure = dict[str, Any]


@dataclass
class Artist:
    """Draws what is missing of a comparison in `out`. `failures` says by board and story why there is none."""

    job: CompareJob
    out: Path
    store: Store
    emit: Emit
    failures: dict[str, dict[str, Failure]] = field(default_factory=dict)

    def folder(self, method: Method, seed: int) -> Path:
        """Where a method's boards of one seed are, a folder a story."""
        return self.out / "boards" / method.slug / str(seed)

    def draw(self, method: Method, record: StoryRecord) -> None:
        """The boards of one story by one method.

        Raises:
            UsageError: the renderer cannot be used at all (a wrong key). StoreError: the disk failed.
        """
        for name, seed in self.job.boards(method).items():
            known = self.failures.setdefault(name, {})
            if record.story_id in known and not known[record.story_id]["again"]:
                continue
            known.pop(record.story_id, None)
            try:
                plan = self._plan(method, record)
                (self._repair if method.repairs else self._board)(method, name, seed, record, plan)
            except _NoPlan as error:
                known[record.story_id] = {"reason": str(error), "again": False}
            except (*OF_ONE_STORY, BudgetError) as error:
                again = isinstance(error, (TransientRenderError, BudgetError))
                known[record.story_id] = {"reason": str(error), "again": again}

    def _plan(self, method: Method, record: StoryRecord) -> Plan:
        """The plan of one planner, made once for all renderers and kept.

        Raises:
            _NoPlan: the planner cannot plan the story.
        """
        config = method.config
        planner = self.job.plugins[method.name].planner
        limit, panels = self.job.prompt_tokens, len(record.scenes) or config.panels
        key = digest([dict(planner.spec()), panels, config.style, limit])
        path = self.out / "plans" / key[:12] / f"{record.story_id}.json"
        if path.is_file():
            return Plan.model_validate(read_json(path))
        try:
            plan = plan_within(planner, record, config.model_copy(update={"panels": panels}), limit)
        except UsageError as error:
            raise _NoPlan(f"no plan by {config.planner!r}: {error.message}") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, plan.model_dump(mode="json"))
        return plan

    def _board(self, method: Method, name: str, seed: int, record: StoryRecord, plan: Plan) -> None:
        folder = RunFolder(self.folder(method, seed) / record.story_id)
        folder.panels.mkdir(parents=True, exist_ok=True)
        update = {"mode": "base", "seeds": (seed,), "matching": "exact-set", "panels": len(plan.panels)}
        config = method.config.model_copy(update=update)
        context = RunContext(record, config, self.job.plugins[method.name], self.store, folder, plan)
        context.use(plan, record)
        board = draw_board(context, plan, seed, self.emit).model_copy(update={"method": name})
        _write_once(folder.storyboard, board.model_dump(mode="json"))

    def _repair(self, method: Method, name: str, seed: int, record: StoryRecord, plan: Plan) -> None:
        config = method.config.model_copy(update={"panels": len(plan.panels)})
        made = self.job.plugins[method.name]
        run_story(
            record,
            config,
            self.folder(method, seed) / record.story_id,
            plan=plan,
            on_event=self.emit,
            plugins=made,
        )


class _NoPlan(Exception):
    """A planner cannot plan a story."""


def _write_once(path: Path, value: Any) -> None:
    """Write a JSON file unless it holds that already: its time tells whether a board has changed."""
    data = dumps(value).encode("utf-8")
    if not path.is_file() or path.read_bytes() != data:
        write_bytes_atomic(path, data)
