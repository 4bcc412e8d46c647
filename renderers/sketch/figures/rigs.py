"""The table of body plans by the name that a character's `draw: rig` gives."""

from __future__ import annotations

from collections.abc import Mapping

from katha.renderers.sketch.figures.bird import draw_bird
from katha.renderers.sketch.figures.rig import Rig
from katha.renderers.sketch.figures.upright import draw_upright

__all__ = ["RIGS"]

RIGS: Mapping[str, Rig] = {
    "upright": draw_upright,
    "bird": draw_bird,
}
"""Every rig; add a body plan by writing a function with the signature of `Rig` and naming it here."""
