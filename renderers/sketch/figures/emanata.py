"""Signs of action around a figure (motion lines, dust, bubbles, notes, drops), shared by every rig and free of letters.

The drawings are in `motion_signs`, `voice_signs` and `work_signs`; this module is the table and the way to draw from
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from katha.renderers.sketch.figures.around import Around, Emanation
from katha.renderers.sketch.figures.ink import Ink
from katha.renderers.sketch.figures.motion_signs import MOTION
from katha.renderers.sketch.figures.voice_signs import VOICE
from katha.renderers.sketch.figures.work_signs import WORK

__all__ = ["EMANATA", "draw_emanata"]

EMANATA: Mapping[str, tuple[bool, Emanation]] = {**MOTION, **VOICE, **WORK}
"""Signs by the names that `draw: emanata` uses, each with whether it lies behind the figure."""


def draw_emanata(names: Iterable[str], around: Around, *, front: Ink, behind: Ink) -> None:
    """Draw each named sign, in front of the figure or behind it as the table says."""
    for name in names:
        is_behind, draw = EMANATA[name]
        draw(behind if is_behind else front, around)
