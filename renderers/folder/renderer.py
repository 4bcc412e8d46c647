"""The renderer that draws nothing: a story's board is found in a folder, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, RenderError, UsageError
from katha.jsonio import digest
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.folder.layouts import SUFFIXES, FoundBoard, find_board, load_layouts
from katha.renderers.folder.pictures import read_picture

__all__ = ["FolderRenderer"]


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
        """The folder, the layout, and a hash of every picture's name, size and time."""
        return {
            "name": "folder",
            "path": str(self._root.resolve()),
            "layout": self._layout,
            "pictures": self._pictures,
        }

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield the story's pictures that the requests ask for, by scene.

        Raises:
            InputFileError: a picture is missing, damaged or one too many; the file is named.
        """
        if not requests:
            return
        board = self._board(requests[0].story_id)
        self._check_count(board, requests)
        for request in requests:
            place = request.scene or 0
            yield read_picture(board.pictures[place - 1], f"Frame {place} of {request.story_id!r}")

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Refused: there is nobody here who could draw it.

        Raises:
            RenderError: always.
        """
        raise RenderError("The renderer 'folder' cannot draw a frame.", hint="Give --bridge-renderer NAME.")

    def _board(self, story_id: str) -> FoundBoard:
        board = find_board(self._root, story_id, self._layout)
        if board.single:
            if self._single not in (None, story_id):
                raise InputFileError(
                    f"{str(board.folder)!r} holds the pictures of {self._single!r} and none of {story_id!r}.",
                    hint="Give a folder with a folder per story.",
                )
            self._single = story_id
        return board

    def _check_count(self, board: FoundBoard, requests: Sequence[FrameRequest]) -> None:
        """Every scene that is asked for is there, and a whole board has no picture more."""
        scenes, count = {request.scene or 0 for request in requests}, len(board.pictures)
        whole = len(requests) > 1 and scenes == set(range(1, len(requests) + 1))
        if not scenes <= set(range(1, count + 1)) or (whole and count != len(requests)):
            raise InputFileError(
                f"{str(board.folder)!r} holds {count} pictures; the plan of {requests[0].story_id!r} has "
                f"{max(len(requests), *scenes)} panels.",
                hint=f"Set --panels {count}, or complete the folder.",
            )


def _fingerprint(root: Path) -> str:
    """What tells that a picture below `root` was changed, without reading them."""
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in {*SUFFIXES, ".json"} and path.is_file())
    stats = [(path.relative_to(root).as_posix(), path.stat()) for path in paths]
    return digest([[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats])
