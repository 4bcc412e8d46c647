"""What people build: huts, town houses, stalls, a barn, fences, walls and a temple."""

from __future__ import annotations

from katha_sketch.drawing.settings.stage import LINE, Stage, spread
from katha_sketch.drawing.style import colour, darker, lighter
from katha_sketch.drawing.svg import circle, group, line, number, path, points, polygon, rect, trace

__all__ = ["barn_house", "city_wall", "fence", "huts", "shrine", "stalls", "towers"]


def _placed(svg: str, x: float, y: float, scale: float) -> str:
    return group(svg, transform=f"translate({number(x)} {number(y)}) scale({number(scale)})")


def huts(stage: Stage, *, count: int = 4, size: float = 120, wall: str = "cream", roof: str = "tan") -> str:
    """Round-cornered huts with thatched roofs, a door and a small window each."""
    parts = []
    for i, x in enumerate(spread(stage, count, jitter=0.2)):
        tone = lighter(roof, 0.2 * (i % 2))
        body = rect(-42, -52, 84, 52, fill=colour(wall), line_width=LINE)
        body += path("M-14,0L-14,-26Q-2,-38 10,-26L10,0Z", fill=colour("dark_brown"), width=LINE)
        body += rect(18, -38, 15, 14, fill=colour("navy"), line_width=1.8)
        body += path("M-58,-46Q-30,-74 -8,-104Q0,-110 8,-104Q30,-74 58,-46Q0,-58 -58,-46Z", fill=tone, width=LINE)
        body += path("M-24,-60L-12,-88M0,-60L0,-96M24,-60L12,-88", stroke=darker(roof, 0.3), width=2)
        parts.append(_placed(body, x, stage.horizon + 14 + 10 * (i % 2), size * stage.rng.uniform(0.85, 1.1) / 110))
    return "".join(parts)


def towers(stage: Stage, *, count: int = 7, height: float = 230, walls: str = "cream pink stone orange teal") -> str:
    """A street of tall narrow houses wall to wall, with rows of windows and stepped or pointed roofs."""
    tones, step = walls.split(), stage.width / count
    parts = []
    for i in range(count + 1):
        x, tall = (i - 0.5) * step, height * stage.rng.uniform(0.62, 1.05)
        tone, top = colour(tones[i % len(tones)]), stage.horizon + 10 - tall
        parts.append(rect(x, top, step, tall, fill=tone, line_width=LINE))
        if i % 2:
            parts.append(polygon([(x - 5, top), (x + step / 2, top - 46), (x + step + 5, top)], fill=colour("red")))
        else:
            parts.append(rect(x - 4, top - 12, step + 8, 14, fill=darker(tone, 0.2), line_width=LINE))
        parts.append(_windows(x, top + 22, step, tall - 62))
        parts.append(
            rect(x + step * 0.36, stage.horizon - 28, step * 0.28, 38, fill=colour("dark_brown"), line_width=1.8)
        )
    return "".join(parts)


