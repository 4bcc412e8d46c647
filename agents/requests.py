"""What a renderer is asked for: a panel with its fields, or a frame between two panels; and what of it is not drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from katha.agents.context import RunContext
from katha.agents.pictures import as_drawn, thing_as_drawn
from katha.compass.repair import Insertion
from katha.composing import Count, PromptFamily, compose, load_family
from katha.composing.words import noun
from katha.planners.base import WORD, worded
from katha.protocols import Capabilities, FrameRequest, Renderer, can, tokens_of
from katha.schema import Frame, FrameKind, Panel, Plan, Prop, Seen
from katha.sentences import raw_sentences
from katha.shots import SHOT_FIELDS, UNSEEN, ShotField, worded_shot

__all__ = [
    "frame_request",
    "in_words",
    "inserted_request",
    "named_props",
    "panel_request",
    "scene_request",
    "stand_ins",
    "unfollowed_shots",
    "with_stand_ins",
]


def scene_request(context: RunContext, panel: Panel, seed: int) -> FrameRequest:
    """Return what one panel is drawn from: its prompt, fields and characters."""
    return _for(context.plugins.renderer, panel_request(context.plan(), panel, seed, context.size), context.plan())


def _for(renderer: Renderer, request: FrameRequest, plan: Plan) -> FrameRequest:
    """Return `request` in the words of what draws it."""
    able = renderer.capabilities
    return _with_plan(in_words(request, able, renderer.count_tokens), plan, able)


def _with_plan(request: FrameRequest, plan: Plan, able: Capabilities) -> FrameRequest:
    """Return `request` with the whole plan, for a renderer whose frames are made of the same drawn parts."""
    return replace(request, plan=plan) if able.identity == "sources" else request


def frame_request(plan: Plan, frame: Frame, size: tuple[int, int]) -> FrameRequest:
    """Return what a renderer that draws the panels' fields was asked for a frame of a board of `plan`: all that can
    change a pixel, as far as the plan still says it."""
    panel = frame.panel or next((panel for panel in plan.panels if panel.index == frame.scene), None)
    if panel is not None and frame.transition is None:
        return replace(panel_request(plan, panel, frame.seed, size), prompt=frame.prompt)
    around = [panel for panel in plan.panels if panel.index in (frame.transition or (1, 2))]
    same = next((panel for panel in around if panel.prompt == frame.prompt), None)
    names = dict.fromkeys(name for panel in ([same] if same is not None else around) for name in panel.characters)
    negative = around[-1].negative_prompt if around else ""
    request = _request(plan, Insertion(frame.prompt, negative, tuple(names)), frame.seed, size, kind=frame.kind)
    return _placed(request, around[0]) if around else request


def in_words(request: FrameRequest, able: Capabilities, count: Count = tokens_of) -> FrameRequest:
    """Return `request` with a prompt that says all of its fields, where the renderer draws from the prompt alone, as
    its family of models reads it best and as far as there is room."""
    if able.source == "found":
        return request
    if able.panel:
        return request if able.sky else _with_weather(request)
    made = compose(request, _family(able), count)
    return replace(request, prompt=made.text, composed=True, dropped=made.left_out)


def _with_weather(request: FrameRequest) -> FrameRequest:
    """Return `request` with its weather in the prompt, unless that says it already."""
    told = worded_shot("weather", request.weather) if request.weather.strip(" .,;") else ""
    if not told or worded(request.weather, request.prompt):
        return request
    return replace(request, prompt=f"{request.prompt.rstrip()} {told[0].upper()}{told[1:]}.")


def unfollowed_shots(
    context: RunContext, old: Plan, scenes: Mapping[int, int], frames: Sequence[Frame]
) -> Iterator[str]:
    """Yield a sentence for each word of the camera, new in the run's plan, that no picture will show.

    old: the plan before; scenes: the number that each of its scenes has now; frames: those of the board.
    """
    renderer, who = context.plugins.renderer, context.config.renderer
    was = {scenes[panel.index]: panel for panel in old.panels if panel.index in scenes}
    numbered = {frame.scene: str(frame.index) for frame in frames}
    lost: dict[ShotField, list[str]] = {}
    for panel in context.plan().panels:
        before = was.get(panel.index)
        for name in SHOT_FIELDS:
            new = str(getattr(panel, name))
            if new and (before is None or getattr(before, name) != new) and not _followed(renderer, panel, name):
                lost.setdefault(name, []).append(numbered[panel.index])
    for name, numbers in lost.items():
        what = f"{_CALLED[name]} of frame{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        by = "No still picture" if name in UNSEEN else f"No picture by {who!r}"
        where = "films and the player follow it" if name == "camera_move" else "it stands in the shot list"
        yield f"{by} shows the {what}: {where}."


def _followed(renderer: Renderer, panel: Panel, name: ShotField) -> bool:
    """Return whether a renderer can show what stands in a field of the camera."""
    able = renderer.capabilities
    if name in UNSEEN or able.source == "found":
        return False
    if able.panel and name == "light":
        return able.sky
    return not (name == "shot_angle" and able.panel and getattr(panel, name) in panel.not_drawn)


def _family(able: Capabilities) -> PromptFamily:
    """The family of a renderer's model; its own limit is the budget."""
    family, limit = load_family(able.prompt_family), able.prompt_tokens
    return family if limit is None else replace(family, budget=min(limit, family.budget or limit), pieces=1)


