"""Poses and faces from the vocabulary's `draw:` data: what an action does to the body and what a feeling does to the
face."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from katha.renderers.sketch.figures.data import drawing
from katha.renderers.sketch.figures.rig import FaceParams, FigureSpec, Pose

__all__ = ["face_of", "pose_of"]

_SWING = 5.0  # degrees that `phase` moves a limb by
_HOLDS: Mapping[str, tuple[str, ...]] = {"rope": ("ropes",), "well": ("wall",), "hole": ("pit",)}
"""What is drawn around a captive in place of the usual sign, by the thing that holds it; others need nothing."""


def pose_of(spec: FigureSpec) -> Pose:
    """The pose of the figure's action (standing without one), varied a little by its phase.

    Raises:
        RenderError: the vocabulary has no such action.
    """
    pose = Pose(**_known(Pose, drawing("actions", spec.action))) if spec.action else Pose()
    wave = math.sin(2 * math.pi * spec.phase)
    other = math.sin(2 * math.pi * spec.phase + 2.0) - math.sin(2.0)
    if spec.carries and pose.tool is None and abs(pose.arm_near[0]) <= 35:
        pose = replace(pose, arm_near=(28.0, 92.0))
    if spec.held_by is not None:
        pose = replace(pose, emanata=_HOLDS.get(spec.held_by, ()))
    return replace(
        pose,
        arm_near=_shifted(pose.arm_near, wave),
        arm_far=_shifted(pose.arm_far, other),
        leg_near=_shifted(pose.leg_near, 0.6 * other),
        leg_far=_shifted(pose.leg_far, 0.6 * wave),
        lean=pose.lean + 1.5 * wave,
        head=pose.head + 2.5 * other,
    )


def face_of(spec: FigureSpec, pose: Pose) -> FaceParams:
    """The face of the figure's feeling (neutral without one) with what the action itself does to eyes and mouth.

    Raises:
        RenderError: the vocabulary has no such feeling.
    """
    face = FaceParams(**_known(FaceParams, drawing("emotions", spec.emotion))) if spec.emotion else FaceParams()
    if pose.eyes:
        face = replace(face, eyes=pose.eyes, brow=None)
    return replace(face, mouth=pose.mouth or face.mouth)


def _known(kind: type[Pose] | type[FaceParams], data: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `data` that are fields of `kind`, lists as tuples."""
    names = {f.name for f in fields(kind)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in names}


def _shifted(limb: tuple[float, float], wave: float) -> tuple[float, float]:
    return (limb[0] + _SWING * wave, limb[1] + _SWING * wave)
