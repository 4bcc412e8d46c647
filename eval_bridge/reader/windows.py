"""The windows through which the reader looks closer: a figure's head, the whole figure, a prop.

All lengths are in pixels of the coarse picture; a window is its middle and half a side. A place in a window is three
numbers: a middle (x, y) in half sides from the window's, and the logarithm of a half side over the window's. The namer
says by it how the window should have been cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BODY_SIDE", "CLOSE_SIDE", "Window", "body_window", "discs", "head_window", "mark", "moved", "prop_window"]

CLOSE_SIDE, BODY_SIDE = 64, 80
"""Pixels a side that the network sees of a head or prop, and of a whole figure."""
_HEAD_REACH, _BODY_REACH, _PROP_REACH = 2.0, 1.3, 1.25
_SMALLEST = 6.0


@dataclass(frozen=True)
class Window:
    """The square around (x, y) that reaches `half` to each side."""

    x: float
    y: float
    half: float


def head_window(x: float, y: float, radius: float) -> Window:
    """A head with its ears, horns, hat and the signs around it."""
    return Window(x, y, max(_SMALLEST, _HEAD_REACH * radius))


def body_window(x: float, y: float, half: float) -> Window:
    """A whole figure, given the middle of its box and half of the box's longer side."""
    return Window(x, y, max(_SMALLEST, _BODY_REACH * half))


def prop_window(x: float, y: float, half: float) -> Window:
    """A prop with a little of what is around it."""
    return Window(x, y, max(_SMALLEST, _PROP_REACH * half))


def moved(window: Window, place: NDArray[np.float32], times: float = 1.0) -> Window:
    """The window that `place` (3,) describes inside of `window`, `times` as wide; at most a half side away, and no
    smaller than half and no larger than double."""
    x, y = np.clip(place[:2], -1, 1) * window.half
    wider = times * float(np.exp(np.clip(place[2], -0.7, 0.7)))
    return Window(window.x + float(x), window.y + float(y), window.half * wider)


def mark(head: Window, body: Window) -> tuple[float, float, float]:
    """Where a head lies in its figure's window: middle and radius as shares of the window's side."""
    side = 2 * body.half
    return ((head.x - body.x) / side + 0.5, (head.y - body.y) / side + 0.5, head.half / _HEAD_REACH / side)


def discs(marks: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """(n, 3) marks as (n, side, side) soft discs: 1 on the marked head, to tell whose figure it is."""
    at = (np.arange(side, dtype=np.float32) + 0.5) / side
    x, y, r = (marks[:, i, None, None] for i in range(3))
    distance = np.sqrt((at[None, None, :] - x) ** 2 + (at[None, :, None] - y) ** 2)
    return np.clip(1.5 - distance / np.maximum(r, 1 / side), 0, 1).astype(np.float32)
