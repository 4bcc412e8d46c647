"""How the work stands: items by stage, how fast, what failed and why, and when it will end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

_GIGABYTE = 1e9
_CAUSE = 60
_CAUSES, _OTHER = 100, "other reasons, see the logs of the workers"


class JobProgress(BaseModel):
    """How the work stood at one moment, as `job.json` keeps it.

    rates: items a second, by stage. left: seconds to the end. memory: of the fullest device, bytes: what is taken, and
    of how much. spent, cost: US dollars of services so far, and about in all. line: all of it in one line.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    ended: int = 0
    total: int | None = None
    stages: Mapping[str, int] = {}
    rates: Mapping[str, float] = {}
    failed: Mapping[str, int] = {}
    lost: int = 0
    working: Mapping[str, int] = {}
    left: float | None = None
    memory: tuple[int, int] | None = None
    spent: float | None = None
    cost: float | None = None
    line: str = ""


@dataclass
class Standing:
    """What the workers of a command have done so far.

    total: how many items there are, None where that is not known yet. done: items by the stage that ended them. onward:
    how often an item went on to a stage. failed: items that were left to the command, by cause. lost: workers that died
    or could not be used. working: how many workers there are now, by stage. since: when a stage began. memory: by
    worker, the bytes of its device that are taken, and how many it has. dollars: what services have cost so far, None
    where nobody counts.
    """

    total: int | None = None
    done: Counter[str] = field(default_factory=Counter)
    onward: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    working: Counter[str] = field(default_factory=Counter)
    since: dict[str, float] = field(default_factory=dict)
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)
    dollars: Callable[[], float | None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = self.started or self.clock()

    def fail(self, cause: str) -> None:
        """Count an item that was left to the command; where each has a cause of its own, most of them together."""
        known = cause in self.failed or len(self.failed) < _CAUSES
        self.failed[cause if known else _OTHER] += 1

    @property
    def ended(self) -> int:
        """Return how many items have ended, one way or the other."""
        return self.done.total() + self.failed.total()

    @property
    def rate(self) -> float:
        """Items that ended, a second."""
        return self.ended / max(self.clock() - self.started, 1e-9)

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate; None while that cannot be known."""
        return (self.total - self.ended) / self.rate if self.total is not None and self.ended else None

    @property
    def rates(self) -> dict[str, float]:
        """Items that a stage ended, a second since it began."""
        now, ended = self.clock(), self.done + self.onward
        return {stage: ended[stage] / max(now - self.since.get(stage, self.started), 1e-9) for stage in sorted(ended)}

    @property
    def fullest(self) -> tuple[int, int] | None:
        """The device with most memory taken: its bytes, and how many it has; None where no device told."""
        return max(self.memory.values(), default=None)

    @property
    def cost(self) -> float | None:
        """Dollars in all, if the items that are left cost what the others did; None while that cannot be known."""
        spent = self.dollars()
        known = spent is not None and self.total is not None and self.ended
        return spent / self.ended * self.total if known and spent is not None and self.total is not None else None

    def record(self) -> JobProgress:
        """Return it as a file keeps it."""
        return JobProgress(
            ended=self.ended,
            total=self.total,
            stages=dict(self.done + self.onward),
            rates={stage: round(rate, 3) for stage, rate in self.rates.items()},
            failed=dict(self.failed),
            lost=self.lost,
            working={stage: count for stage, count in self.working.items() if count},
            left=self.left,
            memory=self.fullest,
            spent=self.dollars(),
            cost=self.cost,
            line=self.line(),
        )

    def line(self) -> str:
        """Return it in one line."""
        of = f" of {self.total:,}" if self.total is not None else ""
        rates, ended = self.rates, self.done + self.onward
        stages = ", ".join(f"{stage} {count:,} ({rates[stage]:.1f}/s)" for stage, count in sorted(ended.items()))
        end = f", about {duration(self.left)} left" if self.left is not None else ""
        workers = ", ".join(f"{count} at {stage}" for stage, count in sorted(self.working.items()) if count)
        said = [f"{self.ended:,}{of} items ({self.rate:.1f}/s{end})"]
        said += [f"stages: {stages}"] if stages else []
        said += [f"workers: {workers}"] if workers else []
        causes = ", ".join(f"{count:,}: {why[:_CAUSE]}" for why, count in self.failed.most_common(2))
        said += [f"failed: {self.failed.total():,} ({causes})"] if self.failed else []
        said += [f"lost workers: {self.lost}"] if self.lost else []
        if self.fullest is not None:
            used, size = (each / _GIGABYTE for each in self.fullest)
            said += [f"GPU memory: {used:.1f} of {size:.1f} GB at most"]
        if (spent := self.dollars()) is not None:
            said += [f"${spent:.2f} spent" + (f", about ${self.cost:.2f} in all" if self.cost is not None else "")]
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
