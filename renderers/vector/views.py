"""One of the cast from several sides: a drawing with a group for each, taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from katha.renderers.vector.svg import Drawing, DrawingFault, read_svg, self_contained, write_svg

WIDE, TALL, GROUND = 400, 800, 760
"""The part of each side in the drawing's units, and where feet stand."""
VIEW_PIXELS = (512, 1024)
_MOST_BYTES = 1_000_000


def view_id(name: str) -> str:
    """Return the id of a side's group."""
    return f"view-{name}"


def asked_views(views: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what a prompt says of each side: its id, its name and where it stands."""
    return [
        {"id": view_id(name), "name": said, "left": at * WIDE, "right": (at + 1) * WIDE}
        for at, (name, said) in enumerate(views.items())
    ]


def view_parts(drawn: Drawing, cast: Drawing, names: Sequence[str]) -> dict[str, str]:
    """Return each side as an SVG of its own, by its name.

    Raises:
        DrawingFault: a side is missing, or an id is nowhere defined.
    """
    lacking = [view_id(name) for name in names if view_id(name) not in drawn.ids]
    if lacking:
        raise DrawingFault(f"It lacks the group {', '.join(lacking)}.")
    whole = read_svg(self_contained(drawn, cast), most_bytes=_MOST_BYTES, lenient=True).root
    ids = {view_id(name) for name in names}
    found = {}
    for at, name in enumerate(names):
        root = copy(whole)
        for item in [item for item in root if item.get("id") in ids - {view_id(name)}]:
            root.remove(item)
        root.attrib = {**whole.attrib, "viewBox": f"{at * WIDE} 0 {WIDE} {TALL}"}
        root.attrib.pop("width", None)
        root.attrib.pop("height", None)
        found[name] = write_svg(root)
    return found
