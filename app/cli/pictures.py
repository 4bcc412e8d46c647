"""Pictures in the terminal: drawn by kitty and iTerm themselves, in half blocks where there is colour, else named."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from katha.app.reports.page import open_picture

if TYPE_CHECKING:
    from PIL.Image import Image
    from rich.console import Console

_CHUNK, _GAP, _HALF = 4096, 8, "\u2580"
_CELL, _ROWS = (240, 160), 12


def show(console: Console, paths: Sequence[Path], environment: Mapping[str, str] = os.environ) -> None:
    """Draw pictures side by side, in the order of `paths`; nothing where the terminal has no way to."""
    if not paths or not console.is_terminal:
        return
    strip = _strip([open_picture(path) for path in paths])
    if environment.get("KITTY_WINDOW_ID") or "kitty" in environment.get("TERM", ""):
        console.file.write(f"{kitty(strip)}\n")
    elif environment.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm"):
        console.file.write(f"{iterm(strip)}\n")
    elif console.color_system in ("256", "truecolor"):
        half_blocks(console, strip)


def launch(paths: Sequence[Path]) -> None:
    """Open pictures with the program that this machine has for them."""
    for path in paths:
        typer.launch(str(path.resolve()))


def _strip(pictures: Sequence[Image]) -> Image:
    """Thumbnails side by side."""
    from PIL import Image, ImageOps

    strip = Image.new("RGB", (len(pictures) * (_CELL[0] + _GAP) - _GAP, _CELL[1]), "black")
    for at, picture in enumerate(pictures):
        strip.paste(ImageOps.pad(picture.convert("RGB"), _CELL, color="black"), (at * (_CELL[0] + _GAP), 0))
    return strip


def _png(picture: Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue())


def kitty(picture: Image) -> str:
    """Return the escape codes of kitty's graphics protocol: PNG in base64, in pieces of at most 4,096 bytes."""
    data = _png(picture).decode("ascii")
    pieces = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    return "".join(
        f"\x1b_G{'f=100,a=T,' if at == 0 else ''}m={int(at < len(pieces) - 1)};{piece}\x1b\\"
        for at, piece in enumerate(pieces)
    )


def iterm(picture: Image) -> str:
    """Return the escape code of iTerm's inline pictures."""
    data = _png(picture).decode("ascii")
    return f"\x1b]1337;File=inline=1;width={picture.width}px;height={picture.height}px:{data}\x07"


def half_blocks(console: Console, picture: Image) -> None:
    """Draw a picture in characters of two pixels each, as wide as the terminal has room for."""
    from rich.text import Text

    width = max(1, min(console.width - 1, 2 * _ROWS * picture.width // picture.height))
    height = max(2, 2 * round(width * picture.height / picture.width / 2))
    small = picture.resize((width, height))
    pixels = [[small.getpixel((x, y)) for x in range(width)] for y in range(height)]
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        line = Text()
        for one, two in zip(upper, lower, strict=True):
            line.append(_HALF, style=f"rgb{_rgb(one)} on rgb{_rgb(two)}")
        console.print(line, no_wrap=True, overflow="crop")


def _rgb(pixel: object) -> str:
    values = pixel if isinstance(pixel, tuple) else (pixel, pixel, pixel)
    return f"({','.join(str(int(value)) for value in values[:3])})"
