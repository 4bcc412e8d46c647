"""Run all benchmarks, or those that are named."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from benchmarks import (
    asking,
    cluster,
    desk,
    diffusion,
    embedded_run,
    gpu,
    guesses,
    inference,
    intervals,
    metrics,
    orchestration,
    people,
    prefix_reuse,
    scoring,
    shared_attention,
    startup,
    suite,
    tuning,
)

ALL: dict[str, Callable[[], dict[str, Any]]] = {
    "startup": startup.measure,
    "diffusion_prompts": diffusion.measure_prompts,
    "diffusion_shapes": diffusion.measure_shapes,
    "diffusion_work": diffusion.measure_work,
    "gpu": gpu.measure,
    "guesses": guesses.measure,
    "embedded_run": embedded_run.measure,
    "orchestration": orchestration.measure,
    "prefix_reuse": prefix_reuse.measure,
    "scoring": scoring.measure,
    "tune": tuning.measure,
    "inference": inference.measure,
    "intervals": intervals.measure,
    "length_suite": suite.measure,
    "sharing_memory": shared_attention.measure_memory,
    "sharing_overhead": shared_attention.measure_overhead,
    "sharing_shapes": shared_attention.measure_shapes,
    "asking": asking.measure,
    "people": people.measure,
    "metrics": metrics.measure,
    "workers": cluster.measure,
    "workers_drawing": cluster.drawing,
    "workers_memory": cluster.memory,
    "workers_vendors": cluster.vendors,
    "devices": cluster.simulate,
    "desk": desk.measure,
}


def main() -> None:
    """Print one line a benchmark."""
    unknown = sorted(set(sys.argv[1:]) - set(ALL))
    if unknown:
        sys.exit(f"No benchmark is called {unknown[0]!r}. Known: {', '.join(ALL)}.")
    for name in sys.argv[1:] or list(ALL):
        print(json.dumps({"benchmark": name, **ALL[name]()}), flush=True)


if __name__ == "__main__":
    main()
