"""Where images, answers and a run's files are kept."""

from katha.store.artifacts import AnswerCache, Blobs, FrameIndex, Index, Store
from katha.store.locking import LockTaken, file_lock
from katha.store.workspace import RunFolder

__all__ = ["AnswerCache", "Blobs", "FrameIndex", "Index", "LockTaken", "RunFolder", "Store", "file_lock"]
