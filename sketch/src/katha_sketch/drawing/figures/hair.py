"""Hair, beards and hats of people, in the unit circle of the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.style import darker

__all__ = ["BEARDS", "FRINGES", "HAIR", "HATS"]

Part = Callable[[Ink, Mapping[str, Any]], None]


def _cut(d: str, key: str = "hair", usual: str = "hair") -> Part:
    """A part that is one filled outline in the colour that `draw` has under `key`."""

    def part(ink: Ink, draw: Mapping[str, Any]) -> None:
        ink.draw(d, fill=draw.get(key, usual))

    return part


def _ears(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(-0.96, 0.08, 0.2, 0.25, fill=draw["coat"])
    ink.ellipse(0.98, 0.08, 0.13, 0.22, fill=draw["coat"])


def _short(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -1.02 0.35 Q -1.35 -1.18 0.05 -1.15 Q 1.3 -1.1 1.02 0.1 Z", fill=draw["hair"])
    _ears(ink, draw)


def _bun(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(-0.85, -0.8, 0.48, fill=draw["hair"])
    _short(ink, draw)


def _top_knot(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(0.0, -1.3, 0.36, 0.34, fill=draw["hair"])
    _short(ink, draw)


def _long(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.9 1.25 Q -1.45 0.9 -1.2 -0.1 Q -1.2 -1.2 0.05 -1.17 Q 1.25 -1.15 1.12 0 Q 1.3 0.9 0.95 1.2 Z",
        fill=draw["hair"],
    )


def _bunches(ink: Ink, draw: Mapping[str, Any]) -> None:
    for side in (-1, 1):
        ink.draw(
            f"M {side * 0.85} -0.1 Q {side * 1.75} -0.25 {side * 1.6} 0.55"
            f" Q {side * 1.5} 1.05 {side * 1.15} 1.0 Q {side * 1.25} 0.4 {side * 0.85} 0.3 Z",
            fill=draw["hair"],
        )
        ink.ellipse(side * 1.05, 0.02, 0.17, fill=draw.get("ribbon", "red"), width=0.8)
    _short(ink, draw)


def _bald(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.ellipse(-0.9, 0.1, 0.32, 0.48, fill=draw["hair"])
    ink.ellipse(0.92, 0.05, 0.2, 0.4, fill=draw["hair"])


def _ponytail(ink: Ink, draw: Mapping[str, Any]) -> None:
    _short(ink, draw)
    ink.draw("M -0.7 -0.75 Q -1.5 -1.0 -1.75 -0.2 Q -1.8 0.6 -1.45 1.1 Q -1.3 0.3 -0.95 -0.2 Z", fill=draw["hair"])
    ink.ellipse(-0.86, -0.6, 0.16, fill=draw.get("ribbon", "red"), width=0.7)


def _curls(ink: Ink, draw: Mapping[str, Any]) -> None:
    spots = ((-1.0, 0.35), (-1.12, -0.15), (-0.98, -0.62), (-0.6, -1.0), (-0.1, -1.12), (0.42, -1.05), (0.82, -0.72))
    for x, y in (*spots, (1.02, -0.25)):
        ink.ellipse(x, y, 0.34, fill=draw["hair"], width=0.9)
    ink.ellipse(-0.1, -0.2, 0.98, fill=draw["hair"], width=0)


HAIR: Mapping[str, Part] = {
    "short": _short, "bun": _bun, "top_knot": _top_knot, "long": _long, "bunches": _bunches, "bald": _bald,
    "ears": _ears, "ponytail": _ponytail, "curls": _curls,
}  # fmt: skip
"""What lies behind the skull, by the names that `draw: hair_style` uses."""

FRINGES: Mapping[str, Part] = {
    "side": _cut("M -1 0.05 Q -1.1 -1 0.05 -1.02 Q 1.05 -1 1.0 -0.12 Q 0.7 -0.62 0.1 -0.68 Q -0.7 -0.6 -0.82 0.05 Z"),
    "parted": _cut("M -1 0.15 Q -1.1 -1 0.1 -1.02 Q 1.05 -1 1.0 0.0 Q 0.75 -0.25 0.3 -0.8 Q -0.3 -0.35 -1 0.15 Z"),
    "shaggy": _cut("M -1 0.1 Q -1.15 -1.0 0.0 -1.1 Q 1.1 -1.05 1.0 -0.1 L 0.75 -0.5"
        " L 0.5 -0.36 L 0.25 -0.6 L -0.05 -0.38 L -0.35 -0.6 L -0.6 -0.3 Z"),
}  # fmt: skip
"""Hair on the forehead, by the names that `draw: fringe` uses."""


def _full(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.96 0.1 Q -0.7 0.35 -0.35 0.3 Q 0.13 0.18 0.6 0.3"
        " Q 0.85 0.35 0.95 0.05 Q 1.05 1.25 0.1 1.3 Q -0.95 1.2 -0.96 0.1 Z",
        fill=draw.get("beard_colour", draw["hair"]),
    )


def _flowing(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.96 0.1 Q -0.7 0.35 -0.3 0.3 Q 0.13 0.2 0.55 0.3 Q 0.85 0.35 0.95 0.05"
        " Q 1.1 1.1 0.75 1.6 Q 0.5 2.15 0.15 2.3 Q -0.3 2 -0.6 1.5 Q -1 0.9 -0.96 0.1 Z",
        fill=draw.get("beard_colour", draw["hair"]),
    )
    for d in ("M -0.2 1.1 Q -0.1 1.6 0.05 1.9", "M 0.35 1.05 Q 0.4 1.4 0.3 1.7"):
        ink.draw(d, width=0.5)


def _moustache(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M 0.14 0.3 Q 0.5 0.18 0.78 0.42 Q 0.95 0.4 1.0 0.22 Q 1.0 0.62 0.62 0.56 Q 0.3 0.52 0.14 0.4"
        " Q -0.05 0.52 -0.35 0.56 Q -0.75 0.62 -0.75 0.22 Q -0.68 0.4 -0.5 0.42 Q -0.2 0.18 0.14 0.3 Z",
        fill=draw["hair"],
        width=0.6,
    )


def _stubble(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.9 0.3 Q -0.5 0.3 0.13 0.3 Q 0.6 0.25 0.92 0.25 Q 0.75 0.94 0.05 0.94 Q -0.7 0.92 -0.9 0.3 Z",
        fill=darker(draw["coat"], 0.22),
        width=0,
    )
    ink.ellipse(0.13, 0.5, 0.42, 0.26, fill=draw["coat"], width=0)


BEARDS: Mapping[str, Part] = {
    "full": _full,
    "flowing": _flowing,
    "moustache": _moustache,
    "stubble": _stubble,
    "goatee": _cut(
        "M 0.05 0.95 Q 0.35 0.85 0.65 0.95 Q 0.65 1.45 0.25 1.8 Q 0.0 1.4 0.05 0.95 Z", "beard_colour", "cream"
    ),
}
"""Beards by the names that `draw: beard` uses."""


def _turban(ink: Ink, draw: Mapping[str, Any]) -> None:
    fill = draw.get("hat_colour", "orange")
    ink.draw(
        "M -1.1 -0.25 Q -1.35 -1.35 -0.1 -1.45 Q 1.25 -1.45 1.15 -0.3 Q 0.6 -0.62 0.1 -0.55 Q -0.6 -0.55 -1.1 -0.25 Z",
        fill=fill,
    )
    ink.draw(
        "M -1.0 -0.6 Q 0 -1.35 1.1 -0.7 M -0.75 -1.05 Q 0.2 -1.5 0.95 -1.1 M -0.2 -0.55 Q 0.5 -0.9 0.9 -1.2", width=0.6
    )
    if "jewel" in draw:
        ink.draw("M 0.3 -1.05 Q 0.1 -1.7 0.55 -1.95 Q 0.75 -1.5 0.45 -1.05 Z", fill="white", width=0.8)
        ink.ellipse(0.36, -0.9, 0.2, fill=draw["jewel"], width=0.8)


def _crown(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.95 -0.42 L -1.12 -1.5 L -0.55 -1.02 L 0.0 -1.75"
        " L 0.55 -1.02 L 1.12 -1.5 L 0.95 -0.42 Q 0 -0.75 -0.95 -0.42 Z",
        fill="golden",
    )
    for x, y, fill in ((-0.5, -0.72, "blue"), (0.0, -0.85, "red"), (0.5, -0.72, "blue")):
        ink.ellipse(x, y, 0.13, fill=fill, width=0.6)
    for x, y in ((-1.12, -1.5), (0, -1.75), (1.12, -1.5)):
        ink.ellipse(x, y, 0.12, fill="golden", width=0.7)


def _tiara(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -0.8 -0.6 L -0.7 -1.15 L -0.35 -0.95 L 0.02 -1.6 L 0.4 -0.95 L 0.75 -1.15 L 0.85 -0.6 Q 0 -1 -0.8 -0.6 Z",
        fill="golden",
    )
    ink.ellipse(0.02, -1.08, 0.15, fill="red", width=0.6)


def _straw(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -0.75 -0.55 Q -0.7 -1.55 0.05 -1.55 Q 0.8 -1.55 0.8 -0.55 Z", fill="sand")
    ink.draw(
        "M -0.77 -0.85 Q 0 -0.6 0.82 -0.85 L 0.84 -0.5 L -0.79 -0.5 Z", fill=draw.get("hat_colour", "brown"), width=0.7
    )
    ink.draw("M -1.75 -0.35 Q 0 -0.95 1.75 -0.35 Q 0 0.05 -1.75 -0.35 Z", fill="sand")
    for x in (-1.1, -0.5, 0.2, 0.8, 1.2):
        ink.line([(x, -0.42), (x * 1.12, -0.3)], width=0.4)


def _cap(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A hunter's pointed cap with a feather."""
    ink.draw(
        "M -1.05 -0.35 Q -0.9 -1.35 0.4 -1.3 Q 0.9 -1.1 1.6 -0.5 Q 0.9 -0.5 0 -0.55 Q -0.6 -0.5 -1.05 -0.35 Z",
        fill=draw.get("hat_colour", "dark_green"),
    )
    ink.draw("M -0.4 -0.8 Q -1.2 -1.3 -1.3 -2.0 Q -0.4 -1.6 -0.25 -0.85 Z", fill="red", width=0.8)


