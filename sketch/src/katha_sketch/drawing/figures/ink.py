"""A pen that draws in a figure's own units, applies transforms to the points themselves, and keeps the drawing's
bounding box.

Every shape becomes one SVG `<path>` in the figure's final coordinates, so the box is known without parsing SVG and a
line keeps
its weight however much its part of the figure is scaled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from katha_sketch.drawing.style import INK, OUTLINE, colour

__all__ = ["Box", "Ink", "Point"]

Point = tuple[float, float]
Box = tuple[float, float, float, float]
Segment = tuple[str, tuple[Point, ...]]

_ROUND = 0.5523  # how far the handles of a cubic reach to imitate a quarter of a circle
_TOKEN = re.compile(r"[MLQCZ]|-?\d*\.?\d+(?:e[-+]?\d+)?")


@lru_cache(maxsize=4096)
def parse_path(d: str) -> tuple[Segment, ...]:
    """Read an absolute path made of M, L, Q, C and Z into its segments; repeated point groups repeat the command."""
    sizes = {"M": 1, "L": 1, "Q": 2, "C": 3}
    segments: list[Segment] = []
    command, numbers = "M", []
    for token in _TOKEN.findall(d):
        if token in sizes:
            command = token
        elif token == "Z":
            segments.append(("Z", ()))
        else:
            numbers.append(float(token))
            if len(numbers) == 2 * sizes[command]:
                points = tuple(zip(numbers[::2], numbers[1::2], strict=True))
                segments.append((command, points))
                command, numbers = ("L" if command == "M" else command), []
    return tuple(segments)


@dataclass
class Sheet:
    """What several pens have drawn so far: SVG elements and the box around them (figure units, line widths
    included)."""

    parts: list[str] = field(default_factory=list)
    box: Box | None = None

    def grow(self, points: Iterable[Point], margin: float) -> None:
        """Extend the box by these points, each with `margin` around it."""
        xs, ys = zip(*points, strict=True)
        x0, y0, x1, y1 = min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin
        if self.box is not None:
            x0, y0 = min(x0, self.box[0]), min(y0, self.box[1])
            x1, y1 = max(x1, self.box[2]), max(y1, self.box[3])
        self.box = (x0, y0, x1, y1)


@dataclass(frozen=True)
class Ink:
    """A pen with a transform `matrix` (a, b, c, d, e, f as in SVG) and a line `weight`; children share its sheet.

    Colours are palette names or `#rrggbb`. Stroke widths are multiples of the outline, so `width=1` is the ordinary
    ink line wherever it is drawn.
    """

    sheet: Sheet = field(default_factory=Sheet)
    matrix: tuple[float, float, float, float, float, float] = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    weight: float = OUTLINE

    def at(self, x: float = 0.0, y: float = 0.0, angle: float = 0.0, sx: float = 1.0, sy: float | None = None) -> Ink:
        """A pen whose origin is (x, y) of this one, turned by `angle` degrees (clockwise on screen), scaled by sx,
        sy."""
        a, b, c, d, e, f = self.matrix
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        sy = sx if sy is None else sy
        p, q, r, s = cos * sx, sin * sx, -sin * sy, cos * sy
        matrix = (a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s, a * x + c * y + e, b * x + d * y + f)
        return replace(self, matrix=matrix)

    def map(self, x: float, y: float) -> Point:
        """Where this pen's point (x, y) lies in the figure."""
        a, b, c, d, e, f = self.matrix
        return (a * x + c * y + e, b * x + d * y + f)

    @property
    def scale(self) -> float:
        """How many figure units one unit of this pen is (geometric mean of both directions)."""
        a, b, c, d, _, _ = self.matrix
        return math.sqrt(abs(a * d - b * c))

    def _put(
        self, segments: Sequence[Segment], fill: str, stroke: str, weight: float, dash: str = "", opacity: float = 1.0
    ) -> None:
        points: list[Point] = []
        words: list[str] = []
        for command, group in segments:
            words.append(command)
            for x, y in group:
                u, v = self.map(x, y)
                points.append((u, v))
                words.append(f"{u:.2f},{v:.2f}")
        self.sheet.grow(points, weight / 2)
        fill = fill if fill == "none" else colour(fill)
        pen = f' stroke="{colour(stroke)}" stroke-width="{weight:.2f}"' if weight > 0 else ""
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        clear = f' opacity="{opacity:.2f}"' if opacity < 1 else ""
        self.sheet.parts.append(
            f'<path d="{" ".join(words)}" fill="{fill}"{pen}{dashed}{clear}'
            ' stroke-linecap="round" stroke-linejoin="round"/>'
        )

    def draw(self, d: str, fill: str = "none", stroke: str = INK, width: float = 1.0, opacity: float = 1.0) -> None:
        """Draw a path given as absolute M, L, Q, C, Z commands; `width=0` leaves the outline out."""
        self._put(parse_path(d), fill, stroke, width * self.weight, opacity=opacity)

    def ellipse(
        self,
        x: float,
        y: float,
        rx: float,
        ry: float | None = None,
        fill: str = "none",
        stroke: str = INK,
        width: float = 1.0,
        angle: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """An ellipse around (x, y); a circle when `ry` is left out."""
        ry = rx if ry is None else ry
        h, k = rx * _ROUND, ry * _ROUND
        segments: list[Segment] = [
            ("M", ((rx, 0),)),
            ("C", ((rx, k), (h, ry), (0, ry))),
            ("C", ((-h, ry), (-rx, k), (-rx, 0))),
            ("C", ((-rx, -k), (-h, -ry), (0, -ry))),
            ("C", ((h, -ry), (rx, -k), (rx, 0))),
            ("Z", ()),
        ]
        self.at(x, y, angle)._put(segments, fill, stroke, width * self.weight, opacity=opacity)

    def polygon(self, points: Sequence[Point], fill: str = "none", stroke: str = INK, width: float = 1.0) -> None:
        """A closed shape with straight sides."""
        segments = [("M" if i == 0 else "L", (p,)) for i, p in enumerate(points)]
        self._put([*segments, ("Z", ())], fill, stroke, width * self.weight)

    def line(self, points: Sequence[Point], stroke: str = INK, width: float = 1.0, dash: str = "") -> None:
        """A stroke through the points, straight between them; round ends."""
        segments = [("M" if i == 0 else "L", (p,)) for i, p in enumerate(points)]
        self._put(segments, "none", stroke, width * self.weight, dash)

    def blob(self, points: Sequence[Point], fill: str = "none", stroke: str = INK, width: float = 1.0) -> None:
        """A closed smooth shape through the points (Catmull-Rom)."""
        count = len(points)
        segments: list[Segment] = [("M", (points[0],))]
        for i in range(count):
            p0, p1, p2, p3 = (points[(i + k) % count] for k in (-1, 0, 1, 2))
            segments.append(("C", (_handle(p1, p0, p2), _handle(p2, p3, p1), p2)))
        self._put([*segments, ("Z", ())], fill, stroke, width * self.weight)

    def bundle(
        self, circles: Sequence[tuple[float, float, float]], fill: str, stroke: str = INK, width: float = 1.0
    ) -> None:
        """The smooth hull around circles (x, y, r): a trunk from shoulder and hip, a skirt from hip and knees."""
        rim = [
            (x + r * math.cos(k * math.pi / 6), y + r * math.sin(k * math.pi / 6))
            for x, y, r in circles
            for k in range(12)
        ]
        self.polygon(_hull(rim), fill=fill, stroke=stroke, width=width)

    def limb(self, points: Sequence[Point], thick: float, fill: str, stroke: str = INK, taper: float = 1.0) -> None:
        """A rounded tube of `thick` units along the points (three points bend smoothly), with an outline of normal
        weight.

        `taper` below 1 makes the second half thinner.
        """
        a, b, c = points if len(points) == 3 else (points[0], _middle(points[0], points[1]), points[1])
        bend: list[Segment] = [("M", (a,)), ("L", (_middle(a, b),)), ("Q", (b, _middle(b, c))), ("L", (c,))]
        core = thick * self.scale
        tail: list[Segment] = [("M", (_middle(a, b),)), ("Q", (b, _middle(b, c))), ("L", (c,))]
        thin = core * taper
        if taper < 1:
            head: list[Segment] = [("M", (a,)), ("L", (_middle(a, b),))]
            self._put(tail, "none", stroke, thin + self.weight)
            self._put(head, "none", stroke, core + self.weight)
            self._put(tail, "none", fill, thin - self.weight)
            self._put(head, "none", fill, core - self.weight)
        else:
            self._put(bend, "none", stroke, core + self.weight)
            self._put(bend, "none", fill, core - self.weight)


def _hull(points: Sequence[Point]) -> list[Point]:
    """The convex hull (Andrew's monotone chain)."""
    ordered = sorted(points)
    rims: list[list[Point]] = []
    for run in (ordered, ordered[::-1]):
        rim: list[Point] = []
        for p in run:
            while len(rim) > 1 and _left(rim[-2], rim[-1], p) <= 0:
                rim.pop()
            rim.append(p)
        rims.append(rim[:-1])
    return rims[0] + rims[1]


def _left(o: Point, a: Point, b: Point) -> float:
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def _middle(a: Point, b: Point) -> Point:
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _handle(at: Point, before: Point, after: Point) -> Point:
    return (at[0] + (after[0] - before[0]) / 6, at[1] + (after[1] - before[1]) / 6)
