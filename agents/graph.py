"""The state machine: plan -> render* -> critique* -> select -> [localize -> (propose) -> bridge* -> critique* ->
review] -> decide -> judge -> report, where * is one branch per seed or candidate, and of moves one per move and seed.
What is in brackets is done again while the mode's budget lasts.

A node reads the state, does its work through the context, and returns an update. A route reads the mode's data and the
state, never a mode's name: a new mode is a row in configs/modes.yaml and no branch here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, get_args

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import TypeAdapter

from katha.agents.context import RunContext, panel_count, plan_sha256, plan_within, prepare_story
from katha.agents.critique import judge_boards, measure, write_results
from katha.agents.frames import (
    draw_board,
    draw_bridge,
    inserted_name,
    insertion_of,
    insertion_seeds,
    next_seed,
    picture_at,
)
from katha.agents.redrawing import draw_move, move_name
from katha.agents.repairing import answered_by
from katha.agents.repairing import propose as propose_moves
from katha.agents.requests import with_stand_ins
from katha.agents.state import (
    BridgeTask,
    CritiqueTask,
    Emit,
    InsertionPlace,
    RenderTask,
    ReviewAction,
    ReviewChoice,
    ReviewRequest,
    RunState,
)
from katha.compass.repair import Acceptance, Weakest, accept, best_candidate, random_pair, weakest_transition
from katha.errors import ReplyError, TransientRenderError, UsageError
from katha.protocols import Similarity, can
from katha.schema import Board, Candidate, Candidates, Decision, Event, Move, Plan, Stage, Tried


class _GivenUp(Exception):
    """Whoever listens has gone: nothing more is drawn or asked."""


def _teller(runtime: Runtime[RunContext]) -> Emit:
    """Return what tells the run's listener of an event, which ends the work once that has given the run up."""

    def tell(event: Event) -> None:
        if runtime.context.given_up.is_set():
            raise _GivenUp
        runtime.stream_writer(event)

    return tell


@contextmanager
def _stage(runtime: Runtime[RunContext], name: Stage, total: int = 0) -> Iterator[dict[str, float]]:
    """Tell that a stage begins and ends; the mapping it yields holds the seconds once the block is left."""
    spent: dict[str, float] = {}
    started = time.perf_counter()
    _teller(runtime)(Event(stage=name, kind="started", total=total))
    yield spent
    spent[name] = time.perf_counter() - started
    _teller(runtime)(Event(stage=name, kind="finished"))


