"""Model sheets: each of the cast from several sides, side by side with its name, and the sides by themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from katha.app.exports.board import ExportBoard, ExportOptions
from katha.app.exports.fonts import Fonts
from katha.app.exports.pictures import Letters
from katha.app.views import CastViews
from katha.errors import UsageError
from katha.pictures import decode
from katha.renderers.vector.brief import slug
from katha.renderers.vector.raster import SECONDS_PASSED, rasterise

if TYPE_CHECKING:
    from PIL.Image import Image

_TALL, _GAP, _HEAD, _LETTERS = 1200, 30, 90, 40
_PAPER, _INK = "white", "#22212a"


def write_cast(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write a folder with a sheet for each of the cast, `mila.png`, and its sides, `mila_front.png`, beside their
    drawings (SVG) where they have them.

    Raises:
        UsageError: none was drawn.
    """
    if not sheet.cast:
        run = sheet.shots[0].picture.parent.parent
        raise UsageError("No views of this cast are drawn.", hint=f"Draw them: katha cast {run} --views.")
    target.mkdir()
    fonts = Fonts(options.font)
    for one in sheet.cast:
        for path in (*one.pictures.values(), *one.drawings.values()):
            shutil.copyfile(path, target / path.name)
        _side_by_side(one, fonts, options).save(target / f"{slug(one.name)}.png")
        now = sheet.looks.get(one.name)
        if now != one.look:
            gone = "is not of the cast any more" if now is None else "looks another way now: draw the views again"
            sheet.remarks.append(f"{one.name} {gone}.")


def _side_by_side(one: CastViews, fonts: Fonts, options: ExportOptions) -> Image:
    """Return the sides in one row of one height, the name above, what each is below."""
    from PIL import Image, ImageDraw

    shown = [_picture(one, view) for view in one.pictures]
    width = sum(picture.width for picture in shown) + _GAP * (len(shown) + 1)
    out = Image.new("RGB", (width, _TALL + 2 * _HEAD), _PAPER)
    pen, letters, left = ImageDraw.Draw(out), Letters(fonts, _LETTERS), _GAP
    if not options.plain:
        letters.draw(pen, one.name, width / 2, round(_HEAD * 0.65), leftward=False, colour=_INK)
    for view, picture in zip(one.pictures, shown, strict=True):
        out.paste(picture, (left, _HEAD))
        if not options.plain:
            middle = left + picture.width / 2
            letters.draw(pen, view, middle, _HEAD + _TALL + round(_HEAD * 0.65), leftward=False, colour=_INK)
        left += picture.width + _GAP
    return out


def _picture(one: CastViews, view: str) -> Image:
    """Return a side as tall as a sheet's row: its drawing drawn at that size, else its pixels scaled."""
    from PIL import Image

    picture = decode(one.pictures[view].read_bytes(), f"The picture {str(one.pictures[view])!r}")
    size = max(1, round(picture.width * _TALL / picture.height)), _TALL
    if view in one.drawings:
        return decode(rasterise(one.drawings[view].read_text("utf-8"), *size, seconds=SECONDS_PASSED))
    return picture.resize(size, Image.Resampling.LANCZOS)
