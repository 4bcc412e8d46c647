"""Ears, horns and manes of mammals, in the unit circle of the head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.style import INK, darker

__all__ = ["EARS", "EARS_IN_FRONT", "HORNS", "MANES"]

Part = Callable[[Ink, Mapping[str, Any]], None]
EARS_IN_FRONT = frozenset({"floppy", "flap"})


def _inner(draw: Mapping[str, Any]) -> str:
    return str(draw.get("inner", "pink"))


def _round(size: float, x: float, y: float) -> Part:
    def draw_ears(ink: Ink, draw: Mapping[str, Any]) -> None:
        for side in (-1, 1):
            ink.ellipse(side * x, y, size, fill=draw["coat"])
            ink.ellipse(side * x, y, size * 0.58, fill=_inner(draw), width=0)

    return draw_ears


def _pointed(height: float, spread: float = 0.0) -> Part:
    def draw_ears(ink: Ink, draw: Mapping[str, Any]) -> None:
        for side in (-1, 1):
            pen = ink.at(side * 0.58, -0.62, side * (16 + spread), sx=side, sy=1)
            pen.draw(
                f"M -0.38 0.2 Q -0.3 {-0.5 * height} 0.1 {-height} Q 0.42 {-0.45 * height} 0.42 0.28 Z",
                fill=draw["coat"],
            )
            pen.draw(
                f"M -0.14 0.05 Q -0.1 {-0.4 * height} 0.09 {-0.7 * height} Q 0.25 {-0.35 * height} 0.25 0.1 Z",
                fill=_inner(draw),
                width=0,
            )
            if "ear_tip" in draw:
                pen.draw(
                    f"M -0.15 {-0.62 * height} Q -0.05 {-0.8 * height} 0.1 {-height}"
                    f" Q 0.24 {-0.8 * height} 0.31 {-0.56 * height} Z",
                    fill=draw["ear_tip"],
                    width=0,
                )

    return draw_ears


def _long(ink: Ink, draw: Mapping[str, Any]) -> None:
    for side, lean in ((-1, -14), (1, 12)):
        pen = ink.at(side * 0.36, -0.75, lean)
        pen.ellipse(0, -0.62, 0.27, 0.85, fill=draw["coat"])
        pen.ellipse(0, -0.6, 0.13, 0.62, fill=_inner(draw), width=0)


def _donkey(ink: Ink, draw: Mapping[str, Any]) -> None:
    for side, lean in ((-1, -30), (1, 26)):
        pen = ink.at(side * 0.45, -0.7, lean)
        pen.draw("M -0.24 0.25 Q -0.46 -0.7 0 -1.35 Q 0.46 -0.7 0.24 0.25 Z", fill=draw["coat"])
        pen.draw("M -0.1 0.1 Q -0.24 -0.6 0 -1.0 Q 0.24 -0.6 0.1 0.1 Z", fill=_inner(draw), width=0)


def _leaf(size: float, droop: float) -> Part:
    """Ears that stick out to the sides (cow, deer, goat, sheep)."""

    def draw_ears(ink: Ink, draw: Mapping[str, Any]) -> None:
        for side in (-1, 1):
            pen = ink.at(side * 0.8, -0.38, side * droop, sx=side * size, sy=size)
            pen.draw("M -0.1 -0.22 Q 0.5 -0.5 1 -0.05 Q 0.5 0.5 -0.1 0.25 Z", fill=draw.get("ear", draw["coat"]))
            pen.draw("M 0.12 -0.06 Q 0.5 -0.24 0.8 -0.03 Q 0.5 0.24 0.12 0.12 Z", fill=_inner(draw), width=0)

    return draw_ears


def _floppy(ink: Ink, draw: Mapping[str, Any]) -> None:
    fill = draw.get("ear", darker(draw["coat"], 0.3))
    ink.draw("M -0.5 -0.78 Q -1.15 -0.95 -1.3 -0.1 Q -1.3 0.6 -0.98 0.55 Q -0.7 0.4 -0.72 -0.35 Z", fill=fill)
    ink.draw("M 0.55 -0.78 Q 1.1 -0.9 1.22 -0.2 Q 1.2 0.3 0.98 0.24 Q 0.82 0 0.78 -0.45 Z", fill=fill)


def _flap(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.55 -0.75 Q -1.5 -1.25 -1.85 -0.3 Q -1.95 0.65 -1.3 0.85 Q -0.8 0.75 -0.6 0.35 Q -0.45 -0.2 -0.55 -0.75 Z",
        fill=draw["coat"],
    )
    ink.draw(
        "M -0.75 -0.5 Q -1.35 -0.85 -1.58 -0.2 Q -1.62 0.4 -1.25 0.55 Q -0.9 0.4 -0.78 0.1 Z",
        fill=_inner(draw),
        width=0,
    )
    ink.draw("M 0.85 -0.6 Q 1.35 -1.05 1.55 -0.3 Q 1.5 0.35 1.15 0.4 Q 1.0 0.1 0.85 -0.6 Z", fill=draw["coat"])


EARS: Mapping[str, Part] = {
    "round": _round(0.36, 0.76, -0.72), "big_round": _round(0.66, 0.9, -0.78),
    "fluffy": _round(0.5, 0.98, -0.5), "side_round": _round(0.36, 1.0, -0.02),
    "tiny_round": _round(0.26, 0.72, -0.72), "pointed": _pointed(0.72), "tall_pointed": _pointed(1.0),
    "cat": _pointed(0.66, 4),
    "jackal": _pointed(1.28, 2), "tufted": _pointed(0.8, -4), "pig": _pointed(0.55, 26), "long": _long,
    "donkey": _donkey,
    "leaf": _leaf(0.72, 4), "droop": _leaf(0.78, 30), "floppy": _floppy, "flap": _flap, "horse": _pointed(0.62, -4),
}  # fmt: skip
"""Ears by the names that `draw: ears` uses."""


def _bull_horns(ink: Ink, draw: Mapping[str, Any]) -> None:
    for side in (-1, 1):
        ink.at(side * 0.5, -0.62, sx=side, sy=1).draw(
            "M -0.1 -0.2 Q 0.5 -0.3 0.72 -0.55 Q 0.9 -0.85 0.75 -1.2 Q 1.35 -0.8 1.12 -0.2 Q 0.8 0.25 0.1 0.28 Z",
            fill="cream",
        )


def _small_horns(ink: Ink, draw: Mapping[str, Any]) -> None:
    for side in (-1, 1):
        ink.at(side * 0.42, -0.8, sx=side, sy=1).draw(
            "M -0.2 0.1 Q -0.1 -0.45 0.2 -0.5 Q 0.22 -0.2 0.22 0.15 Z", fill="cream"
        )


def _goat_horns(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x, lean in ((-0.3, -6), (0.28, 4)):
        pen = ink.at(x, -0.78, lean)
        pen.draw("M -0.17 0.15 Q -0.3 -0.75 -1.0 -1.0 Q -0.4 -1.25 0.02 -0.85 Q 0.28 -0.5 0.2 0.15 Z", fill="stone")
        for k in (0.25, 0.5, 0.72):
            pen.line([(-0.2 - k * 0.25, -0.6 * k), (0.2 - k * 0.12, -0.75 * k)], width=0.5)


def _antlers(ink: Ink, draw: Mapping[str, Any]) -> None:
    for side in (-1, 1):
        pen = ink.at(side * 0.34, -0.8, sx=side, sy=1)
        d = (
            "M 0 0.1 L 0.2 -0.5 L 0.75 -0.85 L 0.85 -1.35 M 0.2 -0.5"
            " L 0.1 -1.0 M 0.75 -0.85 L 1.2 -0.85 M 0.47 -0.68 L 0.42 -1.2"
        )
        pen.draw(d, width=3.4)
        pen.draw(d, stroke="tan", width=1.6)


def _knobs(ink: Ink, draw: Mapping[str, Any]) -> None:
    """Two short horns with round ends (giraffe)."""
    for x in (-0.24, 0.3):
        ink.draw(f"M {x - 0.07} -0.8 L {x - 0.06} -1.3 L {x + 0.06} -1.3 L {x + 0.07} -0.8 Z", fill=draw["coat"])
        ink.ellipse(x, -1.34, 0.14, fill=draw.get("marks", INK), width=0.8)


HORNS: Mapping[str, Part] = {
    "bull": _bull_horns, "small": _small_horns, "goat": _goat_horns, "antlers": _antlers,
    "ossicones": _knobs,
}  # fmt: skip
"""Horns by the names that `draw: horns` uses."""


def _lion_mane(ink: Ink, draw: Mapping[str, Any]) -> None:
    points = []
    for k in range(28):
        reach = 1.62 if k % 2 == 0 else 1.32
        angle = 2 * math.pi * k / 28
        points.append((math.cos(angle) * reach * 0.98 - 0.08, math.sin(angle) * reach * 0.98 + 0.02))
    ink.blob(points, fill=draw.get("mane", "#a85f2e"))


def _horse_mane(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M 0.35 -1.1 Q -0.3 -1.35 -0.8 -0.95 Q -1.4 -0.5 -1.35 0.2"
        " Q -1.5 0.7 -1.25 1.2 Q -0.8 1.2 -0.6 0.7 L -0.3 -0.6 Z",
        fill=draw.get("mane", "hair"),
    )


def _wool(ink: Ink, draw: Mapping[str, Any]) -> None:
    points = []
    for k in range(22):
        reach = 1.36 if k % 2 == 0 else 1.16
        angle = 2 * math.pi * k / 22
        points.append((math.cos(angle) * reach - 0.08, math.sin(angle) * reach - 0.1))
    ink.blob(points, fill=draw.get("mane", "white"))


def _spikes(ink: Ink, draw: Mapping[str, Any]) -> None:
    points = [(0.55, -0.6)]
    for k in range(9):
        angle = math.radians(-72 - k * 23)
        points.append((math.cos(angle) * 1.55, math.sin(angle) * 1.5))
        angle -= math.radians(11)
        points.append((math.cos(angle) * 1.12, math.sin(angle) * 1.1))
    ink.polygon([*points, (0, 0.9)], fill=draw.get("mane", "dark_brown"))


def _ruff(ink: Ink, draw: Mapping[str, Any]) -> None:
    """Shaggy cheeks (wolf)."""
    ink.polygon(
        [(-0.7, -0.6), (-1.15, -0.1), (-1.3, 0.35), (-1.05, 0.4), (-1.1, 0.85), (-0.7, 0.8), (-0.45, 1.2), (0, 1.0),
         (0.4, 1.2), (0.7, 0.8), (1.0, 0.6), (0.9, -0.3)],
        fill=draw.get("mane", draw["coat"]),
    )  # fmt: skip


MANES: Mapping[str, Part] = {
    "lion": _lion_mane, "horse": _horse_mane, "wool": _wool, "spikes": _spikes, "ruff": _ruff,
}  # fmt: skip
"""Manes by the names that `draw: mane_style` uses; `mane` is their colour."""
