"""What a verb takes where nobody names who plans, draws and judges, and the line that says so (`katha.app.day_one`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from katha.app.cli.options import GivenOptions
from katha.app.day_one import choose
from katha.app.drawing import settings_for
from katha.app.presets import choose_countable
from katha.config import require_chosen
from katha.errors import UsageError


def taken_here(
    given: GivenOptions,
    changes: dict[str, Any],
    story: str | None = None,
    *,
    plan: Path | None = None,
    plans_only: bool = False,
    counted: bool = False,
    quiet: bool = False,
) -> tuple[GivenOptions, dict[str, Any]]:
    """Return what was given, over what this machine offers where nobody was named; say on standard error what that is.

    story: what is to be drawn; None: not known yet. counted: the verb tells itself what it would cost. quiet: say
    nothing of what is free.

    Raises:
        UsageError: nothing is there, and no installed preset is the default. Where the story is not known yet that is
            said, and refused when something is to be drawn.
    """
    choice = choose(changes, given.preset)
    if choice is None:
        return given, changes
    taken, changed = replace(given, preset=choice.preset), choice.over(changes)
    config = settings_for(choice.preset, changed, choose=choose_countable)
    try:
        require_chosen(config, ("planner",) if plans_only else ("planner", "renderer", "judges"))
    except UsageError as error:
        if story is not None:
            raise
        typer.echo(str(error), err=True)
        return taken, changed
    cost = None
    if choice.paid and not counted and story is not None:
        cost = _most(story, changed, plan, "plans" if plans_only else None)
    if choice.paid or not quiet:
        typer.echo(choice.told(config, cost, plans_only=plans_only, counted=counted or story is None), err=True)
    return taken, changed


def _most(story: str, changes: dict[str, Any], plan: Path | None, kind: str | None) -> float | None:
    """Return dollars at most, of one kind of calls or of all."""
    from katha.app.needs import needs_of_run, needs_of_runs
    from katha.stories import holds_several

    if holds_several(story):
        needs = needs_of_runs(story, None, plans=plan, **changes)
    else:
        needs = needs_of_run(Path(story), None, plan=plan, **changes)
    costs = [need.cost for need in needs.needs if need.calls and kind in (None, need.kind)]
    return None if None in costs else sum(cost for cost in costs if cost is not None)
