"""Where things are kept: the cache that commands share, and the one folder of each command.

The cache (`Store`) has content-addressed images, an index of answers and frames, and claims on work under way: in a
folder of this machine, or where `StoreAddress` says, so that many machines share it.

Every command that writes a folder (run, redo, eval, ablate, compare, tune, train) writes it through a `Workspace`. Its
`StoreKind` names the state file, which is the first file of the folder and says what the others were made from; a
folder without it belongs to another program and is left alone.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from katha.addresses import StoreAddress, shown, store_address
from katha.blob_store import Blobs, Objects, RemoteObjects
from katha.environment import environment
from katha.errors import InputFileError, OutputFolderError, StoreError, UsageError
from katha.jsonio import PARTIAL, canonical, digest, file_sha256, loads, read_json, sha256_hex, write_json
from katha.postgres import PostgresIndex
from katha.schema import Answer, Plan
from katha.sqlite_index import Index, IndexRecord, LockTaken, SqliteIndex, file_lock, set_aside


class AnswerCache:
    """Answers by the hash of everything that can change them. A typed failure is never kept as an answer."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def get(self, key: str) -> Answer | None:
        """Return the answer of that key, or None when it has to be asked (again)."""
        data = self._index.get(ANSWER, key)
        if data is None:
            return None
        try:
            return Answer.model_validate_json(data)
        except ValidationError:
            self._index.drop(ANSWER, key)  # written by an older katha: ask again
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer as soon as it is there; anything but `ok` is dropped, so that it is asked again next time."""
        if answer.status == "ok":
            self._index.put(ANSWER, key, canonical(answer.model_dump(mode="json")))

    def asked(self) -> int:
        """Return how many kept answers this run has paid for, over all its processes."""
        return self._index.paid(ANSWER)


class FrameIndex:
    """Which image a request to a renderer gave. A hit whose bytes are gone or corrupted is not a hit.

    looked_up: the keys that were asked for since it was cleared: what a board needs, drawn now or before.
    """

    def __init__(self, index: Index, blobs: Objects, keep: Callable[[str, str, bytes], None]) -> None:
        """keep: where a record goes whose picture its place did not take, so that it follows it later."""
        self._index = index
        self._blobs = blobs
        self._keep = keep
        self.looked_up: set[str] = set()

    def get(self, key: str) -> str | None:
        """Return the image's sha256, its bytes verified; None when the frame has to be drawn (again)."""
        self.looked_up.add(key)
        found = self._index.get(FRAME, key)
        if found is None:
            return None
        sha256 = found.decode("ascii")
        if self._blobs.find(sha256) is None:
            self._index.drop(FRAME, key)
            return None
        return sha256

    def put(self, key: str, sha256: str) -> str:
        """Remember the image of a request and return the one that counts: the first writer's.

        Raises:
            StoreError: the image or the record could not be written; what was paid for is kept on this machine.
        """
        lost = self._blobs.failures.get(sha256)
        if lost is not None:
            self._keep(FRAME, key, sha256.encode("ascii"))
            raise lost
        self._index.put(FRAME, key, sha256.encode("ascii"))
        return self.get(key) or sha256

    def put_receipt(self, sha256: str, receipt: Mapping[str, object]) -> None:
        """Remember how the image came about: which service and version drew it, when, and for how much."""
        self._index.put(RECEIPT, sha256, canonical(dict(receipt)))

    def receipt(self, sha256: str) -> dict[str, object] | None:
        """Return how the image came about, if its renderer said."""
        data = self._index.get(RECEIPT, sha256)
        value = loads(data.decode("utf-8")) if data is not None else None
        return value if isinstance(value, dict) else None

    def put_source(self, sha256: str, source: bytes) -> None:
        """Remember the drawing that an image was made from."""
        self._index.put(SOURCE, sha256, source)

    def source(self, sha256: str) -> bytes | None:
        """Return the drawing that an image was made from, if there is one."""
        return self._index.get(SOURCE, sha256)

    def rendered(self) -> int:
        """Return how many remembered frames this run has paid for, over all its processes."""
        return self._index.paid(FRAME)


