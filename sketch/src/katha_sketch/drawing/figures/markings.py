"""Markings of a mammal's head (stripes, cheeks, masks, blazes), in the unit circle of the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.style import INK, darker, lighter

__all__ = ["DETAILS", "HOLDS", "MARKINGS"]

Part = Callable[[Ink, Mapping[str, Any]], None]


def _light(draw: Mapping[str, Any]) -> str:
    return str(draw.get("belly", lighter(draw["coat"], 0.5)))


def _tiger(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.97 0.2 Q -0.3 0.15 0.1 0.5 Q 0.6 0.15 0.97 0.15 Q 0.85 0.95 0 0.95 Q -0.85 0.95 -0.97 0.2 Z",
        fill=_light(draw),
        width=0,
    )
    marks = draw.get("marks", "#3a3338")
    for d in (
        "M 0.1 -0.95 Q 0.18 -0.7 0.12 -0.5 Q 0.02 -0.7 0.1 -0.95 Z", "M -0.3 -0.92 Q -0.15 -0.72 -0.15 -0.55"
            " Q -0.32 -0.68 -0.3 -0.92 Z",
        "M 0.48 -0.86 Q 0.42 -0.7 0.36 -0.55"
            " Q 0.36 -0.72 0.48 -0.86 Z", "M -0.98 -0.1 Q -0.78 -0.12 -0.62 0.0 Q -0.8 0.05 -0.98 -0.1 Z",
        "M -0.98 0.22 Q -0.75 0.15 -0.58 0.25"
            " Q -0.76 0.34 -0.98 0.22 Z", "M -0.9 0.5 Q -0.7 0.4 -0.52 0.48 Q -0.68 0.58 -0.9 0.5 Z",
        "M 0.99 0.05 Q 0.88 0.06 0.8 0.12 Q 0.9 0.2 0.99 0.05 Z", "M 0.95 0.35 Q 0.84 0.34 0.76 0.4"
            " Q 0.84 0.48 0.95 0.35 Z",
    ):  # fmt: skip
        ink.draw(d, fill=marks, stroke=marks, width=0.7)
    ink.ellipse(0, 0, 1, 0.96)


def _cheeks(ink: Ink, draw: Mapping[str, Any]) -> None:
    """White cheeks that run into the muzzle (fox, squirrel)."""
    ink.draw(
        "M -0.98 0.1 Q -0.45 0.05 -0.1 0.5 Q 0.3 0.1 1 0.3 Q 0.8 0.96 0 0.96 Q -0.85 0.9 -0.98 0.1 Z",
        fill=_light(draw),
        width=0,
    )
    ink.draw("M -0.98 0.1 Q -0.9 0.9 0 0.96 Q 0.8 0.95 1 0.2")


def _mask(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A light face in a darker head (monkey): two eye rounds and a mouth."""
    light = _light(draw)
    for x in (-0.22, 0.44):
        ink.ellipse(x, -0.12, 0.47, 0.5, fill=light, width=0)
    ink.ellipse(0.14, 0.46, 0.74, 0.5, fill=light, width=0)


