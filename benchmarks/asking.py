"""Asking 114,848 questions of a scripted judge that needs no time, durably; the same run again; and the cost of a call.

A benchmark of KathaBench-25K's shape (5,000 stories, 28,712 questions, four conditions, one board of five small
pictures a story, questions with their options) is evaluated by a process of its own: records and boards are read and
re-encoded, packets scanned, every answer written to the cache and to the log. What is timed as asking ends before the
scores. The cost of a call is the same figure for a smaller run, beside inspect_ai's `eval` over as many samples with
its mock model, in the same run.
"""

from __future__ import annotations

import io
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.processes import output_of
from benchmarks.synthetic import stories
from katha.jsonio import canonical

__all__ = ["measure", "write_inputs"]

_STORIES = 5_000
_FEW = 350
_SIDE = 64


@dataclass
class Account:
    """Seconds on the wall and on the processors of asking and of the whole run; memory in MB at points of the run."""

    asked: int
    asking: float
    asking_cpu: float
    whole: float
    whole_cpu: float
    megabytes: tuple[float, ...]
    reused: bool


def write_inputs(folder: Path, count: int) -> None:
    """`count` stories and a board of five different pictures for each."""
    from PIL import Image

    with (folder / "stories.jsonl").open("wb") as file:
        for at, record in enumerate(islice(stories(), count)):
            for question in record["recoverability_questions"]:
                others = [f"{word} deed {at}" for word in ("another", "no", "a later")]
                question["options"] = [question["gold_answer"], *others, "Unclear"]
            file.write(canonical(record) + b"\n")
            board = folder / "boards" / record["story_id"]
            board.mkdir(parents=True)
            for number in range(1, 6):
                picture = Image.new("RGB", (_SIDE, _SIDE), (at % 256, at // 256 % 256, 40 * number))
                buffer = io.BytesIO()
                picture.save(buffer, "PNG")
                (board / f"{number}.png").write_bytes(buffer.getvalue())


def _megabytes() -> float:
    """Return what the process holds now, by the kernel's own account."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def evaluate(folder: Path) -> Account:
    """One evaluation of the inputs in `folder`, as `katha eval` makes it."""
    from katha.eval_bridge.bench.boards import MethodBoards
    from katha.experiments.evaluation.eval_folder import EvalSettings
    from katha.experiments.evaluation.evaluate import EvalJob
    from katha.experiments.evaluation.evaluate import evaluate as run
    from katha.experiments.inputs.stories import prepare_stories
    from katha.protocols import Evidence, JudgePrompt, JudgeReply
    from katha.store import Store
    from katha.stories import load_stories
    from katha.testing import ScriptedJudge

    asked = 0

    def rule(evidence: Evidence, prompt: JudgePrompt) -> JudgeReply:
        nonlocal asked
        asked += 1
        return JudgeReply("ok", (prompt.options or ("Unclear",))[len(prompt.question) % 2], confidence="high")

    start, work = time.perf_counter(), time.process_time()
    records = load_stories(str(folder / "stories.jsonl"))
    job = EvalJob(
        records=records,
        methods=[MethodBoards("boards", folder / "boards")],
        judges={"scripted": ScriptedJudge(rule, keep=False)},
        settings=EvalSettings(resamples=1_000),
        prepare=prepare_stories(str(folder / "stories.jsonl")),
    )
    held: list[float] = []
    ended = (start, work)

    def on_story(story: str, done: int) -> None:
        nonlocal ended
        if done % max(1, len(records) // 4) == 0 or done in {1, len(records)}:
            ended = (time.perf_counter(), time.process_time())
            held.append(round(_megabytes()))

    with Store(folder / "cache") as store:
        result = run(job, folder / "out", store, on_story=on_story)
    whole, whole_cpu = time.perf_counter() - start, time.process_time() - work
    return Account(asked, ended[0] - start, ended[1] - work, whole, whole_cpu, tuple(held), result.reused)


def inspect_ai(folder: Path, samples: int) -> tuple[float, float]:
    """Seconds on the wall and on the processors of inspect_ai's `eval` with its mock model over `samples` questions.

    Its token counts, for which it would fetch a vocabulary from the network, are left out.
    """
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    async def no_tokens(*_: object, **__: object) -> int:
        return 1

    model = get_model("mockllm/model")
    for name in ("count_tokens", "count_text_tokens"):
        setattr(model.api, name, no_tokens)
    made = MemoryDataset(list(_samples(samples, Sample)))
    start, work = time.perf_counter(), time.process_time()
    (log,) = run(
        Task(dataset=made, solver=generate(), scorer=match()), model=model, display="none",
        log_dir=str(folder / "inspect"),
    )  # fmt: skip
    if log.status != "success":
        raise RuntimeError(f"inspect_ai ended with {log.status}")
    return time.perf_counter() - start, time.process_time() - work


def _samples(count: int, sample: Any) -> Iterator[Any]:
    """The benchmark's questions as text alone: a mock model looks at no picture."""
    questions = (
        f"{record['story_text']}\n{question['question']}"
        for record in stories()
        for _ in range(3)
        for question in record["recoverability_questions"]
    )
    for text in islice(questions, count):
        yield sample(input=text, target="Unclear")


def _child(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output_of([sys.executable, "-m", "benchmarks.asking", *words]))
    return found


def measure() -> dict[str, Any]:
    """The whole benchmark once and once more; then a small run and inspect_ai's over as many questions."""
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name), _STORIES)
        first = _child("evaluate", name)
        again = _child("evaluate", name)
    with tempfile.TemporaryDirectory() as name:
        write_inputs(Path(name), _FEW)
        few = _child("evaluate", name)
        theirs = _child("inspect_ai", name, str(few["asked"]))
    per_call = {who: 1000 * one["cpu"] / few["asked"] for who, one in (("inspect_ai", theirs),)}
    ours, ours_wall = 1000 * few["asking_cpu"] / few["asked"], 1000 * few["asking"] / few["asked"]
    theirs_wall = 1000 * theirs["wall"] / few["asked"]
    return {
        "questions": first["asked"],
        "seconds": round(first["asking"], 1),
        "cpu_seconds": round(first["asking_cpu"], 1),
        "target_seconds": 90,
        "with_scores_seconds": round(first["whole"], 1),
        "megabytes_first_quarters": first["megabytes"],
        "asked_again": again["asked"],
        "again_seconds": round(again["whole"], 2),
        "again_cpu_seconds": round(again["whole_cpu"], 2),
        "target_again_seconds": 5,
        "ms_per_call": round(ours_wall, 3),
        "cpu_ms_per_call": round(ours, 3),
        "calls": few["asked"],
        "baseline": "inspect_ai's eval with its mock model, as many samples of text alone",
        "baseline_ms_per_call": round(theirs_wall, 3),
        "baseline_cpu_ms_per_call": round(per_call["inspect_ai"], 3),
        "ratio": round(theirs_wall / ours_wall, 1),
        "cpu_ratio": round(per_call["inspect_ai"] / ours, 1),
    }


def main(kind: str, folder: str, count: str = "0") -> None:
    """One measurement in a process of its own, as JSON."""
    if kind == "evaluate":
        print(json.dumps(asdict(evaluate(Path(folder)))))
    else:
        wall, cpu = inspect_ai(Path(folder), int(count))
        print(json.dumps({"wall": wall, "cpu": cpu}))


if __name__ == "__main__":
    main(*sys.argv[1:])
