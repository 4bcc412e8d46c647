"""`katha score` on a full benchmark: 5,000 stories, 28,712 questions, 5 judges, 2 methods, 10,000 resamples.

The whole process is timed, reading 861,360 rows included. The baseline is the bootstrap alone, as a plain Python loop
over the same counts; a few resamples are run, compared with ours, and the rest extrapolated (every resample does the
same work). Ratios are of processor time.
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
from benchmarks.synthetic import stories
from katha.eval_bridge.judging.answers import iter_answers
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, collect
from katha.eval_bridge.scoring.statistics import Floats, replicates, story_counts
from katha.jsonio import canonical
from katha.schema import CONDITIONS, DIMENSIONS
from katha.stories import iter_records

__all__ = ["measure"]

_JUDGES = tuple(f"judge{number}" for number in range(1, 6))
_METHODS = ("base", "full")
_RIGHT = {"text": 0.92, "image": 0.62, "text+image": 0.9}
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


def _counts(told: Path, given: Path) -> Floats:
    """The very counts that the command resamples: (methods x judges x blocks, stories, dimensions, 4)."""
    out = collect(iter_records(told), iter_answers(given), matching="lemma-set", selection="all")
    right, scored = out.cells == RIGHT, (out.cells != MISSING).all(axis=2)
    valid = scored & right[:, :, CONDITIONS.index("text+image")]
    cell_of, common = out.story_of * len(DIMENSIONS) + out.dimension_of, valid.all(axis=0)
    return np.array(
        [
            story_counts(right[m, j], mask, cell_of, len(out.stories))
            for m in range(len(out.methods))
            for j in range(len(out.judges))
            for mask in (scored[m, j], valid[m, j], common[j])
        ]
    )


def _plain_loop(counts: list[Any], draws: list[list[int]]) -> list[list[list[float]]]:
    """The same replicates, one story and one count at a time."""
    found = []
    for drawn in draws:
        row = []
        for block in counts:
            totals = [[0.0] * 4 for _ in DIMENSIONS]
            for story in drawn:
                for total, cell in zip(totals, block[story], strict=True):
                    for at in range(4):
                        total[at] += cell[at]
            present = [total for total in totals if total[0]]
            row.append([sum(total[1 + at] / total[0] for total in present) / len(present) for at in range(3)])
        found.append(row)
    return found


def _resampling(counts: Floats) -> tuple[float, float, bool]:
    """Processor seconds of 10,000 resamples, ours and the plain loop's (extrapolated), and whether they agree."""
    start = time.process_time()
    made = replicates(counts, _RESAMPLES, 42)
    ours = time.process_time() - start
    stories = counts.shape[1]
    draws = np.random.default_rng(42).integers(0, stories, (_LOOPED, stories)).tolist()
    lists = counts.tolist()
    start = time.process_time()
    looped = _plain_loop(lists, draws)
    plain = (time.process_time() - start) * _RESAMPLES / _LOOPED
    return ours, plain, bool(np.allclose(made[:_LOOPED], np.array(looped), rtol=0, atol=1e-12))


def measure() -> dict[str, Any]:
    """One run of the command after the archive is written, then both ways to resample its counts."""
    with tempfile.TemporaryDirectory() as name:
        told, given, rows = _write(Path(name))
        command = [script("katha"), "score", str(told), "--answers", str(given), "--out", str(Path(name) / "s.json")]
        cost = run(command, _THREADS)
        ours, plain, same = _resampling(_counts(told, given))
    return {
        "rows": rows,
        "seconds": round(cost.seconds, 1),
        "cpu_seconds": round(cost.cpu_seconds, 1),
        "target_seconds": 25,
        "megabytes": round(cost.megabytes),
        "target_megabytes": 2_000,
        "resampling_cpu_seconds": round(ours, 2),
        "baseline": f"a plain Python loop over the same counts, from {_LOOPED} of {_RESAMPLES:,} resamples",
        "baseline_cpu_seconds": round(plain),
        "same_replicates": same,
        "ratio": round(plain / ours),
        "ratio_of_the_whole_command": round(plain / cost.cpu_seconds),
        "target_ratio": 30,
    }
