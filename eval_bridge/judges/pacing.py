"""Concurrency that grows by one with each success and shrinks by a fifth when the server is busy; replies in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Pacer"]

T = TypeVar("T")
R = TypeVar("R")


class Pacer:
    """How many calls may be under way at once."""

    def __init__(self, *, start: float = 2.0, most: int = 16) -> None:
        self._limit, self._most, self._lock = min(start, float(most)), most, threading.Lock()

    @property
    def limit(self) -> int:
        """Calls that may be under way now, from 1."""
        return max(1, int(self._limit))

    def grow(self) -> None:
        """A call went well."""
        with self._lock:
            self._limit = min(float(self._most), self._limit + 1.0)

    def shrink(self) -> None:
        """The server asked for fewer calls."""
        with self._lock:
            self._limit = max(1.0, self._limit * 0.8)

    def run(self, call: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """`call` on each item: the first alone (it fills the server's cache), the rest side by side; in order."""
        if not items:
            return
        yield call(items[0])
        rest, waiting = deque(items[1:]), deque[Future[R]]()
        if not rest:
            return
        pool = ThreadPoolExecutor(max_workers=min(self._most, len(rest)))
        try:
            while rest or waiting:
                while rest and sum(not future.done() for future in waiting) < self.limit:
                    waiting.append(pool.submit(call, rest.popleft()))
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
