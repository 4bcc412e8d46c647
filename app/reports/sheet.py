"""The storyboard as one picture: its title, and its frames in reading order with numbers and captions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from katha.agents.names import caption_of
from katha.app.reports.page import open_picture
from katha.errors import StoreError, UsageError
from katha.schema import Board, Frame, Plan

if TYPE_CHECKING:
    from PIL.Image import Image

_COLUMNS, _CELL_WIDTH, _GAP, _BORDER = 3, 480, 18, 8
_TITLE, _LINE, _COLUMN, _MOST = 64, 26, 44, 4
_PAPER, _INK, _MARK = "#fbf6ea", "#2b2a33", "#c2571a"
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".pdf")
_KINDS = {"scene": "", "bridge": "  bridge", "extra": "  extra frame"}


def write_sheet(board: Board, run: Path, target: Path, plan: Plan) -> Path:
    """Draw the contact sheet of `board` into `target` (PNG, JPEG, WebP or PDF by its name), with the plan's words.

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
    told = [_lines(f"{item.index}{_KINDS[item.kind]}  {caption_of(item, plan)}") for item in board.frames]
    step = (_CELL_WIDTH + _GAP, height + _BORDER + _LINE * max(map(len, told)) + 2 * _GAP)
    sheet = Image.new("RGB", (columns * step[0] + _GAP, rows * step[1] + _TITLE + _GAP), _PAPER)
    _write(sheet, (_GAP + 2, _GAP), [plan.title or board.story_id.replace("_", " ")], 28, _INK)
    for position, (frame, picture) in enumerate(zip(board.frames, pictures, strict=True)):
        corner = (_GAP + position % columns * step[0], _TITLE + position // columns * step[1])
        _place(sheet, picture, frame, corner, told[position])
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(target)
    except OSError as error:
        raise StoreError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from error
    return target


def _lines(text: str) -> list[str]:
    """A caption in lines of a frame's width, at most four."""
    lines = textwrap.wrap(" ".join(text.split()), _COLUMN)
    return [*lines[:_MOST], *(["..."] if len(lines) > _MOST else [])]


def _write(sheet: Image, corner: tuple[int, int], lines: Sequence[str], size: int, colour: str) -> None:
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size)
    for at, line in enumerate(lines):
        draw.text((corner[0], corner[1] + at * _LINE), line, fill=colour, font=font)


def _place(sheet: Image, picture: Image, frame: Frame, corner: tuple[int, int], told: Sequence[str]) -> None:
    from PIL import Image, ImageDraw

    x, y = corner
    scaled = picture.resize(
        (_CELL_WIDTH, round(_CELL_WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS
    )
    if frame.kind != "scene":
        box = (x - _BORDER, y - _BORDER, x + scaled.width + _BORDER - 1, y + scaled.height + _BORDER - 1)
        ImageDraw.Draw(sheet).rectangle(box, fill=_MARK)
    sheet.paste(scaled, corner)
    _write(sheet, (x + 2, y + scaled.height + _BORDER + 2), told, 20, _INK if frame.kind == "scene" else _MARK)
