"""One ablation with doubles that log what they do, printing a line an event; the kill test stops it anywhere.

Usage: ablation_kill_child.py OUT LOGS. `KATHA_CACHE` names the cache.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from doubles import BlockRenderer, PixelJudge, plugins, story

from katha.compass.modes import load_suite
from katha.config import RunConfig
from katha.experiments.ablate.folder import AblationJob
from katha.experiments.ablate.runner import run_ablation


def main(out: Path, logs: Path) -> None:
    """Two rows over two stories."""
    logs.mkdir(exist_ok=True)
    made = plugins(renderer=BlockRenderer(log=logs / "frames"), judges={"pixel": PixelJudge(log=logs / "answers")})
    config = RunConfig(planner="scenes", renderer="block", judges=("pixel",), compass={"repair_threshold": 1.0})
    records = [story("first"), story("second")]
    job = AblationJob(records, load_suite("length").only(("base", "full")), config, given=made, resamples=10)
    print("begin", flush=True)
    run_ablation(job, out, on_event=lambda event: print(event, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
