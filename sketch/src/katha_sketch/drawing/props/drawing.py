"""Draws a prop from its entry in drawings.yaml: a list of shapes, the farthest first, and perhaps a scale.

    apple:
      scale: 0.8
      shapes:
        - ellipse red: 0 -12 12 12
        - line ink: 0 -23 3 -30

How one shape is written stands in `katha_sketch.drawing.props.shapes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from katha.errors import RenderError
from katha_sketch.drawing import svg
from katha_sketch.drawing.props.shapes import Shape, read_shape
from katha_sketch.drawing.tables import entry, load_table

__all__ = ["Drawing", "Drawn", "draw_prop", "read_drawing"]

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Drawn:
    """A prop as SVG in local units: y down, its base at (0, 0), a standing adult human 100 tall.

    `bbox` (x0, y0, x1, y1) contains everything drawn.
    """

    svg: str
    bbox: Box


@dataclass(frozen=True)
class Drawing:
    """An entry as read: its shapes, the farthest first, and the scale of the whole."""

    shapes: tuple[Shape, ...]
    scale: float = 1.0

    def at(self, phase: float) -> Drawn:
        """The drawing at `phase` of a cycle of 1."""
        parts = [shape.at(phase) for shape in self.shapes]
        x0, y0, x1, y1 = zip(*(bounds for _, bounds in parts), strict=True)
        bbox = (min(x0) * self.scale, min(y0) * self.scale, max(x1) * self.scale, max(y1) * self.scale)
        resized = f"scale({svg.number(self.scale)})" if self.scale != 1 else None
        return Drawn(svg.group(*(drawn for drawn, _ in parts), transform=resized), bbox)


def draw_prop(concept: str, phase: float = 0.0) -> Drawn:
    """The prop of id `concept`; `phase` (a cycle of 1) moves the parts that sway, such as flames.

    Raises:
        RenderError: no prop of that id, or its entry is not a drawing.
    """
    return _drawing(concept).at(phase)


def read_drawing(concept: str, draw: Mapping[str, Any]) -> Drawing:
    """The drawing in an entry such as `{scale: 0.8, shapes: [{"ellipse red": "0 -9 9 9"}]}`.

    Raises:
        RenderError: the entry is not a drawing; the message says which shape is wrong and why.
    """
    rows = draw.get("shapes")
    if not isinstance(rows, list) or not rows:
        raise RenderError(f"The prop {concept!r} has no drawing.", hint="Give it `shapes: [...]` in drawings.yaml.")
    unknown = sorted(set(draw) - {"shapes", "scale"})
    scale = draw.get("scale", 1.0)
    if unknown or not isinstance(scale, int | float) or not 0 < scale <= 10:
        wrong = f"key {unknown[0]!r} is unknown" if unknown else f"scale {scale!r} is not a number in (0, 10]"
        raise RenderError(f"The drawing of the prop {concept!r}: {wrong}.", hint="It has `shapes` and perhaps `scale`.")
    return Drawing(tuple(_shape(concept, place, row) for place, row in enumerate(rows, start=1)), float(scale))


def _shape(concept: str, place: int, row: Any) -> Shape:
    where = f"The drawing of the prop {concept!r}, shape {place}:"
    if not isinstance(row, Mapping) or len(row) != 1:
        raise RenderError(f"{where} write one `kind colour: geometry`, not {row!r}.")
    [(head, geometry)] = row.items()
    try:
        return read_shape(str(head), str(geometry))
    except ValueError as error:
        raise RenderError(f"{where} {error}.") from error


@cache
def _drawing(concept: str) -> Drawing:
    return read_drawing(concept, entry(load_table("props", "drawings.yaml"), concept, "prop", "drawings.yaml"))