def _windows(x: float, y: float, width: float, height: float) -> str:
    rows = max(1, int(height // 44))
    return "".join(
        rect(x + width * share, y + row * 44, width * 0.2, 24, fill=colour("navy"), line_width=1.8)
        for row in range(rows)
        for share in (0.18, 0.62)
    )


def stalls(stage: Stage, *, count: int = 3, size: float = 190, awnings: str = "red teal golden") -> str:
    """Market stalls with striped awnings over a counter with heaped wares, and bunting above."""
    tones = awnings.split()
    parts = []
    for i, x in enumerate(spread(stage, count, jitter=0.12)):
        parts.append(_placed(_stall(colour(tones[i % len(tones)])), x, stage.horizon + 24, size / 150))
    flags, y = [], 52.0
    for i in range(14):
        a = (i - 0.5) * stage.width / 13
        tone = colour(("red", "golden", "teal", "purple")[i % 4])
        flags.append(polygon([(a - 13, y), (a + 13, y), (a, y + 28)], fill=tone, width=1.8))
    return line((-40, y), (stage.width + 40, y), width=2.4) + "".join(flags) + "".join(parts)


def _stall(tone: str) -> str:
    posts = line((-66, 0), (-66, -104), width=5) + line((66, 0), (66, -104), width=5)
    wares = "".join(
        circle(x, -46 - (8 if abs(x) < 30 else 0), 9, fill=colour(name), width=1.6)
        for x, name in (
            (-48, "golden"),
            (-32, "red"),
            (-16, "green"),
            (0, "orange"),
            (16, "purple"),
            (32, "golden"),
            (48, "red"),
        )
    )
    counter = rect(-70, -40, 140, 40, fill=colour("tan"), line_width=LINE)
    counter += line((-70, -28), (70, -28), stroke=darker("tan", 0.3), width=2)
    strips = ""
    for i in range(6):
        a, b = -78 + i * 26, -66 + i * 22
        shape = trace("M", (b, -136), (b + 22, -136), (a + 26, -100), "q", (-13, 16), (-26, 0), "Z")
        strips += path(shape, fill=tone if i % 2 else colour("white"), width=1.8)
    return posts + wares + counter + strips


def barn_house(stage: Stage, *, size: float = 210, fill: str = "red") -> str:
    """A big red barn with white-crossed doors and a round silo beside it, to one side."""
    body = rect(66, -96, 38, 96, fill=colour("stone"), line_width=LINE)
    body += path("M66,-96Q85,-126 104,-96Z", fill=colour("grey"), width=LINE)
    body += polygon(
        [(-62, 0), (-62, -66), (-38, -104), (0, -124), (38, -104), (62, -66), (62, 0)], fill=colour(fill), width=LINE
    )
    body += path("M-70,-60L-42,-106L0,-130L42,-106L70,-60", stroke=colour("dark_brown"), width=8)
    body += rect(-26, -50, 52, 50, fill=darker(fill, 0.12), line_width=LINE)
    body += path("M-26,-50L26,0M26,-50L-26,0M0,-50L0,0", stroke=colour("white"), width=4)
    body += rect(-12, -92, 24, 22, fill=colour("navy"), line_width=LINE)
    x = stage.width * stage.rng.choice((0.24, 0.72))
    return _placed(body, x, stage.horizon + 12, size / 130)


def fence(stage: Stage, *, fill: str = "tan", height: float = 50, drop: float = 26) -> str:
    """A rail fence along the whole width, a little in front of the horizon."""
    y = stage.horizon + drop
    rails = "".join(
        rect(-40, y - height * share, stage.width + 80, 8, fill=colour(fill), line_width=1.8) for share in (0.8, 0.42)
    )
    posts = "".join(
        rect(i * 74 - 6.0, y - height, 12, height + 4, fill=lighter(fill, 0.2), line_width=1.8, round_=3)
        for i in range(int(stage.width / 74) + 2)
    )
    return rails + posts


def city_wall(stage: Stage, *, fill: str = "stone", height: float = 70) -> str:
    """A low crenellated wall along the horizon."""
    y, d = stage.horizon + 10, ""
    for i in range(int(stage.width / 56) + 3):
        x = i * 56 - 56
        d += trace("L", (x, y - height), (x, y - height - 22), (x + 28, y - height - 22), (x + 28, y - height))
    return path(f"M-56,{number(y)}{d}L{points([(stage.width + 80, y)])}Z", fill=colour(fill), width=LINE)


def shrine(stage: Stage, *, size: float = 300, fill: str = "orange") -> str:
    """A temple in the middle: stepped platform, pillared hall, a tall ribbed spire with a pennant, two side spires."""

    def spire(x: float, base: float, wide: float, tall: float) -> str:
        curve = trace(
            "M",
            (x - wide, base),
            "C",
            (x - wide, base - tall * 0.6),
            (x - wide * 0.3, base - tall * 0.85),
            (x, base - tall),
        )
        curve += trace("C", (x + wide * 0.3, base - tall * 0.85), (x + wide, base - tall * 0.6), (x + wide, base), "Z")
        ribs = trace("M", (x, base), "L", (x, base - tall), "M", (x - wide * 0.9, base - tall * 0.3))
        ribs += trace(
            "L",
            (x + wide * 0.9, base - tall * 0.3),
            "M",
            (x - wide * 0.7, base - tall * 0.58),
            "L",
            (x + wide * 0.7, base - tall * 0.58),
        )
        knob = circle(x, base - tall - 3, 5, fill=colour("golden"), width=1.8)
        return path(curve, fill=colour(fill), width=LINE) + path(ribs, stroke=darker(fill, 0.3), width=2) + knob

    body = spire(-58, -40, 17, 46) + spire(58, -40, 17, 46) + spire(0, -44, 34, 104)
    body += line((0, -152), (0, -176), width=2.4) + polygon(
        [(0, -176), (24, -168), (0, -160)], fill=colour("red"), width=1.8
    )
    body += rect(-82, -50, 164, 12, fill=darker(fill, 0.15), line_width=LINE)
    body += rect(-76, -38, 152, 38, fill=colour("cream"), line_width=LINE)
    body += path("M-16,0L-16,-20Q0,-40 16,-20L16,0Z", fill=colour("dark_brown"), width=LINE)
    body += "".join(rect(x - 5, -38, 10, 38, fill=lighter(fill, 0.4), line_width=1.8) for x in (-66, -42, 42, 66))
    body += rect(-96, 0, 192, 9, fill=colour("stone"), line_width=LINE) + rect(
        -108, 9, 216, 10, fill=lighter("stone"), line_width=LINE
    )
    return _placed(body, stage.width * stage.rng.uniform(0.44, 0.56), stage.horizon + 4, size / 180)
