"""One story, from its text to a finished run's folder: begin, go on after a kill, or find that all is done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command
from pydantic import ValidationError

from katha.addresses import shown
from katha.agents.context import Plugins, RunContext, check_able, check_plan, load_plugins, plan_sha256
from katha.agents.critique import caveats, finish
from katha.agents.editor.edit_session import EditSession, replay
from katha.agents.editor.names import name_frames
from katha.agents.folder import FIRST_VERSION, RunFolder, RunRecord, new_record
from katha.agents.graph import Graph, build_graph, check_choice, review_request
from katha.agents.guiding import layouts_of
from katha.agents.spending import spending
from katha.agents.state import CHECKPOINTED, Emit, ReviewChoice, ReviewRequest, RunResult, RunState, ignore_event
from katha.config import Settings, cache_folder, read_settings, refuse_code
from katha.errors import InputFileError, OutputFolderError, StoreError, UsageError
from katha.eval_bridge.judges.none import NoJudge
from katha.eval_bridge.judging.budget import Budget
from katha.models.calls import noting_calls
from katha.postgres import connector, explained
from katha.schema import Event, Plan, StoryRecord
from katha.store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import StreamMode

Review = Callable[[ReviewRequest], ReviewChoice]
_SEED_NOTE = "In an ablation this mode reports the mean over the seeds; these numbers are the first seed's."
_THREAD = "{run_id}/repair-records"
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
    run_id: str | None = None,
) -> RunResult:
    """Draw `record` by `config` into the folder `out`, measure it, repair it, and leave the run's files there.

    The same call again is a no-op. After a kill it goes on where it stopped, pays for nothing twice, and ends with the
    same storyboard, scores and panels. `plan` is drawn instead of the planner's; `plugins` replaces the named ones.
    `run_id` is that of a folder that is new, on whose account everything is: of one run over several processes.

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
    fresh = fresh if run_id is None else fresh.model_copy(update={"run_id": run_id})
    with folder.claim():
        folder.restore()
        known = folder.resume(fresh)
        state = known.model_copy(update={"config": fresh.config}) if known is not None else fresh
        with (
            Store(cache_folder(), owner=state.run_id) as store,
            noting_calls(folder.calls),
            spending(folder, made.budget),
        ):
            desk = EditSession(folder, config, made, store, on_event or ignore_event)
            return _go_on(desk, state, record, plan, known is None, review)


def resume_run(
    run: Path, *, on_event: Emit | None = None, review: Review | None = None, budget: Budget | None = None
) -> RunResult:
    """Go on with the run in the folder `run` from what is in it, whoever began it: no story and no settings are needed.

    A run that is finished is returned as it is. budget: over what services may still cost.

    Raises:
        OutputFolderError: there is no run, it stopped before its story was planned, or its plug-ins have changed.
        UsageError: it waits for a person, and there is nobody to ask.
    """
    folder = RunFolder(run)
    if folder.read() is None:
        raise OutputFolderError(f"{str(run)!r} holds no run.", hint="Name the folder of a run.")
    with folder.claim():
        folder.restore()
        state = folder.read()
        if state is None or not (folder.plan.is_file() and folder.story.is_file()):
            hint = "Begin it again with its story; what was paid for is in the cache."
            raise OutputFolderError(f"The run in {str(run)!r} stopped before its story was planned.", hint=hint)
        refuse_code(state.config, f"The run in {str(run)!r}", received=True)
        config = read_settings(Settings, state.config)
        if config.review and review is None:
            if state.status == "running":
                raise _nobody()
            review = _refused
        made = load_plugins(config, budget)
        folder.resume(state.model_copy(update=made.specs()))
        with (
            Store(cache_folder(), owner=state.run_id) as store,
            noting_calls(folder.calls),
            spending(folder, made.budget),
        ):
            desk = EditSession(folder, config, made, store, on_event or ignore_event)
            return _go_on(desk, state, folder.first_story(state), None, False, review)


def _nobody() -> UsageError:
    hint = "Open it with `katha desk`, or go on at a terminal."
    return UsageError("A run with review needs a person to ask.", hint=hint)


def _refused(request: ReviewRequest) -> ReviewChoice:
    """A finished run asks nobody, unless so much of it was lost that its repair is decided again."""
    raise _nobody()


def _go_on(
    desk: EditSession, state: RunRecord, record: StoryRecord, plan: Plan | None, fresh: bool, review: Review | None
) -> RunResult:
    """Take a run that is begun to its end; `plan`: given in place of the planner's; `fresh`: its folder held none."""
    folder = desk.folder
    if fresh:
        for judge in desk.plugins.judges.values():
            judge.require_room()
    if state.status != "running" and _stands(desk, state):
        result = replay(desk) if state.replay else folder.load_result(reused=True)
        name_frames(folder, result.board, folder.load_plan())
        return result
    if not fresh:
        plan = _begun_with(folder, state, record, desk.config) or plan
    context = RunContext.open(record, desk.config, desk.plugins, desk.store, folder, given_plan=plan)
    begun, again = not fresh and state.status == "running", [*state.redone, *state.replay]
    state = state.model_copy(update={"status": "running", "redone": [], "replay": again, "version": FIRST_VERSION})
    if not begun:
        folder.write(state)
    try:
        values = _drive(context, folder, state.run_id, desk.emit, review)
    except UsageError:
        if fresh:
            folder.abandon()
        raise
    judged = any(not isinstance(judge, NoJudge) for judge in context.plugins.judges.values())
    notes = [_SEED_NOTE] if judged and context.mode.report == "mean_over_seeds" else []
    writes = not all(judge.always_chooses for judge in context.plugins.judges.values())
    notes += [context.config.matching_note] if writes and context.config.matching_note else []
    notes += [*context.plugins.renderer.left_out(record.story_id), *caveats(context)]
    state = state.model_copy(update={"timings": values.get("timings", {}), "notes": notes})
    result = finish(context, state)
    if again:  # what was done by hand is done once more, from the cache
        result = replay(desk)
    name_frames(folder, result.board, folder.load_plan())
    return result


