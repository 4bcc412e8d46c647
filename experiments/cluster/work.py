"""What workers drain: items of work, and the stations that do them.

A command is not cut into pieces for workers. A station runs the command's own code over one item, with the models of
its stage in its hands (see `hands`). In the end the command itself finds everything made: its files are the same,
however many workers there were, in whatever order, and whoever of them died.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, Protocol

from katha.addresses import store_address
from katha.config import cache_folder
from katha.errors import KathaError, StoreError, UsageError
from katha.experiments.cluster.progress import OnWorkers, Standing, unheard
from katha.plugin_boundary import cause
from katha.sqlite_index import retry_while_locked
from katha.store import Store

HERE = "all"
"""The stage of everything that fills no memory: every station holds it."""

HOME = "services"
"""The stage of what waits for a server. It is never a worker's: keys, pace and budget stay in the command's process."""


@dataclass(frozen=True)
class WorkItem:
    """One piece of work. stage: where it goes next. name: its label in progress lines. load: the station's input."""

    stage: str
    name: str
    load: Any


@dataclass(frozen=True)
class Done:
    """What came of an item."""

    value: Any = None


@dataclass(frozen=True)
class NextStage:
    """An item that another stage goes on with, with what it is given there."""

    stage: str
    load: Any


@dataclass(frozen=True)
class FailedItem:
    """An item that could not be done. It is left to the command itself, which says what is wrong in its own words.

    place: whether that is not the item's: what was done could not be kept (a full disk), and another worker may.
    """

    cause: str
    place: bool = False


Ending = Done | NextStage | FailedItem
Station = Callable[[Any], Ending]
"""Does one item."""

Opener = Callable[[str], Station]
"""Opens the station of a stage. It travels to the workers, so that it holds data and no models."""


@dataclass(frozen=True)
class Work:
    """What one command has its workers do.

    items: asked for as they are needed, stage by stage. open: opens stations. keep: is given what each item came to, in
    the command's process. total: how many items there are, where that is known. home: opens a station of the command's
    own process, with its keys and pace: one a thread for what waits for a server, and any stage where no workers are.
    """

    items: Iterable[WorkItem]
    open: Opener
    keep: Callable[[WorkItem, Any], None]
    total: int | None = None
    home: Opener | None = None


class Drains(Protocol):
    """Does the work of a command: workers side by side (`Fleet`), or its own process stage by stage (`Turns`)."""

    def drain(self, work: Work, owner: str, logs: Path | None = None) -> Standing:
        """Do everything of `work` that can be done; what cannot is left to the command."""
        ...


def attempt(station: Station, load: Any) -> Ending:
    """Return what a station makes of an item; whatever it raises is a failure of that item alone."""
    try:
        return station(load)
    except KathaError as error:
        return FailedItem(str(error), place=isinstance(error, StoreError))
    except Exception as error:
        return FailedItem(cause(error))


def open_store(owner: str) -> Store:
    """Return the cache that the command and its workers share.

    Its address was proved when the command began: a shared place that does not answer now is away for a while, and a
    worker that begins in that while is not given up for it.

    Raises:
        StoreError: it cannot be opened, for as long as the store's patience lasts.
    """
    address = store_address()
    seconds = address.patience if address.index else 0.0
    return retry_while_locked(
        lambda: Store(cache_folder(), owner=owner), seconds, lambda error: isinstance(error, StoreError)
    )


_CAPACITY = 8
_LOOK = 0.1


class _Stopped(Exception):
    """Nobody wants further items."""


@contextmanager
def streamed(produce: Callable[[Callable[[WorkItem], None]], None]) -> Iterator[Iterator[WorkItem]]:
    """Yield the items that `produce` hands over, made on a thread of its own and never many ahead of their use."""
    queue: Queue[WorkItem | BaseException | None] = Queue(_CAPACITY)
    stop = Event()

    def put(item: WorkItem | BaseException | None) -> None:
        while not stop.is_set():
            try:
                return queue.put(item, timeout=_LOOK)
            except Full:
                continue
        raise _Stopped

    def work() -> None:
        end: BaseException | None = None
        try:
            produce(put)
        except _Stopped:
            return
        except BaseException as error:
            end = error
        try:
            put(end)
        except _Stopped:
            return

    def items() -> Iterator[WorkItem]:
        while True:
            try:
                found = queue.get(timeout=_LOOK)
            except Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                return
            yield found

    thread = Thread(target=work, name="items", daemon=True)
    thread.start()
    try:
        yield items()
    finally:
        stop.set()
        thread.join()


class Turns:
    """Does the work of one command where there are no workers: everything of one stage, then everything of the next.

    A renderer that does not fit beside a judge is loaded once for all items and not once for each. What a station
    raises is raised: what is done is in the cache, and the command comes back to it. Stations, and their models with
    them, stay from one `drain` to the next.
    """

    def __init__(self, heard: OnWorkers = unheard) -> None:
        self._heard = heard
        self._stations: dict[str, Station] = {}

    def drain(self, work: Work, owner: str, logs: Path | None = None) -> Standing:
        """Do everything of `work` that can be done; what went on and on is left to the command.

        Raises:
            KathaError: what an item, `work.items` or `work.keep` raises.
        """
        standing, queues = Standing(total=work.total), dict[str, deque[WorkItem]]()
        for item in work.items:
            queues.setdefault(item.stage, deque()).append(item)
        while queues:
            stage = max(queues, key=lambda name: len(queues[name]))  # of equal ones, the first that came up
            waiting = queues.pop(stage)
            standing.working.clear()
            standing.working[stage] = 1
            while waiting:
                self._do(waiting.popleft(), work, queues, standing)
                self._heard(standing, "")
        return standing

    def _do(self, item: WorkItem, work: Work, queues: dict[str, deque[WorkItem]], standing: Standing) -> None:
        if item.stage not in self._stations:
            if work.home is None:
                raise UsageError("This work needs workers.")
            self._stations[item.stage] = work.home(item.stage)
        ending = self._stations[item.stage](item.load)
        if isinstance(ending, NextStage):
            standing.onward[item.stage] += 1
            queues.setdefault(ending.stage, deque()).append(WorkItem(ending.stage, item.name, ending.load))
        elif isinstance(ending, FailedItem):
            standing.fail(ending.cause)
        elif isinstance(ending, Done):
            work.keep(item, ending.value)
            standing.done[item.stage] += 1