class CallIndex:
    """Calls of language models with their replies (`katha.models.recordings`), each text of them once."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return the call of that key, its texts as parts."""
        data = self._index.get(CALL, key)
        value = loads(data.decode("utf-8")) if data is not None else None
        return value if isinstance(value, dict) else None

    def put(self, key: str, line: Mapping[str, Any], parts: Mapping[str, str]) -> None:
        """Keep a call; one that is kept under that key gives way. The parts go first, since the call names them."""
        for sha256, text in parts.items():
            if self._index.get(CALL_PART, sha256) is None:
                self._index.put(CALL_PART, sha256, text.encode("utf-8"))
        data = canonical(line)
        known = self._index.get(CALL, key)
        if known is not None and known != data:
            self._index.drop(CALL, key)
        self._index.put(CALL, key, data)

    def drop(self, key: str) -> None:
        """Forget a call; its texts may be another's, too, and stay."""
        self._index.drop(CALL, key)

    def part(self, sha256: str) -> str | None:
        """Return a text by its hash."""
        data = self._index.get(CALL_PART, sha256)
        return data.decode("utf-8") if data is not None else None

    def paid(self) -> int:
        """Return how many kept calls this run has paid for, over all its processes."""
        return self._index.paid(CALL)


class PlanIndex:
    """Plans by the hash of everything that they are made of."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def get(self, key: str) -> Plan | None:
        """Return the plan of that key, or None when it has to be made."""
        data = self._index.get(PLAN, key)
        if data is None:
            return None
        try:
            return Plan.model_validate_json(data)
        except ValidationError:
            self._index.drop(PLAN, key)  # written by an older katha
            return None

    def put(self, key: str, plan: Plan) -> None:
        """Keep a plan."""
        self._index.put(PLAN, key, canonical(plan.model_dump(mode="json")))


FRAME, ANSWER, RECEIPT, SOURCE, PLACE = "frame", "answer", "receipt", "source", "objects"
CALL, CALL_PART, PLAN = "call", "call part", "plan"
"""The kinds of records that the index has; the last says which place its pictures are in."""
_OBJECT = "object"
"""In the outbox, a picture to send."""


@dataclass(frozen=True)
class CacheReport:
    """What a look at the whole cache found: records and files, and how many of each were damaged.

    missing_files: records of frames whose file is gone or damaged, which were dropped.
    """

    records: int
    damaged_records: int
    files: int
    damaged_files: int
    missing_files: int = 0


class Store:
    """Everything under one cache folder, or in the places that machines share. Processes may use one store at once.

    `owner` is the id of the run on whose account new records are paid (it makes the paid counts survive a kill).
    """

    def __init__(self, folder: Path, owner: str = "", address: StoreAddress | None = None) -> None:
        """address: what the environment says, unless told.

        Raises:
            UsageError: the address cannot be, or its pictures are not those of its index. StoreError: a place cannot be
            reached, or the folder cannot be written.
        """
        self.folder = folder
        self.owner = owner
        self.address = address if address is not None else store_address()
        self._quarantine = folder / "quarantine"
        self.blobs = self._open_objects()
        self.index = self._open_index()
        try:
            self._check_place()
            self._deliver()
        except BaseException:
            self.index.close()
            raise
        self.answers = AnswerCache(self.index)
        self.calls = CallIndex(self.index)
        self.plans = PlanIndex(self.index)
        self.frames = FrameIndex(
            self.index, self.blobs, lambda kind, key, value: self._keep(IndexRecord(kind, key, owner, value))
        )

    @property
    def place(self) -> str:
        """Return where the store is, to be shown: without names and passwords."""
        places = (shown(self.address.index) or str(self.folder), shown(self.address.objects))
        return " and ".join(filter(None, places))

    def _open_index(self) -> Index:
        where = self.address
        if not where.index:
            return SqliteIndex(self.folder / "index.sqlite", self._quarantine, self.owner)
        return PostgresIndex(
            *(where.index, self._quarantine, self.owner),
            lease=where.lease,
            patience=where.patience,
            outbox=self._keep,
        )

    def _open_objects(self) -> Objects:
        where, local = self.address, Blobs(self.folder / "blobs", self._quarantine)
        if where.folder is not None:
            return Blobs(where.folder, self._quarantine)
        if not where.objects:
            return local
        return RemoteObjects(
            where.objects, local, lambda sha256: self._keep(IndexRecord(_OBJECT, sha256, "", b"")), where.patience
        )

    def _check_place(self) -> None:
        """Refuse pictures of another index: every frame would look lost, and would be drawn and paid for again."""
        if not self.address.objects:
            return
        mine = self.blobs.identity(uuid4().hex)
        self.index.put(PLACE, "id", canonical({"id": mine, "place": shown(self.address.objects)}))
        known = loads((self.index.get(PLACE, "id") or b"{}").decode("utf-8"))
        if known.get("id") != mine:
            raise UsageError(
                f"The pictures of this index are in {known.get('place')!r}, and {shown(self.address.objects)!r} is "
                "another place (or that one is not mounted, or was emptied).",
                hint="Name the same KATHA_OBJECTS on every machine.",
            )

    def _keep(self, record: IndexRecord) -> None:
        """Keep what a shared place did not take, until it does."""
        with closing(SqliteIndex(self._outbox, self._quarantine)) as box:
            box.put(record.kind, record.key, record.value, record.owner)

    @property
    def _outbox(self) -> Path:
        """One for each address: what is meant for one place does not go to another."""
        where = sha256_hex(f"{shown(self.address.index)} {shown(self.address.objects)}".encode())
        return self.folder / f"outbox-{where[:16]}.sqlite"

    def _deliver(self) -> None:
        """Bring what a shared place did not take to where it belongs; pictures first, since records name them."""
        if not self._outbox.exists():
            return
        with closing(SqliteIndex(self._outbox, self._quarantine)) as box:
            for record in sorted(box.records(), key=lambda item: item.kind != _OBJECT):
                if record.kind != _OBJECT:
                    self.index.put(record.kind, record.key, record.value, record.owner)
                elif isinstance(self.blobs, RemoteObjects):
                    self.blobs.send(record.key)
                box.drop(record.kind, record.key)

    def claim(self, work: str) -> AbstractContextManager[None]:
        """Hold a piece of work (a batch of frames, the questions of one packet) while it is done.

        A second process that wants the same work waits, then finds it in the cache: nothing is paid twice. Hold one
        claim at a time per thread.
        """
        return self.index.claim(work)

    def check(self) -> CacheReport:
        """Look at everything in the cache; what is damaged goes to quarantine, and is made again when it is needed.

        Raises:
            StoreError: something cannot be read or moved.
        """
        records, broken = self.index.check()
        names = list(self.blobs.names())
        whole = {name for name in names if self.blobs.verify(name)}
        missing = 0
        for record in self.index.records(FRAME):
            sha256 = record.value.decode("ascii")
            if sha256 not in whole and not self.blobs.verify(sha256):
                self.index.drop(FRAME, record.key)
                missing += 1
        return CacheReport(records, broken, len(names), len(names) - len(whole), missing)

    def flush(self) -> None:
        """Make everything stored so far survive a power cut."""
        self.index.flush()

    def close(self) -> None:
        """Close the cache; what is in it stays."""
        self.index.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    files: Mapping[str, str] = {}
    """The sha256 of each result file, as the command left them."""
    sizes: Mapping[str, int] = {}
    """Their bytes: a file that has become a terabyte is not read to its end to find out that it was changed."""
    environment: Mapping[str, object] = Field(default={}, exclude_if=lambda value: not value)
    """Where the command that ended it ran (`katha.environment`): no part of what makes two folders the same."""

    def identity(self) -> Mapping[str, object]:
        """Return what makes two folders the same: what must be equal, by the words for a difference (`other prompts`).

        The words end the sentence "'out' holds a katha run with ...".
        """
        return {}

    @property
    def subject(self) -> str:
        """Return what the folder is about, as it follows its kind in a sentence (` of 'the_lion'`), or nothing."""
        return ""


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class StoreKind(Generic[S]):
    """What the folders of one command have in common.

    name: what they hold, as in "a katha run". file: the state file's name. state: what it holds. early: names that may
    stand in the folder before its state file does. drafts: globs of what a refused command takes back, where the
    folders in `early` are empty. results: globs of the files that are known by their hash when the command has ended.
    nested: the state files of folders in it, which look after their own.
    """

    name: str
    file: str
    state: type[S]
    early: frozenset[str] = frozenset()
    drafts: tuple[str, ...] = ()
    results: tuple[str, ...] = ("*.json", "*.jsonl")
    nested: tuple[str, ...] = ()


class Workspace(Generic[S]):
    """The folder `path` of one command."""

    def __init__(self, path: Path, kind: StoreKind[S]) -> None:
        self.path = path
        self.kind = kind
        self.state_file = path / kind.file

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone; the system lets go of it when the process dies.

        Raises:
            OutputFolderError: it is a file, cannot be written, holds something else, or another katha is working in it.
        """
        name = str(self.path)
        try:
            self._refuse_foreign()
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise OutputFolderError(f"Cannot use the folder {name!r}: {error.strerror}.", hint=_HINT) from error
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.path / _LOCK, wait=False))
            except LockTaken as error:
                hint = "Wait for it, or choose another --out."
                raise OutputFolderError(f"Another katha is working in {name!r}.", hint=hint) from error
            except StoreError as error:
                raise OutputFolderError(error.message, hint=_HINT) from error
            yield

    def _refuse_foreign(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise OutputFolderError(f"{str(self.path)!r} is a file, not a folder.", hint=_HINT)
        entries = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        ours = {_LOCK, *self.kind.early}
        strange = [name for name in entries if name not in ours and not (name[0] == "." and name.endswith(PARTIAL))]
        if strange and self.kind.file not in entries:
            raise OutputFolderError(
                f"{str(self.path)!r} holds files that are not of a katha {self.kind.name}, {strange[0]!r} for one.",
                hint=_HINT,
            )
        self.read()

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
        sizes = {name: path.stat().st_size for name, path in self._results()}
        told = {"status": status, "files": self._hashes(), "sizes": sizes, "environment": dict(environment())}
        return self.write(state.model_copy(update=told))

    def _results(self) -> Iterator[tuple[str, Path]]:
        """Yield every result file by its path in the folder; what a link leads out of the folder is none."""
        home, states = self.path.resolve(), {self.kind.file, *self.kind.nested}
        for path in sorted({path for pattern in self.kind.results for path in self.path.glob(pattern)}):
            if path.name not in states and path.is_file() and path.resolve().is_relative_to(home):
                yield path.relative_to(self.path).as_posix(), path

    def _hashes(self) -> dict[str, str]:
        """Return the sha256 of every result file. A picture is named by its own, and was checked when it was read."""
        return {
            name: path.stem if re.fullmatch(r"[0-9a-f]{64}\.png", path.name) else file_sha256(path)
            for name, path in self._results()
        }

    def damaged(self, state: State) -> list[str]:
        """Return which result files of a folder that a command left are not as it left them."""
        if state.status == "running" or not state.files:
            return []
        now = {name: path for name, path in self._results() if name in state.files}

        def same(path: Path, name: str, sha256: str) -> bool:
            size = path.stat().st_size
            return size == state.sizes.get(name, size) and file_sha256(path) == sha256

        return [name for name, sha256 in state.files.items() if name not in now or not same(now[name], name, sha256)]

    def set_aside(self, names: Iterable[str]) -> None:
        """Move damaged files into the folder `damaged`, so that they are made again and nothing is lost.

        Raises:
            StoreError: one cannot be moved.
        """
        home = self.path.resolve()
        for path in (self.path / name for name in names):
            if os.path.lexists(path) and path.parent.resolve().is_relative_to(home):
                set_aside(path, self.path / "damaged")

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
            with suppress(OSError):  # it is gone already, or holds another file
                folder.rmdir()
