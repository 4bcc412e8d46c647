"""One story, from its text to a finished run's folder: begin, go on after a kill, or find that all is done; and one
frame of a finished run drawn again, where every other frame keeps its bytes and only what depends on it is judged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command
from pydantic import ValidationError

from katha.agents.context import Plugins, RunContext, check_able, check_plan, load_plugins, require_memory
from katha.agents.critique import judge_boards, measure, write_results
from katha.agents.folder import RunFolder, RunRecord, by_service, new_record, paid
from katha.agents.frames import board_requests, draw_inserted, draw_scenes, together
from katha.agents.graph import Graph, build_graph, check_choice, review_request
from katha.agents.state import CHECKPOINTED, Emit, ReviewChoice, ReviewRequest, RunResult, RunState, ignore_event
from katha.config import Settings, cache_folder, read_settings, refuse_code
from katha.errors import InputFileError, JudgeError, OutputFolderError, StoreError, UsageError
from katha.eval_bridge.judging.answers import Cause, Outcome, outcome_of
from katha.jsonio import read_json
from katha.schema import Answer, Board, Candidate, Candidates, Event, Frame, Plan, StoryRecord
from katha.schema.scores import Scores
from katha.store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import StreamMode

Review = Callable[[ReviewRequest], ReviewChoice]
_SEED_NOTE = "In an ablation this mode reports the mean over the seeds; these numbers are the first seed's."
_THREAD = "{run_id}/records"
"""The checkpoints' thread. The name changes with the form of the state: a run that an older katha left half done then
begins anew, and finds everything that it paid for in the cache."""


def run_story(
    record: StoryRecord,
    config: Settings,
    out: Path,
    *,
    plan: Plan | None = None,
    on_event: Emit | None = None,
    review: Review | None = None,
    plugins: Plugins | None = None,
) -> RunResult:
    """Draw `record` by `config` into the folder `out`, measure it, repair it, and leave the run's files there.

    The same call again is a no-op. After a kill it goes on where it stopped, pays for nothing twice, and ends with the
    same storyboard, scores and panels. `plan` is drawn instead of the planner's; `plugins` replaces the named ones.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`).
        RenderError, JudgeError, StoreError: the work failed; call again to go on.
    """
    if plan is not None:
        check_plan(plan, record, config)
    if config.review and review is None:
        raise UsageError("A run with review needs a person to ask.", hint="Leave --review out.")
    made = plugins or load_plugins(config)
    check_able(config, made)
    folder = RunFolder(out)
    fresh = new_record(record, config, made.specs(), plan)
    with folder.claim():
        folder.restore()
        known = folder.resume(fresh)
        state = known.model_copy(update={"config": fresh.config}) if known is not None else fresh
        with Store(cache_folder(), owner=state.run_id) as store:
            context = RunContext.open(record, config, made, store, folder, given_plan=plan)
            damaged = folder.damaged(state)
            folder.set_aside(damaged)
            if state.status != "running" and not load_outcome(folder).failed and _is_whole(folder, store):
                return load_result(folder, reused=True)
            redone, state = state.redone, state.model_copy(update={"status": "running", "redone": []})
            if known is None or known.status != "running":
                folder.write(state)
            try:
                values = _drive(context, folder, state.run_id, on_event or ignore_event, review)
            except UsageError:
                if known is None:
                    folder.abandon()
                raise
            notes = [_SEED_NOTE] if context.mode.report == "mean_over_seeds" else []
            state = state.model_copy(update={"timings": values.get("timings", {}), "notes": notes})
            result = finish(context, folder, state)
            for item in redone:  # frames that were drawn again are so once more, from the cache
                state = folder.read() or state
                again = int(str(item["frame"])), int(str(item["seed"]))
                result = _redo(context, folder, state, again, on_event or ignore_event)
            return result


def finish(context: RunContext, folder: RunFolder, state: RunRecord) -> RunResult:
    """Write the final `run.json` and return the result."""
    result = load_result(folder, reused=False, first=context.engine.outcome.outcome().first)
    context.store.flush()
    drawn = [frame.sha256 for item in result.candidates.candidates for frame in item.board.frames]
    account = {
        "paid": paid(context.store, result.candidates, folder.read_answers()),
        "services": by_service(context.store, drawn) or state.services,
        "failures": result.outcome.failures(),
        "coverage": result.coverage.model_dump(mode="json") if result.coverage is not None else None,
    }
    folder.finish(state.model_copy(update=account), result.outcome.status())
    return result


def load_outcome(folder: RunFolder, first: Cause | None = None) -> Outcome:
    """Return what came of asking; `first`: what failed first, where the process that asked still knows."""
    return outcome_of(folder.read_answers(), first=first)


def load_result(folder: RunFolder, *, reused: bool, first: Cause | None = None) -> RunResult:
    """Return the result that the folder of a run holds that went to its end."""
    plan = Plan.model_validate(read_json(folder.plan))
    return RunResult(
        outcome=load_outcome(folder, first),
        out=folder.path,
        scores=Scores.model_validate(read_json(folder.scores)),
        candidates=Candidates.model_validate(read_json(folder.candidates)),
        board=Board.model_validate(read_json(folder.storyboard)),
        reused=reused,
        coverage=plan.coverage,
        renewed=tuple(plan.renewed),
    )


def _is_whole(folder: RunFolder, store: Store) -> bool:
    """Whether every file of a finished run is there; a lost or changed panel is brought back from the cache."""
    if not folder.whole():
        return False
    try:
        result = load_result(folder, reused=True)
    except (InputFileError, ValidationError):
        return False
    boards = [*(item.board for item in result.candidates.candidates), result.board]
    for sha256 in sorted({frame.sha256 for board in boards for frame in board.frames}):
        if folder.panel(sha256) is None:
            png = store.blobs.find(sha256)
            if png is None:
                return False
            folder.add_panel(sha256, png)
    return True


@contextmanager
def _checkpoints(path: Path) -> Iterator[SqliteSaver]:
    """The checkpointer over `graph.sqlite`. A broken file is made anew: everything paid for is in the cache.

    Raises:
        StoreError: the disk is full or failed.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    for attempt in (1, 2):
        connection = sqlite3.connect(path, check_same_thread=False)
        try:
            saver = SqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED))
            saver.setup()
            connection.execute("PRAGMA synchronous = NORMAL")
            break
        except sqlite3.DatabaseError as error:
            connection.close()
            if attempt == 2 or isinstance(error, sqlite3.OperationalError):
                hint = "Free some space and run the same command again."
                raise StoreError(f"Cannot write {str(path)!r}: {error}.", hint=hint) from error
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
    with closing(connection):
        try:
            yield saver
        except sqlite3.Error as error:
            hint = "Free some space and run the same command again."
            raise StoreError(f"Cannot write {str(path)!r}: {error}.", hint=hint) from error


