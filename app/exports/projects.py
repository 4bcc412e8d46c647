"""Other programs' own forms: Wonder Unit Storyboarder's project and ViStoryBench's results layout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions, Size
from katha.app.exports.lists import told_of
from katha.app.exports.reading import LEAST
from katha.app.exports.sizes import box_of, drawings_of, fitted
from katha.app.reports.page import open_picture
from katha.renderers.projects import KATHA

if TYPE_CHECKING:
    from PIL.Image import Image

_SHORT_SIDE = 900
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write_storyboarder(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write a folder with `NAME.storyboarder` and `images/`; a bridge is not a new shot, so it is
    numbered 2B after 2A. What Storyboarder has no field for (light, weather, the camera's move) stands in the file
    under a key of katha's own, and in no field that it shows."""
    images = target / "images"
    images.mkdir(parents=True)
    box, drawings = box_of(options), drawings_of(sheet)
    boards, at, shot_number, letter = [], 0, 0, 0
    for shot in sheet.shots:
        new = shot.kind == "scene"
        shot_number, letter = (shot_number + 1, 0) if new else (shot_number, letter + 1)
        uid = _uid(shot)
        name = f"board-{shot.number}-{uid}.png"
        _fit(sheet, shot, box, drawings.get(shot.number)).save(images / name)
        length = round(1000 * shot.seconds)
        boards.append(
            {
                "uid": uid,
                "url": name,
                "newShot": new,
                "lastEdited": 0,
                "layers": {},
                "number": shot.number,
                "shot": f"{max(1, shot_number)}{_alphabet(letter)}",
                "time": at,
                "duration": length,
                "dialogue": shot.dialogue,
                "action": shot.action or shot.caption,
                "notes": shot.notes or ("" if new else shot.kind),
                KATHA: told_of(shot),
            }
        )
        at += length
    project = {
        "version": "3.0.0",
        "aspectRatio": round(sheet.width / sheet.height, 4),
        "fps": options.fps.numerator if options.fps.denominator == 1 else round(float(options.fps), 3),
        "defaultBoardTiming": round(1000 * (options.seconds or LEAST)),
        "boards": boards,
    }
    text = json.dumps(project, indent=2, ensure_ascii=False)
    (target / f"{sheet.story_id}.storyboarder").write_text(text + "\n", "utf-8")


def _fit(sheet: ExportBoard, shot: ExportFrame, box: Size | None, svg: str | None) -> Image:
    """Return the picture with a short side of 900 pixels, which is Storyboarder's canvas, or in the size asked for."""
    scale = _SHORT_SIDE / min(sheet.width, sheet.height)
    return fitted(shot, box or (round(sheet.width * scale), round(sheet.height * scale)), svg)


def _alphabet(number: int) -> str:
    """Return A, B, ... Z, AA, AB, ... for 0, 1, ..."""
    first, last = divmod(number, 26)
    return (_alphabet(first - 1) if first else "") + chr(ord("A") + last)


def _uid(shot: ExportFrame) -> str:
    """Return five characters that name a board, the same each time."""
    value = int(hashlib.sha256(f"{shot.number}:{shot.sha256}".encode()).hexdigest(), 16)
    letters = []
    for _ in range(5):
        value, digit = divmod(value, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def write_vistorybench(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write `RENDERER/katha/en/00000000_000000/shots/STORY/shot_01.png` and so on, as ViStoryBench reads them."""
    folder = (
        target / sheet.renderer.replace(":", "_").replace("/", "_") / "katha" / options.language / "00000000_000000"
    )
    shots = folder / "shots" / sheet.story_id
    shots.mkdir(parents=True)
    for shot in sheet.shots:
        open_picture(shot.picture).save(shots / f"shot_{shot.number:02d}.png")
