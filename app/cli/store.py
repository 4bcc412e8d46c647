"""`katha store check|gc|copy|calls|pack`: look after what commands, and machines, share."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from katha.addresses import StoreAddress, store_address
from katha.app.cli.console import echo_json
from katha.app.cli.options import Json
from katha.app.recording import pack_run
from katha.config import cache_folder
from katha.errors import UsageError
from katha.garbage_collection import collect
from katha.garbage_collection import copy as copy_records
from katha.models.recordings import listing
from katha.store import Store

_DAY = 86_400.0
_ABOUT = "Look after the store that commands share: KATHA_CACHE, or KATHA_STORE and KATHA_OBJECTS."

store = typer.Typer(help=_ABOUT, no_args_is_help=True, add_completion=False)
Place = Annotated[str, typer.Argument(help="A cache folder, or postgresql://USER@HOST:PORT/DATABASE.")]


@store.command("check")
def check(as_json: Json = False) -> None:
    """Look at every record and every picture; set aside what is damaged, drop records whose picture is gone."""
    with Store(cache_folder()) as opened:
        place, found = opened.place, opened.check()
    if as_json:
        echo_json({"cache": str(cache_folder()), "store": place, **asdict(found)})
        return
    typer.echo(f"Store: {place}")
    typer.echo(f"  {found.files:,} files, {found.damaged_files:,} of them damaged")
    typer.echo(f"  {found.records:,} records, {found.damaged_records:,} of them damaged")
    typer.echo(f"  {found.missing_files:,} records whose file is gone")
    if found.damaged_files or found.damaged_records:
        typer.echo(f"What is damaged is in {cache_folder() / 'quarantine'} now, and is made again when it is needed.")


@store.command("gc")
def collect_garbage(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs (or of many) whose pictures are kept too.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove them; without this nothing is changed.")] = False,
    days: Annotated[float, typer.Option("--days", min=0, help="Keep what was written in the last days.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Find the pictures that no record and no folder needs, and remove them with --remove."""
    with Store(cache_folder()) as opened:
        found = collect(opened, folders or [], age=days * _DAY, now=time.time(), remove=remove)
        place = opened.place
    if as_json:
        echo_json({"store": place, **asdict(found)})
        return
    typer.echo(f"Store: {place}")
    what = "removed" if found.removed else "needed by no record and no folder"
    typer.echo(f"  {found.files:,} pictures ({found.bytes / 1e6:,.1f} MB) {what}")
    typer.echo(f"  {found.kept_young:,} such pictures are too young")
    if found.files and not found.removed:
        typer.echo("Nothing was changed. Give --remove to remove them.")


@store.command("copy")
def copy(
    source: Place,
    target: Place,
    from_objects: Annotated[
        str | None, typer.Option("--from-objects", help="Where the pictures of a database are; KATHA_OBJECTS.")
    ] = None,
    to_objects: Annotated[
        str | None, typer.Option("--to-objects", help="Where those of a database go; KATHA_OBJECTS.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy the store SOURCE into TARGET: every record, and its picture. The same call goes on after a kill."""
    if "://" not in source and not Path(source).expanduser().is_dir():
        raise UsageError(f"There is no store {source!r}.", hint="Name a cache folder, or a database.")
    with closing(_opened(source, from_objects)) as old, closing(_opened(target, to_objects)) as new:
        found = copy_records(old, new)
        places = {"source": old.place, "target": new.place}
    if as_json:
        echo_json({**places, **asdict(found)})
        return
    typer.echo(f"From {places['source']} to {places['target']}:")
    typer.echo(f"  {found.records:,} records copied, {found.present_records:,} were there")
    typer.echo(f"  {found.files:,} pictures copied, {found.present_files:,} were there")
    if found.missing_files:
        typer.echo(f"  {found.missing_files:,} records left out: their picture is gone or damaged")


@store.command("calls")
def calls(file: Annotated[Path, typer.Argument(help="A recording (`katha run --record FILE`).")]) -> None:
    """List the calls of language models in a recording, a line each, for people and for diff."""
    typer.echo(listing(file), nl=False)


@store.command("pack")
def pack(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    file: Annotated[Path, typer.Argument(help="The recording to write.")],
    as_json: Json = False,
) -> None:
    """Make a recording of a run that is there, from the calls that the store keeps."""
    count, gone = pack_run(run, file)
    if as_json:
        echo_json({"recording": str(file), "calls": count, "missing": gone})
    else:
        typer.echo(f"{file}: {count:,} calls")
        for key in gone:
            typer.echo(f"  The store has no longer: {key}", err=True)
    if gone:
        raise typer.Exit(1)


def _opened(place: str, objects: str | None) -> Store:
    """Return the store at a cache folder, or at a database and its objects.

    Raises:
        UsageError: it cannot be.
    """
    if "://" not in place:
        return Store(Path(place).expanduser(), address=StoreAddress(objects=objects or ""))
    known = store_address({**os.environ, "KATHA_STORE": place, **({"KATHA_OBJECTS": objects} if objects else {})})
    return Store(cache_folder(), address=known)
