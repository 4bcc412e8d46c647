"""The bird rig: an egg of a body on two thin legs, wings for arms, a big head with a beak. Also the bat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from katha.renderers.sketch.figures.beaks import BASE, draw_beak
from katha.renderers.sketch.figures.face import FaceLayout, draw_face
from katha.renderers.sketch.figures.ink import Ink, Point
from katha.renderers.sketch.figures.plumage import CRESTS, MASKS, TAILS, draw_foot, draw_membrane, draw_wing
from katha.renderers.sketch.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha.renderers.sketch.figures.stance import Arm, Body, along, asleep, chain, flying, on_head, settle, speckle
from katha.renderers.sketch.style import INK, darker, lighter

__all__ = ["draw_bird"]

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
