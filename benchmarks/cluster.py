"""What several workers cost and give: the overhead of an item, the driver's memory, drawing by two workers against one,
many calls in flight against one, and how long many devices would take.

All but the last are measured on this machine. The last is a simulation: stories whose stage times were recorded (or are
assumed) over 8 to 512 devices, against the lower bound. `drain` itself hands them out, as it does for a command; only
Ray and the clock are made up (`SimulatedRay`). `python -m benchmarks.cluster OUT/workers` does the same for a command's
own logs.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple

from katha.app.many import run_stories
from katha.config import Settings
from katha.experiments.cluster.drain import Crew, WorkerReport, drain
from katha.experiments.cluster.progress import Standing, unheard
from katha.experiments.cluster.work import HOME, Done, Ending, NextStage, Opener, Station, Work, WorkItem
from katha.protocols import FrameRequest
from katha_sketch.drawing import SketchRenderer
from katha_sketch.reader.sketch_reader import SketchReaderJudge

ITEMS = 10_000
TARGET_MS = 5.0
MANY = (1_000, 10_000, 100_000)
BOARDS, ROUNDS, TARGET_DRAWING = 60, 2, 1.6
WAIT, IN_FLIGHT, TARGET_CALLS = 0.1, 64, 50.0
DEVICES = (8, 16, 32, 64, 128, 256, 512)
STORIES = 750
EXAMPLES = Path(__file__).parents[1] / "examples"


def nothing(stage: str) -> Station:
    """Open a station that does nothing."""

    def work(load: object) -> Ending:
        return Done(load)

    return work


class Drawn(NamedTuple):
    """A panel that a worker drew: its bytes, the worker's process, and the processor seconds of that process so far."""

    size: int
    process: int
    processor: float


def sketching(stage: str) -> Station:
    """Open a station that draws a panel of the embedded renderer, with the item's number as its seed."""
    renderer = SketchRenderer()

    def work(seed: int) -> Ending:
        (panel,) = renderer.render_board([FrameRequest(_PROMPT, seed, 768, 512)])
        return Done(Drawn(len(panel), os.getpid(), time.process_time()))

    return work


_PROMPT = "Forest by day. The angry lion roars at the small grey mouse. The mouse is afraid. A net, a tree."


def _drained(
    ray: Any, count: int, opener: Opener = nothing, workers: int = 2, keep: Callable[[Any], None] = lambda value: None
) -> Standing:
    """Drain so many items, and return how it stands; `keep` hears of each that ended."""
    items = (WorkItem("all", str(number), number) for number in range(count))
    work = Work(items, opener, lambda item, value: keep(value), count)
    return drain(ray, work, Crew(workers, {"num_cpus": 0.4}, "benchmark", None, unheard))


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


