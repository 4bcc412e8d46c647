"""The verb that takes a board to other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import echo_json
from katha.app.cli.options import Given, Json, options_from
from katha.app.exports import ARCHIVES, FORMATS, ExportOptions, export_board
from katha.config import read_settings


@options_from(ExportOptions, into="options", preset=False, limits=False)
def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run; of anything judged, for answers.")],
    to: Annotated[str, typer.Option("--to", help=f"What is written: {', '.join((*FORMATS, *ARCHIVES))}.")],
    options: Given,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file or folder; STORY_ID with the format's ending unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take the board of RUN to another tool: pages, a book, pictures, a film, an edit timeline; or its answers.

    A panel's dialogue, action, notes and duration (seconds) are read from RUN/plan.json.
    """
    made = export_board(run, to, out, read_settings(ExportOptions, options.changes))
    if as_json:
        echo_json({"out": str(made), "to": to})
    else:
        typer.echo(f"Exported: {made}")
