"""A pictogram in the sketch's style: its flat colours a little softer, an ink outline around the whole."""

from __future__ import annotations

import colorsys
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO

from PIL import Image

from katha_sketch.drawing.pictograms.data import Pictogram, pictogram
from katha_sketch.drawing.props.shapes import Shape, read_shape
from katha_sketch.drawing.settings.stage import tint
from katha_sketch.drawing.style import INK, OUTLINE, PAPER
from katha_sketch.drawing.svg import canvas, el, group, number, rasterise
from katha_sketch.drawing.tables import load_table

__all__ = ["Box", "Picture", "draw_pictogram", "draw_shapes", "draw_stand_in", "recoloured", "stage_height", "tipped"]

Box = tuple[float, float, float, float]

_CM = 1.7
"""Centimetres in a unit of the stage: an adult of 170 is 100 units tall."""
_SMALL, _SMALLEST, _TALL = 17.0, 8.0, 110.0
_SHRINKS, _GROWS = 0.35, 0.42
"""Small things are drawn larger than life and large ones smaller, by these powers beyond the limits above."""
_SOFT = 0.1
"""Share of paper in a pictogram's colours: emoji are brighter than the sketch."""
_THINNEST = 0.5


@dataclass(frozen=True)
class Picture:
    """A drawing in stage units: y down, its foot at (0, 0). `bbox` holds everything drawn, `solid` the thing itself.

    `head` is the circle (cx, cy, r) by which marks and the camera find its face.
    """

    svg: str
    bbox: Box
    solid: Box
    head: tuple[float, float, float]


def stage_height(cm: float) -> float:
    """Units of the stage for a thing of `cm` centimetres: true between a cat and a person, gentler beyond both."""
    units = cm / _CM
    if units < _SMALL:
        return max(_SMALLEST, _SMALL * float((units / _SMALL) ** _SHRINKS))
    return units if units <= _TALL else _TALL * float((units / _TALL) ** _GROWS)


def draw_pictogram(name: str, height: float, *, facing: int = 1, turn: float = 0.0, squash: float = 1.0) -> Picture:
    """The pictogram `name`, `height` units tall, its foot at (0, 0).

    `facing` is 1 (right) or -1 (left) and mirrors what looks to a side. `turn` leans or tips it (clockwise, degrees);
    it still touches the ground. `squash` is its height beside its own.

    Raises:
        RenderError: no pictogram of that id.
    """
    found = pictogram(name)
    x0, y0, x1, y1 = found.box
    scale = height / (y1 - y0)
    mirrored = found.faces != "front" and (found.faces == "right") != (facing > 0)
    wide, tall = (x1 - x0) * scale, height * squash
    put = (
        f"scale({number(-scale if mirrored else scale)} {number(scale * squash)})"
        if scale > 0.2
        else f"scale({-scale if mirrored else scale:.4f} {scale * squash:.4f})"
    )
    inner = group(_outlined(found, scale, height), transform=f"{put} translate({number(-(x0 + x1) / 2)} {number(-y1)})")
    box = (-wide / 2, -tall, wide / 2, 0.0)
    if turn:
        lift = _resting(wide, tall, turn)
        inner = group(inner, transform=f"translate(0 {number(lift)}) rotate({number(turn)} 0 {number(-tall / 2)})")
        box = _turned(box, turn, lift)
    bx0, by0, bx1, by1 = box
    r = min(bx1 - bx0, by1 - by0) * 0.32
    ahead = facing * 0.22 * (bx1 - bx0) if found.kind == "animal" and found.faces != "front" else 0.0
    return Picture(inner, box, box, ((bx0 + bx1) / 2 + ahead, by0 + r * 1.1, r))


def draw_shapes(shapes: Sequence[Shape], height: float, facing: int = 1) -> Picture:
    """Shapes as a pictogram is drawn: `height` units tall with their foot at (0, 0), an outline around the whole."""
    drawn = [shape.at(0.0) for shape in shapes]
    x0s, y0s, x1s, y1s = zip(*(box for _, box in drawn), strict=True)
    x0, y0, x1, y1 = min(x0s), min(y0s), max(x1s), max(y1s)
    scale, svg = height / (y1 - y0), "".join(svg for svg, _ in drawn)
    line = 1.6 * _weight(height) / scale
    under = el("g", svg, stroke=INK, stroke_width=f"{line:.3f}", stroke_linejoin="round")
    put = f"scale({facing * scale:.4f} {scale:.4f}) translate({number(-(x0 + x1) / 2)} {number(-y1)})"
    wide = (x1 - x0) * scale
    box = (-wide / 2, -height, wide / 2, 0.0)
    return Picture(group(under + tint(svg, PAPER, _SOFT), transform=put), box, box, (0.0, -0.7 * height, 0.25 * height))


def tipped(picture: Picture, turn: float) -> Picture:
    """A picture turned about its middle (clockwise, degrees) and put down on the ground again."""
    x0, y0, x1, y1 = picture.solid
    wide, tall = x1 - x0, y1 - y0
    lift = _resting(wide, tall, turn)
    put = f"translate(0 {number(lift)}) rotate({number(turn)} {number((x0 + x1) / 2)} {number((y0 + y1) / 2)})"
    box = _turned((-wide / 2, -tall, wide / 2, 0.0), turn, lift)
    cx, cy = (x0 + x1) / 2, (box[1] + box[3]) / 2
    box = (box[0] + cx, box[1], box[2] + cx, box[3])
    return Picture(group(picture.svg, transform=put), box, box, (cx, cy, picture.head[2]))


