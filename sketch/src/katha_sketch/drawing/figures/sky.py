"""The rig of the sky: a face that floats, with two arms, on a disc with rays (sun) or on a cloud that puffs (wind)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face
from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.stance import Arm, Body, asleep, chain, on_head, settle, speckle
from katha_sketch.drawing.style import darker, lighter

__all__ = ["draw_sky"]

_R, _UPPER, _LOWER, _AFLOAT, _RAYS = 23.0, 12.0, 12.0, 14.0, 12
_IDLE = 45.0  # degrees by which idle arms are spread, as they would look like legs
_CLOUD = ((-24, 8, 15), (-13, -13, 16), (9, -17, 17), (24, 1, 17), (14, 15, 15), (-8, 16, 16), (0, 0, 22))


def draw_sky(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw the sun or the wind; see `Rig`. Data: shape (disc, cloud), coat, belly, limbs, girth."""
    girth = float(draw.get("girth", 1.0))
    shape = draw.get("shape", "disc")
    tilt = max(-24.0, min(24.0, pose.lean * 0.5 + pose.head + face.tilt))
    idle = _IDLE if max(map(abs, (*pose.arm_near, *pose.arm_far))) < _IDLE else 0.0
    near = chain((-18 * girth, 11), (pose.arm_near[0] - idle, pose.arm_near[1] - idle), _UPPER, _LOWER)
    far = chain((19 * girth, 11), (pose.arm_far[0] + idle, pose.arm_far[1] + idle), _UPPER, _LOWER)
    limbs = draw.get("limbs", darker(draw["coat"], 0.12))
    if shape == "cloud" and face.mouth == "rest":
        face = replace(face, mouth="o")

    def paint(pen: Ink) -> Body:
        _arm(pen, far, darker(limbs, 0.1))
        _SHAPES[shape](pen.at(sx=girth, sy=1.0), draw)
        speckle(pen, draw.get("pattern"), draw.get("marks"), 20, 20)
        layout = FaceLayout(
            eyes=((-0.3, -0.18), (0.5, -0.18)), eye=0.27, mouth=(0.12, 0.44), width=0.66, lid=lighter(draw["coat"], 0.2)
        )
        top = pen.at(angle=tilt, sx=_R)
        for x in (-0.52, 0.74):
            top.ellipse(x, 0.3, 0.2, 0.15, fill=draw["belly"], width=0)
        draw_face(top, face, layout)
        _arm(pen, near, limbs)
        place = on_head((0.0, 0.0, _R), tilt)
        return Body(
            head=(0.0, 0.0, _R),
            mouth=place(0.3, 0.45),
            back=(-18.0, -12.0),
            neck=(0.0, 20.0, 36.0),
            crown=(*place(0.0, -0.95), 1.4 * _R),
            near=near,
            far=far,
            hip=(0.0, 20.0),
            shoulder=(0.0, 4.0),
            tilt=tilt,
        )

    grounded = pose.lying or "water" in pose.emanata or "stool" in pose.emanata
    return settle(ink, pose, paint, _turn(pose), 0.0 if grounded else pose.lift + _AFLOAT)


def _turn(pose: Pose) -> float:
    """A face that floats stays upright unless it falls or lies dead."""
    if asleep(pose):
        return 0.0
    return pose.turn * (0.9 if pose.lying or abs(pose.turn) > 90 else 0.25)


def _arm(pen: Ink, arm: Arm, fill: str) -> None:
    pen.limb(arm, 5.5, fill)
    pen.ellipse(*arm[2], 4.4, fill=fill)


def _disc(pen: Ink, draw: Mapping[str, Any]) -> None:
    """Pointed rays, long and short in turn, around a disc."""
    for nth in range(_RAYS):
        ray = pen.at(angle=360 * nth / _RAYS)
        tip = 40.0 if nth % 2 == 0 else 35.0
        ray.polygon([(-7.5, -21), (0, -tip), (7.5, -21)], fill=draw.get("rays", draw["coat"]))
    pen.ellipse(0, 0, _R + 2, fill=draw["coat"])


def _cloud(pen: Ink, draw: Mapping[str, Any]) -> None:
    """A heap of puffs with one outline, and three curls of air that trail behind it."""
    for y, reach, curl in ((-8, 26, -7), (4, 36, -8), (16, 24, 7)):
        x = -34
        pen.draw(
            f"M {x + 8} {y} L {x - reach + 10} {y} Q {x - reach - 2} {y} {x - reach} {y + curl}"
            f" Q {x - reach + 3} {y + 1.7 * curl} {x - reach + 9} {y + curl}",
            stroke=draw.get("air", "#7fb0c8"),
            width=1.7,
        )
    for x, y, r in _CLOUD:
        pen.ellipse(x, y, r + 1, fill=draw["coat"])
    for x, y, r in _CLOUD:
        pen.ellipse(x, y, r, fill=draw["coat"], width=0)
    for x, y, r in _CLOUD[:3]:
        angle = math.atan2(y, x)
        cx, cy = x * 0.9, y * 0.9
        start, end = angle - 0.5, angle + 0.5
        pen.draw(
            f"M {cx + r * 0.75 * math.cos(start):.2f} {cy + r * 0.75 * math.sin(start):.2f}"
            f" Q {cx + r * 0.86 * math.cos(angle):.2f} {cy + r * 0.86 * math.sin(angle):.2f}"
            f" {cx + r * 0.75 * math.cos(end):.2f} {cy + r * 0.75 * math.sin(end):.2f}",
            stroke=lighter(draw["coat"], 0.6),
            width=1.6,
        )


_SHAPES: Mapping[str, Callable[[Ink, Mapping[str, Any]], None]] = {"disc": _disc, "cloud": _cloud}
