"""The state machine: plan -> render* -> critique* -> select -> [localize -> bridge* -> critique* -> review] -> decide
-> judge -> report, where * is one branch per seed or candidate.
"""

from __future__ import annotations

from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy, Send

from katha.agents import nodes
from katha.agents.boards import insertion_seeds
from katha.agents.context import RunContext
from katha.agents.decide import review
from katha.agents.state import BridgeTask, CritiqueTask, Place, RenderTask, RunState
from katha.errors import TransientJudgeError, TransientRenderError

# Where the machine goes next. A route reads the mode's data and the state, never a mode's name: a new mode is a row in
# configs/modes.yaml and no branch here.


def after_plan(state: RunState, runtime: Runtime[RunContext]) -> list[Send]:
    """One branch of `render` per seed whose board is a candidate."""
    return [Send("render", RenderTask(seed=seed)) for seed in runtime.context.candidate_seeds]


def after_select(state: RunState, runtime: Runtime[RunContext]) -> Literal["localize", "decide"]:
    """A mode that inserts nothing has nothing to localize."""
    return "decide" if runtime.context.mode.insert == "none" else "localize"


def _bridges(state: RunState, context: RunContext, place: Place) -> list[Send]:
    board, prompt = state["boards"][state["selected"]], state.get("bridge_prompt")
    return [
        Send("bridge", BridgeTask(seed=seed, board=board, pair=place.pair, prompt=prompt))
        for seed in insertion_seeds(context, board)
    ]


def after_localize(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["decide"]:
    """One branch of `bridge` per seed, when a frame is to go in."""
    weakest = state.get("weakest")
    return _bridges(state, runtime.context, weakest) if weakest is not None and weakest.insert else "decide"


def after_critique(state: RunState, runtime: Runtime[RunContext]) -> Literal["review", "decide"]:
    """A person decides when the run asks for it."""
    return "review" if runtime.context.config.review else "decide"


def after_decide(state: RunState, runtime: Runtime[RunContext]) -> Literal["localize", "done"]:
    """An accepted frame is followed by another while the mode's budget lasts."""
    again = state["decision"].accepted and state.get("rounds", 0) < runtime.context.mode.budget
    return "localize" if again and not runtime.context.config.review else "done"


def after_review(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["decide"]:
    """An edited prompt is drawn again with every seed, and reviewed again."""
    choice, weakest = state.get("choice"), state.get("weakest")
    edited = choice is not None and choice.action == "edit"
    return _bridges(state, runtime.context, weakest) if edited and weakest is not None else "decide"


RETRY = RetryPolicy(
    initial_interval=0.5, backoff_factor=2.0, max_attempts=4, retry_on=(TransientRenderError, TransientJudgeError)
)
"""What is tried again: failures that their plug-in calls transient, with the same bytes. What was done before the
failure is in the cache, so that only the rest is done."""

Graph = CompiledStateGraph[RunState, RunContext, RunState, RunState]


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None = None, *, reports: bool = True) -> Graph:
    """Return the compiled machine; run it with a `RunContext`. Without `reports` it ends with the decision."""
    graph = StateGraph(RunState, context_schema=RunContext)
    graph.add_node("plan", nodes.plan, retry_policy=RETRY)
    graph.add_node("render", nodes.render, input_schema=RenderTask, retry_policy=RETRY)
    graph.add_node("critique", nodes.critique, input_schema=CritiqueTask, retry_policy=RETRY)
    graph.add_node("select", nodes.select)
    graph.add_node("localize", nodes.localize)
    graph.add_node("bridge", nodes.bridge, input_schema=BridgeTask, retry_policy=RETRY)
    graph.add_node("critique_bridges", nodes.critique, input_schema=CritiqueTask, retry_policy=RETRY)
    graph.add_node("review", review)
    graph.add_node("decide", nodes.decide)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_plan, ["render"])
    graph.add_edge("critique", "select")
    graph.add_conditional_edges("select", after_select)
    graph.add_conditional_edges("localize", after_localize, ["bridge", "decide"])
    graph.add_conditional_edges("critique_bridges", after_critique)
    graph.add_conditional_edges("review", after_review, ["bridge", "decide"])
    if reports:
        graph.add_node("judge", nodes.judge, retry_policy=RETRY)
        graph.add_node("report", nodes.report)
        graph.add_edge("judge", "report")
        graph.add_edge("report", END)
    done = "judge" if reports else END
    graph.add_conditional_edges("decide", after_decide, {"localize": "localize", "done": done})
    return graph.compile(checkpointer=checkpointer, name="katha")


def make_graph() -> Graph:
    """Return the machine for LangGraph Studio and `langgraph dev` (`langgraph.json`), which bring their checkpointer.

    The drawing of the graph is what Studio is for here; a run needs the `RunContext` that `run_story` makes.
    """
    return build_graph()
