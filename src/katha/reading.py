"""The reader of plain texts that is installed, if any."""

from __future__ import annotations

from katha.errors import UsageError
from katha.installing import stand_in_line
from katha.plugin_boundary import checked
from katha.protocols import StoryReader
from katha.registry import default_registry


def require_reader(what: str) -> StoryReader:
    """Return the installed reader of plain texts, which `what` needs.

    Raises:
        UsageError: none is installed.
    """
    if not default_registry("readers").names():
        raise UsageError(
            f"{what} by rule need a reader of plain texts, and none is installed.",
            hint=f"Name a model with --by (openai:MODEL), or install the stand-in: {stand_in_line()}.",
        )
    return story_reader()


def story_reader() -> StoryReader:
    """Return the first of the installed readers by name; one that reads nothing where none is installed.

    Raises:
        UnknownPluginError: it cannot be imported.
    """
    registry = default_registry("readers")
    name = next(iter(registry.names()), None)
    return checked(registry.create(name), StoryReader, f"reader {name!r}") if name is not None else StoryReader()
