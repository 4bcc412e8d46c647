"""Actors without a rig (a robot, a ghost, a teapot): they act by lean, lift and the signs around them.

`acts.yaml` says how each act and mood looks, `marks.yaml` draws the signs in the language of the props.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from katha.errors import RenderError
from katha_sketch.drawing.pictograms.data import pictogram
from katha_sketch.drawing.pictograms.draw import Box, Picture, draw_pictogram, tipped
from katha_sketch.drawing.props.shapes import Shape, read_shape
from katha_sketch.drawing.settings.stage import tint
from katha_sketch.drawing.svg import el, group, number, points
from katha_sketch.drawing.tables import load_table

__all__ = ["ACTS", "MOODS", "STATES", "act_pictogram", "draw_mark", "put_marks", "put_states", "stated_drawing"]

ACTS = (
    "stand", "move", "run", "jump", "climb", "fly", "swim", "fall", "lie", "sleep", "sit", "hide", "speak", "shout",
    "sing", "dance", "laugh", "cry", "eat", "look", "think", "work", "shake", "carried", "burst",
    "smoke", "ring", "glow", "drip", "flame", "halt", "skid", "sink", "bob", "grow", "flutter", "roll",
)  # fmt: skip
"""What an actor without a rig can do, as acts.yaml has it."""

MOODS = (
    "happy", "sad", "angry", "afraid", "surprised", "proud", "calm", "ashamed", "sly", "greedy", "grateful", "loving",
    "puzzled", "worried", "lonely", "tired",
)  # fmt: skip
"""Feelings that have a sign (calm has none)."""

STATES = (
    "broken", "cracked", "torn", "wet", "dirty", "burnt", "burning", "smoking", "steaming", "empty", "flat", "melted",
    "wilted", "frozen", "snowy", "flooded", "tangled", "tied", "locked", "open", "closed", "unlit", "lit", "rotten",
    "smelly", "rusty", "old", "new", "dead",
)  # fmt: skip
"""What can have become of a thing, as acts.yaml has it."""

_SQUARE = 100.0
"""The side of the square that overlays are written on."""
_SPLIT_APART, _SPLIT_TALL = 0.07, 1.35
"""How far halves are apart beside the thing's size; what is so much taller than wide is broken across."""
_FACE, _EYES = 0.72, 0.46
"""How large the face of a thing is beside the thing, and how far below its top its middle is."""
_WIDE_MARKS = frozenset({"waterline", "foot"})
_WIDE_MARK = 56.0
_COLOURED = re.compile(r'"#[0-9a-f]{6}"')
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
    if "beast" in row and _on_all_fours(name):
        row = row["beast"]
    turn = float(row.get("turn", 0.0)) * facing
    picture = draw_pictogram(name, height, facing=facing, turn=turn, squash=float(row.get("squash", 1.0)))
    picture = _faced(name, _lifted(picture, -float(row.get("lift", 0.0)) * height), act, mood)
    marks = [*row.get("marks", ())]
    if mood is not None and (mark := _moods(mood)) and mark not in marks:
        marks.append(mark)
    return put_marks(picture, marks, facing)


def _faced(name: str, picture: Picture, act: str, mood: str | None) -> Picture:
    """A thing that speaks or feels has eyes and a mouth, or nobody would take it for somebody."""
    faces = _data("acts.yaml")["faces"]
    looks = faces["moods"].get(mood) or faces["acts"].get(act)
    if act in ("speak", "shout", "sing", "sleep"):
        looks = faces["acts"][act]
    if looks is None or name in faces["own"].split() or pictogram(name).kind not in faces["kinds"].split():
        return picture
    eyes, mouth = looks.split()
    x0, y0, x1, y1 = picture.solid
    scale = _FACE * min(x1 - x0, y1 - y0) / _SQUARE
    put = f"translate({number((x0 + x1) / 2)} {number(y0 + _EYES * (y1 - y0))}) scale({scale:.4f})"
    shapes = (*_shapes(faces["eyes"][eyes]), *_shapes(faces["mouths"][mouth]))
    face = group(*(shape.at(0.0)[0] for shape in shapes), transform=put)
    return replace(picture, svg=picture.svg + face)


def _on_all_fours(name: str) -> bool:
    """Whether a pictogram is an animal seen from the side."""
    found = pictogram(name)
    return found.kind == "animal" and found.faces != "front"


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
        "foot": ((x0 + x1) / 2, y1, facing),
        "middle": ((x0 + x1) / 2, (y0 + y1) / 2, facing),
    }
    places = [(x1 + 2, cy, 1), (x0 - 2, cy, -1)] if mark.at == "sides" else [spots[mark.at]]
    size = max(scale, (x1 - x0) / _WIDE_MARK) if mark.at in _WIDE_MARKS else scale
    return [_put(mark, x, y, size, side if mark.mirrored else 1) for x, y, side in places]


def stated_drawing(name: str, kind: str, states: Sequence[str]) -> tuple[str | None, tuple[Shape, ...]]:
    """What a pictogram in these states is drawn as: another pictogram's id, or shapes; (its own, none) as it is."""
    for state in states:
        other = _state(state, kind).get("instead", {}).get(name)
        if other is not None and other in _data("acts.yaml")["drawings"]:
            return None, _shapes(_data("acts.yaml")["drawings"][other])
        if other is not None:
            return str(other), ()
    return name, ()


