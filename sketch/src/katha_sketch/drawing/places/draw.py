"""A place as a stage: background and middle behind the actors, the nearest things before them, weather over all."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from katha.errors import RenderError
from katha_sketch.drawing.pictograms.draw import draw_pictogram
from katha_sketch.drawing.places.data import PlaceData, place_data, state_data
from katha_sketch.drawing.places.weather import TIMES, WEATHERS, before, heavens, sky_for, whitened
from katha_sketch.drawing.props.shapes import read_shape
from katha_sketch.drawing.settings import air, motifs
from katha_sketch.drawing.settings.stage import HEIGHT, Sky, Stage, tint
from katha_sketch.drawing.style import PAPER, mix
from katha_sketch.drawing.svg import ellipse, group, number, rect

__all__ = ["TIMES", "WEATHERS", "Place", "draw_place"]

_FADE = 0.14
"""Share of paper in scenery, so that figures in front of it stand out."""
_INDOORS = 0.6
"""How much of the hour's tint reaches a room."""
_WIDE, _NARROW = 768.0, 640.0
"""Stages are drawn for the first width; narrower ones than the second are cropped at the sides."""
_BLEEDS = 800.0
"""Shapes that cover more than this are stretched to the frame's width."""
_AIRY = frozenset({"clouds", "pane", "arches", "cave_mouth"})


@dataclass(frozen=True)
class Place:
    """A stage without anybody on it, in pixels of the frame.

    back: behind the actors. front: before them. over: weather before all. horizon: where the ground begins. stand:
    where feet stand. water: (top, bottom) of open water, or None. spots: x of places to stand. glow, share: the light
    on figures.
    """

    back: str
    front: str
    over: str
    horizon: float
    stand: float
    spots: tuple[float, ...]
    water: tuple[float, float] | None = None
    glow: str = "#ffffff"
    share: float = 0.0


def draw_place(
    name: str | None,
    time: str | None,
    weather: str | None,
    width: float,
    height: float,
    seed: int,
    without: frozenset[str] = frozenset(),
    states: Sequence[str] = (),
) -> Place:
    """The place `name` at a time of day and in a weather; None is plain paper. The same arguments, the same bytes.

    `without` names pictograms that the scene itself has: the place's own are left out.

    `states` are what the whole place is in ("flood", "dark"), of states.yaml; without a place there are none.

    Indoors the weather is seen through windows only; where there is no air it is left out.

    Raises:
        RenderError: no such place, state, time or weather, or its entry names what cannot be drawn.
    """
    if time not in TIMES or (weather is not None and weather not in WEATHERS):
        raise RenderError(
            f"The sketch has no time {time!r} or weather {weather!r}.",
            hint=f"Times: {', '.join(filter(None, TIMES))}; weather: {', '.join(WEATHERS)}.",
        )
    scale = height / HEIGHT
    data = place_data(name) if name else None
    weather = None if data is not None and data.airless else weather
    time = data.hour if data is not None and time is None else time
    sky = sky_for(time, weather)
    rng, across = Random(f"{name}/{seed}"), width / scale
    horizon = data.horizon if data else 318.0
    seen = weather if weather in ("rain", "storm", "snow") else None
    stage = Stage(across, horizon, sky, seen, rng, air.light_at(sky, across, horizon, rng))
    back = _behind(stage, data, weather, without) if data else _paper(stage, time, weather)
    told = [one for one in map(state_data, states) if data is not None and one.fits(data)]
    over = "".join(_drawn(stage, state.front, state.id) for state in told)
    if data is not None:
        back += "".join(_over(stage, state.behind, state.id, _tinted(sky, data)) for state in told)
    inside = data is not None and (data.indoors or data.roofed)
    band = data.water if data else None
    return Place(
        back=_scaled(back, scale),
        front=_scaled(_lit(_drawn(stage, data.front, data.id), _tinted(sky, data)), scale) if data else "",
        over=_scaled(over + ("" if inside else before(stage, weather)), scale),
        horizon=horizon * scale,
        stand=(data.stand if data else 0.88) * height,
        spots=tuple(spot * width for spot in (data.spots if data else (0.3, 0.5, 0.7))),
        water=((horizon + band[0]) * scale, (horizon + band[1]) * scale) if band else None,
        glow=sky.glow,
        share=0.0 if data is not None and data.airless else sky.figure_share,
    )


