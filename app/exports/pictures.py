"""Frames as single pictures with descriptive file names, and pictures with their words drawn below."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.exports.board import PRINT, ExportBoard, ExportFrame, ExportOptions
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
    shot: ExportFrame, picture: Image, size: tuple[int, int], bar: int, fonts: Fonts, *, dark: bool = False
) -> Image:
    """Return a frame's picture in the middle of `size` pixels, its words on a bar of `bar` pixels below.

    They are made smaller where they would not fit, and end in an ellipsis where even that is too much. dark: light
    words on black.
    """
    from PIL import Image, ImageDraw

    width, height = size
    paper, ink = (_DARK, _PAPER) if dark else (_PAPER, _INK)
    out = Image.new("RGB", (width, height + bar), paper)
    place = ((width - picture.width) // 2, (height - picture.height) // 2)
    if not bar:
        out.paste(picture, place)
        return out
    words, points = " ".join(shot.said), max(12, bar // 4)
    room = width - 2 * points
    while True:
        wide = Letters(fonts, points).width
        lines = [line for said in shot.said for line in broken(said, room, wide)]
        most = max(1, int(bar / (points * _LEADING)))
        if len(lines) <= most or points <= _SMALLEST:
            break
        points -= 1
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][:-1].rstrip()}\u2026"]
    draw, letters = ImageDraw.Draw(out), Letters(fonts, points)
    for number, line in enumerate(lines):
        top = height + (bar - len(lines) * points * _LEADING) / 2 + number * points * _LEADING
        letters.draw(draw, line, width / 2, top + points, leftward=is_leftward(words), colour=ink)
    out.paste(picture, place)
    return out


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
