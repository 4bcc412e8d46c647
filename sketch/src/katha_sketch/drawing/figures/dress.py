"""Trunks and clothes of the upright rig (bare bellies, tunics, robes, saris, aprons, armour), and the scarves, caps and
crowns that attributes put on the joints of any rig."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.rig import Joints
from katha_sketch.drawing.style import darker, lighter

if TYPE_CHECKING:
    from katha_sketch.drawing.figures.upright import Skeleton

__all__ = ["DRESSES", "draw_dress"]

Dress = Callable[[Ink, Mapping[str, Any], "Skeleton"], None]
Circle = tuple[float, float, float]


def draw_dress(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    """Draw the trunk and what it wears (`wear`, bare by default)."""
    DRESSES[draw.get("wear", "bare")](ink, draw, bones)
    if draw.get("pattern") and draw.get("wear", "bare") != "bare":
        _pattern(_pen(ink, bones), draw, bones.girth * 1.25)


def _trunk(bones: Skeleton) -> list[Circle]:
    return [(*bones.shoulder, 9.8 * bones.girth), (*bones.hip, 13 * bones.girth)]


def _skirt(bones: Skeleton, length: float) -> list[Circle]:
    """Circles around the hips and both legs down to `length` (1 the knee, 2 the ankle)."""
    circles: list[Circle] = [(*bones.hip, 13 * bones.girth)]
    for leg in (bones.leg_near, bones.leg_far):
        start, end = (leg[0], leg[1]) if length <= 1 else (leg[1], leg[2])
        share = length if length <= 1 else length - 1
        circles.append((*leg[1], 7) if length > 1 else (*leg[0], 7))
        circles.append((*_between(start, end, share), 7))
    return circles


def _between(a: Point, b: Point, share: float) -> Point:
    return (a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share)


def _pen(ink: Ink, bones: Skeleton) -> Ink:
    """A pen at the hip along the trunk: (0, 0) the hip, (0, -26) the shoulder, x forward."""
    return ink.at(*bones.hip, bones.angle)


def _bare(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    ink.bundle(_trunk(bones), fill=draw["coat"])
    pen, wide = _pen(ink, bones), bones.girth * 1.25
    striped = draw.get("pattern") == "stripes"
    if striped:
        _pattern(pen, draw, wide)
    pen.ellipse(1.4 * wide, -5, 5.8 * wide, 13, fill=draw.get("belly", lighter(draw["coat"], 0.5)), width=0)
    if not striped:
        _pattern(pen, draw, wide)


def _pattern(pen: Ink, draw: Mapping[str, Any], wide: float) -> None:
    marks = draw.get("marks", darker(draw["coat"], 0.5))
    if draw.get("pattern") == "stripes":
        for y in (-21, -14, -7, 0, 6):
            pen.draw(
                f"M {-9.6 * wide:.1f} {y} Q 0 {y + 5} {9.6 * wide:.1f} {y}",
                stroke=marks,
                width=1.3,
            )
    if draw.get("pattern") in ("spots", "patches"):
        size = 2.1 if draw["pattern"] == "spots" else 4.4
        spots = (
            [(-2.5, -20), (5, -18), (7.5, -8), (-1, -10), (3.5, -1), (-4, 1), (8, 4)]
            if size < 3
            else [(-4.5, -14), (6, 2)]
        )
        for x, y in spots:
            pen.ellipse(x * wide, y, size, size * 0.9, fill=marks, width=0)


def _tunic(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    ink.bundle(_skirt(bones, 0.75), fill=draw["dress"])
    ink.bundle(_trunk(bones), fill=draw["dress"])
    ink.bundle(
        [(*bones.hip, 11.6 * bones.girth), (*_between(bones.hip, bones.leg_near[1], 0.35), 5.5)],
        fill=draw["dress"],
        width=0,
    )
    _belt(ink, draw, bones)


def _belt(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    wide = bones.girth * 1.27
    if "sash" in draw:
        _pen(ink, bones).draw(
            f"M {-9.6 * wide:.1f} -6 Q 0 -3 {9.6 * wide:.1f} -6"
                f" L {9.9 * wide:.1f} -1.5 Q 0 1.5 {-9.9 * wide:.1f} -1.5 Z",
            fill=draw["sash"], width=0.8,
        )  # fmt: skip


def _robe(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    ink.bundle(_skirt(bones, 1.75), fill=draw["dress"])
    ink.bundle(_trunk(bones), fill=draw["dress"])
    ink.bundle([(*bones.hip, 11.6 * bones.girth), (*bones.leg_near[1], 5)], fill=draw["dress"], width=0)
    if "hem" in draw:
        ends = [_between(leg[1], leg[2], 0.72) for leg in (bones.leg_near, bones.leg_far)]
        ink.bundle([(x, y + 1.5, 4.2) for x, y in ends], fill=draw["hem"], width=0.8)
    _belt(ink, draw, bones)


def _sari(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    _robe(ink, draw, bones)
    _pen(ink, bones).at(sx=1.2, sy=1).draw(
        "M -6 -30 Q 3 -17 10 -2 L 5 1 Q -4 -14 -9 -25 Z", fill=draw.get("sash", "golden"), width=0.8
    )


def _dhoti(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    ink.bundle(_trunk(bones), fill=draw["coat"])
    circles = [(*bones.leg_near[0], 8.5), (*bones.leg_far[0], 8.5)]
    ink.bundle(
        [*circles, (*bones.leg_far[1], 7), (*_between(*bones.leg_far[1:], 0.4), 5)], fill=darker(draw["dress"], 0.1)
    )
    ink.bundle([*circles, (*bones.leg_near[1], 7), (*_between(*bones.leg_near[1:], 0.4), 5)], fill=draw["dress"])
    if "sash" in draw:
        _pen(ink, bones).at(sx=1.2, sy=1).draw(
            "M -7 -28 Q 2 -20 9 -6 L 5 -3 Q -4 -14 -9 -24 Z", fill=draw["sash"], width=0.8
        )


def _armour(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    ink.bundle(_skirt(bones, 0.8), fill=draw["dress"])
    ink.bundle(_trunk(bones), fill="grey")
    pen = _pen(ink, bones).at(sx=1.27, sy=1)
    for y in (-20, -13, -6):
        pen.draw(f"M -8.5 {y} Q 0 {y + 4} 8.5 {y}", width=0.7)
    pen.draw("M -10 -2 Q 0 1 10 -2", stroke=draw.get("sash", "brown"), width=1.8)


def _apron(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    _robe(ink, draw, bones)
    _pen(ink, bones).at(sx=1.2, sy=1).draw(
        "M -4 -19 L 8 -19 L 11 8 Q 4 12 -3 8 Z", fill=draw.get("sash", "cream"), width=0.8
    )


def _wool(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    """A fleece: a scalloped oval around the trunk."""
    pen = _pen(ink, bones)
    points = []
    for k in range(22):
        reach = 1.12 if k % 2 == 0 else 0.94
        points.append((math.cos(math.pi * k / 11) * 16.5 * reach, -12 + math.sin(math.pi * k / 11) * 21 * reach))
    pen.blob(points, fill=draw.get("mane", "white"))


def _vest(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    """A shirt with an open waistcoat over trousers."""
    for leg in (bones.leg_far, bones.leg_near):
        ink.limb(leg, 9.5, draw.get("trousers", "brown"))
    ink.bundle(_trunk(bones), fill=draw.get("shirt", "cream"))
    pen, wide = _pen(ink, bones), bones.girth * 1.25
    pen.draw(
        f"M {-6 * wide:.1f} -30 L {0.5 * wide:.1f} -31 Q {2.5 * wide:.1f} -12 {-0.5 * wide:.1f} 3"
        f" Q {-7 * wide:.1f} 5 {-9.8 * wide:.1f} 1 Q -10 -14 {-6 * wide:.1f} -30 Z",
        fill=draw["dress"],
        width=0.8,
    )
    _belt(ink, draw, bones)


def _shirt(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    """A shirt over trousers."""
    legs = [(*bones.leg_near[0], 7.5 * bones.girth), (*bones.leg_far[0], 7.5 * bones.girth)]
    ink.bundle([(*bones.hip, 12.6 * bones.girth), *legs], fill=draw.get("trousers", "navy"))
    low = _between(bones.hip, bones.shoulder, 0.2)
    ink.bundle([(*bones.shoulder, 9.8 * bones.girth), (*low, 12.2 * bones.girth)], fill=draw["dress"])
    _belt(ink, draw, bones)


def _frock(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    """A dress to the knee."""
    ink.bundle(_skirt(bones, 0.95), fill=draw["dress"])
    ink.bundle(_trunk(bones), fill=draw["dress"])
    ink.bundle([(*bones.hip, 11.4 * bones.girth)], fill=draw["dress"], width=0)
    _belt(ink, draw, bones)


def _coat(ink: Ink, draw: Mapping[str, Any], bones: Skeleton) -> None:
    """A coat to the knee, buttoned."""
    _frock(ink, draw, bones)
    pen = _pen(ink, bones)
    pen.draw("M 3 -28 Q 5 -10 4 12", width=0.9)
    for y in (-20, -11, -2):
        pen.ellipse(6.5, y, 1.1, fill="black", width=0)


DRESSES: Mapping[str, Dress] = {
    "bare": _bare, "tunic": _tunic, "robe": _robe, "sari": _sari, "dhoti": _dhoti, "armour": _armour, "apron": _apron,
    "vest": _vest, "wool": _wool, "shirt": _shirt, "frock": _frock, "coat": _coat,
}  # fmt: skip
"""Trunks by the names that `draw: wear` uses."""


def draw_accessories(ink: Ink, names: Iterable[str], joints: Joints) -> None:
    """Draw each named accessory with a pen in the rig's units."""
    for name in names:
        ACCESSORIES[name](ink, joints)


