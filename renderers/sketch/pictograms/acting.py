"""Actors without a rig (a robot, a ghost, a teapot): they act by lean, lift and the signs around them.

`acts.yaml` says how each act and mood looks, `marks.yaml` draws the signs in the language of the props.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from katha.errors import RenderError
from katha.renderers.sketch.pictograms.draw import Box, Picture, draw_pictogram
from katha.renderers.sketch.props.shapes import Shape, read_shape
from katha.renderers.sketch.svg import group, number
from katha.renderers.sketch.tables import load_table

__all__ = ["ACTS", "MOODS", "act_pictogram", "draw_mark", "put_marks"]

ACTS = (
    "stand", "move", "run", "jump", "climb", "fly", "swim", "fall", "lie", "sleep", "sit", "hide", "speak", "shout",
    "sing", "dance", "laugh", "cry", "eat", "look", "think", "work", "shake", "carried", "burst",
    "smoke", "ring", "glow", "drip", "flame",
)  # fmt: skip
"""What an actor without a rig can do, as acts.yaml has it."""

MOODS = (
    "happy", "sad", "angry", "afraid", "surprised", "proud", "calm", "ashamed", "sly", "greedy", "grateful", "loving",
    "puzzled", "worried", "lonely", "tired",
)  # fmt: skip
"""Feelings that have a sign (calm has none)."""

_MARK = 20.0
_SMALLEST_MARK, _LARGEST_MARK = 0.5, 1.25


@dataclass(frozen=True)
class _Mark:
    at: str
    mirrored: bool
    shapes: tuple[Shape, ...]


def act_pictogram(name: str, height: float, *, act: str = "stand", mood: str | None = None, facing: int = 1) -> Picture:
    """The pictogram doing something: leaning, lifted, fallen, with the signs of act and mood around it.

    Raises:
        RenderError: no such pictogram, act or mood.
    """
    row = _row("acts", act)
    turn = float(row.get("turn", 0.0)) * facing
    picture = draw_pictogram(name, height, facing=facing, turn=turn, squash=float(row.get("squash", 1.0)))
    picture = _lifted(picture, -float(row.get("lift", 0.0)) * height)
    marks = [*row.get("marks", ())]
    if mood is not None and (mark := _moods(mood)) and mark not in marks:
        marks.append(mark)
    return put_marks(picture, marks, facing)


def put_marks(picture: Picture, marks: list[str], facing: int) -> Picture:
    """`picture` with signs around its solid part; several signs at one place stand side by side."""
    parts, box, used = [picture.svg], picture.bbox, dict[str, int]()
    for name in marks:
        at = _mark(name).at
        nth = used[at] = used.get(at, -1) + 1
        for svg, bounds in draw_mark(name, picture.solid, picture.head, facing, nth):
            parts.append(svg)
            box = (min(box[0], bounds[0]), min(box[1], bounds[1]), max(box[2], bounds[2]), max(box[3], bounds[3]))
    return replace(picture, svg="".join(parts), bbox=box)


def draw_mark(
    name: str, solid: Box, head: tuple[float, float, float], facing: int, nth: int = 0
) -> list[tuple[str, Box]]:
    """One sign beside what covers `solid` and has its face at `head`, as SVG with its box (twice for both sides).

    Raises:
        RenderError: no such sign.
    """
    mark = _mark(name)
    scale = min(_LARGEST_MARK, max(_SMALLEST_MARK, (solid[3] - solid[1]) / 70))
    x0, y0, x1, y1 = solid
    cx, cy, _ = head
    ahead, back = (x1, x0) if facing > 0 else (x0, x1)
    step = 1.4 * _MARK * scale * nth * facing
    spots = {
        "head": (ahead - facing * 0.08 * (x1 - x0), cy, facing),
        "above": (cx + step, y0 - 3, facing),
        "behind": (back - facing * 3, (y0 + y1) / 2 - 6 * nth, facing),
        "ahead": (ahead, (y0 + y1) / 2, facing),
        "heel": (back - facing * 8, y1, facing),
        "below": (cx, y1, facing),
        "cheek": (cx, cy, facing),
        "centre": (x0 + 0.68 * (x1 - x0), y0 + 0.4 * (y1 - y0), facing),
        "waterline": (cx, y1, facing),
    }
    places = [(x1 + 2, cy, 1), (x0 - 2, cy, -1)] if mark.at == "sides" else [spots[mark.at]]
    size = max(scale, (x1 - x0) / 56) if mark.at == "waterline" else scale
    return [_put(mark, x, y, size, side if mark.mirrored else 1) for x, y, side in places]


def _put(mark: _Mark, x: float, y: float, scale: float, side: int) -> tuple[str, Box]:
    drawn = [shape.at(0.0) for shape in mark.shapes]
    x0s, y0s, x1s, y1s = zip(*(box for _, box in drawn), strict=True)
    left, right = sorted((x + side * scale * min(x0s), x + side * scale * max(x1s)))
    put = f"translate({number(x)} {number(y)}) scale({number(side * scale)} {number(scale)})"
    svg = group(*(svg for svg, _ in drawn), transform=put)
    return svg, (left, y + scale * min(y0s), right, y + scale * max(y1s))


def _lifted(picture: Picture, dy: float) -> Picture:
    if not dy:
        return picture

    def down(box: Box) -> Box:
        return (box[0], box[1] + dy, box[2], box[3] + dy)

    cx, cy, r = picture.head
    svg = group(picture.svg, transform=f"translate(0 {number(dy)})")
    return Picture(svg, down(picture.bbox), down(picture.solid), (cx, cy + dy, r))


def _row(table: str, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = _data("acts.yaml")[table].get(name)
    if found is None:
        raise RenderError(f"A pictogram cannot {name!r}.", hint=f"It can: {', '.join(_data('acts.yaml')[table])}.")
    return found


def _moods(name: str) -> str | None:
    moods: Mapping[str, str | None] = _data("acts.yaml")["moods"]
    if name not in moods:
        raise RenderError(f"The sketch has no sign for the mood {name!r}.", hint=f"Moods: {', '.join(moods)}.")
    return moods[name]


@cache
def _mark(name: str) -> _Mark:
    row = _data("marks.yaml").get(name)
    if row is None:
        raise RenderError(f"The sketch has no sign {name!r}.", hint=f"Signs: {', '.join(_data('marks.yaml'))}.")
    shapes = tuple(read_shape(head, str(geometry)) for entry in row["shapes"] for head, geometry in entry.items())
    return _Mark(row["at"], row.get("mirrored", True), shapes)


def _data(name: str) -> Mapping[str, Any]:
    return load_table("pictograms", name)
