"""The work of a finished run again as a bare loop: draw each candidate, ask each question. Nothing is kept."""

from __future__ import annotations

import sys
from pathlib import Path

from katha.app.reports.page import Run, load_run
from katha.protocols import Evidence, FrameRequest, JudgePrompt
from katha.schema import Condition, Frame
from katha_sketch.drawing import SketchRenderer
from katha_sketch.reader.sketch_reader import SketchReaderJudge

__all__ = ["replay"]


def _draw(run: Run) -> dict[str, bytes]:
    renderer = SketchRenderer()
    width, height = renderer.capabilities.default_size
    frames = {frame.sha256: frame for item in run.candidates.candidates for frame in item.board.frames}
    images: dict[str, bytes] = {}
    for sha256, frame in frames.items():
        request = FrameRequest(frame.prompt, frame.seed, width, height)
        images[sha256] = next(iter(renderer.render_board([request])))
    return images


def _shown(frames: list[Frame], method: str) -> list[str]:
    """The hashes that were shown under `method`: the whole board, or the frames of one transition."""
    _, _, place = method.partition("/transition:")
    if not place:
        return [frame.sha256 for frame in frames]
    pair = tuple(int(part) for part in place.split("-"))
    return [frame.sha256 for frame in frames if frame.scene in pair or frame.transition == pair]


def _ask(run: Run, images: dict[str, bytes]) -> int:
    judge = SketchReaderJudge()
    boards = {item.name: item.board.frames for item in run.candidates.candidates}
    boards |= {"base": run.candidates.candidates[0].board.frames, run.board.mode: run.board.frames}
    questions = {item.question_id: item for item in run.story.recoverability_questions}
    groups: dict[tuple[str, Condition], list[JudgePrompt]] = {}
    for answer in run.answers:
        question = questions[answer.question_id]
        prompt = JudgePrompt(question.question, question.question_type, "", tuple(question.options or ()) or None)
        groups.setdefault((answer.method or "base", answer.condition), []).append(prompt)
    asked = 0
    for (method, condition), prompts in groups.items():
        shown = (
            () if condition == "text" else tuple(images[name] for name in _shown(boards[method.split("/")[0]], method))
        )
        evidence = Evidence(condition, shown, None if condition == "image" else run.story.story_text)
        asked += len(list(judge.ask(evidence, prompts)))
    return asked


def replay(folder: Path) -> int:
    """Draw and ask again what the run in `folder` drew and asked; the number of questions asked."""
    run = load_run(folder)
    return _ask(run, _draw(run))


if __name__ == "__main__":
    print(replay(Path(sys.argv[1])))
