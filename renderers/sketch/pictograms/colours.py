"""A pictogram in the colour that a story tells: its own main colour gives way, its lights and shadows stay."""

from __future__ import annotations

import colorsys
import re
from functools import cache

__all__ = ["recoloured"]

_FILL = re.compile(r'(?<=fill=")#[0-9a-fA-F]{6}(?=")')
_GREY, _BLACK, _KIN = 0.16, 0.3, 0.12
"""Less saturated than the first is grey, darker than the second a line or a shadow; hues no further apart than the
third (of the circle) are one colour."""
_RELIEF = 0.7
"""Share of a shade's distance from the main colour's lightness that is kept."""


def recoloured(svg: str, colour: str) -> str:
    """The drawing with its main colour, the first that is neither grey nor nearly black, replaced; of a drawing in
    greys the light ones are."""
    fills = list(dict.fromkeys(_FILL.findall(svg)))
    main = next((fill for fill in fills if _hls(fill)[2] > _GREY and _hls(fill)[1] > 0.5 * _BLACK), None)
    main = main or next((fill for fill in fills if _hls(fill)[1] > _BLACK), None)
    if main is None:
        return svg
    swaps = {fill: _shade(fill, main, colour) for fill in fills if _akin(fill, main)}
    return _FILL.sub(lambda found: swaps.get(found.group(), found.group()), svg)


@cache
def _hls(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return colorsys.rgb_to_hls(red, green, blue)


def _akin(fill: str, main: str) -> bool:
    (hue, light, rich), (own, _, own_rich) = _hls(fill), _hls(main)
    if own_rich <= _GREY:
        return rich <= _GREY and light > _BLACK
    apart = abs(hue - own)
    return rich > _GREY and min(apart, 1 - apart) <= _KIN


def _shade(fill: str, main: str, colour: str) -> str:
    hue, light, rich = _hls(colour)
    light = min(0.97, max(0.06, light + _RELIEF * (_hls(fill)[1] - _hls(main)[1])))
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, light, rich))
