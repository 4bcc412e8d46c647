"""Bodies for pictograms that are a head alone (a robot, a lion, a frog), as heads.yaml draws them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from katha.renderers.sketch.props.shapes import read_shape
from katha.renderers.sketch.svg import number
from katha.renderers.sketch.tables import load_table

__all__ = ["Layer", "heads", "with_body"]

Box = tuple[float, float, float, float]

Layer = tuple[str, str, float]
"""SVG, the transform that puts it, and how much that enlarges it (an outline is made thinner by as much)."""

_STAND_FOR = {"coat": "pink", "belly": "purple"}
_WRITTEN = {"coat": "#eda7a7", "belly": "#8d6aa8"}
"""Two colours of the palette that no body uses stand for the head's own until the shapes are written."""


def heads() -> tuple[str, ...]:
    """The pictograms that have a body of heads.yaml."""
    return tuple(_data()["heads"])


def with_body(name: str, body: str, box: Box) -> tuple[tuple[Layer, ...], Box]:
    """The pictogram's layers, its body of heads.yaml first, and what they cover; one layer when it needs no body."""
    row = _data()["heads"].get(name)
    if row is None:
        return ((body, "", 1.0),), box
    drawn, (x0, y0, x1, y1) = _body(row["body"], row["coat"], row["belly"])
    wide, x, y = _data()["bodies"][row["body"]]["head"]
    scale = wide / (box[2] - box[0])
    tall = scale * (box[3] - box[1])
    middle = number(-(box[0] + box[2]) / 2)
    put = f"translate({number(x)} {number(y)}) scale({scale:.4f}) translate({middle} {number(-box[3])})"
    left, top, right = min(x0, x - wide / 2), min(y0, y - tall), max(x1, x + wide / 2)
    return ((drawn, "", 1.0), (body, put, scale)), (left, top, right, y1)


@cache
def _body(kind: str, coat: str, belly: str) -> tuple[str, Box]:
    parts, boxes = [], []
    for entry in _data()["bodies"][kind]["shapes"]:
        for head, geometry in entry.items():
            for name, colour in _STAND_FOR.items():
                head = head.replace(f" {name} ", f" {colour} ")
            svg, box = read_shape(head, str(geometry)).at(0.0)
            parts.append(svg.replace(_WRITTEN["coat"], coat).replace(_WRITTEN["belly"], belly))
            boxes.append(box)
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return "".join(parts), (min(x0s), min(y0s), max(x1s), max(y1s))


def _data() -> Mapping[str, Any]:
    return load_table("pictograms", "heads.yaml")
