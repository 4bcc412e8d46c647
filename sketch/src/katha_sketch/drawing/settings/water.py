"""Water: river, pond and sea. Each lies between two heights that `Backdrop.water` tells the layout."""

from __future__ import annotations

from katha_sketch.drawing.settings.stage import HEIGHT, LINE, Stage, spread
from katha_sketch.drawing.style import colour, darker, lighter
from katha_sketch.drawing.svg import circle, ellipse, line, path, polygon, smooth, trace

__all__ = ["pond", "river", "sea", "shells", "stones"]


def river(stage: Stage, *, top: float = 30, depth: float = 92, fill: str = "water", bank: str = "sand") -> str:
    """A broad river from side to side, `top` under the horizon, with a rim on both banks."""
    y0, y1 = stage.horizon + top, stage.horizon + top + depth
    xs = [-60.0, *spread(stage, 5, jitter=0.2), stage.width + 60]
    upper = [(x, y0 + stage.rng.uniform(-7, 7)) for x in xs]
    lower = [(x, y1 + stage.rng.uniform(-9, 9)) for x in xs]
    rim = smooth(upper + lower[::-1], fill=colour(fill), stroke=darker(bank, 0.15), width=13)
    return rim + smooth(upper + lower[::-1], fill=colour(fill), width=LINE) + _waves(stage, y0 + 14, y1 - 10, fill, 12)


def pond(stage: Stage, *, top: float = 22, depth: float = 86, fill: str = "water", wide: float = 0.84) -> str:
    """A round pond with lily pads and a reedy rim."""
    x, y = stage.width * stage.rng.uniform(0.46, 0.54), stage.horizon + top + depth / 2
    rx = stage.width * wide / 2
    parts = [ellipse(x, y, rx + 12, depth / 2 + 8, fill=colour("tan"), width=LINE)]
    parts.append(ellipse(x, y, rx, depth / 2, fill=colour(fill), width=LINE))
    for dx in (-0.62, -0.2, 0.34, 0.7):
        px, py = x + rx * (dx + stage.rng.uniform(-0.08, 0.08)), y + stage.rng.uniform(-0.24, 0.24) * depth
        parts.append(ellipse(px, py, 24, 7, fill=colour("green"), width=1.8))
        parts.append(line((px, py), (px + 17, py - 4), stroke=darker("green", 0.4), width=1.6))
    parts.extend(_cattails(x + side * rx * 0.98, y) for side in (-1, 1))
    return "".join(parts) + _waves(stage, y - depth * 0.3, y + depth * 0.34, fill, 5, x - rx * 0.7, x + rx * 0.7)


def _cattails(x: float, y: float) -> str:
    parts = []
    for dx, tall in ((-20, 62), (-8, 88), (6, 72), (18, 96)):
        parts.append(line((x + dx * 0.6, y + 8), (x + dx, y - tall), stroke=darker("green", 0.2), width=3.4))
        parts.append(ellipse(x + dx, y - tall, 4.6, 13, fill=colour("dark_brown"), width=1.4))
    return "".join(parts)


def sea(stage: Stage, *, depth: float = 96, fill: str = "blue", foam: str = "white") -> str:
    """Open water from the horizon down to a foaming shoreline."""
    y0, y1 = stage.horizon, stage.horizon + depth
    body = [(-60.0, y0), (stage.width + 60, y0), (stage.width + 60, y1), (-60.0, y1)]
    parts = [polygon(body, fill=colour(fill), width=LINE)]
    for i in range(1, 4):
        y = y0 + depth * i / 4.4
        parts.append(_crests(stage, y, 34 + 16 * i, 5 + 2.2 * i, lighter(fill, 0.3)))
    shore = [(-60.0, y1)] + [(x, y1 + stage.rng.uniform(-9, 11)) for x in spread(stage, 6)] + [(stage.width + 60, y1)]
    parts.append(smooth(shore, closed=False, stroke=darker(foam, 0.25), width=16))
    parts.append(smooth(shore, closed=False, stroke=colour(foam), width=12))
    return "".join(parts)


def _crests(stage: Stage, y: float, step: float, tall: float, fill: str) -> str:
    d = trace("M", (-40 - stage.rng.random() * step, y))
    for _ in range(int((stage.width + 120) / step) + 1):
        d += trace("q", (step / 2, -tall * 2.4), (step, 0))
    return path(d, stroke=fill, width=4)


def _waves(stage: Stage, y0: float, y1: float, fill: str, count: int, x0: float = 0.0, x1: float | None = None) -> str:
    right = stage.width if x1 is None else x1
    d = []
    for _ in range(count):
        x, y = stage.rng.uniform(x0, right - 40), stage.rng.uniform(y0, y1)
        d.append(trace("M", (x, y), "q", (10, -7), (20, 0), "q", (10, 7), (20, 0)))
    return path("".join(d), stroke=lighter(fill, 0.6), width=3)


def stones(stage: Stage, *, count: int = 7, fill: str = "stone", size: float = 15, near: float = 20) -> str:
    """Round stones scattered from `near` under the horizon to the front."""
    parts = []
    for x in spread(stage, count):
        y = stage.horizon + near + stage.rng.random() * (HEIGHT - stage.horizon - near - 10)
        r = size * stage.rng.uniform(0.5, 1.1)
        parts.append(ellipse(x, y, r, r * 0.62, fill=lighter(fill, stage.rng.uniform(0, 0.3)), width=1.8))
    return "".join(parts)


def shells(stage: Stage, *, count: int = 6, fill: str = "pink") -> str:
    """Little shells on a beach."""
    parts = []
    for x in spread(stage, count):
        y = HEIGHT - stage.rng.uniform(12, 62)
        parts.append(circle(x, y, 6, fill=colour(fill), width=1.6))
        parts.append(line((x - 4, y - 3), (x, y + 5), (x + 4, y - 3), stroke=darker(fill, 0.4), width=1.4))
    return "".join(parts)
