"""What tells birds apart: tails, crests and masks, wings and feet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.stance import Arm
from katha_sketch.drawing.style import darker, lighter

__all__ = ["CRESTS", "MASKS", "TAILS", "draw_foot", "draw_membrane", "draw_wing"]

Part = Callable[[Ink, Mapping[str, Any]], None]


def _heading(a: Point, b: Point) -> float:
    """The turn that makes a pen's +x run from `a` to `b`, in degrees."""
    return math.degrees(math.atan2(b[1] - a[1], b[0] - a[0]))


def draw_wing(ink: Ink, arm: Arm, wide: float, fill: str, tip: str) -> None:
    """A wing that serves as an arm: three long feathers for fingers, a scalloped sleeve from the shoulder."""
    root, elbow, hand = arm
    angle = _heading(elbow, hand)
    reach = math.dist(elbow, hand)
    pen = ink.at(*elbow, angle)
    for spread in (32, -26, 3):
        pen.at(reach * 0.3, 0, spread).ellipse(reach * 0.48, 0, reach * 0.42, wide * 0.42, fill=tip)
    ink.bundle([(*root, wide * 0.62), (*elbow, wide * 0.8)], fill=fill)
    pen.draw(
        f"M {-wide * 0.2:.2f} {-wide * 0.78:.2f}"
        f" Q {reach * 0.5:.2f} {-wide * 0.95:.2f} {reach * 0.62:.2f} {-wide * 0.4:.2f}"
        f" Q {reach * 0.48:.2f} {-wide * 0.1:.2f} {reach * 0.66:.2f} {wide * 0.1:.2f}"
        f" Q {reach * 0.4:.2f} {wide * 0.3:.2f} {reach * 0.5:.2f} {wide * 0.75:.2f}"
        f" Q {reach * 0.2:.2f} {wide * 0.9:.2f} {-wide * 0.2:.2f} {wide * 0.78:.2f} Z",
        fill=fill,
    )
    ink.bundle([(*root, wide * 0.62 - 1.1), (*elbow, wide * 0.8 - 1.1)], fill=fill, width=0)


def draw_membrane(ink: Ink, arm: Arm, wide: float, fill: str, tip: str) -> None:
    """A bat's wing: skin in scallops between long fingers."""
    root, elbow, hand = arm
    low = (root[0] - (2 if hand[0] < root[0] else -2), root[1] + wide * 1.9)
    mid = ((elbow[0] + hand[0]) / 2, (elbow[1] + hand[1]) / 2)
    fingers = [_toward(hand, low, 0.36), _toward(hand, low, 0.7)]
    a, b = ((p[0] + (p[0] - root[0]) * 0.22, p[1] + wide * 0.5) for p in fingers)
    pull = [_toward(mid, p, 0.55) for p in (_toward(hand, a, 0.5), _toward(a, b, 0.5), _toward(b, low, 0.5))]
    d = f"M {root[0]:.2f} {root[1]:.2f} L {elbow[0]:.2f} {elbow[1]:.2f} L {hand[0]:.2f} {hand[1]:.2f}"
    for through, to in zip(pull, (a, b, low), strict=True):
        d += f" Q {through[0]:.2f} {through[1]:.2f} {to[0]:.2f} {to[1]:.2f}"
    ink.draw(d + " Z", fill=fill)
    for end in (a, b):
        ink.line([elbow, end], width=0.7)
    ink.line([root, elbow, hand], stroke=tip, width=1.6)


def _toward(a: Point, b: Point, share: float) -> Point:
    return (a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share)


def draw_foot(ink: Ink, leg: Sequence[Point], fill: str, thick: float, webbed: bool, size: float) -> None:
    """A thin leg and three toes, or a webbed paddle, flat along the ground."""
    (kx, ky), (x, y) = leg[1], leg[2]
    slope = math.degrees(math.atan2(x - kx, y - ky))
    for stroke, width in (("#2b2a33", thick + 1), (fill, thick - 0.6)):
        ink.line(leg, stroke=stroke, width=width)
    pen = ink.at(x, y, -slope if abs(slope) > 40 else 0.0, size)
    if webbed:
        pen.draw("M -3 -1.5 Q 2 -4 8 -2.5 L 11 2 L 7 1 L 5 2.5 L 2 1.2 L -3 2.4 Z", fill=fill)
        return
    toes = [[(0.0, 0.0), (9.0, 1.5)], [(0.0, 0.0), (6.0, -2.0)], [(0.0, 0.0), (-5.0, 1.5)]]
    for stroke, width in (("#2b2a33", thick + 1), (fill, thick - 0.6)):
        for toe in toes:
            pen.line(toe, stroke=stroke, width=width)


