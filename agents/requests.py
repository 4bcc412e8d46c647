"""What a renderer is asked for: a panel with its fields, or a frame between two panels; and what of it is not drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from katha.agents.context import RunContext
from katha.compass.repair import Insertion
from katha.configs import load_prompt
from katha.planners.base import capital, fit, named, worded
from katha.planners.narrated import raw_sentences
from katha.protocols import Capabilities, FrameRequest, KnowsItsLimits
from katha.schema import FrameKind, Panel, Plan

__all__ = ["in_words", "inserted_request", "scene_request", "stand_ins", "with_stand_ins"]


def scene_request(context: RunContext, panel: Panel, seed: int) -> FrameRequest:
    """Return what one panel is drawn from: its prompt, fields and characters."""
    what = Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters))
    request = replace(
        _request(context, what, seed, scene=panel.index),
        place=panel.place,
        time_of_day=panel.time_of_day,
        shot_size=panel.shot_size,
        shot_angle=panel.shot_angle,
        must_show=tuple(panel.must_show),
    )
    return in_words(request, context.plugins.renderer.capabilities)


def in_words(request: FrameRequest, able: Capabilities) -> FrameRequest:
    """Return `request` with the panel's fields and its characters' looks in the prompt too, where the renderer draws
    from the prompt alone: what it does not say yet, as far as there is room."""
    if able.panel or able.source == "found":
        return request
    said = partial(worded, text=request.prompt)
    more = load_prompt("image/panel").render(
        looks=[
            (capital(named(one.name)), one.appearance)
            for one in request.characters
            if one.appearance and not said(one.appearance)
        ],
        things=[item for item in request.must_show if not said(item)],
        place="" if said(request.place) else request.place,
        time="" if said(request.time_of_day) else request.time_of_day,
        shot="" if said(request.shot_size) else request.shot_size,
        angle="" if said(request.shot_angle) else request.shot_angle,
    )
    lines = [line for line in more.splitlines() if line.strip()]
    return replace(request, prompt=fit([request.prompt, *lines], able.prompt_tokens)) if lines else request


def inserted_request(
    context: RunContext, what: Insertion, seed: int, pair: tuple[int, int], kind: FrameKind
) -> FrameRequest:
    """A frame between two scenes: where and when the first of them is, as far as the plan says."""
    panel = context.plan().panels[pair[0] - 1]
    request = replace(_request(context, what, seed, kind=kind), place=panel.place, time_of_day=panel.time_of_day)
    return in_words(request, context.plugins.inserter.capabilities)


def _request(
    context: RunContext, what: Insertion, seed: int, kind: FrameKind = "scene", scene: int | None = None
) -> FrameRequest:
    plan, (width, height) = context.plan(), context.size
    return FrameRequest(
        prompt=what.prompt,
        seed=seed,
        width=width,
        height=height,
        negative_prompt=what.negative_prompt,
        style=plan.style,
        kind=kind,
        scene=scene,
        characters=tuple(item for item in plan.characters if item.name in what.characters),
        story_id=plan.story_id,
    )


# What the renderer has no picture for: a sentence that is told with a stand-in is no sentence that is drawn.


def with_stand_ins(context: RunContext) -> Plan:
    """Return the run's plan with the words of each panel that its renderer cannot draw, and the sentences that only
    stand-ins tell; the plan as it is where the renderer cannot say."""
    plan, renderer = context.plan(), context.plugins.renderer
    if not isinstance(renderer, KnowsItsLimits):
        return plan
    panels = [
        panel.model_copy(update={"not_drawn": list(renderer.not_drawn(scene_request(context, panel, 0)))})
        for panel in plan.panels
    ]
    known = plan.coverage
    if known is not None:
        told = dict.fromkeys((sentence, word) for panel in panels for sentence, word in stand_ins(panel))
        sentences, words = (list(dict.fromkeys(column)) for column in zip(*told, strict=True)) if told else ([], [])
        known = known.model_copy(update={"in_part": sentences, "stand_ins": words})
    return plan.model_copy(update={"panels": panels, "coverage": known})


def stand_ins(panel: Panel) -> Iterator[tuple[str, str]]:
    """Yield the words of a panel's prompt that are not drawn, each with its sentence of the caption, sentence first."""
    sentences = [text.strip() for text in raw_sentences(panel.caption) if text.strip()]
    for word in panel.not_drawn:
        last = word.split()[-1].lower()
        stem = re.compile(rf"\b{re.escape(last[:_STEM] if len(last) > _STEM else last)}")
        if sentences and stem.search(panel.prompt.lower()):
            yield next((text for text in sentences if stem.search(text.lower())), sentences[0]), word


_STEM = 5
"""The letters by which a word is known in another form: "crack" in "cracked"."""
