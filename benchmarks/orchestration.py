"""What graph, store and progress add per frame and per judge call, in a warm process.

Every call that a run makes of its renderer and judge is recorded, then made again in a bare Python loop that does the
same work: plan, questions, the same frames, each frame's pixels encoded for the judge, the same questions. The
difference is divided by the number of calls (frames drawn and questions asked). A first run warms imports and words;
pictures are forgotten before each of the two, and each measurement is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from katha.agents.context import make_plan
from katha.agents.run import run_story
from katha.config import Settings
from katha.eval_bridge.packets import packets
from katha.eval_bridge.packets.packets import clean_image
from katha.eval_bridge.questions.build import build_questions, prepare_questions
from katha.protocols import BoardContext, Evidence, FrameRequest, JudgePrompt, JudgeReply
from katha.registry import default_registry
from katha.stories import load_story
from katha_sketch.drawing import SketchRenderer
from katha_sketch.reader.sketch_reader import SketchReaderJudge, shared_readings

__all__ = ["measure"]

_RUNS = 5
_TARGET_MS = 3.0
_STORY = Path(__file__).parents[1] / "examples" / "lion_and_mouse.json"


class _Spent(NamedTuple):
    """Seconds on the clock, and of processor time over all threads (which a busy machine does not lengthen much)."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> _Spent:
        """The two clocks."""
        return cls(time.perf_counter(), time.process_time())

    @classmethod
    def since(cls, start: _Spent) -> _Spent:
        """Return what passed since `start`."""
        return cls(time.perf_counter() - start.wall, time.process_time() - start.cpu)


class _Recorded:
    """The calls that a run made, in order."""

    def __init__(self) -> None:
        self.boards: list[tuple[FrameRequest, ...]] = []
        self.inserted: list[tuple[FrameRequest, BoardContext]] = []
        self.asked: list[tuple[Evidence, tuple[JudgePrompt, ...]]] = []

    @property
    def calls(self) -> int:
        """Frames drawn and questions asked."""
        drawn = sum(len(requests) for requests in self.boards) + len(self.inserted)
        return drawn + sum(len(prompts) for _, prompts in self.asked)


class _Renderer(SketchRenderer):
    def __init__(self, recorded: _Recorded) -> None:
        super().__init__()
        self._recorded = recorded

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        self._recorded.boards.append(tuple(requests))
        return super().render_board(requests)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        self._recorded.inserted.append((request, context))
        return super().insert_frame(request, context)


class _Judge(SketchReaderJudge):
    def __init__(self, recorded: _Recorded) -> None:
        super().__init__()
        self._recorded = recorded

    def spec(self) -> Mapping[str, Any]:
        return {**super().spec(), "name": "recording"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        self._recorded.asked.append((evidence, tuple(prompts)))
        return super().ask(evidence, prompts)


def _run(name: str, folder: str) -> tuple[_Spent, _Recorded]:
    """A whole run into `folder`, with an empty cache there; `name` tells its recording plug-ins from other runs'."""
    recorded = _Recorded()
    default_registry("renderers").register(name)(lambda: _Renderer(recorded))
    default_registry("judges").register(name)(lambda: _Judge(recorded))
    os.environ["KATHA_CACHE"] = f"{folder}/cache"
    record = load_story(str(_STORY))
    start = _Spent.now()
    run_story(record, Settings(renderer=name, judges=(name,)), Path(folder) / "out")
    return _Spent.since(start), recorded


def _bare(recorded: _Recorded) -> _Spent:
    """The same work in a bare loop, straight from the story to the last reply."""
    record, renderer, judge = load_story(str(_STORY)), SketchRenderer(), SketchReaderJudge()
    start = _Spent.now()
    plan = make_plan(record, Settings())
    prepare_questions(record.recoverability_questions or build_questions(record, plan), seed=42)
    for requests in recorded.boards:
        for png in renderer.render_board(requests):
            clean_image(png)
    for request, context in recorded.inserted:
        clean_image(renderer.insert_frame(request, context))
    for evidence, prompts in recorded.asked:
        for _ in judge.ask(evidence, prompts):
            pass
    return _Spent.since(start)


def _forget_pictures() -> None:
    shared_readings.cache_clear()
    packets.cleaned_pictures().clear()


def _once() -> tuple[_Spent, _Spent, int]:
    """A run with an empty cache, its bare loop, and the number of calls."""
    with tempfile.TemporaryDirectory() as folder:
        _, recorded = _run("warm", folder)
    _forget_pictures()
    bare = _bare(recorded)
    _forget_pictures()
    with tempfile.TemporaryDirectory() as folder:
        whole, recorded = _run("measured", folder)
    return whole, bare, recorded.calls


def measure() -> dict[str, Any]:
    """Median of five processes."""
    command = [sys.executable, "-m", "benchmarks.orchestration"]
    lines = [subprocess.check_output(command, text=True) for _ in range(_RUNS)]
    made = [(_Spent(*whole), _Spent(*bare), calls) for whole, bare, calls in map(json.loads, lines)]
    return {
        "calls": made[-1][2],
        "overhead_ms_per_call": round(
            median(1000 * (whole.wall - bare.wall) / calls for whole, bare, calls in made), 2
        ),
        "overhead_cpu_ms_per_call": round(
            median(1000 * (whole.cpu - bare.cpu) / calls for whole, bare, calls in made), 2
        ),
        "target_ms_per_call": _TARGET_MS,
        "baseline": "the same renderer and judge calls in a bare Python loop",
        "ratio": round(median(whole.wall / bare.wall for whole, bare, _ in made), 2),
    }


if __name__ == "__main__":
    print(json.dumps(_once()))
