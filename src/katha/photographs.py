"""A picture of a person's own made ready for a board: cut, its paper made white, and fitted to the frames' size.

A drawing that was photographed lies on a table in uneven light. `crop` takes the part that counts, `levels` makes its
paper white and its lines dark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from katha.errors import UsageError
from katha.pictures import as_png, decode

if TYPE_CHECKING:
    from PIL.Image import Image

AUTO = "auto"
_NUMBER = r"(\d{1,3}(?:\.\d+)?)"
_CROP = re.compile(r"\s*,\s*".join([_NUMBER] * 4))
_LEVELS = re.compile(r"\s*,\s*".join([_NUMBER] * 2))
_SMALLEST = 16
_SAME_SHAPE = 0.02
"""By how much the sides' ratio may differ and the picture still be scaled to the frame as it is."""
_LIGHT_SIDE = 48
"""Pixels of the longer side at which the light on a sheet of paper is measured."""
_DARKEST, _LIGHTEST = 0.5, 90.0
"""Percentiles that become black and white."""


class PictureEdit(NamedTuple):
    """How a picture is made ready. crop: left, top, width and height in percent of it; levels: what becomes black and
    white, in percent, or `auto`; fill: cut what the frame has no room for, and leave no border."""

    crop: tuple[float, float, float, float] | None = None
    levels: tuple[float, float] | str | None = None
    fill: bool = False


def read_crop(text: str) -> tuple[float, float, float, float]:
    """Return LEFT,TOP,WIDTH,HEIGHT in percent.

    Raises:
        UsageError: it is none, or reaches out of the picture.
    """
    found = _CROP.fullmatch(text.strip())
    numbers = tuple(map(float, found.groups())) if found is not None else ()
    if len(numbers) != 4 or not (
        numbers[2] > 0 < numbers[3] and numbers[0] + numbers[2] <= 100 >= numbers[1] + numbers[3]
    ):
        said = f"--crop {text!r} is not part of a picture."
        raise UsageError(said, hint="Write LEFT,TOP,WIDTH,HEIGHT in percent: --crop 10,5,80,90.")
    return numbers[0], numbers[1], numbers[2], numbers[3]


def read_levels(text: str) -> tuple[float, float] | str:
    """Return what becomes black and what white, in percent of full light; `auto` as it is.

    Raises:
        UsageError: it is none.
    """
    if text.strip().lower() == AUTO:
        return AUTO
    found = _LEVELS.fullmatch(text.strip())
    numbers = tuple(map(float, found.groups())) if found is not None else (0.0, 0.0)
    if not 0 <= numbers[0] < numbers[1] <= 100:
        raise UsageError(f"--levels {text!r} is neither {AUTO} nor two numbers.", hint="Write --levels 15,80, or auto.")
    return numbers[0], numbers[1]


def prepared_png(data: bytes, name: str, size: tuple[int, int], how: PictureEdit | None = None) -> bytes:
    """Return a person's picture as a PNG of `size` without metadata.

    Raises:
        InputFileError: it is not a picture that can be read; the sentence begins with `name`. UsageError: what is cut
        out is too small.
    """
    picture, how = decode(data, name), how or PictureEdit()
    if how.crop is not None:
        picture = _cropped(picture, how.crop)
    if how.levels is not None:
        picture = _evened(picture) if how.levels == AUTO else picture
        picture = _stretched(picture, how.levels)
    return as_png(_fitted(picture, size, how.fill))


def _cropped(picture: Image, crop: tuple[float, float, float, float]) -> Image:
    left, top, width, height = (
        side * share / 100 for side, share in zip((picture.width, picture.height) * 2, crop, strict=True)
    )
    box = (round(left), round(top), round(left + width), round(top + height))
    if min(box[2] - box[0], box[3] - box[1]) < _SMALLEST:
        said = f"The part of the picture has {box[2] - box[0]}x{box[3] - box[1]} pixels."
        raise UsageError(said, hint=f"Cut out at least {_SMALLEST}x{_SMALLEST}.")
    return picture.crop(box)


def _evened(picture: Image) -> Image:
    """A photographed sheet in even light: each pixel in proportion to the paper around it."""
    import numpy as np
    from PIL import Image, ImageFilter

    scale = min(1.0, _LIGHT_SIDE / max(picture.size))
    small = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))))
    paper = small.filter(ImageFilter.MaxFilter(5)).filter(ImageFilter.GaussianBlur(3)).resize(picture.size)
    light = np.maximum(np.asarray(paper, dtype=np.float32), 1.0)
    return Image.fromarray(np.clip(255.0 * np.asarray(picture, dtype=np.float32) / light, 0, 255).astype(np.uint8))


def _stretched(picture: Image, levels: tuple[float, float] | str) -> Image:
    """The picture with its darkest and lightest parts made black and white."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(picture, dtype=np.float32)
    if isinstance(levels, str):
        low, high = (float(value) for value in np.percentile(pixels.mean(axis=2), (_DARKEST, _LIGHTEST)))
    else:
        low, high = (2.55 * value for value in levels)
    made = np.clip(255.0 * (pixels - low) / max(1.0, high - low), 0, 255)
    return Image.fromarray(made.astype(np.uint8))


def _fitted(picture: Image, size: tuple[int, int], fill: bool) -> Image:
    """The picture at a size: whole on white, or filling it."""
    from PIL import Image, ImageOps

    shape, wanted = picture.width / picture.height, size[0] / size[1]
    if abs(shape / wanted - 1) <= _SAME_SHAPE:
        return picture.resize(size, Image.Resampling.LANCZOS)
    if fill:
        return ImageOps.fit(picture, size, Image.Resampling.LANCZOS)
    return ImageOps.pad(picture, size, Image.Resampling.LANCZOS, color="white")
