"""`katha compare`: the same stories, plans, questions and judges for every renderer, planner or mode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import katha
from katha.app.cli.console import comparison, echo_json, end, interval, points, progress_bar, tell_outcome
from katha.app.cli.options import Given, Json, Resamples, options_from
from katha.config import Settings
from katha.schema.tables import CompareTable

_HEAD = f"  {'method':<30}{'boards':>8}{'invalid':>9}{'image':>7}{'raw':>7}{'STG':>7}{'common':>8}{'95% interval':>17}"
_SHOWN = 8
_VARIED = ("planner", "planner_options", "renderer", "renderer_options", "mode", "review", "verify_reuse")


@options_from(Settings, leave_out=_VARIED)
def compare(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, a text, or a folder of them.")],
    given: Given,
    renderer: Annotated[
        list[str] | None, typer.Option("--renderer", help="A renderer to compare; give it several times.")
    ] = None,
    planner: Annotated[
        list[str] | None, typer.Option("--planner", help="A planner to compare; give it several times.")
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="A repair mode to compare; base unless told.")
    ] = None,
    methods: Annotated[
        Path | None, typer.Option("--methods", help="A YAML list of methods, each with options of its own.")
    ] = None,
    renderer_option: Annotated[
        list[str] | None,
        typer.Option("--renderer-option", help="KEY=VALUE for those of the renderers that have it."),
    ] = None,
    resamples: Resamples = 10_000,
    out: Annotated[Path, typer.Option("--out", help="The folder of the comparison.")] = Path("out/compare"),
    as_json: Json = False,
) -> None:
    """Compare renderers (or planners, or modes) on STORIES by what their boards lose of the story (STG).

    Every method gets the same plans, questions and judges. A story that a method cannot draw is counted as invalid,
    with the reason. The same command again does nothing; after a kill it goes on.
    """
    with progress_bar("Drawing", quiet=as_json) as on_progress:
        result = katha.compare(
            stories,
            given.preset,
            renderers=renderer or (),
            planners=planner or (),
            modes=mode or (),
            methods=methods,
            resamples=resamples,
            out=out,
            budget=given.budget,
            on_progress=on_progress,
            **given.changes,
            renderer_options=renderer_option,
        )
    table, report = result.table, out / "report.html"
    if as_json:
        echo_json(
            {"out": str(out), "report": str(report), "reused": result.reused, "table": table.model_dump(mode="json")}
        )
    else:
        _tell(table)
        tell_outcome(result.outcome)
        typer.echo(f"Report: {report}")
    end(result.outcome, result.status)


def _tell(table: CompareTable) -> None:
    typer.echo(_HEAD)
    for row in table.methods:
        numbers = "".join(f"{points(value):>7}" for value in (row.image, row.raw_stg, row.filtered_stg))
        rate, common = f"{points(row.invalid_rate)}%", points(row.common_valid_stg)
        span = interval(row.ci95)
        typer.echo(f"  {row.name[:29]:<30}{row.boards:>8}{rate:>9}{numbers}{common:>8}{span:>17}")
    for pair in table.comparisons:
        if pair.block == "common_valid" and pair.difference is not None:
            typer.echo(f"  {comparison(pair)}")
    for row in table.methods:
        if row.signature:
            typer.echo(f"  {row.name} loses most: {', '.join(row.signature)}.")
    for item in table.invalid[:_SHOWN]:
        typer.echo(f"  {item.board}, {item.story_id}: invalid, {item.reason}", err=True)
    if len(table.invalid) > _SHOWN:
        typer.echo(f"  and {len(table.invalid) - _SHOWN} more invalid boards; see table.json.", err=True)
    if table.status != "finished":
        typer.echo("Some boards or answers are missing. The same command asks for them again.")
