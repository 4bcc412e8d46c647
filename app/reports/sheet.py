"""The storyboard as one picture: its title, and its frames in reading order with numbers and captions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from katha.agents.editor.names import caption_of
from katha.app.reports.page import open_picture
from katha.errors import StoreError, UsageError
from katha.schema import Board, Frame, Plan

if TYPE_CHECKING:
    from PIL.Image import Image

    from katha.app.exports.pictures import Letters

_COLUMNS, _CELL_WIDTH, _GAP, _BORDER = 3, 480, 18, 8
_TITLE, _LINE, _MOST = 64, 26, 4
_LARGE, _SMALL = 28, 20
_NO_LETTER = "\U000e0fff"
_PAPER, _INK, _MARK = "#fbf6ea", "#2b2a33", "#c2571a"
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".pdf")
_KINDS = {"scene": "", "bridge": "  bridge", "extra": "  extra frame"}


def write_sheet(board: Board, run: Path, target: Path, plan: Plan, fonts: Sequence[Path] = ()) -> Path:
    """Draw the contact sheet of `board` into `target` (PNG, JPEG, WebP or PDF by its name), with the plan's words.

    fonts: TrueType files that its words are written with first.

    Raises:
        UsageError: another file ending. InputFileError: a panel is missing, or a font is none. StoreError: `target`
            cannot be written.
    """
    from PIL import Image

    if target.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{str(target)!r}: a contact sheet ends in {', '.join(_SUFFIXES)}.")
    pictures = [open_picture(run / frame.image) for frame in board.frames]
    height = max(round(_CELL_WIDTH * picture.height / picture.width) for picture in pictures)
    columns = min(_COLUMNS, len(pictures))
    rows = -(-len(pictures) // columns)
    said = [plan.title or board.story_id.replace("_", " "), *(caption_of(item, plan) for item in board.frames)]
    large, small = (_letters("".join(said), size, fonts) for size in (_LARGE, _SMALL))
    told = [_lines(small, f"{item.index}{_KINDS[item.kind]}  {caption_of(item, plan)}") for item in board.frames]
    step = (_CELL_WIDTH + _GAP, height + _BORDER + _LINE * max(map(len, told)) + 2 * _GAP)
    sheet = Image.new("RGB", (columns * step[0] + _GAP, rows * step[1] + _TITLE + _GAP), _PAPER)
    _write(sheet, (_GAP + 2, _GAP), said[:1], large, _LARGE, _INK)
    for position, (frame, picture) in enumerate(zip(board.frames, pictures, strict=True)):
        corner = (_GAP + position % columns * step[0], _TITLE + position // columns * step[1])
        _place(sheet, picture, frame, corner)
        below = (corner[0] + 2, corner[1] + round(_CELL_WIDTH * picture.height / picture.width) + _BORDER + 2)
        _write(sheet, below, told[position], small, _SMALL, _INK if frame.kind == "scene" else _MARK)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(target)
    except OSError as error:
        raise StoreError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from error
    return target


def _letters(text: str, size: int, own: Sequence[Path]) -> Letters:
    """Return those of the user's `own` fonts, else Pillow's; those of the machine's fonts where these lack one, if
    `katha[export]` is there."""
    from PIL import ImageFont

    from katha.app.exports.fonts import Fonts
    from katha.app.exports.pictures import Letters

    if own:
        return Letters(Fonts(own), size)
    face = ImageFont.load_default(size)
    box = bytes(face.getmask(_NO_LETTER))
    lacking = any(letter.isprintable() and bytes(face.getmask(letter)) == box for letter in set(text))
    return Letters(Fonts() if lacking and find_spec("fontTools") else None, size)


def _lines(letters: Letters, text: str) -> list[str]:
    """A caption in lines of a frame's width, at most four."""
    from katha.app.exports.fonts import broken

    lines = broken(text, _CELL_WIDTH - 4, letters.width)
    return [*lines[:_MOST], *(["..."] if len(lines) > _MOST else [])]


def _write(
    sheet: Image, corner: tuple[int, int], lines: Sequence[str], letters: Letters, size: int, colour: str
) -> None:
    """Write lines below one another, from the side where their script begins."""
    from PIL import ImageDraw

    from katha.app.exports.fonts import is_leftward

    draw, leftward = ImageDraw.Draw(sheet), is_leftward(" ".join(lines))
    for at, line in enumerate(lines):
        half = letters.width(line) / 2
        middle = corner[0] + (_CELL_WIDTH - 4 - half if leftward else half)
        letters.draw(draw, line, middle, corner[1] + at * _LINE + size, leftward=leftward, colour=colour)


def _place(sheet: Image, picture: Image, frame: Frame, corner: tuple[int, int]) -> None:
    from PIL import Image, ImageDraw

    x, y = corner
    scaled = picture.resize(
        (_CELL_WIDTH, round(_CELL_WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS
    )
    if frame.kind != "scene":
        box = (x - _BORDER, y - _BORDER, x + scaled.width + _BORDER - 1, y + scaled.height + _BORDER - 1)
        ImageDraw.Draw(sheet).rectangle(box, fill=_MARK)
    sheet.paste(scaled, corner)
