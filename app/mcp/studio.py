"""The desk as the tools use it: one piece of work at a time, its progress told, and stopped when a client gives up."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context

from katha.app.desk.desk import Desk
from katha.app.desk.job import Progress
from katha.errors import InputFileError, KathaError, UsageError

T = TypeVar("T")
_STEP_SECONDS = 0.05
_STOP_SECONDS = 20.0


class WorkFailedError(KathaError):
    """Work that was begun has ended with this sentence."""


@dataclass
class Studio:
    """A desk, and the lock under which one tool after the other opens a run and works on it.

    limited: the person who started the server has set a limit in dollars, so that work may be paid for without asking.
    proposed_on: the version of the board that bridges were last proposed for.
    """

    desk: Desk
    limited: bool = False
    proposed_on: str = ""
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    @asynccontextmanager
    async def opened(self, run: str) -> AsyncIterator[Path]:
        """Hold the desk with the run of that name open on it.

        Raises:
            InputFileError: there is no such run; those that are there are named.
        """
        async with self._lock:
            yield await anyio.to_thread.run_sync(self._open, run)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Desk]:
        """Hold the desk, whatever lies on it."""
        async with self._lock:
            yield self.desk

    def _open(self, run: str) -> Path:
        path = self.desk.home / run
        if self.desk.run != path:  # else what was proposed for it would be forgotten
            try:
                self.desk.open(run)
            except InputFileError as error:
                known = ", ".join(item.name for item in self.desk.runs()[:20])
                hint = f"Runs here: {known}." if known else "Make one with the tool run."
                raise InputFileError(f"There is no run {run!r} here.", hint=hint) from error
        return path

    def inside(self, place: str) -> Path:
        """Return the folder that a client names, which must lie below the root.

        Raises:
            InputFileError: it does not, or there is none.
        """
        root = Path(os.path.realpath(self.desk.home))
        try:
            found = Path(os.path.realpath(root / place))
            known = found.is_relative_to(root) and found.is_dir()
        except (OSError, ValueError):  # too long, or with a zero byte
            known = False
        if not known:
            raise InputFileError(
                f"{place!r} is not a folder below the one that this server works in.",
                hint="Put it there, and name it relative to that folder.",
            )
        return found

    async def work(self, begin: Callable[[], object], context: Context[Any, Any]) -> None:
        """Begin a piece of the desk's work, tell its progress, and return when it has ended.

        Raises:
            KathaError: it could not begin, or failed; the sentence says why.
        """
        await calmly(begin)
        known = -1.0
        try:
            while self.desk.progress.running:
                known = await _report(context, self.desk.progress, known)
                await anyio.sleep(_STEP_SECONDS)
            await _report(context, self.desk.progress, known)
        except anyio.get_cancelled_exc_class():
            self.desk.worker.stop()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.desk.worker.join, _STOP_SECONDS)
            raise
        if self.desk.progress.failed:
            raise WorkFailedError(self.desk.progress.failed)


async def calmly(act: Callable[[], T]) -> T:
    """Do something that reads files beside the event loop."""
    return await anyio.to_thread.run_sync(act)


async def _report(context: Context[Any, Any], progress: Progress, known: float) -> float:
    """Tell how much is done, where that is more than is `known`; each picture, answer and measure counts one."""
    stages = progress.stages
    done = float(sum(stage.done for stage in stages))
    if done <= known:  # the protocol has every notification tell more than the one before
        return known
    totals = [stage.total for stage in stages]
    whole = float(sum(total for total in totals if total is not None)) if stages and None not in totals else None
    last = next((stage for stage in reversed(stages) if not stage.finished), stages[-1] if stages else None)
    said = progress.name if last is None else f"{last.title}: {last.note}" if last.note else last.title
    await context.report_progress(done, whole, said)
    return done


def require(found: T | None, sentence: str, hint: str) -> T:
    """Return what was found.

    Raises:
        UsageError: nothing was.
    """
    if found is None:
        raise UsageError(sentence, hint=hint)
    return found
