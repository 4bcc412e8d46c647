"""Packages that only some numbers need, imported when they are."""

from __future__ import annotations

import importlib
from typing import Any

from katha.errors import MissingExtraError

__all__ = ["need"]


def need(module: str, what: str, extra: str = "stats") -> Any:
    """The module, imported now; `what` says what it is needed for.

    Raises:
        MissingExtraError: it is not installed; the hint is the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"{what} needs {package}.", hint=f"pip install 'katha[{extra}]'") from error