def _drive(context: RunContext, folder: RunFolder, run_id: str, on_event: Emit, review: Review | None) -> RunState:
    """Run the machine to its end, with a person's answers where it stops for them; the final state."""
    config: RunnableConfig = {"configurable": {"thread_id": _THREAD.format(run_id=run_id)}, "recursion_limit": 1000}
    modes: list[StreamMode] = ["updates"] if on_event is ignore_event else ["custom", "updates"]
    with _checkpoints(folder.graph) as saver:
        graph = build_graph(saver)
        todo: RunState | Command[None] | None = _begin(context, folder, graph, saver, config)
        while True:
            waits = False
            for kind, chunk in graph.stream(todo, config, context=context, stream_mode=modes, durability="async"):
                if kind == "custom":
                    on_event(cast(Event, chunk))
                waits = waits or (kind == "updates" and "__interrupt__" in chunk)
            values = cast(RunState, graph.get_state(config).values)
            if not waits or review is None:
                return values
            request = review_request(values, context)
            todo = Command(resume=asdict(check_choice(review(request), request)))


def _begin(
    context: RunContext, folder: RunFolder, graph: Graph, saver: SqliteSaver, config: RunnableConfig
) -> RunState | None:
    """What the machine is started with: None to go on from its last checkpoint, an empty state to begin."""
    state = graph.get_state(config)
    files = folder.plan.is_file() and folder.story.is_file()
    if state.next and (files or "plan_sha256" not in state.values):
        if "plan_sha256" in state.values:
            context.plan(state.values["plan_sha256"])
        return None
    saver.delete_thread(config["configurable"]["thread_id"])
    folder.answers.unlink(missing_ok=True)
    return {"timings": {}}


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
    with folder.claim():
        folder.restore()
        state = folder.read()
        whole = state is not None and state.status != "running" and not folder.damaged(state)
        if state is None or not whole or load_outcome(folder).failed:
            raise OutputFolderError(
                f"{str(run)!r} holds no finished run.", hint="Finish it first: run the same `katha run` again."
            )
        refuse_code(state.config, f"The run in {str(run)!r}", received=True)
        config = read_settings(Settings, state.config).with_plugins(**changes or {})
        require_memory((changes or {}).get("memory"), [config.renderer, config.bridge_renderer])
        made = plugins or load_plugins(config)
        folder.resume(state.model_copy(update=made.specs()))
        with Store(cache_folder(), owner=state.run_id) as store:
            context = RunContext.open(folder.load_story(), config, made, store, folder)
            return _redo(context, folder, state, (frame, seed), on_event or ignore_event)


