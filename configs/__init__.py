"""Presets, modes, suites, vocabularies and price lists as data: YAML files, and how they are read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from katha.errors import UnknownPluginError, UsageError
from katha.jsonio import read_text


def config_text(*parts: str) -> str:
    """Return the text of a file of this package, `config_text("presets", "embedded.yaml")`."""
    return files("katha.configs").joinpath(*parts).read_text(encoding="utf-8")


@cache
def load_config(*parts: str) -> Any:
    """Return the parsed YAML of a file of this package; it is read once, so do not change what comes back."""
    return yaml.safe_load(config_text(*parts))


def config_names(folder: str) -> list[str]:
    """Return the names of the YAML files in a folder of this package, sorted."""
    entries = files("katha.configs").joinpath(folder).iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))


def load_chosen(folder: str, name: str, said: str) -> Any:
    """Return the YAML that `name` means: a file in a folder of this package, or any file at that path.

    said: what a message about a broken file calls it (`Preset`).

    Raises:
        UnknownPluginError: there is no such file. UsageError: it is not YAML.
    """
    if name in config_names(folder):
        text = config_text(folder, f"{name}.yaml")
    elif name.endswith((".yaml", ".yml")) and Path(name).is_file():
        text = read_text(Path(name))
    else:
        hint = f"Known: {', '.join(config_names(folder))}; or name a YAML file."
        raise UnknownPluginError(f"No {folder.removesuffix('s')} is called {name!r}.", hint=hint)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{said} {name!r} is not YAML: {error}.") from error
