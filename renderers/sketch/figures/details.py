"""Small things that tell people apart: glasses, jewels, marks on the brow, and what their far hand always holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha.renderers.sketch.figures.ink import Ink
from katha.renderers.sketch.style import darker

__all__ = ["DETAILS", "HOLDS"]

Part = Callable[[Ink, Mapping[str, Any]], None]


def _glasses(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x in (-0.24, 0.46):
        ink.ellipse(x, -0.04, 0.35, stroke="#8a4428", width=0.75)
    ink.draw("M 0.07 -0.06 Q 0.11 -0.12 0.15 -0.06 M -0.55 -0.06 L -0.92 -0.12", width=0.9)


def _jewels(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x in (-0.92, 0.95):
        ink.ellipse(x, 0.42, 0.13, fill="golden", width=0.7)
    ink.ellipse(0.12, -0.52, 0.08, fill="red", width=0)


def _tilak(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M 0.0 -0.72 L 0.02 -0.38 M 0.22 -0.72 L 0.2 -0.38", stroke="#fffdf6", width=1.1)
    ink.ellipse(0.11, -0.45, 0.07, fill="red", width=0)


def _bindi(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.12, -0.42, 0.1, fill="red", width=0)
    for x in (-0.95, 0.96):
        ink.ellipse(x, 0.36, 0.11, fill="golden", width=0.6)


def _wrinkles(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -0.2 -0.62 Q 0.1 -0.7 0.4 -0.62 M -0.12 -0.48 Q 0.1 -0.54 0.32 -0.48", width=0.5)


def _sunglasses(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x in (-0.24, 0.46):
        ink.ellipse(x, -0.04, 0.33, fill="black", width=0.9)
    ink.draw("M 0.07 -0.1 Q 0.11 -0.16 0.15 -0.1 M -0.55 -0.06 L -0.92 -0.12", width=0.9)


def _freckles(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x, y in ((-0.42, 0.3), (-0.26, 0.36), (-0.34, 0.46), (0.5, 0.3), (0.66, 0.34), (0.58, 0.45)):
        ink.ellipse(x, y, 0.045, fill=darker(draw["coat"], 0.35), width=0)


def _earrings(ink: Ink, draw: Mapping[str, Any]) -> None:
    for x in (-0.92, 0.95):
        ink.ellipse(x, 0.46, 0.14, fill="golden", width=0.7)


def _scar(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M 0.55 0.2 L 0.75 0.6 M 0.54 0.38 L 0.7 0.32 M 0.6 0.5 L 0.76 0.44", stroke="#a04040", width=0.7)


DETAILS: Mapping[str, Part] = {
    "glasses": _glasses, "jewels": _jewels, "tilak": _tilak, "bindi": _bindi, "wrinkles": _wrinkles,
    "sunglasses": _sunglasses, "freckles": _freckles, "earrings": _earrings, "scar": _scar,
}  # fmt: skip
"""Details of a face by the names that `draw: detail` uses, in the unit circle of the head."""


def _pole(ink: Ink, bottom: float, top: float) -> None:
    ink.line([(0, bottom), (0, top)], width=2.2)
    ink.line([(0, bottom), (0, top)], stroke="brown", width=1)


def _spear(ink: Ink, foot: float) -> None:
    _pole(ink, foot, -58)
    ink.draw("M 0 -76 Q 7 -64 4 -57 L -4 -57 Q -7 -64 0 -76 Z", fill="grey")
    ink.draw("M -4 -56 Q -6 -48 0 -46 Q 6 -48 4 -56 Z", fill="red", width=0.8)


def _staff(ink: Ink, foot: float) -> None:
    _pole(ink, foot, -8)
    ink.limb([(0, -6), (0, -13), (7, -12)], 4, "brown")


def _crook(ink: Ink, foot: float) -> None:
    d = f"M 0 {foot} L 0 -46 Q 0 -62 10 -60 Q 19 -57 15 -48 Q 12 -43 9 -47"
    ink.draw(d, width=2.3)
    ink.draw(d, stroke="tan", width=1.1)


def _rod(ink: Ink, foot: float) -> None:
    d = "M -3 8 Q 8 -34 30 -52"
    ink.draw(d, width=1.9)
    ink.draw(d, stroke="tan", width=0.8)
    ink.draw("M 30 -52 L 32 -14", width=0.6)
    ink.draw("M 32 -14 Q 36 -8 32 -6 Q 28 -7 29 -10", width=0.9)


def _bow(ink: Ink, foot: float) -> None:
    d = "M -3 -30 Q 22 0 -3 30"
    ink.line([(-3, -30), (-3, 30)], width=0.6)
    ink.draw(d, width=2)
    ink.draw(d, stroke="brown", width=0.9)


def _axe(ink: Ink, foot: float) -> None:
    _pole(ink, min(foot, 16), -22)
    ink.draw("M -1 -24 L 3 -23 Q 12 -29 14 -19 Q 14 -12 10 -9 Q 6 -15 -1 -14 Z", fill="grey")


HOLDS: Mapping[str, Callable[[Ink, float], None]] = {
    "spear": _spear, "staff": _staff, "crook": _crook, "rod": _rod, "bow": _bow, "axe": _axe,
}  # fmt: skip
"""What a far hand holds by the names that `draw: holds` uses: a pen at the hand, and how far below it the ground is."""
