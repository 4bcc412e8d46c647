"""Heads of the upright rig, put together from parts: mane, ears, horns, skull, markings, muzzle, hair, face, hat.

Every part is drawn in the unit circle of the head: origin at its centre, radius 1, y down, facing right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha.renderers.sketch.figures.details import DETAILS
from katha.renderers.sketch.figures.ears import EARS, EARS_IN_FRONT, HORNS, MANES
from katha.renderers.sketch.figures.face import FaceLayout, draw_face
from katha.renderers.sketch.figures.hair import BEARDS, FRINGES, HAIR, HATS
from katha.renderers.sketch.figures.ink import Ink
from katha.renderers.sketch.figures.markings import MARKINGS
from katha.renderers.sketch.figures.muzzles import MUZZLES
from katha.renderers.sketch.figures.rig import FaceParams
from katha.renderers.sketch.style import INK, lighter

__all__ = ["draw_head"]

_BEHIND = (("mane_style", MANES), ("hair_style", HAIR), ("horns", HORNS))
_OVER = (("markings", MARKINGS), ("muzzle", MUZZLES), ("beard", BEARDS), ("fringe", FRINGES))


def draw_head(ink: Ink, draw: Mapping[str, Any], face: FaceParams) -> None:
    """Draw the whole head with its face; `draw` names the parts, absent parts are left out."""
    for key, table in _BEHIND:
        _part(ink, draw, key, table)
    ears = draw.get("ears")
    if ears and ears not in EARS_IN_FRONT:
        EARS[ears](ink, draw)
    wide, high = draw.get("skull", (1.0, 0.96))
    ink.ellipse(0, 0, wide, high, fill=draw["coat"])
    for key, table in _OVER:
        _part(ink, draw, key, table)
    if ears in EARS_IN_FRONT:
        EARS[ears](ink, draw)
    draw_face(ink, face, _layout(draw))
    _part(ink, draw, "hat", HATS)
    _part(ink, draw, "detail", DETAILS)
    for name in draw.get("details", ()):
        DETAILS[name](ink, draw)


def _part(ink: Ink, draw: Mapping[str, Any], key: str, table: Mapping[str, Any]) -> None:
    name = draw.get(key)
    if name:
        table[name](ink, draw)


def _layout(draw: Mapping[str, Any]) -> FaceLayout:
    """Where the face sits on this head, from the data or the usual places."""
    usual = FaceLayout()
    (x0, y0), (x1, y1) = draw.get("eyes", usual.eyes)
    mx, my = draw.get("mouth", usual.mouth)
    return FaceLayout(
        eyes=((x0, y0), (x1, y1)),
        eye=draw.get("eye", usual.eye),
        mouth=(mx, my),
        width=draw.get("mouth_width", usual.width),
        lid=lighter(draw["coat"], 0.15),
        brow=draw.get("brow", "cream" if draw.get("dark") else ("#8a8790" if draw.get("aged") else INK)),
    )
