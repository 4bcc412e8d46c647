"""`katha renderers|planners|judges|doctor`: what is installed, what it can do, and what would run."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Any

import typer

from katha.app.cli import options
from katha.errors import KathaError
from katha.registry import Family, default_registry, option_names

if TYPE_CHECKING:
    from katha.config import RunConfig

_NAME, _EXTRA = re.compile(r"[\w.-]+"), re.compile(r"extra == ['\"]([\w-]+)")
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


def renderers(as_json: options.Json = False) -> None:
    """List the renderers: what each is, and what it can do."""
    _list("renderers", as_json)


def planners(as_json: options.Json = False) -> None:
    """List the planners."""
    _list("planners", as_json)


def judges(as_json: options.Json = False) -> None:
    """List the judges."""
    _list("judges", as_json)


def doctor(as_json: options.Json = False) -> None:
    """Show what is installed, which keys and devices are there, and what would run now."""
    value = _diagnosis()
    if as_json:
        typer.echo(json.dumps(value, ensure_ascii=False))
        return
    for section, items in value.items():
        typer.echo(f"{section}:")
        for name, state in items.items():
            typer.echo(f"  {name:<28}{state}")


def _list(family: Family, as_json: bool) -> None:
    rows = [_describe(family, name) for name in default_registry(family).names()]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        typer.echo(f"{row['name']:<18}{row['about']}")
        for key, value in row["capabilities"].items():
            typer.echo(f"{'':<18}  {key}: {value}")
        for key, value in row["options"].items():
            typer.echo(f"{'':<18}  option {key}: {value}")


def _describe(family: Family, name: str) -> dict[str, Any]:
    factory, _ = default_registry(family).load(name)
    about = (factory.__doc__ or "").strip().partition("\n")[0]
    capabilities = getattr(factory, "capabilities", None)
    known = dataclasses.asdict(capabilities) if dataclasses.is_dataclass(capabilities) else {}  # type: ignore[arg-type]
    return {"name": name, "about": about, "capabilities": known, "options": option_names(factory)}


def _diagnosis() -> dict[str, dict[str, str]]:
    return {
        "katha": {"version": version("katha"), "python": sys.version.split()[0]},
        "packages": _packages(),
        "keys": {key: "set" if os.environ.get(key) else "not set" for key in _KEYS},
        "devices": _devices(),
        "folders": _folders(),
        "would run": _presets(),
    }


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    for line in requires("katha") or []:
        name, extra = _NAME.match(line), _EXTRA.search(line)
        if name is None:
            continue
        state = _installed(name[0])
        if extra is None:
            found[name[0]] = state or f"missing: pip install {name[0]}"
        elif extra[1] != "dev":
            missing.setdefault(extra[1], []).extend([] if state else [name[0]])
    for extra_name, absent in missing.items():
        state = f"without {', '.join(absent)}: pip install 'katha[{extra_name}]'" if absent else "installed"
        found[f"extra [{extra_name}]"] = state
    return found


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> dict[str, str]:
    gpu = shutil.which("nvidia-smi")
    return {"cpu cores": str(os.cpu_count()), "nvidia gpu": "driver found" if gpu else "none found"}


def _folders() -> dict[str, str]:
    from katha.config import cache_folder

    folder = cache_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    state = "writable" if os.access(nearest, os.W_OK) else "not writable: set KATHA_CACHE to a folder that is"
    return {"cache": f"{folder} ({state})"}


def _presets() -> dict[str, str]:
    from katha.config import preset_names, resolve

    rows: dict[str, str] = {}
    for name in preset_names():
        config = resolve({}, preset=name, environment={})
        what = f"{config.planner} + {config.renderer} + {', '.join(config.judges)}, mode {config.mode}"
        rows[name] = f"{what} ({_able(config)})"
    return rows


def _able(config: RunConfig) -> str:
    """Whether a run would start, or the first thing that it lacks. Nothing is loaded, fetched or asked."""
    from katha.agents.context import load_plugins

    try:
        load_plugins(config)
    except KathaError as error:
        return f"not now: {error.message}"
    return "ready"