def _saddle(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A dark cap over brow and nose (jackal, wolf)."""
    fill = draw.get("marks", darker(draw["coat"], 0.4))
    ink.draw(
        "M -0.75 -0.62 Q 0.1 -1.25 0.8 -0.58 Q 0.45 -0.55 0.3 -0.2 L 0.42 0.18 L 0 0.1 Q -0.1 -0.5 -0.75 -0.62 Z",
        fill=fill,
        width=0,
    )


def _patch(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A patch around one eye (dog, cow)."""
    ink.ellipse(-0.36, -0.2, 0.46, 0.5, fill=draw.get("marks", darker(draw["coat"], 0.4)), width=0, angle=-14)


def _blaze(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M 0.02 -0.85 Q 0.3 -0.8 0.26 -0.3 Q 0.5 0.1 0.62 0.4 L 0.3 0.4 Q 0 -0.1 0.02 -0.85 Z",
        fill=draw.get("marks", "white"),
        width=0,
    )


def _tabby(ink: Ink, draw: Mapping[str, Any]) -> None:
    marks = draw.get("marks", darker(draw["coat"], 0.4))
    for x in (-0.2, 0.1, 0.4):
        ink.line([(x, -0.88), (x * 0.9 + 0.02, -0.6)], stroke=marks, width=1.3)
    for y in (0.2, 0.42):
        ink.line([(-0.92, y), (-0.66, y + 0.03)], stroke=marks, width=1.1)


def _band(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A dark stripe through the eyes (mongoose)."""
    ink.draw(
        "M -0.95 -0.25 Q 0.1 -0.5 0.92 -0.25 Q 0.9 0.12 0.5 0.18 Q 0.1 -0.02 -0.5 0.16 Q -0.98 0.15 -0.95 -0.25 Z",
        fill=draw.get("marks", darker(draw["coat"], 0.4)),
        width=0,
    )


def _tuft(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A forelock (sheep, donkey, bull)."""
    fill = draw.get("mane", darker(draw["coat"], 0.4))
    ink.blob(
        [
            (-0.5, -0.75),
            (-0.3, -1.15),
            (0.05, -1.05),
            (0.35, -1.2),
            (0.6, -0.75),
            (0.35, -0.5),
            (0.1, -0.6),
            (-0.2, -0.48),
        ],
        fill=fill,
    )


def _eye_mask(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A robber's cloth with holes for the eyes."""
    ink.draw(
        "M -0.93 -0.3 Q 0.1 -0.55 0.93 -0.3 Q 1 0.2 0.5 0.24 Q 0.1 0.02 -0.3 0.24 Q -0.9 0.24 -0.93 -0.3 Z",
        fill=INK,
        width=0,
    )


def _dappled(ink: Ink, draw: Mapping[str, Any]) -> None:
    marks = draw.get("marks", darker(draw["coat"], 0.4))
    for x, y, size in (
        (-0.1, -0.72, 0.13),
        (0.34, -0.66, 0.11),
        (-0.5, -0.55, 0.12),
        (-0.72, 0.12, 0.13),
        (-0.52, 0.5, 0.12),
    ):
        ink.ellipse(x, y, size, fill=marks, width=0)


def _dark_eyes(ink: Ink, draw: Mapping[str, Any]) -> None:
    """Dark patches that hang around the eyes (panda)."""
    for x, lean in ((-0.26, 24), (0.5, -24)):
        ink.at(x, -0.04, lean).ellipse(0, 0, 0.34, 0.44, fill=draw.get("marks", INK), width=0)


def _striped(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A white head with two dark bands through the eyes (badger)."""
    ink.draw("M -0.92 -0.38 Q 0 -1.3 0.92 -0.38 Q 1.05 0.4 0 0.96 Q -1.05 0.4 -0.92 -0.38 Z", fill="white", width=0)
    for x, wide in ((-0.24, 0.22), (0.5, 0.2)):
        d = f"M {x - wide} -0.86 Q {x} -0.98 {x + wide} -0.84 L {x + wide} 0.3 Q {x} 0.5 {x - wide} 0.3 Z"
        ink.draw(d, fill=draw.get("marks", INK), width=0)
    ink.ellipse(0, 0, 1, 0.96)


def _spotted(ink: Ink, draw: Mapping[str, Any]) -> None:
    """Spots on brow and cheeks (leopard, giraffe)."""
    spots = ((-0.5, -0.62), (0.08, -0.78), (0.62, -0.58), (-0.82, -0.2), (-0.76, 0.28), (-0.46, 0.6), (0.9, -0.1))
    for x, y in spots:
        ink.ellipse(x, y, 0.1, 0.085, fill=draw.get("marks", INK), width=0)


def _nose_horns(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A large horn before a small one, on the snout (rhinoceros)."""
    ink.draw("M 0.22 0.1 Q 0.4 -0.06 0.42 -0.34 Q 0.6 -0.1 0.56 0.14 Z", fill="cream")
    ink.draw("M 0.6 0.2 Q 1.0 -0.3 1.16 -1.06 Q 1.5 -0.1 1.12 0.4 Z", fill="cream")


MARKINGS: Mapping[str, Part] = {
    "tiger": _tiger, "cheeks": _cheeks, "mask": _mask, "saddle": _saddle, "patch": _patch, "blaze": _blaze,
    "tabby": _tabby, "eye_mask": _eye_mask, "dappled": _dappled, "band": _band, "tuft": _tuft,
    "dark_eyes": _dark_eyes, "striped": _striped, "spotted": _spotted,
    "nose_horns": _nose_horns,
}  # fmt: skip
"""Markings by the names that `draw: markings` uses."""


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
