"""Another planner's plan with VinaBench's constraints in its prompts."""

from __future__ import annotations

import pytest

from katha.errors import UnknownPluginError, UsageError
from katha.planners.narrated import ConstrainedPlanner
from katha.protocols import PlanRequest
from katha.registry import default_registry
from katha.schema import StoryRecord
from katha.testing import check_planner
from katha_sketch.planner.rule import RulePlanner

STORY = StoryRecord(
    story_id="fox",
    title="The fox",
    story_text="A fox saw a crow with a cheese in a tree. The fox asked for the cheese. It fell. The fox ran.",
)


def test_the_inner_plan_stays_and_its_prompts_tell_the_constraints() -> None:
    request = PlanRequest(panels=3)
    inner, made = RulePlanner().plan(STORY, request), ConstrainedPlanner("rule").plan(STORY, request)
    assert [panel.caption for panel in made.panels] == [panel.caption for panel in inner.panels]
    assert made.planner == "constrained:rule"
    for panel, plain in zip(made.panels, inner.panels, strict=True):
        assert panel.prompt.startswith(plain.prompt[:20])
        assert " [Characters] " in panel.prompt
        assert " [Time of Day] " in panel.prompt
        assert " [Location] " in panel.prompt
    assert any("fox" in panel.prompt.partition("[Characters]")[2] for panel in made.panels)


def test_it_keeps_the_contract() -> None:
    assert check_planner(lambda: ConstrainedPlanner("direct"), STORY, PlanRequest(panels=3))


@pytest.mark.parametrize("spec", ["constrained", "constrained:constrained", "constrained:constrained:direct"])
def test_it_plans_by_no_planner_that_is_not_named(spec: str) -> None:
    with pytest.raises(UsageError, match="cannot plan by itself") as caught:
        default_registry("planners").create(spec)
    hint = str(caught.value.hint)
    assert hint.startswith("Write constrained:PLANNER with one of: ")
    assert {"direct", "oracle", "rule"} <= set(hint.rstrip(".").partition(": ")[2].split(", "))
    assert "constrained," not in hint


def test_the_planner_that_is_named_must_be_installed() -> None:
    with pytest.raises(UnknownPluginError, match="'ruler'"):
        ConstrainedPlanner("ruler")
