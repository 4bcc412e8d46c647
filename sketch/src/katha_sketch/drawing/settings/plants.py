"""What grows: trees of several kinds, trunks, hedges, grass, blossoms and cactuses."""

from __future__ import annotations

from collections.abc import Callable

from katha_sketch.drawing.settings.stage import HEIGHT, LINE, Stage, spread
from katha_sketch.drawing.style import colour, darker, lighter
from katha_sketch.drawing.svg import circle, ellipse, group, line, number, path, points, polygon, rect, smooth, trace

__all__ = ["blossoms", "cactuses", "canopy", "grass", "hedge", "trees", "trunks", "wheat"]


def trees(
    stage: Stage, *, kind: str = "round", count: int = 5, size: float = 110, fill: str = "green",
    clear: float = 0.0, drop: float = 12,
) -> str:  # fmt: skip
    """A row of trees on the horizon: "round", "pine", "fruit", "bare" or "palm", each about `size` tall."""
    draw = _KINDS[kind]
    parts = []
    for x in spread(stage, count, clear=clear):
        scale = size * stage.rng.uniform(0.8, 1.2) / 100
        tone = stage.rng.choice((colour(fill), darker(fill, 0.12), lighter(fill, 0.15)))
        place = f"translate({number(x)} {number(stage.horizon + drop)}) scale({number(scale)})"
        parts.append(group(draw(tone), transform=place))
    return "".join(parts)


def _round(fill: str) -> str:
    crown = [(-34, -52), (-36, -82), (-10, -102), (22, -96), (38, -70), (30, -46), (0, -38)]
    return rect(-6, -48, 12, 48, fill="#93694a", line_width=LINE) + smooth(crown, fill=fill, width=LINE)


def _pine(fill: str) -> str:
    tiers = ((-40, 34), (-62, 28), (-84, 20))
    body = "".join(polygon([(-w, y + 26), (0, y - 14), (w, y + 26)], fill=fill, width=LINE) for y, w in tiers)
    return rect(-5, -18, 10, 18, fill="#7a5440", line_width=LINE) + body


def _fruit(fill: str) -> str:
    spots = ((-18, -66), (8, -84), (20, -60), (-4, -56), (-10, -86))
    return _round(fill) + "".join(circle(x, y, 5, fill=colour("red"), width=1.4) for x, y in spots)


def _bare(fill: str) -> str:
    d = "M0,0L0,-60M0,-34L-22,-66M0,-46L20,-78M0,-60L-8,-92M0,-60L12,-96M-14,-55L-30,-58"
    return path(d, stroke=darker("brown", 0.3), width=6)


def _palm(fill: str) -> str:
    trunk = path("M0,0C6,-30 -2,-60 10,-84", stroke=darker("tan", 0.3), width=8)
    fronds = (
        "M10,-84C-14,-100 -34,-84 -40,-66C-22,-80 -6,-82 10,-84ZM10,-84C34,-102 52,-84 58,-64C42,-80 26,-82 10,-84Z"
        "M10,-84C0,-112 -22,-112 -32,-104C-12,-104 0,-96 10,-84ZM10,-84C20,-112 42,-112 52,-102C32,-104 20,-96 10,-84Z"
    )
    return trunk + path(fronds, fill=fill, width=LINE)


_KINDS: dict[str, Callable[[str], str]] = {
    "round": _round, "pine": _pine, "fruit": _fruit, "bare": _bare, "palm": _palm,
}  # fmt: skip


def trunks(stage: Stage, *, count: int = 4, fill: str = "brown", wide: float = 52, clear: float = 0.5) -> str:
    """Tall near trunks that leave the top of the picture, with roots and a few bark lines."""
    parts = []
    for x in spread(stage, count, jitter=0.3, clear=clear):
        half, base = wide / 2 * stage.rng.uniform(0.7, 1.15), stage.horizon + stage.rng.uniform(14, 46)
        outline = (
            trace("M", (x - half, -40), (x - half * 0.85, base - 40), "Q", (x - half, base - 8), (x - half * 1.8, base))
            + trace("L", (x + half * 1.8, base), "Q", (x + half, base - 8), (x + half * 0.85, base - 40))
            + trace("L", (x + half, -40), "Z")
        )
        parts.append(path(outline, fill=colour(fill), width=LINE))
        for dx, top in ((-0.3, 60), (0.25, 130), (-0.1, 200)):
            parts.append(line((x + half * dx, top), (x + half * dx, top + 46), stroke=darker(fill, 0.35), width=2))
    return "".join(parts)


