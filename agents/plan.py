"""Before anything is drawn: the plan, its fit with the story, and the questions with their halves and options."""

from __future__ import annotations

from katha.agents.context import make_planner, make_renderer
from katha.config import RunConfig
from katha.errors import PlanError
from katha.eval_bridge.questions.build import build_questions, prepare_questions
from katha.protocols import Planner, PlanRequest, Renderer
from katha.schema import Plan, StoryRecord, Transition


def make_plan(record: StoryRecord, config: RunConfig) -> Plan:
    """Return the plan that a run with `config` would draw.

    Raises:
        UsageError: the story cannot be planned, with what to do.
    """
    return plan_with(make_planner(config), make_renderer(config), record, config)


def plan_with(planner: Planner, renderer: Renderer, record: StoryRecord, config: RunConfig) -> Plan:
    """Return the plan of `record` by `planner`, within the limits of `renderer`, checked."""
    return plan_within(planner, record, config, renderer.capabilities.prompt_tokens)


def plan_within(planner: Planner, record: StoryRecord, config: RunConfig, prompt_tokens: int | None) -> Plan:
    """Return the plan of `record` by `planner`, within a prompt limit in tokens, checked.

    Some planners know no transitions. Where the record has none either, they are read from the story by rule, so that
    every planner's board of a plain text is asked the same questions; `transitions_from` says so.
    """
    request = PlanRequest(panels=config.panels, style=config.style, prompt_tokens=prompt_tokens)
    plan = planner.plan(record, request)
    if not plan.transitions and not record.transitions:
        derived = _derived_transitions(record, request)
        plan = plan.model_copy(update={"transitions": derived, "transitions_from": "rule" if derived else ""})
    check_plan(plan, record, config)
    return plan


def _derived_transitions(record: StoryRecord, request: PlanRequest) -> list[Transition]:
    """What the rule planner reads; nothing where it cannot read the story."""
    from katha.planners.rule import RulePlanner

    try:
        return RulePlanner().plan(record, request).transitions
    except PlanError:
        return []


def check_plan(plan: Plan, record: StoryRecord, config: RunConfig) -> None:
    """Refuse a plan that does not fit its story.

    Raises:
        PlanError: another story's, panels or transitions out of order, or an unknown character; the place is named.
    """
    what = f"The plan of {plan.story_id!r}"
    if plan.story_id != record.story_id:
        raise PlanError(f"{what} is not of the story {record.story_id!r}.", hint="Give the plan of this story.")
    indices = [panel.index for panel in plan.panels]
    if indices != list(range(1, len(indices) + 1)) or len(indices) < 2:
        raise PlanError(f"{what} numbers its panels {indices}; at least two are needed, from 1, in order.")
    if len(indices) != config.panels:
        raise PlanError(f"{what} has {len(indices)} panels, the run {config.panels}.", hint="Set --panels to match.")
    blank = next((panel.index for panel in plan.panels if not panel.prompt.strip()), None)
    if blank is not None:
        raise PlanError(f"{what}, panel {blank}, has no prompt.", hint="Say what the panel shows.")
    _check_transitions(what, plan)
    known = {character.name for character in plan.characters}
    for panel in plan.panels:
        stranger = next((name for name in panel.characters if name not in known), None)
        if stranger is not None:
            hint = "Add it to the plan's characters."
            raise PlanError(f"{what}, panel {panel.index}, names the unknown character {stranger!r}.", hint=hint)


def _check_transitions(what: str, plan: Plan) -> None:
    pairs = [item.pair for item in plan.transitions]
    allowed = {(index, index + 1) for index in range(1, len(plan.panels))}
    wrong = next((pair for pair in pairs if pair not in allowed), None)
    if wrong is not None:
        raise PlanError(f"{what} has a transition {wrong[0]} to {wrong[1]}, which joins no adjacent panels.")
    if len(set(pairs)) != len(pairs):
        raise PlanError(f"{what} has a transition twice.")


def prepare_story(record: StoryRecord, plan: Plan) -> StoryRecord:
    """Return the story with the questions that will be asked: its own, or built from the transitions; with options."""
    annotated = plan.model_copy(update={"transitions": record.transitions}) if record.transitions else plan
    questions = record.recoverability_questions or plan.questions or build_questions(record, annotated)
    prepared = prepare_questions(questions, (), seed=42)
    return record.model_copy(update={"recoverability_questions": prepared})
