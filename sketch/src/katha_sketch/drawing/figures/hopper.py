"""The hopper rig: a frog that sits on folded hind legs, with a wide mouth and eyes on top of its head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face
from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.stance import Arm, Body, asleep, chain, on_head, settle, speckle
from katha_sketch.drawing.style import INK, darker, lighter

__all__ = ["draw_hopper"]

_R, _ARM, _THIGH, _SHIN = 21.0, 12.0, 19.0, 19.0


def draw_hopper(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a frog; see `Rig`. Data: coat, belly, girth."""
    rest = asleep(pose)
    lean = 12.0 if rest else pose.lean
    body = Ink().at(angle=min(lean, 58.0) * 0.8)
    head = (*body.map(*((9, -20) if rest else (3, -31))), _R)
    tilt = lean * 0.35 + pose.head + face.tilt
    girth = float(draw.get("girth", 1.0))
    near = chain(body.map(-11 * girth, -10), (0.0, 20.0) if rest else pose.arm_near, _ARM, _ARM * (0.5 if rest else 1))
    far = chain(body.map(14 * girth, -10), (10.0, 40.0) if rest else pose.arm_far, _ARM, _ARM)
    legs = (_leg((-12 * girth, 8), pose.leg_near, pose), _leg((12 * girth, 8), pose.leg_far, pose))

    def paint(pen: Ink) -> Body:
        _limb(pen, far, darker(draw["coat"], 0.15))
        for leg, shade in ((legs[1], 0.15), (legs[0], 0.05)):
            _hind(pen, leg, darker(draw["coat"], shade))
        trunk = pen.at(angle=min(lean, 58.0) * 0.8)
        trunk.ellipse(0, 0, 20 * girth, 20, fill=draw["coat"])
        trunk.ellipse(4, 3, 14 * girth, 15, fill=draw["belly"], width=0)
        speckle(trunk.at(-6, 0), draw.get("pattern"), draw.get("marks"), 14, 16)
        if not _stretched(pose):
            pen.ellipse(legs[0][1][0] + 4, legs[0][1][1] + 4, 10.5, 8, fill=draw["coat"], angle=-38)
        _head(pen.at(head[0], head[1], tilt, _R), draw, face)
        _limb(pen, near, draw["coat"])
        place = on_head(head, tilt)
        return Body(
            head=head,
            mouth=place(0.15, 0.45),
            back=body.map(-12, -16),
            neck=(*body.map(1, -15), 26.0),
            crown=(*place(0.0, -0.72), 1.4 * _R),
            near=near,
            far=far,
            hip=(0.0, 10.0),
            shoulder=(0.0, -6.0),
            tilt=tilt,
            extra={"foot": legs[0][2], "foot_far": legs[1][2]},
        )

    return settle(ink, pose, paint, _turn(pose))


def _turn(pose: Pose) -> float:
    if asleep(pose):
        return 0.0
    return -150.0 if pose.lying else pose.turn * (0.5 if abs(pose.turn) < 90 else 0.9)


def _stretched(pose: Pose) -> bool:
    """Whether the hind legs are stretched out, as in leaping (which is how a frog runs), swimming and falling."""
    return pose.lift > 0 or pose.sunk > 0.3 or (pose.lying and not asleep(pose)) or "pole" in pose.emanata


def _leg(root: tuple[float, float], angles: tuple[float, float], pose: Pose) -> Arm:
    """A hind leg: folded with a high knee, or stretched by the pose's angles."""
    side = 1 if root[0] > 0 else -1
    if _stretched(pose):
        back = -38 if side < 0 else -14
        return chain(root, (angles[0] * 0.5 + back, angles[1] * 0.5 + back), _THIGH, _SHIN)
    swing = max(-14.0, min(14.0, angles[0] * 0.3))
    knee = (root[0] + side * 9 + swing * 0.4, root[1] - 6)
    return (root, knee, (root[0] + side * 3 + swing, root[1] + 14))


def _hind(pen: Ink, leg: Arm, fill: str) -> None:
    pen.limb(leg, 9.0, fill)
    x, y = leg[2]
    pen.at(x, y).draw("M -5 -3 Q 4 -5 10 -4 Q 14 -3 11 0 Q 16 1 12 3 Q 4 4 -5 3 Q -8 0 -5 -3 Z", fill=fill)


def _limb(pen: Ink, arm: Arm, fill: str) -> None:
    pen.limb(arm, 7.0, fill)
    x, y = arm[2]
    for dx, dy in ((-3.4, 1.5), (3.6, 1.5), (0.2, 3.2)):
        pen.ellipse(x + dx, y + dy, 2.9, fill=fill, width=0.8)
    pen.ellipse(x, y, 3.6, fill=fill, width=0)


def _head(pen: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """A wide flat head with two bulging eyes on top."""
    coat = draw["coat"]
    for x in (-0.5, 0.66):
        pen.ellipse(x, -0.58, 0.46, fill=coat)
    pen.ellipse(0.05, 0.12, 1.2, 0.78, fill=coat)
    pen.draw(
        "M -0.98 0.42 Q 0.05 0.2 1.1 0.42 Q 0.8 0.9 0.05 0.88 Q -0.7 0.9 -0.98 0.42 Z", fill=draw["belly"], width=0
    )
    for x in (0.0, 0.2):
        pen.ellipse(x, 0.0, 0.05, fill=INK, width=0)
    layout = FaceLayout(
        eyes=((-0.5, -0.6), (0.66, -0.6)), eye=0.3, mouth=(0.08, 0.4), width=1.1, lid=lighter(coat, 0.15)
    )
    draw_face(pen, face, layout)
