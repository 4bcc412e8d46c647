"""The cache that runs share: images by hash, answers by key, frames by request, and claims on work under way."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from katha.jsonio import sha256_hex
from katha.store.answers import AnswerCache, FrameIndex
from katha.store.blobs import Blobs
from katha.store.index import Index
from katha.store.locking import file_lock

__all__ = ["Store"]

_CLAIM_FILES = 256


class Store:
    """Everything under one cache folder. Two processes may use one folder at once.

    `owner` is the id of the run on whose account new records are paid (it makes the paid counts survive a kill).
    """

    def __init__(self, folder: Path, owner: str = "") -> None:
        self.folder = folder
        self.owner = owner
        quarantine = folder / "quarantine"
        self.index = Index(folder / "index.sqlite", quarantine)
        self.blobs = Blobs(folder / "blobs", quarantine)
        self.answers = AnswerCache(self.index, owner)
        self.frames = FrameIndex(self.index, self.blobs, owner)

    def claim(self, work: str) -> AbstractContextManager[None]:
        """Hold a piece of work (a batch of frames, the questions of one packet) while it is done.

        A second process that wants the same work waits, then finds it in the cache: nothing is paid twice. Hold one
        claim at a time per thread.
        """
        number = int(sha256_hex(work.encode("utf-8"))[:8], 16) % _CLAIM_FILES
        return file_lock(self.folder / "claims" / f"{number:02x}")

    def flush(self) -> None:
        """Make everything stored so far survive a power cut."""
        self.index.flush()

    def close(self) -> None:
        """Close the cache; what is in it stays."""
        self.index.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
