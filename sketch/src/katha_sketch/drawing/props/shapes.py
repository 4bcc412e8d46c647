"""One shape of a drawing, as the vocabulary writes it: `- ellipse red thin turn=20: 0 -10 8 5`.

Before the colon stand the kind, the colour and any options; behind it the geometry, in local units with y down.

    kind      geometry                       colour is
    path      SVG path data, M L H V C Q Z   the fill
    ellipse   cx cy rx ry                    the fill
    rect      x y width height [corner]      the fill
    polygon   x y x y x y ...                the fill
    line      x y x y ... or path data       the stroke, of the weight's width
    tube      x y x y ... or path data       a rod or rope `size` wide, outlined in ink

A colour is `ink`, `paper`, `none` or a name of the palette, with `+` (lighter) or `-` (darker) behind it, repeated for
more. Options: a weight of the outline (`bare`, `hair`, `thin`, `normal`, `bold`), `size=N` for a tube, `turn=DEGREES`
about the shape's middle or `at=X,Y`, and `sway=DEGREES` about (0, 0) or `at`, to and fro with the phase.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from katha_sketch.drawing import svg
from katha_sketch.drawing.props.outline import Point, box, path_points, rotated
from katha_sketch.drawing.style import COLOURS, HAIRLINE, INK, OUTLINE, PAPER, colour, darker, lighter

__all__ = ["Shape", "read_shape"]

_WEIGHTS = {"bare": 0.0, "hair": 1.0, "thin": HAIRLINE, "normal": OUTLINE, "bold": OUTLINE * 1.5}
_FIXED = {"ink": INK, "paper": PAPER, "none": "none"}
_STROKED = ("line", "tube")
_ROUND = 0.5523
"""Control points of four cubic curves that look like a circle."""


@dataclass(frozen=True)
class Shape:
    """A shape ready to be drawn: `points` are what its geometry covers, `reach` half of its stroke's width."""

    svg: str
    points: tuple[Point, ...]
    reach: float
    sway: float
    pivot: Point

    def at(self, phase: float) -> tuple[str, tuple[float, float, float, float]]:
        """The SVG and the box (x0, y0, x1, y1) at `phase` of a cycle of 1."""
        if not self.sway:
            return self.svg, box(self.points, self.reach)
        degrees = self.sway * math.sin(2 * math.pi * phase)
        turned = svg.group(self.svg, transform=_rotation(degrees, self.pivot))
        return turned, box(rotated(self.points, degrees, self.pivot), self.reach)


def read_shape(head: str, geometry: str) -> Shape:
    """The shape written as `head: geometry`.

    Raises:
        ValueError: what is wrong with it, in words to be shown behind the shape's place.
    """
    kind, fill, options = _head(head)
    data = _KINDS[kind](geometry)
    points = path_points(data)
    if not points:
        raise ValueError("no geometry behind the colon")
    pivot = _pair(options["at"]) if "at" in options else None
    drawn, reach = _drawn(kind, data, fill, options)
    turn = _number(options.get("turn", "0"))
    if turn:
        centre = pivot or _middle(points)
        drawn = svg.group(drawn, transform=_rotation(turn, centre))
        points = rotated(points, turn, centre)
    return Shape(drawn, tuple(points), reach, _number(options.get("sway", "0")), pivot or (0.0, 0.0))


def _head(head: str) -> tuple[str, str, Mapping[str, str]]:
    kind, *words = head.split()
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is not a kind of shape; write one of {', '.join(_KINDS)}")
    if not words:
        raise ValueError(f"a colour must follow {kind!r}")
    options: dict[str, str] = {}
    for word in words[1:]:
        name, _, value = ("weight", "", word) if word in _WEIGHTS else word.partition("=")
        if name not in ("weight", "size", "turn", "sway", "at") or not value:
            raise ValueError(f"{word!r} is not an option; write {', '.join(_WEIGHTS)}, size=, turn=, sway= or at=")
        options[name] = value
    return kind, _colour(words[0]), options


