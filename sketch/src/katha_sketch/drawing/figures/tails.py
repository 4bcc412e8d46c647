"""Tails and backs of upright mammals; pens start at the hip (tails) or the shoulder (backs), along the trunk, x
forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.style import darker

__all__ = ["BACKS", "TAILS", "draw_back", "draw_tail"]

Part = Callable[[Ink, Mapping[str, Any]], None]


def draw_tail(ink: Ink, draw: Mapping[str, Any]) -> None:
    """Draw the character's tail, if it has one."""
    if "tail" in draw:
        TAILS[draw["tail"]](ink, draw)


def draw_back(ink: Ink, draw: Mapping[str, Any]) -> None:
    """Draw what the character has on its back (spines, a hump, a quiver), if anything."""
    if "back" in draw:
        BACKS[draw["back"]](ink, draw)


def _tip(draw: Mapping[str, Any]) -> str:
    return str(draw.get("tip", darker(draw["coat"], 0.5)))


def _tuft(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.limb([(-7, 2), (-24, 4), (-26, -12)], 4.2, draw["coat"])
    ink.draw("M -26 -9 Q -33 -14 -27 -24 Q -19 -16 -26 -9 Z", fill=_tip(draw))


def _bushy(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -5 4 Q -22 14 -30 0 Q -36 -14 -27 -24 Q -13 -16 -14 -5 Q -11 0 -5 -4 Z", fill=draw["coat"])
    ink.draw(
        "M -33 -10 L -28.5 -13 L -25 -9.5 L -20 -14 L -15.5 -11.5 Q -17 -19 -27 -24 Q -34 -16 -33 -10 Z",
        fill=_tip(draw),
        width=0.8,
    )


def _brush(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A hanging ragged brush (wolf, jackal)."""
    ink.draw("M -5 -3 Q -20 -4 -26 10 Q -29 18 -26 24 L -22 20 L -19 24 L -16 18 Q -9 12 -3 5 Z", fill=draw["coat"])
    ink.draw("M -27.2 16 Q -28.5 20 -26 24 L -22 20 L -19 24 L -16 18 L -20 15 L -23 18 Z", fill=_tip(draw), width=0.7)


def _long(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -7 3 Q -22 12 -28 -1 Q -32 -14 -24 -20 Q -19 -22 -19 -17", stroke=draw.get("tip", "pink"), width=2.4)
    ink.draw("M -7 3 Q -22 12 -28 -1 Q -32 -14 -24 -20 Q -19 -22 -19 -17", stroke=draw.get("tip", "pink"), width=1.2)


def _curl(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.limb([(-6, 3), (-32, 10), (-25, -20)], 5.5, draw["coat"])
    ink.limb([(-25, -14), (-24, -20), (-21, -24)], 5.5, _tip(draw))


def _huge(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A squirrel's tail, as tall as its body and curled at the top."""
    ink = ink.at(-5, 2, sx=1.25, sy=1.15)
    ink.draw(
        "M -4 6 Q -20 14 -30 2 Q -38 -12 -32 -32 Q -28 -52 -14 -50 Q -4 -47 -7 -38 Q -10 -32 -16 -36 Q -14 -28 -17 -18"
        " Q -18 -6 -5 -5 Z",
        fill=draw["coat"],
    )  # fmt: skip
    ink.draw("M -24 0 Q -31 -16 -25 -34 Q -22 -43 -15 -43", stroke=_tip(draw), width=1.6)


def _puff(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(-12, 2, 6, fill=draw.get("tip", "white"))


def _flick(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -8 0 Q -17 -8 -20 -14 Q -10 -13 -6 -6 Z", fill=draw.get("tip", draw["coat"]))


def _spiral(ink: Ink, draw: Mapping[str, Any]) -> None:
    d = "M -9 1 Q -16 4 -17 -2 Q -16 -8 -12 -5 Q -10 -1 -16 1 Q -21 3 -23 -2"
    ink.draw(d, width=2.6)
    ink.draw(d, stroke=draw["coat"], width=1.1)


def _hair(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -6 -4 Q -20 -10 -25 4 Q -28 16 -24 26 Q -18 22 -15 12 Q -12 5 -5 3 Z", fill=draw.get("mane", "hair"))


def _stub(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(-11, 1, 4.5, fill=draw["coat"])


def _log(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A mongoose's long tapering tail with a dark tip, low along the ground."""
    ink.draw("M -4 -4 Q -22 -2 -34 14 Q -38 20 -41 19 Q -40 24 -33 23 Q -18 18 -3 7 Z", fill=draw["coat"])
    ink.draw("M -33 13 Q -37 20 -41 19 Q -40 24 -33 23 L -29 20 Z", fill=_tip(draw), width=0.8)


def _paddle(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A beaver's broad flat tail."""
    ink.draw("M -4 0 Q -20 0 -34 8 Q -48 18 -38 27 Q -24 30 -4 10 Z", fill=_tip(draw))
    ink.draw("M -16 6 L -22 22 M -26 8 L -32 24 M -10 14 L -38 14", width=0.5)


def _spines(ink: Ink, draw: Mapping[str, Any]) -> None:
    points = [(2.0, -8.0)]
    for k, (x, y) in enumerate([(-6, -16), (-16, -12), (-22, -3), (-25, 8), (-24, 19), (-18, 29), (-8, 34)]):
        points += [(x * 1.18, y * 1.12), (x * 0.82, y * 0.86 + 4 + 0.3 * k)]
    ink.polygon([*points, (2, 30)], fill=draw.get("mane", "dark_brown"))
    for x, y in ((-9, 0), (-14, 6), (-10, 12), (-15, 16), (-9, 22)):
        ink.line([(x, y), (x - 3.5, y - 2.5)], stroke="cream", width=0.7)


def _hump(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M 0 -2 Q -10 -6 -19 3 Q -25 12 -12 20 Q -4 22 2 18 Z", fill=draw["coat"])
    ink.draw("M -16 2 Q -19 -3 -14 -4 Q -9 -6 -8 0", fill=darker(draw["coat"], 0.4), width=0.8)


def _quiver(ink: Ink, draw: Mapping[str, Any]) -> None:
    pen = ink.at(-8, 6, -24)
    for x in (-2.5, 0.5, 3.5):
        pen.line([(x, -4), (x, -16)], width=0.8)
        pen.polygon([(x - 1.8, -20), (x, -15), (x + 1.8, -20)], fill="red", width=0.6)
    pen.draw("M -5 -8 L 5 -8 L 4 14 L -4 14 Z", fill="brown")


def _cape(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M 6 -3 Q -9 -8 -13 6 Q -19 28 -24 46 Q -10 52 6 46 Z", fill=draw.get("cape", "red"))


def _braid(ink: Ink, draw: Mapping[str, Any]) -> None:
    for k in range(4):
        ink.ellipse(-11 - k * 1.2, -8 + k * 7, 4.4 - k * 0.35, 4.6, fill=draw["hair"], width=0.9)
    ink.ellipse(-15.6, 18, 2.6, fill=draw.get("ribbon", "red"), width=0.8)


def _sack(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -2 -2 Q -10 -6 -20 4 Q -30 16 -20 26 Q -8 30 2 20 Z", fill="tan")
    ink.draw("M -14 8 L -19 14 M -12 15 L -17 20", width=0.6)


TAILS: Mapping[str, Part] = {
    "tuft": _tuft, "bushy": _bushy, "brush": _brush, "long": _long, "curl": _curl, "huge": _huge, "puff": _puff,
    "flick": _flick, "spiral": _spiral, "hair": _hair, "stub": _stub, "log": _log, "paddle": _paddle,
}  # fmt: skip
"""Tails by the names that `draw: tail` uses."""

BACKS: Mapping[str, Part] = {
    "spines": _spines, "hump": _hump, "quiver": _quiver, "cape": _cape, "braid": _braid, "sack": _sack,
}  # fmt: skip
"""What is behind the shoulders, by the names that `draw: back` uses."""
