"""A suite on a Ray cluster whose parts are killed at random moments, and what must hold afterwards.

Two raylets do the work of a command. Records and claims are in PostgreSQL, pictures in an S3 store, one judge is a
service that counts what it is asked. A round is one suite in places of its own: its victims and their moments come from
the number of the round, so that it can be made again.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import crews
import psutil
import psycopg
from api_server import KEY, Server, serving
from commands import finish
from doubles import story
from fault_server import good
from services import PostgresServer, S3Server, postgres_server

from katha.addresses import StoreAddress
from katha.compass.modes import load_suite
from katha.errors import KathaError
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.cluster.fleet import Fleet, WorkerPlace
from katha.jsonio import sha256_hex
from katha.store import Store

VICTIMS = ("worker", "machine", "command", "database", "objects")
WORKERS, AT_ONCE = 2, crews.CountedJudge.AT_ONCE
LEASE = 1.0
IN_FLIGHT = {"worker": 1, "machine": WORKERS, "command": WORKERS + 2 * AT_ONCE, "database": 0, "objects": 0}
"""Calls that each may cost twice: one of every worker that dies, and of the command what it asks the service: a call on
its way, and an answer that is not written yet, for each of those that it asks at once."""
AT_ONCE_TOLD = "run the same command again"
"""In what a command says that finds, as it begins, no database or no object store: nobody waits at a wrong address."""
_MEMORY = 80 * 2**20
_RAY: dict[str, Any] = {"enable_worker_prestart": False, "worker_niceness": 0}
_LOGS = ("frames", "answers")
_LATEST = 1.5
_LONGEST = 600.0


class Site:
    """Database, object store, service and cluster. `place` is the folder that every suite has in its turn."""

    def __init__(self, server: ForkServerContext, place: Path, stories: int, stack: ExitStack) -> None:
        self.server, self.place, self.stories = server, place, stories
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.database: PostgresServer = stack.enter_context(postgres_server())
        self.objects = S3Server()
        stack.callback(lambda: self.objects.stop())
        self.service: Server = stack.enter_context(serving("openai", lambda _, body: {"text": good(body)}))
        self._machines: Any = None
        self._known, self._path = dict(os.environ), str(Path(crews.__file__).parent)
        self.address = StoreAddress()
        stack.callback(self._restore)
        os.environ.update(
            {**self.objects.environment, "PYTHONPATH": self._path}
        )  # a machine has its own keys of the store
        os.environ.update({"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"})
        os.environ["RAY_AUTH_MODE"] = "disabled"  # whatever token Ray has left in this home

    def _restore(self) -> None:
        if self._machines is not None:
            self._machines.shutdown()
        os.environ.clear()
        os.environ.update(self._known)

    @property
    def machines(self) -> Any:
        """The cluster: a head that does no work, and two machines with room for both workers each."""
        if self._machines is None:
            from ray.cluster_utils import Cluster

            head = {"num_cpus": 0, "object_store_memory": _MEMORY, "include_dashboard": False, "_system_config": _RAY}
            self._machines = Cluster(initialize_head=True, head_node_args=head)
            for _ in range(2):
                self._machines.add_node(num_cpus=1, object_store_memory=_MEMORY)
        return self._machines

    def fresh(self) -> None:
        """Make an empty folder, database and bucket for the next suite."""
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "work").mkdir(parents=True)
        self.address = StoreAddress(self.database.fresh(), self.objects.bucket(), lease=LEASE)
        with self.service.lock:
            self.service.bodies.clear()

    def environment(self, machine: int, patience: float) -> dict[str, str]:
        """What the command is told by variables. machine: the number of the machine that it is given on."""
        return {
            "KATHA_STORE": self.address.index,
            "KATHA_OBJECTS": self.address.objects,
            "KATHA_STORE_LEASE": str(LEASE),
            "KATHA_STORE_PATIENCE": str(patience),
            "KATHA_CACHE": str(self.place / f"cache{machine}"),
            "OPENAI_API_KEY": KEY,
            "RAY_AUTH_MODE": "disabled",  # as the cluster: with a token of this home, every worker would die
            **self.objects.environment,
        }

    def begin(self, *, machine: int = 0, alone: bool = False, patience: float = 30.0) -> ForkServerProcess:
        """Begin the suite's command in a process of its own."""
        cluster = None if alone else str(self.machines.address)
        told = (str(self.place), self.stories, self.service.url, cluster, self.environment(machine, patience))
        process: ForkServerProcess = self.server.Process(target=suite, args=told)
        process.start()
        return process

    def workers(self) -> list[Any]:
        """The processes that hold models now, on both machines."""
        found = []
        for machine in self.machines.worker_nodes:
            for raylet in machine.all_processes["raylet"]:
                with suppress(psutil.Error):
                    found += [each for each in psutil.Process(raylet.process.pid).children() if _is_worker(each)]
        return found

    def progress(self) -> int:
        """How far the suite is: calls to the service, frames and answers."""
        return self.service.number + sum(len(crews.lines(self.place / "work" / name)) for name in _LOGS)

    def paid(self) -> Counter[str]:
        """Every call that was paid for, by what was asked."""
        with self.service.lock:
            asked = Counter(sha256_hex(body) for body in self.service.bodies)
        return asked + Counter(line for name in _LOGS for line in crews.lines(self.place / "work" / name))

    def claims(self) -> int:
        """How many claims are in force."""
        with psycopg.connect(self.address.index, autocommit=True) as connection:
            found = connection.execute("SELECT COUNT(*) FROM katha_claims WHERE until > clock_timestamp()").fetchone()
        return int(found[0]) if found is not None else 0


