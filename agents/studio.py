"""The graph as LangGraph Studio opens it (`langgraph.json`): no checkpointer, the platform brings its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from katha.agents.graph import Graph


def make_graph() -> Graph:
    """The state machine for LangGraph Studio and `langgraph dev`.

    The drawing of the graph is what Studio is for here; a run needs the `RunContext` that `run_story` makes.
    """
    from katha.agents.graph import build_graph

    return build_graph()
