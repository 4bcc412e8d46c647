"""One command line in a process of its own, forked from one that has everything imported: what it said, how long it
took and how much memory, whatever it did.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import cli_child

# Imported here, so that no forked process has to: what takes seconds to import is no hang.
import openai  # noqa: F401

import katha.eval_bridge.judges.local  # noqa: F401
from katha.app.cli import main as cli

for _verb in cli.VERBS.values():
    import_module(f"katha.app.cli.{_verb.place.partition(':')[0]}")

HANG_SECONDS = 20.0
MOST_MEGABYTES = 1_000
CODES = frozenset((0, 1, 2))
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Called:
    """What became of a command line: its exit code (negative: the signal that ended it), seconds, peak megabytes
    beyond what the process that it was forked from held already (a test's worker may hold torch)."""

    words: tuple[str, ...]
    code: int
    seconds: float
    megabytes: int
    out: str
    err: str

    @property
    def fault(self) -> str | None:
        """What a person may never see of bad input, or None."""
        if self.code == KILLED and self.seconds >= HANG_SECONDS:
            return f"hung for {self.seconds:.0f} s"
        if self.code not in CODES:
            return f"exit code {self.code}"
        if "Unexpected" in self.err or "Traceback" in self.err:
            return "unexpected"
        if self.megabytes > MOST_MEGABYTES:
            return f"{self.megabytes} MB"
        if self.code == 2 and not self.err.strip():
            return "refused without a word"
        return None


def call(
    words: Sequence[object],
    folder: Path,
    cache: Path,
    *,
    before: Callable[[], None] | None = None,
    seconds: float = HANG_SECONDS,
) -> Called:
    """Run `katha WORDS` in `folder` with the doubles; `before` runs in its process first."""
    given = tuple(map(str, words))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started, held = time.monotonic(), _resident()
        process = os.fork()
        if not process:
            _child(given, folder, cache, (out.fileno(), err.fileno()), before)
        code, used = _wait(process, seconds)
        took = time.monotonic() - started
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read(200_000).decode("utf-8", "replace"))
    return Called(given, code, took, max(0, used.ru_maxrss // 1024 - held), *said)


def _resident() -> int:
    """Return how many megabytes of its own a child of this process begins with: files that are mapped come later."""
    resident, shared = map(int, Path("/proc/self/statm").read_text("ascii").split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") // (1 << 20)


def _child(
    words: tuple[str, ...], folder: Path, cache: Path, streams: tuple[int, int], before: Callable[[], None] | None
) -> None:
    code = 99
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((nothing, 0), (streams[0], 1), (streams[1], 2)):
            os.dup2(number, target)
        sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
        os.chdir(folder)
        os.environ["KATHA_CACHE"] = str(cache)
        os.environ.pop("KATHA_RENDERER", None)
        cli_child.install()
        if before is not None:
            before()
        sys.argv = ["katha", *words]
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _wait(process: int, seconds: float) -> tuple[int, resource.struct_rusage]:
    """The exit code and what was used; a process that is not done in time is killed, with what it began."""

    def end(number: int, frame: object) -> None:
        os.kill(process, signal.SIGKILL)

    known = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        _, status, used = os.wait4(process, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, known)
    return os.waitstatus_to_exitcode(status), used
