"""Plug-ins: what is installed, what it can do, what would run (`katha doctor`); and a skeleton for one of your own."""

from __future__ import annotations

import dataclasses
import keyword
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from katha.agents.context import load_plugins
from katha.app.cli.console import echo_json
from katha.app.cli.options import Json
from katha.config import Settings, cache_folder, resolve
from katha.configs import config_names, load_config
from katha.errors import KathaError, OutputFolderError, UsageError
from katha.jsonio import write_bytes_atomic
from katha.models.checkpoints import find_folder
from katha.registry import Family, default_registry, option_names
from katha.store import Store

_REQUIREMENT, _EXTRA = re.compile(r"[\w.-]+"), re.compile(r"extra == ['\"]([\w-]+)")
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

Kind = Literal["renderer", "judge", "planner", "metric"]
Name = Annotated[str, typer.Argument(help="What it is called: small letters, digits, hyphens.")]
Out = Annotated[Path | None, typer.Option("--out", help="The package's folder; katha-NAME unless told.")]
_FAMILIES: Mapping[Kind, Family] = {
    "renderer": "renderers",
    "judge": "judges",
    "planner": "planners",
    "metric": "metrics",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def doctor(
    cache: Annotated[
        bool, typer.Option("--cache", help="Look at everything in the cache instead; set aside what is damaged.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is installed, which keys and devices are there, and what would run now."""
    if cache:
        _tell_cache(as_json)
        return
    value = _diagnosis()
    if as_json:
        echo_json(value)
        return
    for section, items in value.items():
        typer.echo(f"{section}:")
        for name, state in items.items():
            typer.echo(f"  {name:<28}{state}")


def _tell_cache(as_json: bool) -> None:
    """Print what a look at the whole cache found; damage that was set aside is no failure."""
    folder = cache_folder()
    with Store(folder) as store:
        found = store.check()
    if as_json:
        echo_json({"cache": str(folder), **dataclasses.asdict(found)})
        return
    typer.echo(f"Cache: {folder}")
    typer.echo(f"  {found.files:,} files, {found.damaged_files:,} of them damaged")
    typer.echo(f"  {found.records:,} records, {found.damaged_records:,} of them damaged")
    if found.damaged_files or found.damaged_records:
        typer.echo(f"What is damaged is in {folder / 'quarantine'} now, and is made again when it is needed.")


def _lister(family: Family, about: str) -> Callable[..., None]:
    def verb(as_json: Json = False) -> None:
        rows = [_describe(family, name) for name in default_registry(family).names()]
        if as_json:
            echo_json(rows)
            return
        for row in rows:
            typer.echo(f"{row['name']:<18}{row['about']}")
            for key, value in row["capabilities"].items():
                typer.echo(f"{'':<18}  {key}: {value}")
            for key, value in row["options"].items():
                typer.echo(f"{'':<18}  option {key}: {value}")

    verb.__doc__ = about
    return verb


renderers = _lister("renderers", "List the renderers: what each is, and what it can do.")
planners = _lister("planners", "List the planners.")
judges = _lister("judges", "List the judges.")


def _describe(family: Family, name: str) -> dict[str, Any]:
    factory, _ = default_registry(family).load(name)
    about = (factory.__doc__ or "").strip().partition("\n")[0]
    capabilities = getattr(factory, "capabilities", None)
    known = dataclasses.asdict(capabilities) if dataclasses.is_dataclass(capabilities) else {}  # type: ignore[arg-type]
    return {"name": name, "about": about, "capabilities": known, "options": option_names(factory)}


def _diagnosis() -> dict[str, dict[str, str]]:
    folder = cache_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    usable = "writable" if os.access(nearest, os.W_OK) else "not writable: set KATHA_CACHE to a folder that is"
    gpu = "driver found" if shutil.which("nvidia-smi") else "none found"
    return {
        "katha": {"version": version("katha"), "python": sys.version.split()[0]},
        "packages": _packages(),
        "keys": {key: "set" if os.environ.get(key) else "not set" for key in _KEYS},
        "devices": {"cpu cores": str(os.cpu_count()), "nvidia gpu": gpu},
        "free answers": {"default": "lemma-set", "recommended": _recommended()},
        "folders": {"cache": f"{folder} ({usable})"},
        "would run": {name: _presented(resolve({}, preset=name, environment={})) for name in config_names("presets")},
    }


def _recommended() -> str:
    """The matching rule to use where its model is installed, and whether it is. Nothing is loaded or fetched."""
    rule = str(load_config("matching.yaml")["recommended"])
    try:
        find_folder(rule.partition(":")[2])
    except ImportError:
        return f"{rule} (not now: pip install 'katha[local]')"
    except KathaError as error:
        return f"{rule} (not now: {error.hint})"
    return f"{rule} (installed: --matching {rule})"


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    for line in requires("katha") or []:
        name, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        if name is None:
            continue
        try:
            state = version(name[0])
        except PackageNotFoundError:
            state = ""
        if extra is None:
            found[name[0]] = state or f"missing: pip install {name[0]}"
        elif extra[1] != "dev":
            missing.setdefault(extra[1], []).extend([] if state else [name[0]])
    for extra_name, absent in missing.items():
        state = f"without {', '.join(absent)}: pip install 'katha[{extra_name}]'" if absent else "installed"
        found[f"extra [{extra_name}]"] = state
    return found


def _presented(config: Settings) -> str:
    """A preset, and whether it would run, or the first thing that it lacks. Nothing is loaded, fetched or asked."""
    able = "ready"
    try:
        load_plugins(config)
    except KathaError as error:
        able = f"not now: {error.message}"
    return f"{config.planner} + {config.renderer} + {', '.join(config.judges)}, mode {config.mode} ({able})"


# `katha new renderer|judge|planner NAME`: a small package that installs, is found by its entry point and keeps the
# contract.


new = typer.Typer(help="Write the skeleton of a plug-in of your own.", no_args_is_help=True, add_completion=False)


def _writer(kind: Kind) -> Callable[..., None]:
    def verb(name: Name, out: Out = None) -> None:
        folder = out if out is not None else Path(f"katha-{name}")
        for path in new_plugin(kind, name, folder):
            typer.echo(str(path))
        typer.echo(f"Now: pip install -e {folder}  and  pytest {folder}")

    verb.__doc__ = f"Write a package with a {kind} that works, its entry point and its contract test."
    return verb


for _kind in _FAMILIES:
    new.command(_kind)(_writer(_kind))


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
