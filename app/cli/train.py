"""`katha train planner`: a LoRA adapter that teaches a language model to plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli import options
from katha.app.cli.options import Given, options_from
from katha.planners.training import TrainSettings, load_settings

_ASKED = ("epochs", "steps", "rank", "learning_rate", "batch", "accumulation", "max_length", "save_every")

train = typer.Typer(help="Train what can be trained.", no_args_is_help=True)


@train.callback()
def _group() -> None:
    """Train what can be trained."""


@train.command("planner")
@options_from(TrainSettings, only=_ASKED, preset=False, limits=False)
def planner(
    stories: Annotated[Path, typer.Argument(help="KathaBench records (.jsonl) with scenes and transitions.")],
    out: Annotated[Path, typer.Option("--out", help="The adapter's folder; the same command again goes on in it.")],
    given: Given,
    base: Annotated[
        str | None, typer.Option("--base", help="The model to teach: a folder, or a name on the hub.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="The records to learn from, by their 'split'.")] = "train",
    held_out: Annotated[str, typer.Option("--held-out", help="The records to be measured on.")] = "validation",
    preset: Annotated[str | None, typer.Option("--preset", help="Settings for a device: 24gb or 80gb.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, mps.")] = None,
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
        on_step=None if as_json else _tell,
    )
    found = {**vars(report), "folder": str(report.folder)}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    for story, reason in report.rejected.items():
        typer.echo(f"Left out {story}: {reason}")
    losses = f"{_number(report.held_out_before)} before, {_number(report.held_out_after)} after"
    typer.echo(f"{report.examples} stories, {report.steps} steps; loss on {report.held_out} held-out stories: {losses}")
    typer.echo(f"Use it: katha run STORY --planner gemma-st{f':{base}' if base else ''} --adapter {report.folder}")


def _tell(step: int, steps: int, loss: float | None) -> None:
    typer.echo(f"step {step} of {steps}  loss {_number(loss)}", err=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
