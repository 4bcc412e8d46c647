"""Signs of voice, mind and feeling towards others: bubbles, bursts, notes, gazes, hearts, tears."""

from __future__ import annotations

import math
from collections.abc import Mapping

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.rig import Around, Emanation
from katha_sketch.drawing.figures.signs import drop, heart
from katha_sketch.drawing.style import INK

__all__ = ["VOICE"]


def _ahead(a: Around, dx: float, dy: float) -> tuple[float, float]:
    """A point `dx` head radii in front of the head's rim and `dy` radii below its centre."""
    x, y, r = a.joints.head
    return (x + r * (1.0 + dx), y + r * dy)


def _speech(ink: Ink, a: Around) -> None:
    """A speech bubble with a squiggle for words."""
    _bubble(ink, _ahead(a, 1.15, -1.05), a.joints.mouth)


def _speech_over(ink: Ink, a: Around) -> None:
    """The same above the head of who is too near to whom they speak for it to hang between the two."""
    _bubble(ink, _ahead(a, -1.25, -2.3), _ahead(a, -0.9, -1.0))


def _bubble(ink: Ink, at: tuple[float, float], mouth: tuple[float, float]) -> None:
    (x, y), (mx, my) = at, mouth
    ink.draw(
        f"M {x - 10} {y + 6} L {(x - 10 + mx) / 2 + 4:.1f} {(y + my) / 2 + 2:.1f} L {x - 1} {y + 10}", fill="white"
    )
    ink.ellipse(x, y, 22, 15, fill="white")
    ink.polygon([(x - 10, y + 7), (x - 1, y + 10), (x - 2, y + 5)], fill="white", width=0)
    for dy, reach in ((-4.5, 12), (3.5, 9)):
        ink.draw(
            f"M {x - reach} {y + dy} Q {x - reach * 0.75} {y + dy - 4} {x - reach / 2} {y + dy}"
            f" Q {x - reach / 4} {y + dy + 4} {x} {y + dy} Q {x + reach / 4} {y + dy - 4} {x + reach / 2} {y + dy}"
            f" Q {x + reach * 0.75} {y + dy + 4} {x + reach} {y + dy}",
            width=0.9,
        )


def _blast(ink: Ink, a: Around) -> None:
    """A jagged burst that widens from the mouth."""
    mx, my = a.joints.mouth
    points = [
        (9.0, -3.0),
        (26, -22),
        (27, -11),
        (42, -17),
        (37, -5),
        (50, 0),
        (37, 5),
        (42, 17),
        (27, 11),
        (26, 22),
        (9, 4),
    ]
    ink.at(mx + 3, my, -10).polygon(points, fill="yellow", stroke="#d8584f", width=1.4)


def _gust(ink: Ink, a: Around) -> None:
    """Streams of air from the mouth, each ending in a curl."""
    mx, my = a.joints.mouth
    for rise, reach, curl in ((-13, 34, -7), (0, 46, -7), (13, 36, 7)):
        x, y = mx + reach, my + rise
        ink.draw(
            f"M {mx + 10:.1f} {my + rise * 0.4:.1f} Q {mx + reach * 0.5:.1f} {y:.1f} {x:.1f} {y:.1f}"
            f" Q {x + 8:.1f} {y:.1f} {x + 7:.1f} {y + curl:.1f}"
            f" Q {x + 3:.1f} {y + 1.5 * curl:.1f} {x + 1:.1f} {y + 0.7 * curl:.1f}",
            stroke="#5f9ec2",
            width=1.5,
        )


def _spray(ink: Ink, a: Around) -> None:
    """Drops that fly from a mouth, with strokes of their speed."""
    mx, my = a.joints.mouth
    for degrees, reach in ((-32, 34), (-12, 44), (8, 36), (26, 46), (44, 32)):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(mx + 11 * c, my + 11 * s), (mx + 22 * c, my + 22 * s)], width=1.2)
        drop(ink, mx + reach * c, my + reach * s, 3.2, degrees + 270)


def _breath(ink: Ink, a: Around) -> None:
    """A small cloud of breath before the mouth."""
    mx, my = a.joints.mouth
    for dx, dy, size in ((13, 2, 3.2), (25, 5, 6.4)):
        ink.at(mx + dx, my + dy, sx=size).draw(
            "M -1 0.5 Q -1.5 -0.2 -0.8 -0.5 Q -0.5 -1.2 0.2 -0.8 Q 1 -1 1 -0.3 Q 1.6 0.1 1 0.5 Q 0 1.1 -1 0.5 Z",
            fill="white",
            width=0.9,
        )


