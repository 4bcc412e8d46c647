"""`draw_figure`: one character of the vocabulary with its looks, action and feeling as an SVG fragment."""

from __future__ import annotations

import math

from katha.errors import RenderError
from katha.renderers.sketch.figures.accessories import draw_accessories
from katha.renderers.sketch.figures.around import Around
from katha.renderers.sketch.figures.attributes import dressed
from katha.renderers.sketch.figures.emanata import draw_emanata
from katha.renderers.sketch.figures.ink import Box, Ink, Sheet
from katha.renderers.sketch.figures.pose import face_of, pose_of
from katha.renderers.sketch.figures.rig import Figure, FigureSpec
from katha.renderers.sketch.figures.rigs import RIGS
from katha.renderers.sketch.style import OUTLINE

__all__ = ["draw_figure"]

_THINNEST = 0.62  # share of the outline that the smallest figure's lines keep


def draw_figure(spec: FigureSpec) -> Figure:
    """Draw one figure in figure units: y down, ground contact at (0, 0), a standing adult human 100 units tall.

    The same spec gives the same bytes. The box holds everything drawn, signs around the figure included.

    Raises:
        RenderError: the vocabulary has no such character, action, feeling or attribute.
    """
    draw = dressed(spec)
    rig = RIGS.get(draw.get("rig", ""))
    if rig is None:
        raise RenderError(
            f"The sketch cannot draw {spec.concept!r}: its data names no rig that exists ({draw.get('rig')!r}).",
            hint=f"Set draw: rig to one of {', '.join(sorted(RIGS))} in characters.yaml.",
        )
    pose = pose_of(spec)
    scale = float(draw.get("scale", 1.0))
    sheet, behind = Sheet(), Sheet()
    weight = OUTLINE * min(1.25, max(_THINNEST, math.sqrt(scale)))
    pen = Ink(sheet, weight=weight).at(sx=scale * spec.facing, sy=scale)
    joints = rig(pen, spec, draw, pose, face_of(spec, pose))
    draw_accessories(pen, draw.get("wears", ()), joints)
    body = sheet.box or (0.0, 0.0, 0.0, 0.0)
    around = Around(joints, _local(body, scale, spec.facing), spec.phase)
    back_pen = Ink(behind, weight=weight).at(sx=scale * spec.facing, sy=scale)
    draw_emanata(pose.emanata, around, front=pen, behind=back_pen)
    hx, hy, hr = joints.head
    cx, cy = pen.map(hx, hy)
    anchors = {"hand": pen.map(*joints.hand), "mouth": pen.map(*joints.mouth), "back": pen.map(*joints.back)}
    return Figure(
        svg="<g>" + "".join(behind.parts + sheet.parts) + "</g>",
        bbox=_union(sheet.box, behind.box),
        head=(cx, cy, hr * scale),
        anchors={**anchors, "foot": (0.0, 0.0)},
    )


def _local(box: Box, scale: float, facing: int) -> Box:
    """A box in figure units as the rig's own units, facing right."""
    x0, y0, x1, y1 = (value / scale for value in box)
    return (x0, y0, x1, y1) if facing > 0 else (-x1, y0, -x0, y1)


def _union(first: Box | None, second: Box | None) -> Box:
    boxes = [box for box in (first, second) if box is not None] or [(0.0, 0.0, 0.0, 0.0)]
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return (min(x0s), min(y0s), max(x1s), max(y1s))
