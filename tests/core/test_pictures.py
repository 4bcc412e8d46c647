"""Pictures of strangers: one way to decode them, the same limits for every way in, and errors of one type."""

from __future__ import annotations

import io
import os
import random
import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from katha.errors import InputFileError
from katha.pictures import FORMATS, MAX_PIXELS, ByteCache, as_png, decode, png_problem, read_picture


def encoded(form: str, size: tuple[int, int] = (24, 16), **options: object) -> bytes:
    picture = Image.effect_noise(size, 60).convert("RGB")
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header says what its data does not hold."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"\0" * 100)
    chunks = (struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) for body in (header, data))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("form", FORMATS)
def test_damage_of_any_kind_is_one_type_of_error(form: str) -> None:
    """Bytes flipped, cut, put in and repeated: a picture or an `InputFileError`."""
    dice, whole, refused = random.Random(form), encoded(form), 0
    for _ in range(250):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            change = dice.randrange(4)
            if change == 0:
                data[at] ^= 1 << dice.randrange(8)
            elif change == 1:
                del data[at : at + dice.randrange(1, 30)]
            elif change == 2:
                data[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 9)))
            else:
                data[at : at + 4] = dice.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"])
            if not data:
                break
        try:
            mode = decode(bytes(data)).mode
        except InputFileError:
            refused += 1
        else:
            assert mode == "RGB"
    assert refused


ODD = {
    "a cut GIF": encoded("GIF")[:13],
    "a TIFF without dimensions": b"II*\0\x08\0\0\0\x01\0\x03\x01\x03\0\x01\0\0\0\x01\0\0\0\0\0\0\0",
    "no header behind the sign": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
    "a text": b"<html>busy</html>",
    "nothing": b"",
    "an animation": encoded("GIF", save_all=True, append_images=[Image.new("RGB", (24, 16), "red")]),
    "more pixels than are read": bomb(20_000, 20_000),
    "more pixels than there are": bomb(6_000, 6_000),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_pictures_are_refused(name: str) -> None:
    with pytest.raises(InputFileError, match=r"^Frame 2 "):
        decode(ODD[name], "Frame 2")


def test_odd_exif_is_no_reason_to_end_and_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    broken = b"Exif\0\0II*\0\x08\0\0\0\x05\0\x12\x01\x03\0\x09\0\0\0\xff\xff"
    assert decode(encoded("JPEG", exif=broken)).size == (24, 16)
    assert not recwarn


def test_the_limits_are_the_same_for_boards_and_for_the_folder_renderer(tmp_path: Path) -> None:
    path = tmp_path / "1.png"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(InputFileError, match="at most"):
        read_picture(path, "frame 1")
    path.unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        with pytest.raises(InputFileError, match="not a regular file"):
            read_picture(path, "frame 1")
    assert MAX_PIXELS < 6_400 * 6_400


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda png: png, None),
        (lambda png: png[:-5], "cut off"),
        (lambda png: png[:60] + bytes([png[60] ^ 1]) + png[61:], "checksum"),
        (lambda png: b"GIF89a" + png, "no PNG"),
        (lambda png: None, "no PNG"),
        (lambda png: png[:8] + png[33:], "header"),
        (lambda png: bomb(100_000, 100_000), "pixels"),
    ],
)
def test_what_a_renderer_gives_is_a_whole_png(spoil: object, says: str | None) -> None:
    assert callable(spoil)
    problem = png_problem(spoil(as_png(Image.effect_noise((40, 30), 60))))
    assert problem is None if says is None else says in str(problem)


@dataclass(frozen=True)
class Weighty:
    weight: int


def test_a_cache_is_bounded_in_bytes_and_not_in_things() -> None:
    made: list[bytes] = []
    cache = ByteCache(1_000, lambda data: made.append(data) or Weighty(9 * len(data)))
    for number in range(20):
        cache.get(bytes([number]) * 20)
        assert cache.held <= 1_000
    cache.get(bytes([19]) * 20)
    assert len(made) == 20
    cache.get(bytes([0]) * 20)
    assert len(made) == 21
    cache.get(b"x" * 80)  # takes more than half: it would push everything else out
    assert b"x" * 80 not in cache._kept
    cache.clear()
    assert cache.held == 0


def test_a_photograph_larger_than_what_is_kept_is_made_smaller() -> None:
    photo = Image.new("RGB", (8_160, 6_120), "#c33")  # of a telephone with 50 million pixels
    photo.paste("#00f", (0, 0, 4_080, 3_060))
    held, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6  # it was held upright
    photo.save(held, "JPEG", quality=40, exif=exif)
    found = decode(held.getvalue(), "The photograph")
    assert found.size == (3_060, 4_080)
    corners = [found.getpixel(at) for at in ((100, 100), (2_900, 100))]
    assert [colour[0] > 150 for colour in corners if isinstance(colour, tuple)] == [True, False]
    png = io.BytesIO()
    photo.save(png, "PNG")
    with pytest.raises(InputFileError, match=r"has 8160 x 6120 pixels; at most 40,000,000 are read\."):
        decode(png.getvalue(), "The scan")


PHOTO = Path(__file__).parents[1] / "data" / "photo.heic"


def test_a_photograph_of_an_iphone_is_read_upright() -> None:
    found = decode(PHOTO.read_bytes(), "The photograph")
    assert (found.mode, found.size) == ("RGB", (64, 96))
    for at, wanted in (((5, 5), (204, 51, 51)), ((60, 5), (0, 0, 255))):  # what was at the left is above
        colour = found.getpixel(at)
        assert isinstance(colour, tuple)
        assert all(abs(one - two) < 25 for one, two in zip(colour, wanted, strict=True))
    with pytest.raises(InputFileError, match=r"The photograph is (?:damaged|not a picture)"):
        decode(PHOTO.read_bytes()[:300], "The photograph")


def test_without_what_reads_it_such_a_photograph_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pi_heif", None)
    with pytest.raises(InputFileError, match="The photograph is HEIC, which needs 'pi-heif'") as refused:
        decode(PHOTO.read_bytes(), "The photograph")
    assert "photos]" in str(refused.value.hint)
    assert "JPEG" in str(refused.value.hint)
