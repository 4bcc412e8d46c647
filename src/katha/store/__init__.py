"""Where images, answers and a run's files are kept."""

from katha.store.answers import AnswerCache, FrameIndex
from katha.store.blobs import Blobs
from katha.store.index import Index
from katha.store.locking import LockTaken, file_lock
from katha.store.run_folder import RunFolder
from katha.store.store import Store

__all__ = ["AnswerCache", "Blobs", "FrameIndex", "Index", "LockTaken", "RunFolder", "Store", "file_lock"]
