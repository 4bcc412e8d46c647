"""Pictures of the characters of a cast sheet, each put together from its parts, for whoever draws from pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from katha.pictures import as_png, decode
from katha.renderers.vector.raster import layers
from katha.renderers.vector.svg import Drawing, DrawingFault, read_svg, self_contained

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["figure"]

_BODIES = ("body", "stand", "sit", "lie")
"""The poses of a body that are looked for, in order."""
_TURNED = ("down", "back")
"""Heads of which a face would not be seen."""
_VIEW = (-600, -900, 1200, 1200)
"""Where a figure with its feet at 0,0 is looked for: left, top, width, height, in the cast's units."""
_SIDE = 1024
_MARGIN = 0.06
"""White around a figure, as a share of its longer side."""
_MOST_BYTES = 10_000
_ID = re.compile(r'\bid="([\w-]+)"')
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_NECK = re.compile(r"(?:neck|head origin)\D{0,24}?(-?\d+)[ ,]+(-?\d+)", re.IGNORECASE)


def figure(source: str, cast: Drawing, prefix: str) -> bytes | None:
    """Return a picture (PNG, on white) of the character whose parts begin with `prefix`: its body with its head on it.

    source: the cast sheet's text, whose comments say where necks are; a head without a place stands alone. None where
    the sheet has neither, or they cannot be drawn.
    """
    body = next((name for pose in _BODIES if (name := f"{prefix}-{pose}") in cast.ids), None)
    heads = [name for name in cast.ids if name.startswith(f"{prefix}-head-")]
    faces = [name for name in heads if name.rpartition("-")[2] not in _TURNED]
    calm = f"{prefix}-head-calm"
    head = [calm] if calm in heads else faces[:1]
    neck = _neck(source, body, prefix) if body is not None else None
    parts = [(body, (0, 0))] if body is not None and (neck is not None or not head) else []
    on_it = [*head, *(name for name in (f"{prefix}-pupils",) if head and name in cast.ids)]
    parts += [(name, neck or (0, 0)) for name in on_it]
    return _drawn(parts, cast) if parts else None


def _neck(source: str, body: str, prefix: str) -> tuple[int, int] | None:
    """Return where the comment before a body, or before other parts of the character, or one in it, says that its head
    is."""
    before, _, after = source.partition(f'id="{body}"')
    head, end, between = before.rpartition("-->")
    own = all(name.startswith(f"{prefix}-") for name in _ID.findall(between))
    told = [*(_COMMENT.findall(head + end)[-1:] if own else ()), *_COMMENT.findall(_ID.split(after)[0])[:1]]
    found = next((known for text in told if (known := _NECK.search(text)) is not None), None)
    return (int(found[1]), int(found[2])) if found is not None else None


def _drawn(parts: Sequence[tuple[str, tuple[int, int]]], cast: Drawing) -> bytes | None:
    """These parts of a cast in their places, as large as a picture is; None where nothing is seen of them."""
    try:
        box = _seen(parts, cast, _VIEW).getchannel("A").getbbox()
        if box is None:
            return None
        left, top, right, bottom = (_VIEW[at % 2] + edge * _VIEW[2] / _SIDE for at, edge in enumerate(box))
        room = _MARGIN * max(right - left, bottom - top)
        picture = _seen(parts, cast, (left - room, top - room, right - left + 2 * room, bottom - top + 2 * room))
    except DrawingFault:
        return None
    return as_png(decode(as_png(picture), "The figure"))


def _seen(parts: Sequence[tuple[str, tuple[int, int]]], cast: Drawing, view: tuple[float, ...]) -> Image:
    """These parts as they are seen in a view, of which the longer side has all pixels of a picture's."""
    uses = "".join(f'<use href="#{name}" x="{x}" y="{y}"/>' for name, (x, y) in parts)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{" ".join(f"{edge:g}" for edge in view)}">{uses}</svg>'
    scale = _SIDE / max(view[2:])
    size = (max(1, round(view[2] * scale)), max(1, round(view[3] * scale)))
    return layers([(self_contained(read_svg(svg, most_bytes=_MOST_BYTES), cast), *size)])[0]