def _is_worker(process: Any) -> bool:
    try:
        return bool(process.name().startswith("ray::Hand") or "ray::Hand" in " ".join(process.cmdline()))
    except psutil.Error:
        return False


@contextmanager
def site(server: ForkServerContext, folder: Path, stories: int = 4) -> Iterator[Site]:
    """Everything that suites of so many stories share; what it began ends with the block. server: begins processes."""
    with ExitStack() as stack:
        yield Site(server, folder / "place", stories, stack)


def suite(place: str, stories: int, service: str, cluster: str | None, environment: dict[str, str]) -> None:
    """Run the suite in this process, by workers of `cluster` where there is one; in `said` is what a person is told."""
    os.environ.update(environment)
    work = Path(place) / "work"
    with (work / "printed").open("ab") as printed:
        os.dup2(printed.fileno(), 1)

    def heard(_: object, sentence: str) -> None:
        if sentence:
            with (work / "heard").open("a", encoding="utf-8") as file:
                file.write(sentence + "\n")

    config = crews.settings(work, judges=("crews:FullJudge", "crews:CountedJudge"), base_url=service)
    rows = load_suite("length").only(("base", "full"))
    job = AblationJob([story(f"s{at}") for at in range(stories)], rows, config, resamples=20)
    try:
        with ExitStack() as stack:
            by = WorkerPlace(None, count=WORKERS, address=cluster)
            fleet = stack.enter_context(Fleet(by, heard)) if cluster is not None else None
            run_ablation(job, Path(place) / "out", fleet=fleet)
    except KathaError as error:
        (work / "said").write_text(str(error), encoding="utf-8")
        sys.exit(error.exit_code)


@dataclass
class Round:
    """One suite. killed: the victims in their order. twice: calls that were paid for more than once; may: how many of
    them were in flight. again: how often the command was given again."""

    number: int
    killed: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    twice: int = 0
    may: int = 0
    again: int = 0

    def __str__(self) -> str:
        head = f"round {self.number}: {', '.join(self.killed) or 'nobody'} killed, given again {self.again} times"
        return "; ".join([f"{head}, {self.twice} of {self.may} calls paid twice", *self.faults])


@dataclass
class Whole:
    """What an undisturbed command leaves: its results, and what it paid for."""

    results: dict[str, object]
    paid: Counter[str]


def undisturbed(here: Site) -> Whole:
    """Run the suite in one process, without workers. It pays for nothing twice: every answer is one that is kept."""
    here.fresh()
    code = finish(here.begin(alone=True))
    if code:
        raise RuntimeError(f"the suite ends with {code}: {_said(here)}")
    paid = here.paid()
    if more := [asked for asked, times in paid.items() if times > 1]:
        raise RuntimeError(f"the suite pays for {len(more)} calls again, with nobody killed")
    return Whole(crews.results(here.place / "out"), paid)