def canopy(stage: Stage, *, fill: str = "dark_green", depth: float = 74, count: int = 9) -> str:
    """Leaves hanging in from the top edge."""
    step = (stage.width + 120) / count
    d = trace("M", (-60, -60), (-60, depth * 0.6))
    for _ in range(count):
        d += trace("q", (step / 2, depth * stage.rng.uniform(0.55, 1.05)), (step, 0))
    return path(f"{d}L{points([(stage.width + 60, -60)])}Z", fill=colour(fill), width=LINE)


def hedge(stage: Stage, *, fill: str = "dark_green", height: float = 54, count: int = 12) -> str:
    """A clipped hedge all along the horizon."""
    step = (stage.width + 80) / count
    base = stage.horizon + 10
    d = trace("M", (-40, base), (-40, base - height))
    for _ in range(count):
        d += trace("q", (step / 2, -20), (step, 0))
    return path(f"{d}L{points([(stage.width + 40, base)])}Z", fill=colour(fill), width=LINE)


def grass(stage: Stage, *, fill: str = "green", height: float = 26, count: int = 26, rows: int = 3) -> str:
    """Rows of tall grass blades over the land."""
    parts = []
    for row in range(rows):
        y = stage.horizon + 14 + row * (HEIGHT - stage.horizon) / rows * 0.9
        tall = height * (0.7 + 0.35 * row)
        d = "".join(
            trace("M", (x, y), "q", (2, -tall * 0.6), (stage.rng.uniform(-12, 12), -tall)) for x in spread(stage, count)
        )
        parts.append(path(d, stroke=darker(fill, 0.1 + 0.06 * row), width=3))
    return "".join(parts)


def wheat(stage: Stage, *, fill: str = "golden", height: float = 60, count: int = 34) -> str:
    """A standing wall of ripe ears along the horizon."""
    y = stage.horizon + 18
    base = polygon(
        [(-40, y - height * 0.75), (stage.width + 40, y - height * 0.75), (stage.width + 40, y), (-40, y)],
        fill=lighter(fill, 0.2), width=LINE,
    )  # fmt: skip
    ears = []
    for x in spread(stage, count, jitter=0.3):
        tip = y - height * stage.rng.uniform(0.8, 1.1)
        ears.append(line((x, y), (x, tip), stroke=darker(fill, 0.3), width=2))
        ears.append(ellipse(x, tip, 5, 11, fill=colour(fill), width=1.4))
    return base + "".join(ears)


def blossoms(stage: Stage, *, count: int = 18, fills: str = "red yellow white purple", size: float = 5) -> str:
    """Small flowers scattered over the land."""
    tones = fills.split()
    parts = []
    for x in spread(stage, count):
        y = stage.horizon + 14 + stage.rng.random() * (HEIGHT - stage.horizon - 20)
        r = size * (0.6 + 0.8 * (y - stage.horizon) / (HEIGHT - stage.horizon))
        parts.append(line((x, y), (x, y - r * 2.4), stroke=darker("green"), width=2))
        parts.append(circle(x, y - r * 2.8, r, fill=colour(stage.rng.choice(tones)), width=1.4))
    return "".join(parts)


def cactuses(stage: Stage, *, count: int = 3, size: float = 92, fill: str = "green") -> str:
    """Cactuses with two arms, away from the middle."""
    parts = []
    arms = "M0,0L0,-88M0,-36L-26,-36L-26,-64M0,-26L24,-26L24,-54"
    for x in spread(stage, count, clear=0.4):
        scale = size * stage.rng.uniform(0.75, 1.15) / 100
        place = f"translate({number(x)} {number(stage.horizon + stage.rng.uniform(8, 26))}) scale({number(scale)})"
        parts.append(
            group(path(arms, stroke="#2b2a33", width=21) + path(arms, stroke=colour(fill), width=16), transform=place)
        )
    return "".join(parts)
