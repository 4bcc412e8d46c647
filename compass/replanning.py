"""Re-planning before drawing: the transition that the prompts tell least is told in the later scene's prompt."""

from __future__ import annotations

from collections.abc import Sequence

from katha.compass.content import random_pair, told_transition, transition_text
from katha.compass.modes import Mode
from katha.prompting import load_prompt
from katha.protocols import Similarity
from katha.schema import Panel, Plan, Transition

__all__ = ["replan", "weakest_prompts"]

_TOKENS_A_WORD = 1.4


def weakest_prompts(plan: Plan, transitions: Sequence[Transition], similarity: Similarity) -> tuple[int, int] | None:
    """The pair of scenes whose prompts are least like their transition: Eq. 25's maximum over prompts, not pictures."""
    prompts = {panel.index: similarity.encode_text(panel.prompt) for panel in plan.panels}

    def told(step: Transition) -> float:
        text = similarity.encode_text(transition_text(step))
        return max(float(prompts[scene] @ text) for scene in step.pair)

    return min(transitions, key=lambda step: (told(step), step.pair)).pair if transitions else None


def replan(
    plan: Plan,
    transitions: Sequence[Transition],
    mode: Mode,
    similarity: Similarity,
    story_id: str,
    limit: int | None = None,
) -> Plan:
    """`plan` with one panel's prompt telling a transition, as `mode.replan` says; the same plan again is not changed.

    limit: the renderer's prompt tokens; sentences that would not fit are left out.
    """
    if mode.replan == "none" or plan.replanned is not None or not transitions:
        return plan
    pairs = [step.pair for step in transitions]
    weakest = weakest_prompts(plan, transitions, similarity)
    pair = random_pair(pairs, story_id) if mode.replan == "random" or weakest is None else weakest
    step = next(item for item in transitions if item.pair == pair)
    panels = [_told(panel, step, limit) if panel.index == step.to_scene else panel for panel in plan.panels]
    return plan.model_copy(update={"panels": panels, "replanned": pair})


def _told(panel: Panel, step: Transition, limit: int | None) -> Panel:
    events = [text for text in told_transition(step) if text.lower().rstrip(".") not in panel.prompt.lower()]
    prompt = load_prompt("bridge/replan").render(prompt=panel.prompt, events=events)
    while events and limit is not None and len(prompt.split()) * _TOKENS_A_WORD > limit:
        events.pop()
        prompt = load_prompt("bridge/replan").render(prompt=panel.prompt, events=events)
    return panel.model_copy(update={"prompt": prompt})
