"""A setting from its entry in the vocabulary: `draw: {horizon, layers: [{motif: {parameters}}], front, water}`.

Motif names are the public functions of terrain, plants, water, buildings, indoors, halls, and the clouds of air.
`indoors: true` says that the sky is seen through openings only. `front` is `{shape, fill}` of `foreground`; `water` is
the band `[top, bottom]` in units under the horizon where swimmers swim.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

from katha.errors import RenderError
from katha.renderers.sketch.settings import air, buildings, halls, indoors, plants, terrain, water
from katha.renderers.sketch.settings.data import setting_data
from katha.renderers.sketch.settings.foreground import FOREGROUNDS
from katha.renderers.sketch.settings.stage import HEIGHT, Motif, Sky, Stage, tint
from katha.renderers.sketch.style import PAPER, mix
from katha.renderers.sketch.svg import ellipse, group, number, rect

__all__ = ["Backdrop", "draw_setting", "motifs"]

_MODULES: tuple[ModuleType, ...] = (terrain, plants, water, buildings, indoors, halls)
_FADE = 0.14
"""Share of paper in scenery, so that figures in front of it stand out."""
_AIRY = frozenset({"clouds", "pane", "arches", "cave_mouth"})
"""Motifs that show the sky itself and so keep their colours."""
_PLAIN_HORIZON = 318.0


@dataclass(frozen=True)
class Backdrop:
    """A place without anybody in it, in pixels of the frame.

    back: everything behind the figures. front: one shape near the eye at a lower corner. rain: what falls in front of
    all. horizon: y where feet stand at the farthest. front_box: what `front` covers, or None. water: (top, bottom) y of
    open water, or None. glow, share: the colour and strength of the light on figures.
    """

    back: str
    front: str
    horizon: float
    rain: str = ""
    front_box: tuple[float, float, float, float] | None = None
    water: tuple[float, float] | None = None
    glow: str = "#ffffff"
    share: float = 0.0


def motifs() -> Mapping[str, Motif]:
    """Every motif by name."""
    found = {name: getattr(module, name) for module in _MODULES for name in module.__all__}
    return {**found, "clouds": air.clouds, "cloud_floor": air.cloud_floor}


def draw_setting(
    concept: str | None, time: str | None, weather: str | None, width: float, height: float, seed: int
) -> Backdrop:
    """The place `concept` at a time of day, `width` x `height` pixels; None is plain paper with a soft wash.

    The same arguments give the same picture; `seed` moves what may stand elsewhere (hills, trees, the sun's side).

    Raises:
        RenderError: no setting of that id, or its `draw:` entry names an unknown motif or parameter.
    """
    scale = height / HEIGHT
    data: Mapping[str, Any] = setting_data(concept) if concept else {}
    sky = air.sky_of(time, weather)
    horizon = float(data.get("horizon", _PLAIN_HORIZON))
    rng, across = Random(f"{concept}/{seed}"), width / scale
    stage = Stage(across, horizon, sky, weather, rng, air.light_at(sky, across, horizon, rng))
    back = _land(stage, concept, data) if concept else _paper(stage, time)
    front, box = _front(stage, data.get("front"))
    inside = bool(data.get("indoors"))
    band = data.get("water")
    return Backdrop(
        back=_scaled(back, scale),
        front=_scaled(front, scale),
        horizon=stage.horizon * scale,
        rain="" if inside else _scaled(air.falling(stage), scale),
        front_box=tuple(value * scale for value in box) if box else None,  # type: ignore[arg-type]
        water=((stage.horizon + band[0]) * scale, (stage.horizon + band[1]) * scale) if band else None,
        glow=sky.glow,
        share=sky.figure_share,
    )


def _land(stage: Stage, concept: str | None, data: Mapping[str, Any]) -> str:
    """Sky and layers. The air keeps its colours; what stands on the ground takes the light of the hour."""
    inside = bool(data.get("indoors"))
    parts = [] if inside else [air.heavens(stage)]
    for name, parameters in _rows(concept, data):
        drawn = _motif(concept, name)(stage, **_checked(concept, name, parameters))
        parts.append(drawn if name in _AIRY else _lit(drawn, stage.sky))
    return "".join(parts)


def _lit(svg: str, sky: Sky) -> str:
    return tint(tint(svg, PAPER, _FADE), sky.glow, sky.share)


def _rows(concept: str | None, data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for row in data.get("layers", ()):
        if not isinstance(row, Mapping) or len(row) != 1:
            raise RenderError(f"Setting {concept!r}: write a layer as one `motif: {{parameters}}`, not {row!r}.")
        [(name, parameters)] = row.items()
        yield name, parameters or {}


def _motif(concept: str | None, name: str) -> Motif:
    found = motifs().get(name)
    if found is None:
        raise RenderError(
            f"Setting {concept!r} names an unknown motif {name!r}.", hint=f"Known: {', '.join(motifs())}."
        )
    return found


def _checked(concept: str | None, name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    known = set(inspect.signature(_motif(concept, name)).parameters) - {"stage"}
    if extra := set(parameters) - known:
        raise RenderError(f"Setting {concept!r}: motif {name!r} has no parameter {sorted(extra)[0]!r}.",
                          hint=f"Known: {', '.join(sorted(known))}.")  # fmt: skip
    return parameters


def _paper(stage: Stage, time: str | None) -> str:
    """No place named: the paper, a wash where the ground is, and the sky only if the time or weather was named."""
    w, y = stage.width, stage.horizon
    if time or stage.weather:
        ground = rect(-60, y, w + 120, HEIGHT - y + 60, fill="#e9dfc8", stroke=None)
        return air.heavens(stage) + tint(ground, stage.sky.glow, stage.sky.share)
    wash = ellipse(w * 0.5, y + 96, w * 0.62, 118, fill=mix(PAPER, "tan", 0.22), stroke=None)
    return rect(-60, -60, w + 120, HEIGHT + 120, fill=PAPER, stroke=None) + wash


def _front(stage: Stage, data: Mapping[str, str] | None) -> tuple[str, tuple[float, float, float, float] | None]:
    if not data:
        return "", None
    svg, (x0, y0, x1, y1) = FOREGROUNDS[data["shape"]](stage.rng, data["fill"])
    lit = tint(svg, stage.sky.glow, min(0.75, stage.sky.share + 0.1))
    if stage.rng.random() < 0.5:
        return lit, (x0, y0, x1, y1)
    w = stage.width
    return group(lit, transform=f"translate({number(w)} 0) scale(-1 1)"), (w - x1, y0, w - x0, y1)


def _scaled(svg: str, scale: float) -> str:
    return svg if scale == 1.0 else group(svg, transform=f"scale({scale:.5f})")