def one_round(here: Site, whole: Whole, number: int, victims: Sequence[str]) -> Round:
    """Run the suite on the cluster, kill so many of its parts, and look at what it left."""
    made, dice = Round(number), random.Random(f"round {number}")
    total = whole.paid.total()
    moments = sorted(dice.uniform(0.0, total) for _ in victims)
    here.fresh()
    process, machine, begun = here.begin(), 0, 0
    for victim, moment in zip(victims, moments, strict=True):
        if not reaches(here, process, moment, dice.uniform(0.0, _LATEST)):
            break
        if not _kill(here, process, victim, dice):
            break
        made.killed.append(victim)
        made.may += IN_FLIGHT[victim]
        if victim == "command":
            finish(process)
            machine += 1
            made.again += 1
            begun = here.progress()
            process = here.begin(machine=machine)
    while (code := finish(process)) != 0:
        if code != 1 or here.progress() > begun or AT_ONCE_TOLD not in _said(here):
            made.faults.append(f"the command ends with {code} and says: {_said(here)}")
        made.again += 1
        if made.again > len(victims) + 3:
            break
        begun = here.progress()
        process = here.begin(machine=machine)
    made.faults += _left(here, whole, made)
    return made


def reaches(here: Site, process: ForkServerProcess, moment: float, delay: float = 0.0) -> bool:
    """Wait until the suite has come so far, and a little longer; False where its command has ended before."""
    waiting, end = threading.Event(), time.monotonic() + _LONGEST
    while here.progress() < moment and process.is_alive():
        if time.monotonic() > end:
            raise RuntimeError(f"the suite stands still at {here.progress()} calls")
        waiting.wait(0.05)
    process.join(delay)
    return process.is_alive()


def _kill(here: Site, process: ForkServerProcess, victim: str, dice: random.Random) -> bool:
    """Kill one part, and bring back what a person or a supervisor would; False where the command has ended before."""
    if victim == "worker":
        while not (found := here.workers()):
            process.join(0.05)
            if not process.is_alive():
                return False
        with suppress(psutil.NoSuchProcess):  # it has made room for the next stage meanwhile
            dice.choice(found).kill()
    elif victim == "machine":
        machines = here.machines
        machines.remove_node(
            dice.choice(sorted(machines.worker_nodes, key=lambda one: one.unique_id)), allow_graceful=False
        )
        machines.add_node(num_cpus=1, object_store_memory=_MEMORY)
    elif victim == "command":
        os.kill(process.pid or 0, signal.SIGKILL)
    else:
        server = here.database if victim == "database" else here.objects
        server.stop()
        process.join(dice.uniform(0.0, 2.0))  # away for a while
        server.start()
    return True


def _said(here: Site) -> str:
    path = here.place / "work" / "said"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _left(here: Site, whole: Whole, made: Round) -> list[str]:
    """What is wrong with what a round left; how much was paid for twice goes into `made`."""
    found, paid = crews.results(here.place / "out"), here.paid()
    differ = sorted(name for name in {*found, *whole.results} if found.get(name) != whole.results.get(name))
    faults = [f"other bytes in {', '.join(differ[:4])}"] if differ else []
    made.twice = (paid - whole.paid).total()
    if made.twice > made.may:
        faults.append(f"{made.twice} calls were paid for twice, and {made.may} were in flight")
    printed = (here.place / "work" / "printed").read_text(encoding="utf-8")
    faults += [f"standard output has {printed[:100]!r}"] if printed else []
    strange = set(paid) ^ set(whole.paid)
    faults += [f"{len(strange)} calls are not those of an undisturbed command"] if strange else []
    faults += [] if _until(lambda: not here.workers()) else ["workers outlive their command"]
    faults += [] if _until(lambda: not here.claims()) else [f"{here.claims()} claims are in force"]
    with Store(here.place / "look", address=here.address) as store:
        store.index.sweep()
        looked = store.check()
    broken = looked.damaged_records + looked.damaged_files + looked.missing_files
    return [*faults, f"the store has damage: {looked}"] if broken else faults


def _until(true: Callable[[], bool], seconds: float = 120.0) -> bool:
    waiting, end = threading.Event(), time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        waiting.wait(0.1)
    return True


def rounds(here: Site, wanted: int, seconds: float, first: int = 0, *, each: int = 8) -> Iterator[Round]:
    """Yield rounds until `wanted` parts were killed or the time is over. each: kills in a round that lasts so long."""
    end, killed, number = time.monotonic() + seconds, 0, first
    whole = undisturbed(here)
    while killed < wanted and (time.monotonic() < end or not killed):
        victims = random.Random(f"victims {number}").sample(VICTIMS * each, min(each, wanted - killed))
        made = one_round(here, whole, number, victims)
        killed += len(made.killed)
        number += 1
        yield made
