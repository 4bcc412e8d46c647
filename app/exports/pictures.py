"""Frames as single pictures with speaking names, and pictures with their words drawn below."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.exports.board import ExportOptions, Sheet, Shot
from katha.app.exports.fonts import Fonts
from katha.app.reports.page import open_picture

if TYPE_CHECKING:
    from PIL.Image import Image

_QUALITY = 92
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
    """Return the frame fitted into `width` x `height` pixels, its words on a bar of `bar` pixels below."""
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    picture = ImageOps.contain(open_picture(shot.picture), (width, height), Image.Resampling.LANCZOS)
    out = Image.new("RGB", (width, height + bar), _PAPER)
    out.paste(picture, ((width - picture.width) // 2, (height - picture.height) // 2))
    if not bar:
        return out
    words = shot.dialogue or shot.caption
    size, face = max(12, bar // 4), str(fonts.best(words))
    draw = ImageDraw.Draw(out)
    while True:
        font = ImageFont.truetype(face, size)
        lines = _lines(words, font, width - 2 * size)
        if len(lines) * size * 1.25 <= bar or size <= 9:
            break
        size -= 1
    for number, line in enumerate(lines):
        top = height + (bar - len(lines) * size * 1.25) / 2 + number * size * 1.25
        draw.text((width / 2, top), line, fill=_INK, font=font, anchor="ma")
    return out


def _lines(words: str, font: Any, width: float) -> list[str]:
    """Break `words` into lines that are no wider than `width` pixels."""
    lines: list[str] = []
    for word in words.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines
