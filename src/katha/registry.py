"""One registry for renderers, planners and judges: entry points, a decorator, and `package.module:Class` names.

A plug-in is named `NAME` or `NAME:ARGUMENT` (`openai:gpt-5`, `recorded:answers.jsonl`); the argument is handed to its
class as the one positional parameter. A class path may have one, too: `package.module:Class:ARGUMENT`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

from katha.arguments import fit_options
from katha.errors import KathaError, UnknownPluginError

__all__ = ["Family", "Registry", "default_registry"]

Family = Literal["renderers", "planners", "judges", "similarities"]
Factory = Callable[..., Any]
F = TypeVar("F", bound=Factory)
_CLASS_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)(?::(.*))?", re.DOTALL)


class Registry:
    """The plug-ins of one family. Nothing is imported before it is asked for."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._local: dict[str, Factory] = {}
        self.what = "similarity" if family == "similarities" else family.removesuffix("s")

    def register(self, name: str) -> Callable[[F], F]:
        """Decorator: make a class known in this process under `name`."""

        def add(factory: F) -> F:
            self._local[name] = factory
            return factory

        return add

    def names(self) -> list[str]:
        """Every known name, sorted."""
        return sorted({*self._local, *self._entry_points()})

    def load(self, spec: str) -> tuple[Factory, str | None]:
        """The class behind `spec`, and the argument after its colon.

        Raises:
            UnknownPluginError: no plug-in of that name, or its module cannot be imported.
        """
        name, _, argument = spec.partition(":")
        if name in self._local:
            return self._local[name], argument or None
        entry = self._entry_points().get(name)
        if entry is None:
            path = _CLASS_PATH.fullmatch(spec)
            if path is not None and ("." in name or find_spec(name) is not None):
                return self._import(path[1]), path[2] or None
            raise UnknownPluginError(f"No {self.what} is called {name!r}.", hint=self._suggest(name))
        return self._load_entry(entry), argument or None

    def configure(self, spec: str, options: Mapping[str, Any]) -> Any:
        """Make the plug-in behind `spec` with options that a person gave (`--renderer-option steps=4`).

        Raises:
            UnknownPluginError: there is none. UsageError: an option that it does not have, or of the wrong kind.
        """
        factory, _ = self.load(spec)
        return self.create(spec, **fit_options(factory, options, f"{self.what} {spec!r}"))

    def create(self, spec: str, **options: Any) -> Any:
        """Make the plug-in behind `spec`; `options` are keyword parameters of its class.

        Raises:
            UnknownPluginError: there is none, or it does not take these parameters.
        """
        factory, argument = self.load(spec)
        try:
            return factory(argument, **options) if argument is not None else factory(**options)
        except TypeError as error:
            raise UnknownPluginError(f"{self.what} {spec!r} cannot be made: {error}.") from error

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=f"katha.{self.family}")}

    def _load_entry(self, entry: EntryPoint) -> Factory:
        try:
            loaded: Factory = entry.load()
        except KathaError:
            raise
        except (ImportError, AttributeError) as error:
            raise UnknownPluginError(f"The {self.what} {entry.name!r} cannot be imported: {error}.") from error
        return loaded

    def _import(self, path: str) -> Factory:
        module, _, attribute = path.partition(":")
        try:
            loaded: Factory = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UnknownPluginError(f"The {self.what} {path!r} cannot be imported: {error}.") from error
        return loaded

    def _suggest(self, name: str) -> str:
        close = get_close_matches(name, self.names(), n=1)
        near = f"Did you mean {close[0]!r}? " if close else ""
        return f"{near}Known: {', '.join(self.names())}; or name a class as package.module:Class."


_REGISTRIES: dict[Family, Registry] = {
    "renderers": Registry("renderers"),
    "planners": Registry("planners"),
    "judges": Registry("judges"),
    "similarities": Registry("similarities"),
}


def default_registry(family: Family) -> Registry:
    """The process's registry of `family`."""
    return _REGISTRIES[family]
