"""Pictures within a command's budget: asked for before each one, settled with what it did cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from katha.errors import BudgetError, UsageError
from katha.eval_bridge.budget import Budget, Metered, Tally
from katha.protocols import CostsMoney, Evidence, Judge, JudgePrompt, JudgeReply, KeepsReceipts, Renderer

__all__ = ["capped", "paid", "require_prices"]

T = TypeVar("T")
_STOPPED = "The budget is used up; what was paid for is kept."
_HINT = "Give the same command again, with a higher --max-cost or --max-calls, to go on."


def paid(budget: Budget | None, renderer: Renderer, draw: Callable[[], T]) -> T:
    """What `draw` gives, which asks `renderer` for one frame; free where no frame of it costs anything.

    Raises:
        BudgetError: the frame could cost more than is left; it was not asked for.
    """
    if budget is None or not isinstance(renderer, CostsMoney):
        return draw()
    each = renderer.frame_price or 0.0
    if not budget.grant(1, each):
        raise BudgetError(_STOPPED, hint=_HINT)
    cost: float | None = 0.0  # a call that failed is a call; a service charges for pictures
    try:
        drawn = draw()
        cost = _cost(renderer, each)
    finally:
        budget.settle(each, cost)
    return drawn


def _cost(renderer: Renderer, expected: float) -> float:
    """What the frame given last did cost, or was expected to."""
    known = renderer.receipt().get("cost") if isinstance(renderer, KeepsReceipts) else None
    return expected if known is None else float(known)


def require_prices(budget: Budget | None, renderers: Mapping[str, Renderer | None]) -> None:
    """Refuse a budget in dollars over pictures whose price is unknown; `renderers` by the names they were asked for.

    Raises:
        UsageError: the renderer is named.
    """
    for name, renderer in renderers.items() if budget is not None and budget.max_cost is not None else ():
        if isinstance(renderer, CostsMoney) and renderer.frame_price is None:
            raise UsageError(
                f"The price of a picture by {name!r} is unknown, so --max-cost cannot hold.",
                hint="Give --renderer-option price=DOLLARS, or limit it by --max-calls.",
            )


def capped(judges: Mapping[str, Judge], budget: Budget | None) -> dict[str, Judge]:
    """The judges of a run within `budget`.

    Raises:
        UsageError: the budget is in dollars and a judge's price is unknown.
    """
    return {name: judge if budget is None else _Capped(judge, budget) for name, judge in judges.items()}


class _Capped:
    """A judge of a run, which stops the run when the budget is used up: a run with unasked questions is not finished.

    In `katha eval` and for a comparison's boards such questions are counted as `budget_stopped` instead.
    """

    def __init__(self, judge: Judge, budget: Budget) -> None:
        """Take the judge's price.

        Raises:
            UsageError: the budget is in dollars and the judge's price is unknown.
        """
        self._metered = Metered(judge, budget, Tally())
        self.always_chooses = self._metered.always_chooses
        self.exclusive, self.concurrency = self._metered.exclusive, self._metered.concurrency

    def spec(self) -> Mapping[str, Any]:
        """The inner judge's."""
        return self._metered.spec()

    @property
    def amended(self) -> Mapping[str, Any]:
        """The inner judge's."""
        return self._metered.amended

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt.

        Raises:
            BudgetError: the budget is used up; the replies before are kept.
        """
        for reply in self._metered.ask(evidence, prompts):
            if reply.status == "budget_stopped":
                raise BudgetError(_STOPPED, hint=_HINT)
            yield reply

    def close(self) -> None:
        """Let the inner judge go of its memory, if it can."""
        self._metered.close()
