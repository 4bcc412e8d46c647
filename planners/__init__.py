"""Story to plan."""

from katha.planners.validate import validate_plan

__all__ = ["validate_plan"]
