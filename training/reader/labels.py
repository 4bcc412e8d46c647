"""What a person could read in a composed frame, and therefore what the reader is asked for.

The rules are in reader pixels (the frame fitted into the reader's input):

- a character counts when at least 65% of its head is inside the frame and uncovered and the head's radius is 5 or more;
- its emotion counts when the head's radius is 8 or more;
- its action counts when, besides, 60% or more of the whole figure is visible and the head's radius is 6 or more;
- a prop counts when 55% or more of it is visible and its longer side is 10 or more.

What is partly visible but below a rule is neither asked for nor counted as wrong (`counts=False`).
"""

from __future__ import annotations

from dataclasses import dataclass

from katha.eval_bridge.reader.network import Fit
from katha.renderers.sketch import Composition, Placed

__all__ = ["FrameLabels", "Item", "label_frame"]

HEAD_VISIBLE, HEAD_RADIUS = 0.65, 5.0
EMOTION_RADIUS = 8.0
ACTION_VISIBLE, ACTION_RADIUS = 0.6, 6.0
PROP_VISIBLE, PROP_SIDE = 0.55, 10.0
_GRID = 7
_SOLID = 0.14


@dataclass(frozen=True)
class Item:
    """One figure or prop in reader pixels. (x, y) and `radius`: the head of a figure, the visible part of a prop.
    `window` is the square around what is inside of the frame: middle and half a side. `action` and `emotion` are None
    where they do not count (not readable), and "none" where the figure shows none."""

    concept: str
    kind: str
    x: float
    y: float
    radius: float
    counts: bool
    window: tuple[float, float, float]
    action: str | None = None
    emotion: str | None = None


@dataclass(frozen=True)
class FrameLabels:
    """Everything the reader is asked of one frame."""

    items: tuple[Item, ...]
    setting: str
    time: str


def label_frame(frame: Composition, fit: Fit) -> FrameLabels:
    """The labels of `frame` after `fit` has put it into the reader's input."""
    items = []
    for nth, placed in enumerate(frame.placed):
        nearer = [_core(other.bbox) for other in frame.placed[nth + 1 :]]
        item = _character(placed, nearer, frame, fit) if placed.kind == "character" else _prop(placed, frame, fit)
        if item is not None:
            items.append(item)
    return FrameLabels(tuple(items), frame.setting or "none", frame.time or "day")


def _core(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = box
    dx, dy = _SOLID * (x1 - x0), _SOLID * (y1 - y0)
    return (x0 + dx, y0 + dy, x1 - dx, y1 - dy)


def _character(
    placed: Placed, nearer: list[tuple[float, float, float, float]], frame: Composition, fit: Fit
) -> Item | None:
    assert placed.head is not None
    cx, cy, r = placed.head
    seen = _head_visible(cx, cy, r, nearer, frame)
    x, y = fit.point(cx, cy)
    radius = r * fit.scale
    if seen == 0 and placed.visible < 0.05:
        return None
    counts = seen >= HEAD_VISIBLE and radius >= HEAD_RADIUS
    body = counts and placed.visible >= ACTION_VISIBLE and radius >= ACTION_RADIUS
    return Item(
        placed.concept,
        "character",
        x,
        y,
        radius,
        counts,
        _square(_inside(placed.bbox, frame) or placed.bbox, fit),
        action=(placed.action or "none") if body else None,
        emotion=(placed.emotion or "none") if counts and radius >= EMOTION_RADIUS else None,
    )


def _head_visible(
    cx: float, cy: float, r: float, nearer: list[tuple[float, float, float, float]], frame: Composition
) -> float:
    seen = total = 0
    for i in range(_GRID):
        for j in range(_GRID):
            u, v = 2 * (i + 0.5) / _GRID - 1, 2 * (j + 0.5) / _GRID - 1
            if u * u + v * v > 1:
                continue
            x, y = cx + u * r, cy + v * r
            total += 1
            inside = 0 <= x <= frame.width and 0 <= y <= frame.height
            seen += inside and not any(a <= x <= c and b <= y <= d for a, b, c, d in nearer)
    return seen / total


def _prop(placed: Placed, frame: Composition, fit: Fit) -> Item | None:
    if placed.visible < 0.05:
        return None
    inside = _inside(placed.bbox, frame)
    if inside is None:
        return None
    left, top, right, bottom = inside
    x0, y0, x1, y1 = placed.bbox
    x, y = fit.point((left + right) / 2, (top + bottom) / 2)
    side = max(x1 - x0, y1 - y0) * fit.scale
    radius = 0.5 * min(right - left, bottom - top) * fit.scale
    counts = placed.visible >= PROP_VISIBLE and side >= PROP_SIDE
    return Item(placed.concept, "prop", x, y, radius, counts, _square(inside, fit))


def _inside(box: tuple[float, float, float, float], frame: Composition) -> tuple[float, float, float, float] | None:
    """The part of a box that is in the frame, None for none: a window is to be guessed from what can be seen."""
    x0, y0, x1, y1 = box
    left, right = max(x0, 0.0), min(x1, float(frame.width))
    top, bottom = max(y0, 0.0), min(y1, float(frame.height))
    return (left, top, right, bottom) if left < right and top < bottom else None


def _square(box: tuple[float, float, float, float], fit: Fit) -> tuple[float, float, float]:
    x0, y0, x1, y1 = box
    return (*fit.point((x0 + x1) / 2, (y0 + y1) / 2), max(x1 - x0, y1 - y0) / 2 * fit.scale)
