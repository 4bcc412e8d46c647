"""Where other programs leave their boards, as data: paths below a folder, and how pictures are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath, PureWindowsPath

import yaml

from katha.errors import InputFileError
from katha.jsonio import read_json

__all__ = ["FoundBoard", "Layout", "find_board", "load_layouts"]

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp"))
_LATEST = r"(?P<latest>\d{1,6}|\d{8}[-_]\d{6})"
_PARTS = {"{number}": r"(?P<number>\d{1,4})", "{any}": r"(?:.*\D)?"}


@dataclass(frozen=True)
class Layout:
    """One row of `configs/boards.yaml`; the fields are explained there."""

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
    """Every layout by its name, in the file's order."""
    rows = yaml.safe_load(files("katha.configs").joinpath("boards.yaml").read_text(encoding="utf-8"))
    return {name: Layout(name, **{**row, "paths": tuple(row["paths"])}) for name, row in rows.items()}


def find_board(root: Path, story_id: str, layout: str | None = None) -> FoundBoard:
    """The board of one story below `root`, in `layout` or the first that fits.

    Raises:
        InputFileError: there is none, or its frames are not numbered one after the other; the place is named.
    """
    known = load_layouts()
    if PurePosixPath(story_id).name != story_id or PureWindowsPath(story_id).name != story_id:
        raise InputFileError(f"The story id {story_id!r} cannot be the name of a folder.")
    for chosen in [known[layout]] if layout else known.values():
        for path in chosen.paths:
            for folder in _folders(root, path, story_id):
                pictures = _listed(folder, chosen.list) if chosen.list else _numbered(folder, chosen.picture)
                if pictures:
                    return FoundBoard(chosen.name, folder, pictures, "{story}" not in path)
    what = f"in the layout {layout!r}" if layout else "in any known layout"
    hint = f"Looked for {story_id}/1.png, {story_id}/storyboard.json and others: see docs/renderers.md."
    raise InputFileError(f"{str(root)!r} holds no board of the story {story_id!r} {what}.", hint=hint)


def _folders(root: Path, path: str, story_id: str) -> Iterator[Path]:
    """The folder that `path` names below `root`, if it is there; of several `{latest}` the highest."""
    folder = root
    for part in PurePosixPath(path).parts:
        if "{latest}" in part:
            pattern = re.compile(re.escape(part).replace(re.escape("{latest}"), _LATEST))
            matches = [
                (match["latest"], item) for item in _subfolders(folder) if (match := pattern.fullmatch(item.name))
            ]
            if not matches:
                return
            folder = max(matches, key=lambda match: (len(match[0]), match[0].replace("_", "-")))[1]
        else:
            folder = folder / part.replace("{story}", story_id)
    if folder.is_dir():
        yield folder


def _subfolders(folder: Path) -> list[Path]:
    return sorted(item for item in folder.iterdir() if item.is_dir()) if folder.is_dir() else []


def _numbered(folder: Path, picture: str) -> tuple[Path, ...]:
    """The pictures of a folder by their numbers, which run from 0 or 1 without a gap."""
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
        raise InputFileError(
            f"Frame {', '.join(missing)} is missing in {str(folder)!r}.", hint=f"It holds {_names(found.values())}."
        )
    return tuple(found[number] for number in wanted)


def _names(paths: Iterable[Path]) -> str:
    names = [path.name for path in paths]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _listed(folder: Path, name: str) -> tuple[Path, ...]:
    """The scene frames that a storyboard.json names, inside its own folder."""
    if not (folder / name).is_file():
        return ()
    value = read_json(folder / name)
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