def _redo(context: RunContext, folder: RunFolder, state: RunRecord, asked: tuple[int, int], emit: Emit) -> RunResult:
    """Draw frame number `asked[0]` again with the seed `asked[1]`, between a version that is kept and its commit."""
    (number, seed), before = asked, load_result(folder, reused=False)
    frames = before.board.frames
    if not 1 <= number <= len(frames):
        raise UsageError(f"There is no frame {number}.", hint=f"The storyboard has frames 1 to {len(frames)}.")
    context.plan(before.board.plan_sha256)
    old = frames[number - 1]
    emit(Event(stage="render", kind="started", total=1))
    new = _redrawn(context, before.board, old, seed, emit)
    emit(Event(stage="render", kind="finished"))
    if new == old:
        return load_result(folder, reused=True)
    version = folder.keep_version(len(state.redone) + 1)
    board = before.board.model_copy(update={"frames": [new if frame is old else frame for frame in frames]})
    name = f"redo:{number}:{seed}"
    candidate = measure(context, name, board.model_copy(update={"method": name}), emit)
    candidates = _replaced(before.candidates, candidate, old, seed)
    final = board.model_copy(update={"method": context.mode.name})
    names = {item.name for item in candidates.candidates}

    def keep(row: Answer) -> bool:
        return row.role == "reporting" or row.method is None or row.method.split("/")[0] in names

    judge_boards(context, {context.mode.name: final}, emit, text=False)
    write_results(context, candidates, final, keep)
    emit(Event(stage="decide", kind="decision", message=candidates.decision.reason))
    outcome = load_outcome(folder, context.engine.outcome.outcome().first)
    if outcome.failed:
        folder.restore()
        raise JudgeError(f"Frame {number} stays as it was. {' '.join(map(str.strip, outcome.sentences()))}")
    redone = [*state.redone, {"frame": number, "seed": seed, "version": version}]
    result = finish(context, folder, state.model_copy(update={"redone": redone}))
    folder.commit_version()
    return result


def _redrawn(context: RunContext, board: Board, old: Frame, seed: int, emit: Emit) -> Frame:
    """Frame `old` of `board`, drawn anew into its place.

    A renderer whose frames do not depend on one another draws a scene as it draws any scene, so that a seed gives the
    same picture here and in a board; otherwise the frame is inserted among the others.

    Raises:
        UsageError: the board's pictures were found, not drawn.
    """
    renderer, place = context.plugins.renderer, old.index - 1
    requests = board_requests(context, board)
    request = replace(requests.pop(place), seed=seed)
    scene = request.kind == "scene"
    if scene and renderer.capabilities.source == "found":
        raise UsageError(f"The pictures of {context.config.renderer!r} were not drawn here, so none is drawn again.")
    if scene and not together(renderer):
        (drawn,), (sha256,) = draw_scenes(context, [request], emit)
    else:
        around = board.model_copy(update={"frames": [frame for frame in board.frames if frame is not old]})
        by = renderer if scene else None
        drawn, sha256 = draw_inserted(context, request, around, requests, place, emit, by)
    return old.model_copy(update={"seed": drawn.seed, "sha256": sha256, "image": f"panels/{sha256}.png"})


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
    kept = [item for item in candidates.candidates if not item.name.startswith("redo:")]
    changed = decision.model_copy(update={role: new.name, "reason": f"{decision.reason} {sentence}"})
    return candidates.model_copy(update={"candidates": [*kept, new], "decision": changed})
