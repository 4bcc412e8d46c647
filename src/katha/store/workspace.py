"""The one folder of a command: whose it is, whether it may be gone on with, how far it is, and what is taken back.

Every command that writes a folder (run, redo, eval, ablate, compare, tune, train) writes it through a `Workspace`. Its
`Kind` names the state file, which is the first file of the folder and says what the others were made from; a folder
without it belongs to somebody else and is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from katha.errors import InputFileError, OutputFolderError, StoreError
from katha.jsonio import PARTIAL, digest, read_json, write_json
from katha.store.artifacts import LockTaken, file_lock

Status = Literal["running", "finished", "incomplete", "budget_stopped"]
"""`running` is also what a killed command leaves; `incomplete` has questions or boards that the same command tries
again; `budget_stopped` goes on with a larger budget."""

_LOCK = ".lock"
_HINT = "Choose another --out."


class State(BaseModel):
    """What every state file holds. A command's own fields are its subclass's; keys of other versions are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    format: Literal[1]
    katha: str = ""
    status: Status = "running"

    def identity(self) -> Mapping[str, object]:
        """Return what makes two folders the same: what must be equal, by the words for a difference (`other prompts`).

        The words end the sentence "'out' holds a katha run with ...".
        """
        return {}

    @property
    def subject(self) -> str:
        """What the folder is about, as it follows its kind in a sentence (` of 'the_lion'`), or nothing."""
        return ""


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Kind(Generic[S]):
    """What the folders of one command have in common.

    name: what they hold, as in "a katha run". file: the state file's name. state: what it holds. early: names that may
    stand in the folder before its state file does. drafts: globs of what a refused command takes back, where the
    folders in `early` are empty.
    """

    name: str
    file: str
    state: type[S]
    early: frozenset[str] = frozenset()
    drafts: tuple[str, ...] = ()


class Workspace(Generic[S]):
    """The folder `path` of one command."""

    def __init__(self, path: Path, kind: Kind[S]) -> None:
        self.path = path
        self.kind = kind
        self.state_file = path / kind.file

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone; the system lets go of it when the process dies.

        Raises:
            OutputFolderError: it is a file, cannot be written, holds something else, or another katha is working in it.
        """
        self._refuse_foreign()
        with self._explained(), ExitStack() as stack:
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(13, os.strerror(13))
            try:
                stack.enter_context(file_lock(self.path / _LOCK, wait=False))
            except LockTaken as error:
                raise OutputFolderError(
                    f"Another katha is working in {str(self.path)!r}.", hint="Wait for it, or choose another --out."
                ) from error
            except StoreError as error:
                raise OutputFolderError(error.message, hint=_HINT) from error
            held = stack.pop_all()
        with held:
            yield

    def read(self) -> S | None:
        """Return what the state file holds, or None when there is none.

        Raises:
            OutputFolderError: there is one, but it is not of this kind.
        """
        if not self.state_file.exists():
            return None
        try:
            return self.kind.state.model_validate(read_json(self.state_file))
        except InputFileError as error:
            raise OutputFolderError(error.message, hint=_HINT) from error
        except ValidationError as error:
            name = self.kind.name
            raise OutputFolderError(f"{str(self.state_file)!r} is not of a katha {name}.", hint=_HINT) from error

    def resume(self, fresh: S) -> S | None:
        """Return the state that the folder was begun with, where it is that of `fresh`; None where the folder is new.

        Raises:
            OutputFolderError: the folder holds another one of its kind; what differs is named.
        """
        known = self.read()
        if known is None:
            return None
        before, now = known.identity(), fresh.identity()
        differs = [words for words, value in now.items() if digest(before.get(words)) != digest(value)]
        if differs:
            raise OutputFolderError(
                f"{str(self.path)!r} holds a katha {self.kind.name}{known.subject} with {' and '.join(differs)}.",
                hint="Choose another --out (what both have in common is in the cache), or remove that folder.",
            )
        return known

    def write(self, state: S) -> S:
        """Write the state file, atomically, and return `state`."""
        write_json(self.state_file, state.model_dump(mode="json"))
        return state

    def finish(self, state: S, status: Status = "finished") -> S:
        """Write the state file a last time: the folder holds everything that `status` says it does, and no more."""
        for torn in self.path.rglob(f".*{PARTIAL}"):
            torn.unlink(missing_ok=True)
        return self.write(state.model_copy(update={"status": status}))

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return which of these files are not there."""
        return [name for name in names if not (self.path / name).is_file()]

    def abandon(self) -> None:
        """Take back a command that was refused before it made anything: the corrected one may use the folder."""
        early = [self.path / name for name in sorted(self.kind.early)]
        if any(any(folder.iterdir()) for folder in early if folder.is_dir()):
            return
        for pattern in (*self.kind.drafts, self.kind.file, f".*{PARTIAL}", _LOCK):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        for folder in (*early, self.path):
            with suppress(OSError):  # it is gone already, or somebody put a file into it
                folder.rmdir()

    def _refuse_foreign(self) -> None:
        with self._explained():
            if self.path.exists() and not self.path.is_dir():
                raise OutputFolderError(f"{str(self.path)!r} is a file, not a folder.", hint=_HINT)
            entries = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        strange = [name for name in entries if not self._may_be_early(name)]
        if strange and self.kind.file not in entries:
            raise OutputFolderError(
                f"{str(self.path)!r} holds files that are not of a katha {self.kind.name}, {strange[0]!r} for one.",
                hint=_HINT,
            )
        self.read()

    def _may_be_early(self, name: str) -> bool:
        return name == _LOCK or name in self.kind.early or (name.startswith(".") and name.endswith(PARTIAL))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputFolderError(
                f"Cannot use the folder {str(self.path)!r}: {error.strerror}.", hint=_HINT
            ) from error
