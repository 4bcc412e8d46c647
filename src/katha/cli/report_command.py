"""`katha report`: write a run's report again, from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(run: Annotated[Path, typer.Argument(help="The folder of a finished run.")]) -> None:
    """Write RUN/report.html again and print where it is."""
    from katha.cli.inputs import finished_run
    from katha.cli.report import write_report

    typer.echo(f"Report: {write_report(finished_run(run))}")
