"""`folder`: boards that anyone else made, to be judged and repaired: folders in the layouts of `configs/boards.yaml`, a
project of Storyboarder, the pages of a PDF, or what katha exported."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Protocol

from katha.configs import load_config
from katha.errors import InputFileError, RenderError, UsageError
from katha.ids import folder_of
from katha.jsonio import MOST_JSON, digest, read_json
from katha.ordering import Ordering, UnorderedNames, order_names
from katha.pictures import ENDINGS, READ_AS, as_png, decode, read_picture
from katha.protocols import BoardContext, Capabilities, FrameRequest, PanelWords, Renderer
from katha.renderers.exported import SUFFIXES as EXPORTED
from katha.renderers.exported import Exported, told_words
from katha.renderers.pages import Pages
from katha.renderers.projects import SUFFIX, Project, require_inside

SUFFIXES = ENDINGS
_LATEST = r"(?P<latest>\d{1,6}|\d{8}[-_]\d{6})"
_PARTS = {"{number}": r"(?P<number>\d{1,4})", "{rest}": r"[ _.-].*"}


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
    """The pictures of a story in order. single: the folder holds this story only. left_out: the names of pictures
    beside them that are no frames. order: what the order was read from, where it was from the names."""

    layout: str
    folder: Path
    pictures: tuple[Path, ...]
    single: bool
    left_out: tuple[str, ...] = ()
    order: Ordering | None = None

    @property
    def place(self) -> Path:
        """Return what is named in errors."""
        return self.folder

    def __len__(self) -> int:
        return len(self.pictures)

    def pngs(self, places: Sequence[int], story: str) -> Iterator[bytes]:
        """Yield the pictures at `places` (from 0) as PNG; `story` is named in errors.

        Raises:
            InputFileError: one is missing, damaged, or a link out of its folder.
        """
        for place in places:
            path = self.pictures[place]
            name = f"Frame {place + 1} of {story} ({str(path)!r})"
            require_inside(path, self.folder, name)
            yield as_png(decode(read_picture(path, name), name))


class Pictures(Protocol):
    """The pictures of one board in order, wherever they come from. `single`: there is no other board there."""

    @property
    def place(self) -> Path:
        """Return what is named in errors."""
        ...

    @property
    def single(self) -> bool:
        """Return whether they are of one story only."""
        ...

    def __len__(self) -> int: ...

    def pngs(self, places: Sequence[int], story: str) -> Iterator[bytes]:
        """Yield the pictures at `places` (from 0) as PNG; `story` is named in errors."""
        ...


@cache
def load_layouts() -> Mapping[str, Layout]:
    """Return every layout by its name, in the file's order."""
    rows = load_config("boards.yaml")
    return {name: Layout(name, **{**row, "paths": tuple(row["paths"])}) for name, row in rows.items()}


def find_board(root: Path, story_id: str, layout: str | None = None, by: str | None = None) -> FoundBoard:
    """Find the board of one story below `root`, in `layout` or the first that fits. by: see `katha.ordering`.

    Raises:
        InputFileError: there is none, or its pictures' names give no one order; the place is named.
    """
    known = load_layouts()
    if PurePosixPath(story_id).name != story_id or PureWindowsPath(story_id).name != story_id:
        raise InputFileError(f"The story id {story_id!r} cannot be the name of a folder.")
    for chosen in [known[layout]] if layout else known.values():
        for path in chosen.paths:
            if (folder := _folder(root, path, story_id)) is None:
                continue
            order = None if chosen.list else _ordered(folder, chosen, by)
            named = (folder / name for name in order.names) if order is not None else ()
            pictures = _listed(folder, chosen.list) if chosen.list else tuple(named)
            if pictures:
                others = () if chosen.list else _others(folder, pictures)
                return FoundBoard(chosen.name, folder, pictures, "{story}" not in path, others, order)
    what = f"in the layout {layout!r}" if layout else "in any known layout"
    hint = f"Looked for {story_id}/1.png, {story_id}/storyboard.json and others: see docs/renderers-folder.md."
    raise InputFileError(f"{str(root)!r} holds no board of the story {story_id!r} {what}.", hint=hint)


