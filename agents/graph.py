"""The state machine: plan -> render* -> critique* -> select -> [localize -> bridge* -> critique* -> review] -> decide
-> judge -> report, where * is one branch per seed or candidate."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy

from katha.agents import nodes, routes
from katha.agents.context import RunContext
from katha.agents.deciding import review
from katha.agents.state import BridgeTask, CritiqueTask, RenderTask, RunState
from katha.errors import TransientJudgeError, TransientRenderError

__all__ = ["RETRY", "build_graph"]

RETRY = RetryPolicy(
    initial_interval=0.5, backoff_factor=2.0, max_attempts=4, retry_on=(TransientRenderError, TransientJudgeError)
)
"""What is tried again: failures that their plug-in calls transient, with the same bytes. What was done before the
failure is in the cache, so that only the rest is done."""

Graph = CompiledStateGraph[RunState, RunContext, RunState, RunState]


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None = None, *, reports: bool = True) -> Graph:
    """The compiled machine; run it with a `RunContext`. Without `reports` it ends with the decision."""
    retry = RETRY
    graph = StateGraph(RunState, context_schema=RunContext)
    graph.add_node("plan", nodes.plan, retry_policy=retry)
    graph.add_node("render", nodes.render, input_schema=RenderTask, retry_policy=retry)
    graph.add_node("critique", nodes.critique, input_schema=CritiqueTask, retry_policy=retry)
    graph.add_node("select", nodes.select)
    graph.add_node("localize", nodes.localize)
    graph.add_node("bridge", nodes.bridge, input_schema=BridgeTask, retry_policy=retry)
    graph.add_node("critique_bridges", nodes.critique, input_schema=CritiqueTask, retry_policy=retry)
    graph.add_node("review", review)
    graph.add_node("decide", nodes.decide)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", routes.after_plan, ["render"])
    graph.add_edge("critique", "select")
    graph.add_conditional_edges("select", routes.after_select)
    graph.add_conditional_edges("localize", routes.after_localize, ["bridge", "decide"])
    graph.add_conditional_edges("critique_bridges", routes.after_critique)
    graph.add_conditional_edges("review", routes.after_review, ["bridge", "decide"])
    if reports:
        graph.add_node("judge", nodes.judge, retry_policy=retry)
        graph.add_node("report", nodes.report)
        graph.add_edge("judge", "report")
        graph.add_edge("report", END)
    done = "judge" if reports else END
    graph.add_conditional_edges("decide", routes.after_decide, {"localize": "localize", "done": done})
    return graph.compile(checkpointer=checkpointer, name="katha")