def draw_stand_in(kind: str, cm: float) -> Picture:
    """What shows the kind and size of a thing that the set does not have: wheels, a lid, pages, and no special thing.

    Its rows are in stand_ins.yaml; a kind that has none is a bundle.
    """
    return draw_shapes(
        _stand_in(kind if kind in load_table("pictograms", "stand_ins.yaml") else "thing"), stage_height(cm)
    )


@cache
def _stand_in(kind: str) -> tuple[Shape, ...]:
    rows = load_table("pictograms", "stand_ins.yaml")[kind]
    return tuple(read_shape(head, str(geometry)) for row in rows for head, geometry in row.items())


def _outlined(found: Pictogram, scale: float, height: float) -> str:
    """The drawing twice: once with a stroke for the outline around the whole, once without on top of it."""
    line = 1.6 * _weight(height) / scale
    under = "".join(
        el("g", svg, transform=put or None, stroke=INK, stroke_width=f"{line / larger:.3f}", stroke_linejoin="round")
        for svg, put, larger in found.layers
    )
    return under + "".join(tint(group(svg, transform=put or None), PAPER, _SOFT) for svg, put, _ in found.layers)


def _weight(height: float) -> float:
    return OUTLINE * min(1.25, max(_THINNEST, math.sqrt(height / 100)))


def _resting(wide: float, tall: float, turn: float) -> float:
    """How far down a picture turned about its middle must go to touch the ground again."""
    angle = math.radians(turn)
    reach = (abs(math.sin(angle)) * wide + abs(math.cos(angle)) * tall) / 2
    return tall / 2 - reach


def _turned(box: Box, turn: float, lift: float) -> Box:
    x0, y0, x1, y1 = box
    wide, tall, angle = x1 - x0, y1 - y0, math.radians(turn)
    across = (abs(math.cos(angle)) * wide + abs(math.sin(angle)) * tall) / 2
    down = (abs(math.sin(angle)) * wide + abs(math.cos(angle)) * tall) / 2
    middle = -tall / 2 + lift
    return (-across, middle - down, across, middle + down)


_FILL = re.compile(r'(?<=fill=")#[0-9a-fA-F]{6}(?=")')
_COLOUR = re.compile(r'(?:(?<=fill=")|(?<=stroke="))#[0-9a-fA-F]{6}(?=")')
_PIXELS = 48
_GREY, _BLACK, _KIN = 0.16, 0.3, 0.12
"""Less saturated than the first is grey, darker than the second a line or a shadow; hues no further apart than the
third (of the circle) are one colour."""
_RELIEF = 0.7
"""Share of a shade's distance from the main colour's lightness that is kept."""


def recoloured(svg: str, colour: str, box: Box) -> str:
    """The drawing in `box` with its main colour, the one of the largest part that is neither grey nor nearly black,
    replaced; of a drawing in greys the light ones are."""
    fills = list(dict.fromkeys(_FILL.findall(svg)))
    main = _largest(svg, tuple(fills), box) or next(
        (fill for fill in fills if _hls(fill)[2] > _GREY and _hls(fill)[1] > 0.5 * _BLACK), None
    )
    main = main or next((fill for fill in fills if _hls(fill)[1] > _BLACK), None)
    if main is None:
        return svg
    every = dict.fromkeys(_COLOUR.findall(svg))
    swaps = {one: _shade(one, main, colour) for one in every if one != INK and _akin(one, main)}
    return _COLOUR.sub(lambda found: swaps.get(found.group(), found.group()), svg)


@lru_cache(maxsize=256)
def _largest(svg: str, fills: tuple[str, ...], box: Box) -> str | None:
    """The fill, with those akin to it, that covers most of a drawing."""
    x0, y0, x1, y1 = box
    by = _PIXELS / max(x1 - x0, y1 - y0, 1.0)
    put = group(svg, transform=f"scale({by:.4f}) translate({number(-x0)} {number(-y0)})")
    picture = Image.open(BytesIO(rasterise(canvas(put, _PIXELS, _PIXELS), _PIXELS, _PIXELS))).convert("RGB")
    pixels = picture.tobytes()
    seen = Counter(f"#{pixels[at : at + 3].hex()}" for at in range(0, len(pixels), 3))
    hued = [fill for fill in fills if _hls(fill)[2] > _GREY and _hls(fill)[1] > 0.5 * _BLACK]
    covers = {one: sum(seen[fill.lower()] for fill in hued if _akin(fill, one)) for one in hued}
    return max(hued, key=lambda one: (covers[one], seen[one.lower()]), default=None)


@cache
def _hls(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)


def _akin(fill: str, main: str) -> bool:
    (hue, light, rich), (own, _, own_rich) = _hls(fill), _hls(main)
    if own_rich <= _GREY:
        return rich <= _GREY and light > _BLACK
    apart = abs(hue - own)
    return rich > _GREY and min(apart, 1 - apart) <= _KIN


def _shade(fill: str, main: str, colour: str) -> str:
    hue, light, rich = _hls(colour)
    light = min(0.97, max(0.06, light + _RELIEF * (_hls(fill)[1] - _hls(main)[1])))
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, light, rich))
