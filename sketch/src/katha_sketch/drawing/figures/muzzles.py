"""Muzzles and noses of mammals, in the unit circle of the head; the mouth is drawn over them by the face."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.style import INK, PAPER, darker, lighter

__all__ = ["MUZZLES"]

Part = Callable[[Ink, Mapping[str, Any]], None]


def _light(draw: Mapping[str, Any]) -> str:
    return str(draw.get("snout", draw.get("belly", lighter(draw["coat"], 0.5))))


def _nose(ink: Ink, x: float, y: float, size: float, fill: str = INK) -> None:
    ink.at(x, y, sx=size).draw(
        "M -1 -0.5 Q 0 -0.95 1 -0.5 Q 0.75 0.5 0 0.8 Q -0.75 0.5 -1 -0.5 Z", fill=fill, width=0.6
    )
    ink.ellipse(x - size * 0.2, y - size * 0.35, size * 0.22, fill=PAPER, width=0)


def _whiskers(ink: Ink, x: float, y: float, reach: float = 0.55) -> None:
    for side in (-1, 1):
        for k in (-1, 0, 1):
            start = x + side * 0.38
            ink.line([(start, y + 0.1 * k), (start + side * reach, y + 0.2 * k)], width=0.5)


def _cat(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.0, 0.42, 0.34, 0.28, fill=_light(draw), width=0)
    ink.ellipse(0.42, 0.42, 0.34, 0.28, fill=_light(draw), width=0)
    _nose(ink, 0.21, 0.22, 0.15, draw.get("nose", INK))
    _whiskers(ink, 0.21, 0.4, 0.66)


def _lion(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.2, 0.48, 0.58, 0.4, fill=_light(draw), width=0)
    ink.draw("M 0.02 -0.2 L -0.02 0.2 M 0.36 -0.2 L 0.42 0.2", stroke=darker(draw["coat"], 0.3), width=0.7)
    _nose(ink, 0.2, 0.24, 0.23, draw.get("nose", INK))


def _bear(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.24, 0.42, 0.56, 0.46, fill=_light(draw), width=0.8)
    _nose(ink, 0.3, 0.16, 0.24)


def _pointed(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A long fine snout to the right (fox, jackal, mongoose)."""
    ink.draw("M 0.35 -0.02 Q 0.95 0.0 1.5 0.24 Q 1.6 0.42 1.3 0.5 Q 0.8 0.85 0.2 0.86", fill=_light(draw), width=0)
    ink.draw("M 0.5 -0.02 Q 1 0.02 1.5 0.24 Q 1.6 0.42 1.3 0.5 Q 0.95 0.72 0.6 0.8")
    ink.draw("M 0.3 0.06 Q 0.8 -0.02 1.45 0.24 Q 0.9 0.25 0.45 0.32 Z", fill=draw.get("ridge", draw["coat"]), width=0)
    ink.ellipse(1.5, 0.28, 0.17, 0.15, fill=INK, width=0.6)


