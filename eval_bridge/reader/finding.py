"""From the finder's maps to places: peaks, and the shapes read at them.

`shapes` are nine numbers a cell. Of a head: where its middle is in the cell (x, y, in cells from the cell's middle),
the logarithm of its radius in cells, the middle of its figure's box (x, y, from the head's middle, in radii), the
logarithm of half of the box's longer side in radii. Of a thing: its middle in the cell, the logarithm of half its side
in cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_HEADS", "MOST_THINGS", "STRIDE", "Head", "Thing", "find_heads", "find_things", "sigmoid", "softmax"]

Array = NDArray[np.float32]
STRIDE = 8
MOST_HEADS, MOST_THINGS = 10, 14
"""So many of each are looked at more closely; a frame that shows more has no room for faces."""
_FAINT = 0.2
"""What is lower than this is no peak: no name can lift it over the threshold."""
_FARTHEST, _LARGEST = 8.0, 4.0


@dataclass(frozen=True)
class Head:
    """One head: probability, middle and radius, and the square around its figure (middle, half a side), in pixels."""

    p: float
    x: float
    y: float
    radius: float
    body: tuple[float, float, float]


@dataclass(frozen=True)
class Thing:
    """One thing: probability, middle and half of its longer side, in pixels."""

    p: float
    x: float
    y: float
    half: float


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)), dtype=np.float32)


def softmax(x: Array) -> Array:
    """Probabilities along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True)) if x.size else x
    return np.asarray(e / e.sum(axis=-1, keepdims=True), dtype=np.float32)


def _peaks(heat: Array) -> Iterator[tuple[float, int, int]]:
    """Local maxima of one map as (p, row, column), highest first."""
    padded = np.pad(heat, 1)
    around = np.max([padded[i : i + heat.shape[0], j : j + heat.shape[1]] for i in range(3) for j in range(3)], axis=0)
    found = np.argwhere((heat >= _FAINT) & (heat >= around))
    yield from sorted(((float(heat[r, c]), int(r), int(c)) for r, c in found), key=lambda one: (-one[0], *one[1:]))


def _middle(shape: Array, row: int, column: int) -> tuple[float, float]:
    x, y = np.clip(shape[:2], -1.5, 1.5)
    return (column + 0.5 + float(x)) * STRIDE, (row + 0.5 + float(y)) * STRIDE


def _length(logarithm: np.float32) -> float:
    return float(np.exp(np.clip(logarithm, -_LARGEST, _LARGEST)))


def find_heads(heat: Array, shapes: Array) -> list[Head]:
    """Heads from one map (h, w) of probabilities and `shapes` (9, h, w), likeliest first, no two in one place."""
    heads: list[Head] = []
    for p, r, c in _peaks(heat):
        shape = shapes[:6, r, c]
        x, y = _middle(shape, r, c)
        radius = STRIDE * _length(shape[2])
        dx, dy = np.clip(shape[3:5], -_FARTHEST, _FARTHEST) * radius
        head = Head(p, x, y, radius, (x + float(dx), y + float(dy), radius * _length(shape[5])))
        if all(_apart(x, y, other.x, other.y) > max(STRIDE, 0.5 * max(radius, other.radius)) for other in heads):
            heads.append(head)
        if len(heads) == MOST_HEADS:
            break
    return heads


def find_things(heat: Array, shapes: Array) -> list[Thing]:
    """Things from one map (h, w) of probabilities and `shapes` (9, h, w), likeliest first, no two in one place."""
    things: list[Thing] = []
    for p, r, c in _peaks(heat):
        shape = shapes[6:, r, c]
        x, y = _middle(shape, r, c)
        half = STRIDE * _length(shape[2])
        if all(_apart(x, y, other.x, other.y) > max(STRIDE, 0.25 * min(half, other.half)) for other in things):
            things.append(Thing(p, x, y, half))
        if len(things) == MOST_THINGS:
            break
    return things


def _apart(x: float, y: float, u: float, v: float) -> float:
    return float(np.hypot(x - u, y - v))