def plan(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Plan the story (or take the plan that was given) and prepare its questions."""
    context, ready = runtime.context, runtime.context.ready
    with _stage(runtime, "plan") as spent:
        if ready.plan is None or ready.story is None:
            made = context.given_plan or _planned(context, _teller(runtime))
            ready.story, ready.plan = prepare_story(context.record, made), made
            ready.plan = with_stand_ins(context)
            context.folder.save_plan(ready.plan, ready.story)
            for said in ready.plan.renewed:
                _teller(runtime)(Event(stage="plan", kind="decision", message=said))
    return {"plan_sha256": plan_sha256(ready.plan), "timings": spent}


def _planned(context: RunContext, tell: Callable[[Event], None]) -> Plan:
    """The planner's plan; what a model wrote in its place is kept in the run's folder."""

    def heard(message: str) -> None:
        tell(Event(stage="plan", kind="progress", message=message))

    renderer = context.plugins.renderer
    able, words = renderer.capabilities, tuple(renderer.panel_words())
    counted = context.config.model_copy(update={"panels": panel_count(context.record, context.config, able, words)})
    try:
        return plan_within(
            context.plugins.planner,
            context.record,
            counted,
            able.prompt_tokens,
            heard,
            words,
            plans=context.store.plans,
        )
    except ReplyError as error:
        kept = context.folder.path / "planner_reply.txt"
        kept.write_text(error.raw, encoding="utf-8")
        message = f"{error.message} What it wrote is in {str(kept)!r}."
        raise ReplyError(message, hint=error.hint, status=error.status, raw=error.raw) from error


def after_plan(state: RunState, runtime: Runtime[RunContext]) -> list[Send]:
    """One branch of `render` per seed whose board is a candidate."""
    return [Send("render", RenderTask(seed=seed)) for seed in runtime.context.candidate_seeds]


def _looking(context: RunContext, emit: Emit) -> Emit:
    """`emit`, and each frame that it tells of is looked at while the next is drawn: they are measured next."""
    similarity = context.plugins.similarity
    if not can(similarity, Similarity.foresee):
        return emit

    def told(event: Event) -> None:
        emit(event)
        if event.get("kind") == "frame" and "sha256" in event:
            similarity.foresee(picture_at(context, event["sha256"]))

    return told


def render(state: RenderTask, runtime: Runtime[RunContext]) -> Command[Literal["critique"]]:
    """Draw one seed's board and send it on to be measured."""
    context, name = runtime.context, f"candidate:{state['seed']}"
    with _stage(runtime, "render", len(context.plan().panels)) as spent:
        board = draw_board(context, state["seed"], _looking(context, _teller(runtime)))
        for drawer in (context.plugins.guide, context.plugins.renderer):
            for remark in drawer.remarks() if drawer is not None else ():
                _teller(runtime)(Event(stage="render", kind="decision", message=remark))
    task = CritiqueTask(name=name, board=board)
    return Command(update={"boards": {name: board}, "timings": spent}, goto=Send("critique", task))


def critique(state: CritiqueTask, runtime: Runtime[RunContext]) -> RunState:
    """Measure one board with the steering questions (Algorithm 1, lines 3 to 6)."""
    context = runtime.context
    questions, pairs = context.questions("steering"), {item.pair for item in context.trajectory()}
    # The whole board's questions, and each transition's own.
    asked = context.mode.readings * len(questions) + sum(item.target_transition in pairs for item in questions)
    with _stage(runtime, "critique", asked * len(context.asked("steering"))) as spent:
        candidate = measure(context, state["name"], state["board"], _teller(runtime))
    return {"scored": {candidate.name: candidate}, "timings": spent}


def select(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Choose the board that goes on (line 8): the best of the candidates, or the only one."""
    context = runtime.context
    with _stage(runtime, "select") as spent:
        seeds = context.candidate_seeds
        candidates = [state["scored"][f"candidate:{seed}"] for seed in seeds]
        best = best_candidate(candidates)
        message = f"{best.name} of {len(seeds)}, score {best.score.total:.3f}"
        _teller(runtime)(Event(stage="select", kind="decision", message=message))
    return {"selected": best.name, "timings": spent}


def after_select(state: RunState, runtime: Runtime[RunContext]) -> Literal["localize", "decide"]:
    """A mode without a place has nothing to localize."""
    return "decide" if runtime.context.mode.at is None else "localize"


def localize(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Find where a frame goes in: the weakest transition (line 9), or a random one; None when nothing goes in."""
    with _stage(runtime, "localize") as spent:
        found = _localized(state["scored"][state["selected"]], runtime.context)
        place = found.get("weakest")
        if place is not None:
            message = f"Scenes {place.pair[0]} and {place.pair[1]}. {place.reason}"
            _teller(runtime)(Event(stage="localize", kind="decision", message=message))
    return {**found, "moves": [], "timings": spent}


def _localized(selected: Candidate, context: RunContext) -> RunState:
    mode, threshold = context.mode, context.config.compass.repair_threshold
    # A transition gets one bridge at most; moves may come to the same one in every round.
    used = {frame.transition for frame in selected.board.frames} if mode.insert != "moves" else set()
    transitions = [item for item in selected.transitions if item.pair not in used]
    weakest = weakest_transition(transitions)
    # Before `weakest is None`: a judge that could not answer is the reason to tell, not a story without transitions.
    if mode.at == "weakest" and context.questions("steering") and not selected.score.measured:
        could = (
            "read its pictures" if context.reading_back("steering") else "answer a steering question about the board"
        )
        return {"weakest": None, "note": f"Nothing was repaired: no judge could {could}."}
    if weakest is None:
        return {"weakest": None, "note": "The story has no transitions, so there is nowhere to insert a frame."}
    if mode.at == "random":
        pair = random_pair([item.pair for item in transitions], context.record.story_id)
        reason = f"Chosen at random by seed 42 among {len(transitions)} transitions."
        return {"weakest": InsertionPlace(pair=pair, reason=reason, insert=True)}
    weak = mode.when == "always" or weakest.score < threshold
    note = f"Not repaired: the weakest transition scores {weakest.score:.2f}, the threshold is {threshold:.2f}."
    if mode.when == "missed":
        whole = selected.score.recoverability
        weak = weakest.score < 1.0 or whole is None or whole < 1.0
        note = "Nothing to repair: no steering question is missed."
    if mode.insert == "none":
        return {
            "weakest": InsertionPlace(pair=weakest.pair, reason=weakest.reason, insert=False),
            "note": _told(weakest, context),
        }
    return {"weakest": InsertionPlace(pair=weakest.pair, reason=weakest.reason, insert=weak), "note": note}


def _told(weakest: Weakest, context: RunContext) -> str:
    """Return what is said of the weakest transition where no frame is drawn: its score, and what a
    bridge would show."""
    said = f"The weakest transition is from scene {weakest.pair[0]} to {weakest.pair[1]}, with {weakest.score:.2f}"
    threshold = context.config.compass.repair_threshold
    if weakest.score >= threshold:
        return f"{said}: not below the threshold of {threshold:.2f}, so it needs no bridge."
    return f"{said}. A bridge there would show: {insertion_of(context, weakest.pair).prompt}"


def _bridges(state: RunState, context: RunContext, place: InsertionPlace) -> list[Send]:
    board, prompt = state["boards"][state["selected"]], state.get("bridge_prompt")
    seeds = _seeds(state, context, board)
    if context.mode.insert != "moves":
        return [Send("bridge", BridgeTask(seed=one, board=board, pair=place.pair, prompt=prompt)) for one in seeds]
    mark = f"move.{state['round']}"
    return [
        Send("bridge", BridgeTask(seed=seed, board=board, pair=place.pair, prompt=None, move=(mark, number, move)))
        for number, move in _numbered(state)
        for seed in seeds
    ]


def _numbered(state: RunState) -> list[tuple[int, Move]]:
    """Return the round's moves by their numbers among all of the repair's."""
    # Numbers go on over the rounds: boards are named by them, and a name stands for one board.
    return list(enumerate(state.get("moves", []), 1 + len(state.get("tried", []))))


def _seeds(state: RunState, context: RunContext, board: Board) -> list[int]:
    """The seeds of the inserted frame: the mode's, and those that a reviewing person asked for."""
    # A dict keeps the order and drops a seed that a person asked for again.
    return list(dict.fromkeys([*insertion_seeds(context, board), *state.get("more_seeds", [])]))


def after_localize(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["propose", "decide"]:
    """One branch of `bridge` per seed, when a frame is to go in; moves are proposed first."""
    weakest = state.get("weakest")
    if weakest is None or not weakest.insert:
        return "decide"
    return "propose" if runtime.context.mode.insert == "moves" else _bridges(state, runtime.context, weakest)


def propose(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Have moves proposed at the weakest transition, from what was missed there."""
    context, place, number = runtime.context, state["weakest"], state.get("round", 0) + 1
    if place is None:
        raise UsageError("Nothing is to be changed, so nothing is proposed.")
    with _stage(runtime, "propose") as spent:
        board, rounds = state["boards"][state["selected"]], context.mode.budget - number + 1
        pair = (place.pair[0], place.pair[1])
        made = propose_moves(context, board, pair, state.get("tried", []), rounds, _teller(runtime))
        for move in made.moves:
            message = f"{move.kind}: {move.reason}"
            _teller(runtime)(Event(stage="propose", kind="decision", message=message))
    told: RunState = {"round": number, "moves": made.moves, "evidence": [made.evidence], "timings": spent}
    return {**told, "note": made.why} if made.why else told


def after_propose(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["decide"]:
    """One branch of `bridge` per move and seed."""
    weakest = state.get("weakest")
    return (_bridges(state, runtime.context, weakest) if weakest is not None else []) or "decide"


def bridge(state: BridgeTask, runtime: Runtime[RunContext]) -> Command[Literal["critique_bridges"]]:
    """Draw the frame that is to be inserted, with one seed (lines 11 and 12), and send the board on to be measured."""
    context, asked = runtime.context, state.get("move")
    with _stage(runtime, "bridge", 1 if asked is None else len(asked[2].panels)) as spent:
        emit = _looking(context, _teller(runtime))
        if asked is None:
            board = draw_bridge(context, state, emit)
        else:
            mark, number, move = asked
            board = draw_move(context, state["board"], move, number, state["seed"], emit)
            board = board.model_copy(update={"method": move_name(mark, number, state["seed"])})
    task = CritiqueTask(name=board.method, board=board)
    return Command(update={"boards": {board.method: board}, "timings": spent}, goto=Send("critique_bridges", task))


def after_critique(state: RunState, runtime: Runtime[RunContext]) -> Literal["review", "decide"]:
    """A person decides when the run asks for it."""
    return "review" if runtime.context.config.review else "decide"


class _Proposal(NamedTuple):
    """The selected board, the inserted ones best first (the first is tried), and what the rule says of it."""

    selected: Candidate
    inserted: list[Candidate]
    verdict: Acceptance


def _inserted_names(state: RunState, context: RunContext) -> list[str]:
    """Return the names of the measured boards that differ from the selected one, by move in the order of their
    seeds."""
    board = state["boards"][state["selected"]]
    names = [name for rows in _moved_names(state, context).values() for name in rows]
    if context.mode.insert != "moves":
        names = [inserted_name(context.mode.insert, board, seed) for seed in _seeds(state, context, board)]
    return [name for name in names if name in state.get("scored", {})]


def _moved_names(state: RunState, context: RunContext) -> dict[int, list[str]]:
    """Return by the number of a move of this round the names of its boards."""
    seeds = _seeds(state, context, state["boards"][state["selected"]])
    mark = f"move.{state.get('round', 0)}"
    return {number: [move_name(mark, number, seed) for seed in seeds] for number, _ in _numbered(state)}


def _propose(state: RunState, context: RunContext) -> _Proposal:
    selected = state["scored"][state["selected"]]
    inserted = [state["scored"][name] for name in _inserted_names(state, context)]
    best = best_candidate(inserted)
    if context.mode.accept == "improvement":
        verdict = accept(selected, best, context.config.compass)
    else:
        rise = f"the score goes from {selected.score.total:.3f} to {best.score.total:.3f}"
        verdict = Acceptance(True, f"Inserted, as this mode always does: {rise}.")
    return _Proposal(selected, [best, *(item for item in inserted if item.name != best.name)], verdict)


def review_request(state: RunState, context: RunContext) -> ReviewRequest:
    """Return what a person is asked, from the state of a run that waits for them."""
    proposal, place = _propose(state, context), state["weakest"]
    if place is None:
        raise UsageError("Nothing is to be inserted, so there is nothing to review.")
    return ReviewRequest(
        story_id=context.record.story_id,
        mode=context.mode.name,
        selected=proposal.selected,
        weakest=place.pair,
        weakest_reason=place.reason,
        inserted=tuple(proposal.inserted),
        proposal=proposal.inserted[0].name,
        accepts=proposal.verdict.accepted,
        reason=proposal.verdict.reason,
        prompt=_prompt_of(state, context, place, proposal.inserted[0].name),
        panels=context.folder.panels,
        moves=_moves_by_name(state, context),
    )


def _moves_by_name(state: RunState, context: RunContext) -> dict[str, Move]:
    """Return the round's moves by the names of their boards."""
    names = _moved_names(state, context)
    return {name: move for number, move in _numbered(state) for name in names[number]}


def _prompt_of(state: RunState, context: RunContext, place: InsertionPlace, proposal: str) -> str:
    """Return what the proposed frame was drawn from."""
    move = _moves_by_name(state, context).get(proposal)
    return (
        insertion_of(context, place.pair, state.get("bridge_prompt")).prompt if move is None else move.panels[0].prompt
    )


def check_choice(choice: ReviewChoice, request: ReviewRequest) -> ReviewChoice:
    """Return a person's choice if it can be followed.

    Raises:
        UsageError: it is none of the five, is not a seed, names no board that is there, or has an empty prompt.
    """
    names = [item.name for item in request.inserted]
    if choice.action not in get_args(ReviewAction):
        raise UsageError(f"{choice.action!r} is not a choice.", hint=f"Known: {', '.join(get_args(ReviewAction))}.")
    if choice.action == "choose" and choice.candidate not in names:
        raise UsageError(f"No inserted board is called {choice.candidate!r}.", hint=f"Known: {', '.join(names)}.")
    if choice.seed is not None and not 0 <= choice.seed < 2**32:
        raise UsageError(f"{choice.seed} is not a seed.", hint="Seeds go from 0 to 4294967295.")
    if choice.action == "edit" and not (choice.prompt or "").strip():
        raise UsageError("The new prompt is empty.", hint="Say what the inserted frame is to show.")
    return choice


def choice_schema(request: ReviewRequest) -> dict[str, Any]:
    """Return the JSON Schema of the answer to a review: the action, one of the inserted boards, a prompt."""
    schema = TypeAdapter(ReviewChoice).json_schema()
    schema["properties"]["candidate"]["enum"] = [*(item.name for item in request.inserted), None]
    schema["properties"]["prompt"]["default"] = request.prompt
    return schema


def review_question(request: ReviewRequest) -> dict[str, object]:
    """Return what the interrupt shows a person: the proposal, the others, what the rule says, and the prompt."""
    return {
        "question": "Insert the frame? Answer {action: accept, reject, choose, edit or seed, candidate, prompt, seed}.",
        "proposal": request.proposal,
        "candidates": [item.name for item in request.inserted],
        "rule": request.reason,
        "prompt": request.prompt,
    }


def review(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Stop until a person has chosen. The answer to the interrupt is `{action, candidate, prompt, seed}`.

    An answer that cannot be followed is asked for again, with what is wrong with it. The interrupt carries the answer's
    schema, from which the desk and the terminal make what a person fills in.
    """
    request = review_request(state, runtime.context)
    question = review_question(request)
    choice: ReviewChoice | None = None
    while choice is None:
        try:
            choice = check_choice(ReviewChoice(**interrupt(question, response_schema=choice_schema(request))), request)
        except (TypeError, UsageError) as error:
            question = {**question, "wrong": str(error)}
    prompt = choice.prompt if choice.action == "edit" else state.get("bridge_prompt")
    moves = state.get("moves", [])
    if choice.action == "edit" and choice.prompt and moves:
        edited = request.moves[choice.candidate or request.proposal]
        moves = [_reworded(move, choice.prompt) if move == edited else move for move in moves]
    more = state.get("more_seeds", [])
    if choice.action == "seed":
        known = _seeds(state, runtime.context, state["boards"][state["selected"]])
        more = [*more, next_seed(known[-1]) if choice.seed is None else choice.seed]
    return {"choice": choice, "bridge_prompt": prompt, "more_seeds": more, "moves": moves}


def _reworded(move: Move, prompt: str) -> Move:
    """Return a move whose first frame shows what a person wrote."""
    first, *others = move.panels
    return move.model_copy(update={"panels": [first.model_copy(update={"prompt": prompt}), *others]})


def after_review(state: RunState, runtime: Runtime[RunContext]) -> list[Send] | Literal["decide"]:
    """An edited prompt is drawn again with every seed, a further seed as well, and both are reviewed again."""
    choice, weakest = state.get("choice"), state.get("weakest")
    again = choice is not None and choice.action in ("edit", "seed")
    return _bridges(state, runtime.context, weakest) if again and weakest is not None else "decide"


def decide(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Keep the inserted frame or not (lines 13 to 15), by the rule or by the person's choice."""
    with _stage(runtime, "decide") as spent:
        decision = _decide(state, runtime.context)
        if state.get("rounds"):  # after an accepted frame, a further one that is not changes nothing but the reason
            earlier, reason = state["decision"], f"{state['decision'].reason} Then: {decision.reason}"
            kept, changes = (decision, {"selected": earlier.selected}) if decision.accepted else (earlier, {})
            decision = kept.model_copy(update={**changes, "reason": reason})
        _teller(runtime)(Event(stage="decide", kind="decision", message=decision.reason))
        tried = _tried(state, runtime.context, decision)
    found: RunState = {"decision": decision, "tried": tried, "timings": spent}
    if decision.accepted and decision.inserted:  # a further frame goes into the repaired board
        found |= {"selected": decision.inserted, "rounds": state.get("rounds", 0) + 1}
    return found


def _tried(state: RunState, context: RunContext, decision: Decision) -> list[Tried]:
    """Return the moves of this round with what each did to the board."""
    if not state.get("moves") or not _inserted_names(state, context):
        return []
    selected = state["scored"][state["selected"]]
    knew = answered_by(context, selected.board)
    found = []
    for number, move in _numbered(state):
        boards = [state["scored"][name] for name in _moved_names(state, context)[number] if name in state["scored"]]
        if not boards:
            continue
        best, kept = best_candidate(boards), decision.accepted and decision.inserted in {item.name for item in boards}
        best = state["scored"][decision.inserted] if kept and decision.inserted else best
        knows, verdict = answered_by(context, best.board), accept(selected, best, context.config.compass)
        reason = verdict.reason if kept or not verdict.accepted else f"{verdict.reason} Another move was better."
        found.append(
            Tried(
                round=state["round"],
                move=move,
                candidates=[item.name for item in boards],
                best=best.name,
                gain=best.score.total - selected.score.total,
                accepted=kept,
                reason=reason,
                answered=sorted(knows - knew),
                lost=sorted(knew - knows),
            )
        )
    return found


def _decide(state: RunState, context: RunContext) -> Decision:
    """One round's outcome; a person's choice stands above the rule and says so."""
    place = state.get("weakest") if context.mode.at == "weakest" else None
    decision = Decision(
        selected=state["selected"],
        weakest=place.pair if place is not None else None,
        weakest_reason=place.reason if place is not None else None,
        reason="",
    )
    if context.mode.insert == "none":
        selected, note = state["scored"][state["selected"]], state.get("note", "")
        if not selected.score.measured:
            return decision.model_copy(update={"reason": note or context.mode.about})
        told = f"{context.mode.about} The board's score is {selected.score.total:.3f}. {note}"
        return decision.model_copy(update={"reason": told.strip()})
    if not _inserted_names(state, context):
        return decision.model_copy(update={"reason": state.get("note", "Nothing was inserted.")})
    (_, inserted, verdict), choice = _propose(state, context), state.get("choice")
    accepted, reason, chosen = verdict.accepted, verdict.reason, inserted[0].name
    if choice is not None:
        chosen = choice.candidate if choice.action == "choose" and choice.candidate else chosen
        accepted, words = choice.action != "reject", "Kept as it was by a person's choice."
        if accepted:
            total = next(item.score.total for item in inserted if item.name == chosen)
            instead = f" instead of {inserted[0].name}" if choice.action == "choose" else ""
            words = f"Inserted {chosen} by a person's choice (score {total:.3f}){instead}."
        reason = f"{words} The rule: {reason}"
    changes = {"inserted": chosen, "accepted": accepted, "reviewed": choice is not None, "reason": reason}
    return decision.model_copy(update=changes)


def after_decide(state: RunState, runtime: Runtime[RunContext]) -> Literal["localize", "done"]:
    """An accepted frame is followed by another while the mode's budget lasts."""
    mode = runtime.context.mode
    again = state["decision"].accepted and state.get("rounds", 0) < mode.budget
    if mode.insert == "moves":
        again = bool(state.get("moves")) and state.get("round", 0) < mode.budget
    return "localize" if again and not runtime.context.config.review else "done"


def judge(state: RunState, runtime: Runtime[RunContext]) -> RunState:
    """Ask the reporting questions of the board before (the first seed's) and of the board after."""
    context = runtime.context
    candidates, _, final = final_boards(state, context)
    boards = {"base": candidates[0].board.model_copy(update={"method": "base"}), context.mode.name: final}
    total = len(context.questions("reporting")) * len(context.asked("reporting")) * (1 + 2 * len(boards))
    with _stage(runtime, "judge", total) as spent:
        judge_boards(context, boards, _teller(runtime))
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


def final_boards(state: RunState, context: RunContext) -> tuple[list[Candidate], Decision, Board]:
    """Return every measured board, the decision, and the board that it leaves, under the mode's name.

    The seeds' boards come in their order (the first is the board before anything), then those with a frame inserted, by
    round.
    """
    kind, scored, decision = context.mode.insert, state["scored"], state["decision"]
    base = [f"candidate:{seed}" for seed in context.candidate_seeds]
    rank = {str(seed): place for place, seed in enumerate(context.config.seeds)}

    def order(name: str) -> tuple[list[int], int]:
        head, _, seed = name.rpartition(":")
        return [int(part) for part in head.split(".")[1:]], rank.get(seed, len(rank))

    prefix = "move" if kind == "moves" else kind
    rest = [name for name in scored if re.match(rf"{prefix}[.:]", name)]
    candidates = [scored[name] for name in [*base, *sorted(rest, key=order)]]
    left = decision.inserted if decision.accepted and decision.inserted else decision.selected
    board = next(item.board for item in candidates if item.name == left)
    told = {"evidence": state.get("evidence", []), "tried": state.get("tried", [])}
    decision = decision.model_copy(update=told)
    return candidates, decision, board.model_copy(update={"method": context.mode.name})


RETRY = RetryPolicy(initial_interval=0.5, backoff_factor=2.0, max_attempts=4, retry_on=TransientRenderError)
"""Drawing is tried again where a renderer calls its failure transient, with the same bytes. What was done before the
failure is in the cache, so that only the rest is done. Judges are tried again where they are asked."""

Graph = CompiledStateGraph[RunState, RunContext, RunState, RunState]


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None = None, *, reports: bool = True) -> Graph:
    """Return the compiled machine; run it with a `RunContext`. Without `reports` it ends with the decision."""
    graph = StateGraph(RunState, context_schema=RunContext)
    graph.add_node("plan", plan)
    graph.add_node("render", render, input_schema=RenderTask, retry_policy=RETRY)
    graph.add_node("critique", critique, input_schema=CritiqueTask)
    graph.add_node("select", select)
    graph.add_node("localize", localize)
    graph.add_node("propose", propose)
    graph.add_node("bridge", bridge, input_schema=BridgeTask, retry_policy=RETRY)
    graph.add_node("critique_bridges", critique, input_schema=CritiqueTask)
    graph.add_node("review", review)
    graph.add_node("decide", decide)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", after_plan, ["render"])
    graph.add_edge("critique", "select")
    graph.add_conditional_edges("select", after_select)
    graph.add_conditional_edges("localize", after_localize, ["propose", "bridge", "decide"])
    graph.add_conditional_edges("propose", after_propose, ["bridge", "decide"])
    graph.add_conditional_edges("critique_bridges", after_critique)
    graph.add_conditional_edges("review", after_review, ["bridge", "decide"])
    if reports:
        graph.add_node("judge", judge)
        graph.add_node("report", report)
        graph.add_edge("judge", "report")
        graph.add_edge("report", END)
    done = "judge" if reports else END
    graph.add_conditional_edges("decide", after_decide, {"localize": "localize", "done": done})
    return graph.compile(checkpointer=checkpointer, name="katha")
