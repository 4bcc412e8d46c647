"""Is damage to a board seen? Boards are damaged in six ways, and the embedded judge answers the program's own questions
from the frames of each.

    python -m benchmarks.damage STORY.txt [STORY.txt ...]

Every loss is in percentage points of right image-only answers against the whole board, over the same questions, with a
95% interval by resampling stories. Name stories that nobody tuned on: the others prove nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from katha.agents.requests import frame_request
from katha.app.drawing import run_story
from katha.app.reports.page import Run, load_run
from katha.eval_bridge.scoring.controls import blank_board, shuffled_order
from katha.eval_bridge.scoring.intervals import share_interval
from katha.pictures import decode
from katha.protocols import Evidence, JudgePrompt
from katha.schema import Question
from katha_sketch.drawing.rasters import rasterise
from katha_sketch.drawing.renderer import layered_svg
from katha_sketch.reader.sketch_reader import SketchReaderJudge

__all__ = ["Loss", "losses", "main"]

_SEED = 42
_GROUP, _FIGURE = "{http://www.w3.org/2000/svg}g", "character-"


@dataclass(frozen=True)
class _Board:
    """A finished run's board: its frames as PNG and as SVG with a group a figure, and what is asked of it."""

    name: str
    frames: list[bytes]
    layered: list[str]
    size: tuple[int, int]
    questions: list[Question]


@dataclass(frozen=True)
class Loss:
    """What one damage takes, in percentage points; `interval` is None with fewer than two stories."""

    damage: str
    right: float
    loss: float
    interval: tuple[float, float] | None


def _read(run: Run, folder: Path) -> _Board:
    frames = [(folder / frame.image).read_bytes() for frame in run.board.frames]
    size = decode(frames[0]).size
    layered = [layered_svg(frame_request(run.plan, frame, size)) for frame in run.board.frames]
    asked = [one for one in run.story.recoverability_questions if one.role == "reporting" and one.options]
    return _Board(run.story.story_id, frames, layered, size, asked)


def _figures(svg: str) -> list[str]:
    """The names of the figures of a drawing: "fox" for the groups `character-fox` and `character-fox-2`."""
    groups = ElementTree.fromstring(svg).iter(_GROUP)
    return [name.removeprefix(_FIGURE) for group in groups if (name := group.get("id", "")).startswith(_FIGURE)]


def _without(svg: str, figure: str) -> str:
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == _GROUP and child.get("id") == f"{_FIGURE}{figure}":
                parent.remove(child)
    return ElementTree.tostring(root, encoding="unicode")


def _dropped(board: _Board, other: _Board) -> list[bytes]:
    """The board without the figure that is in most frames."""
    figure = Counter(name for svg in board.layered for name in set(_figures(svg))).most_common(1)[0][0]
    return [
        rasterise(_without(svg, figure), *board.size) if figure in _figures(svg) else frame
        for svg, frame in zip(board.layered, board.frames, strict=True)
    ]


def _repeated(board: _Board, other: _Board) -> list[bytes]:
    """The board with the frame before the middle one in its place, too."""
    middle = max(1, len(board.frames) // 2)
    return [*board.frames[:middle], board.frames[middle - 1], *board.frames[middle + 1 :]]


def _shuffled(board: _Board, other: _Board) -> list[bytes]:
    return [board.frames[at] for at in shuffled_order(board.name, len(board.frames), _SEED)]


DAMAGES: Mapping[str, Callable[[_Board, _Board], list[bytes]]] = {
    "repeated frame": _repeated,
    "dropped character": _dropped,
    "shuffled": _shuffled,
    "foreign frames": lambda board, other: (other.frames * len(board.frames))[: len(board.frames)],
    "first frame only": lambda board, other: board.frames[:1] * len(board.frames),
    "blank": lambda board, other: blank_board(board.frames),
}
"""What is done to a board; the second one is another story's."""


def _right(judge: SketchReaderJudge, board: _Board, frames: Sequence[bytes]) -> list[bool]:
    """Return which questions are answered rightly from the frames alone."""
    prompts = [JudgePrompt(one.question, one.question_type, "", tuple(one.options or ())) for one in board.questions]
    replies = judge.ask(Evidence("image", tuple(frames), None), prompts)
    return [reply.answer == one.gold_answer for reply, one in zip(replies, board.questions, strict=True)]


def losses(folders: Sequence[Path]) -> list[Loss]:
    """Return what every damage takes from the boards of finished runs; the first entry is the whole boards'."""
    judge, boards = SketchReaderJudge(), [_read(load_run(folder), folder) for folder in folders]
    stories = [board.name for board in boards for _ in board.questions]
    whole = [hit for board in boards for hit in _right(judge, board, board.frames)]
    found = [Loss("none", 100.0 * sum(whole) / len(whole), 0.0, None)]
    for name, damage in DAMAGES.items():
        others = [*boards[1:], boards[0]]
        hits = [
            hit
            for board, other in zip(boards, others, strict=True)
            for hit in _right(judge, board, damage(board, other))
        ]
        lost = [float(before) - float(after) for before, after in zip(whole, hits, strict=True)]
        found.append(
            Loss(
                name,
                100.0 * sum(hits) / len(hits),
                100.0 * sum(lost) / len(lost),
                share_interval(stories, lost, signed=True),
            )
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the stories' boards, damage them, and print a line a damage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.damage", description=__doc__)
    parser.add_argument("stories", nargs="+", type=Path)
    told = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / path.stem for path in told.stories]
        for path, out in zip(told.stories, runs, strict=True):
            run_story(path, out=out)
        for one in losses(runs):
            low, high = one.interval or (float("nan"), float("nan"))
            print(f"{one.damage:<18} right {one.right:5.1f}   loss {one.loss:5.1f} ({low:.1f} to {high:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
