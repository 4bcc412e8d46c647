"""The whole embedded run of one story in a cold process with an empty cache, beside a bare loop in a cold process.

The bare loop imports the same renderer and judge, draws the same frames and asks the same questions: no graph, no
store, no report.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.processes import Cost, median_cost, run, script

__all__ = ["measure"]

_RUNS = 3
_STORY = Path(__file__).parents[1] / "examples" / "lion_and_mouse.txt"
_TARGET_SECONDS = 8.0
_TARGET_MEGABYTES = 600.0


def measure() -> dict[str, Any]:
    """Median of three cold runs each, taken in turn."""
    costs: list[tuple[Cost, Cost]] = []
    for _ in range(_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            whole = run([script("katha"), "run", str(_STORY), "--out", str(out)], {"KATHA_CACHE": f"{folder}/cache"})
            bare = run([sys.executable, "-m", "benchmarks.bare_loop", str(out)])
            costs.append((whole, bare))
    whole, bare = median_cost([pair[0] for pair in costs]), median_cost([pair[1] for pair in costs])
    return {
        "seconds": round(whole.seconds, 2),
        "target_seconds": _TARGET_SECONDS,
        "processor_seconds": round(whole.cpu_seconds, 2),
        "megabytes": round(whole.megabytes),
        "target_megabytes": _TARGET_MEGABYTES,
        "baseline": "the same frames and questions in a bare Python loop, cold process",
        "baseline_seconds": round(bare.seconds, 2),
        "baseline_processor_seconds": round(bare.cpu_seconds, 2),
        "baseline_megabytes": round(bare.megabytes),
        "ratio": round(whole.seconds / bare.seconds, 2),
        "processor_ratio": round(whole.cpu_seconds / bare.cpu_seconds, 2),
    }
