"""Signs of feeling on and around a head (blush, tears, sweat, sparkles, ...), drawn in the unit circle of the head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from katha_sketch.drawing.figures.ink import Ink, Point

__all__ = ["SIGNS", "drop", "heart", "star"]

Eyes = tuple[Point, Point]
Sign = Callable[[Ink, Eyes, float], None]
TEAR = "#74b9e8"
_ROSE = "#e8707a"


def drop(ink: Ink, x: float, y: float, size: float, angle: float = 0.0) -> None:
    """A water drop whose round end is `size` below (x, y); `angle` turns it about its tip."""
    ink.at(x, y, angle, size).draw(
        "M 0 -1 Q 0.75 0.1 0.6 0.5 Q 0.35 1 0 1 Q -0.35 1 -0.6 0.5 Q -0.75 0.1 0 -1 Z", fill=TEAR, width=0.6
    )


def heart(ink: Ink, x: float, y: float, size: float, angle: float = 0.0) -> None:
    """A red heart of half-width `size` around (x, y)."""
    ink.at(x, y, angle, size).draw(
        "M 0 0.9 C -1.4 -0.1 -0.9 -1.1 0 -0.45 C 0.9 -1.1 1.4 -0.1 0 0.9 Z", fill="#e2545c", width=0.6
    )


def star(ink: Ink, x: float, y: float, size: float, fill: str = "yellow") -> None:
    """A four-pointed sparkle around (x, y)."""
    points = [
        (
            math.cos(k * math.pi / 4) * (1 if k % 2 == 0 else 0.36),
            math.sin(k * math.pi / 4) * (1 if k % 2 == 0 else 0.36),
        )
        for k in range(8)
    ]
    ink.at(x, y, sx=size).polygon(points, fill=fill, width=0.6)


def _cheeks(size: float, colour: str) -> Sign:
    def draw(ink: Ink, eyes: Eyes, eye: float) -> None:
        for (x, y), side in zip(eyes, (-1, 1), strict=True):
            ink.ellipse(x + side * eye * 0.75, y + eye * 1.75, size, size * 0.72, fill=colour, width=0)

    return draw


def _deep_blush(ink: Ink, eyes: Eyes, eye: float) -> None:
    _cheeks(0.27, "#ee6f74")(ink, eyes, eye)
    for (x, y), side in zip(eyes, (-1, 1), strict=True):
        for k in (-0.12, 0.0, 0.12):
            cx, cy = x + side * eye * 0.75 + k, y + eye * 1.75
            ink.line([(cx + 0.04, cy - 0.1), (cx - 0.04, cy + 0.1)], stroke="#b53b4a", width=0.5)


def _tears(ink: Ink, eyes: Eyes, eye: float) -> None:
    for (x, y), side in zip(eyes, (-1, 1), strict=True):
        drop(ink, x + side * eye * 0.5, y + eye * 2.1, 0.27)
        drop(ink, x + side * eye * 0.9, y + eye * 4.2, 0.2)


def _puffs(ink: Ink, eyes: Eyes, eye: float) -> None:
    for side in (-1, 1):
        pen = ink.at(1.2 * side, -0.55, sx=side * 0.3, sy=0.3)
        pen.draw(
            "M 0 0.3 Q -0.2 -0.6 0.5 -0.6 Q 1 -1.2 1.5 -0.5 Q 2 0 1.3 0.5 Q 0.7 1 0 0.3 Z", fill="white", width=0.7
        )


def _burst(ink: Ink, eyes: Eyes, eye: float) -> None:
    for degrees in (-150, -120, -90, -60, -30):
        x, y = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(x * 1.28, y * 1.28), (x * 1.7, y * 1.7)], width=1.3)


def _hearts(ink: Ink, eyes: Eyes, eye: float) -> None:
    heart(ink, 1.15, -0.95, 0.34, 14)
    heart(ink, -1.05, -1.1, 0.26, -14)
    heart(ink, 0.35, -1.5, 0.2)


def _tremble(ink: Ink, eyes: Eyes, eye: float) -> None:
    """Shivering lines on both sides of the head."""
    for side in (-1, 1):
        for k in (1.2, 1.45):
            x = side * k
            ink.line(
                [(x, -0.1), (x + 0.1, 0.12), (x - 0.02, 0.32), (x + 0.1, 0.54), (x, 0.76)], stroke="#6f86c9", width=1
            )


def _gold(ink: Ink, eyes: Eyes, eye: float) -> None:
    """Coins in the air around a greedy head."""
    for x, y, size in ((1.2, -0.95, 0.27), (-1.15, -0.9, 0.24), (0.55, -1.5, 0.22), (-0.55, -1.45, 0.2)):
        ink.ellipse(x, y, size * 0.8, size, fill="golden", width=0.8)
        star(ink, x, y, size * 0.55, "white")


SIGNS: Mapping[str, Sign] = {
    "blush": _cheeks(0.2, "pink"), "red_cheeks": _cheeks(0.28, _ROSE), "deep_blush": _deep_blush, "tears": _tears,
    "puffs": _puffs, "burst": _burst, "hearts": _hearts, "tremble": _tremble, "gold": _gold,
}  # fmt: skip
"""Signs of feeling by the names that the vocabulary's `draw:` data uses: those that readers of comics know."""
