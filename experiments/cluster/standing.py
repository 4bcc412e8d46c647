"""How the work stands: items by stage, how fast, what failed and why, and when it will end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Standing:
    """What the workers of a command have done so far.

    total: how many items there are, None where that is not known yet. done: items by the stage that ended them. onward:
    how often an item went on to a stage. failed: items that were left to the command, by cause. lost: workers that died
    or could not be used. working: how many workers there are now, by stage.
    """

    total: int | None = None
    done: Counter[str] = field(default_factory=Counter)
    onward: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    working: Counter[str] = field(default_factory=Counter)
    clock: Callable[[], float] = time.monotonic
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.started or self.clock()

    @property
    def ended(self) -> int:
        """How many items have ended, one way or the other."""
        return self.done.total() + self.failed.total()

    @property
    def rate(self) -> float:
        """Items that ended, a second."""
        return self.ended / max(self.clock() - self.started, 1e-9)

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate; None while that cannot be known."""
        return (self.total - self.ended) / self.rate if self.total is not None and self.ended else None

    def line(self) -> str:
        """Return it in one line."""
        of = f" of {self.total:,}" if self.total is not None else ""
        stages = ", ".join(f"{stage} {count:,}" for stage, count in sorted((self.done + self.onward).items()))
        end = f", about {duration(self.left)} left" if self.left is not None else ""
        workers = ", ".join(f"{count} at {stage}" for stage, count in sorted(self.working.items()) if count)
        said = [f"{self.ended:,}{of} items ({self.rate:.1f}/s{end})"]
        said += [f"stages: {stages}"] if stages else []
        said += [f"workers: {workers}"] if workers else []
        said += [f"failed: {self.failed.total():,}"] if self.failed else []
        said += [f"lost workers: {self.lost}"] if self.lost else []
        return "; ".join(said)

    def summary(self) -> list[str]:
        """Return what a person is to know in the end: why items were left to the command, the most frequent first."""
        return [f"{count:,} items were left to this command: {why}" for why, count in self.failed.most_common(5)]


def duration(seconds: float) -> str:
    """Return a time in words: `45 s`, `12 min`, `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


OnWorkers = Callable[[Standing, str], None]
"""Hears how the work stands, and with it a sentence that a person is to know (a lost worker), or nothing."""


def unheard(standing: Standing, said: str) -> None:
    """Nobody listens."""
