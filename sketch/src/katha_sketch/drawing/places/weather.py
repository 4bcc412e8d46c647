"""Weather over a place: what it does to the sky, to the light on the land, and what falls before everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from katha_sketch.drawing.settings import air
from katha_sketch.drawing.settings.stage import HEIGHT, Sky, Stage, spread, tint
from katha_sketch.drawing.style import mix
from katha_sketch.drawing.svg import circle, ellipse, path, rect, trace

__all__ = ["TIMES", "WEATHERS", "before", "heavens", "sky_for", "whitened"]

TIMES: Mapping[str | None, str | None] = MappingProxyType(
    {None: None, "day": "day", "dawn": "morning", "dusk": "evening", "night": "night"}
)
"""Times of day, with the name of the sky of each."""

WEATHERS = ("sun", "rain", "storm", "snow", "fog", "wind")
"""Weather that any place in the open can have; rooms see it through their windows."""

_WET = frozenset({"rain", "storm"})
_VEILS = MappingProxyType({"snow": ("#cfd8e2", 0.5), "fog": ("#dcdfdc", 0.62)})
_SNOWED = 0.34
"""Share of white on the land when it snows."""


def sky_for(time: str | None, weather: str | None) -> Sky:
    """The sky of a time of day (of this module's names) in a weather."""
    if weather == "sun" and time is None:
        time = "day"
    sky = air.sky_of(TIMES[time], weather if weather in _WET else None)
    if weather is None or weather not in _VEILS:
        return sky
    grey, share = _VEILS[weather]
    share = 0.4 * share if time == "night" else share
    return replace(
        sky,
        top=mix(sky.top, grey, share),
        low=mix(sky.low, grey, share),
        body=None,
        glow=mix(sky.glow, grey, 0.5) if sky.share else grey,
        share=max(sky.share, share * 0.5),
        figure_share=max(sky.figure_share, share * 0.12),
        stars=False,
    )


def heavens(stage: Stage, weather: str | None) -> str:
    """The sky with sun, moon and stars or the clouds of the weather."""
    return air.heavens(replace(stage, weather=weather if weather in (*_WET, "snow") else None))


def whitened(svg: str, weather: str | None) -> str:
    """The land with snow on it when it snows."""
    return tint(svg, "#ffffff", _SNOWED) if weather == "snow" else svg


def before(stage: Stage, weather: str | None) -> str:
    """What is between the eye and everything: rain, flakes, fog, leaves in the wind."""
    if weather in _WET:
        return air.falling(replace(stage, weather=weather))
    drawn = {"snow": _flakes, "fog": _banks, "wind": _gusts}.get(weather or "")
    return drawn(stage) if drawn else ""


def _flakes(stage: Stage) -> str:
    rng = stage.rng
    spots = [(rng.uniform(0, stage.width), rng.uniform(0, HEIGHT), rng.uniform(2.5, 6.0)) for _ in range(90)]
    return "".join(circle(x, y, r, fill="#ffffff", stroke="#b8c6d6", width=0.8) for x, y, r in spots)


def _banks(stage: Stage) -> str:
    """Bands of mist, thick at the horizon and thin before the actors."""
    veil = rect(-40, -40, stage.width + 80, HEIGHT + 80, fill="#e6e8e4", stroke=None)
    bands = "".join(
        ellipse(x, stage.horizon - 60 + row * 74, stage.width * 0.36, 26, fill="#f3f4f0", stroke=None)
        for row in range(4)
        for x in spread(stage, 3)
    )
    return f'<g opacity="0.22">{veil}</g><g opacity="0.5">{bands}</g>'


def _gusts(stage: Stage) -> str:
    rng, parts = stage.rng, []
    for row in range(6):
        x, y = rng.uniform(-0.05, 0.75) * stage.width, 50 + row * 66 + rng.uniform(-14, 14)
        long = rng.uniform(110, 190)
        curl = trace("M", (x, y), "q", (long / 2, -14), (long, 0), "q", (26, 8), (22, 24), "q", (-12, 10), (-18, -6))
        parts.append(path(curl, stroke="#7fa3bd", width=3.2))
    for _ in range(9):
        x, y, turn = rng.uniform(0, stage.width), rng.uniform(40, HEIGHT - 60), rng.uniform(-50, 50)
        leaf = path("M-11 0 Q0 -9 12 0 Q0 9 -11 0 Z", fill=rng.choice(("#d0823f", "#c9a13b", "#8fae57")), width=1.4)
        parts.append(f'<g transform="translate({x:.1f} {y:.1f}) rotate({turn:.0f})">{leaf}</g>')
    return "".join(parts)
