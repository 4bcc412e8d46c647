"""The look of the sketch: picture-book thumbnails on warm paper, dark ink outlines, soft flat colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from katha.errors import UsageError

__all__ = ["COLOURS", "HAIRLINE", "INK", "LOOKS", "OUTLINE", "PAPER", "colour", "darker", "in_look", "lighter", "mix"]

INK = "#2b2a33"
"""Every outline."""

PAPER = "#fbf6ea"
"""The sheet itself, and the white of eyes and teeth."""

OUTLINE = 2.4
"""Width of an outline in local units (a standing adult is 100 units tall)."""

HAIRLINE = 1.4
"""Width of inner detail (whiskers, folds, wood grain) in local units."""

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "white": "#fffdf6",
        "cream": "#f6e7c8",
        "black": "#4a4852",
        "grey": "#a9a7ad",
        "brown": "#a9734a",
        "dark_brown": "#7a4f35",
        "tan": "#d9ab72",
        "sand": "#ecd29a",
        "red": "#d8584f",
        "orange": "#e8924a",
        "golden": "#f0bf4c",
        "yellow": "#f6dc74",
        "green": "#7fae6a",
        "dark_green": "#4f8058",
        "leaf": "#9cc47a",
        "teal": "#5ba7a3",
        "blue": "#5f8fc4",
        "sky": "#bfe0ea",
        "water": "#8fc3d8",
        "navy": "#3d4f7c",
        "purple": "#8d6aa8",
        "pink": "#eda7a7",
        "stone": "#b9b3a6",
        "skin_light": "#f3cda6",
        "skin": "#dba777",
        "skin_dark": "#a9744c",
        "hair": "#3f3340",
        "night": "#2f3a62",
    }
)
"""Soft flat colours by name; `draw:` data may say a name of these or a `#rrggbb`."""


def colour(name: str) -> str:
    """The `#rrggbb` of a palette name; a `#rrggbb` is returned as it is.

    Raises:
        KeyError: no such colour.
    """
    return name if name.startswith("#") else COLOURS[name]


def mix(first: str, second: str, share: float) -> str:
    """`first` blended with `share` (0..1) of `second`; both palette names or `#rrggbb`."""
    a, b = (_channels(colour(name)) for name in (first, second))
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))


def darker(name: str, share: float = 0.25) -> str:
    """`name` with `share` of ink."""
    return mix(name, INK, share)


def lighter(name: str, share: float = 0.35) -> str:
    """`name` with `share` of paper."""
    return mix(name, PAPER, share)


def _channels(value: str) -> tuple[int, int, int]:
    return int(value[1:3], 16), int(value[3:5], 16), int(value[5:7], 16)


_HEX = re.compile(r"#[0-9a-f]{6}")


def _luminance(value: str) -> float:
    red, green, blue = (int(value[at : at + 2], 16) for at in (1, 3, 5))
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


def _ink(value: str) -> str:
    return mix(INK, PAPER, min(1.0, max(0.0, 1.5 * _luminance(value) - 0.2)))


def _pencil(value: str) -> str:
    return mix("#4b484f", "#f7f3ea", min(1.0, 1.12 * _luminance(value)))


LOOKS: Mapping[str, Callable[[str], str] | None] = MappingProxyType({"colour": None, "ink": _ink, "pencil": _pencil})
"""Styles by name: soft colours (the default), ink wash, soft pencil."""


def in_look(svg: str, style: str) -> str:
    """`svg` in the look `style`; an empty style is "colour".

    Raises:
        UsageError: no such style.
    """
    name = style.strip().lower() or "colour"
    if name not in LOOKS:
        raise UsageError(f"The sketch renderer has no style {style!r}.", hint=f"Styles: {', '.join(LOOKS)}.")
    change = LOOKS[name]
    if change is None:
        return svg
    known = {value: change(value) for value in set(_HEX.findall(svg))}
    return _HEX.sub(lambda found: known[found.group()], svg)
