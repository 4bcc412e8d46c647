"""The storyboard as one picture: its frames in reading order, numbered, the inserted one framed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from katha.app.reports.page import open_picture
from katha.errors import StoreError, UsageError
from katha.schema import Board, Frame

if TYPE_CHECKING:
    from PIL.Image import Image

_COLUMNS, _CELL_WIDTH, _GAP, _BORDER, _LABEL = 3, 480, 18, 8, 34
_PAPER, _INK, _MARK = "#fbf6ea", "#2b2a33", "#c2571a"
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".pdf")
_KINDS = {"scene": "", "bridge": "  bridge", "extra": "  extra frame"}


def write_sheet(board: Board, run: Path, target: Path) -> Path:
    """Draw the contact sheet of `board` into `target` (PNG, JPEG, WebP or PDF by its name).

    Raises:
        UsageError: another file ending. InputFileError: a panel is missing. StoreError: `target` cannot be written.
    """
    from PIL import Image

    if target.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{str(target)!r}: a contact sheet ends in {', '.join(_SUFFIXES)}.")
    pictures = [open_picture(run / frame.image) for frame in board.frames]
    height = max(round(_CELL_WIDTH * picture.height / picture.width) for picture in pictures)
    columns = min(_COLUMNS, len(pictures))
    rows = -(-len(pictures) // columns)
    step = (_CELL_WIDTH + _GAP, height + _LABEL + _GAP)
    sheet = Image.new("RGB", (columns * step[0] + _GAP, rows * step[1] + _GAP), _PAPER)
    for position, (frame, picture) in enumerate(zip(board.frames, pictures, strict=True)):
        corner = (_GAP + position % columns * step[0], _GAP + position // columns * step[1])
        _place(sheet, picture, frame, corner)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(target)
    except OSError as error:
        raise StoreError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from error
    return target


def _place(sheet: Image, picture: Image, frame: Frame, corner: tuple[int, int]) -> None:
    from PIL import Image, ImageDraw, ImageFont

    x, y = corner
    scaled = picture.resize(
        (_CELL_WIDTH, round(_CELL_WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS
    )
    draw = ImageDraw.Draw(sheet)
    if frame.kind != "scene":
        box = (x - _BORDER, y - _BORDER, x + scaled.width + _BORDER - 1, y + scaled.height + _BORDER - 1)
        draw.rectangle(box, fill=_MARK)
    sheet.paste(scaled, corner)
    colour = _INK if frame.kind == "scene" else _MARK
    label = f"{frame.index}{_KINDS[frame.kind]}"
    draw.text((x + 2, y + scaled.height + _BORDER + 2), label, fill=colour, font=ImageFont.load_default(20))
