"""Drain work by Ray actors: each holds the models of one stage until nothing is left for it, then the next stage's.

The command's process hands out items one by one and is told what came of each, so that it holds few at a time. An actor
that dies is replaced and its item is given to another; an item that kills three actors is left to the command, which
fails by it in its own words. What waits for a server is done here, by threads of the command's own process: there its
keys, its pace and its budget are.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from katha.config import katha_version
from katha.errors import KathaError
from katha.experiments.cluster.progress import OnWorkers, Standing
from katha.experiments.cluster.work import (
    HOME,
    Done,
    Ending,
    FailedItem,
    NextStage,
    Opener,
    Station,
    Work,
    WorkItem,
    attempt,
    open_store,
)
from katha.jsonio import sha256_hex

_DEPTH = 2
"""Items that an actor has at a time: the next is there when one is done."""
# A worker that dies three times over one item dies of the item: it is told as failed.
_TRIES = 3
_AHEAD = 4
"""Items that are taken from the command's list before anybody can begin them, for each worker."""
_LOOK, _BRIEF = 1.0, 0.05
_PATIENCE = 180.0
"""Seconds that a worker may take to begin before it is given up."""
# Items that wait for services at once, a thread each: they take no station and hardly any time of the processor.
_AT_HOME = 64
_TOLD_EVERY = 0.2
_SHARED = ("KATHA_", "HF_H", "OMP_", "MKL_", "OPENBLAS_", "TOKENIZERS_")
"""How the variables begin that a worker gets from the command: where cache and models are; never a vendor's key."""
_MARK = ("store", "identity")


@dataclass(frozen=True)
class Crew:
    """How many workers there are to be, what each reserves, and who hears of them.

    owner: on whose account records in the cache are. logs: the folder of a log a worker. environment: variables of the
    workers beside the command's own. patience: seconds that one may take to begin. dollars: what services have cost.
    """

    size: int
    options: Mapping[str, float]
    owner: str
    logs: Path | None
    heard: OnWorkers
    patience: float = _PATIENCE
    environment: Mapping[str, str] = field(default_factory=dict)
    dollars: Callable[[], float | None] = lambda: None


def mark_store(owner: str) -> str:
    """Return what tells the command's cache from others (made once for every cache), and katha's version."""
    with open_store(owner) as store:
        if store.index.get(*_MARK) is None:
            store.index.put(*_MARK, sha256_hex(os.urandom(16)).encode("ascii"))
        return f"{(store.index.get(*_MARK) or b'').decode('ascii')} {katha_version()}"


class WorkerReport(NamedTuple):
    """What a worker says: what came of it, the bytes of its device that are taken and how many that has, and how many
    seconds it worked."""

    ending: Ending
    memory: tuple[int, int] | None = None
    seconds: float = 0.0


def device_memory() -> tuple[int, int] | None:
    """Return used and total bytes of this process's device; None without one."""
    torch = sys.modules.get("torch")  # a worker that has not imported it keeps nothing on a device
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    free, size = torch.cuda.mem_get_info()
    return size - free, size


class Hand:
    """A worker's process: a station, opened when the worker begins."""

    def __init__(self, opener: Opener, stage: str, owner: str, mark: str, environment: Mapping[str, str]) -> None:
        """mark: the command's cache and its version of katha, as `mark_store` gives them."""
        self._opener, self._stage, self._owner, self._mark = opener, stage, owner, mark
        self._environment = environment
        self._station: Station | None = None

    def begin(self) -> WorkerReport:
        """Open the station; what comes back is the machine's name, or why it cannot be."""
        os.environ.update(self._environment)
        return WorkerReport(attempt(self._begin, None), device_memory())

    def _begin(self, _: object) -> Ending:
        cache, _, version = self._mark.partition(" ")
        if katha_version() != version:
            raise KathaError(f"it has katha {katha_version()}, the command {version}.", hint="Install the same on all.")
        with open_store(self._owner) as store:
            seen = (store.index.get(*_MARK) or b"").decode("ascii")
        if seen != cache:
            raise KathaError(
                "it does not see the command's cache.", hint="Name one that every machine reaches in KATHA_STORE."
            )
        self._station = self._opener(self._stage)
        return Done(os.uname().nodename)

    def do(self, load: object) -> WorkerReport:
        """Do one item."""
        if self._station is None:
            return WorkerReport(FailedItem("The worker has not begun."))
        began = time.monotonic()
        ending = attempt(self._station, load)
        return WorkerReport(ending, device_memory(), time.monotonic() - began)


