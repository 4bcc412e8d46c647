"""`folder`: boards that anyone else made, in the layouts of `configs/boards.yaml`, to be judged and repaired."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from katha.configs import load_config
from katha.errors import InputFileError, RenderError, UsageError
from katha.jsonio import MOST_JSON, digest, read_json
from katha.pictures import as_png, decode, read_picture
from katha.protocols import BoardContext, Capabilities, FrameRequest

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp"))
_LATEST = r"(?P<latest>\d{1,6}|\d{8}[-_]\d{6})"
_PARTS = {"{number}": r"(?P<number>\d{1,4})", "{any}": r"(?:.*\D)?"}


@dataclass(frozen=True)
class Layout:
    """Where another program leaves its boards: a row of `configs/boards.yaml`, where the fields are explained."""

    name: str
    about: str
    paths: tuple[str, ...]
    picture: str = ""
    list: str = ""


@dataclass(frozen=True)
class FoundBoard:
    """The pictures of a story in order. `single`: the folder holds this story only."""

    layout: str
    folder: Path
    pictures: tuple[Path, ...]
    single: bool


@cache
def load_layouts() -> Mapping[str, Layout]:
    """Return every layout by its name, in the file's order."""
    rows = load_config("boards.yaml")
    return {name: Layout(name, **{**row, "paths": tuple(row["paths"])}) for name, row in rows.items()}


def find_board(root: Path, story_id: str, layout: str | None = None) -> FoundBoard:
    """Find the board of one story below `root`, in `layout` or the first that fits.

    Raises:
        InputFileError: there is none, or its frames are not numbered one after the other; the place is named.
    """
    known = load_layouts()
    if PurePosixPath(story_id).name != story_id or PureWindowsPath(story_id).name != story_id:
        raise InputFileError(f"The story id {story_id!r} cannot be the name of a folder.")
    for chosen in [known[layout]] if layout else known.values():
        for path in chosen.paths:
            if (folder := _folder(root, path, story_id)) is None:
                continue
            pictures = _listed(folder, chosen.list) if chosen.list else _numbered(folder, chosen.picture)
            if pictures:
                return FoundBoard(chosen.name, folder, pictures, "{story}" not in path)
    what = f"in the layout {layout!r}" if layout else "in any known layout"
    hint = f"Looked for {story_id}/1.png, {story_id}/storyboard.json and others: see docs/renderers.md."
    raise InputFileError(f"{str(root)!r} holds no board of the story {story_id!r} {what}.", hint=hint)


def _folder(root: Path, path: str, story_id: str) -> Path | None:
    """Return the folder that `path` names below `root`, if it is there; of several `{latest}` the highest."""
    folder = root
    for part in PurePosixPath(path).parts:
        if "{latest}" not in part:
            folder = folder / part.replace("{story}", story_id)
            continue
        pattern = re.compile(re.escape(part).replace(re.escape("{latest}"), _LATEST))
        inside = sorted(item for item in folder.iterdir() if item.is_dir()) if folder.is_dir() else []
        found = [(match["latest"], item) for item in inside if (match := pattern.fullmatch(item.name))]
        if not found:
            return None
        folder = max(found, key=lambda match: (len(match[0]), match[0].replace("_", "-")))[1]
    return folder if folder.is_dir() else None


def _numbered(folder: Path, picture: str) -> tuple[Path, ...]:
    """Return the pictures of a folder by their numbers, which run from 0 or 1 without a gap."""
    pattern = re.escape(picture)
    for word, regex in _PARTS.items():
        pattern = pattern.replace(re.escape(word), regex)
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = re.fullmatch(pattern, path.stem)
        if match is None or path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        number = int(match["number"])
        if number in found:
            raise InputFileError(f"Frame {number} is twice in {str(folder)!r}: {found[number].name} and {path.name}.")
        found[number] = path
    if not found:
        return ()
    first = min(found)
    wanted = range(min(first, 1), max(found) + 1)
    missing = [str(number) for number in wanted if number not in found]
    if missing:
        names = [path.name for path in found.values()]
        held = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        raise InputFileError(f"Frame {', '.join(missing)} is missing in {str(folder)!r}.", hint=f"It holds {held}.")
    return tuple(found[number] for number in wanted)


