"""What can go wrong between katha and a server, as data: what is tried again, how often, and after what wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Backoff", "Fault", "retry_after"]


class Fault(Exception):
    """One failed call. kind: busy (429, 529), broken (5xx, timeout, cut connection), refused (another 4xx)."""

    def __init__(self, kind: str, message: str, *, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.status, self.wait = kind, message, status, wait


@dataclass(frozen=True)
class Backoff:
    """Tries of one call: `max_retries` for a broken server, `busy_retries` for a busy one; waits in seconds."""

    max_retries: int = 4
    busy_retries: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def allowed(self, kind: str) -> int:
        """How many faults of `kind` one call survives."""
        return {"busy": self.busy_retries, "broken": self.max_retries}.get(kind, 0)

    def wait(self, fault: Fault, failures: int) -> float:
        """Seconds before another try: what the server asked for, else twice as long as last time."""
        grown = min(self.longest_wait, self.first_wait * 2 ** (failures - 1))
        return grown if fault.wait is None else min(self.longest_wait, max(0.0, fault.wait))


def retry_after(value: str | None) -> float | None:
    """The seconds in a `Retry-After` header; None when it holds none (a date is left to the backoff)."""
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None
