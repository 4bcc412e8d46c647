"""The drawing data (`draw:` keys) of the vocabulary, by kind and id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from katha.errors import RenderError

__all__ = ["drawing", "drawings"]


@cache
def drawings(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Every `draw:` mapping of one vocabulary file ("characters", "actions", "emotions", "attributes")."""
    text = (resources.files("katha.language.vocabulary") / f"{kind}.yaml").read_text(encoding="utf-8")
    entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: (entry or {}).get("draw") or {} for name, entry in entries.items()}


def drawing(kind: str, name: str) -> Mapping[str, Any]:
    """The drawing data of one entry.

    Raises:
        RenderError: the vocabulary has no such entry.
    """
    found = drawings(kind).get(name)
    if found is None:
        raise RenderError(
            f"The sketch cannot draw {name!r}: it is not in the vocabulary's {kind}.",
            hint=f"Add it to {kind}.yaml or use one of its ids.",
        )
    return found
