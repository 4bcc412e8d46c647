"""From a picture's bytes to the reader's two views of it: fitted into a fixed frame, and windows cut out of that."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from katha.errors import InputFileError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FINER", "HEIGHT", "WIDTH", "Fit", "coarse", "cut", "fit_into", "is_blank", "to_input"]

WIDTH, HEIGHT = 336, 224
FINER = 2
"""How much finer the picture that windows are cut from is than the one in which things are looked for."""
_PAPER = (251, 246, 234)
_FLAT = 3.0
"""The most that a colour of an empty sheet varies (standard deviation, 0..255)."""


@dataclass(frozen=True)
class Fit:
    """How a picture lies in the reader's input: input = picture * scale + (left, top)."""

    scale: float
    left: float
    top: float

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A picture's point in input pixels."""
        return (x * self.scale + self.left, y * self.scale + self.top)


def fit_into(width: int, height: int) -> Fit:
    """The fit of a `width` x `height` picture into WIDTH x HEIGHT: as large as possible, centred."""
    scale = min(WIDTH / width, HEIGHT / height)
    return Fit(scale, (WIDTH - width * scale) / 2, (HEIGHT - height * scale) / 2)


def to_input(data: bytes) -> NDArray[np.uint8]:
    """Decode any picture that Pillow reads into shape (FINER * HEIGHT, FINER * WIDTH, 3), the rest filled with paper.

    Raises:
        InputFileError: the bytes are no picture.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            picture = image.convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise InputFileError("A panel is not a picture that can be read.") from error
    fit = fit_into(*picture.size)
    size = (max(1, round(picture.width * fit.scale * FINER)), max(1, round(picture.height * fit.scale * FINER)))
    inside = picture.resize(size, Image.Resampling.BILINEAR)
    if _is_blank(inside):
        return np.asarray(inside.resize((FINER * WIDTH, FINER * HEIGHT)))
    canvas = Image.new("RGB", (FINER * WIDTH, FINER * HEIGHT), _PAPER)
    canvas.paste(inside, (round(fit.left * FINER), round(fit.top * FINER)))
    return np.asarray(canvas)


def coarse(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The (HEIGHT, WIDTH, 3) picture in which things are looked for: means of FINER x FINER pixels of the input."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).reduce(FINER))


def cut(picture: Image, x: float, y: float, half: float, side: int) -> NDArray[np.uint8]:
    """The square window around (x, y) that reaches `half` to each side, both in pixels of `coarse`, out of a decoded
    input, as (side, side, 3). What lies outside of the picture is black."""
    from PIL import Image

    x, y, half = FINER * x, FINER * y, max(1.0, FINER * half)
    left, top = int(np.floor(x - half)) - 1, int(np.floor(y - half)) - 1
    size = int(np.ceil(2 * half)) + 3
    inner = (x - half - left, y - half - top, x + half - left, y + half - top)
    window = picture.crop((left, top, left + size, top + size))
    return np.asarray(window.resize((side, side), Image.Resampling.BILINEAR, box=inner))


def is_blank(pixels: NDArray[np.uint8]) -> bool:
    """Whether an array of shape (height, width, 3) is an empty sheet of one colour."""
    from PIL import Image

    return _is_blank(Image.fromarray(pixels))


def _is_blank(picture: Image) -> bool:
    from PIL import ImageStat

    return max(ImageStat.Stat(picture).stddev) < _FLAT
