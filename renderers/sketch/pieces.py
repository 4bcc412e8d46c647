"""A placed drawing in stage units, and how figures and props become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from katha.language import Actor
from katha.renderers.sketch.figures import Figure
from katha.renderers.sketch.props import draw_prop

__all__ = ["Box", "Piece", "piece_of_figure", "piece_of_prop", "union"]

Box = tuple[float, float, float, float]
Point = tuple[float, float]

_HANGS: Mapping[str, float] = {"window": -62.0, "hive": -70.0, "web": -50.0, "mirror": -30.0}
"""How high above the ground a prop hangs when nobody holds it."""

_FINNED = frozenset({"fish"})


@dataclass(frozen=True)
class Piece:
    """One drawing put at (x, y) and enlarged by `scale`. `local` is its box before that, `head` and anchors likewise.

    depth: drawn from low to high. swims: belongs in open water, where the setting has some. hang: its usual height
    above the ground (negative is up).
    """

    concept: str
    kind: Literal["character", "prop"]
    svg: str
    local: Box
    depth: float
    x: float = 0.0
    y: float = 0.0
    scale: float = 1.0
    head_local: tuple[float, float, float] | None = None
    anchors: Mapping[str, Point] = field(default_factory=dict)
    action: str | None = None
    emotion: str | None = None
    swims: bool = False
    hang: float = 0.0
    facing: int = 1
    rank: int = 0
    veil: bool = False

    @property
    def box(self) -> Box:
        """x0, y0, x1, y1 on the stage."""
        x0, y0, x1, y1 = (value * self.scale for value in self.local)
        return (x0 + self.x, y0 + self.y, x1 + self.x, y1 + self.y)

    @property
    def head(self) -> tuple[float, float, float] | None:
        """The head's circle (cx, cy, r) on the stage."""
        if self.head_local is None:
            return None
        cx, cy, r = (value * self.scale for value in self.head_local)
        return (cx + self.x, cy + self.y, r)

    def anchor(self, name: str) -> Point:
        """A named point on the stage."""
        x, y = self.anchors.get(name, (0.0, 0.0))
        return (x * self.scale + self.x, y * self.scale + self.y)

    def moved(self, dx: float, dy: float, depth: float = 0.0) -> Piece:
        """The same piece elsewhere."""
        return replace(self, x=self.x + dx, y=self.y + dy, depth=self.depth + depth)


def piece_of_figure(actor: Actor, figure: Figure, facing: int, rank: int, depth: float) -> Piece:
    """A figure standing at the stage's origin."""
    return Piece(
        concept=actor.concept,
        kind="character",
        svg=figure.svg,
        local=figure.bbox,
        depth=depth,
        facing=facing,
        rank=rank,
        head_local=figure.head,
        anchors=figure.anchors,
        action=actor.action,
        emotion=actor.emotion,
        swims=actor.action == "swim" or actor.concept in _FINNED,
    )


def piece_of_prop(concept: str, phase: float, depth: float, scale: float = 1.0) -> Piece:
    """A prop standing at the stage's origin."""
    drawn = draw_prop(concept, phase)
    return Piece(concept, "prop", drawn.svg, drawn.bbox, depth, scale=scale, hang=_HANGS.get(concept, 0.0))


def union(boxes: Iterable[Box]) -> Box:
    """The smallest box around `boxes` (at least one)."""
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return (min(x0s), min(y0s), max(x1s), max(y1s))
