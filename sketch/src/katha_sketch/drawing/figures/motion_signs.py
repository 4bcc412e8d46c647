"""Signs of moving and resting: speed lines, dust, splashing water, what one sits, climbs or lies on."""

from __future__ import annotations

from collections.abc import Mapping

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.rig import Around, Emanation
from katha_sketch.drawing.figures.signs import drop

__all__ = ["MOTION"]

_DUST = "#e3d3b4"


def _puff(ink: Ink, x: float, y: float, size: float, fill: str = _DUST) -> None:
    ink.at(x, y, sx=size).draw(
        "M -1 0.5 Q -1.5 -0.2 -0.8 -0.5 Q -0.5 -1.2 0.2 -0.8 Q 1 -1 1 -0.3 Q 1.6 0.1 1 0.5 Z", fill=fill, width=0.8
    )


def _steps(ink: Ink, a: Around) -> None:
    """Two short arcs behind the heel and footprints left behind."""
    x = a.body[0]
    ink.draw(f"M {x - 2} -14 Q {x - 7} -9 {x - 5} -3", width=0.9)
    for dx, dy in ((-12, 0), (-22, -3), (-32, 0)):
        ink.ellipse(x + dx, dy, 3.2, 1.5, fill="stone", width=0)


def _speed(ink: Ink, a: Around) -> None:
    x0, y0, _, y1 = a.body
    for share, reach in ((0.2, 24), (0.4, 34), (0.6, 28), (0.78, 20)):
        y = y0 + (y1 - y0) * share
        ink.line([(x0 - 4, y), (x0 - 4 - reach, y)], width=1.3)


def _puffs(ink: Ink, a: Around) -> None:
    for dx, dy, size in ((-6, -3, 5), (-17, -5, 4)):
        _puff(ink, a.body[0] + dx, dy, size)


def _dust(ink: Ink, a: Around) -> None:
    for dx, dy, size in ((2, -4, 8), (-13, -7, 10), (-30, -5, 8), (-22, -19, 7)):
        _puff(ink, a.body[0] + dx, dy, size)


def _shadow(ink: Ink, a: Around) -> None:
    ink.ellipse(a.centre[0], 0, 22, 3.4, fill="stone", width=0, opacity=0.75)


def _spring(ink: Ink, a: Around) -> None:
    """Upward strokes under a leap."""
    for x in (-14, -2, 10):
        ink.line([(x, -4), (x, -20 if x == -2 else -14)], width=1.3)
    ink.draw("M -22 -3 Q -30 -8 -28 -14 M 20 -3 Q 28 -8 26 -14", width=1.1)


def _wind(ink: Ink, a: Around) -> None:
    x0, y0, x1, y1 = a.body
    for share in (0.2, 0.55):
        y = y0 + (y1 - y0) * share
        ink.draw(
            f"M {x0 - 4} {y} L {x0 - 20} {y} Q {x0 - 30} {y - 1} {x0 - 28} {y - 8}"
            f" Q {x0 - 23} {y - 11} {x0 - 21} {y - 5}",
            stroke="#7fb0c8",
            width=1.3,
        )
    for cx in (x0 + 6, x1 - 8):
        ink.at(cx, -6).draw(
            "M -15 4 Q -20 -3 -11 -4 Q -7 -11 1 -7 Q 10 -9 11 -3 Q 19 -2 14 4 Z", fill="white", width=0.8
        )


