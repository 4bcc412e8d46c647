"""Makes the gallery again from the recorded boards: `python -m docs.make_gallery`, from the root of a checkout.

Each folder of `examples/recorded` is replayed; its sheet goes into `docs/images`, and the page says what it took, as
`benchmarks.drawn` counts it. What a program cannot count (who wrote the story, what kind it is) is in `boards.yaml`.
"""

# ruff: noqa: E501
from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.drawn import Taken, what_it_took
from katha import run_story
from katha.app.reports.page import load_run
from katha.app.reports.sheet import write_sheet
from katha.schema import Board

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "examples" / "recorded"
IMAGES, PAGE = ROOT / "docs" / "images", ROOT / "docs" / "gallery.md"
_HEAD = """# Gallery

Boards that a language model planned and drew as SVG (`--renderer vector:MODEL`), each from the text alone, in one conversation, without a person's hand. Each folder of `examples/recorded` has the story, the
model's recorded replies and the board's hashes; a test draws every one of them again, with the same bytes:

```bash
R=examples/recorded/the_coat_in_the_barley
katha run $R/story.json --replay $R/board.katha --out out/barley
```

The stories are by authors (language models) who had seen neither katha nor a board. The boards were planned and drawn on {date} by a frontier language model that had never seen katha and was reached through a relay:
each planner and each draughtsman was a fresh instance, and knew of no other.
"""
_TABLE = """## What a board takes

Counted from the recordings (`python -m benchmarks.drawn RECORDING...`). Tokens are counted from the text: digits in threes, letters in sixes, other signs one by one.

| board | frames | calls | tokens out for the drawing | of that the cast | median frame | frames that the checks sent back | could not be used |
|---|---|---|---|---|---|---|---|
"""


def _drawn(name: str, out: Path) -> Board:
    """Replay a board, and draw its sheet."""
    place = RECORDED / name
    (story,) = (path for path in place.iterdir() if path.stem == "story")
    result = run_story(story, out=out / name, replay=place / "board.katha")
    made = load_run(result.out)
    write_sheet(made.board, result.out, IMAGES / f"{name}.png", made.plan, ())
    return made.board


def _about(name: str, row: dict[str, Any], board: Board) -> str:
    title = row["title"]
    style = f" Style: `{row['style']}`." if row.get("style") else ""
    bridges = [frame.index for frame in board.frames if frame.kind == "bridge"]
    bridge = (
        f" Frame {bridges[0]} is a bridge that the judge's answers asked for and the repair kept." if bridges else ""
    )
    return f"""
## {title}

![{title}: the frames with the sentences that they stand for](images/{name}.png)

{row["about"]}{style}{bridge} (`examples/recorded/{name}`)
"""


def _row(title: str, taken: Taken) -> str:
    calls, sent = sum(taken.calls.values()), f"{taken.returned} of {taken.frames}"
    numbers = (taken.frames, calls, f"{taken.out:,}", f"{taken.cast:,}", f"{taken.frame:,.0f}", sent, taken.unusable)
    return f"| {' | '.join(map(str, (title, *numbers)))} |\n"


def main() -> None:
    """Write the pictures and the page."""
    told = yaml.safe_load((RECORDED / "boards.yaml").read_text("utf-8"))
    taken = {name: what_it_took(RECORDED / name / "board.katha") for name in told["boards"]}
    parts = [_HEAD.format(date=told["date"])]
    with tempfile.TemporaryDirectory() as work:
        parts += [_about(name, row, _drawn(name, Path(work))) for name, row in told["boards"].items()]
    parts += ["\n", _TABLE, *(_row(told["boards"][name]["title"], one) for name, one in taken.items())]
    out, frame = median(one.out for one in taken.values()), median(one.frame for one in taken.values())
    parts.append(f"\nMedian board: {out:,.0f} tokens; median frame: {frame:,.0f}.\n")
    PAGE.write_text("".join(parts), "utf-8")


if __name__ == "__main__":
    main()
