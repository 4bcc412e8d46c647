"""The boards in a desk's folder: their list, other titles for them, and taking one away so that it can be put back."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from katha.agents.folder import RunFolder, RunRecord
from katha.errors import InputFileError, KathaError, UsageError
from katha.jsonio import read_record, write_bytes_atomic
from katha.schema import Board

# Each is read from the disk to be listed; nobody scrolls past two hundred.
_MOST_RUNS = 200
_REMOVED = ".removed"
# So many boards of one name end in a number; who has more gets an error and no endless loop.
_SAME_NAME = 1000
_MOST_TITLE = 200


class Listed(BaseModel):
    """A run in the desk's folder. `changed`: when, as ISO 8601; `picture`: its first frame's hash; empty: none yet."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    status: str
    changed: str = ""
    picture: str = ""
    frames: int = 0


class Removed(BaseModel):
    """A board that was taken away; `restore` knows it by `key`."""

    model_config = ConfigDict(frozen=True)

    key: str
    title: str
    removed: str


class RunLibrary:
    """The runs in a folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def place(self, name: str) -> Path | None:
        """Return the folder of the run of that name; None where there is none."""
        if name != Path(name).name or name.startswith(".") or "\0" in name or "\\" in name:
            return None
        path = self._home / name
        return None if path.is_symlink() or not (path / "run.json").is_file() else path

    def listed(self) -> list[Listed]:
        """Return the runs, the last changed first."""
        return [found for _, path in _newest(self._home)[:_MOST_RUNS] if (found := _listed(path)) is not None]

    def rename(self, name: str, title: str) -> None:
        """Give a board another title, which the desk, the report and every export show; empty: the story's own.

        Raises:
            InputFileError: there is no such run. UsageError: the title is too long.
        """
        folder, words = RunFolder(self._known(name)), " ".join(title.split())
        if len(words) > _MOST_TITLE:
            raise UsageError(f"A title has at most {_MOST_TITLE} letters.", hint="Give a shorter one.")
        if words:
            write_bytes_atomic(folder.titled, f"{words}\n".encode())
        else:
            folder.titled.unlink(missing_ok=True)

    def remove(self, name: str) -> str:
        """Take a board away, with its story and what it was imported from, and return the key that brings it back.

        Nothing is deleted: it lies in the folder `.removed` beside the boards.

        Raises:
            InputFileError: there is no such run.
        """
        run = self._known(name)
        key = next(
            key for at in range(_SAME_NAME) if not (self._home / _REMOVED / (key := _numbered(name, at))).exists()
        )
        place = self._home / _REMOVED / key
        place.mkdir(parents=True)
        for path in (run, *(self._home / f"{name}{end}" for end in (".txt", "_board"))):
            if path.exists() and not path.is_symlink():
                path.rename(place / path.name)
        return key

    def removed(self) -> list[Removed]:
        """Return the boards that were taken away, the last first."""
        found = []
        place = self._home / _REMOVED
        for path in sorted(place.iterdir(), reverse=True) if place.is_dir() else []:
            for _, run in _newest(path):
                known, when = _listed(run), datetime.fromtimestamp(path.stat().st_ctime, UTC)
                if known is not None:
                    found.append(Removed(key=path.name, title=known.title, removed=when.isoformat(timespec="seconds")))
        return sorted(found, key=lambda item: item.removed, reverse=True)

    def restore(self, key: str) -> str:
        """Put back a board that was taken away, and return its name.

        Raises:
            InputFileError: there is none of that key. UsageError: another board has its name by now.
        """
        place = self._put_away(key)
        name = next(path.name for path in place.iterdir() if (path / "run.json").is_file())
        taken = next((path.name for path in sorted(place.iterdir()) if (self._home / path.name).exists()), None)
        if taken is not None:
            raise UsageError(
                f"There is {taken!r} here by now.", hint="Take that board away first, then put this one back."
            )
        for path in sorted(place.iterdir()):
            path.rename(self._home / path.name)
        place.rmdir()
        return name

    def delete(self, key: str) -> None:
        """Delete a board that was taken away, for good.

        Raises:
            InputFileError: there is none of that key.
        """
        shutil.rmtree(self._put_away(key))

    def _known(self, name: str) -> Path:
        run = self.place(name)
        if run is None:
            raise InputFileError("There is no run of that name here.")
        return run

    def _put_away(self, key: str) -> Path:
        place = self._home / _REMOVED / key
        if key != Path(key).name or key.startswith(".") or "\0" in key or not place.is_dir() or place.is_symlink():
            raise InputFileError("No board of that name was taken away here.")
        return place


def _numbered(name: str, at: int) -> str:
    return name if at == 0 else f"{name}~{at + 1}"


def _newest(home: Path) -> list[tuple[float, Path]]:
    folders = (
        [path for path in home.iterdir() if path.is_dir() and not path.name.startswith(".")] if home.is_dir() else []
    )
    states = [(RunFolder(path).state_file, path) for path in folders]
    return sorted(((state.stat().st_mtime, path) for state, path in states if state.is_file()), reverse=True)


def _listed(path: Path) -> Listed | None:
    folder = RunFolder(path)
    try:
        state = folder.read()
        board = read_record(folder.storyboard, Board) if folder.storyboard.is_file() else None
        story = folder.load_story() if folder.story.is_file() else None
    except KathaError:
        return None
    if state is None:
        return None
    changed = datetime.fromtimestamp(folder.state_file.stat().st_mtime, UTC)
    frames = board.frames if board is not None else []
    return Listed(
        name=path.name,
        title=folder.title(story) if story is not None else _called(state),
        status=state.status,
        changed=changed.isoformat(timespec="seconds"),
        picture=frames[0].sha256 if frames else "",
        frames=len(frames),
    )


def _called(state: RunRecord) -> str:
    return state.story_id.replace("_", " ")
