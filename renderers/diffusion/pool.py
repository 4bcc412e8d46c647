"""One pipeline a process: seeds and modes share it, and it is let go when another one needs its device."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from katha.devices import process_tenants
from katha.errors import UsageError
from katha.renderers.diffusion.prompts import PromptCache
from katha.store import LockTaken, file_lock

__all__ = ["Loaded", "PipelinePool", "hold_device", "process_pool"]


@dataclass
class Loaded:
    """A pipeline in memory, the prompts that it has read, and the most pixels and bytes of work that were found to
    fit beside it."""

    pipe: Any
    prompts: PromptCache = field(default_factory=PromptCache)
    checked: tuple[int, int] | None = None


class PipelinePool:
    """Holds at most one pipeline. `loads` counts how often one was loaded."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._key: str | None = None
        self._loaded: Loaded | None = None
        self._held = ExitStack()
        self.loads = 0

    @contextmanager
    def use(self, key: str, device: str, load: Callable[[], Any]) -> Iterator[Loaded]:
        """The pipeline of `key`, loaded by `load` unless it is the one in memory; nobody else uses it meanwhile.

        Raises:
            UsageError: another process draws on `device`.
        """
        with self._lock:
            if self._loaded is None or self._key != key:
                self.release()
                with ExitStack() as held:
                    held.enter_context(hold_device(device))
                    self._loaded, self._key = Loaded(load()), key
                    process_tenants().move_in(device, self)
                    self._held = held.pop_all()
                self.loads += 1
            yield self._loaded

    def release(self) -> None:
        """Let go of the pipeline, its memory and its device."""
        with self._lock:
            if self._loaded is None:
                return
            self._key = self._loaded = None
            process_tenants().move_out(self)
            gc.collect()
            _empty_caches()
            self._held.close()  # last: who waits for the device finds its memory free

    def close(self) -> None:
        """What another model calls that needs the device (`katha.devices`)."""
        self.release()


@cache
def process_pool() -> PipelinePool:
    """The pool that all renderers of this process share."""
    return PipelinePool()


@contextmanager
def hold_device(device: str) -> Iterator[None]:
    """Keep other processes of this user off an accelerator; a CPU is not held.

    Raises:
        UsageError: another process has it.
    """
    if device.startswith("cpu"):
        yield
        return
    folder = Path(tempfile.gettempdir()) / f"katha-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder / f"{_device_name(device)}.lock", wait=False))
        except LockTaken as error:
            raise UsageError(
                f"Another katha run draws on {device!r}.",
                hint="Wait until it is done, or give --renderer-option device=",
            ) from error
        yield


def _device_name(device: str) -> str:
    """A name that is the same in every process, whatever devices are hidden from it."""
    import torch

    if device.startswith("cuda") and torch.cuda.is_available():
        index = torch.device(device).index
        return f"cuda-{torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index).uuid}"
    return device.replace(":", "-")


def _empty_caches() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()
