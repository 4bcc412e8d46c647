"""What the signs around a figure are placed by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from katha.renderers.sketch.figures.ink import Box, Ink
from katha.renderers.sketch.figures.rig import Joints

__all__ = ["Around", "Emanation"]


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
