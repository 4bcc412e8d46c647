"""The panels of a comic's page: what the gutters part.

The gutter is the page's own colour as far as it reaches in from the edge, so a panel may hold that colour. What it
leaves falls into connected pieces, which are opened until balloons that reach over a gutter join no panels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from katha.app.cutting.boxes import Box, Order, in_order, in_rows, without_inner
from katha.models.checkpoints import need

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    Mask = NDArray[np.bool_]

_SIDE = 1000
"""Pixels of the longer side of a page as it is looked at."""
_NEAR = 28
"""How far a gutter's colour may be from the page's, a channel, of 255: scans and JPEG are not even."""
_SQUARES = (0.008, 0.03, 0.06, 0.09, 0.13)
"""Sides of the squares that open bridges, of a page's longer side: lines, tails of balloons, balloons."""
_LEAST_SIDE, _LEAST_AREA = 0.05, 0.006
"""Of the page: what is smaller is a page's number, a title or a stain."""
_DENSE, _THIN = 0.8, 0.55
_WHOLE, _FULL, _STRAIGHT = 0.93, 0.72, 0.85
"""How much of its rectangle a panel fills that nothing joins, that a panel fills, and of three of its sides."""
_MOST = 0.75
"""How much of a part its panels cover, or the part is one panel that broke up."""
_ALONE = 0.98
"""How much of a piece lies in its rectangle: the rest is of balloons, or of other panels."""
_OPEN, _DRAWN = 0.12, 0.02
"""How wide a gap of a row is, of the page, and how much of it is drawn on, where it is a panel without a frame."""


def find_panels(page: Image, order: Order = "ltr") -> list[Box]:
    """Return the panels of a page in reading order, in its pixels; a page without gutters is one panel.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    label = need("scipy.ndimage", "Finding the panels of a page", "cut")
    scale = min(1.0, _SIDE / max(page.size))
    small = page.convert("RGB").resize([max(1, round(side * scale)) for side in page.size])
    pixels = np.asarray(small, dtype=np.int16)
    whole = Box(0, 0, page.width, page.height)
    for paper in _papers(pixels):
        found = _panels_on(pixels, paper, label)
        if len(found) > 1:
            real = [_scaled(box, 1 / scale, whole) for box in found]
            return in_order(real, order)
    return [whole]


def _scaled(box: Box, scale: float, whole: Box) -> Box:
    left, top, right, bottom = (round(side * scale) for side in box)
    return Box(max(0, left), max(0, top), min(whole.right, right), min(whole.bottom, bottom))


def _papers(pixels: NDArray[np.int16]) -> Iterator[NDArray[np.int16]]:
    """Yield what may be the colour of the gutters: the commonest at the edge, then white and black."""
    edge = np.concatenate([pixels[:3].reshape(-1, 3), pixels[-3:].reshape(-1, 3)])
    edge = np.concatenate([edge, pixels[:, :3].reshape(-1, 3), pixels[:, -3:].reshape(-1, 3)])
    bins, counts = np.unique(edge // 32, axis=0, return_counts=True)
    commonest = edge[(edge // 32 == bins[counts.argmax()]).all(axis=1)]
    first = np.median(commonest, axis=0).astype(np.int16)
    yield first
    for other in (255, 0):
        if abs(first - other).max() > _NEAR:
            yield np.full(3, other, dtype=np.int16)


def _panels_on(pixels: NDArray[np.int16], paper: NDArray[np.int16], image: Any) -> list[Box]:
    """Return the panels that gutters of the colour `paper` part; nothing where the pieces are no rectangles."""
    ground = (np.abs(pixels - paper) <= _NEAR).all(axis=2)
    pieces, _ = image.label(ground)
    edge = np.unique(np.concatenate([pieces[0], pieces[-1], pieces[:, 0], pieces[:, -1]]))
    content = ~(ground & np.isin(pieces, edge[edge > 0]))
    height, width = content.shape
    found: list[Box] = []
    full = everything = 0
    for box, framed in _found(content, image):
        if box.area < _LEAST_AREA * width * height or min(box.width / width, box.height / height) < _LEAST_SIDE:
            continue
        everything += box.area
        full += box.area if framed else 0
        found += [box] if framed else []
    found = without_inner(found) if full >= 0.5 * everything else []
    return _with_open(found, content) if found else []


def _found(content: Mask, image: Any) -> Iterator[tuple[Box, bool]]:
    """Yield the pieces of each part that straight gutters leave; of a part that breaks up, though it is a panel, the
    whole: a panel without a line around it is open to the gutter where it has the paper's colour."""
    for part in _parts(content, Box(0, 0, content.shape[1], content.shape[0])):
        inside = content[part.top : part.bottom, part.left : part.right]
        pieces = list(_pieces(inside, 0, image))
        if sum(box.area for box, framed in pieces if framed) < _MOST * part.area and _is_framed(inside):
            yield part, True
        else:
            yield from ((box.moved(part.left, part.top), framed) for box, framed in pieces)


