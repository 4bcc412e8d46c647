"""Faces from the vocabulary's `draw:` data: what a feeling does to the face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from katha.renderers.sketch.figures.data import drawing
from katha.renderers.sketch.figures.rig import FaceParams, FigureSpec, Pose

__all__ = ["face_of"]


def face_of(spec: FigureSpec, pose: Pose) -> FaceParams:
    """The face of the figure's feeling (neutral without one) with what the action itself does to eyes and mouth.

    Raises:
        RenderError: the vocabulary has no such feeling.
    """
    face = FaceParams(**_known(drawing("emotions", spec.emotion))) if spec.emotion else FaceParams()
    if pose.eyes:
        face = replace(face, eyes=pose.eyes, brow=None)
    return replace(face, mouth=pose.mouth or face.mouth)


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of `data` that are fields of a face, lists as tuples."""
    names = {f.name for f in fields(FaceParams)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in names}
