"""The nodes of the state machine. Each reads the state, does its work through the context, and returns an update."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from katha.agents.boards import choose_path, draw_board, draw_bridge
from katha.agents.context import RunContext, plan_sha256
from katha.agents.critique import final_board, judge_boards, measure, reporting_boards, write_results
from katha.agents.decide import all_names, make_decision
from katha.agents.plan import plan_with, prepare_story
from katha.agents.state import BridgeTask, CritiqueTask, Place, RenderTask, RunState
from katha.compass.repair import best_candidate, random_pair, replan, weakest_transition
from katha.errors import ReplyError
from katha.protocols import MakesRemarks
from katha.schema import Board, Candidate, Candidates, Decision, Event, Plan, Stage

_UNANSWERED = "Nothing was repaired: no judge could answer a steering question about the board."


@contextmanager
def _stage(runtime: Runtime[RunContext], name: Stage, total: int = 0) -> Iterator[dict[str, float]]:
    """Tell that a stage begins and ends; the mapping it yields holds the seconds once the block is left."""
    spent: dict[str, float] = {}
    started = time.perf_counter()
    runtime.stream_writer(Event(stage=name, kind="started", total=total))
    yield spent
    spent[name] = time.perf_counter() - started
    runtime.stream_writer(Event(stage=name, kind="finished"))


def plan(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Plan the story (or take the plan that was given) and prepare its questions."""
    context = runtime.context
    with _stage(runtime, "plan") as spent:
        if not context.prepared:
            made = context.given_plan or _planned(context)
            story = prepare_story(context.record, made)
            context.use(_replanned(context, made), story)
            context.folder.save_plan(context.plan(), story)
        else:
            context.use(_replanned(context, context.plan()))
    return {"plan_sha256": plan_sha256(context.plan()), "timings": spent}


def _planned(context: RunContext) -> Plan:
    """The planner's plan; what a model wrote in its place is kept in the run's folder."""
    try:
        return plan_with(context.plugins.planner, context.plugins.renderer, context.record, context.config)
    except ReplyError as error:
        kept = context.folder.path / "planner_reply.txt"
        kept.write_text(error.raw, encoding="utf-8")
        message = f"{error.message} What it wrote is in {str(kept)!r}."
        raise ReplyError(message, hint=error.hint, status=error.status, raw=error.raw) from error


def _replanned(context: RunContext, made: Plan) -> Plan:
    """`made` with the mode's change of a prompt."""
    limit, steps = context.plugins.renderer.capabilities.prompt_tokens, context.record.transitions or made.transitions
    return replan(made, steps, context.mode, context.plugins.similarity, context.record.story_id, limit)


def render(state: RenderTask, runtime: Runtime[RunContext]) -> Command[Literal["critique"]]:
    """Draw one seed's board and send it on to be measured."""
    context, name = runtime.context, f"candidate:{state['seed']}"
    plan = context.plan()
    with _stage(runtime, "render", len(plan.panels)) as spent:
        board = draw_board(context, plan, state["seed"], runtime.stream_writer)
        renderer = context.plugins.renderer
        for remark in renderer.remarks() if isinstance(renderer, MakesRemarks) else ():
            runtime.stream_writer(Event(stage="render", kind="decision", message=remark))
    task = CritiqueTask(name=name, board=board)
    return Command(update={"boards": {name: board}, "timings": spent}, goto=Send("critique", task))


def critique(state: CritiqueTask, runtime: Runtime[RunContext]) -> RunState:
    """Measure one board with the steering questions (Algorithm 1, lines 3 to 6)."""
    context = runtime.context
    with _stage(runtime, "critique", _steering_count(context)) as spent:
        candidate = measure(context, state["name"], state["board"], runtime.stream_writer)
    return {"scored": {candidate.name: candidate}, "timings": spent}


