"""The reader of plain texts that is installed, if any."""

from __future__ import annotations

from katha.border import checked
from katha.protocols import StoryReader
from katha.registry import default_registry


def story_reader() -> StoryReader:
    """Return the first of the installed readers by name; one that reads nothing where none is installed.

    Raises:
        UnknownPluginError: it cannot be imported.
    """
    registry = default_registry("readers")
    name = next(iter(registry.names()), None)
    return checked(registry.create(name), StoryReader, f"reader {name!r}") if name is not None else StoryReader()