def draw_scarf(ink: Ink, joints: Joints, colour: str) -> None:
    """Draw a scarf around the neck."""
    x, y, width = joints.neck
    pen = ink.at(x, y, joints.tilt * 0.5, width / 2)
    pen.draw("M -0.9 0.2 Q -1.5 0.6 -1.9 1.5 L -1.2 1.75 Q -0.8 1 -0.4 0.6 Z", fill=colour)
    pen.draw(
        "M -1.05 -0.3 Q 0 0.25 1.05 -0.3 Q 1.3 0.1 1.05 0.45 Q 0 0.95 -1.05 0.45 Q -1.3 0.1 -1.05 -0.3 Z",
        fill=colour,
    )


def _scarf(colour: str) -> Callable[[Ink, Joints], None]:
    return lambda ink, joints: draw_scarf(ink, joints, colour)


def _cap(ink: Ink, joints: Joints) -> None:
    pen = _crown_pen(ink, joints)
    pen.draw("M -1 0.25 Q -0.95 -0.85 0.1 -0.85 Q 1 -0.75 1 0.2 Q 0 -0.05 -1 0.25 Z", fill="green")
    pen.draw("M 0.5 0.08 Q 1.2 -0.1 1.75 0.3 Q 1.2 0.4 0.7 0.3 Z", fill="dark_green")


