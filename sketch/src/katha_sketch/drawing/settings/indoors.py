"""Insides: walls, floors, windows, shelves, a hearth, roof timbers, arches, pillars, a carpet, the mouth of a cave."""

from __future__ import annotations

from itertools import pairwise

from katha_sketch.drawing.settings.air import opening, through
from katha_sketch.drawing.settings.stage import HEIGHT, LINE, Stage, spread
from katha_sketch.drawing.style import colour, darker, lighter
from katha_sketch.drawing.svg import circle, ellipse, line, path, points, polygon, rect, trace

__all__ = [
    "arches",
    "beams",
    "carpet",
    "cave_mouth",
    "floor",
    "hearth",
    "pane",
    "picture",
    "pillars",
    "shelves",
    "straw",
    "wall",
]


def wall(stage: Stage, *, fill: str = "cream", marks: str = "", skirting: str = "") -> str:
    """The back wall down to the horizon; `marks`: "planks", "dots" or "tiles"."""
    base, tone = (
        rect(-60, -60, stage.width + 120, stage.horizon + 60, fill=colour(fill), line_width=LINE),
        darker(fill, 0.14),
    )
    drawn = _WALLS[marks](stage, tone) if marks else ""
    if skirting:
        drawn += rect(-60, stage.horizon - 16, stage.width + 120, 16, fill=colour(skirting), line_width=LINE)
    return base + drawn


def _planks(stage: Stage, tone: str) -> str:
    return path(
        "".join(f"M{x},-40V{stage.horizon:.0f}" for x in range(0, int(stage.width) + 60, 46)), stroke=tone, width=3
    )


