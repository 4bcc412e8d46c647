"""The preview of what was cut: every page with its frames in order and what is painted over, beside the frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from katha.app.cutting.cut import CutBoard, CutSheet
from katha.app.reports.page import Picture, jpeg_uri, pictures, write_page
from katha.lettering import without_words

if TYPE_CHECKING:
    from PIL.Image import Image

PREVIEW = "preview.html"
_SIDE = 900
_FRAME, _WORDS = (192, 57, 43), (41, 98, 255)


class CutPageView(NamedTuple):
    """A page with its marks, and its frames, as the template shows them."""

    name: str
    uri: str
    frames: list[Picture]
    text: int


class CutPreview:
    """Keeps a marked copy of each sheet as it is cut, and writes the page."""

    def __init__(self) -> None:
        self._sheets: list[tuple[str, str, int, int, int]] = []

    def __call__(self, sheet: CutSheet) -> None:
        """Mark a sheet."""
        self._sheets.append(
            (sheet.name, jpeg_uri(_marked(sheet), _SIDE), sheet.first, len(sheet.panels), len(sheet.text))
        )

    def write(self, made: CutBoard) -> Path:
        """Write `preview.html` beside the board, and return it."""
        frames = pictures(made.board.story_id, ((f.index, f.kind, made.out / f.image) for f in made.board.frames))
        shown = [
            CutPageView(name, uri, frames[first - 1 : first - 1 + count], text)
            for name, uri, first, count, text in self._sheets
        ]
        return write_page(made.out / PREVIEW, "cut.html.j2", cut=made, sheets=shown)


def _marked(sheet: CutSheet) -> Image:
    """Return the sheet with its frames numbered in red, and what is painted over in blue."""
    from PIL import ImageDraw

    picture = without_words(sheet.picture, sheet.text)
    pen, line = ImageDraw.Draw(picture), max(2, max(picture.size) // 300)
    for box in sheet.text:
        pen.rectangle((box.left, box.top, box.right - 1, box.bottom - 1), outline=_WORDS, width=max(1, line // 2))
    size = max(12, max(picture.size) // 28)
    for number, box in enumerate(sheet.panels, sheet.first):
        pen.rectangle((box.left, box.top, box.right - 1, box.bottom - 1), outline=_FRAME, width=line)
        pen.rectangle(
            (box.left, box.top, box.left + size * (0.8 + 0.4 * len(str(number))), box.top + size * 1.3), fill=_FRAME
        )
        pen.text((box.left + size * 0.3, box.top), str(number), fill="white", font_size=size)
    return picture
