"""A frame of the sketch as SVG in layers that drawing programs show by name."""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import quoteattr

from katha.renderers.sketch.compose import compose, svg_sheet
from katha.renderers.sketch.looks import in_look

__all__ = ["layered_svg"]

_INKSCAPE = "http://www.inkscape.org/namespaces/inkscape"


def layered_svg(prompt: str, seed: int, width: int, height: int, style: str) -> str:
    """Return what `compose` draws, each figure and prop in a group of its own, from the farthest to the nearest.

    The groups change no pixel. Inkscape shows them as layers and other programs as named groups: `background`, `fox`,
    `cheese`, and `fox 2` for a second one; their ids are `background`, `character-fox`, `prop-cheese`.

    Raises:
        UsageError: no such style.
    """
    frame, known = compose(prompt, seed, width, height), Counter[str]()
    groups = []
    for layer in frame.layers:
        known[layer.name] += 1
        name = layer.name.replace("_", " ") + (f" {known[layer.name]}" if known[layer.name] > 1 else "")
        own = name.replace(" ", "-")
        key = f"{layer.kind}-{own}" if layer.kind in ("character", "prop") else own
        told = f'id={quoteattr(key)} inkscape:groupmode="layer" inkscape:label={quoteattr(name)}'
        groups.append(f"<g {told}>{layer.svg}</g>")
    drawing = in_look("".join(groups), style)
    return svg_sheet(drawing, width, height, **{"xmlns:inkscape": _INKSCAPE})
