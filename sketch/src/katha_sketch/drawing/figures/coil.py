"""The coil rig: a snake with a raised neck over its coils; the end of its tail serves as an arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face
from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.stance import Body, along, asleep, chain, on_head, settle, speckle
from katha_sketch.drawing.style import INK, darker, lighter

__all__ = ["draw_coil"]

_R, _THICK, _NECK, _TAIL = 18.0, 13.0, 30.0, 17.0


def draw_coil(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a snake; see `Rig`. Data: coat, belly, band, girth."""
    rest = asleep(pose)
    lean = 78.0 if rest else pose.lean * 1.1
    long = _long(pose)
    base: Point = (26.0, -4.0) if long else (2.0, -16.0)
    bend = along(base, 180 - lean * 0.4 + 22, _NECK * 0.55)
    top = along(bend, 180 - lean - 4, _NECK * (0.35 if rest else 0.75))
    head = (top[0] + 4, top[1], _R)
    tilt = lean * 0.25 + pose.head + face.tilt
    root: Point = (-24.0, -4.0) if long else (19.0, -8.0)
    angles = (-100.0, -70.0) if long else _reach(pose)
    tail = chain(root, angles, _TAIL, _TAIL)
    thick = _THICK * draw.get("girth", 1.0)

    def paint(pen: Ink) -> Body:
        coat = draw["coat"]
        pen.limb(tail, thick * 0.72, coat, taper=0.62)
        if long:
            _slither(pen, draw, thick)
        else:
            _coils(pen, draw, thick)
        pen.limb([base, bend, top], thick, coat)
        for share in (0.35, 0.8):
            x, y = bend[0] + (top[0] - bend[0]) * share, bend[1] + (top[1] - bend[1]) * share
            pen.ellipse(x, y, thick * 0.3, thick * 0.22, fill=draw.get("band", "yellow"), width=0)
        _head(pen.at(head[0], head[1], tilt, _R), draw, face)
        place = on_head(head, tilt)
        return Body(
            head=head,
            mouth=place(0.9, 0.35),
            back=(-10.0, -18.0),
            neck=(bend[0] * 0.3 + top[0] * 0.7, (bend[1] + top[1]) / 2, 17.0),
            crown=(*place(-0.05, -0.78), 1.35 * _R),
            near=tail,
            far=tail,
            hip=(0.0, -4.0),
            shoulder=(0.0, -16.0),
            tilt=tilt,
        )

    return settle(ink, pose, paint, _turn(pose))


def _reach(pose: Pose) -> tuple[float, float]:
    """Where the end of the tail goes for a near arm: never into the ground, and nowhere for a hanging arm."""
    if abs(pose.arm_near[0]) < 36 and abs(pose.arm_near[1]) < 60:
        return (76.0, 100.0)
    upper, lower = (angle if angle > 0 else 180 + angle * 0.3 for angle in pose.arm_near)
    return (max(84.0, upper), max(88.0, lower))


def _long(pose: Pose) -> bool:
    """Whether the snake is stretched out (it moves, swims, flies or leaps) instead of coiled."""
    if pose.lying:
        return not asleep(pose)
    return (
        (pose.moving and pose.tool is None)
        or "water" in pose.emanata
        or (pose.lift > 20 and pose.turn < 90 and "mount" not in pose.emanata)
    )


def _turn(pose: Pose) -> float:
    if asleep(pose):
        return 0.0
    if pose.lying:
        return 180.0
    return 150.0 if pose.turn > 90 else (-20.0 if pose.lift > 20 and "mount" not in pose.emanata else 0.0)


def _coils(pen: Ink, draw: Mapping[str, Any], thick: float) -> None:
    """Three coils, wider below, with bands."""
    coat, band = draw["coat"], draw.get("band", "yellow")
    for y, wide in ((-5, 30), (-14, 24), (-22, 16)):
        pen.ellipse(0, y, wide, thick * 0.62, fill=coat if y != -14 else darker(coat, 0.06))
        for u in (-0.62, -0.2, 0.25, 0.66):
            pen.ellipse(u * wide, y + 1.6, 3.2, 2.6, fill=band, width=0)
    speckle(pen.at(0, -12), draw.get("pattern"), draw.get("marks"), 22, 12)


def _slither(pen: Ink, draw: Mapping[str, Any], thick: float) -> None:
    """Two humps along the ground."""
    coat, band = draw["coat"], draw.get("band", "yellow")
    core = "M -26 -4 Q -22 -22 -11 -20 Q -1 -18 2 -8 Q 6 0 14 -3 Q 22 -10 27 -4"
    weight = pen.weight / pen.scale
    pen.draw(core, width=thick / weight + 1)
    pen.draw(core, stroke=coat, width=thick / weight - 1)
    for x, y in ((-22, -14), (-11, -20), (-1, -14), (9, -3), (19, -6)):
        pen.ellipse(x, y, 2.8, fill=band, width=0)


def _head(pen: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """A flat-browed head with a wide mouth, and a forked tongue while the mouth is shut."""
    coat = draw["coat"]
    if draw.get("hood"):
        pen.draw("M -0.2 -0.7 Q -1.7 -0.5 -1.25 0.7 Q -0.9 1.5 -0.2 1.6 Q 0.6 1.5 0.9 0.7 Z", fill=darker(coat, 0.12))
    if face.mouth in ("rest", "gentle", "smug", "smile", "flat", "pout", "lopsided"):
        d = "M 1 0.5 L 1.55 0.55 L 1.85 0.3 M 1.55 0.55 L 1.85 0.75"
        pen.draw(d, width=1.9)
        pen.draw(d, stroke="#e0524f", width=1.0)
    pen.draw(
        "M -0.98 -0.05 Q -0.9 -0.92 0.1 -0.9 Q 0.95 -0.85 1.15 -0.1"
        " Q 1.4 0.35 1.15 0.65 Q 0.6 0.95 0 0.88 Q -0.95 0.85 -0.98 -0.05 Z",
        fill=coat,
    )
    pen.draw("M -0.6 0.66 Q 0.3 0.3 1.22 0.42 Q 1.2 0.62 1 0.7 Q 0.3 0.95 -0.6 0.66 Z", fill=draw["belly"], width=0)
    pen.draw("M 0.02 -0.88 L 0.3 -0.62 L 0.02 -0.4 L -0.26 -0.62 Z", fill=draw.get("band", "yellow"), width=0.6)
    layout = FaceLayout(
        eyes=((-0.3, -0.22), (0.6, -0.22)), eye=0.29, mouth=(0.45, 0.42), width=0.95, lid=lighter(coat, 0.15),
        brow="cream" if draw.get("dark") else INK,
    )  # fmt: skip
    draw_face(pen, face, layout)
