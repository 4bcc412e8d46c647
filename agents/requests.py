"""What a renderer is asked for: a panel with its fields, or a frame between two panels; and what of it is not drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from katha.agents.context import RunContext
from katha.agents.pictures import as_drawn
from katha.compass.repair import Insertion
from katha.configs import load_prompt
from katha.planners.base import WORD, capital, fit, named, worded
from katha.planners.narrated import raw_sentences
from katha.protocols import Capabilities, FrameRequest, KnowsItsLimits
from katha.schema import Frame, FrameKind, Panel, Plan

__all__ = [
    "frame_request",
    "in_words",
    "inserted_request",
    "panel_request",
    "scene_request",
    "stand_ins",
    "with_stand_ins",
]


def scene_request(context: RunContext, panel: Panel, seed: int) -> FrameRequest:
    """Return what one panel is drawn from: its prompt, fields and characters."""
    able = context.plugins.renderer.capabilities
    return _with_plan(in_words(panel_request(context.plan(), panel, seed, context.size), able), context.plan(), able)


def _with_plan(request: FrameRequest, plan: Plan, able: Capabilities) -> FrameRequest:
    """Return `request` with the whole plan, for a renderer whose frames are made of the same drawn parts."""
    return replace(request, plan=plan) if able.identity == "sources" else request


def frame_request(plan: Plan, frame: Frame, size: tuple[int, int]) -> FrameRequest:
    """Return what a renderer that draws the panels' fields was asked for a frame of a board of `plan`: all that can
    change a pixel, as far as the plan still says it."""
    panel = next((panel for panel in plan.panels if panel.index == frame.scene), None)
    if panel is not None and frame.transition is None:
        return replace(panel_request(plan, panel, frame.seed, size), prompt=frame.prompt)
    around = [panel for panel in plan.panels if panel.index in (frame.transition or (1, 2))]
    same = next((panel for panel in around if panel.prompt == frame.prompt), None)
    names = dict.fromkeys(name for panel in ([same] if same is not None else around) for name in panel.characters)
    negative = around[-1].negative_prompt if around else ""
    request = _request(plan, Insertion(frame.prompt, negative, tuple(names)), frame.seed, size, kind=frame.kind)
    return _placed(request, around[0]) if around else request


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
            if one.appearance and not said(one.appearance) and not _same(one.appearance, one.name)
        ],
        things=[item for item in request.must_show if not said(item)],
        place="" if said(request.place) else request.place,
        time="" if said(request.time_of_day) else request.time_of_day,
        shot="" if said(request.shot_size) else request.shot_size,
        angle="" if said(request.shot_angle) else request.shot_angle,
    )
    lines = [line for line in more.splitlines() if line.strip()]
    told = request.prompt if request.prompt.rstrip().endswith(_ENDS) else f"{request.prompt}."
    return replace(request, prompt=fit([told, *lines], able.prompt_tokens)) if lines else request


def _same(appearance: str, name: str) -> bool:
    """Whether a look only says the name: that the lion is a lion."""
    return bool(worded(appearance, name))


def inserted_request(
    context: RunContext, what: Insertion, seed: int, pair: tuple[int, int], kind: FrameKind
) -> FrameRequest:
    """A frame between two scenes: where and when the first of them is, as far as the plan says."""
    plan = context.plan()
    request = _placed(_request(plan, what, seed, context.size, kind=kind), plan.panels[pair[0] - 1])
    able = context.plugins.inserter.capabilities
    return _with_plan(in_words(replace(request, transition=pair), able), plan, able)


def panel_request(plan: Plan, panel: Panel, seed: int, size: tuple[int, int]) -> FrameRequest:
    """Return what a renderer that draws the panels' fields is asked for a panel."""
    what = Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters))
    return replace(
        _placed(_request(plan, what, seed, size, scene=panel.index), panel),
        shot_size=panel.shot_size,
        shot_angle=panel.shot_angle,
        must_show=tuple(panel.must_show),
    )


