"""The tables that the stand-in's packages share."""

from __future__ import annotations

from typing import Any

from katha.jsonio import shipped_table


def load_config(name: str) -> Any:
    """Return a shipped table, `planning.yaml` for one, read once."""
    return shipped_table(__name__, name)
