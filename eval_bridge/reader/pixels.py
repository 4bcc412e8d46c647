"""From a picture's bytes to the reader's input: fitted into a fixed frame, colours 0..1, channels first."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from katha.errors import InputFileError

__all__ = ["HEIGHT", "WIDTH", "Fit", "fit_into", "is_blank", "to_input"]

WIDTH, HEIGHT = 336, 224
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
    """The fit of a `width` x `height` picture: as large as possible, centred."""
    scale = min(WIDTH / width, HEIGHT / height)
    return Fit(scale, (WIDTH - width * scale) / 2, (HEIGHT - height * scale) / 2)


def to_input(data: bytes) -> NDArray[np.uint8]:
    """Decode any picture that Pillow reads into an array of shape (HEIGHT, WIDTH, 3), the rest filled with paper.

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
    size = (max(1, round(picture.width * fit.scale)), max(1, round(picture.height * fit.scale)))
    inside = picture.resize(size, Image.Resampling.BILINEAR)
    if is_blank(np.asarray(inside)):
        return np.asarray(inside.resize((WIDTH, HEIGHT)))
    canvas = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    canvas.paste(inside, (round(fit.left), round(fit.top)))
    return np.asarray(canvas)


def is_blank(pixels: NDArray[np.uint8]) -> bool:
    """Whether an array of shape (height, width, 3) is an empty sheet of one colour."""
    return bool(pixels.std(axis=(0, 1)).max() < _FLAT)
