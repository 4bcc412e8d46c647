"""Timing whole processes: wall seconds and peak memory by the operating system's own accounting."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

__all__ = ["Cost", "median_cost", "output_of", "run", "script"]


@dataclass(frozen=True)
class Cost:
    """Wall seconds, peak resident memory in MB and processor seconds of one finished process."""

    seconds: float
    megabytes: float
    cpu_seconds: float = 0.0


def script(name: str) -> str:
    """The path of a console script in this environment."""
    return str(Path(sys.executable).parent / name)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run `command` to its end.

    Raises:
        RuntimeError: it failed.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return Cost(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    names = ("seconds", "megabytes", "cpu_seconds")
    return Cost(*(median(getattr(cost, name) for cost in costs) for name in names))


def output_of(command: Sequence[str]) -> str:
    """The last line that `command` writes.

    Raises:
        RuntimeError: it failed; its errors are in the message.
    """
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]
