"""The air of a setting: the sky of each time of day, sun, moon, stars, clouds, rain and lightning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

from katha_sketch.drawing.settings.stage import HEIGHT, LINE, Sky, Stage, spread
from katha_sketch.drawing.style import INK, mix
from katha_sketch.drawing.svg import circle, ellipse, number, path, points, polygon, rect, trace

__all__ = ["SKIES", "cloud_floor", "clouds", "falling", "heavens", "light_at", "opening", "sky_of", "through"]

SKIES: Mapping[str | None, Sky] = MappingProxyType(
    {
        None: Sky("#d9e9e8", "#f3efdc"),
        "day": Sky("#8ccbe8", "#d9f0f2", "sun"),
        "morning": Sky("#f8d9b4", "#fdeec2", "low_sun", "#ffd070", 0.22, 0.05),
        "evening": Sky("#8f6fa3", "#f3925c", "set_sun", "#a3503f", 0.3, 0.1),
        "night": Sky("#1d2547", "#3f4f86", "moon", "#1f2f6b", 0.54, 0.18, stars=True),
    }
)

_BANDS = 7
"""Flat washes from the top of the sky to the horizon (a gradient would cost a third of the frame's time)."""

_WEATHER: Mapping[str, tuple[str, float]] = MappingProxyType({"rain": ("#8d99a6", 0.5), "storm": ("#454b5f", 0.62)})


def sky_of(time: str | None, weather: str | None) -> Sky:
    """The sky for a time of day, greyed by the weather."""
    sky = SKIES[time]
    if weather is None:
        return sky
    grey, share = _WEATHER[weather]
    return Sky(
        top=mix(sky.top, grey, share),
        low=mix(sky.low, grey, share * 0.8),
        body=sky.body if sky.body == "moon" else None,
        glow=mix(sky.glow, grey, 0.5) if sky.share else grey,
        share=max(sky.share, share * 0.45),
        figure_share=max(sky.figure_share, share * 0.15),
        stars=False,
    )


def heavens(stage: Stage) -> str:
    """The whole sky to a little under the horizon: flat bands of wash, sun or moon, stars, and the weather's clouds."""
    depth = (stage.horizon + 60) / _BANDS
    parts = [
        rect(-40, -40 * (band == 0) + band * depth, stage.width + 80, depth + 6 + 40 * (band == 0),
             fill=mix(stage.sky.top, stage.sky.low, band / (_BANDS - 1)), stroke=None)
        for band in range(_BANDS)
    ]  # fmt: skip
    if stage.sky.stars:
        parts.append(_stars(stage.rng, 0, 10, stage.width, stage.horizon - 40, 26))
    if stage.sky.body:
        parts.append(_body(stage.sky.body, *stage.light, 34))
    if stage.weather:
        parts.append(_grey_clouds(stage))
    if stage.weather == "storm":
        parts.append(_lightning(stage))
    return "".join(parts)


def light_at(sky: Sky, width: float, horizon: float, rng: Random) -> tuple[float, float]:
    """Where the sun or moon of `sky` stands: to one side, high by day and night, low at dawn and dusk."""
    side = rng.choice((0.2, 0.8)) + rng.uniform(-0.05, 0.05)
    heights = {"sun": 84.0, "moon": 88.0, "low_sun": horizon - 40, "set_sun": horizon - 6}
    return width * side, heights.get(sky.body or "", 84.0)


def _body(kind: str, x: float, y: float, r: float) -> str:
    return {"sun": _sun, "low_sun": _low_sun, "set_sun": _set_sun, "moon": _moon}[kind](x, y, r)


def _sun(x: float, y: float, r: float) -> str:
    rays = "".join(
        path(
            trace("M", (x + math.cos(a) * r * 1.3, y + math.sin(a) * r * 1.3))
            + trace("L", (x + math.cos(a) * r * 1.7, y + math.sin(a) * r * 1.7)),
            stroke="#e8a93c",
            width=r * 0.12,
        )
        for a in (i * math.pi / 6 for i in range(12))
    )
    return rays + circle(x, y, r, fill="#f9d95c", width=LINE)


def _low_sun(x: float, y: float, r: float) -> str:
    halo = circle(x, y, r * 2.2, fill="#fff3c4", stroke=None) + circle(x, y, r * 1.6, fill="#ffe694", stroke=None)
    return halo + circle(x, y, r, fill="#fbc64f", width=LINE)


def _set_sun(x: float, y: float, r: float) -> str:
    return circle(x, y, r * 2.1, fill="#f7ab63", stroke=None) + circle(x, y, r * 1.35, fill="#e3523b", width=LINE)


def _moon(x: float, y: float, r: float) -> str:
    d = (
        f"M{points([(x + r * 0.3, y - r)])}A{number(r)},{number(r)} 0 1 0 {points([(x + r, y + r * 0.4)])}"
        f"A{number(r * 0.85)},{number(r * 0.85)} 0 0 1 {points([(x + r * 0.3, y - r)])}Z"
    )
    return path(d, fill="#fbeeb0", width=LINE)


def _stars(rng: Random, x: float, y: float, width: float, height: float, count: int) -> str:
    spots = [(x + rng.random() * width, y + rng.random() * height, rng.uniform(1.4, 3.2)) for _ in range(count)]
    return "".join(
        path(
            trace("M", (a - r * 1.6, b), "L", (a + r * 1.6, b)) + trace("M", (a, b - r * 1.6), "L", (a, b + r * 1.6)),
            stroke="#fdf6d2",
            width=r * 0.7,
        )
        for a, b, r in spots
    )


def cloud(x: float, y: float, size: float, *, fill: str = "#fffdf6", stroke: str | None = INK) -> str:
    """One cloud, its flat base centred on (x, y), about `size` wide."""
    s = size / 100
    d = (
        trace("M", (x - 48 * s, y))
        + trace("c", (-14 * s, -18 * s), (6 * s, -32 * s), (20 * s, -26 * s))
        + trace("c", (4 * s, -26 * s), (44 * s, -28 * s), (50 * s, -4 * s))
        + trace("c", (18 * s, -8 * s), (36 * s, 10 * s), (24 * s, 30 * s), "Z")
    )
    return path(d, fill=fill, stroke=stroke, width=LINE * 0.8)


def clouds(stage: Stage, *, count: int = 3, y: float = 90, size: float = 110, fill: str = "#fffdf6") -> str:
    """White clouds over the sky, clear of sun and moon; none when the weather brings its own grey ones."""
    if stage.weather:
        return ""
    parts = []
    tone = mix(fill, stage.sky.top if stage.sky.stars else stage.sky.low, 0.55 if stage.sky.stars else stage.sky.share)
    for x in spread(stage, count):
        at, wide = y + stage.rng.uniform(-36, 36), size * stage.rng.uniform(0.75, 1.25)
        lx, ly = stage.light
        if stage.sky.body and abs(x - lx) < 0.62 * wide + 40 and abs(at - 0.2 * wide - ly) < 0.3 * wide + 40:
            x = lx + (1 if lx < stage.width / 2 else -1) * (0.62 * wide + 44)
        parts.append(cloud(x, at, wide, fill=tone))
    return "".join(parts)


def _grey_clouds(stage: Stage) -> str:
    fill = "#5b6072" if stage.weather == "storm" else "#a4abb5"
    parts = []
    for row, y in enumerate((34.0, 62.0)):
        for x in spread(stage, 5 - row):
            parts.append(cloud(x, y + stage.rng.uniform(-8, 12), 210, fill=mix(fill, "#ffffff", row * 0.12)))
    return "".join(parts)


def _lightning(stage: Stage) -> str:
    x = stage.width * stage.rng.choice((0.18, 0.82))
    bolt = [(0, 60), (-26, 138), (-4, 134), (-30, 214), (30, 116), (8, 120), (28, 60)]
    return polygon([(x + dx, y) for dx, y in bolt], fill="#fdf08a", width=LINE)


def falling(stage: Stage) -> str:
    """Rain in front of everything; a storm falls denser and more slanted."""
    if not stage.weather:
        return ""
    storm = stage.weather == "storm"
    return _drops(stage.rng, (0, 0, stage.width, HEIGHT), 90 if storm else 56, 0.75 if storm else 0.22)


def _drops(rng: Random, box: tuple[float, float, float, float], count: int, slant: float) -> str:
    x, y, width, height = box
    strokes = []
    for _ in range(count):
        long = rng.uniform(20, 36)
        ax, ay = x + rng.uniform(long, max(long, width)), y + rng.uniform(0, max(1.0, height - long))
        strokes.append(trace("M", (ax, ay), "l", (-long * slant, long)))
    return path("".join(strokes), stroke="#e6f2f8", width=4.8, opacity=0.6) + path(
        "".join(strokes), stroke="#4d6f90", width=2.4
    )


def opening(stage: Stage, x: float, y: float, width: float, height: float, *, hole: bool = True) -> str:
    """The sky seen through a window or door: its colour, sun or moon, stars, and the weather inside the hole.

    `hole=False` leaves the colour to the caller, who has cut a hole of another shape.
    """
    parts = [rect(x, y, width, height, fill=through(stage), stroke=None)] if hole else []
    if stage.sky.stars:
        parts.append(_stars(stage.rng, x + 5, y + 5, width - 10, height - 10, 7))
    if stage.sky.body:
        r = min(width, height) * 0.17
        low = stage.sky.body in ("low_sun", "set_sun")
        spot = (x + width * 0.62, y + height * (0.68 if low else 0.4))
        parts.append(_body(stage.sky.body, *spot, r / (1.8 if low else 1)))
    if stage.weather == "snow":
        flakes = ((stage.rng.uniform(4, width - 4), stage.rng.uniform(4, height - 8)) for _ in range(14))
        parts += [circle(x + dx, y + dy, 3.4, fill="#ffffff", stroke="#b8c6d6", width=0.8) for dx, dy in flakes]
        parts.append(ellipse(x + width / 2, y + height, width / 2, 13, fill="#ffffff", stroke=None))
    elif stage.weather:
        slant = 0.5 if stage.weather == "storm" else 0.2
        parts.append(cloud(x + width / 2, y + height * 0.4, min(width, height) * 0.72, fill="#7b8293"))
        parts.append(_drops(stage.rng, (x + 4, y + height * 0.3, width - 8, height * 0.66), 12, slant))
    return "".join(parts)


def through(stage: Stage) -> str:
    """The one colour of the sky in a small hole."""
    return mix(stage.sky.top, stage.sky.low, 0.35)


def cloud_floor(stage: Stage, *, fill: str = "#fffdf6") -> str:
    """A bank of clouds to stand on, high up in the sky."""
    parts = []
    for row in range(3):
        y = stage.horizon + 34 + row * 34
        for x in spread(stage, 5 + row % 2, jitter=0.2):
            parts.append(cloud(x, y, 230 + 20 * row, fill=fill))
    base = rect(-60, stage.horizon + 96, stage.width + 120, 120, fill=fill, stroke=None)
    return "".join(parts) + base
