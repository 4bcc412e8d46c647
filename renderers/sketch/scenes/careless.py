"""The camera of `sketch:loose`: as careless as a text-to-image model's, for experiments that need broken pictures.

A wide shot shows everybody too small to read and to one side; a close shot is of one face, or of two, and cuts bodies
and things off. The seed alone chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from katha.renderers.sketch.scenes.framing import Framing, Shot, Subject, union

__all__ = ["SHOTS", "careless_framing"]

SHOTS: Mapping[Shot, float] = {"wide": 0.25, "medium": 0.45, "close": 0.30}
"""How often the seed takes each shot when none is asked for."""

_HEIGHTS: Mapping[Shot, tuple[float, float]] = {"wide": (0.17, 0.23), "medium": (0.5, 0.6)}
"""Height of the tallest actor beside the frame's, from and to."""
_ZOOMS: Mapping[Shot, float] = {"wide": 1.0, "medium": 1.1, "close": 1.4}


def careless_framing(
    subjects: Sequence[Subject], asked: Shot | None, rng: Random, width: float, height: float
) -> Framing:
    """Aim at anybody without a look at what is cut off."""
    shot = asked or rng.choices(list(SHOTS), weights=list(SHOTS.values()))[0]
    size, pan, tilt, focus = rng.random(), rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), rng.random()
    acting = [subject for subject in subjects if subject.acts] or list(subjects)
    faces = [subject.face for subject in acting if subject.face is not None]
    if not acting:
        return Framing("wide", height / 300, width / 2, height * 0.9)
    if shot == "close" and faces:
        cx, cy, r = faces[min(int(focus * len(faces)), len(faces) - 1)]
        k = (0.225 + 0.08 * size) * height / r
        return Framing(
            shot, k, width * (0.5 + 0.13 * pan) - k * cx, height * (0.45 + 0.05 * tilt) - k * cy, _ZOOMS[shot]
        )
    shot = "medium" if shot == "close" else shot
    x0, y0, x1, _ = union([subject.box for subject in acting])
    low, high = _HEIGHTS[shot]
    k = min((low + (high - low) * size) * height / max(38.0, -y0), 0.93 * width / max(x1 - x0, 1.0))
    free = max(0.0, (width - k * (x1 - x0)) / 2)
    ground = (0.8 + 0.1 * tilt if shot == "wide" else 0.88 + 0.04 * tilt) * height
    return Framing(shot, k, width / 2 - k * (x0 + x1) / 2 + 0.8 * pan * free, ground, _ZOOMS[shot])