def _notes(ink: Ink, a: Around) -> None:
    x, y = _ahead(a, 0.55, -0.7)
    for dx, dy, size, lean in ((0, 4, 1.0, -8), (17, -12, 1.2, 8), (30, 6, 0.95, 14)):
        pen = ink.at(x + dx, y + dy, lean, size)
        pen.line([(4, 0), (4, -17)], width=1.3)
        pen.draw("M 4 -17 Q 11 -15 11 -8 Q 9 -12 4 -12 Z", fill=INK, width=0.5)
        pen.ellipse(0.5, 0.5, 4.2, 3.2, fill=INK, width=0.5, angle=-18)


def _laughter(ink: Ink, a: Around) -> None:
    """Short arcs at both shoulders, which shake with laughter."""
    x, y, r = a.joints.head
    for side in (-1, 1):
        for k, tall in ((1.2, 0.3), (1.42, 0.22)):
            cx = x + side * r * k
            ink.draw(
                f"M {cx:.1f} {y + r * (0.75 - tall):.1f} Q {cx + side * 4:.1f} {y + r * 0.75:.1f}"
                f" {cx:.1f} {y + r * (0.75 + tall):.1f}",
                width=1.4,
            )


def _fountain(ink: Ink, a: Around) -> None:
    """Two arcs of tears that spring from the eyes."""
    x, y, r = a.joints.head
    for side in (-1, 1):
        sx = x + side * r * 0.55
        d = (
            f"M {sx:.1f} {y - r * 0.1:.1f}"
            f" Q {x + side * r * 1.3:.1f} {y - r * 1.3:.1f} {x + side * r * 1.7:.1f} {y + r * 0.9:.1f}"
        )
        ink.draw(d, width=3.2)
        ink.draw(d, stroke="#74b9e8", width=1.9)
        drop(ink, x + side * r * 1.75, y + r * 1.35, 5)
        drop(ink, x + side * r * 1.4, y + r * 1.7, 3.6)


def _puddle(ink: Ink, a: Around) -> None:
    ink.ellipse(a.centre[0], 0, 34, 5, fill="#74b9e8", width=0.8)


def _thought(ink: Ink, a: Around) -> None:
    """A cloud of thought, with a lamp of light in it and bubbles that lead to the head."""
    x, y, r = a.joints.head
    for k, size in ((1.15, 2.4), (1.5, 3.6)):
        ink.ellipse(x + r * k * 0.62, y - r * k * 0.9, size, fill="white", width=0.9)
    cx, cy = x + r * 1.5, y - r * 2.3
    ink.at(cx, cy, sx=1.1).draw(
        "M -17 9 Q -27 7 -23 -3 Q -24 -13 -13 -12 Q -8 -20 2 -15"
        " Q 11 -20 17 -11 Q 27 -9 23 1 Q 25 10 14 10 Q 8 15 1 10 Q -8 16 -17 9 Z",
        fill="white",
    )
    for dx in (-10, 0, 10):
        ink.ellipse(cx + dx, cy - 1, 2.6, fill="#6d6878", width=0)


def _gaze(ink: Ink, a: Around) -> None:
    """Dashed lines of sight that open from the eyes."""
    x, y = _ahead(a, 0.3, -0.1)
    for dy in (-7, 7):
        ink.line([(x, y + dy * 0.4), (x + 26, y + dy * 1.5)], width=1.1, dash="4 5")


def _arrow(ink: Ink, a: Around) -> None:
    """Dashes that carry on where a finger points."""
    x, y = max(a.joints.hand, a.joints.hand_far or a.joints.hand)
    sx, sy = a.joints.extra.get("shoulder", a.centre)
    long = max(math.hypot(x - sx, y - sy), 1.0)
    c, s = (x - sx) / long, (y - sy) / long
    for near, far in ((19, 25), (30, 36)):
        ink.line([(x + near * c, y + near * s), (x + far * c, y + far * s)], width=1.4)


def _humble(ink: Ink, a: Around) -> None:
    """The arc that a bowing head has described."""
    x, y, r = a.joints.head
    for k in (1.3, 1.65):
        ink.draw(
            f"M {x - r * 0.5 * k:.1f} {y - r * k * 0.95:.1f}"
            f" Q {x + r * 0.65 * k:.1f} {y - r * k:.1f} {x + r * k:.1f} {y - r * 0.1:.1f}",
            width=1,
        )


