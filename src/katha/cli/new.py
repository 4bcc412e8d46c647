"""`katha new`: the skeleton of a plug-in of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["new"]

new = typer.Typer(help="Write the skeleton of a plug-in of your own.", no_args_is_help=True, add_completion=False)


@new.callback()
def _family() -> None:
    """Keep the name of the family in the command, although there is one only."""


@new.command()
def renderer(
    name: Annotated[str, typer.Argument(help="What the renderer is called: small letters, digits, hyphens.")],
    out: Annotated[Path | None, typer.Option("--out", help="The package's folder; katha-NAME unless told.")] = None,
) -> None:
    """Write a package with a renderer that works, its entry point and its contract test."""
    from katha.testing.scaffold import new_renderer

    folder = out if out is not None else Path(f"katha-{name}")
    for path in new_renderer(name, folder):
        typer.echo(str(path))
    typer.echo(f"Now: pip install -e {folder}  and  pytest {folder}")