def _hat(ink: Ink, joints: Joints) -> None:
    pen = _crown_pen(ink, joints)
    pen.draw("M -0.75 0 Q -0.7 -1 0 -1 Q 0.7 -1 0.75 0 Z", fill="yellow")
    pen.draw("M -0.76 -0.25 Q 0 0.05 0.76 -0.25 L 0.78 0.1 L -0.78 0.1 Z", fill="red", width=0.7)
    pen.draw("M -1.6 0.2 Q 0 -0.35 1.6 0.2 Q 0 0.7 -1.6 0.2 Z", fill="yellow")


def _crown(ink: Ink, joints: Joints) -> None:
    _crown_pen(ink, joints).draw(
        "M -0.72 0.2 L -0.85 -0.75 L -0.38 -0.3 L 0 -0.95 L 0.38 -0.3 L 0.85 -0.75 L 0.72 0.2 Q 0 0.4 -0.72 0.2 Z",
        fill="golden",
    )


def _crown_pen(ink: Ink, joints: Joints) -> Ink:
    x, y, width = joints.crown
    return ink.at(x, y, joints.tilt, width / 2)


ACCESSORIES: Mapping[str, Callable[[Ink, Joints], None]] = {
    "red_scarf": _scarf("red"), "blue_scarf": _scarf("blue"), "green_cap": _cap, "yellow_hat": _hat, "crown": _crown,
}  # fmt: skip
"""Accessories by the names that the `wears:` data uses."""
