"""Boards drawn elsewhere: one folder a story with `storyboard.json`, or five pictures in order.

A board that cannot be judged is never half used and never stops a run: `BoardProblem` says why, and the story is
invalid for that method. Names in `storyboard.json` are data: a picture outside the board's folder is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import cast, get_args

from pydantic import Field, ValidationError

from katha.errors import InputFileError, KathaError, UsageError
from katha.eval_bridge.packets.packets import clean_image
from katha.ids import folder_of
from katha.jsonio import MOST_JSON, read_json, sha256_hex
from katha.ordering import BY_NAMES, Ordering, UnorderedNames, order_names
from katha.pictures import READ_AS, decoded, is_blank, is_ink_on_nothing, read_picture
from katha.schema import FrameKind, Record, StoryRecord

SCENES = 5
"""Numbered pictures without `storyboard.json` are scenes 1 to this."""

# The order is told so that a wrong one is seen; three stories show it.
_MOST_ORDERS = 3
_STORYBOARD = "storyboard.json"
_METHOD = re.compile(r"[^\W_][\w ._+:/@-]{0,63}")


class BoardProblem(KathaError):
    """The reason for which a story's board cannot be judged; it becomes the reason in the ledger."""


@dataclass(frozen=True)
class JudgedFrame:
    """One picture as it was found: its bytes, what it shows, and the file."""

    data: bytes
    kind: FrameKind
    scene: int | None
    path: Path


@dataclass(frozen=True)
class JudgedBoard:
    """A story's pictures in order, and the image prompts (if known) that a judge must never see."""

    story_id: str
    frames: tuple[JudgedFrame, ...]
    prompts: tuple[str, ...] = ()
    order: Ordering | None = None

    @property
    def images(self) -> list[bytes]:
        """The pictures' bytes in order."""
        return [frame.data for frame in self.frames]


@dataclass(frozen=True)
class MethodBoards:
    """One method: its name and the folder that holds a folder a story. order: what its pictures' names are ordered by,
    where they have several readings."""

    name: str
    folder: Path
    order: str | None = None

    def place(self, story_id: str) -> Path:
        """Return the folder of a story's board: of its id, or of a name that gives it (`The Fox` is `The_Fox`)."""
        return folder_of(self.folder, story_id)

    def files(self, story_id: str) -> list[tuple[str, int, int]]:
        """Name, size and time of every file of a story's board, sorted: cheap to compare with an earlier look."""
        folder = self.place(story_id)
        found = [path for place in (folder, folder / "panels") if place.is_dir() for path in place.iterdir()]
        stats = [(path, path.stat()) for path in found if path.is_file()]
        return sorted((path.relative_to(folder).as_posix(), stat.st_size, stat.st_mtime_ns) for path, stat in stats)


class _Frame(Record):
    index: int = Field(ge=1)
    kind: str = "scene"
    scene: int | None = None
    transition: tuple[int, int] | None = None
    image: str
    sha256: str | None = None
    prompt: str = ""


class _Storyboard(Record):
    story_id: str | None = None
    frames: list[_Frame]


def parse_boards(values: Sequence[str], reserved: Iterable[str] = (), order: str | None = None) -> list[MethodBoards]:
    """The methods that `--boards` names: `DIR` (called by its folder's name) or `NAME=DIR`; order: of all of them.

    Raises:
        UsageError: no such folder, a name that is used twice, reserved or none.
    """
    taken, found = set(reserved), []
    for value in values:
        name, _, folder = ("", "", value) if Path(value).exists() else value.rpartition("=")
        path = Path(folder)
        if not path.is_dir():
            raise InputFileError(f"--boards {value!r}: there is no folder {folder!r}.", hint="Give DIR or NAME=DIR.")
        called = name.strip() or os.path.basename(os.path.realpath(path))
        if not _METHOD.fullmatch(called):
            raise UsageError(f"--boards {value!r}: {called!r} cannot name a method.", hint="Write NAME=DIR.")
        if called in taken:
            raise UsageError(f"--boards: the name {called!r} is taken.", hint="Give each its own: NAME=DIR.")
        taken.add(called)
        found.append(MethodBoards(called, path, order))
    if not found:
        raise UsageError("There is no board to judge.", hint="Give --boards DIR, a folder with one folder per story.")
    return found


def order_lines(methods: Sequence[MethodBoards], records: Iterable[StoryRecord]) -> Iterator[str]:
    """Yield the order of the pictures of boards that are ordered by their names, one board for each way of naming."""
    told: set[str] = set()
    for record in records:
        for boards in methods:
            folder = boards.place(record.story_id)
            if not folder.is_dir() or (folder / _STORYBOARD).exists():
                continue
            try:
                order = order_names([path.name for path in folder.iterdir()], boards.order, SCENES)
            except (OSError, UnorderedNames):
                continue  # whoever reads it says so
            if order is not None and order.by not in told:
                told.add(order.by)
                yield f"{boards.name}, {record.story_id}: {order.told()}"


def tell_orders(methods: Sequence[MethodBoards], records: Iterable[StoryRecord], tell: Callable[[str], None]) -> None:
    """Tell the first of `order_lines`, before anything is asked or shown."""
    for line in islice(order_lines(methods, records), _MOST_ORDERS):
        tell(line)