def _parts(content: Mask, within: Box) -> Iterator[Box]:
    """Yield what straight gutters from edge to edge part, until none is left; nothing of an empty page."""
    for axis in (1, 0):
        inside = content[within.top : within.bottom, within.left : within.right]
        drawn = np.flatnonzero(np.diff(np.pad(inside.any(axis=axis), 1).astype(np.int8)))
        runs = list(zip(drawn[::2].tolist(), drawn[1::2].tolist(), strict=True))
        sides = (within.height, within.width)[1 - axis]
        if runs != [(0, sides)]:
            left, top = within.left, within.top
            for low, high in runs:
                across = Box(left, top + low, within.right, top + high)
                yield from _parts(content, across if axis else Box(left + low, top, left + high, within.bottom))
            return
    yield within


def _pieces(mask: Mask, level: int, image: Any) -> Iterator[tuple[Box, bool]]:
    """Yield the rectangle of each piece, and whether it is a panel. What is no rectangle is opened by a larger square:
    panels that hold the square keep their shape, and balloons that join them do not.
    """
    left = mask.copy()
    for place, piece in _opened(mask, _SQUARES[level], image):
        box = _trimmed(piece)
        inside = piece[box.top : box.bottom, box.left : box.right]
        framed, thinnest = _is_framed(inside), min(inside.mean(axis=0).min(), inside.mean(axis=1).min())
        last = level + 1 == len(_SQUARES)
        alone = inside.sum() >= _ALONE * piece.sum() and thinnest >= _DENSE and inside.mean() >= _WHOLE
        if last or (framed and alone):
            yield box.moved(place.left, place.top), framed
        else:
            for inner, whole in _pieces(piece, level + 1, image):
                yield inner.moved(place.left, place.top), whole
        left[place.top : place.bottom, place.left : place.right] &= ~piece
    for place, piece in _opened(left, _SQUARES[0], image) if level else ():
        box = _trimmed(piece)  # a panel narrower than the square
        yield box.moved(place.left, place.top), _is_framed(piece[box.top : box.bottom, box.left : box.right])


def _opened(mask: Mask, square: float, image: Any) -> Iterator[tuple[Box, Mask]]:
    """Yield each connected piece of what a square, as a share of the page, can reach: its place and shape."""
    size = max(3, round(square * _SIDE))
    opened = image.grey_opening(np.pad(mask, size).astype(np.uint8), size=(size, size))[size:-size, size:-size]
    pieces, _ = image.label(opened, np.ones((3, 3)))
    for number, (rows, columns) in enumerate(image.find_objects(pieces), 1):
        yield Box(columns.start, rows.start, columns.stop, rows.stop), pieces[rows, columns] == number


def _is_framed(inside: Mask) -> bool:
    """Return whether a piece is a panel: it fills its rectangle, and has straight sides, which no figure has."""
    edge = max(1, round(0.02 * min(inside.shape)))
    sides = (inside[:edge], inside[-edge:], inside[:, :edge], inside[:, -edge:])
    return bool(inside.mean() >= _FULL) and sum(bool(side.mean() >= _STRAIGHT) for side in sides) >= 3


def _with_open(found: list[Box], content: Mask) -> list[Box]:
    """Return the panels with those that have no frame: what is drawn in a wide gap of a row, between framed panels."""
    width = content.shape[1]
    whole: list[Box] = []
    for row in in_rows(found):
        top, bottom = min(box.top for box in row), max(box.bottom for box in row)
        tall = [box for box in row if box.height >= _DENSE * (bottom - top)]
        ends = [0, *(side for box in sorted(tall) for side in (box.left, box.right)), width]
        opened: list[Box] = []
        for left, right in zip(ends[::2], ends[1::2], strict=True):
            gap = content[top:bottom, left : max(left, right)]
            inside = [box for box in row if box not in tall and left <= box.left and box.right <= right]
            if right - left >= _OPEN * width and gap.mean() >= _DRAWN and sum(b.area for b in inside) < 0.5 * gap.size:
                columns = np.flatnonzero(gap.any(axis=0))
                opened.append(Box(left + int(columns[0]), top, left + int(columns[-1]) + 1, bottom))
        if not tall:
            whole += row
            continue
        whole += [*(box for box in row if not any(box.overlap(other) for other in opened)), *opened]
    return whole


def _trimmed(mask: Mask) -> Box:
    """Return the rectangle of a piece without thin edges, such as a balloon that rises above its panel."""
    box = Box(0, 0, mask.shape[1], mask.shape[0])
    for _ in range(2):
        inside = mask[box.top : box.bottom, box.left : box.right]
        dense_columns = np.flatnonzero(inside.mean(axis=0) >= _THIN)
        dense_rows = np.flatnonzero(inside.mean(axis=1) >= _THIN)
        if not len(dense_columns) or not len(dense_rows):
            return box
        left, right, top, bottom = dense_columns[0], dense_columns[-1] + 1, dense_rows[0], dense_rows[-1] + 1
        box = Box(int(box.left + left), int(box.top + top), int(box.left + right), int(box.top + bottom))
    return box
