"""An actor on the stage with everything that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from katha.renderers.sketch.deeds import Body
from katha.renderers.sketch.scenes.record import SceneActor
from katha.renderers.sketch.scenes.things import Box, Sprite
from katha.renderers.sketch.svg import group

__all__ = ["Cluster", "shrunk"]


@dataclass
class Cluster:
    """An actor with what belongs to it, its front at `facing`; `solid` is what others keep clear of."""

    actor: SceneActor
    facing: int
    sprites: list[Sprite]
    body: Body | None = None
    solid: Box = (0.0, 0.0, 0.0, 0.0)
    holds: bool = False
    marks: list[str] = field(default_factory=list)

    def move(self, dx: float, dy: float = 0.0) -> None:
        """Put the whole cluster elsewhere."""
        self.sprites = [sprite.moved(dx, dy) for sprite in self.sprites]
        x0, y0, x1, y1 = self.solid
        self.solid = (x0 + dx, y0 + dy, x1 + dx, y1 + dy)

    def deepen(self, depth: float) -> None:
        """Draw the whole cluster nearer."""
        self.sprites = [replace(sprite, depth=sprite.depth + depth) for sprite in self.sprites]


def shrunk(sprite: Sprite, scale: float) -> Sprite:
    """The sprite smaller, about the stage's origin."""
    x0, y0, x1, y1 = (value * scale for value in sprite.local)
    face = None
    if sprite.face_local is not None:
        cx, cy, r = sprite.face_local
        face = (cx * scale, cy * scale, r * scale)
    return replace(sprite, svg=group(sprite.svg, transform=f"scale({scale:.4f})"), local=(x0, y0, x1, y1),
                   x=sprite.x * scale, y=sprite.y * scale, face_local=face, grounded=False)  # fmt: skip
