"""What a command would draw and ask, before it does (`--dry-run`): counts, tokens and dollars, at most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

Kind = Literal["plans", "pictures", "answers", "metrics"]


class Need(BaseModel):
    """One plug-in: how often it would be called. cost: US dollars; 0 on this machine, None where the price is unknown.

    note: why it could not be used as things are now (no weights, no package); it is counted all the same.
    """

    model_config = ConfigDict(frozen=True)

    kind: Kind
    name: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    note: str = ""


class Needs(BaseModel):
    """Everything that a command would call, and the notes that its counts need."""

    model_config = ConfigDict(frozen=True)

    dry_run: Literal[True] = True
    stories: int
    needs: tuple[Need, ...]
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> float | None:
        """Dollars in all; None where one price is unknown."""
        costs = [need.cost for need in self.needs if need.calls]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @classmethod
    def total(cls, stories: int, needs: Iterable[Need], notes: Iterable[str] = ()) -> Self:
        """Return the needs with those of one plug-in added up, in the order in which they come first."""
        summed: dict[tuple[Kind, str], Need] = {}
        for need in needs:
            known = summed.get((need.kind, need.name))
            summed[need.kind, need.name] = need if known is None else _added(known, need)
        return cls(stories=stories, needs=tuple(summed.values()), notes=tuple(dict.fromkeys(notes)))


def _added(a: Need, b: Need) -> Need:
    cost = None if a.cost is None or b.cost is None else a.cost + b.cost
    return a.model_copy(
        update={
            "calls": a.calls + b.calls,
            "input_tokens": a.input_tokens + b.input_tokens,
            "output_tokens": a.output_tokens + b.output_tokens,
            "cost": cost,
            "note": a.note or b.note,
        }
    )
