"""What a run spends, kept in its `run.json` whatever comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from katha.agents.folder import RunFolder
from katha.eval_bridge.judging.budget import Budget

__all__ = ["spending", "spent_told"]


@contextmanager
def spending(folder: RunFolder, budget: Budget | None) -> Iterator[None]:
    """Add the dollars of the block to what the run in a claimed folder has spent."""
    before = budget.cost if budget is not None else 0.0
    try:
        yield
    finally:
        dollars = budget.cost - before if budget is not None else 0.0
        state = folder.read() if dollars > 0 else None
        if state is not None:
            folder.write(state.model_copy(update={"spent": state.spent + dollars}))


def spent_told(dollars: float) -> str:
    """Return what a run has cost in a sentence; "" where it cost nothing."""
    if dollars <= 0:
        return ""
    return f"Spent: ${dollars:.2f}." if dollars >= 0.005 else "Spent: less than $0.01."