def _resident() -> float:
    """Return how much memory this process holds now, in MB; where the system does not say, the most that it held."""
    now = Path("/proc/self/statm")
    if now.is_file():
        return int(now.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure() -> dict[str, Any]:
    """Return milliseconds an item of no work, with 2 workers."""
    with _session() as ray:
        _drained(ray, 1_000)  # Ray itself is warm
        before = time.process_time()
        standing = _drained(ray, ITEMS)
        processor = time.process_time() - before
    return {
        "what": f"{ITEMS:,} items of no work, 2 workers, their start included",
        "ms_an_item": round(1000 / standing.rate, 3),
        "processor_ms_of_the_command": round(1000 * processor / ITEMS, 3),
        "target_ms": TARGET_MS,
        "load": _load(),
    }


def memory(counts: Sequence[int] = MANY) -> dict[str, Any]:
    """Return what the command's process holds after so many items of no work, in MB, all of them in one work."""
    found: dict[str, float] = {}
    ended = 0

    def keep(value: object) -> None:
        nonlocal ended
        ended += 1
        if ended in counts:
            found[f"{ended:,}"] = round(_resident(), 1)

    with _session() as ray:
        standing = _drained(ray, max(counts), keep=keep)
    return {
        "what": "items of no work, 2 workers: what the command's process holds after so many, MB",
        "items": found,
        "growth_mb": round(found[f"{max(counts):,}"] - found[f"{min(counts):,}"], 1),
        "ms_an_item": round(1000 / standing.rate, 3),
        "load": _load(),
    }


def _load() -> list[float]:
    return [round(each, 1) for each in os.getloadavg()]


class _Pace:
    """How fast so many warm workers draw, over several rounds."""

    def __init__(self, workers: int) -> None:
        self.workers, self.panels, self.seconds, self.processor = workers, 0, 0.0, 0.0
        self.drawn = 0

    def round(self, ray: Any) -> None:
        """Draw the panels once. What counts begins when each worker has drawn one: it is warm then."""
        told: list[tuple[float, Drawn]] = []
        _drained(ray, BOARDS, sketching, self.workers, lambda drawn: told.append((time.monotonic(), drawn)))
        first: dict[int, float] = {}
        warm = next(at for at, (_, one) in enumerate(told) if len(_note(first, one)) == self.workers)
        self.panels += len(told) - 1 - warm
        self.seconds += told[-1][0] - told[warm][0]
        last = {one.process: one.processor for _, one in told}
        self.processor += sum(last[process] - first[process] for process in first)
        self.drawn += len(told) - len(first)

    def row(self) -> dict[str, float]:
        """Return panels a second, and the processor milliseconds of the workers for a panel."""
        rate, processor = self.panels / self.seconds, 1000 * self.processor / self.drawn
        return {"panels_a_second": round(rate, 2), "processor_ms_a_panel": round(processor, 2)}


def _note(first: dict[int, float], one: Drawn) -> dict[int, float]:
    """Keep the processor seconds of a process at its first panel."""
    first.setdefault(one.process, one.processor)
    return first


def drawing() -> dict[str, Any]:
    """Return how many times as fast two warm workers draw as one, and what a panel costs of a processor by each.

    The two take turns, so that both meet the same machine. Others' load takes wall time from two workers and not from
    one, but adds no processor time: the second figure also holds on a machine that is not quiet.
    """
    alone, both = _Pace(1), _Pace(2)
    with _session() as ray:
        for _ in range(ROUNDS):
            alone.round(ray)
            both.round(ray)
    one, two = alone.row(), both.row()
    return {
        "what": f"{ROUNDS} times {BOARDS} panels of the embedded renderer by 1 and by 2 workers, each warm",
        "workers": {"1": one, "2": two},
        "times_as_fast": round(two["panels_a_second"] / one["panels_a_second"], 2),
        "times_the_processor": round(two["processor_ms_a_panel"] / one["processor_ms_a_panel"], 3),
        "target": TARGET_DRAWING,
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": _load(),
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

        def home(_: str) -> Station:
            line = HTTPConnection("127.0.0.1", server.server_port)

            def work(load: object) -> Ending:
                line.request("GET", "/")
                return Done(line.getresponse().read())

            return work

        began, one = time.monotonic(), home(HOME)
        for number in range(each):
            one(number)
        alone = each / (time.monotonic() - began)
        items = (WorkItem(HOME, str(number), number) for number in range(each * IN_FLIGHT))
        work = Work(items, nothing, lambda item, value: None, each * IN_FLIGHT, home)
        many = drain(ray, work, Crew(1, {}, "benchmark", None, unheard)).rate
        server.shutdown()
    return {
        "what": f"calls of {WAIT * 1000:.0f} ms to a loopback vendor: one in flight, and {IN_FLIGHT}",
        "calls_a_second": {"1": round(alone, 1), str(IN_FLIGHT): round(many, 1)},
        "times_as_fast": round(many / alone, 1),
        "target": TARGET_CALLS,
    }


# Many devices: the scheduler itself, over stage times that were recorded, with a Ray and a clock that are made up.


class HeldRenderer(SketchRenderer):
    """The embedded renderer as if it kept a model: it has a stage, and workers, of its own."""

    exclusive = True


class HeldReader(SketchReaderJudge):
    """The embedded judge as if it filled the memory."""

    exclusive = True


Part = tuple[str, float]
"""A stage that a story went through, and seconds."""


@dataclass(frozen=True)
class Recorded:
    """Stage times. stories: by story, what it went through, in order. loads: seconds until a stage's worker began."""

    stories: Mapping[str, Sequence[Part]]
    loads: Mapping[str, float]

    def stages(self) -> dict[str, Any]:
        """Return how often stories came to each stage, the mean and the longest time there, and its load."""
        found: dict[str, list[float]] = {}
        for parts in self.stories.values():
            for stage, seconds in parts:
                found.setdefault(stage, []).append(seconds)
        return {
            stage: {
                "items": len(times),
                "mean_s": round(mean(times), 3),
                "longest_s": round(max(times), 3),
                "load_s": round(self.loads.get(stage, 0.0), 2),
            }
            for stage, times in sorted(found.items())
        }


_ENDED = re.compile(r"(\S+) (.+?): (.+?): (?:done|goes on to .+|failed: .+) in ([0-9.]+) s")
_BEGAN = re.compile(r"\S+ begins on \S+ with (.+) after ([0-9.]+) s")


def read_logs(folder: Path) -> Recorded:
    """Return the stage times that a command's workers left in `OUT/workers`."""
    rows: list[tuple[str, str, str, float]] = []
    loads: dict[str, list[float]] = {}
    for path in sorted(folder.glob("*.log")):
        for line in path.read_text(encoding="utf-8").splitlines():
            ended, began = _ENDED.fullmatch(line), _BEGAN.fullmatch(line)
            if ended is not None:
                rows.append((ended[1], ended[3], ended[2], float(ended[4])))
            elif began is not None:
                loads.setdefault(began[1], []).append(float(began[2]))
    stories: dict[str, list[Part]] = {}
    for _, story, stage, seconds in sorted(rows):
        stories.setdefault(story, []).append((stage, seconds))
    return Recorded(stories, {stage: mean(times) for stage, times in loads.items()})


def record() -> Recorded:
    """Run the example stories by two workers, drawing and judging in stages of their own; what their logs tell."""
    here = f"{HeldRenderer.__module__}:"
    with _session(), tempfile.TemporaryDirectory() as folder:
        config = Settings(renderer=here + "HeldRenderer", judges=(here + "HeldReader",))
        run_stories(EXAMPLES, config, out=Path(folder) / "out", workers="cpu:2")
        return read_logs(Path(folder) / "out" / "workers")


@dataclass(eq=False)
class _Ref:
    """Something that ends at a time, and what comes of it."""

    at: float
    told: WorkerReport


@dataclass
class _Call:
    """A method of an actor as Ray has it."""

    remote: Callable[..., _Ref]


class _Actor:
    """A worker whose station takes the recorded time; it does one thing at a time."""

    def __init__(self, ray: SimulatedRay, stage: str) -> None:
        self._ray, self._stage, self._free = ray, stage, ray.now
        self.begin, self.do = _Call(self._begin), _Call(self._do)

    def _ends(self, seconds: float, ending: Ending) -> _Ref:
        self._free = max(self._free, self._ray.now) + seconds
        return _Ref(self._free, WorkerReport(ending, None, seconds))

    def _begin(self) -> _Ref:
        return self._ends(self._ray.loads.get(self._stage, 0.0), Done("simulated"))

    def _do(self, load: tuple[Sequence[Part], int]) -> _Ref:
        parts, place = load
        following = place + 1
        more = following < len(parts)
        return self._ends(parts[place][1], NextStage(parts[following][0], (parts, following)) if more else Done())


class _Maker:
    """A class of actors as Ray has it."""

    def __init__(self, ray: SimulatedRay) -> None:
        self._ray = ray

    def options(self, **reserved: float) -> _Maker:
        """Return itself: there is room for every worker."""
        return self

    def remote(self, opener: Opener, stage: str, *_: object) -> _Actor:
        """Return an actor of that stage."""
        return _Actor(self._ray, stage)


class SimulatedRay:
    """What `drain` asks of Ray, by a clock of its own, in seconds: time passes where `drain` waits."""

    exceptions = SimpleNamespace(RayError=ArithmeticError)  # never raised here

    def __init__(self, loads: Mapping[str, float]) -> None:
        """loads: seconds until a worker of a stage has begun."""
        self.loads, self.now = loads, 0.0

    def remote(self, kind: type) -> _Maker:
        """Return what makes actors."""
        return _Maker(self)

    def is_initialized(self) -> bool:
        """Return that it is there."""
        return True

    def wait(self, refs: Sequence[_Ref], num_returns: int, timeout: float) -> tuple[list[_Ref], list[_Ref]]:
        """Return what has ended; where it waits, the first that will, and the clock goes on to it."""
        if timeout:
            self.now = max(self.now, min(ref.at for ref in refs))
        ended = sorted((ref for ref in refs if ref.at <= self.now), key=lambda ref: ref.at)[:num_returns]
        return ended, [ref for ref in refs if ref not in ended]

    def get(self, ref: _Ref) -> WorkerReport:
        """Return what came of it."""
        return ref.told

    def kill(self, actor: _Actor) -> None:
        """Let it go."""


def makespan(stories: Sequence[Sequence[Part]], devices: int, loads: Mapping[str, float]) -> float:
    """Return the seconds in which workers of so many devices end the stories, handed out by `drain`."""
    ray = SimulatedRay(loads)
    items = (WorkItem(parts[0][0], str(number), (parts, 0)) for number, parts in enumerate(stories))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KATHA_CACHE"] = folder
        standing = drain(
            ray, Work(items, nothing, lambda item, value: None), Crew(devices, {}, "benchmark", None, unheard)
        )
    assert standing.done.total() == len(stories), standing.failed
    return ray.now


def forecast(recorded: Recorded, count: int = STORIES, devices: Sequence[int] = DEVICES) -> dict[str, Any]:
    """Return the simulated makespan of `count` stories, drawn with a fixed seed from the recorded ones.

    Beside it stands the lower bound: work divided by devices, or the longest story.
    """
    dice, known = random.Random(42), [list(parts) for _, parts in sorted(recorded.stories.items())]
    stories = [dice.choice(known) for _ in range(count)]
    lengths = [sum(seconds for _, seconds in parts) for parts in stories]
    rows = {}
    for number in devices:
        bound, found = max(sum(lengths) / number, max(lengths)), makespan(stories, number, recorded.loads)
        rows[str(number)] = {
            "seconds": round(found, 1),
            "lower_bound": round(bound, 1),
            "ratio": round(found / bound, 2),
        }
    bends = next((name for name, row in rows.items() if row["ratio"] > BEND), None)
    return {"stages": recorded.stages(), "stories": count, "devices": rows, f"first_over_{BEND}": bends}


BEND = 1.25
"""Where the makespan is so many times the lower bound, more devices no longer pay in full."""
ASSUMED = (("draw", 60.0), ("judge a", 90.0), ("judge b", 90.0))
"""Seconds a story, spread by half around these: a larger model's, assumed and measured on no device."""


def _assumed(load: float = 60.0) -> Recorded:
    dice = random.Random(42)
    stories = {
        f"{number:03d}": [(name, seconds * dice.uniform(0.5, 1.5)) for name, seconds in ASSUMED]
        for number in range(STORIES)
    }
    return Recorded(stories, {name: load for name, _ in ASSUMED})


def simulate() -> dict[str, Any]:
    """Return the simulated makespan of 750 stories, by stage times recorded here and by assumed ones."""
    return {
        "what": "a simulation: drain itself, over stage times of the example stories by the embedded models, recorded "
        "here; and over assumed ones (60, 90 and 90 s a story, a load of 60 s)",
        "recorded": forecast(record()),
        "assumed": forecast(_assumed()),
    }


def main() -> None:
    """Print the forecast from the logs of a command's workers."""
    recorded = read_logs(Path(*sys.argv[1:]))
    if not recorded.stories:
        sys.exit("usage: python -m benchmarks.cluster OUT/workers (a folder with the logs of a command's workers)")
    print(json.dumps(forecast(recorded)))


if __name__ == "__main__":
    main()
