"""`katha train`: a LoRA adapter that teaches a language model to plan, and the two merged into one model."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from katha.app.cli import options
from katha.app.cli.options import GivenOptions, options_from
from katha.config import usual_preset
from katha.models.local import merge_adapter
from katha.planners.training import PlanCheck, load_settings
from katha.planners.training_fit import TrainSettings
from katha.schema import Plan, StoryRecord

_ASKED = (
    *("epochs", "steps", "rank", "learning_rate", "batch", "accumulation", "max_length", "save_every"),
    *("quantize", "packing", "best"),
)

train = typer.Typer(help="Train what can be trained.", no_args_is_help=True)


@train.callback()
def _group() -> None:
    """Train what can be trained."""


@train.command("planner")
@options_from(TrainSettings, only=_ASKED, preset=False, limits=False)
def planner(
    stories: Annotated[Path, typer.Argument(help="KathaBench records (.jsonl) with scenes and transitions.")],
    out: Annotated[Path, typer.Option("--out", help="The adapter's folder; the same command again goes on in it.")],
    given: GivenOptions,
    base: Annotated[
        str | None, typer.Option("--base", help="The model to teach: a folder, or a name on the hub.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="The records to learn from, by their 'split'.")] = "train",
    held_out: Annotated[str, typer.Option("--held-out", help="The records to be measured on.")] = "validation",
    preset: Annotated[str | None, typer.Option("--preset", help="Settings for a device: 24gb or 80gb.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, mps.")] = None,
    plans: Annotated[
        int, typer.Option("--plans", min=0, help="Held-out stories to plan when all is learnt, and to be counted.")
    ] = 0,
    as_json: options.Json = False,
) -> None:
    """Teach a model to write the gold plans of STORIES, as a LoRA adapter for `--planner gemma-st --adapter OUT`."""
    from katha.planners.training import train_planner
    from katha.stories import iter_records

    settings = load_settings(preset, given.changes)
    report = train_planner(
        (record for record in iter_records(stories) if record.split == split),
        (record for record in iter_records(stories) if record.split == held_out),
        out,
        settings,
        base=base,
        device=device,
        plans=plans,
        score=steering_score if plans else None,
        on_step=None if as_json else _tell,
    )
    if int(os.environ.get("RANK", "0")) != 0:
        return  # one process of several tells what they did
    found = {**asdict(report), "folder": str(report.folder)}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    for story, reason in report.rejected.items():
        typer.echo(f"Left out {story}: {reason}")
    losses = f"{_number(report.held_out_before)} before, {_number(report.held_out_after)} after"
    typer.echo(f"{report.examples} stories, {report.steps} steps; loss on {report.held_out} held-out stories: {losses}")
    if report.plans is not None:
        typer.echo(_planned(report.plans))
    typer.echo(f"Use it: katha run STORY --planner gemma-st{f':{base}' if base else ''} --adapter {report.folder}")


@train.command("merge")
def merge(
    adapter: Annotated[Path, typer.Argument(help="An adapter's folder (`katha train planner`).")],
    out: Annotated[Path, typer.Option("--out", help="The folder of the merged model; it must not be there yet.")],
    base: Annotated[
        str | None, typer.Option("--base", help="The base model, where it is not where the adapter says.")
    ] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32, bfloat16, float16; default as stored.")] = None,
) -> None:
    """Write base model and adapter as one model, for servers and other programs."""
    merge_adapter(adapter, out, base=base, dtype=dtype)
    typer.echo(f"Use it: katha run STORY --planner gemma-st:{out}")


def steering_score(record: StoryRecord, plan: Plan) -> float | None:
    """Return what the default's judge reads of the record's steering questions in the default's drawing of `plan`, in
    points.

    None where no default is installed, and where the record has no questions: those of the plan itself would say
    nothing of it.
    """
    usual, _ = usual_preset()
    if not record.recoverability_questions or not usual:
        return None
    from katha.app.drawing import run_story

    with TemporaryDirectory() as folder:
        result = run_story(record, usual, plan=plan, out=Path(folder) / "run", mode="base", seeds=(42,))
    found = result.candidates.candidates[0].score.recoverability
    return None if found is None else 100 * found


def _planned(found: PlanCheck) -> str:
    said = f"plans of {found.asked} held-out stories: {found.valid} valid"
    said += f", {found.fields:.1f}% of the transition fields filled" if found.fields is not None else ""
    return said + (f", steering score {found.score:.1f}" if found.score is not None else "")


def _tell(step: int, steps: int, loss: float | None) -> None:
    typer.echo(f"step {step} of {steps}  loss {_number(loss)}", err=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