def _stands(desk: EditSession, state: RunRecord) -> bool:
    """Return whether a run that ended is all there: what a person wrote into its plan is taken over, what is damaged is
    set aside, and a lost panel comes from the cache."""
    folder = desk.folder
    if folder.edited_plan(state) is not None and _is_whole(folder, desk.store):
        from katha.agents.editor.editing import take_plan

        take_plan(desk)
        return True
    folder.set_aside(folder.damaged(state))
    return not folder.load_outcome().failed and _is_whole(folder, desk.store)


def _begun_with(folder: RunFolder, state: RunRecord, record: StoryRecord, config: Settings) -> Plan | None:
    """The plan that a run goes on with: what stands in its folder, as it was made or as a person has edited it since.

    Raises:
        PlanError: it does not fit the story.
    """
    plan = folder.first_plan(state)
    if plan is not None:
        check_plan(plan, record, config.model_copy(update={"panels": len(plan.panels)}))
    return plan


def _is_whole(folder: RunFolder, store: Store) -> bool:
    """Return whether every file of a finished run is there; a lost or changed panel is brought back from the cache."""
    if not folder.whole():
        return False
    try:
        result = folder.load_result(reused=True)
    except (InputFileError, ValidationError):
        return False
    boards = [*(item.board for item in result.candidates.candidates), result.board]
    boards += [layouts_of(board) for board in boards if board.guided]
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


@contextmanager
def _shared_checkpoints(store: Store) -> Iterator[BaseCheckpointSaver[Any]]:
    """The checkpointer over the database of a store that machines share.

    Raises:
        StoreError: the database cannot be reached or refuses.
    """
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row

    connect, failure = connector(store.address.index)
    try:
        with closing(connect(row_factory=dict_row)) as connection:
            saver = PostgresSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED))
            with store.claim("checkpoints"):  # two machines that begin at once make the tables once
                saver.setup()
            yield saver
    except failure as error:
        raise explained(shown(store.address.index), error) from error


def _checkpoints_of(context: RunContext, folder: RunFolder) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
    """The checkpointer of a run: its folder's, or the machines' where a person may answer from any of them."""
    shared = context.config.review and context.store.address.index
    return _shared_checkpoints(context.store) if shared else _checkpoints(folder.graph)


def _drive(context: RunContext, folder: RunFolder, run_id: str, on_event: Emit, review: Review | None) -> RunState:
    """Run the machine to its end, with a person's answers where it stops for them; the final state."""
    config: RunnableConfig = {"configurable": {"thread_id": _THREAD.format(run_id=run_id)}, "recursion_limit": 1000}
    modes: list[StreamMode] = ["updates"] if on_event is ignore_event else ["custom", "updates"]
    with _checkpoints_of(context, folder) as saver:
        graph = build_graph(saver)
        todo: RunState | Command[None] | None = _begin(context, folder, graph, saver, config)
        while True:
            waits = False
            for kind, chunk in graph.stream(todo, config, context=context, stream_mode=modes, durability="async"):
                if kind == "custom":
                    with _giving_up(context):
                        on_event(cast(Event, chunk))
                waits = waits or (kind == "updates" and "__interrupt__" in chunk)
            values = cast(RunState, graph.get_state(config).values)
            if not waits or review is None:
                if not folder.graph.exists():  # a database that all runs share keeps those that are under way
                    saver.delete_thread(config["configurable"]["thread_id"])
                return values
            request = review_request(values, context)
            todo = Command(resume=asdict(check_choice(review(request), request)))


@contextmanager
def _giving_up(context: RunContext) -> Iterator[None]:
    """Have the work end where its listener fails: the machine waits for a stage that is under way."""
    try:
        yield
    except BaseException:
        context.given_up.set()
        raise


def _begin(
    context: RunContext, folder: RunFolder, graph: Graph, saver: BaseCheckpointSaver[Any], config: RunnableConfig
) -> RunState | None:
    """Return what the machine is started with: None to go on from its last checkpoint, an empty state to begin."""
    state = graph.get_state(config)
    drawn_from = state.values.get("plan_sha256")
    files = folder.plan.is_file() and folder.story.is_file()
    edited = context.given_plan is not None and drawn_from not in (None, plan_sha256(context.given_plan))
    if state.next and (drawn_from is None or (files and not edited)):
        if drawn_from is not None:
            context.plan(drawn_from)
        return None
    saver.delete_thread(config["configurable"]["thread_id"])
    folder.answers.unlink(missing_ok=True)
    return {"timings": {}}
