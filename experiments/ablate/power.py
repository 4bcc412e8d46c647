"""What a suite can show, told before it runs and again with its own spread."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from katha.compass.modes import Suite
from katha.configs import load_config
from katha.eval_bridge.scoring.rows import smallest_difference, stories_needed
from katha.schema.tables import RowComparison


class Pilot(BaseModel):
    """`configs/power.yaml`: the spread that a suite is planned with, and what its reader is told stories for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    spread: float = Field(gt=0)
    power: float = Field(gt=0.05, lt=1)
    points: float = Field(gt=0)

    @classmethod
    def load(cls) -> Self:
        """Return the one that ships with katha."""
        return cls.model_validate(load_config("power.yaml"))

    def can_show(self, stories: int, spread: float | None = None) -> str:
        """Return what a two-sided test of one contrast over so many stories finds, in words."""
        spread = self.spread if spread is None else spread
        least = smallest_difference(spread, stories, power=self.power)
        needed = stories_needed(spread, self.points, power=self.power)
        shown = "no difference can be shown" if least is None else f"a true difference of {least:.0f} points is shown"
        return (
            f"with {stories} {'story' if stories == 1 else 'stories'} {shown}"
            f"{'' if least is None else f' in {self.power:.0%}'}, and {self.points:g} points take {needed:,} stories"
        )


def planned(suite: Suite, stories: int) -> str:
    """Return, before anything is drawn, the smallest difference that the suite's contrast can show at these stories."""
    pilot = Pilot.load()
    named = " against ".join(suite.primary) if suite.primary else "one contrast"
    return (
        f"Planned ({named}): {pilot.can_show(stories)}; stories are taken to differ by {pilot.spread:g} points "
        "(configs/power.yaml)."
    )


def found(row: RowComparison) -> str | None:
    """Return what the contrast could show with the spread that its own stories have; None where there is none."""
    told = row.headline
    if told.spread is None or told.spread <= 0 or told.ci95 is None:
        return None
    able = Pilot.load().can_show(told.n_stories, told.spread)
    return f"By the spread of these stories ({told.spread:.0f} points), {able}."
