"""A picture file as PNG bytes: whole, not too large, without metadata, the same bytes each time."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

from katha.errors import InputFileError

__all__ = ["read_picture"]

_MOST_BYTES = 120_000_000
_MOST_PIXELS = 64_000_000


def read_picture(path: Path, what: str) -> bytes:
    """The picture in `path` as an RGB PNG (transparent parts on white); `what` names the frame in errors.

    Raises:
        InputFileError: it is missing, empty, no picture, damaged or too large.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    where = f"{what} ({str(path)!r})"
    try:
        size = path.stat().st_size
        if not 0 < size <= _MOST_BYTES:
            raise InputFileError(f"{where} holds {size:,} bytes; a picture has 1 to {_MOST_BYTES:,}.")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(path) as image:
                if image.width * image.height > _MOST_PIXELS:
                    raise InputFileError(
                        f"{where} has {image.width}x{image.height} pixels; at most {_MOST_PIXELS:,} are read."
                    )
                upright = ImageOps.exif_transpose(image)
                return _png(upright)
    except FileNotFoundError as error:
        raise InputFileError(f"{where} is not there.", hint="Check the folder of the board.") from error
    except UnidentifiedImageError as error:
        raise InputFileError(f"{where} is no picture.", hint="Replace or remove it.") from error
    except (OSError, SyntaxError, ValueError, Warning, Image.DecompressionBombError) as error:
        raise InputFileError(f"{where} cannot be read as a picture: {error}.", hint="Replace or remove it.") from error


def _png(image: object) -> bytes:
    from PIL import Image

    assert isinstance(image, Image.Image)
    if image.has_transparency_data:
        ground = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(ground, image.convert("RGBA"))
    plain = Image.frombytes("RGB", image.size, image.convert("RGB").tobytes())
    out = io.BytesIO()
    plain.save(out, "PNG")
    return out.getvalue()
