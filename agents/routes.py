"""Where the machine goes next. Each route reads the mode's data and the state, never a mode's name."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Send

from katha.agents.context import RunContext
from katha.agents.inserting import insertion_seeds
from katha.agents.state import BridgeTask, RenderTask, RunState
from katha.schema import Board

__all__ = ["after_critique", "after_decide", "after_localize", "after_plan", "after_review", "after_select"]


def after_plan(state: RunState, runtime: Runtime[RunContext]) -> list[Send]:
    """One branch of `render` per seed whose board is a candidate."""
    return [Send("render", RenderTask(seed=seed)) for seed in runtime.context.candidate_seeds]


def after_select(state: RunState, runtime: Runtime[RunContext]) -> Literal["localize", "decide"]:
    """A mode that inserts nothing has nothing to localize."""
    return "decide" if runtime.context.mode.insert == "none" else "localize"


def _bridges(state: RunState, context: RunContext) -> list[Send]:
    board = state["boards"][state["selected"]]
    first, second = (state["weakest"] or {})["pair"]
    prompt = state.get("bridge_prompt")
    return [
        Send("bridge", BridgeTask(seed=seed, board=board, pair=(first, second), prompt=prompt))
        for seed in insertion_seeds(context, Board.model_validate(board))
    ]


def after_localize(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["decide"]:
    """One branch of `bridge` per seed, when a frame is to go in."""
    weakest = state.get("weakest")
    return _bridges(state, runtime.context) if weakest and weakest["insert"] else "decide"


def after_critique(state: RunState, runtime: Runtime[RunContext]) -> Literal["review", "decide"]:
    """A person decides when the run asks for it."""
    return "review" if runtime.context.config.review else "decide"


def after_decide(state: RunState, runtime: Runtime[RunContext]) -> Literal["localize", "done"]:
    """An accepted frame is followed by another while the mode's budget lasts."""
    again = state["decision"]["accepted"] and state.get("rounds", 0) < runtime.context.mode.budget
    return "localize" if again and not runtime.context.config.review else "done"


def after_review(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["decide"]:
    """An edited prompt is drawn again with every seed, and reviewed again."""
    choice = state.get("choice") or {}
    return _bridges(state, runtime.context) if choice.get("action") == "edit" else "decide"
