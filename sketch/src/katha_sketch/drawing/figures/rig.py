"""The contract between what draws a figure (`deeds.figure`) and the rigs that draw bodies: what a figure is asked to
be, and what a rig answers.

A rig draws one body plan (upright, bird, swimmer, ...) with the pen it is given: facing right, ground contact at (0,
0), y down,
about 100 units tall when it stands. The caller mirrors, scales and recolours before it calls the rig, and adds
accessories
and emanata (motion lines, bubbles, tears) afterwards, at the joints that the rig returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from katha_sketch.drawing.figures.ink import Box, Ink, Point

__all__ = ["Around", "Emanation", "FaceParams", "FigureSpec", "Joints", "Pose", "Rig"]


@dataclass(frozen=True)
class FigureSpec:
    """What to draw: a character of the vocabulary with what it looks like and feels (all ids of the vocabulary).

    `facing` is 1 (right) or -1 (left); `phase` in 0..1 varies the signs around it, so that repeated figures are not
    copies.
    """

    concept: str
    attributes: tuple[str, ...] = ()
    emotion: str | None = None
    facing: int = 1
    phase: float = 0.0


@dataclass(frozen=True)
class Pose:
    """What a body does, in words that any body plan can follow (degrees, figure facing right).

    A limb is (upper, lower): absolute directions where 0 hangs straight down, 90 points forward, 180 up, -90 back.
    `near` limbs are drawn in front of the body and `far` ones behind it. A bird reads arms as wings; a body without
    limbs reads
    `lean`, `turn`, `lift` and `emanata`.
    """

    arm_near: tuple[float, float] = (-16.0, -6.0)
    arm_far: tuple[float, float] = (18.0, 10.0)
    leg_near: tuple[float, float] = (-3.0, 0.0)
    leg_far: tuple[float, float] = (3.0, 0.0)
    lean: float = 0.0  # of the trunk, forward
    head: float = 0.0  # of the head beside the trunk, chin down
    turn: float = 0.0  # of the whole figure, clockwise: 90 lies face down, -90 lies on its back
    lift: float = 0.0  # units above the ground
    squash: float = 1.0  # height of the body beside its normal height, for crouching bodies without legs
    sunk: float = 0.0  # share of the height that ground, water or a hiding place covers from below
    eyes: str | None = None  # overrides the emotion's eyes (a key of the face's table)
    mouth: str | None = None  # overrides the emotion's mouth
    tool: str | None = None  # what the action itself puts into the near hand (axe, spade, flute, ...)
    emanata: tuple[str, ...] = ()  # signs around the figure (a key of the emanata table each)
    lying: bool = False
    moving: bool = False  # walks, runs, chases: a body on four legs strides


@dataclass(frozen=True)
class FaceParams:
    """How a face shows a feeling: keys of the face's tables and a few measures."""

    eyes: str = "dot"
    mouth: str = "rest"
    brow: float | None = None  # slope in degrees, positive is angry (inner ends low); None draws no brows
    brow_raise: float = 0.0  # how far above their usual place, in face radii
    pupil: Point = (0.0, 0.0)  # where the pupils look, in eye radii
    extras: tuple[str, ...] = ()  # blush, tears, sweat, sparkle, ...
    tilt: float = 0.0  # of the head, degrees, chin down


@dataclass(frozen=True)
class Joints:
    """Where a rig has put what the shared drawing needs, in the rig's units (before mirroring and scaling).

    `head` is (cx, cy, r), `tilt` its angle in degrees (clockwise), `neck` (x, y, width) is where a scarf goes,
    `crown` (x, y, width) where a hat sits, measured along the tilted head. `body` is the box of head, trunk and limbs.
    """

    head: tuple[float, float, float]
    hand: Point
    mouth: Point
    back: Point
    neck: tuple[float, float, float]
    crown: tuple[float, float, float]
    tilt: float = 0.0
    hand_far: Point | None = None
    extra: Mapping[str, Point] = field(default_factory=dict)


class Rig(Protocol):
    """A body plan. `draw` is the character's drawing data with attributes already applied (colours, girth, pattern)."""

    def __call__(self, ink: Ink, spec: FigureSpec, draw: Mapping[str, Any], pose: Pose, face: FaceParams) -> Joints:
        """Draw the body and head with `ink` and say where things are."""
        ...


@dataclass(frozen=True)
class Around:
    """The rig's joints, the body's box (rig units, facing right) and the figure's phase."""

    joints: Joints
    body: Box
    phase: float

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the body's box."""
        x0, y0, x1, y1 = self.body
        return ((x0 + x1) / 2, (y0 + y1) / 2)


Emanation = Callable[[Ink, Around], None]
