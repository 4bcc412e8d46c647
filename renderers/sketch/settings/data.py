"""The drawing data (`draw:`) of settings.yaml, by id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from katha.errors import RenderError

__all__ = ["setting_data", "setting_ids"]


def setting_ids() -> tuple[str, ...]:
    """Every setting of the vocabulary, in its file's order."""
    return tuple(_entries())


def setting_data(concept: str) -> Mapping[str, Any]:
    """The drawing data of one setting.

    Raises:
        RenderError: the vocabulary has no such setting, or it has no drawing.
    """
    found = _entries().get(concept)
    if not found:
        raise RenderError(
            f"The sketch cannot draw the setting {concept!r}.",
            hint="Give it `draw: {horizon, layers}` in settings.yaml.",
        )
    return found


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files("katha.language.vocabulary").joinpath("settings.yaml").read_text(encoding="utf-8")
    entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: (entry or {}).get("draw") or {} for name, entry in entries.items()}