def _helmet(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw("M -0.5 -1.1 Q -0.4 -1.95 0.6 -1.7 Q -0.1 -1.6 0.1 -1.15 Z", fill="red")
    ink.draw(
        "M -1.1 0.35 Q -1.35 -1.25 0.05 -1.28 Q 1.35 -1.25 1.12 0.2"
        " Q 0.95 0.1 0.92 -0.42 Q 0.1 -0.6 -0.75 -0.42 Q -0.75 0.2 -1.1 0.35 Z",
        fill="grey",
    )
    ink.draw("M 0.1 -0.55 L 0.22 0.1 L 0.02 0.1 Z", fill="grey", width=0.8)


def _hood(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A dark head cloth with an eye mask (thief)."""
    ink.draw(
        "M -1.15 0.5 Q -1.35 -1.25 0.05 -1.28 Q 1.3 -1.2 1.05 0.2 Q 0.9 -0.4 0.1 -0.55 Q -0.7 -0.5 -0.85 0.35 Z",
        fill=draw.get("hat_colour", "black"),
    )


def _band(ink: Ink, draw: Mapping[str, Any]) -> None:
    ink.draw(
        "M -1.0 -0.38 Q 0.05 -0.82 1.0 -0.42 L 0.94 -0.62 Q 0.05 -1.1 -0.94 -0.62 Z",
        fill=draw.get("hat_colour", "red"),
        width=0.8,
    )


def _keffiyeh(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A shepherd's head cloth that falls to the shoulder, with a band."""
    ink.draw(
        "M -0.9 0.1 Q -0.9 -0.5 0.1 -0.6 Q 0.85 -0.5 1.0 -0.1 Q 1.15 -1.25 0.05 -1.25"
        " Q -1.2 -1.25 -1.25 0.1 Q -1.45 0.9 -1.35 1.3 Q -0.9 1.2 -0.9 0.1 Z",
        fill=draw.get("hat_colour", "cream"),
    )
    ink.draw("M -1.12 -0.5 Q 0 -1.05 1.05 -0.6", stroke="brown", width=2)


def _cone(ink: Ink, draw: Mapping[str, Any]) -> None:
    """A fisherman's wide cone of reed."""
    ink.draw("M -1.6 -0.35 L 0.05 -1.65 L 1.65 -0.35 Q 0.05 0.0 -1.6 -0.35 Z", fill="tan")
    ink.draw("M -0.9 -0.28 L 0.05 -1.6 L 0.95 -0.28 M 0.05 -1.6 L 0.05 -0.2", width=0.5)


HATS: Mapping[str, Part] = {
    "turban": _turban, "crown": _crown, "tiara": _tiara, "straw": _straw, "cap": _cap, "helmet": _helmet, "hood": _hood,
    "band": _band, "keffiyeh": _keffiyeh, "cone": _cone,
}  # fmt: skip
"""Hats by the names that `draw: hat` uses."""