def _clap(ink: Ink, a: Around) -> None:
    """Strokes around hands that have come together."""
    x, y = a.joints.hand
    for degrees in (-100, -65, -30, 5, 40):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(x + 11 * c, y + 11 * s), (x + 19 * c, y + 19 * s)], width=1.4)


def _love(ink: Ink, a: Around) -> None:
    x, y, r = a.joints.head
    for dx, dy, size, lean in ((0.75, -1.35, 7.5, 10), (-0.5, -1.6, 5.5, -12), (1.5, -0.75, 5, 18)):
        heart(ink, x + dx * r, y + dy * r, size, lean)


def _heard(ink: Ink, a: Around) -> None:
    """Waves of sound that come to an ear."""
    x, y = _ahead(a, 0.35, 0.1)
    for k, tall in ((0, 6), (8, 9), (16, 12)):
        ink.draw(f"M {x + k:.1f} {y - tall:.1f} Q {x + k - 7:.1f} {y:.1f} {x + k:.1f} {y + tall:.1f}", width=1.4)


def _headshake(ink: Ink, a: Around) -> None:
    """Arcs to both sides of a head that says no."""
    cx, cy, r = a.joints.head
    for side in (-1, 1):
        for nth in range(2):
            x, tall = cx + side * r * (1.2 + 0.22 * nth), r * (0.42 + 0.16 * nth)
            bulge = x + side * 0.3 * r
            ink.draw(f"M {x:.1f} {cy - tall:.1f} Q {bulge:.1f} {cy:.1f} {x:.1f} {cy + tall:.1f}", width=1.6)


def _nodding(ink: Ink, a: Around) -> None:
    """Arcs above and below a head that says yes."""
    cx, cy, r = a.joints.head
    for nth in range(2):
        y, wide = cy - r * (1.3 + 0.2 * nth), r * (0.36 + 0.14 * nth)
        ink.draw(f"M {cx - wide:.1f} {y:.1f} Q {cx:.1f} {y - 0.26 * r:.1f} {cx + wide:.1f} {y:.1f}", width=1.6)
    x, y = cx + 1.3 * r, cy
    ink.draw(f"M {x:.1f} {y - 0.6 * r:.1f} Q {x + 0.3 * r:.1f} {y:.1f} {x:.1f} {y + 0.6 * r:.1f}", width=1.6)
    ink.draw(f"M {x - 3:.1f} {y + 0.6 * r - 5:.1f} L {x:.1f} {y + 0.6 * r:.1f} L {x + 5:.1f} {y + 0.6 * r - 4:.1f}",
             width=1.6)  # fmt: skip


def _tear(ink: Ink, a: Around) -> None:
    """A last tear under each eye."""
    cx, cy, r = a.joints.head
    for dx, dy in ((-0.1, 0.5), (0.62, 0.56)):
        drop(ink, cx + dx * r, cy + dy * r, 0.14 * r)


def _numbers(ink: Ink, a: Around) -> None:
    """One, two and three in an arc over the head of who counts."""
    x, y, r = a.joints.head
    digits = (
        "M -3 -5 L 1 -9 L 1 7",
        "M -5 -5 Q -4 -10 1 -9 Q 6 -7 3 -2 L -5 7 L 6 7",
        "M -5 -7 Q 1 -12 4 -6 Q 4 -2 -1 -1 Q 6 0 4 5 Q 0 10 -5 5",
    )
    for dx, dy, path in zip((0.2, 1.15, 1.95), (-1.75, -1.5, -0.9), digits, strict=True):
        ink.at(x + dx * r, y + dy * r, sx=1.25, sy=1.25).draw(path, width=2.4)


VOICE: Mapping[str, tuple[bool, Emanation]] = {
    "speech": (False, _speech), "speech_over": (False, _speech_over), "blast": (False, _blast),
    "notes": (False, _notes), "ha": (False, _laughter),
    "fountain": (False, _fountain), "puddle": (True, _puddle), "thought": (False, _thought), "gaze": (False, _gaze),
    "arrow": (False, _arrow), "humble": (False, _humble), "clap": (False, _clap), "love": (False, _love),
    "headshake": (False, _headshake), "nodding": (False, _nodding), "tear": (False, _tear),
    "gust": (False, _gust), "spray": (False, _spray), "breath": (False, _breath),
    "heard": (False, _heard), "numbers": (False, _numbers),
}  # fmt: skip
"""Signs of voice and mind by name, each with whether it lies behind the figure."""
