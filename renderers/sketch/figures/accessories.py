"""Things that attributes put on a figure: scarves, caps, hats and crowns, placed at the joints that a rig returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from katha.renderers.sketch.figures.ink import Ink
from katha.renderers.sketch.figures.rig import Joints

__all__ = ["ACCESSORIES", "draw_accessories", "draw_scarf"]


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