def _feathers(spread: Sequence[float], long: float, wide: float) -> Part:
    """Straight tail feathers side by side."""

    def draw(ink: Ink, data: Mapping[str, Any]) -> None:
        fill = data.get("tail_colour") or darker(data.get("wing", data["coat"]), 0.12)
        for angle in spread:
            ink.at(angle=angle).ellipse(0, long * 0.5, wide, long * 0.56, fill=fill)

    return draw


def _sickle(ink: Ink, data: Mapping[str, Any]) -> None:
    """A rooster's high arching plumes."""
    pen = ink.at(0, 0, -(data.get("tilt", 30.0)))
    for fill, size, drop in (("dark_green", 1.25, 0), ("teal", 1.0, 5), ("navy", 0.78, 10)):
        pen.at(0, drop, sx=size).draw(
            "M 6 2 Q -4 -38 -26 -34 Q -44 -28 -42 -2 Q -34 -20 -24 -16 Q -14 -10 2 10 Z", fill=fill
        )


def _upright(ink: Ink, data: Mapping[str, Any]) -> None:
    """A hen's short, raised tail."""
    pen = ink.at(0, 0, -(data.get("tilt", 30.0)))
    fill = darker(data.get("wing", data["coat"]), 0.08)
    for angle in (-62, -38, -14):
        pen.at(2, 2, angle).ellipse(0, -14, 6, 15, fill=fill)


def _curl(ink: Ink, data: Mapping[str, Any]) -> None:
    """A duck's stubby tail with its curl."""
    pen = ink.at(0, 0, -(data.get("tilt", 30.0)))
    pen.draw("M 8 6 Q -14 4 -20 -10 Q -8 -10 6 -8 Z", fill=data.get("tail_colour") or data["coat"])
    pen.draw("M -10 -6 Q -22 -16 -12 -20 Q -6 -20 -9 -14", width=1.3)


def _train(ink: Ink, data: Mapping[str, Any]) -> None:
    """A peacock's fan of eyed feathers."""
    pen = ink.at(0, 0, -(data.get("tilt", 30.0))).at(10, -14)
    green, gold = "#4f9a6a", "#a9cf7a"
    for k in range(11):
        feather = pen.at(angle=-92 + k * 15.5)
        feather.draw(
            "M -2 0 Q -12 -38 -9.5 -52 Q 0 -66 9.5 -52 Q 12 -38 2 0 Z", fill=green if k % 2 else lighter(green, 0.18)
        )
        feather.ellipse(0, -48, 6, 7.5, fill=gold, width=0.6)
        feather.ellipse(0, -47, 3.6, 4.6, fill="#3a6fb5", width=0)
        feather.ellipse(0, -46, 1.8, 2.2, fill="navy", width=0)


TAILS: Mapping[str, Part] = {
    "short": _feathers((16, -12), 17, 5.5), "long": _feathers((10, -10, 0), 27, 5),
    "streamer": _feathers((8, -4), 44, 4.5), "fan": _feathers((34, -34, 17, -17, 0), 20, 5.5),
    "sickle": _sickle, "raised": _upright, "curl": _curl, "train": _train,
}  # fmt: skip
"""Tails by name; the pen's +y runs away from the body."""


def _comb(size: float) -> Part:
    """A red comb with a wattle under the beak."""

    def draw(ink: Ink, data: Mapping[str, Any]) -> None:
        pen = ink.at(0.08, -0.78, sx=size)
        pen.draw(
            "M -0.75 0.3 Q -1 -0.6 -0.5 -0.5 Q -0.4 -1.15 0.02 -0.6 Q 0.4 -1.15 0.55 -0.4 Q 1 -0.4 0.75 0.3 Z",
            fill="red",
        )
        for x, long in ((0.62, 0.62), (0.36, 0.5)):
            ink.ellipse(x, 0.5 + 0.5 * size, 0.19 * size, long * 0.6 * size, fill="red")

    return draw


def _crown_feathers(ink: Ink, data: Mapping[str, Any]) -> None:
    for angle in (-28, 0, 28):
        pen = ink.at(0, -0.85, angle)
        pen.line([(0, 0.1), (0, -0.7)], width=1)
        pen.ellipse(0, -0.8, 0.17, 0.2, fill="#3a9aa8", width=0.7)


