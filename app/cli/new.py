"""Write the skeleton of a plug-in of your own."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from katha.errors import OutputFolderError, UsageError
from katha.jsonio import write_bytes_atomic
from katha.registry import default_registry

# ---
# `katha new`: the skeleton of a plug-in of your own.


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

    folder = out if out is not None else Path(f"katha-{name}")
    for path in new_renderer(name, folder):
        typer.echo(str(path))
    typer.echo(f"Now: pip install -e {folder}  and  pytest {folder}")


# ---
# `katha new renderer NAME`: a small package that installs, is found by its entry point, and keeps the contract.


_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FILES = {
    "pyproject.toml": "pyproject.toml.j2",
    "README.md": "README.md.j2",
    "{module}.py": "module.py.j2",
    "test_{module}.py": "test_module.py.j2",
}


def new_renderer(name: str, folder: Path) -> list[Path]:
    """Write the package of a renderer called `name` into `folder`; the files.

    Raises:
        UsageError: the name cannot be one, or is taken. OutputFolderError: `folder` holds something already.
    """
    if _NAME.fullmatch(name) is None or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot name a renderer.", hint="Use small letters, digits and hyphens.")
    if name in default_registry("renderers").names():
        raise UsageError(f"There is a renderer called {name!r} already.", hint="Choose another name.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputFolderError(f"{str(folder)!r} is not empty.", hint="Choose another --out.")
    words = {
        "name": name,
        "module": "katha_" + name.replace("-", "_"),
        "class_name": "".join(part.capitalize() for part in name.split("-")) + "Renderer",
    }
    return [_write(folder / target.format(**words), source, words) for target, source in _FILES.items()]


def _write(path: Path, source: str, words: dict[str, str]) -> Path:
    from jinja2 import Environment, StrictUndefined

    text = files("katha.app.cli").joinpath("skeleton", source).read_text(encoding="utf-8")
    # autoescape stays off: this is source code, not markup.
    template = Environment(undefined=StrictUndefined, keep_trailing_newline=True).from_string(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFolderError(f"Cannot write {str(path.parent)!r}: {error.strerror}.") from error
    write_bytes_atomic(path, template.render(**words).encode("utf-8"))
    return path
