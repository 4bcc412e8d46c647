"""Pictures made elsewhere: the one place where they are decoded, within the same limits for every way in.

A decoder is handed bytes that nobody vouches for, and Pillow's raise whatever comes up in them (IndexError, TypeError,
struct.error and more): all of it is an `InputFileError` here. What survives is 8-bit RGB, upright, transparency on
white. Only single pictures of a format that boards come in are read; of a photograph that a camera wrote with a second
picture (MPO), the first. Pixels are counted before anything is decoded, and a photograph of more than `MAX_PIXELS` is
made smaller as it is: a JPEG while it is decoded, so that it never takes the memory of its size.
"""

from __future__ import annotations

import io
import threading
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from katha.errors import InputFileError, first_line
from katha.installing import install_line
from katha.jsonio import read_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 40_000_000
"""What is decoded has no more; a larger picture is refused before, unless it is a photograph."""
_LARGEST = MappingProxyType({"JPEG": 178_000_000, "MPO": 178_000_000, "HEIF": 64_000_000})
"""Pixels of the largest photographs that are read, by their format."""
MAX_BYTES = 120_000_000
"""A larger file is refused before it is read."""
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")
ENDINGS = frozenset(
    (".png", ".jpg", ".jpeg", ".jfif", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".mpo", ".heic", ".heif")
)
"""The endings of pictures that boards come in."""
READ_AS = "PNG, JPEG, WebP, TIFF, BMP, GIF or HEIC"
_HEIF = (b"ftypheic", b"ftypheix", b"ftypheim", b"ftypheis", b"ftypmif1")
"""What the file of a photograph by an iPhone has from its fifth byte on."""
_GREY_16 = ("I;16", "I;16L", "I;16B", "I;16N", "I")
_PNG = b"\x89PNG\r\n\x1a\n"
_NAME = "The picture"
_FLAT_LEVELS = 2
"""Steps of 256 that a picture of one colour may differ by."""


def read_picture(path: Path, what: str) -> bytes:
    """Return the bytes of a picture file that may be decoded; `what` names it in errors.

    Raises:
        InputFileError: it is missing, empty, no regular file, or larger than `MAX_BYTES`.
    """
    if not path.exists():
        raise InputFileError(f"{what} is missing: no file {path.name!r}.", hint="Check the path.")
    data = read_bytes(path, limit=MAX_BYTES)
    if not data:
        raise InputFileError(f"{what} is empty (0 bytes).", hint="Export it again.")
    return data


