"""What viewers said of the boards of the ordinary stories: `python -m benchmarks.ordinary_boards [--by condition]`.

`ordinary/viewers.jsonl` has a line for each board and viewer: who saw pictures alone first (answers to the story's free
questions), then the story (a verdict for each frame). The answers were graded by others, who saw neither. Blank fields
count for nothing.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["main", "totals"]

ROWS = Path(__file__).parent / "ordinary" / "viewers.jsonl"


def totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of rows: frames that show their sentences (y, p, n), stories recognised, casts that stay the
    same, questions right, partly and wrong, each with its share."""
    kept = list(rows)
    frames = Counter(verdict for row in kept for verdict in row["frames"])
    grades = Counter(grade for row in kept for grade in row.get("grades", ()))
    asked, shown = sum(grades.values()), sum(frames.values())
    return {
        "boards seen": len(kept),
        "frames yes / partly / no": [frames[verdict] for verdict in "ypn"],
        "frames yes": round(frames["y"] / shown, 3) if shown else None,
        "frames no": round(frames["n"] / shown, 3) if shown else None,
        "that story": f"{sum(row['that_story'] == 'yes' for row in kept)} of {len(kept)}",
        "cast constant": f"{sum(row['cast_constant'] == 'yes' for row in kept)} of {len(kept)}",
        "questions right / partly / wrong": [grades[grade] for grade in ("right", "partly", "wrong")],
        "questions right": round(grades["right"] / asked, 3) if asked else None,
    }


def main(words: Sequence[str] | None = None) -> None:
    """Print the counts as JSON, all together and by what is asked for."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--by", choices=("story", "style", "condition"), default="style")
    given.add_argument("--stories", default="", help="these alone, with commas")
    given.add_argument("--rows", type=Path, default=ROWS)
    told = given.parse_args(words)
    chosen = {name for name in told.stories.split(",") if name}
    read = [json.loads(line) for line in told.rows.read_text("utf-8").splitlines()]
    rows = [row for row in read if not chosen or row["story"] in chosen]
    parts = sorted({str(row.get(told.by, "")) for row in rows})
    found = {part: totals(row for row in rows if str(row.get(told.by, "")) == part) for part in parts}
    print(json.dumps({"all": totals(rows), **found}, indent=1))


if __name__ == "__main__":
    main()
