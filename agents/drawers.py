"""Planners and renderers made from a run's settings: each with its options, and `memory` for those that have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from katha.arguments import option_names
from katha.config import RunConfig
from katha.errors import UsageError
from katha.protocols import Planner, Renderer
from katha.registry import default_registry

__all__ = ["fitting_options", "make_bridge", "make_planner", "make_renderer", "require_memory"]


def make_planner(config: RunConfig) -> Planner:
    """The planner.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: it has no such option.
    """
    made: Planner = default_registry("planners").configure(config.planner, config.planner_options)
    return made


def make_renderer(config: RunConfig) -> Renderer:
    """The board's renderer.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: it has no such option.
    """
    return _make(config.renderer, config.renderer_options, config.memory)


def make_bridge(config: RunConfig) -> Renderer | None:
    """Who draws inserted frames, if that is not the board's renderer; errors are those of `make_renderer`."""
    bridge = config.bridge_renderer
    return _make(bridge, config.bridge_renderer_options, config.memory) if bridge is not None else None


def _make(spec: str, options: Mapping[str, Any], memory: str | None) -> Renderer:
    told = {"memory": memory} if memory is not None and "memory" in _options(spec) else {}
    made: Renderer = default_registry("renderers").configure(spec, {**told, **options})
    return made


def _options(spec: str) -> set[str]:
    return set(option_names(default_registry("renderers").load(spec)[0]))


def fitting_options(specs: Iterable[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By renderer, those of the options `given` that it has.

    Raises:
        UsageError: none of the renderers has one of them.
    """
    known = {spec: _options(spec) if given else set[str]() for spec in specs}
    stray = next((name for name in given if not any(name in names for names in known.values())), None)
    if stray is not None:
        raise UsageError(f"No renderer here has an option {stray!r}.", hint="See `katha renderers`.")
    return {spec: {name: value for name, value in given.items() if name in names} for spec, names in known.items()}


def require_memory(memory: str | None, specs: Iterable[str | None]) -> None:
    """Refuse a `--memory` that no renderer would listen to.

    Raises:
        UsageError: none of the renderers `specs` (None: there is none) keeps a model in memory.
    """
    if memory is not None and not any("memory" in _options(spec) for spec in specs if spec is not None):
        raise UsageError(
            "--memory is given, but no renderer here keeps a model in memory.", hint="Use --renderer sdxl:MODEL."
        )
