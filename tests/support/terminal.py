"""A command at a real pseudo-terminal: what it prints, and what a person types."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

CHILD = Path(__file__).parent / "cli_child.py"
_LIMIT = 60.0
_AGAIN = 10.0


def _interruptible() -> None:
    """Ctrl-C works, even when the tests themselves run in a background job (whose children would ignore it)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """`with Terminal([...], cwd) as at: at.until("choice"); at.type("a"); code = at.end()`."""

    def __init__(self, words: Sequence[object], folder: Path, **environment: str) -> None:
        ours, theirs = pty.openpty()
        self._ours = ours
        self.text = ""
        known = {**os.environ, "KATHA_CACHE": str(folder / "cache"), "TERM": "xterm", "COLUMNS": "160", **environment}
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), *map(str, words)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=known,
            start_new_session=True,
            preexec_fn=_interruptible,
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def until(self, wanted: str) -> None:
        """Read until `wanted` was printed after what was read before."""
        start, end = len(self.text), time.monotonic() + _LIMIT
        while wanted not in self.text[start:]:
            assert self._read(end), f"{wanted!r} never came: {self.text}"

    def type(self, line: str) -> None:
        """Type one line."""
        os.write(self._ours, f"{line}\n".encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        end = time.monotonic() + _LIMIT
        while self._read(end):
            pass
        return self.process.wait(timeout=_LIMIT)

    def interrupt(self) -> int:
        """Press Ctrl-C as a person does, again where nothing happens; the exit code.

        `input` of CPython does not see a signal that comes after its last look at the signals and before it reads:
        it then waits for the line, and only the next key or the next Ctrl-C wakes it.
        """
        end = time.monotonic() + _LIMIT
        while time.monotonic() < end:
            self.process.send_signal(signal.SIGINT)
            again = time.monotonic() + _AGAIN
            while self._read(again):
                pass
            if time.monotonic() < again:
                break
        return self.process.wait(timeout=_LIMIT)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
        try:
            data = os.read(self._ours, 65536) if ready else b""
        except OSError:  # the other side has closed
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)
