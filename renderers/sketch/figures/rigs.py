"""The table of body plans by the name that a character's `draw: rig` gives."""

from __future__ import annotations

from collections.abc import Mapping

from katha.renderers.sketch.figures.bird import draw_bird
from katha.renderers.sketch.figures.coil import draw_coil
from katha.renderers.sketch.figures.crawler import draw_crawler
from katha.renderers.sketch.figures.hopper import draw_hopper
from katha.renderers.sketch.figures.insect import draw_insect
from katha.renderers.sketch.figures.rig import Rig
from katha.renderers.sketch.figures.sky import draw_sky
from katha.renderers.sketch.figures.swimmer import draw_crab, draw_fish
from katha.renderers.sketch.figures.upright import draw_upright

__all__ = ["RIGS"]

RIGS: Mapping[str, Rig] = {
    "upright": draw_upright,
    "bird": draw_bird,
    "crawler": draw_crawler,
    "hopper": draw_hopper,
    "coil": draw_coil,
    "fish": draw_fish,
    "crab": draw_crab,
    "insect": draw_insect,
    "sky": draw_sky,
}
"""Every rig; add a body plan by writing a function with the signature of `Rig` and naming it here."""
