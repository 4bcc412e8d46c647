"""Beaks and bills in the unit circle of a head, opened and bent by the face's mouth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha.renderers.sketch.figures.face import gape
from katha.renderers.sketch.figures.ink import Ink
from katha.renderers.sketch.figures.rig import FaceParams
from katha.renderers.sketch.figures.stance import curve_of
from katha.renderers.sketch.style import darker

__all__ = ["BASE", "BEAKS", "draw_beak"]

BASE = (0.42, 0.22)
"""Where a beak grows from the face, in head radii."""

_INSIDE, _TONGUE = "#8c2f39", "#ef8f8f"


def draw_beak(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """Draw the beak that `draw: beak` names, `beak_long` radii long, as open as the face's mouth."""
    long, open_ = float(draw.get("beak_long", 0.8)), gape(face.mouth)
    pen = ink.at(*BASE, draw.get("beak_tilt", 0.0) - 9 * open_)
    upper, lower = BEAKS[draw["beak"]]
    fill = draw.get("beak_colour", "orange")
    high = float(draw.get("beak_high", 0.3))
    jaw = pen.at(-0.05, high * 0.2, 44 * open_, long, high)
    if open_ > 0:
        drop = 0.62 * open_ * long
        pen.polygon([(-0.1, 0), (long * 0.72, -0.02), (long * 0.5, drop), (-0.1, high * 0.7)], fill=_INSIDE, width=0.7)
        jaw.draw("M 0.1 0.05 Q 0.45 -0.75 0.75 0.05 Z", fill=_TONGUE, width=0)
    jaw.draw(lower, fill=darker(fill, 0.14), width=0.75)
    pen.at(sx=long, sy=high).draw(upper, fill=fill, width=0.85)
    curve = curve_of(face)
    if curve:
        pen.draw(f"M 0.22 0.04 Q -0.12 0.06 -0.24 {0.06 - 0.3 * curve:.2f}", width=1)
    if face.mouth == "tongue":
        jaw.draw("M 0.3 0 Q 0.9 -0.2 0.95 1 Q 0.9 2.2 0.6 2 Q 0.3 1.6 0.3 0 Z", fill=_TONGUE, width=0.7)
    if face.mouth == "gritted":
        pen.line([(0.1 * long, 0.02), (0.3 * long, 0.12), (0.5 * long, 0.02), (0.7 * long, 0.1)], width=0.9)


_Shape = tuple[str, str]

BEAKS: Mapping[str, _Shape] = {
    "cone": ("M -0.08 -0.9 Q 0.6 -0.7 1 0.1 Q 0.5 0.2 -0.08 0.25 Z", "M 0 0 Q 0.5 0.1 0.85 0.15 Q 0.4 0.9 0 0.8 Z"),
    "dagger": (
        "M -0.08 -0.95 Q 0.45 -1.05 1 0.22 Q 0.5 0.1 -0.08 0.25 Z",
        "M 0 0 Q 0.5 0 0.88 0.15 Q 0.4 0.75 0 0.8 Z",
    ),
    "hook": (
        "M -0.08 -1 Q 0.75 -1.25 1 -0.1 Q 1.08 0.75 0.85 1.15 Q 0.8 0.35 0.5 0.25 L -0.08 0.3 Z",
        "M 0 0.1 L 0.55 0.1 Q 0.5 0.9 0 0.85 Z",
    ),
    "bill": (
        "M -0.08 -0.9 Q 0.35 -0.85 0.6 -0.2 Q 1.1 -0.5 1.12 0.05 Q 1.1 0.5 0.7 0.4 L -0.08 0.35 Z",
        "M 0 0.1 L 0.95 0.15 Q 1 0.75 0.6 0.8 L 0 0.85 Z",
    ),
    "tiny": (
        "M -0.3 -0.9 Q 0.35 -1 0.5 0.1 Q 0.45 0.8 0.2 1.2 Q -0.2 0.6 -0.3 -0.9 Z",
        "M -0.1 0.3 L 0.35 0.3 Q 0.3 1.3 0.1 1.4 Z",
    ),
}
"""(upper, lower) halves by name, from (0, 0) to a length of 1 and half a height of 1."""