def _drawn(kind: str, data: str, fill: str, options: Mapping[str, str]) -> tuple[str, float]:
    """The SVG of the shape before it is turned, and how far its stroke reaches beyond its geometry."""
    width = _WEIGHTS[options.get("weight", "normal")]
    if kind == "tube":
        size = _number(options.get("size", "6"))
        outer = svg.path(data, width=size + width)
        return outer + svg.path(data, stroke=fill, width=size - width), (size + width) / 2
    if kind in _STROKED:
        return svg.path(data, stroke=fill, width=width), width / 2
    return svg.path(data, fill=fill, stroke=INK if width else None, width=width), width / 2


def _colour(name: str) -> str:
    plain = name.rstrip("+-")
    if name in _FIXED:
        return _FIXED[name]
    if plain not in COLOURS:
        raise ValueError(f"unknown colour {name!r}; the palette has {', '.join((*_FIXED, *COLOURS))}")
    value = colour(plain)
    for sign in name[len(plain) :]:
        value = lighter(value) if sign == "+" else darker(value)
    return value


def _path(geometry: str) -> str:
    return " ".join(geometry.split())


def _ellipse(geometry: str) -> str:
    cx, cy, rx, ry = _numbers(geometry, 4)
    kx, ky = rx * _ROUND, ry * _ROUND
    quarters = [
        [(cx + rx, cy + ky), (cx + kx, cy + ry), (cx, cy + ry)],
        [(cx - kx, cy + ry), (cx - rx, cy + ky), (cx - rx, cy)],
        [(cx - rx, cy - ky), (cx - kx, cy - ry), (cx, cy - ry)],
        [(cx + kx, cy - ry), (cx + rx, cy - ky), (cx + rx, cy)],
    ]
    return f"M{svg.points([(cx + rx, cy)])}" + "".join(f"C{svg.points(quarter)}" for quarter in quarters) + "Z"


def _rect(geometry: str) -> str:
    x, y, width, height, *corner = _numbers(geometry, 4, 5)
    r = min(corner[0], width / 2, height / 2) if corner else 0.0
    x1, y1 = x + width, y + height
    if not r:
        return f"M{svg.points([(x, y), (x1, y), (x1, y1), (x, y1)])}Z"
    corners = [
        ((x1 - r, y), (x1, y), (x1, y + r)),
        ((x1, y1 - r), (x1, y1), (x1 - r, y1)),
        ((x + r, y1), (x, y1), (x, y1 - r)),
        ((x, y + r), (x, y), (x + r, y)),
    ]
    start = svg.points([(x + r, y)])
    return f"M{start}" + "".join(f"L{svg.points([a])}Q{svg.points([b, c])}" for a, b, c in corners) + "Z"


def _polygon(geometry: str) -> str:
    return f"{_line(geometry)}Z"


def _line(geometry: str) -> str:
    if geometry.lstrip().startswith("M"):
        return _path(geometry)
    numbers = _numbers(geometry)
    if len(numbers) < 4 or len(numbers) % 2:
        raise ValueError(f"points are pairs of x and y, two pairs at least, not {len(numbers)} numbers")
    return f"M{svg.points(zip(numbers[::2], numbers[1::2], strict=True))}"


_KINDS: Mapping[str, Callable[[str], str]] = {
    "path": _path,
    "ellipse": _ellipse,
    "rect": _rect,
    "polygon": _polygon,
    "line": _line,
    "tube": _line,
}


def _numbers(geometry: str, *counts: int) -> list[float]:
    numbers = [_number(word) for word in geometry.replace(",", " ").split()]
    if counts and len(numbers) not in counts:
        raise ValueError(f"{' or '.join(map(str, counts))} numbers wanted, not {len(numbers)}")
    return numbers


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{word!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{word!r} is not a finite number")
    return value


def _pair(text: str) -> Point:
    x, y = _numbers(text, 2)
    return x, y


def _middle(points: Sequence[Point]) -> Point:
    x0, y0, x1, y1 = box(points)
    return (x0 + x1) / 2, (y0 + y1) / 2


def _rotation(degrees: float, pivot: Point) -> str:
    return f"rotate({svg.number(degrees)} {svg.number(pivot[0])} {svg.number(pivot[1])})"
