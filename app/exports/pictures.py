"""Frames as single pictures with speaking names, and pictures with their words drawn below."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.exports.board import ExportOptions, Sheet, Shot
from katha.app.exports.fonts import Fonts, as_seen, broken, has_leftward, is_leftward
from katha.app.reports.page import open_picture

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

_QUALITY = 92
_LEADING, _SMALLEST = 1.25, 9
_INK, _PAPER = "#1f1e26", "#ffffff"


def write_png(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write the frames as they were drawn, byte for byte where they are PNG, and a list of them."""
    target.mkdir()
    for shot in sheet.shots:
        if shot.picture.suffix.lower() == ".png":
            shutil.copyfile(shot.picture, target / f"{shot.name}.png")
        else:
            open_picture(shot.picture).save(target / f"{shot.name}.png")
    _list(sheet, target, ".png")


def write_jpg(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write the frames as JPEG, and a list of them."""
    target.mkdir()
    for shot in sheet.shots:
        open_picture(shot.picture).save(target / f"{shot.name}.jpg", "JPEG", quality=_QUALITY)
    _list(sheet, target, ".jpg")


def _list(sheet: Sheet, target: Path, suffix: str) -> None:
    (target / "frames.json").write_text(
        json.dumps(listing(sheet, suffix), indent=2, ensure_ascii=False) + "\n", "utf-8"
    )


def listing(sheet: Sheet, suffix: str) -> dict[str, Any]:
    """Return what a folder of frames holds, for programs."""
    keys = ("number", "kind", "caption", "dialogue", "action", "notes", "seconds", "sha256", "prompt")
    rows = [{"file": f"{shot.name}{suffix}", **{key: getattr(shot, key) for key in keys}} for shot in sheet.shots]
    return {"story_id": sheet.story_id, "title": sheet.title, "frames": rows}


def with_words(shot: Shot, width: int, height: int, bar: int, fonts: Fonts) -> Image:
    """Return the frame fitted into `width` x `height` pixels, its words on a bar of `bar` pixels below.

    They are made smaller where they would not fit, and end in an ellipsis where even that is too much.
    """
    from PIL import Image, ImageDraw, ImageOps

    picture = ImageOps.contain(open_picture(shot.picture), (width, height), Image.Resampling.LANCZOS)
    out = Image.new("RGB", (width, height + bar), _PAPER)
    place = ((width - picture.width) // 2, (height - picture.height) // 2)
    if not bar:
        out.paste(picture, place)
        return out
    words, size = " ".join(shot.said), max(12, bar // 4)
    room = width - 2 * size
    while True:
        wide = Letters(fonts, size).width
        lines = [line for said in shot.said for line in broken(said, room, wide)]
        most = max(1, int(bar / (size * _LEADING)))
        if len(lines) <= most or size <= _SMALLEST:
            break
        size -= 1
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][:-1].rstrip()}\u2026"]
    draw, letters = ImageDraw.Draw(out), Letters(fonts, size)
    for number, line in enumerate(lines):
        top = height + (bar - len(lines) * size * _LEADING) / 2 + number * size * _LEADING
        letters.draw(draw, line, width / 2, top + size, leftward=is_leftward(words))
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
