"""What an action itself puts into the hands: an axe to chop with, a spade, a flute, a bite to eat."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from katha_sketch.drawing.figures.ink import Ink, Point

__all__ = ["TOOLS"]

Arm = tuple[Point, Point, Point]
Tool = Callable[[Ink, Arm, Arm], None]


def _held(ink: Ink, arm: Arm) -> Ink:
    """A pen at the hand whose -y runs on along the forearm."""
    (ex, ey), (hx, hy) = arm[1], arm[2]
    return ink.at(hx, hy, math.degrees(math.atan2(hx - ex, ey - hy)))


def _axe(ink: Ink, near: Arm, far: Arm) -> None:
    pen = _held(ink, near)
    pen.line([(0, 8), (0, -24)], width=2.2)
    pen.line([(0, 8), (0, -24)], stroke="brown", width=1)
    pen.draw("M -1 -25 L 4 -24 Q 13 -30 15 -20 Q 15 -13 11 -10 Q 7 -16 -1 -15 Z", fill="grey")


def _spade(ink: Ink, near: Arm, far: Arm) -> None:
    pen = ink.at(*near[2], 150)
    pen.line([(0, 16), (0, -16)], width=2.2)
    pen.line([(0, 16), (0, -16)], stroke="brown", width=1)
    pen.draw("M -6 -14 L 6 -14 L 6 -24 Q 0 -33 -6 -24 Z", fill="grey")


def _pot(ink: Ink, near: Arm, far: Arm) -> None:
    pen = ink.at(40, 0)
    pen.draw("M -14 0 L -9 -6 L -5 0 M -4 0 L 0 -7 L 4 0 M 5 0 L 9 -6 L 14 0", stroke="orange", width=2)
    pen.draw("M -14 -22 Q -19 -5 -8 -5 L 8 -5 Q 19 -5 14 -22 Z", fill="black")
    pen.ellipse(0, -22, 14.5, 3.4, fill="orange")
    hx, hy = near[2]
    ink.line([(hx, hy), (38, -22)], width=2.2)
    ink.line([(hx, hy), (38, -22)], stroke="tan", width=1)


def _flute(ink: Ink, near: Arm, far: Arm) -> None:
    (x0, y0), (x1, y1) = near[2], far[2]
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    pen = ink.at((x0 + x1) / 2, (y0 + y1) / 2, angle)
    pen.limb([(-17, 0), (0, 0), (24, 0)], 6.5, "golden")
    for x in (-4, 1, 6, 11):
        pen.ellipse(x, 0, 0.8, fill="dark_brown", width=0)


def _food(ink: Ink, near: Arm, far: Arm) -> None:
    x, y = near[2]
    pen = ink.at(x + 6, y - 7, sx=1.45)
    pen.ellipse(0, 0, 6.5, 6, fill="red")
    pen.ellipse(3.8, -3.2, 3, fill="cream", width=0.7)
    pen.line([(-1, -6), (1, -10)], width=0.9)


def _cup(ink: Ink, near: Arm, far: Arm) -> None:
    x, y = near[2]
    ink.at(x + 5, y - 5, -42, 1.35).draw("M -6 -7 L 6 -7 L 4.5 7 L -4.5 7 Z", fill="water")


def _stone(ink: Ink, near: Arm, far: Arm) -> None:
    """A stone that has left the foremost hand, with its path."""
    x, y = max(near[2], far[2])
    ink.draw(
        f"M {x + 4:.1f} {y - 8:.1f} Q {x + 18:.1f} {y - 20:.1f} {x + 28:.1f} {y - 18:.1f}", stroke="stone", width=1
    )
    ink.blob([(x + 28, y - 18), (x + 32, y - 24), (x + 39, y - 22), (x + 40, y - 15), (x + 33, y - 13)], fill="stone")


def _gift(ink: Ink, near: Arm, far: Arm) -> None:
    x, y = max(near[2], far[2])
    pen = ink.at(x + 5, y - 4)
    pen.draw("M -8 -6 L 8 -6 L 8 7 L -8 7 Z", fill="golden")
    pen.draw("M 0 -6 L 0 7 M -8 0 L 8 0", stroke="red", width=1.3)
    pen.draw("M 0 -6 Q -8 -14 -7 -7 Q -5 -5 0 -6 Q 5 -5 7 -7 Q 8 -14 0 -6 Z", fill="red", width=0.7)


def _bundle(ink: Ink, near: Arm, far: Arm) -> None:
    x, y = near[2]
    pen = ink.at(x + 1, y - 7)
    pen.blob([(-11, 6), (-10, -5), (-2, -8), (8, -7), (11, 5), (0, 9)], fill="tan")
    pen.draw("M -3 -7 L -7 -13 L 0 -10 L 5 -14 L 3 -7 Z", fill="tan", width=0.8)


def _hammer(ink: Ink, near: Arm, far: Arm) -> None:
    pen = _held(ink, near)
    pen.line([(0, 5), (0, -17)], width=2.2)
    pen.line([(0, 5), (0, -17)], stroke="brown", width=1)
    pen.draw("M -8 -23 L 8 -23 L 8 -15 L -8 -15 Z", fill="grey")


def _bricks(ink: Ink, near: Arm, far: Arm) -> None:
    _hammer(ink, near, far)
    for x, y in ((24, -9), (41, -9), (32, -18)):
        ink.draw(f"M {x - 8} {y} L {x + 8} {y} L {x + 8} {y + 9} L {x - 8} {y + 9} Z", fill="orange", width=0.9)


def _seedling(ink: Ink, near: Arm, far: Arm) -> None:
    pen = ink.at(near[2][0] + 6, 0)
    pen.draw("M -14 1 Q 0 -10 14 1 Z", fill="dark_brown")
    pen.draw("M 0 -4 L 0 -17", stroke="dark_green", width=1.6)
    pen.draw("M 0 -14 Q -11 -16 -12 -25 Q -1 -25 0 -14 Q 1 -25 12 -25 Q 11 -16 0 -14 Z", fill="leaf", width=0.9)


def _ropes_end(ink: Ink, near: Arm, far: Arm) -> None:
    """A taut rope from both hands, pulled over the shoulder or away."""
    x, y = near[2]
    ink.line([far[2], (x, y), (x + 40, y + 6)], width=2)
    ink.line([far[2], (x, y), (x + 40, y + 6)], stroke="tan", width=0.9)


def _block(ink: Ink, near: Arm, far: Arm) -> None:
    """A big crate that both hands push against."""
    x = max(near[2][0], far[2][0]) + 1
    ink.draw(f"M {x} -34 L {x + 26} -34 L {x + 26} 0 L {x} 0 Z", fill="tan")
    ink.draw(f"M {x} -34 L {x + 26} 0 M {x + 26} -34 L {x} 0", width=0.7)


def _knot(ink: Ink, near: Arm, far: Arm) -> None:
    """Cut ropes falling apart between the hands."""
    x, y = near[2]
    for d, turn in (("M 0 0 Q 8 -2 9 6 Q 10 14 5 18", 0), ("M 4 -4 Q 16 -8 20 0 Q 22 8 17 12", 0)):
        pen = ink.at(x, y, turn)
        pen.draw(d, width=2.2)
        pen.draw(d, stroke="tan", width=1.1)


TOOLS: Mapping[str, Tool] = {
    "axe": _axe, "spade": _spade, "pot": _pot, "flute": _flute, "food": _food, "cup": _cup, "stone": _stone,
    "gift": _gift, "bundle": _bundle, "bricks": _bricks, "seedling": _seedling, "rope": _ropes_end, "block": _block,
    "knot": _knot,
}  # fmt: skip
"""Tools by the names that `draw: tool` uses, each given the near and far arm as (shoulder, elbow, hand)."""
