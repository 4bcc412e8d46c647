"""What several workers cost: the overhead of an item, the driver's memory, and how long many devices would take.

The first two are measured with Ray on this machine. The last is a simulation: items of given stage times over 8, 64 and
512 devices by the rule of `experiments/cluster/drain.py` (an idle worker takes its stage's next item, and changes its
stage, which costs a load, when none is left), against the lower bound. It says nothing of any device.
"""

from __future__ import annotations

import heapq
import os
import random
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from katha.experiments.cluster.drain import Crew, drain
from katha.experiments.cluster.standing import Standing, unheard
from katha.experiments.cluster.work import Done, Ending, Item, Station, Work

ITEMS = 10_000
TARGET_MS = 5.0
DEVICES = (8, 64, 512)


def nothing(stage: str) -> Station:
    """Open a station that does nothing."""

    def work(load: object) -> Ending:
        return Done(load)

    return work


def _drained(ray: Any, count: int) -> Standing:
    items = (Item("all", str(number), number) for number in range(count))
    crew = Crew(2, {"num_cpus": 0.4}, "benchmark", None, unheard)
    return drain(ray, Work(items, nothing, lambda item, value: None, count), crew)


def measure() -> dict[str, Any]:
    """Return milliseconds an item of no work, with 2 workers, and the growth of the driver from 1,000 items on."""
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
            _drained(ray, 1_000)  # workers begin
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            standing = _drained(ray, ITEMS)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        finally:
            ray.shutdown()
    return {
        "what": f"{ITEMS:,} items of no work, 2 workers, their start included",
        "ms_an_item": round(1000 / standing.rate, 3),
        "target_ms": TARGET_MS,
        "driver_growth_mb": round((after - before) / 1024, 1),
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
