"""Parts of crawling animals: ridged, smooth and shelled trunks, their tails, and heads with snouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.face import FaceLayout, draw_face, gape
from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.rig import FaceParams
from katha_sketch.drawing.figures.stance import curve_of, speckle
from katha_sketch.drawing.style import INK, PAPER, darker, lighter

__all__ = ["TAILS", "TRUNKS", "draw_head"]

Tail = Callable[[Ink, Mapping[str, Any]], None]
Trunk = Callable[[Ink, Mapping[str, Any], Point, Point], None]


def _heavy(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A crocodile's long tail with saw-teeth."""
    fill = draw["coat"]
    for x, y in ((-4, -13), (-14, -10), (-24, -6), (-34, -3), (-43, -2)):
        ink.polygon([(x - 5, y + 3), (x - 1, y - 8), (x + 6, y + 3)], fill=draw.get("ridge", darker(fill, 0.2)))
    ink.draw("M 6 -14 Q -20 -12 -36 0 Q -50 8 -60 -6 Q -58 14 -40 15 Q -14 16 6 12 Z", fill=fill)


def _whip(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A lizard's thin tail that ends in a curl."""
    fill = draw["coat"]
    d = "M 6 0 Q -22 10 -36 0 Q -50 -12 -44 -26 Q -36 -40 -26 -30 Q -20 -20 -31 -19"
    ink.draw(d, width=4.4)
    ink.draw(d, stroke=fill, width=2.6)
    ink.draw("M 8 -10 Q -14 -2 -26 3 L -24 9 Q -8 10 8 9 Z", fill=fill, width=0)


def _stub(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A turtle's little tail."""
    ink.draw("M 2 0 Q -12 0 -17 9 Q -8 12 4 9 Z", fill=draw["coat"])


TAILS: Mapping[str, Tail] = {"heavy": _heavy, "whip": _whip, "stub": _stub}
"""Tails by name, from the hip towards -x."""


def _ridged(ink: Ink, draw: Mapping[str, Any], hip: Point, shoulder: Point) -> None:
    """A long barrel with ridges on its back and a pale belly."""
    thick = draw.get("body", (46.0, 15.0))[1] * draw.get("girth", 1.0)
    spine = [(hip[0] + (shoulder[0] - hip[0]) * k / 4, hip[1] + (shoulder[1] - hip[1]) * k / 4) for k in range(5)]
    size = float(draw.get("ridges", 8.0))
    for x, y in spine:
        top = y - thick + 3
        ink.polygon([(x - 6, top), (x, top - size), (x + 6, top)], fill=draw.get("ridge", darker(draw["coat"], 0.2)))
    ink.bundle([(*hip, thick), (*shoulder, thick * 0.95)], fill=draw["coat"])
    low = thick * 0.42
    ink.bundle(
        [(hip[0], hip[1] + low, thick * 0.5), (shoulder[0], shoulder[1] + low, thick * 0.46)],
        fill=draw["belly"],
        width=0,
    )
    middle = ((hip[0] + shoulder[0]) / 2, (hip[1] + shoulder[1]) / 2)
    pen = ink.at(middle[0], middle[1] - thick * 0.2)
    speckle(pen, draw.get("pattern"), draw.get("marks"), (shoulder[0] - hip[0]) * 0.7, thick * 0.7)


def _shell(ink: Ink, draw: Mapping[str, Any], hip: Point, shoulder: Point) -> None:
    """A domed shell with plates and a pale rim."""
    cx, cy = (hip[0] + shoulder[0]) / 2, (hip[1] + shoulder[1]) / 2
    slope = (shoulder[1] - hip[1]) * 0.8
    shell = draw.get("shell", "brown")
    pen = ink.at(cx, cy, slope, draw.get("girth", 1.0) * 0.96)
    pen.draw("M -27 6 Q -20 16 0 15 Q 22 16 29 6 Z", fill=draw["belly"])
    pen.draw("M -31 6 Q -30 -38 0 -38 Q 30 -38 32 6 Z", fill=shell)
    plate = lighter(shell, 0.3)
    for d in (
        "M -10 -28 L 9 -28 L 14 -12 L 0 -4 L -14 -12 Z",
        "M -24 -16 L -18 -8 L -17 2 L -26 2 Z",
        "M 24 -16 L 18 -8 L 17 2 L 27 2 Z",
        "M -11 -3 L 0 3 L 11 -3 L 12 3 L -12 3 Z",
    ):
        pen.draw(d, fill=plate, width=0.7)
    pen.draw("M -34 5 Q 0 12 35 5 Q 37 10 33 12 Q 0 18 -33 12 Q -37 10 -34 5 Z", fill=lighter(shell, 0.5))
    if draw.get("pattern"):
        speckle(pen.at(0, -14), draw.get("pattern"), draw.get("marks"), 22, 16)


TRUNKS: Mapping[str, Trunk] = {"ridged": _ridged, "shell": _shell}
"""Trunks by name, drawn from the hip to the shoulder."""


def _layout(draw: Mapping[str, Any], eyes: tuple[Point, Point], mouth: Point | None) -> FaceLayout:
    return FaceLayout(
        eyes=eyes,
        eye=float(draw.get("eye", 0.3)),
        mouth=mouth,
        width=float(draw.get("mouth_width", 0.8)),
        lid=lighter(draw["coat"], 0.15),
        brow="cream" if draw.get("dark") else INK,
    )


def _jaws(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """A crocodile's head: eyes on bumps, a long toothed snout whose lower jaw drops."""
    coat, open_ = draw["coat"], gape(face.mouth)
    lower, upper = ink.at(0.1, 0.42, 26 * open_), ink.at(0.1, 0.3, -12 * open_)
    if open_:
        ink.polygon(
            [(0.2, 0.3), (2.15, 0.3 - 0.42 * open_), (1.9, 0.5 + 0.85 * open_), (0.2, 0.5)], fill="#8c2f39", width=0.7
        )
    lower.draw("M -0.7 -0.1 L 2.1 -0.05 Q 2.45 0.3 2 0.4 Q 0.8 0.5 -0.5 0.42 Z", fill=draw["belly"])
    for x in (0.7, 1.1, 1.5, 1.9):
        lower.polygon([(x, -0.03), (x + 0.13, -0.26 if open_ else -0.2), (x + 0.26, -0.03)], fill=PAPER, width=0.6)
    for x in (-0.3, 0.5):
        ink.ellipse(x, -0.68, 0.42, 0.44, fill=coat)
    ink.ellipse(-0.02, 0, 0.98, 0.8, fill=coat)
    upper.draw(
        "M -0.3 -0.72 Q 0.7 -0.85 1.1 -0.38 Q 1.8 -0.3 2.05 -0.52"
        " Q 2.5 -0.55 2.5 -0.1 Q 2.5 0.12 2.2 0.12 L -0.2 0.16 Z",
        fill=coat,
    )
    upper.ellipse(-0.05, -0.28, 0.62, 0.4, fill=coat, width=0)
    upper.ellipse(2.2, -0.32, 0.1, 0.07, fill=INK, width=0)
    for x in (0.85, 1.25, 1.65, 2.0):
        upper.polygon([(x, 0.11), (x + 0.14, 0.34), (x + 0.28, 0.11)], fill=PAPER, width=0.6)
    curve = curve_of(face)
    if curve:
        upper.draw(f"M 0.5 0.15 Q 0 0.2 -0.38 {0.15 - 0.42 * curve:.2f}", width=1.4)
    draw_face(ink, face, _layout(draw, ((-0.3, -0.68), (0.5, -0.68)), None))


def _blunt(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """A lizard's wedge of a head with a wide mouth and a frill of spikes behind."""
    coat = draw["coat"]
    for x, y, angle in ((-0.75, -0.7, -40), (-1.0, -0.25, -70), (-0.3, -0.95, -12)):
        ink.at(x, y, angle).polygon([(-0.28, 0.15), (0, -0.5), (0.28, 0.15)], fill=draw.get("ridge", "orange"))
    ink.draw(
        "M -1 0.05 Q -0.95 -0.95 0.1 -0.95 Q 0.75 -0.9 1.2 -0.1 Q 1.6 0.3 1.3 0.65 Q 0.7 1 0 0.92 Q -0.9 0.9 -1 0.05 Z",
        fill=coat,
    )
    ink.draw("M -0.55 0.72 Q 0.2 0.2 1.36 0.42 Q 1.4 0.62 1.2 0.7 Q 0.5 0.95 -0.55 0.72 Z", fill=draw["belly"], width=0)
    ink.ellipse(1.18, 0.1, 0.06, fill=INK, width=0)
    draw_face(ink, face, _layout(draw, ((-0.12, -0.35), (0.6, -0.33)), (0.62, 0.46)))


def _bald(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """A turtle's round bald head."""
    ink.ellipse(0, 0, 1.02, 0.96, fill=draw["coat"])
    ink.ellipse(0.4, 0.5, 0.52, 0.36, fill=draw["belly"], width=0)
    draw_face(ink, face, _layout(draw, ((-0.18, -0.2), (0.52, -0.2)), (0.35, 0.42)))


_HEADS: Mapping[str, Callable[[Ink, Mapping[str, Any], FaceParams], None]] = {
    "jaws": _jaws, "blunt": _blunt, "bald": _bald,
}  # fmt: skip


def draw_head(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """Draw the head that `draw: snout` names, in its unit circle; a bald head first draws its neck."""
    if draw.get("neck_tube"):
        x, y = draw["neck_tube"]
        ink.limb([(x, y), (x * 0.35, y * 0.75), (0, 0)], 0.95, draw["coat"])
    _HEADS[draw.get("snout", "bald")](ink, draw, face)