def select(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Choose the board that goes on (line 8): the best of the candidates, or the only one."""
    context = runtime.context
    with _stage(runtime, "select") as spent:
        seeds = context.candidate_seeds
        candidates = [state["scored"][f"candidate:{seed}"] for seed in seeds]
        composes = context.mode.select not in ("first", "best")
        best = choose_path(context, candidates, runtime.stream_writer) if composes else best_candidate(candidates)
        message = f"{best.name} of {len(seeds)}, score {best.score.total:.3f}"
        runtime.stream_writer(Event(stage="select", kind="decision", message=message))
    found: RunState = {"selected": best.name, "timings": spent}
    return {**found, "boards": {best.name: best.board}, "scored": {best.name: best}} if composes else found


def localize(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Find where a frame goes in: the weakest transition (line 9), or a random one; None when nothing goes in."""
    context = runtime.context
    with _stage(runtime, "localize") as spent:
        found = _localized(state["scored"][state["selected"]], context)
        place = found.get("weakest")
        if place is not None:
            message = f"Scenes {place.pair[0]} and {place.pair[1]}. {place.reason}"
            runtime.stream_writer(Event(stage="localize", kind="decision", message=message))
    return {**found, "timings": spent}


def _localized(selected: Candidate, context: RunContext) -> RunState:
    mode, threshold = context.mode, context.config.compass.repair_threshold
    used = {frame.transition for frame in selected.board.frames}
    transitions = [item for item in selected.transitions if item.pair not in used]
    weakest = weakest_transition(transitions)
    if mode.at == "weakest" and context.questions("steering") and selected.score.recoverability is None:
        return {"weakest": None, "note": _UNANSWERED}
    if weakest is None:
        return {"weakest": None, "note": "The story has no transitions, so there is nowhere to insert a frame."}
    if mode.at == "random":
        pair = random_pair([item.pair for item in transitions], context.record.story_id)
        reason = f"Chosen at random by seed 42 among {len(transitions)} transitions."
        return {"weakest": Place(pair=pair, reason=reason, insert=True)}
    weak = mode.when == "always" or weakest.score < threshold
    note = f"Not repaired: the weakest transition scores {weakest.score:.2f}, the threshold is {threshold:.2f}."
    return {"weakest": Place(pair=weakest.pair, reason=weakest.reason, insert=weak), "note": note}


def bridge(state: BridgeTask, runtime: Runtime[RunContext]) -> Command[Literal["critique_bridges"]]:
    """Draw the frame that is to be inserted, with one seed (lines 11 and 12), and send the board on to be measured."""
    context = runtime.context
    with _stage(runtime, "bridge", 1) as spent:
        board = draw_bridge(context, state, runtime.stream_writer)
    task = CritiqueTask(name=board.method, board=board)
    return Command(update={"boards": {board.method: board}, "timings": spent}, goto=Send("critique_bridges", task))


def decide(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Keep the inserted frame or not (lines 13 to 15), by the rule or by the person's choice."""
    with _stage(runtime, "decide") as spent:
        decision = make_decision(state, runtime.context)
        runtime.stream_writer(Event(stage="decide", kind="decision", message=decision.reason))
    found: RunState = {"decision": decision, "timings": spent}
    if decision.accepted and decision.inserted:  # a further frame goes into the repaired board
        found |= {"selected": decision.inserted, "rounds": state.get("rounds", 0) + 1}
    return found


def judge(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Ask the reporting questions of the board before and of the board after."""
    context = runtime.context
    candidates, _, final = final_boards(state, context)
    boards = reporting_boards(context, candidates[0].board, final)
    total = len(context.questions("reporting")) * len(context.plugins.judges) * (1 + 2 * len(boards))
    with _stage(runtime, "judge", total) as spent:
        judge_boards(context, boards, runtime.stream_writer)
    return {"timings": spent}


def report(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Write the run's files."""
    context = runtime.context
    with _stage(runtime, "report") as spent:
        measured, decision, final = final_boards(state, context)
        candidates = Candidates(
            story_id=context.record.story_id,
            mode=context.mode.name,
            settings=context.config.compass,
            candidates=measured,
            decision=decision,
        )
        write_results(context, candidates, final)
    return {"timings": spent}


def _steering_count(context: RunContext) -> int:
    """How many answers measuring one board takes: the whole board's, and each transition's own."""
    questions = context.questions("steering")
    pairs = {item.pair for item in context.trajectory()}
    targeted = sum(item.target_transition in pairs for item in questions)
    return (len(questions) + targeted) * len(context.plugins.judges)


def final_boards(state: RunState, context: RunContext) -> tuple[list[Candidate], Decision, Board]:
    """Return every measured board, the decision, and the board that it leaves.

    The seeds' boards come in their order (the first is the board before anything), then those with a frame inserted.
    """
    base = [f"candidate:{seed}" for seed in context.candidate_seeds]
    rest = [name for name in all_names(state, context) if name not in base]
    candidates, decision = [state["scored"][name] for name in [*base, *rest]], state["decision"]
    return candidates, decision, final_board(candidates, decision, context.mode.name)
