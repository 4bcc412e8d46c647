"""A frame of the sketch as SVG in layers that drawing programs show by name."""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import quoteattr

from katha.protocols import FrameRequest
from katha.renderers.sketch.looks import in_look
from katha.renderers.sketch.renderer import LOOSE
from katha.renderers.sketch.scenes import frame_scene, tell
from katha.renderers.sketch.svg import canvas

__all__ = ["layered_svg"]

_INKSCAPE = "http://www.inkscape.org/namespaces/inkscape"
_OWN = "colour"


def layered_svg(request: FrameRequest, argument: str = "") -> str:
    """Return what the sketch (`sketch:argument`) draws of a request, each figure and thing in a group of its own, from
    the farthest to the nearest.

    The groups change no pixel. Inkscape shows them as layers and other programs as named groups: `background`, `fox`,
    `cheese`, and `fox 2` for a second one; their ids are `background`, `character-fox`, `prop-cheese`.

    Raises:
        UsageError: no such style.
    """
    width, height, loose = request.width, request.height, argument == LOOSE
    frame = frame_scene(tell(request).scene, width, height, request.seed, loose=loose, scene_number=request.scene)
    known, groups = Counter[str](), []
    for layer in frame.layers:
        known[layer.name] += 1
        name = layer.name + (f" {known[layer.name]}" if known[layer.name] > 1 else "")
        own = name.replace(" ", "-")
        key = f"{layer.kind}-{own}" if layer.kind in ("character", "prop") else own
        told = f'id={quoteattr(key)} inkscape:groupmode="layer" inkscape:label={quoteattr(name)}'
        groups.append(f"<g {told}>{layer.svg}</g>")
    drawing = in_look("".join(groups), request.style or ("" if loose else argument) or _OWN)
    return canvas(drawing, width, height, **{"xmlns:inkscape": _INKSCAPE})
