"""A person of any look in any pose, drawn by the sketch's upright rig, with the joints that things are put at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from random import Random
from typing import Any

from katha_sketch.drawing.deeds.data import people
from katha_sketch.drawing.figures.bird import draw_bird
from katha_sketch.drawing.figures.coil import draw_coil
from katha_sketch.drawing.figures.crawler import draw_crawler
from katha_sketch.drawing.figures.data import drawing, dressed
from katha_sketch.drawing.figures.dress import draw_accessories, draw_scarf
from katha_sketch.drawing.figures.hopper import draw_hopper
from katha_sketch.drawing.figures.ink import Box, Ink, Point, Sheet
from katha_sketch.drawing.figures.insect import draw_insect
from katha_sketch.drawing.figures.motion_signs import MOTION
from katha_sketch.drawing.figures.rig import Around, Emanation, FaceParams, FigureSpec, Joints, Pose, Rig
from katha_sketch.drawing.figures.sky import draw_sky
from katha_sketch.drawing.figures.swimmer import draw_crab, draw_fish
from katha_sketch.drawing.figures.upright import draw_upright
from katha_sketch.drawing.figures.voice_signs import VOICE
from katha_sketch.drawing.figures.work_signs import WORK
from katha_sketch.drawing.props.shapes import read_shape
from katha_sketch.drawing.style import COLOURS, OUTLINE
from katha_sketch.drawing.svg import group, number

__all__ = [
    "EMANATA",
    "RIGS",
    "Body",
    "Look",
    "base_of",
    "by_rig",
    "draw_creature",
    "draw_emanata",
    "draw_person",
    "face_of",
    "has_hands",
    "look_of",
    "with_phase",
]

EMANATA: Mapping[str, tuple[bool, Emanation]] = {**MOTION, **VOICE, **WORK}
"""Signs by the names that `draw: emanata` uses, each with whether it lies behind the figure."""


def draw_emanata(names: Iterable[str], around: Around, *, front: Ink, behind: Ink) -> None:
    """Draw each named sign, in front of the figure or behind it as the table says."""
    for name in names:
        is_behind, draw = EMANATA[name]
        draw(behind if is_behind else front, around)


RIGS: Mapping[str, Rig] = {
    "upright": draw_upright,
    "bird": draw_bird,
    "crawler": draw_crawler,
    "hopper": draw_hopper,
    "coil": draw_coil,
    "fish": draw_fish,
    "crab": draw_crab,
    "insect": draw_insect,
    "sky": draw_sky,
}
"""Every rig; add a body plan by writing a function with the signature of `Rig` and naming it here."""


def face_of(spec: FigureSpec, pose: Pose) -> FaceParams:
    """The face of the figure's feeling (neutral without one) with what the action itself does to eyes and mouth.

    Raises:
        RenderError: the vocabulary has no such feeling.
    """
    face = FaceParams(**_known(_feeling(spec.emotion))) if spec.emotion else FaceParams()
    if pose.eyes:
        face = replace(face, eyes=pose.eyes, brow=None)
    return replace(face, mouth=pose.mouth or face.mouth)


def _feeling(mood: str) -> Mapping[str, Any]:
    """The face of a mood: of the vocabulary, or one of people.yaml's faces with what it changes."""
    own = people()["faces"].get(mood)
    return drawing("emotions", mood) if own is None else {**drawing("emotions", own["like"]), **own}


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `data` that are fields of a face, lists as tuples."""
    names = {f.name for f in fields(FaceParams)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in names}


_THINNEST = 0.62
_TOLD = COLOURS["pink"]
"""Stands for the colour that the story tells in the shapes of hats."""


@dataclass(frozen=True)
class Look:
    """What a person looks like, the same in every picture: `base` (an id of people.yaml's bases), `outfit` (a trade's
    pictogram) and, where the story says so, colours of clothes, hair and skin, and `features`: ids of people.yaml's,
    each with a colour behind a colon where one is told ("helmet:#d8584f")."""

    base: str = "person"
    outfit: str | None = None
    dress: str | None = None
    trousers: str | None = None
    hair: str | None = None
    skin: str | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Body:
    """A drawn person in stage units, facing as asked, its foot at (0, 0).

    `solid` is the box of the body without signs around it. Joints: hand, far (the other hand), foot, mouth, crown,
    hip, shoulder.
    """

    svg: str
    behind: str
    bbox: Box
    solid: Box
    head: tuple[float, float, float]
    joints: Mapping[str, Point]


def base_of(pictogram: str) -> str:
    """The body of a person whose noun has this pictogram."""
    base: str = people()["words"].get(pictogram, "person")
    return base


def by_rig(pictogram: str) -> bool:
    """Whether the rig draws the people of this pictogram (it has no tails to swim with)."""
    return pictogram not in people()["figures"]


def look_of(look: Look, name: str) -> Mapping[str, Any]:
    """The rig's drawing data of a look; what the story does not say is chosen by the character's name alone."""
    data, rng = people(), Random(f"katha look {name}")
    draw: dict[str, Any] = {key: rng.choice(values) for key, values in data["palettes"].items()}
    for key, values in data["styles"][look.base].items():
        choice = rng.choice(values)
        if choice is not None:
            draw[key] = choice
    draw |= data["bases"][look.base]
    draw |= data["outfits"].get(look.outfit, {})
    told = {"dress": look.dress, "trousers": look.trousers, "hair": look.hair, "coat": look.skin}
    draw |= {key: value for key, value in told.items() if value is not None}
    if look.dress is not None:
        draw.pop("sleeve", None)
    draw.setdefault("sleeve", draw["dress"])
    for feature in look.features:
        _put_on(draw, *feature.partition(":")[::2])
    if draw["wear"] == "shirt":
        draw["limbs"] = draw["trousers"]
    return draw


def _put_on(draw: dict[str, Any], name: str, colour: str) -> None:
    """Change the drawing data as a feature of people.yaml says, in the colour told or its own."""
    row = people()["features"][name]
    shade = colour or row.get("colour")
    for key, value in row["draw"].items():
        if key in ("scale", "girth"):
            draw[key] = draw.get(key, 1.0) * value
        elif key == "details":
            draw[key] = (*draw.get(key, ()), *value)
        elif value is None:
            draw.pop(key, None)
        elif value != "COLOUR":
            draw[key] = value
        elif shade is not None:
            draw[key] = shade


def draw_person(
    look: Look, name: str, pose: Pose, mood: str | None = None, facing: int = 1, phase: float = 0.0
) -> Body:
    """Draw a person; the same arguments give the same bytes.

    Raises:
        RenderError: no such mood.
    """
    return _drawn(look_of(look, name), FigureSpec("man", emotion=mood, facing=facing, phase=phase), pose)


def draw_creature(
    concept: str,
    attributes: tuple[str, ...],
    pose: Pose,
    mood: str | None = None,
    facing: int = 1,
    phase: float = 0.0,
) -> Body:
    """Draw a character of the vocabulary (an animal, a king) in a deed's pose; the same arguments, the same bytes.

    Raises:
        RenderError: no such character, attribute or mood.
    """
    spec = FigureSpec(concept, attributes, emotion=mood, facing=facing, phase=phase)
    return _drawn(dressed(spec), spec, pose)


def has_hands(concept: str) -> bool:
    """Whether a character of the vocabulary holds things in its hands; others have a beak or a mouth for it."""
    return bool(drawing("characters", concept).get("rig") == "upright")


def _drawn(draw: Mapping[str, Any], spec: FigureSpec, pose: Pose) -> Body:
    facing, phase = spec.facing, spec.phase
    face, rig = face_of(spec, pose), RIGS[draw["rig"]]
    scale = float(draw.get("scale", 1.0))
    sheet, behind = Sheet(), Sheet()
    weight = OUTLINE * min(1.25, max(_THINNEST, math.sqrt(scale)))
    pen = Ink(sheet, weight=weight).at(sx=scale * facing, sy=scale)
    own_hat = draw.get("hat") in people()["hats"]
    rigged = {key: value for key, value in draw.items() if not (own_hat and key == "hat")}
    joints = rig(pen, spec, rigged, pose, face)
    draw_accessories(pen, draw.get("wears", ()), joints)
    if "scarf" in draw:
        draw_scarf(pen, joints, draw["scarf"])
    solid = sheet.box or (0.0, 0.0, 0.0, 0.0)
    x0, y0, x1, y1 = (value / scale for value in solid)
    body = (x0, y0, x1, y1) if facing > 0 else (-x1, y0, -x0, y1)
    back = Ink(behind, weight=weight).at(sx=scale * facing, sy=scale)
    draw_emanata(pose.emanata, Around(joints, body, phase), front=pen, behind=back)
    hat = _hat(draw["hat"], draw.get("hat_colour"), joints, scale, facing) if own_hat else ""
    box, under = sheet.box or solid, behind.box or solid
    if own_hat:
        box = (box[0], min(box[1], _top(joints, scale)), box[2], box[3])
    return Body(
        svg="".join(sheet.parts) + hat,
        behind="".join(behind.parts),
        bbox=(min(box[0], under[0]), min(box[1], under[1]), max(box[2], under[2]), max(box[3], under[3])),
        solid=(solid[0], min(solid[1], box[1] if own_hat else solid[1]), solid[2], solid[3]),
        head=(*pen.map(*joints.head[:2]), joints.head[2] * scale),
        joints=_points(pen, joints),
    )


def _points(pen: Ink, joints: Joints) -> Mapping[str, Point]:
    named = {
        "hand": joints.hand,
        "far": joints.hand_far or joints.hand,
        "mouth": joints.mouth,
        "crown": joints.crown[:2],
        "hip": joints.extra.get("hip", joints.back),
        "shoulder": joints.extra.get("shoulder", joints.neck[:2]),
        "foot": max((joints.extra.get("foot", (0, 0)), joints.extra.get("foot_far", (0, 0))), key=lambda at: at[0]),
    }
    return {name: pen.map(*point) for name, point in named.items()}


def _top(joints: Joints, scale: float) -> float:
    return (joints.head[1] - 2.4 * joints.head[2]) * scale


def _hat(name: str, colour: str | None, joints: Joints, scale: float, facing: int) -> str:
    cx, cy, r = joints.head
    put = (
        f"translate({number(cx * scale * facing)} {number(cy * scale)}) scale({facing * scale:.4f} {scale:.4f})"
        f" rotate({number(joints.tilt)}) scale({number(r)})"
    )
    return group(_hat_shapes(name, r, colour), transform=put)


@cache
def _hat_shapes(name: str, radius: float, colour: str | None) -> str:
    """The shapes of a hat, their lines of the usual width when the hat is enlarged to the head's radius."""
    drawn = "".join(
        read_shape(head, str(geometry)).at(0.0)[0]
        for entry in people()["hats"][name]
        for head, geometry in entry.items()
    )
    if colour is not None:
        drawn = drawn.replace(_TOLD, colour)
    for width in ("2.4", "1.4", "3.6"):
        drawn = drawn.replace(f'stroke-width="{width}"', f'stroke-width="{OUTLINE / radius:.3f}"')
    return drawn


def with_phase(pose: Pose, phase: float) -> Pose:
    """The pose a little different for each of several figures that do the same."""
    wave = 5.0 * math.sin(2 * math.pi * phase)
    arm = (pose.arm_far[0] + wave, pose.arm_far[1] + wave)
    return replace(pose, arm_far=arm, head=pose.head + 0.4 * wave)
