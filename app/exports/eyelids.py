"""Eyelids for eyes that blink: found in a drawn layer, by what is under its pupils, and closed over the whole eye."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

_DIFFERS = 24
"""A change of a channel, of 255, by which a pupil is seen."""
_ALIKE = 60
"""How far the three channels of one flat colour differ together at most."""
_AROUND = 2.5
"""How far around a pupil its eye is looked for, in pupils."""
_SLANT = 0.45
"""How steep the line through two eyes is at most; a head that lies keeps its eyes open."""
_SOLID = 200
_FINE = 4
"""How many times larger lashes are drawn."""


@dataclass(frozen=True)
class Lid:
    """A closed eye. picture: what is laid over the open one; place: its left upper corner, in pixels of the layer."""

    picture: Image
    place: tuple[int, int]


def eyelids(drawn: Image, blind: Image) -> list[Lid]:
    """Return the lids of one head's eyes; none where a pair of them cannot be made.

    drawn: a layer as it is. blind: the same without the head's pupils. Both in RGBA.
    """
    changed = np.abs(_array(drawn) - _array(blind)).max(axis=2) > _DIFFERS
    pupils = list(_eyes(changed))
    if any(not changed[top:bottom, left:right].any(axis=1).all() for left, top, right, bottom in pupils):
        return []  # one above the other
    middles = [((left + right) / 2, (top + bottom) / 2) for left, top, right, bottom in pupils]
    for (x, y), (other_x, other_y) in pairwise(middles):
        if abs(other_y - y) > _SLANT * abs(other_x - x):
            return []
    made = [_lid(drawn, blind, changed, pupil) for pupil in pupils]
    found = [lid for lid in made if lid is not None]
    return found if len(found) == len(made) else []


def _array(picture: Image) -> NDArray[np.int16]:
    return np.asarray(picture, dtype=np.int16)


def _eyes(changed: NDArray[np.bool_]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the boxes of the pupils, from the left."""
    columns = np.flatnonzero(changed.any(axis=0))
    if not columns.size:
        return
    for run in np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1):
        rows = np.flatnonzero(changed[:, run[0] : run[-1] + 1].any(axis=1))
        yield int(run[0]), int(rows[0]), int(run[-1]) + 1, int(rows[-1]) + 1


def _lid(drawn: Image, blind: Image, changed: NDArray[np.bool_], pupil: tuple[int, int, int, int]) -> Lid | None:
    from PIL import Image, ImageDraw, ImageFilter

    left, top, right, bottom = pupil
    more = round(_AROUND * max(right - left, bottom - top))
    box = max(0, left - more), max(0, top - more), min(blind.width, right + more), min(blind.height, bottom + more)
    under, own = blind.crop(box), changed[box[1] : box[3], box[0] : box[2]].copy()
    inside = np.zeros_like(own)
    inside[top - box[1] : bottom - box[1], left - box[0] : right - box[0]] = True
    own &= inside
    seed = (left + right) // 2 - box[0], (top + bottom) // 2 - box[1]
    colours = _array(under)
    if colours[seed[1], seed[0], 3] < _SOLID:
        return None
    ground = colours[seed[1], seed[0], :3]
    filled = Image.new("L", under.size)
    flat = np.abs(colours[:, :, :3] - ground).sum(axis=2) <= _ALIKE
    filled.putdata((flat & (colours[:, :, 3] >= _SOLID)).astype(np.uint8).ravel().tolist())
    ImageDraw.floodfill(filled, seed, 2)
    white = np.asarray(filled) == 2
    edges = white[0].any() or white[-1].any() or white[:, 0].any() or white[:, -1].any()
    if edges or (white & changed[box[1] : box[3], box[0] : box[2]] & ~inside).any():
        white, skin = own, ground  # a dot on the bare face, where the other eye is, too
    else:
        found = _skin(colours, white, ground)
        if found is None:
            return None
        skin = found
    whole = Image.fromarray(((white | own) * 255).astype(np.uint8))
    whole = whole.filter(ImageFilter.MaxFilter(3)).filter(ImageFilter.GaussianBlur(0.6))
    lid = Image.new("RGBA", under.size, (*(int(part) for part in skin), 0))
    lid.putalpha(whole)
    lash = _lash(white | own, under.size, _dark(_array(drawn.crop(box))[own][:, :3], skin))
    lid.alpha_composite(lash)
    return Lid(lid, box[:2])


def _skin(colours: NDArray[np.int16], white: NDArray[np.bool_], ground: NDArray[np.int16]) -> Any:
    """Return the commonest colour around an eye that is not the eye's own; None where there is none."""
    rows, columns = np.flatnonzero(white.any(axis=1)), np.flatnonzero(white.any(axis=0))
    tall, wide = (int(found[-1] - found[0]) + 2 for found in (rows, columns))
    part = colours[max(0, rows[0] - tall) : rows[-1] + tall, max(0, columns[0] - wide) : columns[-1] + wide]
    pixels = part[(part[:, :, 3] >= _SOLID) & (np.abs(part[:, :, :3] - ground).sum(axis=2) > _ALIKE)][:, :3]
    if not len(pixels):
        return None
    kinds, counts = np.unique(pixels // 16, axis=0, return_counts=True)
    return pixels[(pixels // 16 == kinds[counts.argmax()]).all(axis=1)].mean(axis=0)


def _dark(pupil: NDArray[np.int16], skin: Any) -> tuple[int, int, int]:
    """Return the colour of lashes: the pupil's, where that is darker than the skin."""
    found = np.median(pupil, axis=0)
    if found.mean() > np.mean(skin) - 30:
        found = np.asarray(skin) * 0.45
    return int(found[0]), int(found[1]), int(found[2])


def _lash(eye: NDArray[np.bool_], size: tuple[int, int], colour: tuple[int, int, int]) -> Image:
    """Return the line of a closed eye, along its lower edge."""
    from PIL import Image, ImageDraw

    rows, columns = np.flatnonzero(eye.any(axis=1)), np.flatnonzero(eye.any(axis=0))
    left, top, right, bottom = (int(edge) * _FINE for edge in (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
    out = Image.new("RGBA", (size[0] * _FINE, size[1] * _FINE), (*colour, 0))
    weight = max(_FINE, round(0.14 * min(right - left, bottom - top)))
    ImageDraw.Draw(out).arc((left, top, right, bottom), 15, 165, fill=(*colour, 255), width=weight)
    return out.resize(size, Image.Resampling.BOX)
