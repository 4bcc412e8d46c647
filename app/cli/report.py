"""`katha report`: write a run's report again, from its files alone, or its storyboard as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="Also draw the storyboard as one picture: .png, .jpg, .webp or .pdf.")
    ] = None,
) -> None:
    """Write RUN/report.html again and print where it is."""
    from katha.app.cli.options import finished_run
    from katha.app.reports.boards import write_sheet
    from katha.app.reports.page import load_run
    from katha.app.reports.run_page import write_report

    folder = finished_run(run)
    if sheet is not None:
        typer.echo(f"Sheet: {write_sheet(load_run(folder).board, folder, sheet)}")
    typer.echo(f"Report: {write_report(folder)}")