def _placed(request: FrameRequest, panel: Panel) -> FrameRequest:
    return replace(request, place=panel.place, time_of_day=panel.time_of_day)


def _request(
    plan: Plan,
    what: Insertion,
    seed: int,
    size: tuple[int, int],
    kind: FrameKind = "scene",
    scene: int | None = None,
) -> FrameRequest:
    width, height = size
    return FrameRequest(
        prompt=what.prompt,
        seed=seed,
        width=width,
        height=height,
        negative_prompt=what.negative_prompt,
        style=plan.style,
        kind=kind,
        scene=scene,
        characters=tuple(as_drawn(item) for item in plan.characters if item.name in what.characters),
        story_id=plan.story_id,
    )


# What the renderer has no picture for: a sentence that is told with a stand-in is no sentence that is drawn.


def with_stand_ins(context: RunContext, before: Plan | None = None) -> Plan:
    """Return the run's plan with the words of each panel that its renderer cannot draw, and the sentences that only
    stand-ins tell; the plan as it is where the renderer cannot say.

    before: the same run's plan of which that is known; panels that ask for the same picture are not read again.
    """
    plan, renderer = context.plan(), context.plugins.renderer
    if not isinstance(renderer, KnowsItsLimits):
        return plan
    was = {_wish(before, panel): panel.not_drawn for panel in before.panels} if before is not None else {}
    panels = []
    for panel in plan.panels:
        words = was.get(_wish(plan, panel))
        told = list(renderer.not_drawn(scene_request(context, panel, 0))) if words is None else words
        panels.append(panel.model_copy(update={"not_drawn": told}))
    known = plan.coverage
    if known is not None:
        partly = in_part(panels, known.not_drawn)
        sentences, words = (list(dict.fromkeys(column)) for column in zip(*partly, strict=True)) if partly else ([], [])
        known = known.model_copy(update={"in_part": sentences, "stand_ins": words})
    return plan.model_copy(update={"panels": panels, "coverage": known})


def in_part(panels: Sequence[Panel], lost: Sequence[str]) -> dict[tuple[str, str], None]:
    """Return the story's sentences of which stand-ins tell something, each with such a word, in order; one of which an
    act is `lost` counts as not drawn already."""
    told = [(_sentence_of(piece, panel), word) for panel in panels for piece, word in stand_ins(panel)]
    return dict.fromkeys(one for one in told if not any(_within(act, one[0]) for act in lost))


def _sentence_of(piece: str, panel: Panel) -> str:
    """The story's sentence of which a caption tells an act; else the caption's own."""
    whole = (text.strip() for text in raw_sentences(panel.source))
    return next((text for text in whole if piece in text or _within(piece, text)), piece)


def _within(piece: str, sentence: str) -> bool:
    """Whether all words of a piece are in a sentence."""
    return {*WORD.findall(piece.lower())} <= {*WORD.findall(sentence.lower())}


def _wish(plan: Plan, panel: Panel) -> str:
    """What tells the requests of two panels apart, whatever their size and seed."""
    return repr(panel_request(plan, panel, 0, (0, 0)))


def stand_ins(panel: Panel) -> Iterator[tuple[str, str]]:
    """Yield the words of a panel's prompt that are not drawn, each with its sentence of the caption, sentence first."""
    sentences = [text.strip() for text in raw_sentences(panel.caption) if text.strip()]
    for word in panel.not_drawn:
        last = word.split()[-1].lower()
        stem = re.compile(rf"\b{re.escape(last[:_STEM] if len(last) > _STEM else last)}")
        if sentences and stem.search(panel.prompt.lower()):
            yield next((text for text in sentences if stem.search(text.lower())), sentences[0]), word


_ENDS = (".", "!", "?", '"', "\u201d")
_STEM = 5
"""The letters by which a word is known in another form: "crack" in "cracked"."""
