"""The state machine that turns one story into a repaired storyboard, and the calls that run it.

Imports: `compass`, `planners`, `renderers`, `eval_bridge`, `composing`, `models`, `store`, `stories`, `config`,
`protocols`, `configs`, `registry`, `schema`.
Scores, the weakest transition and the writer of moves are in `compass`; what judges are told is in `eval_bridge`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Late(ModuleType):
    """A package whose modules can be imported, and whose own code runs when something is first taken from itself."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__") or spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        object.__setattr__(self, "__class__", ModuleType)
        spec.loader.exec_module(self)
        return getattr(self, name)


def _import_late(*names: str) -> None:
    """Have the code of packages run only when it is needed."""
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            late = _Late(name)
            late.__spec__, late.__loader__, late.__file__ = spec, spec.loader, spec.origin
            late.__path__, late.__package__ = spec.submodule_search_locations, name
            sys.modules[name] = late


# LangGraph takes one name each from a module of these; all of them is a third of a second, models and two HTTP clients.
_import_late("langsmith.types", "langgraph_sdk")
