"""Where images, answers and a command's files are kept: the cache that commands share, and the folder of each."""

from katha.store.artifacts import AnswerCache, Blobs, FrameIndex, Index, LockTaken, Store, file_lock
from katha.store.workspace import Kind, State, Status, Workspace

__all__ = [
    "AnswerCache",
    "Blobs",
    "FrameIndex",
    "Index",
    "Kind",
    "LockTaken",
    "State",
    "Status",
    "Store",
    "Workspace",
    "file_lock",
]
