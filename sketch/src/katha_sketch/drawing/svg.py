"""Small SVG builders. Every helper returns a string; coordinates are floats in the caller's units, y down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from katha_sketch.drawing.style import INK, OUTLINE, PAPER

__all__ = ["border", "canvas", "circle", "el", "ellipse", "group", "line", "number", "path", "points", "polygon",
           "rasterise", "rect", "smooth", "trace"]  # fmt: skip

Point = tuple[float, float]


def number(value: float) -> str:
    """`value` with at most two decimals and no trailing zeros ("3", "-0.5"), so that output is the same everywhere."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def el(tag: str, *children: str, **attributes: str | float | None) -> str:
    """One element. `stroke_width=2` becomes `stroke-width="2"`; attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{value if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>" if children else f"<{tag}{written}/>"


def group(*children: str, transform: str | None = None, opacity: float | None = None) -> str:
    """A `<g>` around `children`; nothing at all when they are empty."""
    inner = "".join(children)
    return el("g", inner, transform=transform, opacity=opacity) if inner else ""


def path(
    d: str, *, fill: str | None = "none", stroke: str | None = INK, width: float = OUTLINE, opacity: float | None = None
) -> str:
    """A path with round caps and joins; `stroke=None` draws the fill alone."""
    if stroke is None:
        return el("path", d=d, fill=fill, fill_opacity=opacity)
    return el(
        "path",
        d=d,
        fill=fill,
        stroke=stroke,
        stroke_width=width,
        stroke_linecap="round",
        stroke_linejoin="round",
        fill_opacity=opacity,
        stroke_opacity=opacity,
    )


def points(pairs: Iterable[Point]) -> str:
    """`x,y x,y ...` as paths and polygons write it."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in pairs)


def trace(*steps: str | Point) -> str:
    """Path data from commands and points: `trace("M", (0, 0), "Q", (5, 9), (10, 0), "Z")`."""
    return " ".join(step if isinstance(step, str) else points((step,)) for step in steps)


def line(*pairs: Point, stroke: str = INK, width: float = OUTLINE) -> str:
    """An open line through `pairs`."""
    return path(f"M{points(pairs)}", stroke=stroke, width=width)


def polygon(pairs: Sequence[Point], *, fill: str = "none", stroke: str | None = INK, width: float = OUTLINE) -> str:
    """A closed straight-edged shape."""
    return path(f"M{points(pairs)}Z", fill=fill, stroke=stroke, width=width)


def smooth(
    pairs: Sequence[Point], *, closed: bool = True, fill: str = "none", stroke: str | None = INK, width: float = OUTLINE
) -> str:
    """A soft curve through `pairs` (Catmull-Rom written as cubic Beziers); `closed` joins the last to the first."""
    n = len(pairs)

    def at(i: int) -> Point:
        return pairs[i % n] if closed else pairs[min(max(i, 0), n - 1)]

    d = f"M{points(pairs[:1])}"
    for i in range(n if closed else n - 1):
        (ax, ay), (bx, by), (cx, cy), (ex, ey) = at(i - 1), at(i), at(i + 1), at(i + 2)
        first = (bx + (cx - ax) / 6, by + (cy - ay) / 6)
        second = (cx - (ex - bx) / 6, cy - (ey - by) / 6)
        d += f"C{points((first, second, (cx, cy)))}"
    return path(d + ("Z" if closed else ""), fill=fill, stroke=stroke, width=width)


def circle(
    cx: float, cy: float, r: float, *, fill: str = "none", stroke: str | None = INK, width: float = OUTLINE
) -> str:
    """A circle."""
    return el("circle", cx=cx, cy=cy, r=r, fill=fill, stroke=stroke, stroke_width=width if stroke else None)


def ellipse(
    cx: float,
    cy: float,
    rx: float,
    ry: float,
    *,
    turn: float = 0.0,
    fill: str = "none",
    stroke: str | None = INK,
    width: float = OUTLINE,
) -> str:
    """An ellipse, turned `turn` degrees clockwise about its centre."""
    return el(
        "ellipse",
        cx=cx,
        cy=cy,
        rx=rx,
        ry=ry,
        fill=fill,
        stroke=stroke,
        stroke_width=width if stroke else None,
        transform=f"rotate({number(turn)} {number(cx)} {number(cy)})" if turn else None,
    )


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    round_: float = 0.0,
    fill: str = "none",
    stroke: str | None = INK,
    line_width: float = OUTLINE,
) -> str:
    """A rectangle with corner radius `round_`."""
    return el(
        "rect",
        x=x,
        y=y,
        width=width,
        height=height,
        rx=round_ or None,
        fill=fill,
        stroke=stroke,
        stroke_width=line_width if stroke else None,
        stroke_linejoin="round" if stroke else None,
    )


def canvas(drawing: str, width: int, height: int, **attributes: str) -> str:
    """A drawing as a whole SVG of `width` x `height` pixels, with further attributes of its root."""
    return el(
        "svg",
        drawing,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        **attributes,
    )


def border(width: int, height: int) -> str:
    """A margin of paper with a thin ink line inside it."""
    m = max(2.0, height * 0.014)
    r = m * 1.6
    hole = (
        f"M0,0H{width}V{height}H0Z M{number(m + r)},{number(m)}H{number(width - m - r)}"
        f"q{number(r)},0 {number(r)},{number(r)}"
        f"V{number(height - m - r)}q0,{number(r)} {number(-r)},{number(r)}H{number(m + r)}"
        f"q{number(-r)},0 {number(-r)},{number(-r)}V{number(m + r)}q0,{number(-r)} {number(r)},{number(-r)}Z"
    )
    return el("path", d=hole, fill=PAPER, fill_rule="evenodd", stroke=INK, stroke_width=max(1.0, height * 0.0045))


def rasterise(svg: str, width: int, height: int) -> bytes:
    """PNG bytes of `width` x `height` pixels: the same for the same SVG, with no metadata."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, height=height, skip_system_fonts=True))
