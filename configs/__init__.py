"""Presets, modes, suites, vocabularies and price lists as data: YAML files, and how they are read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml


def config_text(*parts: str) -> str:
    """Return the text of a file of this package, `config_text("presets", "embedded.yaml")`."""
    return files("katha.configs").joinpath(*parts).read_text(encoding="utf-8")


@cache
def load_config(*parts: str) -> Any:
    """Return the parsed YAML of a file of this package; it is read once, so do not change what comes back."""
    return yaml.safe_load(config_text(*parts))
