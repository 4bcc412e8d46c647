"""`katha --help`: the whole process, beside one that only imports Typer and Rich."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.processes import median_cost, run, script

__all__ = ["measure"]

_RUNS = 9
_TARGET_SECONDS = 0.5


def measure() -> dict[str, Any]:
    """Median of nine processes each, taken in turn after one warm-up."""
    help_page = [script("katha"), "--help"]
    baseline = [sys.executable, "-c", "import typer, rich.console"]
    run(help_page)
    run(baseline)
    pairs = [(run(help_page), run(baseline)) for _ in range(_RUNS)]
    ours, theirs = median_cost([pair[0] for pair in pairs]), median_cost([pair[1] for pair in pairs])
    return {
        "seconds": round(ours.seconds, 3),
        "target_seconds": _TARGET_SECONDS,
        "baseline": "python -c 'import typer, rich.console'",
        "baseline_seconds": round(theirs.seconds, 3),
        "ratio": round(ours.seconds / theirs.seconds, 2),
    }
