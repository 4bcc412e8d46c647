"""The length suite: whether it draws and asks exactly the distinct work, and what it takes beside that work alone."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from katha.agents.context import Plugins
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.protocols import BoardContext, Evidence, FrameRequest, JudgePrompt, JudgeReply
from katha.stories import load_story
from katha_sketch.drawing import SketchRenderer
from katha_sketch.planner.rule import RulePlanner
from katha_sketch.reader import load_reader
from katha_sketch.reader.similarity import ReaderSimilarity
from katha_sketch.reader.sketch_reader import SketchReaderJudge

__all__ = ["measure"]

_STORIES = ("lion_and_mouse", "fox_and_crow", "tortoise_and_hare")
_BEFORE = ("crow_and_pitcher",)
_TARGET_RATIO = 1.5


class _Renderer(SketchRenderer):
    """Draws, and remembers every request."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[FrameRequest] = []

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for request, png in zip(requests, super().render_board(requests), strict=True):
            self.drawn.append(request)
            yield png

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        self.drawn.append(request)
        return super().insert_frame(request, context)


class _Judge(SketchReaderJudge):
    """Judges, and remembers every packet with its questions."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Evidence, tuple[JudgePrompt, ...]]] = []

    def spec(self) -> Mapping[str, Any]:
        return {**super().spec(), "name": "recording"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        self.asked.append((evidence, tuple(prompts)))
        return super().ask(evidence, prompts)


def _alone(renderer: _Renderer, judge: _Judge) -> tuple[float, float]:
    """Seconds and processor seconds for every distinct frame and question in a bare loop, all made anew."""
    again, asked = SketchRenderer(), SketchReaderJudge(reader=load_reader())
    start, started = time.perf_counter(), time.process_time()
    for request in renderer.drawn:
        for _ in again.render_board([request]):
            pass
    for evidence, prompts in judge.asked:
        for _ in asked.ask(evidence, prompts):
            pass
    return time.perf_counter() - start, time.process_time() - started


def _suite(stories: Sequence[str], renderer: _Renderer, judge: _Judge) -> tuple[dict[str, Any], float, float]:
    """The budget of the suite over `stories` with an empty cache, its seconds and processor seconds."""
    examples = Path(__file__).parents[1] / "examples"
    plugins = Plugins(RulePlanner(), renderer, {"recording": judge}, ReaderSimilarity())
    records = [load_story(str(examples / f"{name}.json")) for name in stories]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KATHA_CACHE"] = f"{folder}/cache"
        job = AblationJob(records, load_suite("length"), Settings(judges=("recording",)), given=plugins)
        start, started = time.perf_counter(), time.process_time()
        budget = run_ablation(job, Path(folder) / "out").table.budget
        return budget.model_dump(), time.perf_counter() - start, time.process_time() - started


def measure() -> dict[str, Any]:
    """The suite over three stories with an empty cache, then its distinct work alone.

    The bare loop comes after the suite in the same process, so the suite runs over another story before: both find the
    program and the networks loaded, and neither finds a picture that it has seen.
    """
    _suite(_BEFORE, _Renderer(), _Judge())
    renderer, judge = _Renderer(), _Judge()
    budget, whole, cpu = _suite(_STORIES, renderer, judge)
    questions = sum(len(prompts) for _, prompts in judge.asked)
    alone, cpu_alone = _alone(renderer, judge)
    return {
        "stories": len(_STORIES),
        **budget,
        "frames_drawn": len(renderer.drawn),
        "questions_asked": questions,
        "exactly_the_distinct_work": (len(renderer.drawn), questions)
        == (budget["frames_distinct"], budget["questions_distinct"]),
        "seconds": round(whole, 1),
        "target_ratio": _TARGET_RATIO,
        "baseline": "the same frames drawn and questions asked once in a bare loop",
        "distinct_work_seconds": round(alone, 1),
        "ratio": round(whole / alone, 2),
        "cpu_ratio": round(cpu / cpu_alone, 2),
    }
