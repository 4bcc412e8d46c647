"""What every motif of a setting draws on: a stage 512 units tall, its private random generator, and its sky.

Settings are data (`draw:` in settings.yaml): a list of layers, each a motif's name with its parameters. Motifs are
plain functions `motif(stage, **parameters) -> str`; they take their random choices from `stage.rng` and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from katha_sketch.drawing.style import mix

__all__ = ["HEIGHT", "LINE", "Motif", "Sky", "Stage", "spread", "tint"]

HEIGHT = 512.0
"""Units from top to bottom of every stage."""

LINE = 2.2
"""Outline width of scenery in stage units: a little finer than the figures in front of it."""

_HEX = re.compile(r"#[0-9a-f]{6}")

Motif = Callable[..., str]


@dataclass(frozen=True)
class Sky:
    """How one time of day looks.

    top, low: colours of the sky. body: sun or moon ("sun", "low_sun", "set_sun", "moon") or None. glow: colour that
    tints the land, with `share` (0..1), and figures with `figure_share`.
    """

    top: str
    low: str
    body: str | None = None
    glow: str = "#ffffff"
    share: float = 0.0
    figure_share: float = 0.0
    stars: bool = False


@dataclass(frozen=True)
class Stage:
    """One backdrop in the making: `width` units wide, 512 tall; land begins at `horizon` (units from the top).

    `light` is where the sun or moon stands.
    """

    width: float
    horizon: float
    sky: Sky
    weather: str | None
    rng: Random
    light: tuple[float, float] = (0.0, 0.0)


def spread(stage: Stage, count: int, *, jitter: float = 0.5, clear: float = 0.0) -> list[float]:
    """`count` x positions across the stage, each moved by up to `jitter` of its cell; `clear` (0..1 of the width)
    keeps the middle free by pushing positions to the sides."""
    cell = stage.width / count
    xs = [(i + 0.5 + stage.rng.uniform(-jitter, jitter)) * cell for i in range(count)]
    if not clear:
        return xs
    middle, half = stage.width / 2, stage.width * clear / 2
    span = (middle - half) / middle
    return [x * span if x < middle else stage.width - (stage.width - x) * span for x in xs]


def tint(svg: str, towards: str, share: float) -> str:
    """`svg` with every colour mixed with `share` (0..1) of `towards`."""
    if not share or not svg:
        return svg
    known: dict[str, str] = {}

    def swap(found: re.Match[str]) -> str:
        name = found.group()
        if name not in known:
            known[name] = mix(name, towards, share)
        return known[name]

    return _HEX.sub(swap, svg)
