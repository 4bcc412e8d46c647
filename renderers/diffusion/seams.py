"""Pictures that came out as two, side by side or one over the other: told by their pixels, the same way every time.

A model that draws from two pictures stitched into one may stitch what it draws. Looked for are a line from edge to
edge in the middle, which nearly every row crosses by a jump far above those of its surroundings; a narrow band of one
colour; and halves that are the two pictures that it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE = 256
"""Pixels across which a picture is looked at: noise is averaged away, a line stays a line."""
_SMALLEST = 128
"""A picture with a side below this is too coarse to be told."""
_MIDDLE = (0.3, 0.7)
"""Where a seam is looked for, as a share of the side."""
_STEP = 10.0
"""Levels of 255 that a row jumps by at a seam."""
_ROWS = 0.93
"""The share of all rows that have to jump in one place."""
_ABOVE = 2.0
"""How many times the jumps there exceed those of the columns around, at their median and at their lower quartile."""
_QUIET = 1.5
"""Levels that are added to the jumps around, so that a picture without texture has no infinite ratio."""
_FLAT = 4.0
"""The deviation in levels below which a line of pixels is one colour."""
_BANDS = 10
"""The widest band between two pictures, in pixels of _SIDE."""

_HALF = 24
"""Pixels across which a half is compared with a picture."""
_ALIKE = 0.75
"""The correlation from which a half is that picture."""

Seam = Literal["side by side", "one over the other"]


def find_seam(picture: Image) -> Seam | None:
    """Return how a picture falls into two, or None where it is one."""
    from PIL import Image as Pillow

    if min(picture.size) < _SMALLEST:
        return None
    small = picture.convert("RGB").resize((_SIDE, _SIDE), Pillow.Resampling.BOX)
    pixels = np.asarray(small, dtype=np.float64)
    if _split(pixels):
        return "side by side"
    return "one over the other" if _split(pixels.transpose(1, 0, 2)) else None


def _split(pixels: NDArray[np.float64]) -> bool:
    """Return whether a column divides `pixels` of shape (H, W, 3) into a left and a right picture."""
    first, last = (round(share * pixels.shape[1]) for share in _MIDDLE)
    return _has_step(pixels, first, last) or _has_band(pixels, first, last)


def _has_step(pixels: NDArray[np.float64], first: int, last: int) -> bool:
    """Return whether nearly every row jumps at one column, by far more than at the columns around it."""
    jumps = np.abs(pixels[:, 2:] - pixels[:, :-2]).max(axis=2)  # over two pixels, because a decoder softens an edge
    places = np.flatnonzero((jumps > _STEP).mean(axis=0) >= _ROWS)
    quarters = np.quantile(jumps, (0.25, 0.5), axis=0)
    for at in places[(first <= places) & (places < last)]:
        beside = np.r_[max(0, at - 24) : at - 3, at + 4 : min(jumps.shape[1], at + 25)]
        if (quarters[:, at] >= _ABOVE * (np.median(quarters[:, beside], axis=1) + _QUIET)).all():
            return True
    return False


def _has_band(pixels: NDArray[np.float64], first: int, last: int) -> bool:
    """Return whether a narrow run of columns is of one colour from top to bottom, and the columns around it are not."""
    flat = pixels.std(axis=0).max(axis=1) < _FLAT
    at = first
    while at < last:
        if not flat[at]:
            at += 1
            continue
        end = at
        while end < len(flat) and flat[end]:
            end += 1
        sides = (pixels[:, max(0, at - 4)], pixels[:, min(pixels.shape[1] - 1, end + 3)])
        if end - at <= _BANDS and all(float(side.std(axis=0).max()) > 3 * _FLAT for side in sides):
            return True
        at = end
    return False


def repeats(picture: Image, first: Image, second: Image) -> bool:
    """Return whether the left half of a picture is `first` and the right half `second`, cut or squeezed."""
    width, height = picture.size
    halves = (picture.crop((0, 0, width // 2, height)), picture.crop((width - width // 2, 0, width, height)))
    return all(
        max(_likeness(half, given), _likeness(half, _cut(given, half.width / half.height))) >= _ALIKE
        for half, given in zip(halves, (first, second), strict=True)
    )


def _cut(picture: Image, shape: float) -> Image:
    """Return the middle of a picture, of another width over height."""
    from PIL import ImageOps

    height = 256
    return ImageOps.fit(picture, (max(1, round(height * shape)), height))


def _likeness(one: Image, other: Image) -> float:
    """Return the correlation of two pictures' brightness, -1 to 1; 0 where one of them has none to compare."""
    from PIL import Image as Pillow

    small = [item.convert("L").resize((_HALF, _HALF), Pillow.Resampling.BOX) for item in (one, other)]
    first, second = (np.asarray(item, dtype=np.float64).ravel() for item in small)
    if min(first.std(), second.std()) < 1:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
