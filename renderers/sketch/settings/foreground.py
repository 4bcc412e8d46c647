"""Things close to the eye that may cover a lower corner: leaves, grass, rock, pillar, curtain or post."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from katha.renderers.sketch.style import colour, darker
from katha.renderers.sketch.svg import circle, path, polygon, rect, trace

__all__ = ["FOREGROUNDS"]

Box = tuple[float, float, float, float]


def _leaves(rng: Random, fill: str) -> tuple[str, Box]:
    parts = []
    for x, y, turn in ((10, 470, 0), (70, 500, 30), (120, 520, 52), (20, 420, -18), (56, 440, 12)):
        tip = (x + 34 + turn, y - 96 + turn * 0.7 + rng.uniform(-8, 8))
        d = trace("M", (x - 20, y + 40), "Q", (x - 26, y - 50), tip, "Q", (x + 54, y - 20), (x - 20, y + 40), "Z")
        d += trace("M", (x - 20, y + 40), "Q", (x, y - 20), tip)
        parts.append(path(d, fill=colour(fill), width=3))
    return "".join(parts), (0, 330, 200, 512)


def _blades(rng: Random, fill: str) -> tuple[str, Box]:
    parts = []
    for i in range(12):
        x, tall = i * 15.0 - 6, rng.uniform(90, 170) * (1 - i / 24)
        lean = rng.uniform(-12, 30)
        d = trace(
            "M",
            (x - 9, 530),
            "Q",
            (x - 2, 530 - tall * 0.6),
            (x + lean, 530 - tall),
            "Q",
            (x + 10, 530 - tall * 0.5),
            (x + 10, 530),
            "Z",
        )
        parts.append(path(d, fill=colour(fill), width=2.6))
    return "".join(parts), (0, 385, 180, 512)


def _boulder(rng: Random, fill: str) -> tuple[str, Box]:
    top = 372 + rng.uniform(-14, 14)
    shape = [(-30, 540), (-30, top + 26), (40, top), (108, top + 22), (158, top + 90), (178, 540)]
    shade = [(108, top + 22), (158, top + 90), (178, 540), (120, 540), (128, top + 96)]
    return polygon(shape, fill=colour(fill), width=3) + polygon(shade, fill=darker(fill, 0.2), stroke=None), (
        0,
        376,
        166,
        512,
    )


def _pillar(rng: Random, fill: str) -> tuple[str, Box]:
    body = rect(-30, -30, 104, 580, fill=colour(fill), line_width=3) + rect(
        -30, 470, 128, 60, fill=colour(fill), line_width=3
    )
    return body + path("M6,-20V470M40,-20V470", stroke=darker(fill, 0.2), width=3), (0, 0, 78, 512)


def _curtain(rng: Random, fill: str) -> tuple[str, Box]:
    hem = 96 + rng.uniform(-10, 16)
    d = trace("M-30,-30L", (hem + 20, -30), "Q", (hem + 6, 250), (hem - 40, 540), "L-30,540Z")
    folds = trace("M", (hem - 24, -30), "Q", (hem - 30, 250), (hem - 66, 540), "M24,-30Q20,260 8,540")
    return path(d, fill=colour(fill), width=3) + path(folds, stroke=darker(fill, 0.25), width=3), (0, 0, 96, 512)


def _post(rng: Random, fill: str) -> tuple[str, Box]:
    rails = rect(-30, 400, 210, 26, fill=colour(fill), line_width=3) + rect(
        -30, 462, 210, 26, fill=colour(fill), line_width=3
    )
    return rails + rect(70 + rng.uniform(-12, 12), 366, 36, 180, fill=colour(fill), line_width=3, round_=6), (
        0,
        380,
        180,
        512,
    )


def _drift(rng: Random, fill: str) -> tuple[str, Box]:
    top = 420 + rng.uniform(-12, 12)
    d = trace("M-30,540L", (-30, top), "C", (60, top - 36), (150, top + 10), (240, 540), "Z")
    return path(d, fill=colour(fill), width=3), (0, 410, 180, 512)


def _puffs(rng: Random, fill: str) -> tuple[str, Box]:
    spots = ((0, 500, 62), (66, 510, 54), (126, 524, 44), (20, 450, 44))
    rings = "".join(circle(x, y, r, fill=colour(fill), width=3) for x, y, r in spots)
    return rings + "".join(circle(x, y, r - 3, fill=colour(fill), stroke=None) for x, y, r in spots), (0, 430, 165, 512)


FOREGROUNDS: dict[str, Callable[[Random, str], tuple[str, Box]]] = {
    "leaves": _leaves, "blades": _blades, "boulder": _boulder, "pillar": _pillar, "curtain": _curtain, "post": _post,
    "drift": _drift, "puffs": _puffs,
}  # fmt: skip
"""Foreground shapes at the left edge of a 512-unit-tall stage, with the box they cover; the right side is mirrored."""
