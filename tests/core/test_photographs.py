"""A person's own picture made ready for a board: cut, its paper white, fitted to the frames."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw

from katha.errors import InputFileError, UsageError
from katha.photographs import PictureEdit, prepared_png, read_crop, read_levels
from katha.pictures import decode, png_size


def photograph() -> bytes:
    """A sheet with a drawn line on a dark table, lit from the right."""
    picture = Image.new("RGB", (600, 400), (90, 70, 50))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((60, 40, 540, 360), fill=(225, 215, 195))
    draw.line((120, 200, 480, 200), fill=(60, 60, 80), width=8)
    lit = np.asarray(picture, dtype=float) * (0.4 + 0.6 * np.arange(600) / 600)[None, :, None]
    data = io.BytesIO()
    Image.fromarray(lit.astype(np.uint8)).save(data, "JPEG", quality=95)
    return data.getvalue()


def grey(png: bytes) -> np.ndarray:
    return np.asarray(decode(png).convert("L"), dtype=float)


SHEET = PictureEdit(crop=(12, 14, 76, 74))


def test_the_part_that_is_named_is_scaled_to_the_frame() -> None:
    png = prepared_png(photograph(), "The picture", (300, 200), SHEET)
    assert png_size(png) == (300, 200)
    assert grey(png)[20, 20] > 60, "the table is cut off"


def test_the_paper_is_white_and_the_line_dark_wherever_the_light_came_from() -> None:
    plain = grey(prepared_png(photograph(), "The picture", (300, 200), SHEET))
    even = grey(prepared_png(photograph(), "The picture", (300, 200), SHEET._replace(levels="auto")))
    assert np.ptp(plain[20, 20:280]) > 60, "the photograph is darker on one side"
    assert even[20, 20:280].min() > 235
    assert even[90:106, 60:240].min(axis=0).max() < 60, "the line is dark at both ends"


def test_two_numbers_say_what_is_black_and_white() -> None:
    made = grey(prepared_png(photograph(), "The picture", (300, 200), SHEET._replace(levels=(30.0, 40.0))))
    assert set(np.unique(made[20, 150:280])) == {255.0}


def test_another_shape_stands_whole_on_white_or_fills_the_frame() -> None:
    whole = grey(prepared_png(photograph(), "The picture", (300, 300)))
    filled = grey(prepared_png(photograph(), "The picture", (300, 300), PictureEdit(fill=True)))
    assert whole[5].min() == 255
    assert filled[5].max() < 200


@pytest.mark.parametrize("text", ["", "1,2,3", "a,b,c,d", "50,0,60,10", "0,0,0,10"])
def test_no_part_of_a_picture_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not part of a picture"):
        read_crop(text)


@pytest.mark.parametrize("text", ["", "white", "80,20", "10", "0,101"])
def test_no_levels_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="neither auto nor two numbers"):
        read_levels(text)


def test_what_is_read_is_what_was_written() -> None:
    assert read_crop("10, 5,80,90.5") == (10, 5, 80, 90.5)
    assert (read_levels("15,80"), read_levels(" Auto ")) == ((15, 80), "auto")


def test_what_is_no_picture_or_too_small_is_refused_by_name() -> None:
    with pytest.raises(InputFileError, match="The picture 'x' is not a picture"):
        prepared_png(b"none", "The picture 'x'", (300, 200))
    with pytest.raises(UsageError, match="6x4 pixels"):
        prepared_png(photograph(), "The picture", (300, 200), PictureEdit(crop=(0, 0, 1, 1)))
