"""The contract of a planner as a test."""

from __future__ import annotations

from collections.abc import Callable

from katha.jsonio import digest
from katha.planners import validate_plan
from katha.protocols import Planner, PlanRequest
from katha.schema import StoryRecord
from katha.testing.trials import need, other_random_numbers, require_spec, run_checks, same_random_numbers

__all__ = ["check_planner"]


def check_planner(make: Callable[[], Planner], story: StoryRecord, request: PlanRequest | None = None) -> list[str]:
    """Try everything that katha expects of a planner on `story`; the names of the checks.

    Raises:
        ContractError: the planner breaks its contract; the message lists how.
    """
    wanted = request or PlanRequest(panels=len(story.scenes) or 5)
    planner, before = make(), digest(story.model_dump(mode="json"))

    def names_itself() -> None:
        require_spec(planner, make())

    def plans() -> None:
        with other_random_numbers(3), same_random_numbers():
            plan = planner.plan(story, wanted)
        validate_plan(plan, story)
        need(len(plan.panels) == wanted.panels, f"{wanted.panels} panels were asked for, {len(plan.panels)} came")
        need(digest(story.model_dump(mode="json")) == before, "the story was changed")

    def repeats() -> None:
        first, again = planner.plan(story, wanted), make().plan(story, wanted)
        need(first == again, "the same story gave another plan")

    checks = [("spec", names_itself), ("plan", plans), ("repetition", repeats)]
    return run_checks(f"The planner {type(planner).__name__}", checks)
