"""What recorded boards took: calls, tokens and repairs, counted from the recordings alone.

    python -m benchmarks.drawn RECORDING...

Tokens are counted from the text (digits in threes, letters in sixes, other signs one by one), whatever the server said.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from katha.models.recordings import Kept, last_words, read_recording

__all__ = ["Taken", "tokens_of", "what_it_took"]

_TOKEN = re.compile(r"\d{1,3}|[A-Za-z]{1,6}|[^\sA-Za-z\d]")
_KINDS = {
    "plan": "You plan a storyboard",
    "mending of the plan": "Your plan",
    "cast": "You are the illustrator",
    "look at the cast": "This is how the cast",
    "frame": "Draw frame",
    "look at a frame": "This is how",
    "sheet": "This is the whole board",
}
_FOUND = "A program found:"


@dataclass(frozen=True)
class Taken:
    """What one board took. calls: by kind. out: tokens of all replies for the drawing. cast, frame: of the cast's first
    reply and of the median frame's, looks left out. returned: first frames that the checks sent back with a fault.
    unusable: drawings that could not be drawn at all."""

    calls: dict[str, int]
    out: int
    cast: int
    frame: float
    frames: int
    returned: int
    unusable: int


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has."""
    return len(_TOKEN.findall(text))


def _kind(kept: Kept) -> str:
    said = last_words(kept.call.request)
    return next((kind for kind, begin in _KINDS.items() if said.startswith(begin)), "other")


def what_it_took(recording: Path) -> Taken:
    """Return what a recorded board took."""
    read = read_recording(recording)
    found = [kept for key in read.lines if (kept := read.get(key)) is not None]
    by: dict[str, list[Kept]] = {}
    for kept in found:
        by.setdefault(_kind(kept), []).append(kept)
    drawing = [
        kept for kind in ("cast", "look at the cast", "frame", "look at a frame", "sheet") for kept in by.get(kind, ())
    ]
    frames = [tokens_of(kept.reply.received.text) for kept in by.get("frame", ())]
    looks = [last_words(kept.call.request) for kept in by.get("look at a frame", ())]
    return Taken(
        {kind: len(kept) for kind, kept in by.items()},
        sum(tokens_of(kept.reply.received.text) for kept in drawing),
        sum(tokens_of(kept.reply.received.text) for kept in by.get("cast", ())),
        median(frames) if frames else 0.0,
        len(frames),
        sum(_FOUND in said for said in looks),
        sum(last_words(kept.call.request).startswith(_FOUND) for kept in found),
    )


def _summary(taken: Iterable[Taken]) -> dict[str, float]:
    rows = list(taken)
    frames = sum(row.frames for row in rows)
    return {
        "boards": len(rows),
        "frames": frames,
        "median tokens out of a board": median(row.out for row in rows),
        "most tokens out of a board": max(row.out for row in rows),
        "median tokens of a frame": median(row.frame for row in rows),
        "frames sent back by the checks": sum(row.returned for row in rows),
        "drawings that could not be used": sum(row.unusable for row in rows),
        "calls of a board, median": median(sum(row.calls.values()) for row in rows),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Print what each recording took, and all together, as JSON."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("recordings", nargs="+", type=Path)
    paths = given.parse_args(words).recordings
    taken = {str(path): what_it_took(path) for path in paths}
    print(
        json.dumps(
            {"each": {name: asdict(row) for name, row in taken.items()}, "all": _summary(taken.values())}, indent=2
        )
    )


if __name__ == "__main__":
    main()
