"""The rigs of the water: a fish whose fins are arms and whose tail follows the legs, and a crab with two claws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face
from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.stance import Arm, Body, asleep, chain, on_head, settle, speckle
from katha_sketch.drawing.style import darker, lighter

__all__ = ["draw_crab", "draw_fish"]

_FISH_R, _FIN, _CRAB_R, _CLAW = 21.0, 12.0, 19.0, 15.0
_NOSE_UP: Mapping[str, float] = {"spring": -42.0, "pole": -66.0, "wind": -16.0}


def draw_fish(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a fish; see `Rig`. Data: coat, belly, fin, girth. On land it stands in a puddle."""
    if "spring" in pose.emanata or (pose.lift == 0 and pose.sunk == 0):
        ink.ellipse(2, -1, 34, 5, fill="water", width=0.8)
        ink.draw("M -20 -1 Q -14 -4 -8 -1 M 10 0 Q 16 -3 22 0", stroke="white", width=0.8)
    girth = float(draw.get("girth", 1.0))
    head = (10.0, -1.0, _FISH_R)
    tilt = (pose.head + face.tilt) * 0.3
    wave = max(-28.0, min(28.0, pose.leg_near[0] * 0.35))
    back = 44.0 if abs(pose.arm_near[0]) < 36 and abs(pose.arm_near[1]) < 40 else 0.0
    near = chain((0, 9 * girth), (pose.arm_near[0] - back, pose.arm_near[1] - back), _FIN, _FIN)
    far = chain((18, 10 * girth), (pose.arm_far[0] - back, pose.arm_far[1] - back), _FIN, _FIN)

    def paint(pen: Ink) -> Body:
        fin = draw.get("fin", darker(draw["coat"], 0.15))
        _fin(pen, far, darker(fin, 0.12))
        _fish_trunk(pen, draw, fin, girth, wave)
        layout = FaceLayout(
            eyes=((-0.22, -0.25), (0.6, -0.25)),
            eye=0.3,
            mouth=(0.42, 0.42),
            width=0.72,
            lid=lighter(draw["coat"], 0.15),
        )
        draw_face(pen.at(head[0], head[1], tilt, _FISH_R), face, layout)
        _fin(pen, near, fin)
        place = on_head(head, tilt)
        return Body(
            head=head,
            mouth=place(0.95, 0.4),
            back=(-6.0, -22.0),
            neck=(-10.0, 0.0, 30.0),
            crown=(*place(-0.1, -0.95), 1.3 * _FISH_R),
            near=near,
            far=far,
            hip=(0.0, 17.0),
            shoulder=(0.0, 0.0),
            tilt=tilt,
        )

    return settle(ink, pose, paint, _fish_turn(pose))


def _fish_trunk(pen: Ink, draw: Mapping[str, Any], fin: str, girth: float, wave: float) -> None:
    """Tail turned by `wave` degrees, back fin, body, belly and scales."""
    tail = pen.at(-28, 0, wave)
    tail.draw("M 4 0 Q -12 -26 -26 -22 Q -20 -8 -21 0 Q -20 8 -26 22 Q -12 26 4 0 Z", fill=fin)
    for y in (-9, 0, 9):
        tail.line([(-8, y * 0.5), (-18, y)], width=0.6)
    pen.draw(
        f"M -16 {-15 * girth:.1f} Q -10 {-20 * girth - 14:.1f} 6 {-20 * girth - 12:.1f}"
        f" Q 4 {-20 * girth:.1f} 16 {-16 * girth:.1f} Z",
        fill=fin,
    )
    pen.at(sx=1, sy=girth).draw(
        "M 36 2 Q 30 -25 4 -25 Q -20 -24 -33 -2 Q -20 23 4 23 Q 30 23 36 2 Z", fill=draw["coat"]
    )
    pen.at(sx=1, sy=girth).draw("M 34 8 Q 26 22 4 22 Q -16 21 -27 7 Q -6 14 10 12 Z", fill=draw["belly"], width=0)
    for x, y in ((-12, -10), (-12, 0), (-19, -5), (-19, 3), (-7, -5)):
        pen.draw(f"M {x} {y - 3} Q {x - 6} {y} {x} {y + 3}", width=0.7)
    speckle(pen.at(-8, -2), draw.get("pattern"), draw.get("marks"), 16, 14)


def _fish_turn(pose: Pose) -> float:
    """Nose up to leap and climb, nose down to fall, belly up when dead."""
    if asleep(pose) or "water" in pose.emanata:
        return 0.0
    if pose.lying:
        return 176.0
    if pose.turn > 90:
        return 105.0
    return pose.lean * 0.45 + pose.head * 0.6 + sum(_NOSE_UP.get(sign, 0.0) for sign in pose.emanata)


def _fin(pen: Ink, arm: Arm, fill: str) -> None:
    """A rounded fin along an arm, wider at its end."""
    (ax, ay), _, (bx, by) = arm
    reach = math.dist((ax, ay), (bx, by))
    blade = pen.at(ax, ay, math.degrees(math.atan2(by - ay, bx - ax)))
    blade.draw(
        f"M 0 -4 Q {reach * 0.5:.2f} -8 {reach:.2f} -7"
        f" Q {reach + 5:.2f} 0 {reach:.2f} 7 Q {reach * 0.5:.2f} 7 0 4 Q -4 0 0 -4 Z",
        fill=fill,
    )
    for y in (-2.5, 2.5):
        blade.line([(reach * 0.5, y * 0.7), (reach * 0.9, y)], width=0.6)


