"""Several of the same as one picture, and what lies on or in one thing side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from katha.renderers.sketch.pictograms import Picture
from katha.renderers.sketch.scenes.framing import union
from katha.renderers.sketch.scenes.record import SceneThing
from katha.renderers.sketch.svg import group, number

if TYPE_CHECKING:
    from katha.renderers.sketch.scenes.things import Sprite

__all__ = ["FEW", "several", "side_by_side"]

FEW, _A_ROW, _STAGGERED, _BEHIND, _CROWDED = 3, 5, 0.94, 0.62, 0.5
"""More of the same than the first are one picture, with so many in a row, so far apart and one row behind the other
beside their size; how small things are drawn at least to lie side by side."""


def several(picture: Picture, count: int, least: int = 4, rise: float = _BEHIND) -> Picture:
    """So many of the same as one picture, in rows one behind the other; fewer than `least` stay one."""
    if count < least:
        return picture
    x0, y0, x1, y1 = picture.bbox
    rows = 1 if count <= _A_ROW else 2 if count <= 2 * _A_ROW else 3
    across = -(-count // rows)
    wide, up = _STAGGERED * (x1 - x0), rise * (y1 - y0)
    put: list[tuple[float, float]] = []
    for nth in range(count):
        row, column = divmod(nth, across)
        many = min(across, count - row * across)
        put.append(((column - 0.5 * (many - 1) + (0.25 if row % 2 else 0.0)) * wide, -up * (rows - 1 - row)))
    svg = "".join(group(picture.svg, transform=f"translate({number(x)} {number(y)})") for x, y in put)
    box = union([(x0 + x, y0 + y, x1 + x, y1 + y) for x, y in put])
    return Picture(svg, box, box, picture.head)


def side_by_side(sprites: Sequence[Sprite], things: Sequence[SceneThing]) -> list[Sprite]:
    """The sprites with all that lies on or in the same thing in a row, smaller where there is no room."""
    found = {sprite.id: sprite for sprite in sprites}
    laid: dict[tuple[str, str], list[str]] = {}
    for thing in things:
        if thing.at in found and thing.id in found and thing.where in ("on", "in") and not found[thing.at].acts:
            laid.setdefault((thing.at, thing.where), []).append(thing.id)
    moved: dict[str, Sprite] = {}
    for (host, _), ids in laid.items():
        if len(ids) < 2:
            continue
        left, _, right, _ = found[host].box
        wide = sum(found[one].box[2] - found[one].box[0] for one in ids)
        by = min(1.0, max(_CROWDED, (right - left) / wide))
        x = (left + right) / 2 - 0.5 * by * wide
        for one in ids:
            x0, y0, x1, y1 = (by * value for value in found[one].local)
            svg = group(found[one].svg, transform=f"scale({by:.3f})") if by < 1 else found[one].svg
            moved[one] = replace(found[one], svg=svg, local=(x0, y0, x1, y1), x=x - x0)
            x += x1 - x0
    return [moved.get(sprite.id, sprite) for sprite in sprites]
