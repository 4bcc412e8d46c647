"""What birds, reptiles, fish and insects share: limbs as chains, standing on the ground, tools in hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from katha_sketch.drawing.figures.ink import Ink, Point, Sheet
from katha_sketch.drawing.figures.rig import FaceParams, Joints, Pose
from katha_sketch.drawing.figures.tools import TOOLS

__all__ = ["Arm", "Body", "Paint", "along", "asleep", "chain", "curve_of", "flying", "on_head", "settle", "speckle"]

Arm = tuple[Point, Point, Point]
_STOOL, _SOLE = 14.0, 1.2  # how high a seat is; how far a foot's outline may enter the ground

_CURVES: Mapping[str, float] = {
    "smile": 1.0, "grin": 1.0, "gentle": 0.7, "smug": 0.8, "lopsided": 0.9, "frown": -1.0, "wail": -1.0, "pout": -0.6,
    "wavy": -0.5, "gritted": -0.3, "rest": 0.3,
}  # fmt: skip


@dataclass(frozen=True)
class Body:
    """A drawn body in its own coordinates; arms are (shoulder, elbow, hand), crown and neck end in a width."""

    head: tuple[float, float, float]
    mouth: Point
    back: Point
    neck: tuple[float, float, float]
    crown: tuple[float, float, float]
    near: Arm
    far: Arm
    hip: Point
    shoulder: Point
    tilt: float = 0.0
    extra: Mapping[str, Point] = field(default_factory=dict)


Paint = Callable[[Ink], Body]


def along(start: Point, angle: float, length: float) -> Point:
    """The point `length` away in direction `angle`: 0 hangs down, 90 points forward, 180 up."""
    return (start[0] + math.sin(math.radians(angle)) * length, start[1] + math.cos(math.radians(angle)) * length)


def chain(root: Point, angles: Sequence[float], upper: float, lower: float) -> Arm:
    """A two-part limb from its root by absolute directions."""
    joint = along(root, angles[0], upper)
    return (root, joint, along(joint, angles[1], lower))


def asleep(pose: Pose) -> bool:
    """Whether a lying body sleeps (it keeps its feet under it) rather than lies dead (on its back)."""
    return pose.lying and pose.eyes == "closed"


def flying(pose: Pose) -> bool:
    """Whether the pose is of flight."""
    return "wind" in pose.emanata


def on_head(head: tuple[float, float, float], tilt: float) -> Callable[[float, float], Point]:
    """Where points of a head's unit circle lie once it is placed and tilted by `tilt` degrees."""
    x, y, r = head
    pen = Ink().at(x, y, tilt, r)
    return pen.map


def curve_of(face: FaceParams) -> float:
    """How a shut beak or snout curves for this mouth: 1 smiles, -1 hangs."""
    return _CURVES.get(face.mouth, 0.0)


def settle(ink: Ink, pose: Pose, paint: Paint, turn: float = 0.0, lift: float | None = None) -> Joints:
    """Draw the body turned by `turn` degrees with its lowest point `lift` above the ground, then the action's tool.

    `paint` is called twice: once on scratch paper to measure, once with `ink`.
    """
    sheet = Sheet()
    paint(Ink(sheet).at(angle=turn))
    x0, _, x1, y1 = sheet.box or (0.0, 0.0, 0.0, 0.0)
    raised = pose.lift if lift is None else lift
    raised += _STOOL if "stool" in pose.emanata else -_SOLE
    dx, dy = (-(x0 + x1) / 2 if turn else 0.0), -y1 - raised
    body = paint(ink.at(dx, dy, turn))
    joints, near, far = _mapped(body, Ink().at(dx, dy, turn), turn)
    if pose.tool:
        TOOLS[pose.tool](ink, near, far)
    return joints


def _mapped(body: Body, place: Ink, turn: float) -> tuple[Joints, Arm, Arm]:
    """The body's points where `place` puts them."""

    def put(p: Sequence[float]) -> Point:
        return place.map(p[0], p[1])

    near = (put(body.near[0]), put(body.near[1]), put(body.near[2]))
    far = (put(body.far[0]), put(body.far[1]), put(body.far[2]))
    joints = Joints(
        head=(*put(body.head), body.head[2]),
        hand=near[2],
        mouth=put(body.mouth),
        back=put(body.back),
        neck=(*put(body.neck), body.neck[2]),
        crown=(*put(body.crown), body.crown[2]),
        tilt=body.tilt + turn,
        hand_far=far[2],
        extra={"hip": put(body.hip), "shoulder": put(body.shoulder), **{k: put(p) for k, p in body.extra.items()}},
    )
    return joints, near, far


def speckle(ink: Ink, pattern: str | None, marks: str | None, wide: float, high: float) -> None:
    """Spots or stripes within an ellipse of half-axes `wide`, `high` around the pen's origin."""
    shade = marks or "dark_brown"
    if pattern == "spots":
        for u, v in ((-0.5, -0.35), (0.05, -0.6), (0.45, -0.2), (-0.15, 0.1), (0.3, 0.45), (-0.45, 0.5)):
            ink.ellipse(u * wide, v * high, 0.13 * wide + 0.6, fill=shade, width=0)
    elif pattern == "stripes":
        for u in (-0.55, -0.15, 0.25, 0.6):
            half = math.sqrt(1 - u * u) * high * 0.8
            ink.line([(u * wide, -half), (u * wide - 1, half * 0.4)], stroke=shade, width=1.5)