def _water(ink: Ink, a: Around) -> None:
    """Water up to the middle of the body, with waves and splashes."""
    x0, y0, x1, _ = a.body
    hip = a.joints.extra.get("shoulder", a.centre)
    top = min(max(hip[1] + 9, y0 * 0.62), -8)
    left, right = x0 - 14, x1 + 14
    step = (right - left) / 6
    waves = " ".join(
        f"Q {left + step * (k + 0.5):.1f} {top - (5 if k % 2 else -4):.1f} {left + step * (k + 1):.1f} {top:.1f}"
        for k in range(6)
    )
    ink.draw(
        f"M {left:.1f} {top:.1f} {waves} Q {right + 2:.1f} 5 {right - 22:.1f} 5"
        f" L {left + 22:.1f} 5 Q {left - 2:.1f} 5 {left:.1f} {top:.1f} Z",
        fill="water",
    )
    for k, y in ((0.2, 0.4), (0.6, 0.3), (0.42, 0.72), (0.75, 0.7)):
        cx, cy = left + (right - left) * k, top * (1 - y)
        ink.draw(
            f"M {cx - 8:.1f} {cy:.1f} Q {cx - 4:.1f} {cy - 4:.1f} {cx:.1f} {cy:.1f}"
            f" Q {cx + 4:.1f} {cy + 4:.1f} {cx + 8:.1f} {cy:.1f}",
            stroke="white",
            width=1,
        )
    for dx, dy, angle in ((-8, -10, -30), (-14, -2, -50), (8, -10, 30), (14, -2, 50), (0, -16, 0)):
        drop(ink, (left + 10 if dx < 0 else right - 10) + dx, top + dy - 4, 3.6, angle)


def _pole(ink: Ink, a: Around) -> None:
    """A trunk that the hands hold on to."""
    x = max(a.joints.hand[0], (a.joints.hand_far or a.joints.hand)[0]) + 4
    top = a.body[1] - 16
    ink.draw(f"M {x} 2 Q {x + 2} {top / 2} {x} {top} L {x + 13} {top} Q {x + 11} {top / 2} {x + 14} 2 Z", fill="brown")
    for share in (0.15, 0.4, 0.65, 0.85):
        ink.draw(f"M {x + 3} {top * share} Q {x + 7} {top * share + 3} {x + 10} {top * share}", width=0.6)


def _plunge(ink: Ink, a: Around) -> None:
    """Long vertical strokes above somebody who falls."""
    x0, y0, x1, _ = a.body
    for share, reach in ((0.1, 18), (0.35, 30), (0.6, 24), (0.9, 16)):
        x = x0 + (x1 - x0) * share
        ink.line([(x, y0 - 4), (x, y0 - 4 - reach)], width=1.3)
    ink.ellipse(a.centre[0], 0, 18, 3, fill="stone", width=0, opacity=0.7)


def _wagging(ink: Ink, a: Around) -> None:
    """Arcs at both sides of a tail that goes to and fro."""
    x, y = a.joints.extra.get("hip", a.joints.back)
    for dx, dy in ((-26, -26), (-32, -34), (-40, -6), (-48, -10)):
        ink.draw(f"M {x + dx - 7} {y + dy + 7} Q {x + dx - 5} {y + dy - 5} {x + dx + 7} {y + dy - 7}", width=1.5)


def _stool(ink: Ink, a: Around) -> None:
    """A low round stone to sit on."""
    x, y = a.joints.extra.get("hip", (0.0, -12.0))
    ink.draw(
        f"M {x - 15} 2 Q {x - 18} {y + 6} {x - 8} {y + 5} L {x + 8} {y + 5} Q {x + 18} {y + 7} {x + 15} 2 Z",
        fill="stone",
    )


def _chair(ink: Ink, a: Around) -> None:
    """A chair with a back to sit on, as high as the hips are."""
    x, y = a.joints.extra.get("hip", (0.0, -20.0))
    seat = y + 11
    for dx in (-15, 9):
        ink.draw(f"M {x + dx} {seat} L {x + dx + 5} {seat} L {x + dx + 5} 0 L {x + dx} 0 Z", fill="brown")
    ink.draw(f"M {x - 19} {seat - 37} L {x - 13} {seat - 37} L {x - 12} {seat} L {x - 18} {seat} Z", fill="brown")
    ink.draw(f"M {x - 18} {seat - 2} L {x + 17} {seat - 2} L {x + 17} {seat + 4} L {x - 18} {seat + 4} Z", fill="tan")


def _snore(ink: Ink, a: Around) -> None:
    """The Z of a sleeper, thrice and ever larger."""
    x, y, r = a.joints.head
    side = -1 if ink.matrix[0] < 0 else 1  # a letter is not mirrored with its sleeper
    for dx, dy, size in ((0.5, -1.3, 4.0), (1.0, -1.85, 5.5), (1.6, -2.5, 7.5)):
        cx, cy = x + dx * r, y + dy * r
        across = side * size
        points = [
            (cx - across, cy - size),
            (cx + across, cy - size),
            (cx - across, cy + size),
            (cx + across, cy + size),
        ]
        ink.line(points, width=1.9)


