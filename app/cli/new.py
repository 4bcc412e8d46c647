"""`katha new renderer|judge|planner NAME`: a small package that installs, is found by its entry point, and keeps the
contract."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import typer

from katha.errors import OutputFolderError, UsageError
from katha.jsonio import write_bytes_atomic
from katha.registry import Family, default_registry

Kind = Literal["renderer", "judge", "planner"]
Name = Annotated[str, typer.Argument(help="What it is called: small letters, digits, hyphens.")]
Out = Annotated[Path | None, typer.Option("--out", help="The package's folder; katha-NAME unless told.")]
_FAMILIES: Mapping[Kind, Family] = {"renderer": "renderers", "judge": "judges", "planner": "planners"}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

new = typer.Typer(help="Write the skeleton of a plug-in of your own.", no_args_is_help=True, add_completion=False)


@new.command()
def renderer(name: Name, out: Out = None) -> None:
    """Write a package with a renderer that works, its entry point and its contract test."""
    _write_package("renderer", name, out)


@new.command()
def judge(name: Name, out: Out = None) -> None:
    """Write a package with a judge that works, its entry point and its contract test."""
    _write_package("judge", name, out)


@new.command()
def planner(name: Name, out: Out = None) -> None:
    """Write a package with a planner that works, its entry point and its contract test."""
    _write_package("planner", name, out)


def _write_package(kind: Kind, name: str, out: Path | None) -> None:
    folder = out if out is not None else Path(f"katha-{name}")
    for path in new_plugin(kind, name, folder):
        typer.echo(str(path))
    typer.echo(f"Now: pip install -e {folder}  and  pytest {folder}")


def new_plugin(kind: Kind, name: str, folder: Path) -> list[Path]:
    """Write the package of a plug-in called `name` into `folder`; return its files.

    Raises:
        UsageError: the name cannot be one, or is taken. OutputFolderError: `folder` holds something already.
    """
    if _NAME.fullmatch(name) is None or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot name a {kind}.", hint="Use small letters, digits and hyphens.")
    if name in default_registry(_FAMILIES[kind]).names():
        raise UsageError(f"There is a {kind} called {name!r} already.", hint="Choose another name.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputFolderError(f"{str(folder)!r} is not empty.", hint="Choose another --out.")
    module = "katha_" + name.replace("-", "_")
    class_name = "".join(part.capitalize() for part in name.split("-")) + kind.capitalize()
    words = {"kind": kind, "name": name, "module": module, "class_name": class_name}
    sources = {
        "pyproject.toml": "pyproject.toml.j2",
        "README.md": "README.md.j2",
        f"{module}.py": f"{kind}.py.j2",
        f"test_{module}.py": "test_module.py.j2",
    }
    return [_write(folder / target, source, words) for target, source in sources.items()]


def _write(path: Path, source: str, words: Mapping[str, str]) -> Path:
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