def _folder(root: Path, path: str, story_id: str) -> Path | None:
    """Return the folder that `path` names below `root`, if it is there; of several `{latest}` the highest."""
    folder = root
    for part in PurePosixPath(path).parts:
        if "{latest}" not in part:
            folder = folder_of(folder, story_id) if part == "{story}" else folder / part.replace("{story}", story_id)
            continue
        pattern = re.compile(re.escape(part).replace(re.escape("{latest}"), _LATEST))
        inside = sorted(item for item in folder.iterdir() if item.is_dir()) if folder.is_dir() else []
        found = [(match["latest"], item) for item in inside if (match := pattern.fullmatch(item.name))]
        if not found:
            return None
        folder = max(found, key=lambda match: (len(match[0]), match[0].replace("_", "-")))[1]
    return folder if folder.is_dir() else None


def _ordered(folder: Path, layout: Layout, by: str | None) -> Ordering | None:
    """Return the pictures of a folder in the order of their names, or of those that a layout's names are like.

    Raises:
        InputFileError: they have no order, or more than one.
    """
    names = [path.name for path in folder.iterdir() if path.is_file()]
    if layout.picture:
        pattern = re.escape(layout.picture)
        for word, regex in _PARTS.items():
            pattern = pattern.replace(re.escape(word), regex)
        names = [name for name in names if re.fullmatch(pattern, Path(name).stem)]
    try:
        return order_names(names, by)
    except UnorderedNames as error:
        said = error.message[0].upper() + error.message[1:]
        raise InputFileError(f"{said} (in {str(folder)!r}).", hint=error.hint) from error


def _others(folder: Path, taken: Sequence[Path]) -> tuple[str, ...]:
    """Return the names of the other pictures in a folder, of whatever kind."""
    names = sorted(path.name for path in folder.iterdir() if path not in taken and path.is_file())
    kinds = ((name, mimetypes.guess_type(name)[0] or "") for name in names if not name.startswith("."))
    return tuple(name for name, kind in kinds if kind.startswith("image/") or Path(name).suffix.lower() in SUFFIXES)


def _listed(folder: Path, name: str) -> tuple[Path, ...]:
    """Return the scene frames that katha's own list names, inside its own folder."""
    if not (folder / name).is_file():
        return ()
    value = read_json(folder / name, limit=MOST_JSON)
    frames = value.get("frames") if isinstance(value, dict) else None
    key = "file" if name == "frames.json" else "image"
    if not isinstance(frames, list) or not all(isinstance(item, dict) and item.get(key) for item in frames):
        raise InputFileError(f"{str(folder / name)!r} has no list of frames with a picture each.")
    scenes = [str(item[key]) for item in frames if item.get("kind", "scene") == "scene"]
    outside = next((image for image in scenes if _leaves(image)), None)
    if outside is not None:
        raise InputFileError(f"{str(folder / name)!r} names the picture {outside!r} outside its folder.")
    return tuple(folder / PurePosixPath(image) for image in scenes)


def _leaves(image: str) -> bool:
    path = PurePosixPath(image)
    return path.is_absolute() or bool(PureWindowsPath(image).drive) or ".." in re.split(r"[/\\]", image)