def decode(data: bytes, name: str = _NAME, *, alpha: bool = False) -> Image:
    """Return a picture as 8-bit RGB, upright, transparency laid on white; with `alpha` as RGBA, to be laid on others.

    Raises:
        InputFileError: empty, damaged, animated, of another format, or over a limit; the sentence begins with `name`.
    """
    from PIL import Image, ImageOps

    if not 0 < len(data) <= MAX_BYTES:
        said = "is empty (0 bytes)" if not data else f"holds {len(data):,} bytes; at most {MAX_BYTES:,} are read"
        raise InputFileError(f"{name} {said}.", hint=f"Give a {READ_AS} picture.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of large and odd files; size is checked here, damage raises.
        try:
            image = _opened_heif(data, name) if data[4:12] in _HEIF else Image.open(io.BytesIO(data), formats=FORMATS)
            width, height = image.size
        except InputFileError:
            raise
        except Image.DecompressionBombError as error:
            said = f"{name} has far more pixels than the {MAX_PIXELS:,} that are read."
            raise InputFileError(said, hint="Scale it down.") from error
        except Exception as error:
            hint = f"Give a {READ_AS} picture."
            raise InputFileError(f"{name} is not a picture that can be read.", hint=hint) from error
        with image:
            try:
                most = _LARGEST.get(image.format or "", MAX_PIXELS)
                if width * height > most:
                    message = f"{name} has {width} x {height} pixels; at most {most:,} are read."
                    raise InputFileError(message, hint="Scale it down.")
                if image.format != "MPO" and getattr(image, "n_frames", 1) > 1:
                    hint = "Give one still picture."
                    raise InputFileError(f"{name} is animated or has several pages.", hint=hint)
                upright = ImageOps.exif_transpose(_loaded(image))
                if alpha:
                    return (_flatten(upright) if upright.mode in _GREY_16 else upright).convert("RGBA")
                return _flatten(upright)
            except InputFileError:
                raise
            except Exception as error:
                message = f"{name} is damaged or cut short: {first_line(error)[:200].rstrip('.')}."
                raise InputFileError(message, hint="Export it again.") from error


def _opened_heif(data: bytes, name: str) -> Image:
    """Return a photograph by an iPhone (HEIC), not decoded yet.

    Raises:
        InputFileError: what reads it is not installed.
    """
    try:
        from pi_heif import HeifImageFile
    except ImportError as error:
        hint = f"Install it: {install_line('photos')}. Or save the photograph as JPEG."
        raise InputFileError(f"{name} is HEIC, which needs 'pi-heif', which is not installed.", hint=hint) from error
    return HeifImageFile(io.BytesIO(data))  # type: ignore[no-any-return]


def _loaded(image: Image) -> Image:
    """Return a picture decoded, of at most `MAX_PIXELS`."""
    pixels = image.width * image.height
    smaller = next(by for by in (1, 2, 4, 8) if pixels <= MAX_PIXELS * by * by)
    if smaller > 1:
        image.draft("RGB", (image.width // smaller, image.height // smaller))
    image.load()
    if image.width * image.height <= MAX_PIXELS:
        return image
    reduced = image.reduce(smaller)
    reduced.info = image.info
    return reduced


def _flatten(image: Image) -> Image:
    """Return `image` as 8-bit RGB; transparency on white, 16-bit grey scaled down."""
    from PIL import Image

    if image.mode in _GREY_16:
        high = 255.0 / 65535.0
        image = image.convert("F").point(lambda value: value * high).convert("L")
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        return image.convert("RGB")  # opaque, as most renderers write: nothing to lay on white
    if "A" in image.getbands() or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        return Image.alpha_composite(paper, layer).convert("RGB")
    return image.convert("RGB")


def is_blank(image: Image) -> bool:
    """Return whether an RGB picture is of one colour all over."""
    bands = image.getextrema()
    return all(high - low <= _FLAT_LEVELS for low, high in bands)  # type: ignore[misc]


def is_ink_on_nothing(data: bytes) -> bool:
    """Return whether a picture that is blank on white paper has something on it where it is transparent."""
    low, high = decode(data, alpha=True).getchannel("A").getextrema()
    return int(high) - int(low) > _FLAT_LEVELS  # type: ignore[arg-type]


def as_png(image: Image) -> bytes:
    """Return an RGB picture as PNG bytes without metadata."""
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def png_size(png: bytes) -> tuple[int, int]:
    """Return width and height in pixels, from the PNG's header."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def png_problem(png: object) -> str | None:
    """Return why `png` is not a whole PNG, or None: its chunks follow one another, each with its
    checksum, to the end."""
    if not isinstance(png, bytes) or not png.startswith(_PNG):
        return "is no PNG"
    if len(png) > MAX_BYTES:
        return f"holds {len(png):,} bytes; at most {MAX_BYTES:,} are taken"
    position, first = len(_PNG), True
    while position + 12 <= len(png):
        length = int.from_bytes(png[position : position + 4], "big")
        kind, end = png[position + 4 : position + 8], position + 12 + length
        if end > len(png):
            break
        if zlib.crc32(png[position + 4 : end - 4]).to_bytes(4, "big") != png[end - 4 : end]:
            return "is damaged: a checksum of it does not fit"
        if first and (kind != b"IHDR" or length != 13):
            return "has no header"
        if first and not 0 < png_size(png)[0] * png_size(png)[1] <= MAX_PIXELS:
            return f"has {png_size(png)[0]} x {png_size(png)[1]} pixels; at most {MAX_PIXELS:,} are taken"
        if kind == b"IEND":
            return None
        position, first = end, False
    return "is cut off"


class Sized(Protocol):
    """What a `ByteCache` keeps: it says how many bytes it takes."""

    @property
    def weight(self) -> int:
        """Bytes."""
        ...


V = TypeVar("V", bound=Sized)


class _Decoded(NamedTuple):
    image: Image

    @property
    def weight(self) -> int:
        """Bytes of its pixels."""
        return 3 * self.image.width * self.image.height


class ByteCache(Generic[V]):
    """What was made of some bytes, the last used first, within a number of bytes and not of things. For any thread."""

    def __init__(self, most: int, make: Callable[[bytes], V]) -> None:
        """most: bytes of keys and values together; what alone takes more than half of it is not kept."""
        self._most, self._make = most, make
        self._kept: OrderedDict[bytes, V] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes of what is kept."""
        return self._held

    def get(self, data: bytes) -> V:
        """Return what `make` gives for `data`, made once while it is kept."""
        with self._lock:
            found = self._kept.get(data)
            if found is not None:
                self._kept.move_to_end(data)
                return found
        made = self._make(data)
        self.put(data, made)
        return made

    def put(self, data: bytes, made: V) -> None:
        """Keep what was made of `data`."""
        weight = len(data) + made.weight
        with self._lock:
            if data not in self._kept and 2 * weight <= self._most:
                self._kept[data] = made
                self._held += weight
            while self._held > self._most:
                old, value = self._kept.popitem(last=False)
                self._held -= len(old) + value.weight

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._held = 0


_KEPT_BYTES = 128_000_000


@cache
def _pictures() -> ByteCache[_Decoded]:
    return ByteCache(_KEPT_BYTES, lambda data: _Decoded(decode(data)))


def decoded(data: bytes, name: str = _NAME) -> Image:
    """Return `decode(data)`, made once while it is kept: a frame is measured, read and shown. Do not change it.

    Raises:
        InputFileError: see `decode`.
    """
    try:
        return _pictures().get(data).image
    except InputFileError as error:
        raise InputFileError(error.message.replace(_NAME, name, 1), hint=error.hint) from error


def keep_decoded(data: bytes, image: Image) -> None:
    """Have `decoded(data)` return `image`, which `data` was made of."""
    _pictures().put(data, _Decoded(image))
