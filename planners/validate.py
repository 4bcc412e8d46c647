"""A plan that a person has edited, against the story it is for."""

from __future__ import annotations

from katha.errors import PlanError
from katha.schema import Plan, StoryRecord

__all__ = ["validate_plan"]


def validate_plan(plan: Plan, record: StoryRecord) -> None:
    """Refuse a plan that does not fit `record` or does not hold together.

    Raises:
        PlanError: the field is named: `story_id`, `panels`, `panels[2].prompt`, `panels[2].characters`, `transitions`.
    """
    name = record.story_id
    if plan.story_id != name:
        raise PlanError(
            f"Plan field 'story_id' is {plan.story_id!r}, but the story is {name!r}.",
            hint="Give the plan that was made for this story, or change its 'story_id'.",
        )
    indices = [panel.index for panel in plan.panels]
    if len(indices) < 2 or indices != list(range(1, len(indices) + 1)):
        raise PlanError(
            f"Plan of {name!r}: field 'panels' must hold at least two panels with 'index' 1, 2, 3 ... in order, "
            f"not {indices}."
        )
    known = {character.name for character in plan.characters}
    if len(known) != len(plan.characters):
        raise PlanError(
            f"Plan of {name!r}: field 'characters' has a name twice.", hint="Give each character its own name."
        )
    for panel in plan.panels:
        where = f"Plan of {name!r}: field 'panels[{panel.index}]"
        if not panel.prompt.strip():
            raise PlanError(f"{where}.prompt' is empty.", hint="Say what is to be seen.")
        strangers = [who for who in panel.characters if who not in known]
        if strangers:
            raise PlanError(
                f"{where}.characters' names {strangers[0]!r}, who is not in 'characters'.",
                hint=f"Known: {', '.join(sorted(known)) or 'nobody'}.",
            )
    _check_transitions(plan, len(indices))


def _check_transitions(plan: Plan, panels: int) -> None:
    """All of them, or none: planners that know no transitions leave the field empty."""
    pairs = [transition.pair for transition in plan.transitions]
    wanted = [(at, at + 1) for at in range(1, panels)]
    for first, second in pairs:
        if (first, second) not in wanted:
            raise PlanError(
                f"Plan of {plan.story_id!r}: field 'transitions' joins panels {first} and {second}, which are not "
                f"adjacent panels of 1 to {panels}."
            )
    if len(set(pairs)) != len(pairs):
        raise PlanError(f"Plan of {plan.story_id!r}: field 'transitions' joins the same two panels twice.")
    missing = [pair for pair in wanted if pair not in pairs]
    if missing and pairs:
        first, second = missing[0]
        raise PlanError(
            f"Plan of {plan.story_id!r}: field 'transitions' has none from panel {first} to panel {second}.",
            hint="Add it, with at least an action and a consequence.",
        )
