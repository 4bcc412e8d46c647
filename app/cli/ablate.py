"""`katha ablate`: a suite of modes over many stories, compared in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import katha
from katha.app.cli.console import echo_json, end, interval, points, progress_bar, tell_outcome
from katha.app.cli.options import Given, Json, Lock, Resamples, Split, Stories, options_from
from katha.app.reports.page import change, p_value
from katha.app.reports.study_pages import people_words
from katha.config import Settings
from katha.schema.tables import AblationRow, AblationTable, HumanColumns

_HEAD = (
    f"  {'row':<26}{'image':>7}{'STG':>7}{'change':>8}{'95% interval':>17}{'p':>8}{'frames':>8}{'drawn':>8}{'asked':>8}"
)


@options_from(Settings, leave_out=("mode", "review"))
def ablate(
    stories: Stories,
    given: Given,
    suite: Annotated[str, typer.Option("--suite", help="A suite by name, or a YAML file of your own.")] = "length",
    rows: Annotated[str | None, typer.Option("--rows", help="Only these rows of the suite, with commas.")] = None,
    split: Split = None,
    lock: Lock = None,
    human: Annotated[
        Path | None,
        typer.Option("--human", help="People's judgments of the boards (CSV or JSON Lines): human columns."),
    ] = None,
    resamples: Resamples = 10_000,
    out: Annotated[Path | None, typer.Option("--out", help="The folder; out/SUITE unless told.")] = None,
    as_json: Json = False,
) -> None:
    """Run every row of a suite over STORIES, and say what the differences support.

    Each distinct frame is drawn once and each distinct question asked once, however the rows overlap. The same command
    again does nothing; after a kill it goes on.
    """
    with progress_bar("Running", "After {}", quiet=as_json) as on_progress:
        result = katha.ablate(
            stories,
            given.preset,
            suite=suite,
            rows=[part.strip() for part in rows.split(",") if part.strip()] if rows is not None else None,
            split=split,
            lock=lock,
            human=human,
            resamples=resamples,
            out=out,
            budget=given.budget,
            on_progress=on_progress,
            **given.changes,
        )
    table, report = result.table, result.out / "report.html"
    if as_json:
        echo_json({"out": str(result.out), "report": str(report), "table": table.model_dump(mode="json")})
    else:
        _tell(table)
        tell_outcome(result.outcome)
        typer.echo(f"Report: {report}")
    end(result.outcome, result.status)


def _tell(table: AblationTable) -> None:
    typer.echo(_HEAD)
    for row in table.rows:
        typer.echo(_line(row))
    for row in table.rows:
        if row.human is not None:
            typer.echo(_people(row.mode, row.human))
    budget = table.budget
    typer.echo(
        f"Drawn: {budget.frames_distinct:,} frames (naively {budget.frames_naive:,}). "
        f"Asked: {budget.questions_distinct:,} questions (naively {budget.questions_naive:,})."
    )
    for sentence in table.conclusion.sentences:
        typer.echo(f"  {sentence}")
    for note in table.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"Conclusion: {table.conclusion.text}")
    if not table.frozen:
        typer.echo("Unfrozen: the settings are not those of a lock (see `katha tune`).")


def _line(row: AblationRow) -> str:
    if row.not_run is not None:
        return f"  {row.mode:<26} not run: {row.not_run}"
    frames = "-" if row.frames is None else f"{row.frames:.2f}"
    numbers = f"{points(row.image):>7}{points(row.stg):>7}{change(row.delta_stg, '-'):>8}"
    tested = f"{interval(row.ci95, '+.1f'):>17}{p_value(row.p_corrected, '-'):>8}"
    return f"  {row.mode:<26}{numbers}{tested}{frames:>8}{row.frames_rendered:>8,}{row.questions_asked:>8,}"


def _people(mode: str, human: HumanColumns) -> str:
    """What people say of a row's boards, where they were asked."""
    words = ", ".join(f"{name} {value}" for name, value in people_words(human).items())
    return f"  {mode}, people: {words or 'nobody judged these boards'}"
