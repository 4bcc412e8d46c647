"""The verb that opens the desk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.here import taken_here
from katha.app.cli.options import Adapter, GivenOptions, options_from
from katha.app.cli.run import with_adapter
from katha.app.desk.launch import serve
from katha.app.desk.room import Room
from katha.config import Settings, resolve
from katha.errors import InputFileError
from katha.models.paste import FOLDER


@options_from(Settings, leave_out=("review",))
def desk(
    given: GivenOptions,
    run: Annotated[
        Path | None, typer.Argument(help="The folder of a run to open; a list of stories unless told.")
    ] = None,
    adapter: Adapter = None,
    home: Annotated[Path, typer.Option("--home", help="The folder that new stories and their runs go to.")] = Path(
        "out"
    ),
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="The port; unless told one of the folder's own, where it is free."
        ),
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser on it.")] = True,
) -> None:
    """Open the desk in a browser: paste a story, draw it, change its board by hand, and export it.

    It listens on this machine alone, under an address that nobody else knows, and asks nothing of the network.
    """
    if run is not None and not (run / "run.json").is_file():
        raise InputFileError(f"{str(run)!r} is not the folder of a run.", hint="Leave it out, and choose one there.")
    place = home if run is None else run.absolute().parent
    given, changes = taken_here(given, with_adapter(given, adapter))
    settings = resolve(changes, preset=given.preset)
    os.environ.setdefault(FOLDER, str(place / "paste"))  # two desks in one folder share no exchange
    opened = "" if run is None else run.absolute().name
    serve(Room(place, settings, given.budget), opened, port=port, browse=browser, ready=_tell)


def _tell(address: str) -> None:
    typer.echo(f"The desk is open at {address}")
    typer.echo("Keep this window; Ctrl-C closes the desk. What is saved or typed is kept.")
