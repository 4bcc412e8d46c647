"""`katha score` on a full benchmark: 5,000 stories, 28,712 questions, 5 judges, 2 methods, 10,000 resamples.

The whole process is timed, reading 861,360 rows included. The baseline is the bootstrap alone, as a plain Python loop
over counts of the same shape; a few resamples are run and the rest extrapolated.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import run, script
from katha.eval_bridge.bench.synthetic import stories
from katha.eval_bridge.statistics import replicates
from katha.jsonio import canonical
from katha.schema import CONDITIONS, DIMENSIONS

__all__ = ["measure"]

_JUDGES = tuple(f"judge{number}" for number in range(1, 6))
_METHODS = ("base", "full")
_RIGHT = {"text": 0.92, "image": 0.62, "text+image": 0.9}
_BLOCKS = 3
_RESAMPLES = 10_000
_LOOPED = 3
_THREADS = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}


def _rows(records: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    draw = random.Random(42)
    for record in records:
        for question in record["recoverability_questions"]:
            for judge in _JUDGES:
                for method in _METHODS:
                    for condition in CONDITIONS:
                        right = draw.random() < _RIGHT[condition] + 0.1 * (method == "full" and condition == "image")
                        yield canonical(
                            {
                                "method": method,
                                "judge": judge,
                                "story_id": record["story_id"],
                                "question_id": question["question_id"],
                                "condition": condition,
                                "status": "ok" if draw.random() < 0.99 else "refused",
                                "answer": question["gold_answer"] if right else draw.choice(("Unclear", "deed 9")),
                                "confidence": "high",
                            }
                        )


def _write(folder: Path) -> tuple[Path, Path, int]:
    told, given, count = folder / "annotations.jsonl", folder / "answers.jsonl", 0
    with told.open("wb") as file:
        for record in stories():
            file.write(canonical(record) + b"\n")
    with given.open("wb") as file:
        for row in _rows(stories()):
            file.write(row + b"\n")
            count += 1
    return told, given, count


def _counts(blocks: int, per_story: int) -> Any:
    """Made-up counts of the benchmark's shape: (blocks, stories, dimensions, 4)."""
    generator = np.random.default_rng(42)
    number = generator.integers(0, 2, (blocks, per_story, len(DIMENSIONS), 1))
    right = generator.integers(0, 2, (blocks, per_story, len(DIMENSIONS), 3)) * number
    return np.concatenate([number, right], axis=3).astype(float)


def _plain_loop(counts: list[Any], resamples: int) -> None:
    """The same replicates, one story and one count at a time."""
    draw = random.Random(42)
    count = len(counts[0])
    for _ in range(resamples):
        drawn = [draw.randrange(count) for _ in range(count)]
        for block in counts:
            totals = [[0.0] * 4 for _ in DIMENSIONS]
            for story in drawn:
                for total, cell in zip(totals, block[story], strict=True):
                    for at in range(4):
                        total[at] += cell[at]
            present = [total for total in totals if total[0]]
            [sum(total[1 + at] / total[0] for total in present) / len(present) for at in range(3)]


def _resampling() -> tuple[float, float]:
    """Seconds of 10,000 resamples: ours, and the plain loop's, extrapolated."""
    counts = _counts(len(_METHODS) * (len(_JUDGES) + 1) * _BLOCKS, 5_000)
    start = time.perf_counter()
    replicates(counts, _RESAMPLES, 42)
    ours = time.perf_counter() - start
    lists = counts.tolist()
    start = time.perf_counter()
    _plain_loop(lists, _LOOPED)
    return ours, (time.perf_counter() - start) * _RESAMPLES / _LOOPED


def measure() -> dict[str, Any]:
    """One run of the command after the archive is written, then both ways to resample."""
    with tempfile.TemporaryDirectory() as name:
        told, given, rows = _write(Path(name))
        command = [script("katha"), "score", str(told), "--answers", str(given), "--out", str(Path(name) / "s.json")]
        cost = run(command, _THREADS)
    ours, plain = _resampling()
    return {
        "rows": rows,
        "seconds": round(cost.seconds, 1),
        "target_seconds": 25,
        "megabytes": round(cost.megabytes),
        "target_megabytes": 2_000,
        "resampling_seconds": round(ours, 2),
        "baseline": f"a plain Python resampling loop, extrapolated from {_LOOPED} of {_RESAMPLES:,} resamples",
        "baseline_seconds": round(plain),
        "ratio": round(plain / ours),
        "ratio_of_the_whole_command": round(plain / cost.seconds),
        "target_ratio": 30,
    }