def _listed(folder: Path, name: str) -> tuple[Path, ...]:
    """Return the scene frames that a storyboard.json names, inside its own folder."""
    if not (folder / name).is_file():
        return ()
    value = read_json(folder / name, limit=MOST_JSON)
    frames = value.get("frames") if isinstance(value, dict) else None
    if not isinstance(frames, list) or not all(isinstance(item, dict) and item.get("image") for item in frames):
        raise InputFileError(f"{str(folder / name)!r} has no list of frames with an image each.")
    scenes = [str(item["image"]) for item in frames if item.get("kind", "scene") == "scene"]
    outside = next((image for image in scenes if _leaves(image)), None)
    if outside is not None:
        raise InputFileError(f"{str(folder / name)!r} names the picture {outside!r} outside its folder.")
    return tuple(folder / PurePosixPath(image) for image in scenes)


def _leaves(image: str) -> bool:
    path = PurePosixPath(image)
    return path.is_absolute() or bool(PureWindowsPath(image).drive) or ".." in re.split(r"[/\\]", image)


class FolderRenderer:
    """Boards that anyone made, read from a folder; a bridge has to come from another renderer.

    `folder:DIR` holds a folder a story, or the pictures of one story. `layout` names a row of `configs/boards.yaml`;
    without it the first that fits is taken.
    """

    capabilities = Capabilities(insertion="none", source="found")

    def __init__(self, argument: str | None = None, *, layout: str | None = None) -> None:
        """Look at the folder; no picture is read yet.

        Raises:
            UsageError: no folder is named, or there is no such layout. InputFileError: there is no such folder.
        """
        if not argument:
            raise UsageError("The renderer 'folder' needs a folder.", hint="Write folder:DIR.")
        if layout is not None and layout not in load_layouts():
            raise UsageError(f"There is no layout {layout!r}.", hint=f"Known: {', '.join(load_layouts())}.")
        self._root = Path(argument).expanduser()
        if not self._root.is_dir():
            raise InputFileError(f"There is no folder {argument!r}.", hint="Write folder:DIR.")
        self._layout = layout
        self._single: str | None = None
        self._pictures = _fingerprint(self._root)

    def spec(self) -> Mapping[str, Any]:
        """Return the folder, the layout, and a hash of every picture's name, size and time."""
        path = str(self._root.resolve())
        return {"name": "folder", "path": path, "layout": self._layout, "pictures": self._pictures}

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield the story's pictures that the requests ask for, by scene.

        Raises:
            InputFileError: a picture is missing, damaged or one too many; the file is named.
        """
        if not requests:
            return
        story_id, board = requests[0].story_id, find_board(self._root, requests[0].story_id, self._layout)
        if board.single and self._single not in (None, story_id):
            raise InputFileError(
                f"{str(board.folder)!r} holds the pictures of {self._single!r} and none of {story_id!r}.",
                hint="Give a folder with a folder per story.",
            )
        self._single = story_id if board.single else self._single
        # Every scene that is asked for has to be there, and a whole board has no picture more.
        scenes, count = {request.scene or 0 for request in requests}, len(board.pictures)
        whole = len(requests) > 1 and scenes == set(range(1, len(requests) + 1))
        if not scenes <= set(range(1, count + 1)) or (whole and count != len(requests)):
            raise InputFileError(
                f"{str(board.folder)!r} holds {count} pictures; the plan of {story_id!r} has "
                f"{max(len(requests), *scenes)} panels.",
                hint=f"Set --panels {count}, or complete the folder.",
            )
        for request in requests:
            place = request.scene or 0
            path = board.pictures[place - 1]
            where = f"Frame {place} of {request.story_id!r} ({str(path)!r})"
            yield as_png(decode(read_picture(path, where), where))

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Refuse: there is nobody here who could draw it (RenderError)."""
        raise RenderError("The renderer 'folder' cannot draw a frame.", hint="Give --bridge-renderer NAME.")


_DEEPEST = 2
"""Folders below a folder of boards: a story's, and the panels of a run."""


def _fingerprint(root: Path) -> str:
    """Return what tells that a picture below `root` was changed, without reading them."""
    paths: list[Path] = []
    for folder, names, files in os.walk(root):
        place = Path(folder)
        if len(place.relative_to(root).parts) >= _DEEPEST:
            names.clear()  # somebody gave his whole disk
        paths += (place / name for name in files if Path(name).suffix.lower() in {*SUFFIXES, ".json"})
    paths = sorted(path for path in paths if path.is_file())
    stats = [(path.relative_to(root).as_posix(), path.stat()) for path in paths]
    return digest([[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats])
