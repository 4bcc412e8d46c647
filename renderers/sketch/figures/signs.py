"""Signs of feeling on and around a head (blush, tears, sweat, sparkles, ...), drawn in the unit circle of the head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from katha.renderers.sketch.figures.ink import Ink, Point

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


def _sweat(ink: Ink, eyes: Eyes, eye: float) -> None:
    for x, y, angle in ((-0.98, -0.9, -40), (-1.35, -0.35, -62), (1.02, -0.9, 40), (1.38, -0.35, 62)):
        drop(ink, x, y, 0.27, angle)


def _shade(ink: Ink, eyes: Eyes, eye: float) -> None:
    for k in range(5):
        x = -0.36 + k * 0.22
        ink.line([(x, -0.92), (x, -0.62 + 0.06 * (k % 2))], stroke="#6f86c9", width=0.8)


def _gloom(ink: Ink, eyes: Eyes, eye: float) -> None:
    ink.draw(
        "M -0.75 -1.35 Q -1.05 -1.4 -0.95 -1.7 Q -0.85 -1.95 -0.5 -1.85 Q -0.2 -2.15 0.15 -1.9 Q 0.6 -2.05 0.75 -1.75"
        " Q 1.1 -1.65 0.85 -1.35 Q 0.05 -1.2 -0.75 -1.35 Z",
        fill="#8f97b5", width=0.8,
    )  # fmt: skip


def _vein(ink: Ink, eyes: Eyes, eye: float) -> None:
    pen = ink.at(0.95, -0.95, 15, 0.34)
    for turn in (0, 90, 180, 270):
        pen.at(angle=turn).draw("M 0.25 -1 Q 0.2 -0.2 1 -0.25", stroke="#d3363f", width=1.6)


def _puffs(ink: Ink, eyes: Eyes, eye: float) -> None:
    for side in (-1, 1):
        pen = ink.at(1.2 * side, -0.55, sx=side * 0.3, sy=0.3)
        pen.draw(
            "M 0 0.3 Q -0.2 -0.6 0.5 -0.6 Q 1 -1.2 1.5 -0.5 Q 2 0 1.3 0.5 Q 0.7 1 0 0.3 Z", fill="white", width=0.7
        )


def _burst(ink: Ink, eyes: Eyes, eye: float) -> None:
    for degrees in (-150, -120, -90, -60, -30):
        x, y = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(x * 1.28, y * 1.28), (x * 1.7, y * 1.7)], stroke="#e8924a", width=1.5)


def _blossoms(ink: Ink, eyes: Eyes, eye: float) -> None:
    """Flowers in the air around a happy head."""
    for x, y, size in ((1.3, -0.85, 0.2), (-1.28, -0.9, 0.18), (0.75, -1.5, 0.15), (-0.6, -1.55, 0.16)):
        for k in range(5):
            angle = 2 * math.pi * k / 5 - math.pi / 2
            ink.ellipse(x + math.cos(angle) * size, y + math.sin(angle) * size, size * 0.75, fill="#f7a8b8", width=0.5)
        ink.ellipse(x, y, size * 0.6, fill="yellow", width=0)


def _sparkle(ink: Ink, eyes: Eyes, eye: float) -> None:
    star(ink, 1.15, -0.95, 0.42)
    star(ink, -1.1, -1.05, 0.3)
    star(ink, 1.45, -0.3, 0.2)


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


def _scheme(ink: Ink, eyes: Eyes, eye: float) -> None:
    """Raised hackles of mischief: two small violet zigzags beside the head."""
    ink.line([(1.1, -1.05), (1.3, -1.3), (1.35, -1.0), (1.6, -1.2)], stroke="purple", width=1.4)


def _breeze(ink: Ink, eyes: Eyes, eye: float) -> None:
    ink.draw("M 0.85 -1.25 Q 1.3 -1.55 1.5 -1.2 Q 1.5 -0.95 1.3 -1.05", stroke="teal", width=1.1)
    ink.draw("M -1.5 -1.1 Q -1.1 -1.5 -0.8 -1.2 Q -0.75 -1 -0.92 -1.02", stroke="teal", width=1.1)


def _swirl(ink: Ink, eyes: Eyes, eye: float) -> None:
    ink.draw("M 0.75 -1.1 Q 1.2 -1.2 1.15 -1.5 Q 1 -1.75 0.8 -1.55 Q 0.75 -1.35 0.95 -1.4", stroke="#8d5a6a", width=1.1)


SIGNS: Mapping[str, Sign] = {
    "blush": _cheeks(0.2, "pink"), "red_cheeks": _cheeks(0.28, _ROSE), "deep_blush": _deep_blush, "tears": _tears,
    "sweat": _sweat, "shade": _shade, "gloom": _gloom, "vein": _vein, "puffs": _puffs, "burst": _burst,
    "blossoms": _blossoms,
    "sparkle": _sparkle, "hearts": _hearts, "scheme": _scheme, "tremble": _tremble, "gold": _gold,
    "breeze": _breeze, "swirl": _swirl,
}  # fmt: skip
"""Signs of feeling by the names that the vocabulary's `draw:` data uses."""
