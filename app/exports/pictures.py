"""Frames as single pictures with descriptive file names, and pictures with their words drawn below."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.exports.board import PRINT, ExportBoard, ExportFrame, ExportOptions, Size
from katha.app.exports.fonts import Fonts, as_seen, broken, has_leftward, is_leftward
from katha.app.exports.lists import LIST, listing
from katha.app.exports.sizes import DPI, box_of, drawings_of, fitted
from katha.app.reports.page import open_picture
from katha.jsonio import dumps

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

_QUALITY = 92
_LEADING, _SMALLEST = 1.25, 9
_AT_ONCE = 2
"""Lines of words that are shown at a time in a film."""
_INK, _PAPER, _DARK = "#1f1e26", "#ffffff", "#000000"


def write_png(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the frames as they were drawn, byte for byte where they are PNG, or in the size that is asked for; and a
    list of them."""
    _write(sheet, target, ".png", options)


def write_jpg(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the frames as JPEG, as they were drawn or in the size that is asked for, and a list of them."""
    _write(sheet, target, ".jpg", options)


def _write(sheet: ExportBoard, target: Path, suffix: str, options: ExportOptions) -> None:
    target.mkdir()
    for shot, (_, data) in zip(sheet.shots, files_of(sheet, options, suffix), strict=True):
        (target / f"{shot.name}{suffix}").write_bytes(data)
    (target / LIST).write_text(dumps(listing(sheet, suffix)), "utf-8")


def files_of(sheet: ExportBoard, options: ExportOptions, suffix: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of every frame's file, in the size that is asked for; of this kind, or of their own.

    What is asked for in no size, and is of the kind, keeps its bytes.
    """
    box = box_of(options)
    drawings = drawings_of(sheet) if box is not None else {}
    dots: dict[str, Any] = {"dpi": (DPI, DPI)} if options.size == PRINT else {}
    for shot in sheet.shots:
        end = suffix or (".png" if box is not None else shot.picture.suffix)
        if box is None and shot.picture.suffix.lower() == end:
            yield f"{shot.name}{end}", shot.picture.read_bytes()
            continue
        picture = open_picture(shot.picture) if box is None else fitted(shot, box, drawings.get(shot.number))
        held = io.BytesIO()
        how: dict[str, Any] = {"format": "JPEG", "quality": _QUALITY} if end == ".jpg" else {"format": "PNG"}
        picture.save(held, **how, **dots)
        yield f"{shot.name}{end}", held.getvalue()


def with_words(
    shot: ExportFrame, picture: Image, size: Size, bar: int, fonts: Fonts, *, dark: bool = False
) -> list[tuple[float, Image]]:
    """Return a frame's picture in the middle of `size` pixels, its words on a bar of `bar` pixels below, two lines at a
    time: when each of these is shown, as a share of the frame's time, and the whole picture.

    dark: light words on black.
    """
    from PIL import Image, ImageDraw

    width, height = size
    paper, ink = (_DARK, _PAPER) if dark else (_PAPER, _INK)
    out = Image.new("RGB", (width, height + bar), paper)
    out.paste(picture, ((width - picture.width) // 2, (height - picture.height) // 2))
    points = max(_SMALLEST, bar // 4)
    at_once = max(1, min(_AT_ONCE, int(bar / (points * _LEADING))))
    letters, words = Letters(fonts, points), " ".join(shot.said)
    pages = [page for said in shot.said for page in _pages(said, width - 2 * points, letters, at_once)] if bar else []
    if sum(map(len, pages)) <= at_once:
        pages = [[line for page in pages for line in page]]
    read = [max(1, sum(map(len, page))) for page in pages]
    made = []
    for number, lines in enumerate(pages):
        shown = out.copy()
        draw = ImageDraw.Draw(shown)
        for at, line in enumerate(lines):
            top = height + (bar - len(lines) * points * _LEADING) / 2 + at * points * _LEADING
            letters.draw(draw, line, width / 2, top + points, leftward=is_leftward(words), colour=ink)
        shown.paste(out.crop((0, 0, width, height)))  # letters of a low bar cover nothing
        made.append((sum(read[:number]) / sum(read), shown))
    return made


def _pages(said: str, room: float, letters: Letters, at_once: int) -> list[list[str]]:
    """Return words in lines, so many of them at a time as are read together; all pages are about equally full."""
    lines = broken(said, room, letters.width)
    count = -(-len(lines) // at_once)
    if len(lines) > 1:  # no line, and no page, is one word
        total, narrower = letters.width(said), room
        while narrower > total / (count * at_once) and len(broken(said, narrower * 0.97, letters.width)) <= (
            count * at_once
        ):
            narrower *= 0.97
        lines = broken(said, narrower, letters.width)
    return [lines[at : at + at_once] for at in range(0, len(lines), at_once)]


class Letters:
    """Words of any script in one size of pixels, each letter from a font that has it; else Pillow's."""

    def __init__(self, fonts: Fonts | None, size: int) -> None:
        self._fonts, self._size = fonts, size
        self._faces: dict[Path, FreeTypeFont] = {}

    def _face(self, path: Path) -> FreeTypeFont:
        from PIL import ImageFont

        if path not in self._faces:
            self._faces[path] = ImageFont.truetype(str(path), self._size)
        return self._faces[path]

    def _runs(self, text: str) -> list[tuple[FreeTypeFont | ImageFont, str]]:
        if self._fonts is None:
            from PIL import ImageFont

            return [(ImageFont.load_default(self._size), text)]
        best = self._fonts.best(text)
        return (
            [(self._face(best), text)]
            if not self._fonts.lacks(best, text)
            else [(self._face(path), part) for path, part in self._fonts.runs(text)]
        )

    def width(self, text: str) -> float:
        """Return how wide words are in pixels."""
        return sum(face.getlength(part) for face, part in self._runs(text))

    def draw(
        self, draw: ImageDraw, line: str, middle: float, base: float, *, leftward: bool, colour: str = _INK
    ) -> None:
        """Draw one line around `middle`, its letters standing on `base`."""
        parts = as_seen(line, leftward).split(" ") if has_leftward(line) else [line]
        blank = self.width(" ")
        x = middle - (sum(map(self.width, parts)) + blank * (len(parts) - 1)) / 2
        for part in parts:
            for face, run in self._runs(part):
                draw.text((x, base), run, fill=colour, font=face, anchor="ls")
                x += face.getlength(run)
            x += blank