class FolderRenderer(Renderer):
    """Boards that anyone made, read from a folder or file; a bridge has to come from another renderer.

    `folder:DIR` holds a folder a story, or the pictures of one story; `folder:FILE` is a `.storyboarder` file, a
    PDF, or a comic archive, an EPUB or an edit timeline that katha exported.
    `layout` names a row of `configs/boards.yaml`; without it the first that fits is taken. `order` says which number of
    the names is the place, where there are several readings: a word of theirs (`shot`), `first`, `last`, or `names`.
    `pages` says which pictures are the board, `2-9` or `1,3,5-8`; without it all are.
    """

    capabilities = Capabilities(insertion="none", source="found")

    def __init__(
        self,
        argument: str | None = None,
        *,
        layout: str | None = None,
        order: str | None = None,
        pages: str | None = None,
    ) -> None:
        """Look at the folder or file; no picture is drawn yet.

        Raises:
            UsageError: no folder is named, or there is no such layout or page. InputFileError: there is no such folder,
                or the file cannot be read.
        """
        if not argument:
            raise UsageError("The renderer 'folder' needs a folder.", hint="Write folder:DIR.")
        if layout is not None and layout not in load_layouts():
            raise UsageError(f"There is no layout {layout!r}.", hint=f"Known: {', '.join(load_layouts())}.")
        self._root = Path(argument).expanduser()
        self._file = _open_file(self._root)
        if self._file is None and not self._root.is_dir():
            raise InputFileError(f"There is no folder {argument!r}.", hint="Write folder:DIR.")
        self._layout, self._order = layout, order
        self._pages = pages
        self._places = read_pages(pages) if pages is not None else None
        self._single: str | None = None
        self._pictures = _fingerprint(self._root, self._file)

    def spec(self) -> Mapping[str, Any]:
        """Return the folder, the layout, and a hash of every picture's name, size and time."""
        path = str(self._root.resolve())
        told = {"name": "folder", "path": path, "layout": self._layout, "pictures": self._pictures}
        chosen = {"order": self._order, "pages": self._pages}
        return {**told, **{name: value for name, value in chosen.items() if value is not None}}

    def count(self, story_id: str) -> int:
        """Return how many frames the board of a story has.

        Raises:
            InputFileError: there is no such board, or no such page.
        """
        return len(self._chosen(self._board(story_id)))

    def pictures(self, story_id: str) -> Iterator[tuple[int, bytes]]:
        """Yield the place (from 0) and the PNG of each picture of a story's board.

        Raises:
            InputFileError: a picture is missing or damaged; the file is named.
        """
        board = self._board(story_id)
        places = self._chosen(board)
        yield from zip(places, board.pngs(places, repr(story_id)), strict=True)

    def panel_words(self) -> tuple[PanelWords, ...]:
        """Return the words beside the pictures of a project, or of a board that katha exported; nothing for pictures
        alone."""
        words = self._file.words if self._file is not None else _listed_words(self._root)
        board = self._file if self._file is not None else (self._board(_ANY) if words else None)
        chosen = self._chosen(board) if words and board is not None else ()
        return tuple(words[place] for place in chosen if place < len(words))

    def remarks(self) -> Sequence[str]:
        """Return that a PDF's pages hold words, which a judge sees with the pictures."""
        if not isinstance(self._file, Pages):
            return ()
        worded = [str(place + 1) for place in self._chosen(self._file) if place + 1 in self._file.worded]
        said = "of the board's pages hold words, which the judge sees: what it understands is not from drawings alone"
        return [f"{len(worded)} {said}."] if worded else ()

    def left_out(self, story_id: str) -> Sequence[str]:
        """Return a sentence that names the pictures in the board's folder that are no frames of it, if there are any.

        Raises:
            InputFileError: there is no such board.
        """
        board = self._board(story_id)
        if not isinstance(board, FoundBoard) or not board.left_out:
            return ()
        names = ", ".join(board.left_out[:_NAMED])
        more = f" and {len(board.left_out) - _NAMED} more" if len(board.left_out) > _NAMED else ""
        why = f"the frames are {READ_AS} files named as in the layout {board.layout!r}, by their numbers"
        return (f"Left out of {str(board.place)!r}: {names}{more}; {why}.",)

    def order(self, story_id: str) -> str:
        """Return the order of the pictures in a line; nothing where a project, a PDF or a list says it.

        Raises:
            InputFileError: there is no such board.
        """
        board = self._board(story_id)
        if not isinstance(board, FoundBoard) or board.order is None:
            return ""
        names = tuple(board.order.names[place] for place in self._chosen(board))
        return replace(board.order, names=names).told()

    def _board(self, story_id: str) -> Pictures:
        return self._file if self._file is not None else find_board(self._root, story_id, self._layout, self._order)

    def _chosen(self, board: Pictures) -> Sequence[int]:
        """The places (from 0) of the pictures that are the board.

        Raises:
            InputFileError: one of them is not there.
        """
        if self._places is None:
            return range(len(board))
        if max(self._places) >= len(board):
            raise InputFileError(
                f"{str(board.place)!r} has {len(board)} pictures and no number {max(self._places) + 1}.",
                hint="Correct the option 'pages'.",
            )
        return self._places

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield the story's pictures that the requests ask for, by scene.

        Raises:
            InputFileError: a picture is missing, damaged or one too many; the file is named.
        """
        if not requests:
            return
        story_id, board = requests[0].story_id, self._board(requests[0].story_id)
        if board.single and self._single not in (None, story_id):
            raise InputFileError(
                f"{str(board.place)!r} holds the pictures of {self._single!r} and none of {story_id!r}.",
                hint="Give a folder with a folder per story.",
            )
        self._single = story_id if board.single else self._single
        # Every scene that is asked for has to be there, and a whole board has no picture more.
        chosen = self._chosen(board)
        scenes, count = [request.scene or 0 for request in requests], len(chosen)
        whole = len(requests) > 1 and set(scenes) == set(range(1, len(requests) + 1))
        if not set(scenes) <= set(range(1, count + 1)) or (whole and count != len(requests)):
            raise InputFileError(
                f"{str(board.place)!r} holds {count} pictures; the plan of {story_id!r} has "
                f"{max(len(requests), *scenes)} panels.",
                hint=f"Set --panels {count}, or complete the folder.",
            )
        yield from board.pngs([chosen[scene - 1] for scene in scenes], repr(story_id))

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Refuse: there is nobody here who could draw it (RenderError)."""
        raise RenderError("The renderer 'folder' cannot draw a frame.", hint="Give --bridge-renderer NAME.")


