"""What several workers cost and give: the overhead of an item, the driver's memory, drawing by two workers against one,
many calls in flight against one, and how long many devices would take.

All but the last are measured on this machine. The last is a simulation: items of given stage times over 8, 64 and
512 devices by the rule of `experiments/cluster/drain.py` (an idle worker takes its stage's next item, and changes its
stage, which costs a load, when none is left), against the lower bound. It says nothing of any device.
"""

from __future__ import annotations

import heapq
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from katha.experiments.cluster.drain import Crew, drain
from katha.experiments.cluster.standing import Standing, unheard
from katha.experiments.cluster.work import HOME, Done, Ending, Item, Opener, Station, Work
from katha.protocols import FrameRequest
from katha.renderers.sketch import SketchRenderer

ITEMS = 10_000
TARGET_MS = 5.0
MANY = (1_000, 100_000)
BOARDS, TARGET_DRAWING = 60, 1.6
WAIT, IN_FLIGHT, TARGET_CALLS = 0.1, 64, 50.0
DEVICES = (8, 64, 512)


def nothing(stage: str) -> Station:
    """Open a station that does nothing."""

    def work(load: object) -> Ending:
        return Done(load)

    return work


def sketching(stage: str) -> Station:
    """Open a station that draws a panel of the embedded renderer, with the item's number as its seed."""
    renderer = SketchRenderer()

    def work(seed: int) -> Ending:
        (panel,) = renderer.render_board([FrameRequest(_PROMPT, seed, 768, 512)])
        return Done(len(panel))

    return work


_PROMPT = "Forest by day. The angry lion roars at the small grey mouse. The mouse is afraid. A net, a tree."


def _drained(ray: Any, count: int, opener: Opener = nothing, workers: int = 2) -> tuple[Standing, float]:
    """Drain so many items; how it stands, and seconds from the first end to the last."""
    ends: list[float] = []

    def keep(item: Item, value: Any) -> None:
        ends[1:] = [time.monotonic()]

    items = (Item("all", str(number), number) for number in range(count))
    standing = drain(
        ray, Work(items, opener, keep, count), Crew(workers, {"num_cpus": 0.4}, "benchmark", None, unheard)
    )
    return standing, ends[-1] - ends[0] if len(ends) > 1 else 0.0


@contextmanager
def _session() -> Iterator[Any]:
    """Ray on this machine, with two processors and a cache of its own."""
    import ray

    with tempfile.TemporaryDirectory() as folder:
        os.environ["KATHA_CACHE"] = folder
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
        try:
            yield ray
        finally:
            ray.shutdown()


def _peak() -> int:
    """Return the most memory that this process held so far, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure() -> dict[str, Any]:
    """Return milliseconds an item of no work, with 2 workers, and the growth of the driver from 1,000 items on."""
    with _session() as ray:
        _drained(ray, 1_000)  # workers begin
        before = _peak()
        standing, _ = _drained(ray, ITEMS)
        after = _peak()
    return {
        "what": f"{ITEMS:,} items of no work, 2 workers, their start included",
        "ms_an_item": round(1000 / standing.rate, 3),
        "target_ms": TARGET_MS,
        "driver_growth_mb": round((after - before) / 1024, 1),
    }


def memory(counts: Sequence[int] = MANY) -> dict[str, Any]:
    """Return the most memory that the command's process held after each of so many items of no work, in MB."""
    found = {}
    with _session() as ray:
        for count in counts:
            _drained(ray, count)
            found[f"{count:,}"] = round(_peak() / 1024, 1)
    return {"what": "items of no work, 2 workers: the most memory of the command's process, MB", "items": found}


def drawing() -> dict[str, Any]:
    """Return how many times as fast two workers draw as one, from the first panel's end to the last's."""
    with _session() as ray:
        seconds = {workers: _drained(ray, BOARDS, sketching, workers)[1] for workers in (1, 2)}
    return {
        "what": f"{BOARDS} panels of the embedded renderer by 1 and by 2 workers, from the first end to the last",
        "seconds": {str(workers): round(took, 2) for workers, took in seconds.items()},
        "times_as_fast": round(seconds[1] / seconds[2], 2),
        "target": TARGET_DRAWING,
        "load": [round(each, 1) for each in os.getloadavg()],
    }


