"""Land: ground, hills, peaks, dunes, furrows, roads and cliffs."""

from __future__ import annotations

from katha_sketch.drawing.settings.stage import HEIGHT, LINE, Stage, spread
from katha_sketch.drawing.style import colour, darker, lighter
from katha_sketch.drawing.svg import line, path, polygon, smooth, trace

__all__ = ["dunes", "furrows", "ground", "hills", "mounds", "peaks", "road"]


def ground(stage: Stage, *, fill: str = "leaf", marks: str = "", count: int = 16, wave: float = 6) -> str:
    """The land from the horizon down, with small `marks` on it: "grass", "pebbles", "ripples", "cobbles" or none."""
    tone, top = colour(fill), stage.horizon
    edge = [(-60.0, top)] + [(x, top + stage.rng.uniform(-wave, wave)) for x in spread(stage, 6)]
    edge += [(stage.width + 60, top), (stage.width + 60, HEIGHT + 60), (-60.0, HEIGHT + 60)]
    land = smooth(edge, fill=tone, width=LINE) if wave else polygon(edge, fill=tone, width=LINE)
    return land + _marks(stage, marks, count, darker(tone, 0.28))


def _marks(stage: Stage, kind: str, count: int, tone: str) -> str:
    shapes = {
        "grass": ((-7, -4), (-4, -14), (0, -3), (4, -16), (8, -4)),
        "pebbles": ((-6, 0), (-3, -5), (4, -5), (7, 0)),
        "ripples": ((-22, 0), (-8, -4), (8, 2), (22, -2)),
        "cobbles": ((-18, 0), (-12, -8), (12, -8), (18, 0)),
    }
    if kind not in shapes:
        return ""
    strokes = []
    for x in spread(stage, count):
        y = stage.horizon + 16 + stage.rng.random() * (HEIGHT - stage.horizon - 30)
        size = 0.6 + 0.9 * (y - stage.horizon) / (HEIGHT - stage.horizon)
        strokes.append(line(*[(x + dx * size, y + dy * size) for dx, dy in shapes[kind]], stroke=tone, width=2.2))
    return "".join(strokes)


def hills(stage: Stage, *, fill: str = "green", height: float = 70, count: int = 3, drop: float = 8) -> str:
    """Rolling hills that end `drop` under the horizon."""
    parts = []
    for i, x in enumerate(spread(stage, count, jitter=0.35)):
        half = stage.width / count * stage.rng.uniform(0.75, 1.05)
        top = stage.horizon - height * stage.rng.uniform(0.65, 1.1)
        base = stage.horizon + drop
        shape = trace("M", (x - half, base), "C", (x - half * 0.5, top), (x + half * 0.5, top), (x + half, base), "Z")
        parts.append(path(shape, fill=lighter(fill, 0.12 * (i % 2)), width=LINE))
    return "".join(parts)


def peaks(stage: Stage, *, fill: str = "stone", cap: str = "white", height: float = 210, count: int = 3) -> str:
    """Steep mountains with a shaded side and a snowy cap (`cap: ""` for bare rock)."""
    parts = []
    for x in sorted(spread(stage, count, jitter=0.25), key=lambda v: -abs(v - stage.width / 2)):
        tall, half = height * stage.rng.uniform(0.7, 1.1), stage.width / count * stage.rng.uniform(0.6, 0.85)
        base, top = stage.horizon + 12, stage.horizon - tall
        parts.append(polygon([(x - half, base), (x, top), (x + half, base)], fill=colour(fill), width=LINE))
        shade = [(x, top), (x + half, base), (x + half * 0.15, base), (x - half * 0.1, top + tall * 0.55)]
        parts.append(polygon(shade, fill=darker(fill, 0.18), stroke=None))
        if cap:
            parts.append(polygon(_cap(x, top, half, tall), fill=colour(cap), width=LINE))
        parts.append(line((x - half, base), (x, top), (x + half, base), width=LINE))
    return "".join(parts)


def _cap(x: float, top: float, half: float, tall: float) -> list[tuple[float, float]]:
    def side(share: float, sign: int) -> tuple[float, float]:
        return x + sign * half * share, top + tall * share

    dips = [(x + half * 0.12, top + tall * 0.22), (x, top + tall * 0.36), (x - half * 0.1, top + tall * 0.24)]
    return [(x, top), side(0.32, 1), *dips, side(0.3, -1)]


