"""The upright rig: people and storybook mammals with a big head, a pear-shaped trunk and two-part arms and legs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from katha_sketch.drawing.figures.dress import draw_dress
from katha_sketch.drawing.figures.ears import EARS, EARS_IN_FRONT, HORNS, MANES
from katha_sketch.drawing.figures.face import FaceLayout, draw_face
from katha_sketch.drawing.figures.hair import BEARDS, FRINGES, HAIR, HATS
from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.markings import DETAILS, HOLDS, MARKINGS
from katha_sketch.drawing.figures.muzzles import MUZZLES
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.tails import draw_back, draw_tail
from katha_sketch.drawing.figures.tools import TOOLS
from katha_sketch.drawing.style import INK, darker, lighter

__all__ = ["Skeleton", "draw_head", "draw_upright", "skeleton"]

_TRUNK, _THIGH, _SHIN, _ARM, _HAND = 23.0, 11.5, 11.5, 13.5, 13.5
_HEAD, _FOOT, _HIP, _SHOULDER = 23.5, 4.2, 13.0, 10.0
_HOLDING = (44.0, 72.0)  # the far arm of somebody with a staff


@dataclass(frozen=True)
class Skeleton:
    """Where the joints of a posed body are (rig units) and its sizes; limbs as (root, joint, end)."""

    hip: Point
    shoulder: Point
    head: tuple[float, float, float]
    head_angle: float
    arm_near: tuple[Point, Point, Point]
    arm_far: tuple[Point, Point, Point]
    leg_near: tuple[Point, Point, Point]
    leg_far: tuple[Point, Point, Point]
    girth: float
    angle: float  # of the trunk, clockwise from upright
    foot_angle: float


def draw_upright(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a person or an upright animal; see `Rig`."""
    if _holding(draw, pose):
        pose = replace(pose, arm_far=_HOLDING)
    bones = skeleton(draw, pose, face)
    skin, limb = draw["coat"], draw.get("limbs", draw["coat"])
    thick = 9.0 * draw.get("limb_girth", 1.0) * (0.5 + 0.5 * bones.girth)
    if pose.lying:
        draw_tail(ink.at(*bones.hip).at(4, 0, sx=-1, sy=1), draw)
    else:
        draw_tail(ink.at(*bones.hip, bones.angle).at(-3.5 * bones.girth, 0), draw)
    if _holding(draw, pose):
        x, y = bones.arm_far[2]
        HOLDS[draw["holds"]](ink.at(x, y), -y)
    sleeve = draw.get("sleeve", draw.get("dress")) or limb
    ink.limb(bones.arm_far, thick * 0.88, darker(sleeve, 0.12))
    ink.ellipse(*bones.arm_far[2], thick * 0.5, fill=darker(draw.get("paws", skin), 0.1), width=0.9)
    for leg, shade in ((bones.leg_far, 0.12), (bones.leg_near, 0.0)):
        ink.limb(leg, thick, darker(limb, shade))
        _foot(ink, leg, bones.foot_angle, darker(draw.get("feet", draw.get("paws", skin)), shade), thick)
    draw_back(ink.at(*bones.shoulder, bones.angle).at(-2.5 * bones.girth, 0), draw)
    draw_dress(ink, draw, bones)
    cx, cy, r = bones.head
    draw_head(ink.at(cx, cy, bones.head_angle, r), draw, face)
    if pose.tool:
        TOOLS[pose.tool](ink, bones.arm_near, bones.arm_far)
    ink.limb(bones.arm_near, thick * 0.9, sleeve)
    ink.ellipse(*bones.arm_near[2], thick * 0.55, fill=draw.get("paws", skin), width=0.9)
    if "arrow" in pose.emanata:
        _finger(ink, max(bones.arm_near, bones.arm_far, key=lambda arm: arm[2]), thick, draw.get("paws", skin))
    return _joints(bones, draw)


def _holding(draw: Mapping[str, Any], pose: Pose) -> bool:
    """Whether the far hand is free to hold what this character always holds."""
    return "holds" in draw and not pose.tool and not pose.lying and abs(pose.turn) < 30 and 0 <= pose.arm_far[0] <= 45


