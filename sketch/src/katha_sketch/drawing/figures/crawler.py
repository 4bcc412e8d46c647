"""The crawler rig: crocodiles, lizards and turtles on four short legs, the front ones serving as arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.rig import FaceParams, FigureSpec, Joints, Pose
from katha_sketch.drawing.figures.scales import TAILS, TRUNKS, draw_head
from katha_sketch.drawing.figures.stance import Arm, Body, asleep, chain, on_head, settle
from katha_sketch.drawing.style import darker

__all__ = ["draw_crawler"]

_CLIMB = -62.0  # how far a crawler rears up to climb


@dataclass(frozen=True)
class _Bones:
    """A posed crawler: trunk from hip to shoulder, head, front legs (arms) and hind legs."""

    hip: Point
    shoulder: Point
    head: tuple[float, float, float]
    tilt: float
    near: Arm
    far: Arm
    hind_near: Arm
    hind_far: Arm


def draw_crawler(ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
    """Draw a crawling animal; see `Rig`. Data: coat, belly, body (length, thickness), legs, head, snout, tail."""
    bones = _bones(draw, pose, face)

    def paint(pen: Ink) -> Body:
        coat, thick = draw["coat"], float(draw.get("limb", 10.0))
        TAILS[draw.get("tail", "heavy")](pen.at(*bones.hip, -12 if pose.moving else 0), draw)
        for limb in (bones.far, bones.hind_far):
            _leg(pen, limb, darker(draw.get("paws", coat), 0.18), thick * 0.9)
        TRUNKS[draw.get("trunk", "ridged")](pen, draw, bones.hip, bones.shoulder)
        _leg(pen, bones.hind_near, darker(draw.get("paws", coat), 0.05), thick)
        x, y, r = bones.head
        draw_head(pen.at(x, y, bones.tilt, r), draw, face)
        _leg(pen, bones.near, draw.get("paws", coat), thick)
        return _body(bones, draw)

    return settle(ink, pose, paint, _turn(pose))


def _turn(pose: Pose) -> float:
    """Crawlers rear up to climb, nose-dive when they fall and lie on their backs when dead."""
    if asleep(pose):
        return 0.0
    if pose.lying:
        return 180.0
    if "pole" in pose.emanata:
        return _CLIMB
    if pose.turn > 90:
        return 128.0
    if "water" in pose.emanata:
        return 0.0
    return pose.turn * -0.25 + (-18.0 if "spring" in pose.emanata else 0.0)


def _bones(draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> _Bones:
    long, thick = draw.get("body", (46.0, 15.0))
    legs, r = float(draw.get("legs", 17.0)), float(draw.get("head", 17.0))
    neck_x, neck_y = draw.get("neck", (18.0, -12.0))
    rest = asleep(pose)
    rear = 0.0 if rest else max(-6.0, min(24.0, abs(pose.arm_near[0]) * 0.2 - 4)) - pose.lean * 0.12
    hip, shoulder = (-long / 2, 0.0), (long / 2, -rear)
    drop = 12.0 if rest else pose.lean * 0.2
    head = (shoulder[0] + neck_x, shoulder[1] + neck_y + drop)
    short = 0.4 if rest else 1.0
    reach = float(draw.get("reach", 1.35)) if max(abs(pose.arm_near[0]), abs(pose.arm_near[1])) > 40 else 1.0
    upper, lower = legs * 0.52 * short * reach, legs * 0.5 * short * reach
    root = thick * 0.5
    return _Bones(
        hip=hip,
        shoulder=shoulder,
        head=(*head, r),
        tilt=pose.lean * 0.3 + pose.head + face.tilt * 0.7,
        near=chain((shoulder[0] - 5, shoulder[1] + root), pose.arm_near, upper, lower),
        far=chain((shoulder[0] + 6, shoulder[1] + root - 2), pose.arm_far, upper, lower),
        hind_near=chain((hip[0] + 1, root), _stride(pose.leg_near), legs * 0.52 * short, legs * 0.5 * short),
        hind_far=chain((hip[0] + 11, root - 2), _stride(pose.leg_far), legs * 0.52 * short, legs * 0.5 * short),
    )


def _stride(angles: tuple[float, float]) -> tuple[float, float]:
    """Hind legs of a long body swing less than a person's legs."""
    return (angles[0] * 0.6, max(-60.0, angles[1] * 0.6))


def _leg(pen: Ink, limb: Arm, fill: str, thick: float) -> None:
    pen.limb(limb, thick, fill)
    x, y = limb[2]
    pen.ellipse(x + 2, y, thick * 0.68, thick * 0.45, fill=fill)
    for dx in (0.5, 3.5):
        pen.line([(x + 2 + dx, y + thick * 0.1), (x + 2 + dx + 1, y + thick * 0.4)], width=0.6)


def _body(bones: _Bones, draw: Mapping[str, Any]) -> Body:
    x, y, r = bones.head
    place: Callable[[float, float], Point] = on_head(bones.head, bones.tilt)
    thick = draw.get("body", (46.0, 15.0))[1]
    return Body(
        head=bones.head,
        mouth=place(*draw.get("mouth_at", (0.8, 0.4))),
        back=(0.0, (bones.hip[1] + bones.shoulder[1]) / 2 - thick),
        neck=(x - r * 0.85, y + r * 0.85, max(16.0, thick * 1.1)),
        crown=(*place(-0.05, -0.85), 1.4 * r),
        near=bones.near,
        far=bones.far,
        hip=(0.0, thick * 0.6),
        shoulder=(0.0, -thick * 0.2),
        tilt=bones.tilt,
        extra={"foot": bones.near[2], "foot_far": bones.far[2]},
    )
