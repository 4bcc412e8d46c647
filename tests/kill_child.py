"""One run with doubles that log what they do, printing a line an event; the kill test stops it anywhere.

Usage: kill_child.py OUT LOGS MODE. `KATHA_CACHE` names the cache.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from doubles import BlockRenderer, PixelJudge, plugins, story

from katha.agents.run import run_story
from katha.config import RunConfig


def main(out: Path, logs: Path, mode: str) -> None:
    """Run the story of the doubles."""
    logs.mkdir(exist_ok=True)
    made = plugins(
        renderer=BlockRenderer(log=logs / "frames"),
        judges={"pixel": PixelJudge(log=logs / "answers")},
    )
    config = RunConfig(planner="scenes", renderer="block", judges=("pixel",), mode=mode)
    print("begin", flush=True)
    run_story(story(), config, out, plugins=made, on_event=lambda event: print(event, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