def skeleton(draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Skeleton:
    """Pose the body so that its lowest part touches the ground (or floats `lift` above it), around x = 0."""
    size, girth, legs = draw.get("head", 1.0), draw.get("girth", 1.0), draw.get("legs", 1.0)
    lean, turn = math.radians(pose.lean), pose.turn
    r = _HEAD * size
    shoulder = (math.sin(lean) * _TRUNK, -math.cos(lean) * _TRUNK)
    neck = r * 0.86
    head = (shoulder[0] + math.sin(lean) * neck + 1.5, shoulder[1] - math.cos(lean) * neck)
    near, far = (shoulder[0] - 6.5 * girth, shoulder[1] + 2.5), (shoulder[0] + 7.5 * girth, shoulder[1] + 2.5)
    limbs = {
        "arm_near": _limb(near, pose.arm_near, _ARM, _HAND),
        "arm_far": _limb(far, pose.arm_far, _ARM, _HAND),
        "leg_near": _limb((-5.5 * girth, 3.0), pose.leg_near, _THIGH * legs, _SHIN * legs),
        "leg_far": _limb((5.5 * girth, 3.0), pose.leg_far, _THIGH * legs, _SHIN * legs),
    }
    turned = {name: tuple(_turned(p, turn) for p in points) for name, points in limbs.items()}
    hip, top, mid = (0.0, 0.0), _turned(shoulder, turn), _turned(head, turn)
    feet = [turned["leg_near"][2], turned["leg_far"][2]]
    low = max([foot[1] + _FOOT for foot in feet] + [_HIP * girth, mid[1] + r, top[1] + _SHOULDER * girth])
    low = max([low, *(turned[arm][2][1] + _FOOT for arm in ("arm_near", "arm_far"))]) if turn else low
    spots = [mid[0], feet[0][0], feet[1][0]] if pose.lying else [feet[0][0], feet[1][0], 0.0]
    dx, dy = -(max(spots) + min(spots)) / 2, -low - pose.lift

    def put(p: Point) -> Point:
        return (p[0] + dx, p[1] + dy)

    moved = {name: tuple(put(p) for p in points) for name, points in turned.items()}
    return Skeleton(
        hip=put(hip),
        shoulder=put(top),
        head=(*put(mid), r),
        head_angle=turn + pose.lean * 0.4 + pose.head + face.tilt,
        girth=girth,
        angle=turn + pose.lean,
        foot_angle=turn,
        **moved,  # type: ignore[arg-type]
    )


def _limb(root: Point, angles: Sequence[float], upper: float, lower: float) -> tuple[Point, Point, Point]:
    joint = _along(root, angles[0], upper)
    return (root, joint, _along(joint, angles[1], lower))


def _along(start: Point, angle: float, length: float) -> Point:
    return (start[0] + math.sin(math.radians(angle)) * length, start[1] + math.cos(math.radians(angle)) * length)


def _turned(p: Point, angle: float) -> Point:
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return (p[0] * cos - p[1] * sin, p[0] * sin + p[1] * cos)


def _foot(ink: Ink, leg: Sequence[Point], angle: float, fill: str, thick: float) -> None:
    """A shoe or paw at the end of a leg, flat along the ground or at right angles to a lifted shin."""
    (kx, ky), (x, y) = leg[1], leg[2]
    slope = math.degrees(math.atan2(x - kx, y - ky))
    pitch = -slope if abs(slope) > 40 else angle
    pen = ink.at(x, y, pitch)
    pen.ellipse(2.2, 0.6, thick * 0.72, thick * 0.44, fill=fill)


def _finger(ink: Ink, arm: Sequence[Point], thick: float, fill: str) -> None:
    """A finger that carries on from a hand."""
    (ex, ey), (x, y) = arm[1], arm[2]
    c, s = (x - ex) / _HAND, (y - ey) / _HAND
    points = [(x + reach * c, y + reach * s) for reach in (0.3 * thick, 0.8 * thick, 1.25 * thick)]
    ink.limb(points, thick * 0.45, fill)


def _joints(bones: Skeleton, draw: Mapping[str, Any]) -> Joints:
    """The points that accessories, emanata and the scene's props are placed by."""
    cx, cy, r = bones.head

    def on_head(x: float, y: float) -> Point:
        dx, dy = _turned((x * r, y * r), bones.head_angle)
        return (cx + dx, cy + dy)

    neck_x, neck_y = (bones.shoulder[0] + cx) / 2, bones.shoulder[1] * 0.82 + cy * 0.18
    hx, hy = bones.arm_near[2]
    return Joints(
        head=bones.head,
        hand=(hx, hy),
        mouth=on_head(*draw.get("mouth", (0.3, 0.5))),
        back=(bones.shoulder[0] * 0.5 + bones.hip[0] * 0.5 - 8, bones.shoulder[1] * 0.5 + bones.hip[1] * 0.5),
        neck=(neck_x, neck_y, 20 * max(bones.girth, 0.85)),
        crown=(*on_head(0.0, -0.82 * draw.get("top", 1.0)), 1.5 * r),
        tilt=bones.head_angle,
        hand_far=bones.arm_far[2],
        extra={"shoulder": bones.shoulder, "hip": bones.hip, "foot": bones.leg_near[2], "foot_far": bones.leg_far[2]},
    )


_BEHIND = (("mane_style", MANES), ("hair_style", HAIR), ("horns", HORNS))
_OVER = (("markings", MARKINGS), ("muzzle", MUZZLES), ("beard", BEARDS), ("fringe", FRINGES))


def draw_head(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """Draw the whole head with its face; `draw` names the parts, absent parts are left out."""
    for key, table in _BEHIND:
        _part(ink, draw, key, table)
    ears = draw.get("ears")
    if ears and ears not in EARS_IN_FRONT:
        EARS[ears](ink, draw)
    wide, high = draw.get("skull", (1.0, 0.96))
    ink.ellipse(0, 0, wide, high, fill=draw["coat"])
    for key, table in _OVER:
        _part(ink, draw, key, table)
    if ears in EARS_IN_FRONT:
        EARS[ears](ink, draw)
    draw_face(ink, face, _layout(draw))
    _part(ink, draw, "hat", HATS)
    _part(ink, draw, "detail", DETAILS)
    for name in draw.get("details", ()):
        DETAILS[name](ink, draw)


def _part(ink: Ink, draw: Mapping[str, Any], key: str, table: Mapping[str, Any]) -> None:
    name = draw.get(key)
    if name:
        table[name](ink, draw)


def _layout(draw: Mapping[str, Any]) -> FaceLayout:
    """Where the face sits on this head, from the data or the usual places."""
    usual = FaceLayout()
    (x0, y0), (x1, y1) = draw.get("eyes", usual.eyes)
    mx, my = draw.get("mouth", usual.mouth)
    return FaceLayout(
        eyes=((x0, y0), (x1, y1)),
        eye=draw.get("eye", usual.eye),
        mouth=(mx, my),
        width=draw.get("mouth_width", usual.width),
        lid=lighter(draw["coat"], 0.15),
        brow=draw.get("brow", "cream" if draw.get("dark") else ("#8a8790" if draw.get("aged") else INK)),
    )
