"""`katha report`: write a run's report again, from its files alone, or its storyboard as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="Also draw the storyboard as one picture: .png, .jpg, .webp or .pdf.")
    ] = None,
) -> None:
    """Write RUN/report.html again and print where it is."""
    from katha.cli.inputs import finished_run
    from katha.cli.report import load_run, write_report, write_sheet

    folder = finished_run(run)
    if sheet is not None:
        typer.echo(f"Sheet: {write_sheet(load_run(folder).board, folder, sheet)}")
    typer.echo(f"Report: {write_report(folder)}")
