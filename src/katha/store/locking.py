"""Advisory locks between processes (and between threads of one), released by the system when a process dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from katha.errors import StoreError


class LockTaken(StoreError):
    """Another process holds the lock, and the caller did not want to wait."""


if sys.platform == "win32":  # pragma: no cover - exercised on Windows only
    import msvcrt

    def _acquire(handle: int, wait: bool) -> None:
        msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _acquire(handle: int, wait: bool) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold `path` alone. The file stays (removing it would let two processes hold two files of one name).

    Raises:
        LockTaken: somebody else holds it and `wait` is False. StoreError: the file cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as error:
        raise StoreError(f"Cannot make the lock {str(path)!r}: {error.strerror}.") from error
    try:
        try:
            _acquire(handle, wait)
        except OSError as error:
            raise LockTaken(f"{str(path)!r} is held by another process.") from error
        yield
    finally:
        os.close(handle)
