"""Commands that use workers, seen from outside: where they work, how they stand, and how they are stopped.

There is no daemon. A command keeps a file, `OUT/workers/job.json`, and holds the lock beside it while it lives, which
the system lets go of when the process dies.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from katha.errors import InputFileError, OutputFolderError, UsageError
from katha.experiments.cluster.progress import JobProgress, Standing
from katha.jsonio import read_json, write_json
from katha.sqlite_index import LockTaken, file_lock

FILE = "job.json"
_LOCK = ".lock"
_EVERY = 2.0
# Garbage collection and a swap can hold a process for seconds, not for a minute.
_SILENT = 60.0
_LOOK = 0.1

Ended = Literal["ended", "failed", "stopped"]


class JobRecord(BaseModel):
    """`job.json`: one command. command: its words after `katha`. folder: where it was given. begun, updated: seconds
    since 1970."""

    model_config = ConfigDict(extra="allow", frozen=True)

    format: Literal[1] = 1
    command: tuple[str, ...]
    folder: str
    host: str
    pid: int
    begun: float
    updated: float
    status: Literal["running"] | Ended = "running"
    standing: JobProgress = JobProgress()


class JobFile:
    """The file of this command, in the folder of its workers' logs."""

    def __init__(self, logs: Path) -> None:
        """Raises:
        OutputFolderError: another command with workers is at work there. StoreError: the folder cannot be written.
        """
        self._path, self._stack = logs / FILE, ExitStack()
        try:
            self._stack.enter_context(file_lock(logs / _LOCK, wait=False))
        except LockTaken as error:
            raise OutputFolderError(
                f"Another katha is working in {str(logs.parent)!r}.", hint="Wait for it, or choose another --out."
            ) from error
        now = time.time()
        self._record = JobRecord(
            command=tuple(sys.argv[1:]), folder=str(Path.cwd()), host=_host(), pid=os.getpid(), begun=now, updated=now
        )
        self._write()

    def tell(self, standing: Standing, *, now: bool = False) -> None:
        """Keep how the work stands, every two seconds, or now."""
        if now or time.time() - self._record.updated > _EVERY:
            self._record = self._record.model_copy(update={"standing": standing.record()})
            self._write()

    def end(self, status: Ended) -> None:
        """Keep how the command ended, and let go of the lock."""
        self._record = self._record.model_copy(update={"status": status})
        self._write()
        self._stack.close()

    def _write(self) -> None:
        self._record = self._record.model_copy(update={"updated": time.time()})
        write_json(self._path, self._record.model_dump(mode="json"))


@dataclass(frozen=True)
class ClusterJob:
    """A command with workers, as it is found. out: the folder that it writes. alive: whether it is still at work."""

    out: Path
    record: JobRecord
    alive: bool

    @property
    def status(self) -> str:
        """`running`, `ended`, `failed` or `stopped`: a command that was killed is stopped, too."""
        return "running" if self.alive else "stopped" if self.record.status == "running" else self.record.status

    def stop(self, patience: float = 30.0) -> bool:
        """Ask the command to end, and return whether it did within `patience` seconds. What is done is kept.

        Raises:
            UsageError: it is at work on another machine, or is not at work.
        """
        if not self.alive:
            raise UsageError(f"Nothing is at work in {str(self.out)!r}.", hint="See `katha jobs`.")
        if self.record.host != _host():
            raise UsageError(
                f"The command of {str(self.out)!r} is at work on {self.record.host!r}.", hint="Stop it on that machine."
            )
        os.kill(self.record.pid, signal.SIGTERM)
        end = time.monotonic() + patience
        while _held(self.out / "workers"):
            if time.monotonic() > end:
                return False
            time.sleep(_LOOK)
        return True

    def again(self) -> tuple[list[str], Path]:
        """Return the words of a Python process that goes on with the command, and the folder that it was given in.

        Raises:
            UsageError: it is at work, or was given on another machine.
        """
        if self.alive:
            raise UsageError(f"The command of {str(self.out)!r} is still at work.", hint="See `katha jobs watch`.")
        if self.record.host != _host() or not Path(self.record.folder).is_dir():
            raise UsageError(
                f"The command of {str(self.out)!r} was given on {self.record.host!r}, in {self.record.folder!r}.",
                hint="Give it yourself: " + " ".join(("katha", *self.record.command)),
            )
        # -P: what lies in that folder is not a module of this process.
        begin = [sys.executable, "-P", "-c", "from katha.app.cli.main import main; main()"]
        return [*begin, *self.record.command], Path(self.record.folder)


def find_jobs(root: Path) -> Iterator[ClusterJob]:
    """Yield the commands with workers that write `root` or a folder in it."""
    for path in sorted(root.rglob(f"workers/{FILE}")):
        job = _read(path)
        if job is not None:
            yield job


def find_job(out: Path) -> ClusterJob:
    """Return the command with workers that writes the folder `out`.

    Raises:
        UsageError: there is none.
    """
    job = _read(out / "workers" / FILE)
    if job is None:
        raise UsageError(f"No command with workers has written {str(out)!r}.", hint="See `katha jobs FOLDER`.")
    return job


def _read(path: Path) -> ClusterJob | None:
    try:
        record = JobRecord.model_validate(read_json(path))
    except (InputFileError, ValidationError):
        return None
    alive = record.status == "running"
    if alive and record.host == _host():
        alive = _held(path.parent)
    elif alive:  # the lock of another machine is not seen everywhere
        alive = time.time() - record.updated < _SILENT
    return ClusterJob(path.parent.parent, record, alive)


def _held(logs: Path) -> bool:
    try:
        with file_lock(logs / _LOCK, wait=False):
            return False
    except LockTaken:
        return True


def _host() -> str:
    return os.uname().nodename
