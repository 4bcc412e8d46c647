"""How large pictures are in an export: drawings are drawn at that size, pixels are scaled to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from katha.app.exports.board import FILM, PRINT, ExportBoard, ExportFrame, ExportOptions, Size
from katha.app.exports.paper import page_size
from katha.app.exports.vectors import drawn_as_vectors
from katha.app.reports.page import open_picture
from katha.pictures import decode
from katha.renderers.vector.raster import SECONDS_PASSED, rasterise
from katha.renderers.vector.svg import DrawingFault

if TYPE_CHECKING:
    from PIL.Image import Image

DPI = 300
_EVEN = 2


def drawings_of(sheet: ExportBoard) -> dict[int, str]:
    """Return the frames that were drawn as vectors, as SVG by their numbers."""
    found = ((shot.number, drawn_as_vectors(shot)) for shot in sheet.shots)
    return {number: svg for number, svg in found if svg is not None}


def box_of(options: ExportOptions) -> Size | None:
    """Return the pixels that pictures are fitted into; None where they stay as they were drawn."""
    if options.size == PRINT:
        width, height = page_size(options)
        return round(width * DPI / 72), round(height * DPI / 72)
    return options.size if isinstance(options.size, tuple) else None


def film_size(sheet: ExportBoard, options: ExportOptions, drawings: Mapping[int, str]) -> Size:
    """Return the pixels of a film or a timeline: what was asked for, `FILM` where something was drawn as vectors, else
    those of the first frame, as far as they fit in there. Both are even, as encoders want them."""
    box = box_of(options) or (FILM if drawings else None)
    if box is None:
        scale = min(1.0, FILM[0] / sheet.width, FILM[1] / sheet.height)
        box = round(sheet.width * scale), round(sheet.height * scale)
    width, height = (max(_EVEN, side // _EVEN * _EVEN) for side in box)
    return width, height


def fitted(shot: ExportFrame, box: Size, svg: str | None = None) -> Image:
    """Return a frame as large as it fits into a box, in RGB: its drawing drawn at that size, else its pixels scaled."""
    from PIL import Image, ImageOps

    picture = open_picture(shot.picture)
    scale = min(box[0] / picture.width, box[1] / picture.height)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    if svg is not None and (width, height) != picture.size:
        try:
            return decode(rasterise(svg, width, height, seconds=SECONDS_PASSED))
        except DrawingFault:
            pass
    return ImageOps.contain(picture, box, Image.Resampling.LANCZOS)


def save_fitted(shot: ExportFrame, folder: Path, box: Size | None, svg: str | None = None) -> str:
    """Write a frame into a folder under its speaking name, and return the file's: as large as it fits into a box, or as
    it was drawn, byte for byte, where there is none."""
    if box is None:
        name = f"{shot.name}{shot.picture.suffix}"
        (folder / name).write_bytes(shot.picture.read_bytes())
    else:
        name = f"{shot.name}.png"
        fitted(shot, box, svg).save(folder / name)
    return name
