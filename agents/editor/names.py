"""Names that tell what a picture shows, beside the store that knows pictures by their hash.

`frames/03_the_fox_begs.png` in a run's folder is a copy of the panel that frame 3 shows. The folder follows the board;
a file in it that is not one of the run's panels is moved to `damaged/`, never written over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from katha.agents.folder import RunFolder
from katha.jsonio import PARTIAL, file_sha256, write_bytes_atomic
from katha.schema import Board, Frame, FrameKind, Plan

_WORDS, _NAME = 6, 48
_MARKS = "\u0900-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u1000-\u109f\u1780-\u17d3\u0300-\u036f\u0591-\u05c7\u064b-\u065f"
"""Vowel signs and accents that belong to a word where its script writes them as letters of their own."""
_WORD = rf"(?:[^\W_]|[{_MARKS}])+"
_OURS = re.compile(rf"\d{{2,}}(?:_{_WORD})*\.png")


def speaking_name(number: int, caption: str, kind: FrameKind = "scene") -> str:
    """Return a file name that tells what a frame shows: its number and first words, in small letters of any script."""
    plain = unicodedata.normalize("NFC", caption).lower().replace("'", "").replace("\u2019", "")
    words = re.findall(_WORD, plain)
    said = "_".join(words[:_WORDS])[:_NAME].rstrip("_")
    return "_".join(part for part in (f"{number:02d}", "" if kind == "scene" else kind, said) if part)


def caption_of(frame: Frame, plan: Plan) -> str:
    """Return the words under a frame: its panel's caption, or what it was drawn from. An inserted frame has those that
    a person wrote for it, or the caption that came with what was drawn."""
    panel = next((item for item in plan.panels if item.index == frame.scene), None)
    if frame.kind != "scene":
        own = (frame.model_extra or {}).get("caption")
        shown = frame.panel.caption if frame.panel is not None else ""
        return own if isinstance(own, str) and own.strip() else shown or frame.prompt
    if panel is None:
        return frame.prompt
    return panel.caption or panel.prompt


def frame_names(board: Board, plan: Plan) -> dict[str, str]:
    """Return the hash of each frame's picture by its file name, in the board's order."""
    named = ((speaking_name(item.index, caption_of(item, plan), item.kind), item.sha256) for item in board.frames)
    return {f"{name}.png": sha256 for name, sha256 in named}


def name_frames(folder: RunFolder, board: Board, plan: Plan) -> Path:
    """Bring `frames/` up to the board and return it; a kill leaves a file whole or not there."""
    return fill(folder, folder.path / "frames", frame_names(board, plan))


def name_takes(folder: RunFolder, pictures: Iterable[tuple[int, str, str]]) -> list[Path]:
    """Put pictures to choose from into `takes/` (frame number, what sets it apart, hash); their paths in order."""
    listed = list(pictures)
    place = fill(folder, folder.path / "takes", {f"{at:02d}_{words}.png": sha256 for at, words, sha256 in listed})
    return [place / f"{at:02d}_{words}.png" for at, words, _ in listed]


def fill(folder: RunFolder, place: Path, wanted: Mapping[str, str]) -> Path:
    """Make `place` hold the panels `wanted` (hash by file name) and nothing else of ours."""
    if place.is_symlink():
        folder.set_aside([place.name])
    place.mkdir(exist_ok=True)
    for path in sorted(place.iterdir()):
        if path.name.endswith(PARTIAL) and path.name.startswith("."):
            path.unlink()
        elif path.name in wanted or _OURS.fullmatch(path.name):
            _clear(folder, path, wanted.get(path.name))
    for name, sha256 in wanted.items():
        png = folder.panel(sha256)
        if png is not None and not (place / name).exists():
            write_bytes_atomic(place / name, png, durable=False)
    return place


def _clear(folder: RunFolder, path: Path, sha256: str | None) -> None:
    """Take a file away unless it is the panel `sha256`; what is none of the run's panels is kept in `damaged/`."""
    found = file_sha256(path) if path.is_file() and not path.is_symlink() else None
    if found is not None and found == sha256:
        return
    if found is not None and (folder.panels / f"{found}.png").is_file():
        path.unlink()
    else:
        folder.set_aside([f"{path.parent.name}/{path.name}"])
