"""One frame of a finished run drawn again: every other frame keeps its bytes, and only what depends on it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from katha.agents.boards import board_requests
from katha.agents.context import Plugins, RunContext, load_plugins, require_memory
from katha.agents.critique import judge_boards, measure, write_results
from katha.agents.folder import RunFolder, RunRecord
from katha.agents.frames import redraw
from katha.agents.run import finish, load_outcome, load_result
from katha.agents.state import Emit, RunResult, ignore_event
from katha.config import RunConfig, cache_folder
from katha.errors import JudgeError, OutputFolderError, UsageError
from katha.schema import Answer, Board, Candidate, Candidates, Event, Frame
from katha.store import Store


def redo_frame(
    run: Path,
    frame: int,
    seed: int,
    on_event: Emit | None = None,
    *,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RunResult:
    """Draw frame number `frame` (from 1) of the storyboard in `run` with `seed`; the old version goes to `versions/`.

    changes: settings that go over the run's own and change no picture (`memory`, options of the renderers).

    A call that was killed leaves the old version or the new one; the same call again finishes it.

    Raises:
        UsageError: there is no such frame. OutputFolderError: `run` is no finished run, or its plug-ins have changed.
        JudgeError: questions about the new frame got no answer; the run is as it was.
    """
    if not run.exists():
        raise OutputFolderError(f"There is no folder {str(run)!r}.", hint="Name the folder of a finished run.")
    folder = RunFolder(run)
    emit = on_event or ignore_event
    with folder.claim():
        folder.restore()
        state = _finished(folder)
        config = RunConfig.model_validate(state.config).with_plugins(**changes or {})
        require_memory((changes or {}).get("memory"), [config.renderer, config.bridge_renderer])
        made = plugins or load_plugins(config)
        folder.resume(state.model_copy(update=made.specs()))
        with Store(cache_folder(), owner=state.run_id) as store:
            context = RunContext.open(folder.load_story(), config, made, store, folder)
            return _redo(context, folder, state, (frame, seed), emit)


def _finished(folder: RunFolder) -> RunRecord:
    state = folder.read()
    if state is None or state.status == "running" or load_outcome(folder).failed:
        raise OutputFolderError(
            f"{str(folder.path)!r} holds no finished run.", hint="Finish it first: run the same `katha run` again."
        )
    return state


def _redo(context: RunContext, folder: RunFolder, state: RunRecord, asked: tuple[int, int], emit: Emit) -> RunResult:
    """Draw frame number `asked[0]` again with the seed `asked[1]`, between a version that is kept and its commit."""
    (number, seed), before = asked, load_result(folder, reused=False)
    frames = before.board.frames
    if not 1 <= number <= len(frames):
        raise UsageError(f"There is no frame {number}.", hint=f"The storyboard has frames 1 to {len(frames)}.")
    context.plan(before.board.plan_sha256)
    old = frames[number - 1]
    emit(Event(stage="render", kind="started", total=1))
    board = _with_frame(context, before.board, old, seed, emit)
    emit(Event(stage="render", kind="finished"))
    if board.frames == frames:
        return load_result(folder, reused=True)
    name = f"redo:{number}:{seed}"
    version = folder.keep_version(len(state.redone) + 1)
    candidate = measure(context, name, board.model_copy(update={"method": name}), emit)
    final = board.model_copy(update={"method": context.mode.name})
    candidates = _replaced(before.candidates, candidate, old, seed)
    judge_boards(context, {context.mode.name: final}, emit, text=False)
    write_results(context, candidates, final, _kept(candidates))
    emit(Event(stage="decide", kind="decision", message=candidates.decision.reason))
    outcome = load_outcome(folder, context.engine.outcome.outcome().first)
    if outcome.failed:
        folder.restore()
        raise JudgeError(f"Frame {number} stays as it was. {' '.join(map(str.strip, outcome.sentences()))}")
    redone = [*state.redone, {"frame": number, "seed": seed, "version": version}]
    result = finish(context, folder, state.model_copy(update={"redone": redone}))
    folder.commit_version()
    return result


def _with_frame(context: RunContext, board: Board, old: Frame, seed: int, emit: Emit) -> Board:
    """`board` with frame `old` drawn again; the others are untouched."""
    requests = board_requests(context, board)
    request = replace(requests.pop(old.index - 1), seed=seed)
    around = board.model_copy(update={"frames": [frame for frame in board.frames if frame.index != old.index]})
    drawn, sha256 = redraw(context, request, around, requests, old.index - 1, emit)
    new = old.model_copy(update={"seed": drawn.seed, "sha256": sha256, "image": f"panels/{sha256}.png"})
    return board.model_copy(update={"frames": [new if frame.index == old.index else frame for frame in board.frames]})


def _replaced(candidates: Candidates, new: Candidate, old: Frame, seed: int) -> Candidates:
    """`candidates` with `new` as the board that the decision leaves, and a sentence on how it came about."""
    decision = candidates.decision
    role = "inserted" if decision.accepted else "selected"
    former = (decision.inserted if decision.accepted else decision.selected) or decision.selected
    total = next(item.score.total for item in candidates.candidates if item.name == former)
    sentence = (
        f"Then frame {old.index} was drawn again by hand with seed {seed} instead of {old.seed}; "
        f"the score went from {total:.3f} to {new.score.total:.3f}."
    )
    kept = [item for item in candidates.candidates if item.name != new.name and not _is_redo(item.name)]
    changed = decision.model_copy(update={role: new.name, "reason": f"{decision.reason} {sentence}"})
    return candidates.model_copy(update={"candidates": [*kept, new], "decision": changed})


def _is_redo(name: str) -> bool:
    return name.startswith("redo:")


def _kept(candidates: Candidates) -> Callable[[Answer], bool]:
    """Whether a row of the log belongs to a board that is still part of the run."""
    names = {item.name for item in candidates.candidates}

    def keep(row: Answer) -> bool:
        return row.role == "reporting" or row.method is None or row.method.split("/")[0] in names

    return keep
