"""`katha bench plans`: what planners make of stories, measured before anything is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from katha.cli import options

__all__ = ["plans"]


def plans(
    stories: Annotated[Path, typer.Argument(help="Records (.jsonl or .json), annotated or not.")],
    planner: Annotated[list[str], typer.Option("--planner", help="A planner to measure; may be given several times.")],
    panels: options.Panels = None,
    as_json: options.Json = False,
) -> None:
    """Plan STORIES with each planner and say how much of what must be seen its prompts say; nothing is drawn."""
    from katha.config import resolve
    from katha.errors import UsageError
    from katha.planners.quality import MEASURES, mean_quality, plan_quality
    from katha.protocols import PlanRequest
    from katha.registry import default_registry
    from katha.stories import iter_records

    asked = resolve({"panels": panels}).panels
    records = list(iter_records(stories))
    found: dict[str, Any] = {}
    for name in dict.fromkeys(planner):
        made, rows, failed = default_registry("planners").create(name), [], {}
        for record in records:
            try:
                plan = made.plan(record, PlanRequest(panels=len(record.scenes) or asked))
            except UsageError as error:
                failed[record.story_id] = error.message
            else:
                rows.append(plan_quality(plan, record))
        found[name] = {"stories": len(rows), "failed": failed, "quality": mean_quality(rows)}
    if as_json:
        typer.echo(json.dumps({"measures": dict(MEASURES), "planners": found}, ensure_ascii=False))
        return
    typer.echo(f"{'':<18}{'stories':>8}" + "".join(f"{name:>17}" for name in MEASURES))
    for name, row in found.items():
        cells = "".join(f"{_cell(row['quality'][measure]):>17}" for measure in MEASURES)
        typer.echo(f"{name[:17]:<18}{row['stories']:>8}{cells}")
        for story, reason in row["failed"].items():
            typer.echo(f"  {story}: {reason}")


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
