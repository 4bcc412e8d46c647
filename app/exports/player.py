"""A page that plays the board: pictures, words, notes and sounds in the times of its frames, in one file."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from katha.app.exports.board import FILM, ExportBoard, ExportFrame, ExportOptions, Size, tell_hurried
from katha.app.exports.camera import HELD, move_of, tell_moves
from katha.app.exports.motion import Moving
from katha.app.exports.sizes import box_of, drawings_of, fitted
from katha.app.exports.sounds import sounds_of
from katha.app.exports.vectors import unframed
from katha.app.reports.page import data_uri, jpeg_uri, open_picture, write_page
from katha.errors import InputFileError
from katha.jsonio import read_bytes

_LARGEST_DRAWING = 400_000
"""Bytes of a drawing that a page holds as it is; a larger one is shown as pixels."""
_MOST_SOUND = 100_000_000
_ROWS = (
    ("Scene", "scene"), ("Shot", "shot"), ("Camera", "filmed"), ("Action", "action"), ("Dialogue", "dialogue"),
    ("Sound", "sound"), ("Notes", "notes"), ("Status", "status"),
)  # fmt: skip


def write_player(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the page; it asks nothing of the network.

    Raises:
        InputFileError: a sound cannot be read, or all of them are too large for a page.
    """
    write_page(target, "player.html.j2", board=board_of(sheet, options), language=options.language)


def board_of(sheet: ExportBoard, options: ExportOptions) -> dict[str, Any]:
    """Return a board as `player.js` takes it, its pictures and sounds inside."""
    drawings, box = drawings_of(sheet), box_of(options) or FILM
    tell_moves(sheet, options)
    tell_hurried(sheet)
    version = f", version {sheet.version}" if sheet.version else ""
    return {
        "title": sheet.title,
        "told": f"{len(sheet.shots)} frames, {sheet.seconds:g} s{version}",
        "frames": [_frame(shot, drawings.get(shot.number), box, still=options.still) for shot in sheet.shots],
        "sounds": _sounds(sheet, options.audio),
    }


def _frame(shot: ExportFrame, drawing: str | None, box: Size, *, still: bool) -> dict[str, Any]:
    rows = [[name, words] for name, key in _ROWS if (words := getattr(shot, key))]
    rows += [[f"{one.by or 'Comment'} {one.at[:10]}".strip(), one.text] for one in shot.comments]
    told = {name: getattr(shot, name) for name in ("number", "mark", "kind", "seconds", "caption", "spoken", "status")}
    told |= {"alt": shot.prompt or shot.caption, "rows": rows}
    move = None if still else move_of(shot.camera_move)
    if move is None or move == HELD:
        return {**told, "image": _image(shot, drawing, box)}
    if shot.source is not None and drawing is not None:
        with open_picture(shot.picture) as picture:
            move = Moving(drawing, picture.size, shot.asked.must_show, move=move).way
    large = round(box[0] * move.closest), round(box[1] * move.closest)
    return {**told, "image": _image(shot, unframed(drawing), large), "camera": move.samples(shot.seconds)}


def _image(shot: ExportFrame, drawing: str | None, box: Size) -> str:
    if drawing is not None and len(drawing) <= _LARGEST_DRAWING:
        return data_uri(drawing.encode("utf-8"), "image/svg+xml")
    return jpeg_uri(fitted(shot, box, drawing), max(box))


def _sounds(sheet: ExportBoard, audio: Path | None) -> list[dict[str, Any]]:
    found, size = [], 0
    for sound in sounds_of(sheet, audio):
        data = read_bytes(sound.path)
        size += len(data)
        if size > _MOST_SOUND:
            hint = "Give shorter ones, or compressed: mp3, m4a, opus."
            raise InputFileError(f"The sounds hold more than the {_MOST_SOUND:,} bytes that a page takes.", hint=hint)
        kind = mimetypes.guess_type(sound.path.name)[0] or "audio/mpeg"
        found.append({"start": sound.start, "length": sound.length, "source": data_uri(data, kind)})
    return found
