"""A plan that a person has changed: panels are numbered by their order; what rested on the old ones is made anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from katha.errors import PlanError
from katha.jsonio import digest
from katha.planners.base import require_readable
from katha.reading import story_reader
from katha.schema import Coverage, Panel, Plan, PlanMarks, StoryRecord, Transition

__all__ = ["read_plan", "resealed", "with_hash"]


def with_hash(plan: Plan) -> Plan:
    """Return `plan` with the marks by which a later reader sees what of it was changed by hand."""
    made = PlanMarks(
        panels=[_mark(panel) for panel in plan.panels], transitions=[_text(one) for one in plan.transitions]
    )
    return plan.model_copy(update={"made": made})


def resealed(plan: Plan, record: StoryRecord, before: Plan) -> Plan:
    """Return a plan that was edited in its run, with its marks and its coverage counted again; the plan as it is where
    nothing that they rest on has changed. before: the plan as it was; what was in a picture of it that is drawn from
    the same words is in it still, whatever is written below."""
    fresh = with_hash(plan)
    if plan.made is None or fresh.made == plan.made:
        return plan
    coverage = story_reader().covered(plan.coverage, record, plan.panels) if plan.coverage is not None else None
    if coverage is not None and before.coverage is not None:
        coverage = _still_drawn(coverage, plan.panels, before.coverage, before.panels)
    return fresh.model_copy(update={"coverage": coverage, "renewed": []})


def _still_drawn(now: Coverage, panels: Sequence[Panel], then: Coverage, were: Sequence[Panel]) -> Coverage:
    """The coverage with the sentences that are lost by their captions alone: their pieces of the story are drawn from
    the words that they were drawn from."""
    known = {(panel.prompt, panel.source) for panel in were}
    pieces = [" ".join(panel.source.split()) for panel in panels if (panel.prompt, panel.source) in known]
    lost = set(then.not_drawn)
    kept = [one for one in now.not_drawn if one not in lost and any(" ".join(one.split()) in piece for piece in pieces)]
    left = [one for one in now.not_drawn if one not in kept]
    return now.model_copy(update={"not_drawn": left, "drawn": now.drawn + len(kept)})


def _mark(panel: Panel) -> str:
    """The hash of what transitions rest on: what is shown and told, and who is in it."""
    return digest([panel.prompt, panel.caption, panel.characters])[:16]


def _text(step: Transition) -> str:
    return digest([step.action, step.causality, step.intention, step.emotion, step.consequence, step.moral_target])[:16]


def read_plan(value: object, record: StoryRecord) -> Plan:
    """Return the plan that a file holds, its panels numbered as they stand in it.

    A transition is kept where both of its panels are as they were, or where it was changed by hand itself; the others
    are read from the prompts. `Plan.renewed` says what was made again and what was kept.

    Raises:
        ValidationError: it is not a plan. PlanError: a transition joins panels that were never there.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("panels"), list):
        return Plan.model_validate(value)
    rows = [row if isinstance(row, Mapping) else {} for row in value["panels"]]
    given = [Transition.model_validate(row) for row in value.get("transitions") or ()]
    numbered = [{**row, "index": at} for at, row in enumerate(rows, 1)]
    plan = Plan.model_validate({**value, "panels": numbered, "transitions": [], "renewed": []})
    require_readable(plan)
    if record.transitions or len(plan.panels) < 2:
        return plan.model_copy(update={"transitions": given})
    known = max(len(rows), len(plan.made.panels if plan.made else ()))
    for step in given:
        if step.to_scene != step.from_scene + 1 and step.to_scene > known:
            where = f"panels {step.from_scene} and {step.to_scene}"
            raise PlanError(f"Plan field 'transitions' joins {where}, which are not adjacent panels of 1 to {known}.")
    steps, said = _Renewal(plan, given, [row.get("index") for row in rows]).steps()
    if plan.questions and said:
        said.append(f"The plan's own {len(plan.questions)} questions are kept as they are.")
    if plan.coverage is not None and [_mark(panel) for panel in plan.panels] != (plan.made or PlanMarks()).panels:
        plan = plan.model_copy(update={"coverage": story_reader().covered(plan.coverage, record, plan.panels)})
    return with_hash(plan.model_copy(update={"transitions": steps, "renewed": said}))


class _Renewal:
    """The transitions of a changed plan. numbers: what each panel was called in the file, None for no number."""

    def __init__(self, plan: Plan, given: Sequence[Transition], numbers: Sequence[object]) -> None:
        self._plan, self._given, self._numbers = plan, given, numbers
        self._made = plan.made or PlanMarks()
        self._now = [_mark(panel) for panel in plan.panels]

    def steps(self) -> tuple[list[Transition], list[str]]:
        """Return all of them, and what a person is told."""
        count, said = len(self._plan.panels), []
        kept = [self._kept(at) for at in range(1, count)]
        lost = [at for at, step in enumerate(kept, 1) if step is None]
        by_hand = [at for at, step in enumerate(kept, 1) if step is not None and self._by_hand(at, step)]
        fresh = self._read() if lost else {}
        steps = [step or fresh[at] for at, step in enumerate(kept, 1)]
        numbers = self._numbers
        if any(number != at for at, number in enumerate(numbers, 1)):
            said.append(f"The panels are numbered 1 to {count} in the order of the file.")
        if lost:
            said.append(f"Made again from the prompts: {_pairs(lost)}.")
        if by_hand:
            said.append(f"Kept, because it was changed by hand as well: {_pairs(by_hand)}.")
        return steps, said

    def _kept(self, at: int) -> Transition | None:
        """The transition from panel `at` to the next one that still holds."""
        old, hand = self._made.panels, set(self._made.transitions)
        for step in self._given:
            first = step.from_scene
            same = old[first - 1 : first + 1] == self._now[at - 1 : at + 1] and first >= 1
            if _text(step) in hand and same:
                return _between(step, at)
        pair = tuple(self._numbers[at - 1 : at + 1])
        own = (step for step in self._given if _text(step) not in hand and step.pair == pair)
        return next((_between(step, at) for step in own), None)

    def _by_hand(self, at: int, step: Transition) -> bool:
        """Return whether a kept transition rests on panels that were changed."""
        changed = any(mark not in self._made.panels for mark in self._now[at - 1 : at + 1])
        return bool(self._made.panels) and changed and _text(step) not in self._made.transitions

    def _read(self) -> dict[int, Transition]:
        """Every transition as the prompts tell it; where they cannot be read, what the later panel shows."""
        prompts = [panel.prompt for panel in self._plan.panels]
        found = story_reader().linked(self._plan.story_id, prompts) or [
            Transition(story_id=self._plan.story_id, from_scene=at, to_scene=at + 1, action=prompt)
            for at, prompt in enumerate(prompts[1:], 1)
        ]
        return {step.from_scene: step for step in found}


def _between(step: Transition, at: int) -> Transition:
    return step.model_copy(update={"from_scene": at, "to_scene": at + 1})


def _pairs(places: Sequence[int]) -> str:
    one, *more = (f"{at} to {at + 1}" for at in places)
    return f"the transitions from panel {', '.join((one, *more))}" if more else f"the transition from panel {one}"