def _behind(stage: Stage, data: PlaceData, weather: str | None, without: frozenset[str]) -> str:
    parts = [] if data.indoors or data.airless else [heavens(stage, weather)]
    sky = _tinted(stage.sky, data)
    for row in data.layers:
        if "clouds" in row and weather in ("snow", "fog"):
            continue
        if row.get("of", row.get("picture", "window" if "pane" in row else None)) in without:
            continue
        drawn = _row(stage, row, data.id)
        if not _AIRY.intersection(row) and not row.get("glows"):
            drawn = _lit(drawn if data.indoors or data.airless else whitened(drawn, weather), sky)
        parts.append(drawn)
    return "".join(parts)


def _over(stage: Stage, rows: Sequence[Mapping[str, Any]], state: str, light: tuple[str, float]) -> str:
    """What a state lays over a place, in the place's light unless it shines itself."""
    return "".join(
        drawn if row.get("glows") else _lit(drawn, light) for row in rows for drawn in (_row(stage, row, state),)
    )


def _tinted(sky: Sky, data: PlaceData) -> tuple[str, float]:
    """The light of the hour on this place: colour and share."""
    if data.airless:
        return sky.glow, 0.0
    return sky.glow, sky.share * (_INDOORS if data.indoors else 1.0)


def _lit(svg: str, light: tuple[str, float]) -> str:
    return tint(tint(svg, PAPER, _FADE), *light)


def _drawn(stage: Stage, rows: Sequence[Mapping[str, Any]], place: str) -> str:
    return "".join(_row(stage, row, place) for row in rows)


def _row(stage: Stage, row: Mapping[str, Any], place: str) -> str:
    """One layer: shapes or a pictogram at each of its places, or a motif."""
    if "shapes" in row:
        drawn, wide = _shapes(row["shapes"], place)
        stretch = max(1.0, stage.width / _WIDE) if wide > _BLEEDS else 1.0
        return "".join(
            group(drawn, transform=f"translate({number(x)} 0)" + (f" scale({stretch:.4f} 1)" if stretch > 1 else ""))
            for x in _at(stage, row)
        )
    if "picture" in row:
        drawn = draw_pictogram(row["picture"], float(row["height"])).svg
        return "".join(
            group(drawn, transform=f"translate({number(x)} {number(float(row['foot']))})") for x in _at(stage, row)
        )
    if len(row) != 1:
        raise RenderError(f"Place {place!r}: a layer is one motif, shapes or a picture, not {dict(row)!r}.")
    [(name, parameters)] = row.items()
    motif = motifs().get(name)
    if motif is None:
        raise RenderError(f"Place {place!r} names an unknown motif {name!r}.", hint=f"Known: {', '.join(motifs())}.")
    if extra := set(parameters or {}) - set(inspect.signature(motif).parameters):
        raise RenderError(f"Place {place!r}: motif {name!r} has no parameter {sorted(extra)[0]!r}.")
    return motif(stage, **(parameters or {}))


def _at(stage: Stage, row: Mapping[str, Any]) -> Iterator[float]:
    """The x of each place of a layer, narrow stages cropped at their sides."""
    wanted = row.get("at", 0.5)
    for share in wanted if isinstance(wanted, list) else [wanted]:
        yield stage.width / 2 + (share - 0.5) * max(stage.width, _NARROW)


def _shapes(entries: Sequence[Mapping[str, str]], place: str) -> tuple[str, float]:
    """The shapes as SVG and the width that they cover."""
    parts, lefts, rights = [], [], []
    for entry in entries:
        for head, geometry in entry.items():
            try:
                svg, box = read_shape(head, str(geometry)).at(0.0)
            except ValueError as problem:
                raise RenderError(f"Place {place!r}: `{head}: {geometry}`: {problem}.") from None
            parts.append(svg)
            lefts.append(box[0])
            rights.append(box[2])
    return "".join(parts), max(rights) - min(lefts)


def _paper(stage: Stage, time: str | None, weather: str | None) -> str:
    """No place named: the paper with a wash where the ground is, and the sky only if time or weather was named."""
    w, y = stage.width, stage.horizon
    if time or weather:
        ground = rect(-60, y, w + 120, HEIGHT - y + 60, fill="#e9dfc8", stroke=None)
        return heavens(stage, weather) + tint(whitened(ground, weather), stage.sky.glow, stage.sky.share)
    wash = ellipse(w * 0.5, y + 96, w * 0.62, 118, fill=mix(PAPER, "tan", 0.22), stroke=None)
    return rect(-60, -60, w + 120, HEIGHT + 120, fill=PAPER, stroke=None) + wash


def _scaled(svg: str, scale: float) -> str:
    return svg if scale == 1.0 or not svg else group(svg, transform=f"scale({scale:.5f})")