class _Slow(BaseHTTPRequestHandler):
    """A vendor that answers everything after a tenth of a second."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # head and body leave together

    def do_GET(self) -> None:
        time.sleep(WAIT)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Vendor(ThreadingHTTPServer):
    request_queue_size = 2 * IN_FLIGHT


def vendors(each: int = 20) -> dict[str, Any]:
    """Return how many times as fast the command's own process asks a vendor with 64 calls in flight as with one.

    each: calls one after another.
    """
    import ray

    with tempfile.TemporaryDirectory() as folder, _Vendor(("127.0.0.1", 0), _Slow) as server:
        os.environ["KATHA_CACHE"] = folder
        Thread(target=server.serve_forever, daemon=True).start()

        def home() -> Station:
            line = HTTPConnection("127.0.0.1", server.server_port)

            def work(load: object) -> Ending:
                line.request("GET", "/")
                return Done(line.getresponse().read())

            return work

        began, one = time.monotonic(), home()
        for number in range(each):
            one(number)
        alone = each / (time.monotonic() - began)
        items = (Item(HOME, str(number), number) for number in range(each * IN_FLIGHT))
        work = Work(items, nothing, lambda item, value: None, each * IN_FLIGHT, home)
        many = drain(ray, work, Crew(1, {}, "benchmark", None, unheard)).rate
        server.shutdown()
    return {
        "what": f"calls of {WAIT * 1000:.0f} ms to a loopback vendor: one in flight, and {IN_FLIGHT}",
        "calls_a_second": {"1": round(alone, 1), str(IN_FLIGHT): round(many, 1)},
        "times_as_fast": round(many / alone, 1),
        "target": TARGET_CALLS,
    }


def makespan(stories: Sequence[Sequence[tuple[str, float]]], devices: int, load: float) -> float:
    """Return the seconds in which `devices` do stories, each a list of (stage, seconds) in order, by the drain's rule.

    load: seconds that a change of stage takes.
    """
    queues: dict[str, list[int]] = {}
    for number, parts in enumerate(stories):
        queues.setdefault(parts[0][0], []).append(number)
    at, place = ["" for _ in range(devices)], [0] * len(stories)
    busy: Counter[str] = Counter()
    free: list[tuple[float, int]] = [(0.0, device) for device in range(devices)]
    back: list[tuple[float, int]] = []
    end = 0.0
    while free and (back or any(queues.values())):
        now, device = heapq.heappop(free)
        while back and back[0][0] <= now:
            _, story = heapq.heappop(back)
            queues.setdefault(stories[story][place[story]][0], []).append(story)
        stage = at[device] if queues.get(at[device]) else ""
        if not stage:
            waiting = {name: len(queue) for name, queue in sorted(queues.items()) if len(queue) > busy[name]}
            stage = max(waiting, key=lambda name: waiting[name], default="")
        if not stage:
            if back:
                heapq.heappush(free, (back[0][0], device))
                busy[at[device]] -= bool(at[device])
                at[device] = ""
            continue
        story = queues[stage].pop(0)
        begun = now + (load if stage != at[device] else 0.0)
        if stage != at[device]:
            busy[at[device]] -= bool(at[device])
            busy[stage] += 1
            at[device] = stage
        done = begun + stories[story][place[story]][1]
        place[story] += 1
        if place[story] < len(stories[story]):
            heapq.heappush(back, (done, story))
        heapq.heappush(free, (done, device))
        end = max(end, done)
    return end


def _stories(count: int, stages: Sequence[tuple[str, float]], seed: int = 42) -> Iterator[list[tuple[str, float]]]:
    """Yield stories whose stage times spread by half around the given ones."""
    dice = random.Random(seed)
    for _ in range(count):
        yield [(name, seconds * dice.uniform(0.5, 1.5)) for name, seconds in stages]


STAGES = (("draw", 60.0), ("judge a", 90.0), ("judge b", 90.0))
"""Assumed seconds a story, for the simulation: nothing was measured on a device."""


def simulate() -> dict[str, Any]:
    """Return the simulated makespan of 750 stories against the lower bound."""
    stories, load = list(_stories(750, STAGES)), 60.0
    work, longest = sum(seconds for parts in stories for _, seconds in parts), max(map(_length, stories))
    rows = {}
    for devices in DEVICES:
        bound = max(work / devices, longest)
        found = makespan(stories, devices, load)
        rows[str(devices)] = {"seconds": round(found), "lower_bound": round(bound), "ratio": round(found / bound, 2)}
    return {
        "what": "a simulation with assumed stage times (60, 90, 90 s; a load of 60 s), 750 stories",
        "devices": rows,
    }


def _length(parts: Sequence[tuple[str, float]]) -> float:
    return sum(seconds for _, seconds in parts)
