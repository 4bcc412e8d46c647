"""What graph, store and progress add per frame and per judge call, in one warm process.

Every call that a run makes of its renderer and judge is recorded, then made again in a bare Python loop with the same
renderer and judge; the difference in wall time is divided by the number of calls (frames drawn and questions asked).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from katha.agents import run_story
from katha.config import RunConfig
from katha.eval_bridge.judges.sketch_reader import SketchReaderJudge
from katha.protocols import BoardContext, Evidence, FrameRequest, JudgePrompt, JudgeReply
from katha.registry import default_registry
from katha.renderers.sketch import SketchRenderer
from katha.stories import load_story

__all__ = ["measure"]

_RUNS = 3
_TARGET_MS = 3.0
_STORY = Path(__file__).parents[1] / "examples" / "lion_and_mouse.json"


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


def _run(folder: str) -> tuple[float, _Recorded]:
    recorded = _Recorded()
    default_registry("renderers").register("recording")(lambda: _Renderer(recorded))
    default_registry("judges").register("recording")(lambda: _Judge(recorded))
    record = load_story(str(_STORY))
    start = time.perf_counter()
    run_story(record, RunConfig(renderer="recording", judges=("recording",)), Path(folder) / "out")
    return time.perf_counter() - start, recorded


def _bare(recorded: _Recorded) -> float:
    renderer, judge = SketchRenderer(), SketchReaderJudge()
    start = time.perf_counter()
    for requests in recorded.boards:
        for _ in renderer.render_board(requests):
            pass
    for request, context in recorded.inserted:
        renderer.insert_frame(request, context)
    for evidence, prompts in recorded.asked:
        for _ in judge.ask(evidence, prompts):
            pass
    return time.perf_counter() - start


def measure() -> dict[str, Any]:
    """Median of three runs with an empty cache, each beside its own calls in a bare loop."""
    import os

    overheads, ratios, calls = [], [], 0
    for attempt in range(_RUNS + 1):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["KATHA_CACHE"] = f"{folder}/cache"
            whole, recorded = _run(folder)
            bare = _bare(recorded)
        if attempt:  # the first run warms imports and the reader's session
            overheads.append(1000 * (whole - bare) / recorded.calls)
            ratios.append(whole / bare)
            calls = recorded.calls
    return {
        "calls": calls,
        "overhead_ms_per_call": round(median(overheads), 2),
        "target_ms_per_call": _TARGET_MS,
        "baseline": "the same renderer and judge calls in a bare Python loop",
        "ratio": round(median(ratios), 2),
    }