def _listed_words(root: Path) -> tuple[PanelWords, ...]:
    """Return the words in the list beside the pictures that katha exported into a folder; nothing without one."""
    path = root / EXPORTED_LIST
    if not path.is_file():
        return ()
    value = read_json(path, limit=MOST_JSON)
    rows = value.get("frames") if isinstance(value, dict) else None
    scenes = [row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)]
    scenes = [row for row in scenes if row.get("kind", "scene") == "scene"]
    return tuple(told_words(row, f"{str(path)!r}, frame {at}") for at, row in enumerate(scenes, 1))


def _open_file(path: Path) -> Project | Pages | Exported | None:
    """Return the board in a file; None where a folder is named.

    Raises:
        InputFileError: it cannot be read, or is a file of another kind.
    """
    if path.is_dir() or not path.exists():
        return None
    suffix = path.suffix.lower()
    if suffix in EXPORTED:
        return Exported(path)
    if suffix not in (SUFFIX, ".pdf"):
        known = (
            f"Give a folder of pictures, a {SUFFIX} file, a PDF or what katha exported; cut a comic or film first: "
            "katha cut."
        )
        raise InputFileError(f"{str(path)!r} is not a board that can be read.", hint=known)
    return Project(path) if suffix == SUFFIX else Pages(path)


def read_pages(text: str) -> tuple[int, ...]:
    """Return the places (from 0) that `1,3,5-8` names.

    Raises:
        UsageError: it names none.
    """
    places: list[int] = []
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"([1-9]\d{0,3})(?:-([1-9]\d{0,3}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise UsageError(f"The option 'pages' is {text[:50]!r}.", hint="Write 2-9 or 1,3,5-8, counted from 1.")
        places += range(first - 1, last)
    return tuple(places)


EXPORTED_LIST = "frames.json"
_ANY = "board"
"""The story that a folder of one board is asked for."""
_NAMED = 8
_DEEPEST = 2
"""Folders below a folder of boards: a story's, and the panels of a run."""


def _fingerprint(root: Path, file: Project | Pages | Exported | None) -> str:
    """Return what tells that a picture below `root` was changed, without reading them."""
    if file is not None:
        named = file.files if isinstance(file, Project) else [root]
        found = [(path.name, path.stat()) for path in named]
        return digest([[name, stat.st_size, stat.st_mtime_ns] for name, stat in found])
    paths: list[Path] = []
    for folder, names, files in os.walk(root):
        place = Path(folder)
        if len(place.relative_to(root).parts) >= _DEEPEST:
            names.clear()  # a whole disk was given
        paths += (place / name for name in files if Path(name).suffix.lower() in {*SUFFIXES, ".json"})
    paths = sorted(path for path in paths if path.is_file())
    stats = [(path.relative_to(root).as_posix(), path.stat()) for path in paths]
    return digest([[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats])
