"""Draws a prop from its entry in the vocabulary: a list of shapes, the farthest first (see `shapes` for how one is written)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from katha.errors import RenderError
from katha.renderers.sketch import svg
from katha.renderers.sketch.props.shapes import Shape, read_shape

__all__ = ["Drawn", "draw_prop", "read_drawing"]


@dataclass(frozen=True)
class Drawn:
    """A prop as SVG in local units: y down, its base at (0, 0), a standing adult human 100 tall; `bbox` is x0, y0, x1, y1."""

    svg: str
    bbox: tuple[float, float, float, float]


def draw_prop(concept: str, phase: float = 0.0) -> Drawn:
    """The prop of id `concept`; `phase` (0..1, a cycle) moves the parts that sway, such as flames.

    Raises:
        RenderError: no prop of that id, or its `draw:` entry is not a drawing.
    """
    parts = [shape.at(phase) for shape in _shapes(concept)]
    boxes = [bounds for _, bounds in parts]
    x0, y0 = (min(bounds[i] for bounds in boxes) for i in (0, 1))
    x1, y1 = (max(bounds[i] for bounds in boxes) for i in (2, 3))
    return Drawn(svg.group(*(drawn for drawn, _ in parts)), (x0, y0, x1, y1))


def read_drawing(concept: str, draw: Mapping[str, Any]) -> tuple[Shape, ...]:
    """The shapes of a `draw:` entry such as `{shapes: [{"ellipse red": "0 -9 9 9"}]}`.

    Raises:
        RenderError: the entry is not a list of shapes; the message says which one is wrong and why.
    """
    rows = draw.get("shapes") if isinstance(draw, Mapping) else None
    if not isinstance(rows, list) or not rows:
        raise RenderError(
            f"The prop {concept!r} has no drawing.", hint="Give it `draw: {shapes: [...]}` in props.yaml."
        )
    return tuple(_shape(concept, place, row) for place, row in enumerate(rows, start=1))


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
def _shapes(concept: str) -> tuple[Shape, ...]:
    entries = _entries()
    if concept not in entries:
        raise RenderError(
            f"The sketch renderer has no prop {concept!r}.", hint="Add it to vocabulary/props.yaml with its drawing."
        )
    return read_drawing(concept, entries[concept].get("draw") or {})


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files("katha.language.vocabulary").joinpath("props.yaml").read_text(encoding="utf-8")
    entries: Mapping[str, Mapping[str, Any]] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return entries
