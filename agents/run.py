"""One story, from its text to a finished run's folder: begin, go on after a kill, or find that all is done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from katha.agents.context import Plugins, RunContext, check_able, load_plugins
from katha.agents.plan import check_plan
from katha.agents.record import check_same, new_record, paid, services
from katha.agents.state import Emit, ReviewChoice, ReviewRequest, RunResult, RunState, unheard
from katha.compass.modes import load_mode
from katha.config import RunConfig, cache_folder
from katha.errors import StoreError, UsageError
from katha.jsonio import read_json
from katha.schema import Board, Candidates, Event, Plan, StoryRecord
from katha.store import RunFolder, Store

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import StreamMode

Review = Callable[[ReviewRequest], ReviewChoice]
_SEED_NOTE = "In an ablation this mode reports the mean over the seeds; these numbers are the first seed's."


def run_story(
    record: StoryRecord,
    config: RunConfig,
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
    load_mode(config.mode)
    made = plugins or load_plugins(config)
    check_able(config, made)
    folder = RunFolder(out)
    fresh = new_record(record, config, made, plan)
    with folder.claim():
        folder.restore()
        known = folder.read_run()
        if known is not None:
            check_same(known, fresh, out)
        state = {**known, "config": fresh["config"]} if known is not None else fresh
        with Store(cache_folder(), owner=state["run_id"]) as store:
            context = RunContext(record, config, made, store, folder, plan)
            if state["status"] == "finished" and _is_whole(context):
                return load_result(folder, reused=True)
            if known is None:
                folder.write(folder.run_json, state)
            try:
                values = _drive(context, state["run_id"], on_event or unheard, review)
            except UsageError:
                if known is None:
                    folder.abandon()
                raise
            notes = [_SEED_NOTE] if context.mode.report == "mean_over_seeds" else []
            return finish(context, {**state, "timings": values.get("timings", {}), "notes": notes})


def finish(context: RunContext, state: dict[str, Any]) -> RunResult:
    """Write the final `run.json` and give the result."""
    folder = context.folder
    result = load_result(folder, reused=False)
    context.store.flush()
    folder.tidy()
    account = paid(context, result.candidates, folder.read_answers())
    drawn_by = services(context, result.candidates)
    more = {"services": drawn_by} if drawn_by else {}
    folder.write(folder.run_json, {**state, **more, "status": "finished", "paid": account})
    return result


def load_result(folder: RunFolder, *, reused: bool) -> RunResult:
    """The result that a finished run's folder holds."""
    return RunResult(
        out=folder.path,
        scores=read_json(folder.scores),
        candidates=Candidates.model_validate(read_json(folder.candidates)),
        board=Board.model_validate(read_json(folder.storyboard)),
        reused=reused,
    )


def _is_whole(context: RunContext) -> bool:
    """Whether every file of a finished run is there; a lost or changed panel is brought back from the cache."""
    folder = context.folder
    if folder.missing(()):
        return False
    candidates = Candidates.model_validate(read_json(folder.candidates))
    boards = [item.board for item in candidates.candidates] + [Board.model_validate(read_json(folder.storyboard))]
    for sha256 in sorted({frame.sha256 for board in boards for frame in board.frames}):
        if folder.panel(sha256) is None:
            png = context.store.blobs.find(sha256)
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
            saver = SqliteSaver(connection)
            saver.setup()
            connection.execute("PRAGMA synchronous = NORMAL")
            break
        except sqlite3.DatabaseError:
            connection.close()
            if attempt == 2:
                raise
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
    with closing(connection):
        try:
            yield saver
        except sqlite3.Error as error:
            hint = "Free some space and run the same command again."
            raise StoreError(f"Cannot write {str(path)!r}: {error}.", hint=hint) from error


def _drive(context: RunContext, run_id: str, on_event: Emit, review: Review | None) -> dict[str, Any]:
    """Run the machine to its end, with a person's answers where it stops for them; the final state."""
    from langgraph.types import Command

    from katha.agents.decide import read_choice, review_request
    from katha.agents.graph import build_graph

    config: Any = {"configurable": {"thread_id": run_id}, "recursion_limit": 1000}
    modes: list[StreamMode] = ["updates"] if on_event is unheard else ["custom", "updates"]
    with _checkpoints(context.folder.graph) as saver:
        graph = build_graph(saver)
        todo: Any = _resume(context, graph, saver, config)
        while True:
            waits = False
            for kind, chunk in graph.stream(todo, config, context=context, stream_mode=modes, durability="async"):
                if kind == "custom":
                    on_event(cast(Event, chunk))
                waits = waits or (kind == "updates" and "__interrupt__" in chunk)
            values = graph.get_state(config).values
            if not waits or review is None:
                return dict(values)
            request = review_request(cast(RunState, values), context)
            todo = Command(resume=read_choice(review(request), request))


def _resume(context: RunContext, graph: Any, saver: SqliteSaver, config: Any) -> dict[str, Any] | None:
    """What the machine is started with: None to go on from its last checkpoint, an empty state to begin."""
    state = graph.get_state(config)
    files = context.folder.plan.is_file() and context.folder.story.is_file()
    if state.next and (files or "plan_sha256" not in state.values):
        if "plan_sha256" in state.values:
            context.plan(state.values["plan_sha256"])
        return None
    saver.delete_thread(config["configurable"]["thread_id"])
    context.folder.answers.unlink(missing_ok=True)
    return {"timings": {}}