def _pillow(ink: Ink, a: Around) -> None:
    x0, _, x1, _ = a.body
    ink.blob([(x0 - 6, 1), (x0 - 2, -8), (x0 + 16, -10), (x1 - 12, -6), (x1 + 6, -4), (x1 + 8, 2)], fill="leaf")
    hx, _, r = a.joints.head
    ink.blob(
        [(hx - r * 1.3, 0), (hx - r * 1.25, -r * 0.55), (hx, -r * 0.7), (hx + r * 1.1, -r * 0.5), (hx + r * 1.2, 0)],
        fill="white",
    )


def _halo(ink: Ink, a: Around) -> None:
    """A small soul with a ring that leaves a body."""
    x, y = a.centre
    y = a.body[1] - 14
    ink.draw(
        f"M {x - 9} {y + 8} Q {x - 11} {y - 14} {x} {y - 14} Q {x + 11} {y - 14} {x + 9} {y + 4}"
        f" Q {x + 6} {y + 1} {x + 3} {y + 6} Q {x} {y + 12} {x - 2} {y + 17} Q {x - 2} {y + 8} {x - 9} {y + 8} Z",
        fill="#e6ecf5",
        width=0.9,
    )
    for dx in (-3.5, 3.5):
        ink.ellipse(x + dx, y - 4, 1.3, 2, fill="black", width=0)
    ink.ellipse(x, y - 20, 9, 3, stroke="golden", width=1.4)


def _twirl(ink: Ink, a: Around) -> None:
    """Arcs at both sides of a body that turns on its feet."""
    x0, y0, x1, y1 = a.body
    middle, tall = (y0 + y1) / 2, (y1 - y0) * 0.16
    for side, x in ((-1, x0 - 6), (1, x1 + 6)):
        for k in (0, 6):
            ink.draw(
                f"M {x + side * k:.1f} {middle - tall:.1f} Q {x + side * (k + 6):.1f} {middle:.1f}"
                f" {x + side * k:.1f} {middle + tall:.1f}",
                width=1.4,
            )


def _saddle(ink: Ink, a: Around) -> None:
    """A saddle with its blanket, whatever it lies on."""
    x, y = a.joints.extra.get("hip", (0.0, -24.0))
    ink.draw(
        f"M {x - 19} {y + 6} L {x + 21} {y + 6} L {x + 17} {y + 25} Q {x} {y + 31} {x - 16} {y + 25} Z", fill="red"
    )
    ink.draw(f"M {x - 13} {y + 23} Q {x} {y + 28} {x + 14} {y + 23}", stroke="golden", width=1.4)
    ink.draw(
        f"M {x - 22} {y - 3} Q {x - 17} {y + 5} {x} {y + 5}"
        f" Q {x + 17} {y + 5} {x + 20} {y - 9} Q {x + 29} {y + 6} {x + 18} {y + 12}"
        f" Q {x} {y + 15} {x - 18} {y + 12} Q {x - 27} {y + 8} {x - 22} {y - 3} Z",
        fill="brown",
    )


def _reins(ink: Ink, a: Around) -> None:
    """Two loose straps that run forward from the hands."""
    x, y = a.joints.hand
    for dip in (6, 12):
        ink.draw(f"M {x} {y} Q {x + 14} {y + dip} {x + 30} {y - 2}", stroke="#7a4f35", width=1.4)


MOTION: Mapping[str, tuple[bool, Emanation]] = {
    "steps": (True, _steps), "speed": (True, _speed), "puffs": (True, _puffs), "dust": (False, _dust),
    "wagging": (True, _wagging),
    "shadow": (True, _shadow), "spring": (True, _spring), "wind": (True, _wind), "water": (False, _water),
    "pole": (True, _pole), "plunge": (True, _plunge), "stool": (True, _stool), "chair": (True, _chair),
    "snore": (False, _snore),
    "pillow": (True, _pillow), "halo": (False, _halo), "twirl": (True, _twirl), "saddle": (True, _saddle),
    "reins": (False, _reins),
}  # fmt: skip
"""Signs of motion and rest by name, each with whether it lies behind the figure."""
