"""Frames out of a pipeline, and pictures that a frame is drawn from."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import BlankFrameError, InputFileError, UsageError
from katha.jsonio import sha256_hex

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Generator, Tensor

    from katha.protocols import FrameRequest

_FLAT = 2 / 255


def generator_of(seed: int) -> Generator:
    """Return a private generator on the CPU: the same noise on every device, and torch's global one is not touched."""
    import torch

    return torch.Generator("cpu").manual_seed(seed)


def frame_name(request: FrameRequest) -> str:
    """Return what a request draws, in words."""
    return f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"


def check_frame(image: Tensor, request: FrameRequest, who: str) -> None:
    """Refuse a frame that is no picture; `image` has shape (3, H, W) and values 0 to 1 (infinities clipped to them).

    Raises:
        BlankFrameError: it holds NaN (an overflow in half precision), or is black or another colour all over.
    """
    import torch

    what = f"The renderer {who!r} drew {frame_name(request)} with seed {request.seed} as"
    if not bool(torch.isfinite(image).all()):
        raise BlankFrameError(f"{what} NaN.", hint="Another seed may do; if all fail, set dtype=bfloat16 or float32.")
    low, high = image.amin(dim=(1, 2)), image.amax(dim=(1, 2))
    if float((high - low).max()) <= _FLAT:
        raise BlankFrameError(f"{what} one colour.", hint="Another seed or prompt may do.")


def to_png(image: Tensor, processor: Any) -> bytes:
    """Return the PNG bytes of an image of shape (3, H, W), rounded to 8 bits as diffusers rounds."""
    picture = processor.numpy_to_pil(processor.pt_to_numpy(image[None]))[0]
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


_SMALLEST = 16
_LONGEST = 8
"""The longest side over the shortest that FLUX.2's own input check takes."""


@dataclass(frozen=True)
class Reference:
    """A character's picture, as bytes, and their hash."""

    name: str
    data: bytes
    sha256: str


def find_references(given: Sequence[str]) -> dict[str, Reference]:
    """Return the pictures of `NAME=FILE`, by character name.

    Raises:
        UsageError: no NAME=FILE, or a name twice. InputFileError: no such file, or no picture.
    """
    found: dict[str, Reference] = {}
    for item in given:
        name, equals, file = (part.strip() for part in item.partition("="))
        if not (name and equals and file):
            raise UsageError(f"The reference {item!r} is not NAME=FILE.", hint="For example reference=lion=lion.png.")
        if name in found:
            raise UsageError(f"The character {name!r} has two references.", hint="Give one picture a character.")
        found[name] = _read(name, Path(file).expanduser())
    return found


def _read(name: str, path: Path) -> Reference:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputFileError(f"Cannot read the reference of {name!r}, {str(path)!r}: {error.strerror}.") from error
    try:
        picture = open_picture(data)
    except (OSError, ValueError, SyntaxError) as error:  # Pillow's ways of saying that it cannot decode a file
        raise InputFileError(
            f"The reference of {name!r}, {str(path)!r}, is no picture.", hint="Give a PNG, JPEG or WebP file."
        ) from error
    if min(picture.size) < _SMALLEST:
        raise InputFileError(
            f"The reference of {name!r}, {str(path)!r}, has {picture.width}x{picture.height} pixels.",
            hint=f"Give a picture of at least {_SMALLEST}x{_SMALLEST}.",
        )
    if max(picture.size) > _LONGEST * min(picture.size):
        raise InputFileError(
            f"The reference of {name!r}, {str(path)!r}, has {picture.width}x{picture.height} pixels.",
            hint=f"Give a picture of which no side is more than {_LONGEST} times the other.",
        )
    return Reference(name, data, sha256_hex(data))


def open_picture(data: bytes) -> Image:
    """Return the picture in `data`, upright, as RGB, decoded whole."""
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(data)) as image:
        upright = ImageOps.exif_transpose(image)
        return upright.convert("RGB")


def joined(pictures: Sequence[Image]) -> Image:
    """Return one picture of all, each as tall as the first: in a row, from four on in rows, nearly a square."""
    from PIL import Image

    columns = len(pictures) if len(pictures) < 4 else math.ceil(len(pictures) ** 0.5)
    height = pictures[0].height
    fitted = [one.resize((max(1, round(one.width * height / one.height)), height)) for one in pictures]
    rows = [fitted[start : start + columns] for start in range(0, len(fitted), columns)]
    whole = Image.new("RGB", (max(sum(one.width for one in row) for row in rows), height * len(rows)), "white")
    for number, row in enumerate(rows):
        left = 0
        for one in row:
            whole.paste(one, (left, number * height))
            left += one.width
    return whole


def at_most(pictures: Sequence[Image], count: int) -> list[Image]:
    """Return `count` pictures at most: those that are too many stand together in the last one."""
    if len(pictures) <= count:
        return list(pictures)
    return [*pictures[: count - 1], joined(pictures[count - 1 :])]


def scaled(picture: Image, pixels: int, step: int, smallest: int = 0) -> Image:
    """Return `picture` at about `pixels` pixels, its shape kept, sides multiples of `step` and at least `smallest`."""
    from PIL import Image

    factor = (pixels / (picture.width * picture.height)) ** 0.5
    width, height = (max(step, smallest, round(side * factor / step) * step) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.LANCZOS)
