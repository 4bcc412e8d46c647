"""The bird rig: an egg of a body on two thin legs, wings for arms, a big head with a beak. Also the bat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face, gape
from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.plumage import CRESTS, MASKS, TAILS, draw_foot, draw_membrane, draw_wing
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.stance import (
    Arm,
    Body,
    along,
    asleep,
    chain,
    curve_of,
    flying,
    on_head,
    settle,
    speckle,
)
from katha_sketch.drawing.style import INK, darker, lighter

__all__ = ["BASE", "BEAKS", "draw_beak", "draw_bird"]

_UPPER, _LOWER = 15.0, 19.0
_EYES: tuple[Point, Point] = ((-0.3, -0.2), (0.5, -0.22))


@dataclass(frozen=True)
class _Bones:
    """A posed bird: body centre and axis (degrees from upright, forward), head, wings and legs."""

    centre: Point
    axis: float
    long: float
    wide: float
    chest: Point
    rump: Point
    bend: Point
    head: tuple[float, float, float]
    tilt: float
    near: Arm
    far: Arm
    leg_near: Arm
    leg_far: Arm


def draw_bird(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a bird; see `Rig`. Data: coat, belly, wing, beak, body, tilt, neck, legs, tail, crest, mask."""
    bones = _bones(draw, pose, face)

    def paint(pen: Ink) -> Body:
        _behind(pen, draw, pose, bones)
        _trunk(pen, draw, bones)
        x, y, r = bones.head
        _head(pen.at(x, y, bones.tilt, r), draw, face)
        _wing(pen, draw, pose, bones.near, 0.0)
        return _body(bones)

    return settle(ink, pose, paint, _turn(pose, draw))


def _turn(pose: Pose, draw: Mapping[str, Any]) -> float:
    """How far the whole bird turns: little in flight, not at all asleep, over when it falls or dies."""
    if asleep(pose):
        return 0.0
    if pose.lying:
        return -150.0 + float(draw.get("tilt", 30.0)) * 0.3
    return pose.turn * (0.3 if abs(pose.turn) < 90 else 0.9)