def put_states(picture: Picture, kind: str, states: Sequence[str], facing: int = 1) -> Picture:
    """`picture` of a thing of `kind` with what has become of it: broken in two, burnt black, wet, locked.

    Raises:
        RenderError: no such state.
    """
    for state in states:
        row = _state(state, kind)
        if "tint" in row:
            picture = replace(picture, svg=tint(picture.svg, str(row["tint"][0]), float(row["tint"][1])))
        for name in row.get("over", ()):
            picture = replace(picture, svg=_covered(picture, _data("acts.yaml")["overlays"][name]))
        if "squash" in row:
            picture = _squashed(picture, float(row["squash"]))
        if "turn" in row:
            picture = tipped(picture, float(row["turn"]) * facing)
        if "split" in row:
            picture = _split(picture, float(row["split"]))
        picture = put_marks(picture, list(row.get("marks", ())), facing)
    return picture


def _state(name: str, kind: str) -> Mapping[str, Any]:
    rows: Mapping[str, Mapping[str, Any]] | None = _data("acts.yaml")["states"].get(name)
    if rows is None:
        raise RenderError(
            f"The sketch has no state {name!r}.", hint=f"States: {', '.join(_data('acts.yaml')['states'])}."
        )
    return rows.get(kind, {} if kind == "person" else rows["any"])


def _covered(picture: Picture, rows: Sequence[Mapping[str, Any]]) -> str:
    """The picture with shapes of the overlay's square on it, cut off at its outline."""
    x0, y0, x1, y1 = picture.solid
    name = f"shape-{_digest(picture.svg)}"
    mask = el("mask", _COLOURED.sub('"#ffffff"', picture.svg), id=name, maskUnits="userSpaceOnUse", x=x0 - 9,
              y=y0 - 9, width=x1 - x0 + 18, height=y1 - y0 + 18)  # fmt: skip
    put = f"translate({number(x0)} {number(y0)}) scale({(x1 - x0) / _SQUARE:.4f} {(y1 - y0) / _SQUARE:.4f})"
    drawn = group(*(shape.at(0.0)[0] for shape in _shapes(rows)), transform=put)
    return picture.svg + mask + el("g", drawn, mask=f"url(#{name})")


def _split(picture: Picture, lean: float) -> Picture:
    """The picture broken along a jagged line, its halves leaning apart: across where it is tall."""
    x0, y0, x1, y1 = picture.solid
    wide, tall = x1 - x0, y1 - y0
    across = tall > _SPLIT_TALL * wide
    far, long = wide + tall, tall if not across else wide
    jags = [(0.5 + (0.07 if nth % 2 else -0.07), nth / 5) for nth in range(6)]
    edge = [(x0 + a * wide, y0 + b * tall) if not across else (x0 + b * wide, y0 + a * tall) for a, b in jags]
    (ax, ay), (bx, by) = edge[0], edge[-1]
    one = [(ax, ay - far), *edge, (bx, by + far)] if not across else [(ax - far, ay), *edge, (bx + far, by)]
    outer = (
        ([(x0 - far, y1 + far), (x0 - far, y0 - far)], [(x1 + far, y1 + far), (x1 + far, y0 - far)])
        if not across
        else ([(x1 + far, y0 - far), (x0 - far, y0 - far)], [(x1 + far, y1 + far), (x0 - far, y1 + far)])
    )
    apart = _SPLIT_APART * long
    steps = ((-apart, 0.0, -lean), (apart, 0.0, lean)) if not across else ((0.3 * wide, 0.0, 2 * lean), (0.0, 0.0, 0.0))
    parts = []
    for nth, (side, (dx, dy, turn)) in enumerate(zip(outer, steps, strict=True)):
        name = f"split-{nth}-{_digest(picture.svg)}"
        clip = el("clipPath", el("polygon", points=points([*one, *side])), id=name)
        foot = f"{number((ax + bx) / 2)} {number(y1 if not across else (ay + by) / 2)}"
        put = f"translate({number(dx)} {number(dy)}) rotate({number(turn)} {foot})"
        parts.append(clip + group(el("g", picture.svg, clip_path=f"url(#{name})"), transform=put))
    reach = math.sin(math.radians(2 * lean if across else lean))
    more = 0.5 * tall * reach + 0.35 * wide if across else tall * reach + apart
    bx0, by0, bx1, by1 = picture.bbox
    box = (bx0 - more, by0, bx1 + more, by1)
    return replace(picture, svg="".join(parts), bbox=box)


def _squashed(picture: Picture, share: float) -> Picture:
    def lower(box: Box) -> Box:
        return (box[0], box[1] * share, box[2], box[3] * share)

    cx, cy, r = picture.head
    svg = group(picture.svg, transform=f"scale(1 {share:.4f})")
    return Picture(svg, lower(picture.bbox), lower(picture.solid), (cx, cy * share, r))


def _digest(svg: str) -> str:
    return hashlib.sha256(svg.encode()).hexdigest()[:12]


def _shapes(rows: Sequence[Mapping[str, Any]]) -> tuple[Shape, ...]:
    return tuple(read_shape(head, str(geometry)) for entry in rows for head, geometry in entry.items())


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
    return _Mark(row["at"], row.get("mirrored", True), _shapes(row["shapes"]))


def _data(name: str) -> Mapping[str, Any]:
    return load_table("pictograms", name)