def draw_crab(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a crab; see `Rig`. Data: coat, belly, girth. The near claw is on the right, the far one mirrors its arm."""
    girth = float(draw.get("girth", 1.0))
    far_upper, far_lower = _raised(pose.arm_far)
    near = chain((22 * girth, -6), _raised(pose.arm_near), _CLAW, _CLAW)
    far = chain((-22 * girth, -6), (-far_upper, -far_lower), _CLAW, _CLAW)
    lean = max(-16.0, min(22.0, pose.lean * 0.5))
    head = (2.0, -15.0, _CRAB_R)
    tilt = lean + (pose.head + face.tilt) * 0.5

    def paint(pen: Ink) -> Body:
        coat = draw["coat"]
        for side in (-1, 1):
            _legs(pen, side, girth, pose, darker(coat, 0.15))
        _claw(pen, far, darker(coat, 0.1), -1)
        _shell(pen.at(angle=lean), draw, girth, head)
        layout = FaceLayout(
            eyes=((-0.46, -0.5), (0.66, -0.5)), eye=0.38, mouth=(0.06, 0.92), width=0.95, lid=lighter(coat, 0.15)
        )
        top = pen.at(head[0], head[1], tilt, _CRAB_R)
        for x, y in layout.eyes:
            top.ellipse(x, y, 0.46, fill=coat)
        draw_face(top, face, layout)
        _claw(pen, near, coat, 1)
        place = on_head(head, tilt)
        return Body(
            head=head,
            mouth=place(0.3, 1.0),
            back=(-10.0, -20.0),
            neck=(0.0, 6.0, 46.0),
            crown=(*place(0.1, -0.85), 28.0),
            near=near,
            far=near,
            hip=(0.0, 12.0),
            shoulder=(0.0, -12.0),
            tilt=tilt,
        )

    turn = 0.0 if asleep(pose) else (180.0 if pose.lying else pose.turn * (0.2 if abs(pose.turn) < 90 else 0.95))
    return settle(ink, pose, paint, turn)


def _shell(body: Ink, draw: Mapping[str, Any], girth: float, head: tuple[float, float, float]) -> None:
    """Eye stalks, a wide shell, a pale mouth plate and freckles."""
    coat = draw["coat"]
    for x in (-0.42, 0.6):
        body.limb(
            [(head[0] + x * _CRAB_R, -10), (head[0] + x * _CRAB_R * 1.05, -16), (head[0] + x * _CRAB_R * 1.1, -22)],
            5.0,
            coat,
        )
    body.draw(
        f"M {-30 * girth:.1f} -4 Q {-28 * girth:.1f} -20 0 -20 Q {28 * girth:.1f} -20 {30 * girth:.1f} -4"
        f" Q {24 * girth:.1f} 17 0 17 Q {-24 * girth:.1f} 17 {-30 * girth:.1f} -4 Z",
        fill=coat,
    )
    body.draw("M -18 10 Q 0 4 18 10 Q 10 15.5 0 15.5 Q -10 15.5 -18 10 Z", fill=draw["belly"], width=0)
    for x, y in ((-16, -11), (-21, -5), (17, -11), (-11, -14)):
        body.ellipse(x * girth, y, 1.9, fill=lighter(coat, 0.35), width=0)
    speckle(body, draw.get("pattern"), draw.get("marks"), 22, 13)


def _raised(arm: tuple[float, float]) -> tuple[float, float]:
    """Directions for a claw: low and backward arms become raised claws, as none reaches through the shell."""
    if arm[0] >= 36 and arm[1] >= 40:
        return (max(arm[0], 60.0), arm[1])
    upper, lower = abs(arm[0]), abs(arm[1])
    return (upper if upper > 55 else 96.0 + upper * 0.2, lower if lower > 60 or upper > 70 else 162.0 + lower * 0.2)


def _legs(pen: Ink, side: int, girth: float, pose: Pose, fill: str) -> None:
    """Three bent legs on one side; they fold when it sleeps and fan out with the pose's legs."""
    low = 12.0 if asleep(pose) else 24.0
    swing = max(-8.0, min(8.0, pose.leg_near[0] * 0.12))
    for k, x in enumerate((10, 17, 23)):
        root: Point = (side * x * girth, 8 - k * 2)
        knee: Point = (side * (x + 10 + 3 * k) * girth, 5 - k * 2)
        foot: Point = (side * (x + 9 + 5 * k) * girth + swing * (1 - 2 * (k % 2)), low)
        pen.limb([root, knee, foot], 5.6, fill, taper=0.7)


def _claw(pen: Ink, arm: Arm, fill: str, side: int) -> None:
    """An arm with a big open pincer."""
    pen.limb(arm, 6.5, fill)
    (ex, ey), (hx, hy) = arm[1], arm[2]
    pincer = pen.at(hx, hy, math.degrees(math.atan2(hy - ey, hx - ex)), 1.15, 1.15 * side)
    pincer.draw("M -5 -5 Q 0 -15 14 -12 Q 21 -9 20 -2 Q 14 -5 9 -2 Q 13 2 17 3 Q 12 11 3 9 Q -5 7 -5 -5 Z", fill=fill)
    pincer.ellipse(2, -5, 1.8, fill=lighter(fill, 0.35), width=0)
