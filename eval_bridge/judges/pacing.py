"""How many calls to one server may be under way: grows by one, shrinks by a fifth when the server is busy (AIMD).

Until the server is busy for the first time every good call adds one, so that a run is at speed after a few calls; from
then on a whole round of good calls adds one. Of the calls that were under way together only the first busy one shrinks
the limit: the others say the same thing again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Pacer"]

_SHRINK = 0.8


class Pacer:
    """The gate that every call to one server goes through, from any thread. `most` bounds the limit; waits in s."""

    def __init__(
        self,
        *,
        start: float = 2.0,
        most: int = 16,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit, self._most = min(start, float(most)), most
        self._sleep, self._clock = sleep, clock
        self._free = threading.Condition()
        self._under_way, self._begun, self._shrunk_at = 0, 0, -1
        self._held_until = 0.0

    @property
    def limit(self) -> int:
        """Calls that may be under way now, from 1."""
        return max(1, int(self._limit))

    @contextmanager
    def slot(self) -> Iterator[int]:
        """Wait until one more call may be made, and hold its place; gives the call's number for `shrink`."""
        with self._free:
            while self._under_way >= self.limit:
                self._free.wait()
            self._under_way += 1
        try:
            self._wait_out()
            with self._free:
                self._begun += 1
                number = self._begun
            yield number
        finally:
            with self._free:
                self._under_way -= 1
                self._free.notify()

    def grow(self) -> None:
        """A call went well."""
        with self._free:
            step = 1.0 if self._shrunk_at < 0 else 1.0 / self._limit
            self._limit = min(float(self._most), self._limit + step)
            self._free.notify()

    def shrink(self, number: int) -> None:
        """The server asked call `number` for fewer calls; calls begun before the last shrinking do not count again."""
        with self._free:
            if number > self._shrunk_at:
                self._limit = max(1.0, self._limit * _SHRINK)
                self._shrunk_at = self._begun

    def hold(self, seconds: float) -> None:
        """Begin no call for so long: the server said when it will listen again (`Retry-After`)."""
        with self._free:
            self._held_until = max(self._held_until, self._clock() + seconds)

    def _wait_out(self) -> None:
        with self._free:
            until = self._held_until
        left = until - self._clock()
        if left > 0:
            self._sleep(left)
