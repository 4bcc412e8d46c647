"""The options that several verbs share, and the files that people hand in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from katha.errors import InputFileError, PlanError
from katha.jsonio import read_json
from katha.schema import Plan, StoryRecord

if TYPE_CHECKING:
    from katha.config import RunConfig
    from katha.eval_bridge.judging.budget import Budget

# ---
# The options that several verbs share, written once so that their help is the same everywhere.


Planner = Annotated[str | None, typer.Option("--planner", help="Who plans: see `katha planners`.")]
Renderer = Annotated[str | None, typer.Option("--renderer", help="Who draws: see `katha renderers`.")]
Adapter = Annotated[
    str | None, typer.Option("--adapter", help="A LoRA adapter for --planner gemma-st (`katha train planner`).")
]
PlannerOptions = Annotated[
    list[str] | None, typer.Option("--planner-option", help="KEY=VALUE for the planner; may be given several times.")
]
RendererOptions = Annotated[
    list[str] | None,
    typer.Option("--renderer-option", help="KEY=VALUE for the renderer; `katha renderers` lists the keys."),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="For renderers on this machine: full, model-offload, quantized, sequential-offload."),
]
BridgeRenderer = Annotated[
    str | None, typer.Option("--bridge-renderer", help="Who draws inserted frames, if not the board's renderer.")
]
BridgeOptions = Annotated[list[str] | None, typer.Option("--bridge-option", help="KEY=VALUE for --bridge-renderer.")]
Judges = Annotated[
    list[str] | None, typer.Option("--judge", help="Who judges: see `katha judges`. Several make an ensemble.")
]
JudgeOptions = Annotated[
    list[str] | None, typer.Option("--judge-option", help="KEY=VALUE for the judges; `katha judges` lists the keys.")
]
Mode = Annotated[str | None, typer.Option("--mode", help="The repair mode: full, base, rerank_only, bridge_only, ...")]
Seeds = Annotated[str | None, typer.Option("--seeds", help="One candidate board a seed, for example 42,123,2026.")]
Panels = Annotated[int | None, typer.Option("--panels", help="How many scenes a plain text is told in.")]
Size = Annotated[str | None, typer.Option("--size", help="Pixels of a frame, for example 768x512.")]
Style = Annotated[str | None, typer.Option("--style", help="A look that the renderer knows, or a style phrase.")]
Preset = Annotated[str | None, typer.Option("--preset", help="Settings by name, or a YAML file of your own.")]
Answers = Annotated[str | None, typer.Option("--answers", help="How questions are asked: choice or free.")]
Matching = Annotated[
    str | None,
    typer.Option("--matching", help="How free answers are matched: lemma-set, exact-set, nli:MODEL, llm:JUDGE, ..."),
]
Similarity = Annotated[
    str | None,
    typer.Option("--similarity", help="What coverage and copies are measured with: reader, open-clip:MODEL."),
]
Lock = Annotated[Path | None, typer.Option("--lock", help="compass.lock.yaml of `katha tune`: frozen settings.")]
Split = Annotated[str | None, typer.Option("--split", help="Only the stories of this split (the record's field).")]
Variant = Annotated[
    str | None,
    typer.Option("--variant", help="How judges are instructed: strict, uncertain or neutral; strict unless told."),
]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Where `openai:`, `anthropic:` and `gemini:` call.")]
VerifyReuse = Annotated[
    float | None,
    typer.Option("--verify-reuse", min=0, max=1, help="`local:` asks this share again without a shared prefix."),
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", min=0, help="Stop cleanly after so many calls of judges and image services."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, help="Stop cleanly before so many US dollars, of answers and pictures."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines instead of text.")]


def budget_of(max_calls: int | None, max_cost: float | None) -> Budget | None:
    """The budget of a command; None without a limit."""
    from katha.eval_bridge.judging.budget import Budget

    return Budget(max_calls, max_cost) if max_calls is not None or max_cost is not None else None


def with_adapter(given: list[str] | None, adapter: str | None) -> list[str] | None:
    """The planner's options with `--adapter` among them; None when there is none."""
    return [*(given or []), *([f"adapter={adapter}"] if adapter is not None else [])] or None


# ---
# Reading what a person edited by hand: a plan, a run's folder.


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
    from katha.eval_bridge.matching.match import require_rule
    from katha.eval_bridge.packets.instructions import require_variant

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
    from katha.planners.checks import validate_plan

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
