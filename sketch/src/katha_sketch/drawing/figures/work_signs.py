"""Signs of work, struggle and food: crumbs, clods, chips, steam, impacts, nets and cut ropes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.rig import Around, Emanation
from katha_sketch.drawing.figures.signs import drop

__all__ = ["WORK"]


def _crumbs(ink: Ink, a: Around) -> None:
    x, y = a.joints.mouth
    for dx, dy, size in ((10, 12, 1.8), (17, 6, 1.5), (14, 22, 1.6), (22, 18, 1.9), (6, 24, 1.4), (25, 30, 1.4)):
        ink.ellipse(x + dx, y + dy, size, fill="#e8924a", width=0.5)
    for dx, dy in ((20, -8), (24, 0)):
        ink.draw(f"M {x + dx} {y + dy - 4} Q {x + dx + 5} {y + dy} {x + dx} {y + dy + 4}", width=0.9)


def _gulps(ink: Ink, a: Around) -> None:
    """Arcs of swallowing in front of the throat; drops there would be tears."""
    x, y = a.joints.mouth
    for dx, dy, size in ((8, 11, 4.0), (7, 18, 5.0), (6, 25, 6.0)):
        ink.draw(f"M {x + dx - size} {y + dy} Q {x + dx} {y + dy + size} {x + dx + size} {y + dy}", width=1.2)


def _effort(ink: Ink, a: Around) -> None:
    """Short strokes of strain behind a head that works hard."""
    x, y, r = a.joints.head
    for degrees in (200, 228, 256):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(x + 1.3 * r * c, y + 1.3 * r * s), (x + 1.62 * r * c, y + 1.62 * r * s)], width=1.3)


def _sweat(ink: Ink, a: Around) -> None:
    """Drops of sweat around a head."""
    x, y, r = a.joints.head
    for dx, dy, angle in ((-1.35, -0.95, -45), (-1.75, -0.45, -65), (-0.9, -1.5, -25)):
        drop(ink, x + dx * r, y + dy * r, 5, angle)


def _grab(ink: Ink, a: Around) -> None:
    """Strokes of speed before hands that close on something."""
    x, y = a.joints.hand
    for dy, reach in ((-9, 36), (0, 42), (9, 34)):
        ink.line([(x + 22, y + dy), (x + reach, y + dy * 1.5)], width=1.2)


def _grains(ink: Ink, a: Around) -> None:
    """Grains that fall in an arc from a hand that strews them."""
    x, y = max(a.joints.hand, a.joints.hand_far or a.joints.hand)
    for dx, dy in ((6, 4), (12, 2), (17, 9), (23, 7), (20, 17), (28, 16), (26, 26), (33, 28), (30, 37), (36, 40)):
        ink.ellipse(x + dx, y + dy, 1.8, fill="golden", width=0.7)


def _turned(ink: Ink, a: Around) -> None:
    """Two arcs with heads around what the hands turn over."""
    (x, y), far = a.joints.hand, a.joints.hand_far or a.joints.hand
    x, y = max(x, far[0]) + 8, (y + far[1]) / 2
    for side in (-1, 1):
        pen = ink.at(x, y, sx=side, sy=side)
        pen.draw("M -15 -19 Q 2 -31 18 -18", width=1.6)
        pen.draw("M 18 -26 L 19 -17 L 9 -18", width=1.6)


def _waved(ink: Ink, a: Around) -> None:
    """Arcs at both sides of a raised hand that waves something."""
    x, y = max(a.joints.hand, a.joints.hand_far or a.joints.hand)
    for dx, bulge in ((-13, -6), (34, 6)):
        for k in (0, 6):
            at = x + dx + (k if bulge > 0 else -k)
            ink.draw(f"M {at} {y - 22} Q {at + bulge} {y - 12} {at} {y - 2}", width=1.3)


def _cord(ink: Ink, a: Around) -> None:
    """A cord with a bow between hands that tie it."""
    (x, y), far = a.joints.hand, a.joints.hand_far or a.joints.hand
    x, y = max(x, far[0]) + 5, (y + far[1]) / 2
    loops = (
        f"M {x} {y} Q {x - 7} {y - 12} {x - 12} {y - 5} Q {x - 11} {y + 2} {x} {y}"
        f" Q {x + 7} {y - 12} {x + 12} {y - 5} Q {x + 11} {y + 2} {x} {y}"
    )
    ends = f"M {x} {y} Q {x - 5} {y + 8} {x - 3} {y + 18} M {x} {y} Q {x + 7} {y + 7} {x + 6} {y + 17}"
    for path in (loops, ends):
        ink.draw(path, width=3.4)
        ink.draw(path, stroke="tan", width=1.9)
    ink.ellipse(x, y, 2.8, fill="tan", width=0.8)


def _balls(ink: Ink, a: Around) -> None:
    """Balls in an arc over the head of who juggles."""
    x, y, r = a.joints.head
    for dx, dy, fill in ((-1.25, -0.75, "red"), (-0.65, -1.75, "golden"), (0.5, -1.95, "blue"), (1.3, -1.0, "leaf")):
        ink.ellipse(x + dx * r, y + dy * r, 6.0, fill=fill)


def _wetted(ink: Ink, a: Around) -> None:
    """Drops that fly off a body on all sides."""
    x0, y0, x1, y1 = a.body
    cx, cy = (x0 + x1) / 2, (y0 + y1) / 2
    for degrees in (160, 185, 215, 245, 295, 325, 355, 20):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        rx, ry = (x1 - x0) / 2 + 9, (y1 - y0) / 2 + 8
        drop(ink, cx + rx * c, cy + ry * s, 4, degrees + 270)


def _swing(ink: Ink, a: Around) -> None:
    x, y = a.joints.hand
    ink.draw(f"M {x - 34} {y + 2} Q {x - 26} {y - 22} {x - 4} {y - 14}", width=1.1)
    ink.draw(f"M {x - 28} {y + 8} Q {x - 20} {y - 10} {x - 6} {y - 6}", width=0.9)


def _impact(ink: Ink, a: Around) -> None:
    """A many-pointed flash where the fist lands."""
    x, y = a.joints.hand
    points = []
    for k in range(16):
        reach = 18 if k % 2 == 0 else 9
        angle = math.pi * 2 * k / 16
        points.append((math.cos(angle) * reach, math.sin(angle) * reach))
    pen = ink.at(x + 14, y)
    pen.polygon(points, fill="#f6a93b")
    pen.polygon([(u * 0.5, v * 0.5) for u, v in points], fill="yellow", width=0)


def _fangs(ink: Ink, a: Around) -> None:
    """A flash where the teeth close."""
    x, y = a.joints.mouth
    points = [
        (math.cos(math.pi * k / 6) * (12 if k % 2 == 0 else 6), math.sin(math.pi * k / 6) * (12 if k % 2 == 0 else 6))
        for k in range(12)
    ]
    ink.at(x + 16, y).polygon(points, fill="yellow", width=0.9)


def _bush(ink: Ink, a: Around) -> None:
    """Leaves in front of the lower body."""
    x0, y0, x1, _ = a.body
    top = y0 * 0.5
    wide = (x1 - x0) / 2 + 12
    cx = (x0 + x1) / 2
    points = [
        (-1, 0.02),
        (-1.02, -0.45),
        (-0.75, -0.95),
        (-0.42, -0.8),
        (-0.1, -1.15),
        (0.25, -0.85),
        (0.6, -1.1),
        (0.95, -0.6),
        (1.04, 0.02),
    ]
    ink.blob([(cx + u * wide, -v * top) for u, v in points], fill="#6f9f63")
    for u, v in ((-0.6, -0.4), (-0.1, -0.65), (0.45, -0.4), (-0.25, -0.2), (0.7, -0.7)):
        px, py = cx + u * wide, -v * top
        ink.draw(f"M {px - 5:.1f} {py:.1f} Q {px:.1f} {py - 6:.1f} {px + 5:.1f} {py:.1f}", stroke="#47764f", width=1)


def _clods(ink: Ink, a: Around) -> None:
    """Earth thrown up behind the digger."""
    x, y = a.joints.hand
    for dx, dy, size in ((-24, -12, 4.5), (-34, 4, 3.5), (18, -16, 4), (28, -4, 3.2), (10, -26, 3), (24, -24, 2.6)):
        ink.blob(
            [
                (x + dx - size, y + dy),
                (x + dx, y + dy - size),
                (x + dx + size * 1.1, y + dy),
                (x + dx, y + dy + size * 0.8),
            ],
            fill="dark_brown",
            width=0.8,
        )


def _hole(ink: Ink, a: Around) -> None:
    x = a.joints.hand[0] + 10
    ink.ellipse(x, 1, 18, 4.5, fill="#4b352a", width=0.9)
    ink.draw(f"M {x + 14} 1 Q {x + 22} -17 {x + 36} 2 Z", fill="dark_brown")


def _log(ink: Ink, a: Around) -> None:
    """A log on its end, half split."""
    x = a.body[2] + 8
    ink.draw(f"M {x - 12} -22 L {x - 12} 1 Q {x} 5 {x + 12} 1 L {x + 12} -22 Z", fill="brown")
    ink.ellipse(x, -22, 12, 4, fill="tan", width=0.9)
    ink.line([(x, -25), (x - 1, -8)], width=1.2)


def _chips(ink: Ink, a: Around) -> None:
    x = a.body[2] + 8
    for dx, dy, angle in ((-14, -34, 20), (14, -36, -30), (22, -26, 50), (0, -42, 5), (-22, -24, 70)):
        ink.at(x + dx, dy, angle).polygon([(-3.6, -1.8), (3.4, -2.4), (2.2, 2.4)], fill="sand", width=0.7)


def _steam(ink: Ink, a: Around) -> None:
    for x, y in ((31, -32), (40, -36), (49, -32)):
        ink.draw(
            f"M {x} {y} Q {x - 6} {y - 7} {x} {y - 13} Q {x + 6} {y - 19} {x} {y - 26}", stroke="#9aa3ab", width=1.5
        )


def _net(ink: Ink, a: Around) -> None:
    """A net over the whole body, tied at the top."""
    x0, y0, x1, _ = a.body
    x0, x1, y0 = x0 - 5, x1 + 5, y0 - 8
    cx, wide, high = (x0 + x1) / 2, (x1 - x0) / 2, -y0
    ink.draw(f"M {x0} 2 Q {x0 - 2} {y0} {cx} {y0} Q {x1 + 2} {y0} {x1} 2 Z", stroke="#7a4f35", width=1.7)
    for share in (-0.62, -0.2, 0.2, 0.62):
        ink.draw(
            f"M {cx + share * wide:.1f} 2"
            f" Q {cx + share * wide * 1.25:.1f} {-high * 0.65:.1f} {cx + share * 6:.1f} {y0:.1f}",
            stroke="#7a4f35",
            width=1.3,
        )
    for share in (0.2, 0.42, 0.64, 0.84):
        half = wide * math.sqrt(max(0.05, 1 - share**3))
        y = -high * share
        ink.draw(
            f"M {cx - half:.1f} {y:.1f} Q {cx:.1f} {y + 7:.1f} {cx + half:.1f} {y:.1f}", stroke="#7a4f35", width=1.3
        )
    ink.draw(f"M {cx} {y0} L {cx} {y0 - 14}", stroke="#7a4f35", width=2)


def _ropes(ink: Ink, a: Around) -> None:
    """Rope wound around the body below the head."""
    x0, y0, x1, y1 = a.body
    hx, hy, r = a.joints.head
    top = min(hy + 1.15 * r, 0.4 * y0)
    middle, half = (x0 + x1 + hx) / 3, 0.2 * (x1 - x0) + 2
    for share in (0.15, 0.4, 0.65):
        y = top * (1 - share) + min(y1, 0.0) * share
        ink.limb([(middle - half, y - 1), (middle, y + 3.5), (middle + half, y - 2)], 4.4, "sand")
    ink.ellipse(middle + half * 0.4, top * 0.6, 4.6, 3.8, fill="sand")


def _wall(ink: Ink, a: Around) -> None:
    """The round wall of a well before the legs."""
    x0, _, x1, _ = a.body
    middle, half, high = (x0 + x1) / 2, 0.56 * (x1 - x0), _rim(a)
    ink.draw(
        f"M {middle - half} {-high} L {middle - half} -6 Q {middle} 8 {middle + half} -6 L {middle + half} {-high}"
        f" Q {middle} {-high + 12} {middle - half} {-high} Z",
        fill="stone",
    )
    for row in (0.34, 0.68):
        y = -high * (1 - row)
        ink.draw(f"M {middle - half} {y:.1f} Q {middle} {y + 12:.1f} {middle + half} {y:.1f}", width=0.7)
    for column, row in ((-0.5, 0.1), (0.1, 0.12), (0.62, 0.08), (-0.2, 0.46), (0.4, 0.44), (-0.55, 0.72), (0.1, 0.72)):
        x, y = middle + column * half, -high * (1 - row) + 4 * (1 - column * column)
        ink.line([(x, y), (x, y + 0.17 * high)], width=0.7)


def _pit(ink: Ink, a: Around) -> None:
    """The near edge of a pit, with grass, before the legs."""
    x0, _, x1, _ = a.body
    left, right, high = x0 - 12, x1 + 12, _rim(a)
    wide = right - left
    ink.draw(
        f"M {left} 2 Q {left - 2} {-high * 0.9} {left + 0.2 * wide} {-high} Q {left + 0.5 * wide} {-high * 0.7}"
        f" {right - 0.2 * wide} {-high} Q {right + 2} {-high * 0.9} {right} 2 Z",
        fill="brown",
    )
    for share in (0.1, 0.3, 0.5, 0.7, 0.88):
        x, y = left + share * wide, -high * (0.82 if share in (0.1, 0.88) else 0.92 - 0.2 * (share == 0.5))
        ink.polygon(
            [(x - 5, y + 5), (x - 3, y - 5), (x, y + 1), (x + 3, y - 6), (x + 5, y + 5)], fill="green", width=0.9
        )


def _rim(a: Around) -> float:
    """How high a wall or edge stands that hides the legs and leaves head and shoulders free."""
    _, hy, r = a.joints.head
    return max(8.0, min(0.42 * -a.body[1], -(hy + 1.25 * r)))


def _loosed(ink: Ink, a: Around) -> None:
    """Strokes of release around hands that cut a rope."""
    x, y = a.joints.hand
    for degrees in (-80, -45, -10):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(x + 10 * c + 8, y + 10 * s - 6), (x + 20 * c + 8, y + 20 * s - 6)], width=1.4)


def _droplets(ink: Ink, a: Around) -> None:
    x = a.joints.hand[0] + 6
    for dx in (-16, 16):
        drop(ink, x + dx, -20, 3.4)
    for dx in (-20, -26):
        ink.ellipse(x + dx, -2, 2.2, 1.5, fill="dark_brown", width=0.5)


def _stroke(ink: Ink, a: Around) -> None:
    """A line of chalk on the ground before a hand."""
    x = max(a.joints.hand[0], (a.joints.hand_far or a.joints.hand)[0])
    ink.draw(f"M {x - 6:.1f} 2 Q {x + 16:.1f} -2 {x + 44:.1f} 2", stroke="white", width=2.6)


def _knock(ink: Ink, a: Around) -> None:
    """Strokes around the foremost hand, which has struck something."""
    x, y = max(a.joints.hand, a.joints.hand_far or a.joints.hand)
    for degrees in (-150, -110, -70, -30):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        ink.line([(x + 4 + 9 * c, y + 9 * s), (x + 4 + 17 * c, y + 17 * s)], width=1.4)


def _shaken(ink: Ink, a: Around) -> None:
    """Arcs above and below what the hands shake."""
    (x, y), far = a.joints.hand, a.joints.hand_far or a.joints.hand
    x, y = max(x, far[0]) + 6, (y + far[1]) / 2
    for side in (-1, 1):
        for k in (20, 27):
            ink.draw(f"M {x - 10} {y + side * k} Q {x} {y + side * (k + 8)} {x + 10} {y + side * k}", width=1.4)


WORK: Mapping[str, tuple[bool, Emanation]] = {
    "crumbs": (False, _crumbs), "gulps": (False, _gulps), "effort": (False, _effort), "sweat": (False, _sweat),
    "turned": (False, _turned), "grains": (False, _grains),
    "balls": (False, _balls), "cord": (False, _cord),
    "waved": (False, _waved), "wetted": (False, _wetted), "grab": (False, _grab),
    "swing": (True, _swing), "impact": (False, _impact), "fangs": (False, _fangs), "bush": (False, _bush),
    "clods": (False, _clods), "hole": (True, _hole), "log": (True, _log), "chips": (False, _chips),
    "steam": (False, _steam), "net": (False, _net), "ropes": (False, _ropes), "wall": (False, _wall),
    "pit": (False, _pit), "loosed": (False, _loosed), "droplets": (False, _droplets),
    "knock": (False, _knock), "stroke": (True, _stroke), "shaken": (False, _shaken),
}  # fmt: skip
"""Signs of work and struggle by name, each with whether it lies behind the figure."""
