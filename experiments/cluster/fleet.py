"""The workers of a command: `--workers cuda:0-7` on this machine, `--cluster ADDRESS` on many, and their connection."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self

from katha.errors import KathaError, MissingExtraError, UsageError, first_line
from katha.experiments.cluster.drain import Crew, drain
from katha.experiments.cluster.jobs import Ended, JobFile
from katha.experiments.cluster.progress import OnWorkers, Standing, unheard
from katha.experiments.cluster.work import Work
from katha.installing import install_line

WORKERS_HELP = "Work side by side: cuda:0-7, cuda:0,2 or cpu:2 (needs the extra 'cluster')."
CLUSTER_HELP = "Work on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT; --workers N for how many workers."

_DEVICES = re.compile(r"(cuda|cpu)(?::([0-9,\-]+))?")
_MOST = 10_000
_KNOCK = 5.0
_CLIENT = "ray://"
"""Before the address of a cluster's client server, by which a machine outside of the cluster works on it."""
_JOINS = 3
_PASSING = ("Initialization failure from server", "timed out during startup")
"""What Ray 2.60 says where another try helps: its client server lost the process that it forked for a client; a busy
machine did not begin a raylet within half a minute."""
_SHARED_MEMORY = 256 * 2**20
_SHARE = 0.4
"""Of a processor, that a worker reserves: whoever reserves all of them leaves Ray none for itself."""


@dataclass(frozen=True)
class WorkerPlace:
    """Where workers are. kind: what each of them holds. names: the devices of this machine. count: how many workers;
    None: as many as a cluster has room for. address: of the cluster; None: this machine."""

    kind: Literal["cuda", "cpu"] | None
    names: tuple[int, ...] = ()
    count: int | None = None
    address: str | None = None

    @classmethod
    def read(cls, workers: str | None, cluster: str | None) -> Self | None:
        """Return what `--workers` and `--cluster` say; None where neither is given.

        Raises:
            UsageError: they say nothing that there is.
        """
        if workers is None and cluster is None:
            return None
        if cluster is not None and workers is not None and workers.isdigit() and 0 < int(workers) <= _MOST:
            return cls(None, count=int(workers), address=cluster)
        if workers is None:
            return cls(None, address=cluster)
        found = _DEVICES.fullmatch(workers)
        hint = "Write cuda:0-7, cuda:0,2 or cpu:2" + (", or a number of workers." if cluster is not None else ".")
        if found is None:
            raise UsageError(f"--workers {workers!r} names no devices.", hint=hint)
        kind, told = found.groups()
        if kind == "cpu":
            if told is None or not told.isdigit() or not 0 < int(told) <= _MOST:
                raise UsageError(f"--workers {workers!r} does not say how many.", hint="Write cpu:2.")
            return cls("cpu", count=int(told), address=cluster)
        names = _numbers(told) if told is not None else ()
        if not names or len(set(names)) != len(names):
            raise UsageError(f"--workers {workers!r} names no devices.", hint=hint)
        return cls("cuda", names, len(names), cluster)


def _numbers(told: str) -> tuple[int, ...]:
    """The numbers of `0-2,5`; none where it is nothing of that kind."""
    found: list[int] = []
    for part in told.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not (last.isdigit() and int(first) <= int(last) < int(first) + _MOST)):
            return ()
        found += range(int(first), int(last if dash else first) + 1)
    return tuple(found)


def _reach(address: str) -> None:
    """Knock at `HOST:PORT` or `ray://HOST:PORT`: Ray itself waits for a minute where nobody is.

    Raises:
        OSError: nobody is there.
    """
    host, colon, port = address.removeprefix(_CLIENT).rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_KNOCK).close()


def join(ray: Any, options: dict[str, Any]) -> None:
    """Begin Ray with `options`, or connect to a cluster, again where that failed by what passes.

    Raises:
        Exception: what Ray raises, at last.
    """
    for tries in range(1, _JOINS + 1):
        try:
            ray.init(**options)
            return
        except Exception as error:
            if tries == _JOINS or not any(words in str(error) for words in _PASSING):
                raise
            ray.shutdown()


def refusal(address: str, error: Exception) -> UsageError:
    """Return the sentence for a cluster that cannot be joined, in Ray's own words."""
    if isinstance(error, ConnectionAbortedError):  # its first lines are a trace through Ray's server
        told = str(error).rstrip().rpartition("\n")[2].rstrip(".")
        return UsageError(
            f"The client server of the Ray cluster at {address!r} began nothing for this command: {told}.",
            hint="Give the command again, or begin the head by `GRPC_ENABLE_FORK_SUPPORT=0 ray start --head`.",
        )
    return UsageError(
        f"There is no Ray cluster at {address!r}: {first_line(error)}.",
        hint="Begin one with `ray start --head` (~/.ray/auth_token is the same on all machines), or give "
        "--workers for this machine.",
    )


def _has_token() -> bool:
    """Return whether there is a token for clusters, where Ray looks for it."""
    told = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    return bool(told) or (Path.home() / ".ray" / "auth_token").is_file()


