"""The state machine that turns one story into a repaired storyboard, and the calls that run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from katha.agents.types import ReviewChoice, ReviewRequest, RunResult

if TYPE_CHECKING:
    from katha.agents.context import Plugins, load_plugins
    from katha.agents.graph import build_graph
    from katha.agents.prepare import check_plan, make_plan
    from katha.agents.redo import redo_frame
    from katha.agents.run import run_story

__all__ = [
    "Plugins",
    "ReviewChoice",
    "ReviewRequest",
    "RunResult",
    "build_graph",
    "check_plan",
    "load_plugins",
    "make_plan",
    "redo_frame",
    "run_story",
]

_HOMES = {
    "Plugins": "context",
    "build_graph": "graph",
    "check_plan": "prepare",
    "load_plugins": "context",
    "make_plan": "prepare",
    "redo_frame": "redo",
    "run_story": "run",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for on first use: LangGraph is heavy, and a review's types are wanted without it."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