def inserted_request(
    context: RunContext, what: Insertion, seed: int, pair: tuple[int, int], kind: FrameKind
) -> FrameRequest:
    """A frame between two scenes: where and when the scene is that its prompt is about, as far as the plan says; drawn
    from the fields, where the first of them is."""
    plan, inserter = context.plan(), context.plugins.inserter
    if what.panel is not None:
        asked = panel_request(plan, what.panel, seed, context.size)
        return _for(inserter, replace(asked, scene=None, kind=kind, transition=pair), plan)
    at = pair[0] if inserter.capabilities.panel else what.scene or pair[0]
    request = _placed(_request(plan, what, seed, context.size, kind=kind), plan.panels[at - 1])
    lasting = _lasting(plan.panels[pair[0] - 1])
    props = _props(plan, " ".join((request.prompt, *(one.name for one in lasting))))
    return _for(inserter, replace(request, transition=pair, state=(*lasting, *what.moods), props=props), plan)


def _lasting(panel: Panel) -> tuple[Seen, ...]:
    """Return what of a panel's states a frame after it begins with: clothes and damage, no mood."""
    return tuple(Seen(name=one.name, state=one.state) for one in panel.state if one.state)


def panel_request(plan: Plan, panel: Panel, seed: int, size: tuple[int, int]) -> FrameRequest:
    """Return what a renderer that draws the panels' fields is asked for a panel."""
    what = Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters))
    return replace(
        _placed(_request(plan, what, seed, size, scene=panel.index), panel),
        shot_size=panel.shot_size,
        shot_angle=panel.shot_angle,
        must_show=tuple(panel.must_show),
        camera=panel.camera,
        state=tuple(panel.state),
        gaze=tuple(panel.gaze),
        contacts=tuple(panel.contacts),
        props=_props(plan, " ".join((panel.prompt, *panel.must_show, *panel.contacts))),
    )


def _placed(request: FrameRequest, panel: Panel) -> FrameRequest:
    placed = replace(request, place=panel.place, time_of_day=panel.time_of_day)
    return replace(placed, light=panel.light, weather=panel.weather)


def _props(plan: Plan, told: str) -> tuple[Prop, ...]:
    return tuple(map(thing_as_drawn, named_props(plan, told)))


def named_props(plan: Plan, told: str) -> tuple[Prop, ...]:
    """Return the board's props that a text names, by all of their words or by a noun that only one of them has."""
    props = plan.visual.props if plan.visual is not None else []
    nouns = [noun(item.name.lower()) for item in props]
    return tuple(
        item
        for item, known in zip(props, nouns, strict=True)
        if known and (worded(item.name, told) or (nouns.count(known) == 1 and worded(known, told)))
        if not re.search(_GONE.format(re.escape(known)), told, re.IGNORECASE)
    )


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


# What the renderer has no picture for: a sentence that is told with a stand-in is not a sentence that is drawn.


def with_stand_ins(context: RunContext, before: Plan | None = None) -> Plan:
    """Return the run's plan with the words of each panel that its renderer cannot draw, and the sentences that only
    stand-ins tell; the plan as it is where the renderer cannot say.

    before: the same run's plan of which that is known; panels that ask for the same picture are not read again.
    """
    plan, renderer = context.plan(), context.plugins.renderer
    if not can(renderer, Renderer.not_drawn):
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
    """Return whether all words of a piece are in a sentence."""
    return {*WORD.findall(piece.lower())} <= {*WORD.findall(sentence.lower())}


def _wish(plan: Plan, panel: Panel) -> str:
    """Return what tells the requests of two panels apart, whatever their size and seed."""
    return repr(panel_request(plan, panel, 0, (0, 0)))


def stand_ins(panel: Panel) -> Iterator[tuple[str, str]]:
    """Yield the words of a panel's prompt that are not drawn, each with its sentence of the caption, sentence first."""
    sentences = [text.strip() for text in raw_sentences(panel.caption) if text.strip()]
    for word in panel.not_drawn:
        last = word.split()[-1].lower()
        stem = re.compile(rf"\b{re.escape(last[:_STEM] if len(last) > _STEM else last)}")
        if sentences and stem.search(panel.prompt.lower()):
            yield next((text for text in sentences if stem.search(text.lower())), sentences[0]), word


_CALLED: Mapping[ShotField, str] = {
    "shot_size": "shot size",
    "shot_angle": "angle",
    "camera_move": "camera move",
    "time_of_day": "time of day",
    "weather": "weather",
    "light": "light",
    "sound": "sound",
}
_GONE = (
    r"\b(?:where (?:\S+ ){{1,3}}{0} (?:stood|was|had|lay|sat|hung|used)|(?:without|instead of) (?:\S+ ){{1,3}}{0})\b"
)
"""A thing that is not there any more, or not."""
_STEM = 5
"""The letters by which a word is known in another form: "crack" in "cracked"."""