def _dots(stage: Stage, tone: str) -> str:
    return "".join(
        circle(x + (24 if row % 2 else 0), 26 + row * 40, 4, fill=tone, stroke=None)
        for row in range(int(stage.horizon // 40))
        for x in range(12, int(stage.width) + 40, 48)
    )


def _tiles(stage: Stage, tone: str) -> str:
    top = stage.horizon - 130
    rows = "".join(f"M-60,{top + 32 * i:.0f}H{stage.width + 60:.0f}" for i in range(4))
    columns = "".join(f"M{x},{top:.0f}V{stage.horizon:.0f}" for x in range(0, int(stage.width) + 60, 32))
    band = rect(-60, top, stage.width + 120, 130, fill=colour("teal"), line_width=LINE)
    return band + path(rows + columns, stroke=lighter("teal", 0.5), width=2.4)


_WALLS = {"planks": _planks, "dots": _dots, "tiles": _tiles}


def floor(stage: Stage, *, fill: str = "tan", marks: str = "boards") -> str:
    """The floor from the horizon down; `marks`: "boards", "checks" or ""."""
    top, w = stage.horizon, stage.width
    parts = [rect(-60, top, w + 120, HEIGHT - top + 60, fill=colour(fill), line_width=LINE)]
    if marks == "boards":
        ends = range(-8, 9)
        d = "".join(trace("M", (w / 2 + i * w / 11, top), "L", (w / 2 + i * w / 5.5, HEIGHT + 40)) for i in ends)
        parts.append(path(d, stroke=darker(fill, 0.2), width=2.4))
    if marks == "checks":
        parts.extend(_checks(stage, fill))
    return "".join(parts)


def _checks(stage: Stage, fill: str) -> list[str]:
    w, top, parts = stage.width, stage.horizon, []
    ys = [top + (HEIGHT + 40 - top) * share for share in (0.0, 0.12, 0.28, 0.5, 0.78, 1.1)]

    def at(column: int, y: float) -> tuple[float, float]:
        return w / 2 + column * w / 11 * (1 + 1.1 * (y - top) / (HEIGHT - top)), y

    for row, (a, b) in enumerate(pairwise(ys)):
        for column in range(-8, 9):
            if (row + column) % 2:
                corners = [at(column, a), at(column + 1, a), at(column + 1, b), at(column, b)]
                parts.append(polygon(corners, fill=darker(fill, 0.22), stroke=None))
    return parts


def pane(stage: Stage, *, x: float = 0.72, y: float = 60, width: float = 130, height: float = 140, frame: str = "brown",
         shape: str = "square", curtain: str = "") -> str:  # fmt: skip
    """A window with the sky in it, `x` (0..1) across; the seed may put it on the other side. `shape`: square, arch."""
    share = x if stage.rng.random() < 0.5 else 1 - x
    left = stage.width * share - width / 2
    parts = [rect(left - 9, y - 9, width + 18, height + 18, fill=colour(frame), line_width=LINE)]
    parts.append(opening(stage, left, y, width, height))
    parts.append(path(f"M{points([(left + width / 2, y)])}v{height}M{points([(left, y + height / 2)])}h{width}",
                      stroke=colour(frame), width=6))  # fmt: skip
    if curtain:
        for sign in (-1, 1):
            edge = left + width / 2 + sign * (width / 2 + 22)
            d = trace(
                "M",
                (edge, y - 22),
                "L",
                (edge - sign * 54, y - 22),
                "Q",
                (edge - sign * 48, y + height * 0.6),
                (edge - sign * 8, y + height + 24),
                "L",
                (edge + sign * 6, y + height + 24),
                "Z",
            )
            parts.append(path(d, fill=colour(curtain), width=LINE))
        parts.append(line((left - 40, y - 24), (left + width + 40, y - 24), width=6))
    return "".join(parts)


def picture(stage: Stage, *, x: float = 0.5, y: float = 90, fill: str = "leaf") -> str:
    """A framed landscape on the wall."""
    left = stage.width * x - 36
    hill = trace("M", (left + 7, y + 44), "q", (18, -34), (36, 0), "q", (12, -18), (22, 0), "v5h-58Z")
    return rect(left, y, 72, 56, fill=colour("golden"), line_width=LINE) + rect(
        left + 7, y + 7, 58, 42, fill=colour("sky"), line_width=1.8
    ) + path(hill, fill=colour(fill), width=1.4)  # fmt: skip


def shelves(stage: Stage, *, x: float = 0.22, y: float = 96, rows: int = 2) -> str:
    """Wall shelves with crockery and hanging ladles."""
    left, parts = stage.width * x - 95, []
    for row in range(rows):
        base = y + row * 66
        for i, name in enumerate(("red", "blue", "white", "golden", "teal")):
            parts.append(rect(left + 12 + i * 36, base - 24, 24, 24, round_=6, fill=colour(name), line_width=1.8))
        parts.append(rect(left, base, 190, 9, fill=colour("brown"), line_width=LINE))
    for i in range(4):
        a, b = left + 24 + i * 46, y + (rows - 1) * 66 + 9
        parts.append(line((a, b), (a, b + 26), width=3) + circle(a, b + 34, 9, fill=colour("grey"), width=1.8))
    return "".join(parts)


def hearth(stage: Stage, *, x: float = 0.74, fill: str = "stone") -> str:
    """A big stone hearth with a hood, dark inside, logs without fire."""
    left, base = stage.width * x - 100, stage.horizon + 14
    hood = [(left + 50, -40), (left + 150, -40), (left + 205, base - 150), (left - 5, base - 150)]
    parts = [
        polygon(hood, fill=lighter(fill, 0.3), width=LINE),
        rect(left, base - 150, 200, 150, fill=colour(fill), line_width=LINE),
    ]
    d = trace(
        "M",
        (left + 34, base),
        (left + 34, base - 76),
        "Q",
        (left + 100, base - 140),
        (left + 166, base - 76),
        "L",
        (left + 166, base),
        "Z",
    )
    parts.append(path(d, fill=colour("black"), width=LINE))
    parts.extend(
        ellipse(left + 78 + i * 22, base - 10, 26, 8, turn=-12 + 12 * i, fill=colour("brown"), width=1.8)
        for i in range(3)
    )
    parts.append(rect(left - 14, base - 162, 228, 16, fill=colour("brown"), line_width=LINE))
    return "".join(parts)


def beams(stage: Stage, *, fill: str = "dark_brown", count: int = 3) -> str:
    """Roof timbers: a ridge, slanted rafters and heavy posts at the sides of each bay."""
    w, parts = stage.width, []
    for i in range(count + 1):
        x = w * i / count
        parts.append(rect(x - 13, -40, 26, stage.horizon + 46, fill=colour(fill), line_width=LINE))
    for i in range(count):
        a, b = w * i / count, w * (i + 1) / count
        for start, end in ((a, (a + b) / 2), (b, (a + b) / 2)):
            parts.append(
                line((start, 128), (end, 58), width=20) + line((start, 128), (end, 58), stroke=colour(fill), width=15)
            )
    parts.append(rect(-60, 38, w + 120, 24, fill=colour(fill), line_width=LINE))
    return "".join(parts)


def straw(stage: Stage, *, fill: str = "golden", count: int = 40) -> str:
    """Loose straw over the floor."""
    d = []
    for _ in range(count):
        x, y = stage.rng.uniform(0, stage.width), stage.horizon + 10 + stage.rng.random() * (HEIGHT - stage.horizon)
        d.append(trace("M", (x, y), "l", (stage.rng.uniform(-26, 26), stage.rng.uniform(-8, 8))))
    return path("".join(d), stroke=darker(fill, 0.1), width=3.4)


def arches(stage: Stage, *, count: int = 3) -> str:
    """A row of arches with the sky through them."""
    lit = stage.rng.randrange(count)
    step, base, parts = stage.width / count, stage.horizon + 6, []
    for i in range(count):
        a, b, top = i * step + 24, (i + 1) * step - 24, 110.0
        hole = trace(
            "M",
            (a, base),
            (a, top + 50),
            "Q",
            (a + 6, top),
            ((a + b) / 2, top - 46),
            "Q",
            (b - 6, top),
            (b, top + 50),
            "L",
            (b, base),
            "Z",
        )
        parts.append(path(hole, fill=through(stage), width=5))
        if i == lit:
            parts.append(opening(stage, a + 12, top + 24, b - a - 24, base - top - 60, hole=False))
    return "".join(parts)


def pillars(stage: Stage, *, fill: str = "cream", count: int = 3) -> str:
    """The pillars between `count` arches, with golden capitals and bases."""
    step, base, parts = stage.width / count, stage.horizon + 6, []
    for i in range(count + 1):
        x = i * step
        parts.append(rect(x - 20, 128, 40, base - 128, fill=lighter(fill, 0.3), line_width=LINE))
        parts.append(rect(x - 28, 112, 56, 18, fill=colour("golden"), line_width=LINE))
        parts.append(rect(x - 28, base - 14, 56, 18, fill=colour("golden"), line_width=LINE))
    return "".join(parts)


def carpet(stage: Stage, *, fill: str = "red", edge: str = "golden") -> str:
    """A long carpet from the horizon toward the viewer."""
    middle, top = stage.width / 2, stage.horizon + 4
    shape = [(middle - 66, top), (middle + 66, top), (middle + 190, HEIGHT + 40), (middle - 190, HEIGHT + 40)]
    trim = [(middle - 78, top), (middle + 78, top), (middle + 216, HEIGHT + 40), (middle - 216, HEIGHT + 40)]
    return polygon(trim, fill=colour(edge), width=LINE) + polygon(shape, fill=colour(fill), width=LINE)


def cave_mouth(stage: Stage, *, fill: str = "stone", spikes: int = 9) -> str:
    """Dark rock all round, a bright opening with the sky in it, and stalactites from the roof."""
    w = stage.width
    x, half = w * stage.rng.choice((0.36, 0.64)), w * 0.24
    dark = darker(fill, 0.52)
    parts = [rect(-60, -60, w + 120, stage.horizon + 70, fill=dark, stroke=None)]
    parts.append(opening(stage, x - half, 84, half * 2, stage.horizon - 84))
    hole = trace(
        "M",
        (x - half, stage.horizon),
        (x - half * 0.96, 190),
        "Q",
        (x - half * 0.5, 84),
        (x + 12, 92),
        "Q",
        (x + half * 0.9, 96),
        (x + half, 230),
        "L",
        (x + half * 0.9, stage.horizon),
        "Z",
    )
    box = trace(
        "M",
        (x - half - 6, 76),
        (x + half + 6, 76),
        (x + half + 6, stage.horizon + 2),
        (x - half - 6, stage.horizon + 2),
        "Z",
    )
    parts.append(path(box + hole, fill=dark, stroke=None).replace("<path ", '<path fill-rule="evenodd" '))
    parts.append(path(hole, width=LINE))
    for at in spread(stage, spikes, jitter=0.3):
        tall, wide = stage.rng.uniform(40, 92), stage.rng.uniform(14, 24)
        parts.append(polygon([(at - wide, -20), (at + wide, -20), (at, tall)], fill=darker(fill, 0.3), width=LINE))
    for side in (0.04, 0.12, 0.9, 0.97):
        tall = stage.rng.uniform(36, 70)
        foot = stage.horizon + 12
        spike = [(w * side - 20, foot), (w * side, foot - 12 - tall), (w * side + 20, foot)]
        parts.append(polygon(spike, fill=darker(fill, 0.3), width=LINE))
    return "".join(parts)