def _swept(ink: Ink, data: Mapping[str, Any]) -> None:
    """Feathers swept back from the brow."""
    fill = data.get("crest_colour", data["coat"])
    for y, reach in ((-0.75, -1.15), (-0.5, -1.3), (-0.2, -1.25)):
        ink.draw(f"M -0.1 {y - 0.15} Q -0.7 {y - 0.4} {reach} {y - 0.15} Q -0.9 {y + 0.25} -0.3 {y + 0.3} Z", fill=fill)


def _tufts(ink: Ink, data: Mapping[str, Any]) -> None:
    """An owl's ear tufts."""
    for side in (-1, 1):
        pen = ink.at(0.05 + 0.55 * side, -0.66, 0, side, 1)
        pen.draw("M -0.38 -0.14 Q 0.2 -0.2 0.5 -0.75 Q 0.65 0 0.32 0.42 Z", fill=darker(data["coat"], 0.15))


def _bat_ears(ink: Ink, data: Mapping[str, Any]) -> None:
    for side in (-1, 1):
        pen = ink.at(0.05 + 0.5 * side, -0.62, 14 * side)
        pen.draw("M -0.42 0.2 Q -0.4 -0.6 0 -1.05 Q 0.4 -0.6 0.42 0.2 Z", fill=data["coat"])
        pen.draw("M -0.2 0.15 Q -0.2 -0.4 0 -0.7 Q 0.2 -0.4 0.2 0.15 Z", fill="pink", width=0)


def _lone(ink: Ink, data: Mapping[str, Any]) -> None:
    """A few ruffled feathers on top."""
    fill = data.get("crest_colour", data["coat"])
    ink.draw("M -0.4 -0.8 Q -0.55 -1.35 -0.15 -1.1 Q -0.1 -1.5 0.15 -1.12 Q 0.45 -1.25 0.25 -0.8 Z", fill=fill)


CRESTS: Mapping[str, Part] = {
    "comb": _comb(1.0), "small_comb": _comb(0.62), "crown": _crown_feathers, "swept": _swept, "tufts": _tufts,
    "bat": _bat_ears, "ruffled": _lone,
}  # fmt: skip
"""What stands on a head, drawn before it, in the head's unit circle."""


def _disc(ink: Ink, data: Mapping[str, Any]) -> None:
    """An owl's two pale eye discs."""
    for x in (-0.33, 0.47):
        ink.ellipse(x, -0.1, 0.5, 0.54, fill=data["belly"], width=0.7)


def _hood(ink: Ink, data: Mapping[str, Any]) -> None:
    """Cheeks and bib in the second colour."""
    ink.draw(
        "M -0.9 0.3 Q -0.3 -0.2 0.1 0.3 Q 0.5 -0.1 0.93 0.3 Q 0.75 1 0 0.96 Q -0.75 1 -0.9 0.3 Z",
        fill=data["belly"],
        width=0,
    )


def _cap(ink: Ink, data: Mapping[str, Any]) -> None:
    """A darker cap over the brow."""
    ink.draw(
        "M -0.96 -0.2 Q -0.8 -0.97 0 -0.97 Q 0.8 -0.97 0.96 -0.2 Q 0 -0.62 -0.96 -0.2 Z",
        fill=data.get("mark", "red"),
        width=0,
    )


def _brow(ink: Ink, data: Mapping[str, Any]) -> None:
    """An eagle's heavy brow ridge."""
    ink.draw("M -0.6 -0.62 Q -0.1 -0.6 0.1 -0.3 Q 0.35 -0.6 0.85 -0.62", width=1.6)


def _patch(ink: Ink, data: Mapping[str, Any]) -> None:
    """A pale patch around the eyes."""
    ink.ellipse(0.18, -0.1, 0.7, 0.42, fill="white", width=0)


def _knob(ink: Ink, data: Mapping[str, Any]) -> None:
    """A swan's black mask between beak and eyes."""
    ink.draw("M 0.2 -0.02 Q 0.4 -0.28 0.7 0 L 0.62 0.4 L 0.3 0.4 Z", fill="black", width=0.7)


MASKS: Mapping[str, Part] = {
    "disc": _disc, "hood": _hood, "cap": _cap, "brow": _brow, "patch": _patch, "knob": _knob,
}  # fmt: skip
"""Markings on a face, in the head's unit circle."""
