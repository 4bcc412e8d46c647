"""`katha tune`: choose the compass's settings on validation stories, and freeze them in a lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import katha
from katha.app.cli.console import echo_json, end, points, progress_bar, tell_outcome
from katha.app.cli.options import Given, Json, Resamples, Stories, options_from
from katha.app.reports.page import interval
from katha.app.reports.study_pages import advice
from katha.config import Settings
from katha.schema.tables import TuningResult


@options_from(Settings, leave_out=("mode", "review"))
def tune(
    stories: Stories,
    given: Given,
    split: Annotated[
        str | None, typer.Option("--split", help="Tune on this split; the others are frozen unseen.")
    ] = None,
    settings: Annotated[int, typer.Option("--settings", min=1, help="How many settings are tried.")] = 10_000,
    resamples: Resamples = 2_000,
    lock: Annotated[Path, typer.Option("--lock", help="Where the lock is written.")] = Path("compass.lock.yaml"),
    out: Annotated[Path, typer.Option("--out", help="The folder of features and of the curve.")] = Path("out/tune"),
    as_json: Json = False,
) -> None:
    """Choose candidate count, weights and thresholds on validation STORIES, and freeze them with what they rest on.

    Stories are drawn and judged once; then thousands of settings a second are tried on what was measured. Where stories
    carry splits, `validation` is tuned on unless told.
    """
    with progress_bar("Running", "After {}", quiet=as_json) as on_progress:
        result = katha.tune(
            stories,
            given.preset,
            split=split,
            tried=settings,
            resamples=resamples,
            lock=lock,
            out=out,
            budget=given.budget,
            on_progress=on_progress,
            **given.changes,
        )
    chosen, report = result.chosen, out / "report.html"
    if as_json:
        echo_json({"lock": str(result.lock), "report": str(report), "tuning": chosen.model_dump(mode="json")})
    else:
        _tell(chosen, result.lock, report)
        tell_outcome(result.outcome)
    end(result.outcome, result.status)


def _tell(chosen: TuningResult, lock: Path, report: Path) -> None:
    typer.echo(f"Tried {chosen.tried:,} settings on {chosen.stories} stories in {chosen.seconds:.1f} s.")
    for name, value in chosen.setting.items():
        default = chosen.default[name]
        typer.echo(f"  {name:<18}{value:>8g}" + (f"   (was {default:g})" if value != default else ""))
    gain = chosen.gain
    span = f", 95% {interval(gain.ci95, '+.1f')}" if gain.ci95 else ""
    typer.echo(f"STG {points(chosen.stg)} on these stories, {points(chosen.default_stg)} with the old settings")
    typer.echo(f"  difference {points(gain.difference)}{span}; the choice itself is not in this interval")
    unseen = points(chosen.cross_validated)
    typer.echo(f"  on stories that the choice did not see ({chosen.folds} parts): {unseen}")
    if warning := advice(chosen):
        typer.echo(f"  {warning}")
    if chosen.equally_good > 1:
        typer.echo(f"  {chosen.equally_good:,} settings reach the same; the cheapest is taken")
    for story, reason in chosen.invalid_stories.items():
        typer.echo(f"Left out: {story}: {reason}")
    for note in chosen.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"Lock: {lock}")
    typer.echo(f"Report: {report}")
