"""Reading what a person edited by hand: a plan, a run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from katha.errors import InputFileError, PlanError
from katha.jsonio import read_json
from katha.schema import Plan, StoryRecord

if TYPE_CHECKING:
    from katha.config import RunConfig

__all__ = ["configuration", "finished_run", "read_plan", "settings_of"]


_FIELDS = {
    "planner_option": "planner_options",
    "renderer_option": "renderer_options",
    "bridge_option": "bridge_renderer_options",
    "judge": "judges",
    "judge_option": "judge_options",
}


def configuration(preset: str | None, **flags: Any) -> RunConfig:
    """The configuration of a verb that draws, from its options by their names.

    Raises:
        UsageError: an option, matching rule or prompt variant is wrong.
    """
    from katha.config import resolve
    from katha.eval_bridge import require_rule, require_variant

    config = resolve(settings_of(flags), preset=preset)
    require_rule(config.matching)
    require_variant(config.variant, reporting=True)
    return config


def settings_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names of the settings that they set; those that were not given are left out."""
    return {_FIELDS.get(name, name): value for name, value in flags.items() if not _absent(value)}


def _absent(value: Any) -> bool:
    return value is None or value is False or value == []


def read_plan(path: Path, record: StoryRecord) -> Plan:
    """The plan in `path`, checked against the story it is for.

    Raises:
        PlanError: it is not a plan of this version, or does not fit the story; the field is named.
    """
    from katha.planners import validate_plan

    value = read_json(path)
    try:
        plan = Plan.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise PlanError(f"{str(path)!r} is no plan of this version: {field}: {first['msg']}.") from error
    validate_plan(plan, record)
    return plan


def finished_run(folder: Path) -> Path:
    """`folder` if it holds a run that has a storyboard.

    Raises:
        InputFileError: it does not; the message says how to make one.
    """
    if not (folder / "run.json").is_file():
        raise InputFileError(f"{str(folder)!r} is not the folder of a run.", hint="Make one with `katha run STORY`.")
    if not (folder / "storyboard.json").is_file():
        raise InputFileError(
            f"The run in {str(folder)!r} has not finished.", hint="Give the same `katha run` command again."
        )
    return folder
