"""The insect rig: upright storybook ants, bees and grasshoppers with feelers, six limbs and an abdomen behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face
from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.stance import Arm, Body, chain, flying, on_head, settle, speckle
from katha_sketch.drawing.style import INK, darker, lighter

__all__ = ["draw_insect"]

_R, _UPPER, _LOWER, _THIGH, _SHIN = 21.0, 13.0, 13.0, 10.0, 10.0
Rear = Callable[[Ink, Mapping[str, Any], Pose], None]


def draw_insect(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw an insect; see `Rig`. Data: coat, belly, rear (ant, bee, grasshopper), skull, feelers, limb colour."""
    frame = Ink().at(angle=pose.lean * 0.85)
    head = (*frame.map(3, -36), _R)
    tilt = pose.lean * 0.4 + pose.head + face.tilt
    near = chain(frame.map(-5, -16), pose.arm_near, _UPPER, _LOWER)
    far = chain(frame.map(7, -16), pose.arm_far, _UPPER, _LOWER)
    legs = chain((-4, 2), pose.leg_near, _THIGH, _SHIN), chain((5, 2), pose.leg_far, _THIGH, _SHIN)

    def paint(pen: Ink) -> Body:
        coat = draw["coat"]
        limb = draw.get("limbs", darker(coat, 0.3))
        _limb(pen, far, darker(limb, 0.1))
        trunk = pen.at(angle=pose.lean * 0.85)
        _REARS[draw.get("rear", "ant")](trunk, draw, pose)
        _limb(pen, legs[1], darker(limb, 0.1), foot=True)
        _limb(pen, legs[0], limb, foot=True)
        _limb(trunk, chain((9, -6), (42, 70), 9, 8), limb)
        chest = draw.get("chest", coat)
        trunk.ellipse(0, -10, 11 * draw.get("girth", 1.0), 13.5, fill=chest)
        trunk.ellipse(3, -8, 6 * draw.get("girth", 1.0), 9, fill=draw["belly"], width=0)
        _head(pen.at(head[0], head[1], tilt, _R), draw, face)
        _limb(pen, near, limb)
        place = on_head(head, tilt)
        return Body(
            head=head,
            mouth=place(0.2, 0.5),
            back=frame.map(-12, -14),
            neck=(*frame.map(1, -19), 19.0),
            crown=(*place(0.0, -0.8), 1.45 * _R),
            near=near,
            far=far,
            hip=(0.0, 2.0),
            shoulder=frame.map(0, -16),
            tilt=tilt,
            extra={"foot": legs[0][2], "foot_far": legs[1][2]},
        )

    return settle(ink, pose, paint, pose.turn * (0.6 if 0 < pose.turn < 90 else 1.0))


def _limb(pen: Ink, arm: Arm, fill: str, foot: bool = False) -> None:
    pen.limb(arm, 5.0, fill)
    x, y = arm[2]
    if foot:
        pen.ellipse(x + 2.4, y, 5.2, 3.0, fill=fill, width=0.9)
    else:
        pen.ellipse(x, y, 3.4, fill=fill, width=0.9)


def _ant(pen: Ink, draw: Mapping[str, Any], pose: Pose) -> None:
    """A waist and a big round abdomen."""
    girth = draw.get("girth", 1.0)
    pen.ellipse(-8, 0, 5, fill=draw["coat"])
    pen.ellipse(-23, 2, 18 * girth, 14 * girth, fill=draw["coat"], angle=-14)
    pen.ellipse(-27, -3, 6, 3.6, fill=lighter(draw["coat"], 0.3), width=0, angle=-20)
    speckle(pen.at(-23, 2), draw.get("pattern"), draw.get("marks"), 13, 10)


def _bee(pen: Ink, draw: Mapping[str, Any], pose: Pose) -> None:
    """A striped barrel with a sting, under two pale wings."""
    girth = draw.get("girth", 1.0)
    beat = 24 if flying(pose) else 0
    for angle in (-62 - beat, -28 - beat):
        pen.at(-4, -16, angle).ellipse(0, -19, 10, 20, fill="#dff0f7")
    body = pen.at(-20, 3, -16)
    body.polygon([(-18, -4), (-30, 0), (-18, 4)], fill=INK)
    body.ellipse(0, 0, 21, 15 * girth, fill=draw["coat"])
    for x, half in ((-13, 10.5), (-4, 13.5), (5, 13)):
        high = half * girth
        body.draw(
            f"M {x - 2.6} {-high:.1f} Q {x + 1.4} 0 {x - 2.6} {high:.1f}"
            f" L {x + 2.2} {high:.1f} Q {x + 6} 0 {x + 2.2} {-high:.1f} Z",
            fill=INK,
            width=0,
        )
    speckle(body, draw.get("pattern"), draw.get("marks"), 13, 9)


def _grasshopper(pen: Ink, draw: Mapping[str, Any], pose: Pose) -> None:
    """A long abdomen under folded wings, and a great folded hind leg."""
    coat = draw["coat"]
    body = pen.at(-2, -2, -24)
    body.draw("M 4 -8 Q -24 -13 -48 -2 Q -26 10 4 8 Z", fill=draw["belly"])
    for x in (-12, -21, -30):
        body.line([(x, 0), (x + 1, 6)], width=0.7)
    speckle(body.at(-20, 0), draw.get("pattern"), draw.get("marks"), 16, 6)
    wing = body.at(2, -6, 34 if flying(pose) else 4)
    wing.draw("M 2 6 Q -20 -14 -54 -4 Q -34 8 2 6 Z", fill=draw.get("wing", darker(coat, 0.12)))
    leap = pose.lift > 0
    knee, foot = ((-22.0, -10.0), (-40.0, 16.0)) if leap else ((-24.0, -24.0), (-31.0, 20.0))
    pen.limb([knee, ((knee[0] + foot[0]) / 2, (knee[1] + foot[1]) / 2), foot], 4.6, darker(coat, 0.1))
    pen.limb([(-2, 2), ((knee[0] - 2) / 2, knee[1] / 2 + 1), knee], 9.5, coat, taper=0.7)
    pen.ellipse(foot[0] + 3, foot[1], 5.5, 2.8, fill=darker(coat, 0.1), width=0.9)


_REARS: Mapping[str, Rear] = {"ant": _ant, "bee": _bee, "grasshopper": _grasshopper}


def _head(pen: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    skin = draw.get("head_colour", draw["coat"])
    wide, high = draw.get("skull", (1.0, 0.96))
    reach = float(draw.get("feelers", 1.0))
    for x, bend in ((-0.3, -0.5), (0.42, 0.55)):
        tip = (x + bend * (0.9 + 0.5 * reach), -0.75 - 0.75 * reach)
        pen.draw(f"M {x} -0.8 Q {x + bend * 0.2:.2f} {-0.9 - 0.6 * reach:.2f} {tip[0]:.2f} {tip[1]:.2f}", width=1.5)
        if draw.get("knobs", True):
            pen.ellipse(tip[0], tip[1], 0.15, fill=darker(skin, 0.3), width=0.8)
    pen.ellipse(0, 0, wide, high, fill=skin)
    if draw.get("jaw"):
        pen.ellipse(0.14, 0.42, 0.62, 0.46, fill=draw["jaw"], width=0)
    layout = FaceLayout(
        eyes=((-0.28, -0.14), (0.5, -0.14)), eye=float(draw.get("eye", 0.29)), mouth=(0.13, 0.48), width=0.66,
        lid=lighter(skin, 0.15), brow="cream" if draw.get("dark") else INK,
    )  # fmt: skip
    draw_face(pen, face, layout)