def _bones(draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> _Bones:
    long, wide = draw.get("body", (22.0, 18.0))
    wide *= draw.get("girth", 1.0)
    tilt, legs = float(draw.get("tilt", 30.0)), float(draw.get("legs", 12.0))
    r, neck = float(draw.get("head", 20.0)), float(draw.get("neck", 0.0))
    resting = asleep(pose)
    lean = 14.0 if resting else pose.lean
    axis = min(tilt + lean * 0.75, 128.0)
    centre = (0.0, 0.0)
    chest, rump = along(centre, 180 - axis, long * 0.6), along(centre, -axis, long * 0.8)
    rise = float(draw.get("neck_angle", 12.0)) + lean * 0.85 + (48.0 if resting else 0.0)
    if resting:
        neck *= 0.55
    top = along(chest, 180 - rise, neck + r * 0.62)
    bow = (chest[0] + top[0]) / 2 + neck * float(draw.get("bow", 0.22)), (chest[1] + top[1]) / 2 + neck * 0.12
    shoulder = along(centre, 180 - axis, long * 0.35)
    folded = abs(pose.arm_near[0]) < 36 and abs(pose.arm_near[1]) < 40
    back = tilt * 0.85 if (folded and "fold" not in draw) or resting else 0.0
    near, far = ((-18.0, -6.0), (-18.0, -6.0)) if resting else (pose.arm_near, pose.arm_far)
    if folded and not resting:
        near, far = draw.get("fold", (near, (near[0] - 4, near[1] - 4)))
    stretch = float(draw.get("wings", 1.0)) * (1.45 if flying(pose) else 1.0)
    upper, lower = _UPPER * stretch, _LOWER * stretch
    root = along(centre, 0.0, wide * 0.72)
    tucked = (legs * 0.15, legs * 0.1) if resting else (legs * 0.5, legs * 0.5)
    return _Bones(
        centre=centre,
        axis=axis,
        long=long,
        wide=wide,
        chest=chest,
        rump=rump,
        bend=bow,
        head=(*top, r),
        tilt=pose.lean * 0.4 + pose.head + face.tilt + (22.0 if resting else 0.0),
        near=chain((shoulder[0] - wide * 0.42, shoulder[1] + 3), (near[0] - back, near[1] - back), upper, lower),
        far=chain((shoulder[0] + wide * 0.5, shoulder[1] + 2), (far[0] - back, far[1] - back), upper, lower),
        leg_near=chain((root[0] - 6, root[1]), pose.leg_near, *tucked),
        leg_far=chain((root[0] + 6, root[1] - 1), pose.leg_far, *tucked),
    )


def _wing(pen: Ink, draw: Mapping[str, Any], pose: Pose, arm: Arm, shade: float) -> None:
    fill = darker(draw.get("wing") or darker(draw["coat"], 0.12), shade)
    tip = darker(draw.get("tip") or darker(fill, 0.18), shade)
    wide = float(draw.get("wing_wide", 11.0)) * (1.25 if flying(pose) else 1.0)
    shape = draw_membrane if draw.get("wing_shape") == "membrane" else draw_wing
    shape(pen, arm, wide, fill, tip)


def _behind(pen: Ink, draw: Mapping[str, Any], pose: Pose, bones: _Bones) -> None:
    """Tail, far wing and legs."""
    if "tail" in draw:
        TAILS[draw["tail"]](pen.at(*bones.rump, bones.axis), draw)
    _wing(pen, draw, pose, bones.far, 0.12)
    fill, thick = draw.get("leg_colour", "orange"), float(draw.get("leg_thick", 1.9))
    for leg, shade in ((bones.leg_far, 0.15), (bones.leg_near, 0.0)):
        draw_foot(pen, leg, darker(fill, shade), thick, bool(draw.get("webbed")), float(draw.get("foot", 1.0)))


def _trunk(pen: Ink, draw: Mapping[str, Any], bones: _Bones) -> None:
    """Neck, body and breast, without a line between neck and body."""
    coat, neck = draw["coat"], float(draw.get("neck", 0.0))
    x, y, _ = bones.head
    throat, line = float(draw.get("throat", 12.0)), 2.6
    skin = draw.get("neck_colour", coat)
    if neck > 0:
        pen.limb([bones.chest, bones.bend, (x, y)], throat, skin)
    body = pen.at(*bones.centre, bones.axis)
    body.ellipse(0, 0, bones.wide, bones.long, fill=coat)
    if draw.get("belly"):
        body.ellipse(bones.wide * 0.28, -1, bones.wide * 0.62, bones.long * 0.76, fill=draw["belly"], width=0)
    speckle(body, draw.get("pattern"), draw.get("marks"), bones.wide * 0.9, bones.long * 0.9)
    if neck > 0:
        pen.limb([bones.chest, bones.bend, (x, y)], throat - line, skin, stroke=skin)


def _head(pen: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    skin = draw.get("head_colour", draw["coat"])
    if "crest" in draw:
        CRESTS[draw["crest"]](pen, draw)
    wide, high = draw.get("skull", (1.0, 0.96))
    pen.ellipse(0, 0, wide, high, fill=skin)
    for name in draw.get("masks", ()):
        MASKS[name](pen, draw)
    (x0, y0), (x1, y1) = draw.get("eyes", _EYES)
    layout = FaceLayout(
        eyes=((x0, y0), (x1, y1)),
        eye=float(draw.get("eye", 0.26)),
        mouth=None if "beak" in draw else (0.12, 0.46),
        lid=lighter(skin, 0.15),
        brow="cream" if draw.get("dark") else INK,
    )
    if "beak" in draw and draw["beak"] != "tiny":
        draw_beak(pen, draw, face)
    draw_face(pen, face, layout)
    if draw.get("beak") == "tiny":
        draw_beak(pen.at(-0.28, 0), draw, face)


def _body(bones: _Bones) -> Body:
    x, y, r = bones.head
    place = on_head(bones.head, bones.tilt)
    low = bones.centre[1] + bones.wide * 0.8
    collar = ((bones.chest[0] + x * 2) / 3, (bones.chest[1] + (y + r * 0.9) * 2) / 3)
    return Body(
        head=bones.head,
        mouth=place(BASE[0] + 0.55, BASE[1] + 0.1),
        back=(bones.centre[0] - bones.long * 0.3, bones.centre[1] - bones.wide * 0.6),
        neck=(*collar, max(15.0, r * 1.25)),
        crown=(*place(0.0, -0.8), 1.5 * r),
        near=bones.near,
        far=bones.far,
        hip=(bones.centre[0], low - 6),
        shoulder=(bones.centre[0], bones.centre[1] - 8),
        tilt=bones.tilt,
        extra={"foot": bones.leg_near[2], "foot_far": bones.leg_far[2]},
    )


BASE = (0.42, 0.22)
"""Where a beak grows from the face, in head radii."""

_INSIDE, _TONGUE = "#8c2f39", "#ef8f8f"


def draw_beak(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """Draw the beak that `draw: beak` names, `beak_long` radii long, as open as the face's mouth."""
    long, open_ = float(draw.get("beak_long", 0.8)), gape(face.mouth)
    pen = ink.at(*BASE, draw.get("beak_tilt", 0.0) - 9 * open_)
    upper, lower = BEAKS[draw["beak"]]
    fill = draw.get("beak_colour", "orange")
    high = float(draw.get("beak_high", 0.3))
    jaw = pen.at(-0.05, high * 0.2, 44 * open_, long, high)
    if open_ > 0:
        drop = 0.62 * open_ * long
        pen.polygon([(-0.1, 0), (long * 0.72, -0.02), (long * 0.5, drop), (-0.1, high * 0.7)], fill=_INSIDE, width=0.7)
        jaw.draw("M 0.1 0.05 Q 0.45 -0.75 0.75 0.05 Z", fill=_TONGUE, width=0)
    jaw.draw(lower, fill=darker(fill, 0.14), width=0.75)
    pen.at(sx=long, sy=high).draw(upper, fill=fill, width=0.85)
    curve = curve_of(face)
    if curve:
        pen.draw(f"M 0.22 0.04 Q -0.12 0.06 -0.24 {0.06 - 0.3 * curve:.2f}", width=1)
    if face.mouth == "tongue":
        jaw.draw("M 0.3 0 Q 0.9 -0.2 0.95 1 Q 0.9 2.2 0.6 2 Q 0.3 1.6 0.3 0 Z", fill=_TONGUE, width=0.7)
    if face.mouth == "gritted":
        pen.line([(0.1 * long, 0.02), (0.3 * long, 0.12), (0.5 * long, 0.02), (0.7 * long, 0.1)], width=0.9)


_Shape = tuple[str, str]

BEAKS: Mapping[str, _Shape] = {
    "cone": ("M -0.08 -0.9 Q 0.6 -0.7 1 0.1 Q 0.5 0.2 -0.08 0.25 Z", "M 0 0 Q 0.5 0.1 0.85 0.15 Q 0.4 0.9 0 0.8 Z"),
    "dagger": (
        "M -0.08 -0.95 Q 0.45 -1.05 1 0.22 Q 0.5 0.1 -0.08 0.25 Z",
        "M 0 0 Q 0.5 0 0.88 0.15 Q 0.4 0.75 0 0.8 Z",
    ),
    "hook": (
        "M -0.08 -1 Q 0.75 -1.25 1 -0.1 Q 1.08 0.75 0.85 1.15 Q 0.8 0.35 0.5 0.25 L -0.08 0.3 Z",
        "M 0 0.1 L 0.55 0.1 Q 0.5 0.9 0 0.85 Z",
    ),
    "bill": (
        "M -0.08 -0.9 Q 0.35 -0.85 0.6 -0.2 Q 1.1 -0.5 1.12 0.05 Q 1.1 0.5 0.7 0.4 L -0.08 0.35 Z",
        "M 0 0.1 L 0.95 0.15 Q 1 0.75 0.6 0.8 L 0 0.85 Z",
    ),
    "tiny": (
        "M -0.3 -0.9 Q 0.35 -1 0.5 0.1 Q 0.45 0.8 0.2 1.2 Q -0.2 0.6 -0.3 -0.9 Z",
        "M -0.1 0.3 L 0.35 0.3 Q 0.3 1.3 0.1 1.4 Z",
    ),
}
"""(upper, lower) halves by name, from (0, 0) to a length of 1 and half a height of 1."""
