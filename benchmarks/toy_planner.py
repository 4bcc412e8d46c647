"""A toy of Gemma-ST trained end to end: `python -m benchmarks.toy_planner OUT`, on any machine, without weights.

A Gemma 3 with random weights and two layers learns the gold plans of eight of the ten examples and is measured on the
other two; the card is `OUT/adapter/README.md`. It shows that the training runs, and nothing about planning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from katha.app.cli.main import app
from katha.jsonio import loads
from tests.support.tiny_gemma import build_gemma

EXAMPLES = Path(__file__).parents[1] / "examples"


def main(out: Path) -> None:
    """Train the toy into `out` and print its card."""
    found = [loads(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.json"))]
    rows = [row for row in found if isinstance(row, dict) and row.get("scenes") and row.get("transitions")]
    for place, row in enumerate(rows):
        row["split"] = "validation" if place % 5 == 4 else "train"
    texts = [json.dumps(row) for row in rows]
    out.mkdir(parents=True, exist_ok=True)
    stories = out / "stories.jsonl"
    stories.write_text("\n".join(texts) + "\n", encoding="utf-8")
    base = build_gemma(out / "base", texts * 2, size=1500, hidden=128)
    words = ["train", "planner", str(stories), "--base", str(base), "--out", str(out / "adapter"), "--device", "cpu"]
    words += ["--steps", "120", "--batch", "1", "--accumulation", "1", "--learning-rate", "0.002", "--plans", "2"]
    app([*words, "--max-length", "6000"], standalone_mode=False)
    print((out / "adapter" / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/toy_planner"))
