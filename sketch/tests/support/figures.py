"""Creatures as the tests of the rigs ask for them: in the pose of an older action, with anchors by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from katha_sketch.drawing.deeds import draw_creature, with_phase
from katha_sketch.drawing.figures.data import drawing
from katha_sketch.drawing.figures.rig import Pose


@dataclass(frozen=True)
class FigureSpec:
    """A character of the vocabulary with what it looks like, does and feels."""

    concept: str
    attributes: tuple[str, ...] = ()
    action: str | None = None
    emotion: str | None = None
    facing: int = 1
    phase: float = 0.0


@dataclass(frozen=True)
class Figure:
    """A drawn character in figure units, its foot at (0, 0)."""

    svg: str
    bbox: tuple[float, float, float, float]
    head: tuple[float, float, float]
    anchors: Mapping[str, tuple[float, float]]


def draw_figure(spec: FigureSpec) -> Figure:
    """Draw one creature."""
    known = {field.name for field in fields(Pose)}
    asked = drawing("actions", spec.action) if spec.action else {}
    pose = Pose(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in asked.items() if key in known}
    )
    pose = with_phase(pose, spec.phase) if spec.phase else pose
    body = draw_creature(spec.concept, spec.attributes, pose, spec.emotion, spec.facing, spec.phase)
    return Figure(f"<g>{body.behind}{body.svg}</g>", body.bbox, body.head, body.joints)
