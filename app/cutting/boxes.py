"""Rectangles on a page, and the order in which a reader meets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Order = Literal["ltr", "rtl", "ttb"]
"""How panels are read: rows from left to right, rows from right to left (manga), or straight down (a webtoon)."""
_OVERLAP = 0.15
"""How much two panels of neighbouring rows may overlap, as a share of the smaller."""


class Box(NamedTuple):
    """A rectangle in pixels: left and top are in it, right and bottom are not."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Pixels."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Pixels."""
        return self.bottom - self.top

    @property
    def area(self) -> int:
        """Pixels; 0 where nothing is left."""
        return max(0, self.width) * max(0, self.height)

    def overlap(self, other: Box) -> int:
        """Return how many pixels two boxes share."""
        return Box(*map(max, self[:2], other[:2]), *map(min, self[2:], other[2:])).area

    def moved(self, left: int, top: int) -> Box:
        """Return the box moved by so many pixels."""
        return Box(self.left + left, self.top + top, self.right + left, self.bottom + top)


def without_inner(boxes: Sequence[Box], share: float = 0.6) -> list[Box]:
    """Return the boxes of which no more than `share` lies within a larger one."""
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda box: -box.area):
        if all(box.overlap(other) <= share * box.area for other in kept):
            kept.append(box)
    return kept


def in_order(boxes: Sequence[Box], order: Order = "ltr") -> list[Box]:
    """Return panels as they are read: a page falls into rows, a row into columns, a column into rows again.

    What neither rows nor columns part (panels laid like bricks in a ring) is read by its upper edge, then its side.
    """
    if order == "ttb":
        return sorted(boxes, key=lambda box: (box.top, box.left))
    if order == "rtl":
        return [_mirrored(box) for box in in_order([_mirrored(box) for box in boxes])]
    rows = in_rows(boxes)
    if len(rows) > 1:
        return [box for row in rows for box in in_order(row)]
    columns = _parted([(box.left, box.right, box) for box in boxes])
    if len(columns) > 1:
        return [box for column in columns for box in in_order(column)]
    return sorted(boxes, key=lambda box: (box.top, box.left))


def in_rows(boxes: Sequence[Box]) -> list[list[Box]]:
    """Return the boxes in groups, from the top down, between which a level line passes."""
    return _parted([(box.top, box.bottom, box) for box in boxes])


def _mirrored(box: Box) -> Box:
    return Box(-box.right, box.top, -box.left, box.bottom)


def _parted(spans: Sequence[tuple[int, int, Box]]) -> list[list[Box]]:
    """Return groups of boxes between which a straight line passes, in order; spans have start and end."""
    groups: list[list[Box]] = []
    ends: list[int] = []
    for start, stop, box in sorted(spans):
        if groups and start < ends[-1] - _OVERLAP * min(stop - start, abs(ends[-1] - start)):
            groups[-1].append(box)
            ends[-1] = max(ends[-1], stop)
        else:
            groups.append([box])
            ends.append(stop)
    return groups
