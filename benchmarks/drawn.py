"""What recorded boards took: calls, tokens and repairs, counted from the recordings alone.

    python -m benchmarks.drawn RECORDING...
    python -m benchmarks.drawn RECORDING... --checks

Tokens are counted from the text (digits in threes, letters in sixes, other signs one by one), whatever the server said.
--checks: what today's checks say of the first reply of every cast and frame, as far as the prompt tells what was asked.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from katha.configs import load_config
from katha.models.recordings import Kept, last_words, read_recording
from katha.renderers.vector.checks import Gap, cast_faults, frame_faults
from katha.renderers.vector.faces import Doubt
from katha.renderers.vector.patches import find_svg
from katha.renderers.vector.svg import DrawingFault, read_svg

__all__ = ["Checked", "Taken", "checked", "tokens_of", "what_it_took"]

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
_PLAN = "THE PLAN\n"
_CAST_LINE = re.compile(r"^- ([a-z]{2}): (.*)$", re.MULTILINE)
_HEADS = re.compile(r"; heads: ([^;\n]*)")
_SIZE = re.compile(r"each (\d+) x (\d+)")
_GROUP = re.compile(r'^- id="([^"]+)": ', re.MULTILINE)
_FRAME = re.compile(r"Draw frame (\d+) of")
_SHOT = re.compile(r"^Shot: ([\w-]+)", re.MULTILINE)
_SEEN = re.compile(r"^What is seen: (.*)$", re.MULTILINE)
_PICTURED = re.compile(r"^- ([^:\n]+): [^\n]*\bonly in\b", re.MULTILINE)
_WHAT = {
    "a face is covered": "covered by what is drawn later",
    "a face is too small": "The largest face",
    "a small part is see-through": "see-through",
    "a character is not made of the cast's parts": "No part of",
    "much of it is outside": "inside the picture",
    "it is too small or hidden": "of the picture's pixels",
    "an id that nothing has": "Nothing has the ids",
    "a head of the cast is missing": " lacks ",
}


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


@dataclass(frozen=True)
class Checked:
    """What today's checks say of a first reply. kind: cast or frame. back: the kinds of fault for which it goes back.
    doubts: of what is told where the model looks anyway. mended: of what the program makes right."""

    kind: str
    back: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


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


def checked(recording: Path) -> Iterator[Checked]:
    """Yield what today's checks say of the first reply of each cast and frame of a recording."""
    read = read_recording(recording)
    for key in read.lines:
        kept = read.get(key)
        said = _said(kept) if kept is not None else []
        kind = next((name for name, begins in _FIRST.items() if said and said[-1].startswith(begins)), None)
        if kept is None or kind is None or _PLAN not in said[0]:
            continue
        reply = kept.reply.received.text
        try:
            found, mended = _found(kind, said, find_svg(reply) or reply)
        except DrawingFault:
            yield Checked(kind, ("it cannot be drawn",))
            continue
        groups: tuple[list[str], list[str]] = ([], [])
        for fault in found:
            what = next((name for name, words in _WHAT.items() if words in fault), fault)
            if isinstance(fault, Gap):
                mended.append(what)
            else:
                groups[isinstance(fault, Doubt)].append(what)
        yield Checked(kind, *(tuple(dict.fromkeys(rows)) for rows in (*groups, mended)))


_FIRST = {"cast": "You are the illustrator", "frame": "Draw "}


def _said(kept: Kept) -> list[str]:
    """Return the texts of a conversation, without a system's."""
    messages = kept.call.request.get("messages", [])
    texts = (one["content"] for one in messages if one["role"] != "system")
    return [one if isinstance(one, str) else "\n".join(part.get("text", "") for part in one) for one in texts]


def _found(kind: str, said: Sequence[str], source: str) -> tuple[list[str], list[str]]:
    """Return the faults of a drawing, and what the reader mended. said: the texts up to what asked for it."""
    most = {name: load_config("vector.yaml")["contracts"]["full"][f"{name}_bytes"] * 2 for name in ("cast", "frame")}
    plan, prefixes, moods = _asked(said[0])
    drawing = read_svg(source, most_bytes=most[kind])
    mended = ["a curve lacks numbers"] if drawing.mended else []
    if kind == "cast":
        moody = {one["name"] for panel in plan["panels"] for one in panel.get("state", ()) if one.get("mood")}
        things = {prefix for name, prefix in prefixes.items() if name not in moody}
        return cast_faults(drawing, prefixes=prefixes, moods=moods, things=things), mended
    cast, ask = read_svg(find_svg(said[1]) or said[1], most_bytes=most["cast"]), said[-1]
    number, size = _FRAME.match(ask), _SIZE.search(said[0])
    seen, shot = _SEEN.search(ask), _SHOT.search(ask)
    panel = next((one for one in plan["panels"] if number is not None and one["index"] == int(number[1])), None)
    told = seen[1].lower() if seen is not None else ""
    names = panel.get("characters", []) if panel is not None else [name for name in prefixes if name.lower() in told]
    faults = frame_faults(
        drawing,
        cast,
        size=(int(size[1]), int(size[2])) if size is not None else (1280, 720),
        characters={name: prefix for name, prefix in prefixes.items() if name in names},
        groups=_GROUP.findall(ask),
        shot=panel.get("shot_size", "") if panel is not None else shot[1] if shot is not None else "",
        pictured=set(_PICTURED.findall(ask)),
    )
    return faults, mended


def _asked(opening: str) -> tuple[Mapping[str, Any], dict[str, str], dict[str, list[str]]]:
    """Return the plan of an opening, the prefixes of its characters, and the moods of their heads."""
    plan = json.JSONDecoder().raw_decode(opening.split(_PLAN, 1)[1])[0]
    names = sorted((one["name"] for one in plan.get("characters", ())), key=len, reverse=True)
    prefixes, moods = dict[str, str](), dict[str, list[str]]()
    for prefix, told in _CAST_LINE.findall(opening):
        name = next((name for name in names if told == name or told.startswith((f"{name},", f"{name};"))), None)
        heads = _HEADS.search(told)
        if name is not None:
            prefixes[name] = prefix
            moods |= {prefix: heads[1].split(", ")} if heads is not None else {}
    return plan, prefixes, moods


def _told(rows: Sequence[Checked]) -> dict[str, Any]:
    """Return how many go back, by kind of reply and of fault, and what is doubted and mended."""
    return {
        kind: {
            "replies": len(own),
            "sent back": sum(bool(row.back) for row in own),
            "share": round(sum(bool(row.back) for row in own) / len(own), 3),
            "sent back for": dict(Counter(what for row in own for what in row.back)),
            "doubted": dict(Counter(what for row in own for what in row.doubts)),
            "mended by the program": dict(Counter(what for row in own for what in row.mended)),
        }
        for kind in _FIRST
        if (own := [row for row in rows if row.kind == kind])
    }


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
    given.add_argument("--checks", action="store_true")
    asked = given.parse_args(words)
    paths = asked.recordings
    if asked.checks:
        print(json.dumps(_told([row for path in paths for row in checked(path)]), indent=2))
        return
    taken = {str(path): what_it_took(path) for path in paths}
    print(
        json.dumps(
            {"each": {name: asdict(row) for name, row in taken.items()}, "all": _summary(taken.values())}, indent=2
        )
    )


if __name__ == "__main__":
    main()