def _wolf(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A long heavy snout with a fang (wolf)."""
    ink.draw("M 0.4 -0.12 Q 1 -0.1 1.5 0.12 Q 1.72 0.35 1.45 0.62 Q 0.9 0.95 0.1 0.92", fill=_light(draw), width=0)
    ink.draw("M 0.55 -0.1 Q 1 -0.08 1.5 0.12 Q 1.72 0.35 1.45 0.62 Q 1.0 0.9 0.45 0.9")
    ink.draw("M 0.35 0 Q 0.9 -0.15 1.5 0.13 Q 0.9 0.3 0.45 0.3 Z", fill=draw["coat"], width=0)
    ink.ellipse(1.5, 0.2, 0.22, 0.19, fill=INK, width=0.6)
    ink.polygon([(0.98, 0.52), (1.16, 0.48), (1.1, 0.78)], fill=PAPER, width=0.6)


def _dog(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A short square snout (dog)."""
    ink.draw(
        "M 0.2 0.02 Q 0.8 -0.1 1.12 0.12 Q 1.35 0.5 1.05 0.8 Q 0.6 1.02 0.0 0.92 Q -0.2 0.5 0.2 0.02 Z",
        fill=_light(draw),
        width=0.8,
    )
    ink.ellipse(0.98, 0.14, 0.25, 0.2, fill=INK, width=0.6)


def _long(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A long drooping muzzle with nostrils (horse, donkey, camel, deer)."""
    ink.draw(
        "M -0.05 -0.2 Q 0.7 -0.45 1.0 0.25 L 1.2 0.62 Q 1.35 1.12 0.9 1.22 Q 0.4 1.32 0.1 0.9 L -0.35 0.45",
        fill=draw["coat"],
        width=0,
    )
    ink.draw("M 0.82 -0.15 Q 0.95 0.1 1.0 0.25 L 1.2 0.62 Q 1.35 1.12 0.9 1.22 Q 0.4 1.32 0.1 0.93")
    ink.draw("M 0.25 0.72 Q 0.7 0.3 1.12 0.5 Q 1.42 1.1 0.92 1.21 Q 0.42 1.3 0.25 0.95 Z", fill=_light(draw), width=0)
    ink.draw("M 1.12 0.5 Q 1.38 1.1 0.92 1.21 Q 0.42 1.3 0.2 0.96")
    for x, y in ((0.72, 0.62), (1.06, 0.66)):
        ink.ellipse(x, y, 0.06, 0.08, fill=INK, width=0)


def _broad(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A broad soft muzzle (cow, bull)."""
    ink.ellipse(0.3, 0.6, 0.8, 0.48, fill=draw.get("snout", "pink"))
    for x in (0.02, 0.6):
        ink.ellipse(x, 0.42, 0.1, 0.08, fill=INK, width=0)
    if draw.get("ring"):
        ink.draw("M 0.18 0.5 Q 0.05 0.85 0.32 0.87 Q 0.58 0.85 0.45 0.5", stroke="golden", width=1.4)


def _soft(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A narrow muzzle with a small dark nose (goat, sheep, deer)."""
    ink.draw(
        "M -0.25 0.2 Q 0.3 -0.15 0.8 0.2 Q 0.95 0.7 0.75 1.0 Q 0.35 1.3 -0.05 1.0 Q -0.3 0.7 -0.25 0.2 Z",
        fill=_light(draw),
        width=0,
    )
    ink.draw("M 0.86 0.5 Q 0.9 0.8 0.75 1.0 Q 0.35 1.3 -0.05 1.0")
    _nose(ink, 0.33, 0.36, 0.2, draw.get("nose", INK))


def _small(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A little pointed snout with a pink nose and whiskers (mouse, squirrel, rabbit, hedgehog)."""
    ink.draw("M 0.3 0.0 Q 0.8 0.0 1.15 0.28 Q 1.15 0.55 0.7 0.75 L 0.1 0.9 Z", fill=_light(draw), width=0)
    ink.draw("M 0.85 0.08 Q 1.05 0.15 1.15 0.28 Q 1.15 0.55 0.75 0.68")
    ink.ellipse(1.13, 0.28, 0.16, 0.14, fill=draw.get("nose", "pink"), width=0.8)
    for k in (-1, 0, 1):
        ink.line([(0.55, 0.42 + 0.05 * k), (1.2, 0.62 + 0.18 * k)], width=0.45)
        ink.line([(-0.3, 0.42 + 0.05 * k), (-0.95, 0.48 + 0.18 * k)], width=0.45)


def _rabbit(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.05, 0.45, 0.3, 0.25, fill=_light(draw), width=0)
    ink.ellipse(0.42, 0.45, 0.3, 0.25, fill=_light(draw), width=0)
    _nose(ink, 0.23, 0.24, 0.14, draw.get("nose", "pink"))
    _whiskers(ink, 0.23, 0.4, 0.5)
    ink.draw("M 0.12 0.74 L 0.36 0.74 L 0.36 1.0 L 0.12 1.0 Z", fill=PAPER, width=0.6)
    ink.line([(0.24, 0.74), (0.24, 1.0)], width=0.5)


def _pig(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.3, 0.26, 0.46, 0.36, fill=draw.get("snout", darker(draw["coat"], 0.12)))
    for x in (0.14, 0.46):
        ink.ellipse(x, 0.26, 0.08, 0.13, fill=darker(draw["coat"], 0.6), width=0)


def _monkey(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x in (0.05, 0.23):
        ink.ellipse(x, 0.2, 0.05, 0.07, fill=INK, width=0)


def _trunk(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M 0.0 0.52 Q -0.15 1.05 0.12 1.25 Q 0.0 0.9 0.25 0.7 Z", fill=PAPER, width=0.8)
    ink.draw(
        "M 0.2 -0.05 Q 0.95 -0.15 1.15 0.5 Q 1.22 1.15 1.4 1.28 Q 1.65 1.3 1.62 0.9 L 2.0 0.95 Q 2.05 1.75 1.35 1.72"
        " Q 0.72 1.65 0.62 1.0 Q 0.55 0.6 0.3 0.5",
        fill=draw["coat"],
    )  # fmt: skip
    for d in ("M 0.62 0.62 Q 0.9 0.6 1.13 0.5", "M 0.66 0.95 Q 0.95 0.95 1.18 0.8", "M 0.78 1.3 Q 1.05 1.22 1.25 1.08"):
        ink.draw(d, width=0.6)


def _human(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M 0.18 0.02 Q 0.4 0.2 0.16 0.26", stroke=darker(draw["coat"], 0.45), width=1)


MUZZLES: Mapping[str, Part] = {
    "cat": _cat, "lion": _lion, "bear": _bear, "pointed": _pointed, "wolf": _wolf, "dog": _dog, "long": _long,
    "broad": _broad,
    "soft": _soft, "small": _small, "rabbit": _rabbit, "pig": _pig, "monkey": _monkey, "trunk": _trunk, "human": _human,
}  # fmt: skip
"""Muzzles by the names that `draw: muzzle` uses."""
