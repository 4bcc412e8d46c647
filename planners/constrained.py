"""`constrained:INNER`: the plan of another planner, its prompts written as VinaBench feeds constraints to a renderer.

Sec. S3: the description with its links, then `[Characters] ... [Time of Day] ... [Location] ...`. Nothing is planned
anew: the constraints are the plan's own fields, so that `rule`, `gemma-st` and every other planner can write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha.border import checked, spec_of
from katha.errors import UsageError
from katha.protocols import Planner, PlanRequest
from katha.registry import default_registry
from katha.schema import Plan, StoryRecord
from katha.schema.narratives import narrative_of, serialise


class ConstrainedPlanner:
    """Another planner's plan with VinaBench's constraints in its prompts; `constrained:rule` unless told."""

    def __init__(self, inner: str | None = None) -> None:
        """Make the inner planner.

        Raises:
            UsageError: it is this one. UnknownPluginError: there is none of that name.
        """
        name = inner or "rule"
        if name.partition(":")[0] == "constrained":
            raise UsageError("The planner 'constrained' cannot plan by itself.", hint="Write constrained:rule.")
        self._inner: Planner = checked(default_registry("planners").create(name), Planner, f"planner {name!r}")

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the inner planner's own."""
        return {"name": "constrained", "version": 1, "inner": spec_of(self._inner, "planner")}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return the inner plan with the constraints written into each prompt."""
        plan = self._inner.plan(story, request)
        narrative = narrative_of(plan)
        panels = [
            panel.model_copy(update={"prompt": serialise(scene, narrative.profile)})
            for panel, scene in zip(plan.panels, narrative.scenes, strict=True)
        ]
        return plan.model_copy(update={"planner": f"constrained:{plan.planner}", "panels": panels})
