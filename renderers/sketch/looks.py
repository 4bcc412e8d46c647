"""The looks that `request.style` may ask for: each maps every colour of a finished drawing to another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from katha.errors import UsageError
from katha.renderers.sketch.style import INK, PAPER, mix

__all__ = ["LOOKS", "in_look"]

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