def read_board(boards: MethodBoards, record: StoryRecord, *, checked: bool = True) -> JudgedBoard:
    """The board of one story, every picture checked to decode to something, unless who uses it decodes what it needs.

    Raises:
        BoardProblem: the board is missing, incomplete, too long, blank, damaged or another story's.
    """
    folder = boards.place(record.story_id)
    if not folder.is_dir():
        raise BoardProblem("there is no folder for this story")
    try:
        listed = (folder / _STORYBOARD).exists()
        board = _from_storyboard(folder, record) if listed else _from_names(folder, record, boards.order)
    except OSError as error:
        raise BoardProblem(f"the folder cannot be read: {error.strerror}") from error
    if checked:
        _require_drawn(board)
    return board


def _require_drawn(board: JudgedBoard) -> None:
    """Refuse pictures that do not decode, or are of one colour: whoever asked about them would measure nothing."""
    blank: list[str] = []
    for place, frame in enumerate(board.frames, 1):
        name = f"frame {place} ({frame.path.name})"
        try:
            if is_blank(decoded(clean_image(frame.data, name).png)):
                blank.append(name + (": light ink on transparency" if is_ink_on_nothing(frame.data) else ""))
        except InputFileError as error:
            raise BoardProblem(error.message.rstrip(".")) from error
    if blank:
        several = f" and {len(blank) - 1} more are" if len(blank) > 1 else " is"
        ink = ", which is shown on white paper: save it on a darker one" if "ink" in blank[0] else ""
        raise BoardProblem(f"{blank[0].split(':')[0]}{several} blank, of one colour{ink}")


def _bytes(path: Path, place: int) -> bytes:
    try:
        return read_picture(path, f"frame {place} ({path.name})")
    except InputFileError as error:
        raise BoardProblem(error.message.rstrip(".")) from error


def _from_names(folder: Path, record: StoryRecord, by: str | None) -> JudgedBoard:
    """Scenes 1 to 5 in the order of the pictures' names."""
    names = [path.name for path in folder.iterdir()]
    try:
        order = order_names(names, by, SCENES)
    except UnorderedNames as error:
        remedy = f". {error.hint}" if "--order" in (error.hint or "") else ""
        raise BoardProblem(f"{error.message}{remedy}".rstrip(".")) from error
    if order is None:
        raise BoardProblem(
            f"there is no picture named by a number (1.png, Scene1.jpg, scene_01.webp; {READ_AS}); --order {BY_NAMES} "
            "takes them as a file manager sorts them"
        )
    if len(order.names) < SCENES:
        missing = range(len(order.names) + 1, SCENES + 1)
        raise BoardProblem(f"frame {', '.join(map(str, missing))} is missing ({order.told()})")
    if len(order.names) > SCENES:
        named = ", ".join(order.names[SCENES:])
        raise BoardProblem(f"surplus frame: {named}; other counts than {SCENES} need {_STORYBOARD}")
    if record.scenes and len(record.scenes) != SCENES:
        raise BoardProblem(f"the story has {len(record.scenes)} scenes, so its board needs {_STORYBOARD}")
    paths = [folder / name for name in order.names]
    frames = [JudgedFrame(_bytes(path, at), "scene", at, path) for at, path in enumerate(paths, 1)]
    return JudgedBoard(record.story_id, tuple(frames), order=order)


def _from_storyboard(folder: Path, record: StoryRecord) -> JudgedBoard:
    try:
        board = _Storyboard.model_validate(read_json(folder / _STORYBOARD, limit=MOST_JSON))
    except InputFileError as error:
        raise BoardProblem(f"{_STORYBOARD} cannot be used: {error.message}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BoardProblem(f"{_STORYBOARD}, field {where!r}: {first['msg']}") from error
    if board.story_id not in (None, record.story_id):
        raise BoardProblem(f"{_STORYBOARD} is of the story {board.story_id!r}")
    ordered = sorted(board.frames, key=lambda frame: frame.index)
    _check_order(ordered, record)
    frames = tuple(_listed(folder, frame) for frame in ordered)
    return JudgedBoard(record.story_id, frames, tuple(frame.prompt for frame in ordered if frame.prompt))


def _check_order(frames: Sequence[_Frame], record: StoryRecord) -> None:
    """Frames numbered from 1 without a gap, and every scene shown once, in order."""
    indices = [frame.index for frame in frames]
    if indices != list(range(1, len(indices) + 1)):
        raise BoardProblem(f"{_STORYBOARD} numbers its frames {indices}, not 1 to {len(indices)}")
    for frame in frames:
        if frame.kind not in get_args(FrameKind):
            raise BoardProblem(f"{_STORYBOARD}, frame {frame.index}: unknown kind {frame.kind!r}")
    scenes = [frame.scene for frame in frames if frame.kind == "scene"]
    wanted = list(range(1, (len(record.scenes) or len(scenes)) + 1))
    missing = [scene for scene in wanted if scene not in scenes]
    if missing or not scenes:
        raise BoardProblem(f"scene {', '.join(map(str, missing))} has no frame" if missing else "there is no frame")
    if scenes != wanted:
        raise BoardProblem(f"the scene frames show {scenes}, not {wanted}")


def _listed(folder: Path, frame: _Frame) -> JudgedFrame:
    name = PurePosixPath(frame.image)
    if name.is_absolute() or PureWindowsPath(frame.image).drive or ".." in re.split(r"[/\\]", frame.image):
        raise BoardProblem(f"frame {frame.index}: the picture {frame.image!r} is outside the board's folder")
    data = _bytes(folder / name, frame.index)
    if frame.sha256 and sha256_hex(data) != frame.sha256:
        raise BoardProblem(f"frame {frame.index} ({name.name}) is not the picture that {_STORYBOARD} names by its hash")
    return JudgedFrame(data, cast(FrameKind, frame.kind), frame.scene, folder / name)