@dataclass
class _Seat:
    """One worker's place: the actor in it, its stage, the items that it has, and what it can no longer be."""

    number: int
    actor: Any = None
    stage: str = ""
    opening: Any = None
    since: float = 0.0
    ready: bool = False
    host: str = ""
    has: dict[Any, WorkItem] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    lost: int = 0

    @property
    def gone(self) -> bool:
        """Return whether nothing more is tried with it."""
        return self.lost >= _TRIES

    @property
    def name(self) -> str:
        """Return what it is called in sentences and logs."""
        return f"worker {self.number + 1}"


def _nobody(_: object) -> Ending:
    return FailedItem("this command asks no service here.")


def drain(ray: Any, work: Work, crew: Crew) -> Standing:
    """Have the workers do everything of `work` that they can, and return what they did.

    Raises:
        KathaError: what `work.items` or `work.keep` raise.
    """
    draining = _Draining(ray, work, crew)
    try:
        draining.run()
    finally:
        draining.close()
    return draining.standing


class _Draining:
    def __init__(self, ray: Any, work: Work, crew: Crew) -> None:
        self._ray, self._work, self._crew = ray, work, crew
        self.standing = Standing(total=work.total, dollars=crew.dollars)
        self._seats = [_Seat(number) for number in range(crew.size)]
        self._rest, self._dry = iter(work.items), False
        self._fresh: dict[str, deque[WorkItem]] = {}
        self._again: dict[str, deque[WorkItem]] = {}
        self._tries: Counter[str] = Counter()
        self._mark = mark_store(crew.owner)
        self._actor = ray.remote(Hand)
        self._home: ThreadPoolExecutor | None = None
        self._at_home: dict[Future[WorkerReport], WorkItem] = {}
        self._local = threading.local()
        self._told = 0.0
        self._logs: dict[str, Any] = {}

    def run(self) -> None:
        """Hand out items until none is left."""
        while True:
            self._hand_out()
            refs = [ref for seat in self._seats for ref in self._refs(seat)]
            if not refs and not self._at_home:
                if not self._left_over():
                    break
                continue
            if refs:
                found, _ = self._ray.wait(refs, num_returns=1, timeout=_BRIEF if self._at_home else _LOOK)
                if found:  # whatever else is there by now
                    found, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
                for ref in found:
                    self._heard(ref)
            self._heard_at_home(wait=not refs)
            self._give_up_late()
            self._progress()
        self._progress(last=True)

    # Items: from the command's list, or again from a worker, into queues by stage; from queues to seats.

    def _waiting(self, stage: str) -> int:
        return len(self._fresh.get(stage, ())) + len(self._again.get(stage, ()))

    def _pull(self, stage: str) -> bool:
        """Return whether an item of `stage` waits; the command's list is looked at, and few of it are held."""
        most = _AHEAD * (self._crew.size + 1)
        while not self._waiting(stage) and not self._dry and sum(map(len, self._fresh.values())) < most:
            item = next(self._rest, None)
            self._dry = item is None
            if item is not None:
                self._fresh.setdefault(item.stage, deque()).append(item)
        return bool(self._waiting(stage))

    def _take(self, stage: str) -> WorkItem:
        return (self._again.get(stage) or self._fresh[stage]).popleft()

    def _next_stage(self, seat: _Seat) -> str | None:
        """Return the stage that an idle seat goes to: that with most items which nobody there will soon take."""
        self._pull("")
        names = {*self._fresh, *self._again} - {HOME} - seat.refused
        open_to = {name: self._waiting(name) for name in sorted(names)}
        open_to = {name: count for name, count in open_to.items() if count > self.standing.working[name]}
        return max(open_to, key=lambda name: open_to[name], default=None)

    def _hand_out(self) -> None:
        while self._pull(HOME) and len(self._at_home) < _AT_HOME:
            item = self._take(HOME)
            self._home = self._home or ThreadPoolExecutor(_AT_HOME, thread_name_prefix="services")
            self._at_home[self._home.submit(self._do_at_home, item.load)] = item
        for depth in range(1, _DEPTH + 1):  # one each before anybody gets a second
            for seat in self._seats:
                if not seat.gone:
                    self._serve(seat, depth)

    def _serve(self, seat: _Seat, depth: int) -> None:
        if seat.actor is None or (seat.ready and not seat.has and not self._pull(seat.stage)):
            stage = self._next_stage(seat)
            if stage is None:
                return
            self._end(seat)
            self._seat(seat, stage)
        while seat.ready and len(seat.has) < depth and self._pull(seat.stage):
            item = self._take(seat.stage)
            seat.has[seat.actor.do.remote(item.load)] = item

    def _left_over(self) -> bool:
        """Leave to the command what no worker can do any more; whether there was anything."""
        self._pull("")
        left = [item for queues in (self._again, self._fresh) for queue in queues.values() for item in queue]
        self._again.clear()
        self._fresh.clear()
        for item in left:
            self._end_item(item, FailedItem(f"no worker can hold {item.stage!r}."), "-")
        return bool(left) or not self._dry

    # Seats: an actor begins, works, dies, or makes room for the next stage's.

    def _seat(self, seat: _Seat, stage: str) -> None:
        own = {name: value for name, value in os.environ.items() if name.startswith(_SHARED)}
        environment = {**own, **self._crew.environment}
        made = self._actor.options(max_restarts=0, **self._crew.options)
        seat.actor = made.remote(self._work.open, stage, self._crew.owner, self._mark, environment)
        seat.stage, seat.ready, seat.since = stage, False, time.monotonic()
        seat.opening = seat.actor.begin.remote()
        self.standing.working[stage] += 1
        self.standing.since.setdefault(stage, self.standing.clock())

    def _end(self, seat: _Seat) -> None:
        if seat.actor is not None:
            self._ray.kill(seat.actor)
            self.standing.working[seat.stage] -= 1
            self.standing.memory.pop(seat.name, None)
        seat.actor, seat.opening, seat.ready = None, None, False

    def _refs(self, seat: _Seat) -> list[Any]:
        return [*([seat.opening] if seat.opening is not None else []), *seat.has]

    def _heard(self, ref: Any) -> None:
        seat = next((one for one in self._seats if ref == one.opening or ref in one.has), None)
        if seat is None:  # its worker was given up meanwhile
            return
        try:
            told: WorkerReport = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._log(seat.name, " ".join(str(error).split()))
            self._lost(seat, "died")
            return
        if told.memory is not None:
            self.standing.memory[seat.name] = told.memory
        ending = told.ending
        if ref == seat.opening:
            self._began(seat, ending)
        elif isinstance(ending, FailedItem) and ending.place:  # it would soon have everything, and fail by it
            seat.lost = _TRIES
            self._lost(seat, f"cannot keep what it does ({ending.cause.rstrip('.')})")
        else:
            self._end_item(seat.has.pop(ref), ending, seat.name, told.seconds)

    def _began(self, seat: _Seat, ending: Ending) -> None:
        seat.opening, seat.ready = None, isinstance(ending, Done)
        if isinstance(ending, Done):
            seat.host = str(ending.value)
            took = time.monotonic() - seat.since
            self._log(seat.name, f"begins on {seat.host} with {seat.stage} after {took:.3f} s")
            return
        why = ending.cause if isinstance(ending, FailedItem) else "it did not begin."
        seat.refused.add(seat.stage)
        self.standing.lost += 1
        self._say(seat.name, f"cannot be used for {seat.stage!r}: {why} The others go on.")
        self._end(seat)

    def _lost(self, seat: _Seat, how: str) -> None:
        """Give the items of a dead worker to others; the one that it was at counts the try."""
        items = list(seat.has.values())
        seat.has.clear()
        seat.lost += not items  # a seat in which every actor dies as it begins is given up
        self.standing.lost += 1
        at = f" while it worked on {items[0].name!r}" if items else ""
        self._say(seat.name, f"({seat.stage}) {how}{at}. Its work goes to another.")
        self._end(seat)
        for item in reversed(items):
            key = f"{item.stage}/{item.name}"
            self._tries[key] += item is items[0]
            if self._tries[key] >= _TRIES:
                self._end_item(item, FailedItem(f"{_TRIES} workers died of it."), seat.name)
            else:
                self._again.setdefault(item.stage, deque()).appendleft(item)

    def _give_up_late(self) -> None:
        for seat in self._seats:
            if seat.opening is not None and time.monotonic() - seat.since > self._crew.patience:
                seat.lost = _TRIES - 1
                self._lost(seat, f"has found no room for {self._crew.patience:.0f} s")

    # What came of an item.

    def _end_item(self, item: WorkItem, ending: Ending, who: str, seconds: float | None = None) -> None:
        if isinstance(ending, NextStage):
            self.standing.onward[item.stage] += 1
            self._again.setdefault(ending.stage, deque()).append(WorkItem(ending.stage, item.name, ending.load))
        elif isinstance(ending, FailedItem):
            self.standing.fail(ending.cause)
        else:
            self._work.keep(item, ending.value)
            self.standing.done[item.stage] += 1
        told = f"goes on to {ending.stage}" if isinstance(ending, NextStage) else ""
        told = told or (f"failed: {ending.cause}" if isinstance(ending, FailedItem) else "done")
        self._log(who, f"{item.stage}: {item.name}: {told}" + (f" in {seconds:.3f} s" if seconds is not None else ""))

    def _do_at_home(self, load: object) -> WorkerReport:
        """Do one item on a thread of the command's process, each with a station of its own."""
        if not hasattr(self._local, "station"):
            self._local.station = self._work.home(HOME) if self._work.home is not None else _nobody
        began = time.monotonic()
        return WorkerReport(attempt(self._local.station, load), None, time.monotonic() - began)

    def _heard_at_home(self, *, wait: bool) -> None:
        done = {future for future in self._at_home if future.done()}
        if not done and wait and self._at_home:
            done = wait_for(self._at_home, timeout=_LOOK, return_when=FIRST_COMPLETED).done
        for future in done:
            told = future.result()
            self._end_item(self._at_home.pop(future), told.ending, HOME, told.seconds)

    # Who hears of it.

    def _say(self, who: str, what: str) -> None:
        self._log(who, what)
        self._crew.heard(self.standing, f"{who.capitalize()} {what}")

    def _log(self, who: str, what: str) -> None:
        if self._crew.logs is None:
            return
        if who not in self._logs:
            self._crew.logs.mkdir(parents=True, exist_ok=True)
            name = "command" if who == "-" else who.replace(" ", "-")
            self._logs[who] = (self._crew.logs / f"{name}.log").open("a", encoding="utf-8")
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
        self._logs[who].write(f"{now}Z {what}\n")

    def _progress(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if last or now - self._told > _TOLD_EVERY:
            self._told = now
            self._crew.heard(self.standing, "")

    def close(self) -> None:
        """End every worker; what they have done is in the cache."""
        for seat in self._seats:
            if self._ray.is_initialized():  # where the line to a cluster broke, Ray would begin another one here
                self._end(seat)
        if self._home is not None:
            self._home.shutdown(cancel_futures=True)
        for log in self._logs.values():
            log.close()