def mounds(stage: Stage, *, fill: str = "white", count: int = 4, height: float = 46) -> str:
    """Soft low drifts on the ground, larger toward the front."""
    parts = []
    for i, x in enumerate(spread(stage, count)):
        y = stage.horizon + 26 + i * (HEIGHT - stage.horizon - 40) / count
        half, tall = 90 + 16 * i, height * (0.6 + 0.15 * i)
        d = trace("M", (x - half, y), "C", (x - half * 0.5, y - tall), (x + half * 0.5, y - tall), (x + half, y))
        parts.append(path(d, fill=colour(fill), stroke=darker(fill, 0.3), width=LINE))
    return "".join(parts)


def dunes(stage: Stage, *, fill: str = "sand", count: int = 3, height: float = 90) -> str:
    """Sharp-crested sand dunes, one side in shadow."""
    parts = []
    for i, x in enumerate(spread(stage, count, jitter=0.3)):
        half, tall = stage.width / count * 1.0, height * stage.rng.uniform(0.6, 1.1)
        base, top = stage.horizon + 14, stage.horizon - tall
        left, crest, right = (x - half, base), (x, top), (x + half, base)
        body = trace("M", left, "Q", (x - half * 0.35, base - 6), crest) + trace(
            "Q", (x + half * 0.3, top + tall * 0.5), right, "Z"
        )
        shade = trace("M", crest, "Q", (x + half * 0.3, top + tall * 0.5), right, "L", (x + half * 0.2, base)) + trace(
            "Q", (x - half * 0.05, top + tall * 0.5), crest, "Z"
        )
        parts.append(path(body, fill=lighter(fill, 0.2 * (i % 2)), width=LINE))
        parts.append(path(shade, fill=darker(fill, 0.2), stroke=None))
    return "".join(parts)


def furrows(stage: Stage, *, fill: str = "brown", crop: str = "golden", count: int = 11) -> str:
    """Ploughed rows that run to one point on the horizon, with young crop along them."""
    vanish = stage.width * stage.rng.uniform(0.38, 0.62)
    parts = []
    for i in range(count):
        a, b = ((i + k) / count * (stage.width * 2.4) - stage.width * 0.7 for k in (0.0, 0.55))
        start = (vanish + (a - vanish) * 0.08, stage.horizon + 4)
        end = (vanish + (b - vanish) * 0.08, stage.horizon + 4)
        parts.append(
            polygon([start, (a, HEIGHT + 40), (b, HEIGHT + 40), end], fill=colour(fill), stroke=darker(fill, 0.3))
        )
        parts.append(_crop(stage, end, (b + 24, HEIGHT + 20), crop))
    return "".join(parts)


def _crop(stage: Stage, start: tuple[float, float], end: tuple[float, float], fill: str) -> str:
    strokes = []
    for share in (0.12, 0.24, 0.4, 0.6, 0.85):
        x, y = (a + (b - a) * share for a, b in zip(start, end, strict=True))
        s = 5 + 20 * share
        strokes.append(trace("M", (x - s * 0.5, y - s), "L", (x, y), "L", (x + s * 0.5, y - s)))
    return path("".join(strokes), stroke=darker(fill, 0.12), width=3.4)


def road(stage: Stage, *, fill: str = "sand", wide: float = 300) -> str:
    """A broad winding road from the front to the horizon."""
    middle, far = stage.width / 2, stage.width * stage.rng.uniform(0.35, 0.65)
    top, bottom = stage.horizon + 2, HEIGHT + 40
    bend = stage.rng.choice((-1, 1)) * 70
    lane = trace(
        "M", (far - 7, top),
        "C", (far + bend, top + 50), (middle - wide / 2 + bend, top + 90), (middle - wide / 2, bottom),
        "L", (middle + wide / 2, bottom),
        "C", (middle + wide / 2 + bend * 0.6, top + 90), (far + bend + 20, top + 50), (far + 7, top), "Z",
    )  # fmt: skip
    dashes = [(far + bend * 0.35, top + 26), (middle + bend * 0.5, top + 84), (middle + bend * 0.1, bottom)]
    return path(lane, fill=colour(fill), width=LINE) + smooth(dashes, closed=False, stroke=darker(fill, 0.25), width=3)