class Fleet:
    """The workers of one command. Ray begins with the first work, and ends with the command if it began with it."""

    def __init__(
        self, place: WorkerPlace, heard: OnWorkers = unheard, dollars: Callable[[], float | None] = lambda: None
    ) -> None:
        """dollars: what services have cost the command so far; None where nobody counts."""
        self.place, self._heard, self._dollars = place, heard, dollars
        self._began = False
        self._job: JobFile | None = None

    @classmethod
    def of(
        cls,
        workers: str | None,
        cluster: str | None,
        heard: OnWorkers | None = None,
        dollars: Callable[[], float | None] = lambda: None,
    ) -> Self | None:
        """Return the workers that `--workers` and `--cluster` name; None where neither is given.

        Raises:
            UsageError: they say nothing that there is. MissingExtraError: Ray is not installed.
        """
        place = WorkerPlace.read(workers, cluster)
        if place is None:
            return None
        if find_spec("ray") is None:
            raise MissingExtraError("Several workers need Ray.", hint=f"Install it with: {install_line('cluster')}.")
        return cls(place, heard or unheard, dollars)

    def drain(self, work: Work, owner: str, logs: Path | None = None) -> Standing:
        """Have the workers do everything of `work` that they can; what they cannot is left to the command.

        owner: on whose account records in the cache are. logs: the folder of a log a worker, and of how it stands
        (`katha jobs`): the first of a command's, where it has several.

        Raises:
            UsageError: there is no such cluster, or no room in it, or another command works in that folder.
            StoreError: `work.keep` could not write. KathaError: the line to the cluster broke.
        """
        if logs is not None and self._job is None:
            self._job = JobFile(logs)
        ray = self.connect()
        count, options = self._seats(ray)
        unseen = {"CUDA_VISIBLE_DEVICES": ""} if self.place.kind == "cpu" else {}
        crew = Crew(count, options, owner, logs, self._tell, environment=unseen, dollars=self._dollars)
        try:
            standing = drain(ray, work, crew)
        except ConnectionError as error:  # Ray's client has tried to get it back for half a minute
            raise KathaError(
                f"The line to {self.place.address!r} broke: {first_line(error)}.",
                hint="What is done is kept: give the same command again to go on.",
            ) from error
        if self._job is not None:
            self._job.tell(standing, now=True)
        for sentence in standing.summary():
            self._heard(standing, sentence)
        return standing

    def _tell(self, standing: Standing, said: str) -> None:
        if self._job is not None:
            self._job.tell(standing)
        self._heard(standing, said)

    def connect(self) -> Any:
        """Return Ray, connected.

        Raises:
            UsageError: there is no such cluster, or it lets nobody in. KathaError: Ray does not begin here.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if (
            self.place.address is not None and _has_token()
        ):  # Ray 2.60 reads it on its own where it begins a cluster only
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        import ray

        if ray.is_initialized():
            return ray
        place = self.place
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "katha"}
        if place.address is not None:
            try:
                _reach(place.address)
                join(ray, {"address": place.address, **quiet})
            except Exception as error:
                raise refusal(place.address, error) from error
        else:
            if place.kind == "cuda":  # Ray gives each worker one of those that it sees
                os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, place.names))
            here = {"address": "local", "include_dashboard": False, "object_store_memory": _SHARED_MEMORY, **quiet}
            counted = {"num_cpus": max(place.count or 1, os.cpu_count() or 1), "num_gpus": len(place.names)}
            try:
                join(ray, here | counted)
            except Exception as error:
                raise KathaError(
                    f"Ray did not begin on this machine: {first_line(error)}",
                    hint="Its logs are in /tmp/ray/session_latest/logs; without --workers the command needs no Ray.",
                ) from error
        # Of a worker or machine that dies Ray prints lines of a log on standard output, where `--json` has one object.
        ray._private.worker._worker_logs_enabled = False
        self._began = True
        return ray

    def _seats(self, ray: Any) -> tuple[int, dict[str, float]]:
        """Return how many workers there are to be, and what each reserves."""
        there = ray.cluster_resources()
        cards = int(there.get("GPU", 0))
        cuda = self.place.kind == "cuda" or (self.place.kind is None and cards > 0)
        room = cards if cuda else max(1, int(there.get("CPU", 0)))
        if cuda and not cards:
            raise UsageError("Ray finds no GPU for --workers cuda.", hint="Give --workers cpu:2, or another --cluster.")
        options = {"num_cpus": _SHARE, "num_gpus": 1.0 if cuda else 0.0}
        return (
            room if self.place.count is None else min(self.place.count, room) if cuda else self.place.count
        ), options

    def close(self, status: Ended = "ended") -> None:
        """Let go of Ray, if it began with this command, and say how the command ended."""
        if self._job is not None:
            self._job.end(status)
            self._job = None
        if self._began:
            import ray

            ray.shutdown()
            self._began = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close("ended" if kind is None else "failed" if issubclass(kind, Exception) else "stopped")
