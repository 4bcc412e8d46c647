"""The libraries' own messages, where nobody here could act on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Literal

__all__ = ["unwarned"]


@contextmanager
def unwarned(library: Literal["diffusers", "transformers"]) -> Iterator[None]:
    """Without the library's warnings, and then as it was: they would write across the live view."""
    logging = import_module(f"{library}.utils.logging")
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
