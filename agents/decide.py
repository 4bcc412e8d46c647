"""From measured boards to a decision: the mode's rule, and a reviewing person's choice above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict, get_args

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from katha.agents.boards import PATH, inserted_name, insertion_of, insertion_seeds
from katha.agents.context import RunContext
from katha.agents.state import ReviewAction, ReviewChoice, ReviewRequest, RunState
from katha.compass.repair import Acceptance, accept, best_candidate
from katha.errors import UsageError
from katha.schema import Candidate, CompassSettings, Decision


def inserted_names(state: RunState, context: RunContext) -> list[str]:
    """Return the names of the measured boards with a frame more than the selected one, in the order of their seeds."""
    board = state["boards"][state["selected"]]
    seeds = insertion_seeds(context, board)
    names = [inserted_name(context.mode.insert, board, seed) for seed in seeds]
    return [name for name in names if name in state.get("scored", {})]


def all_names(state: RunState, context: RunContext) -> list[str]:
    """Return every measured board beside the seeds': the composed one, then those with frames inserted, by round."""
    kind, seeds = context.mode.insert, context.config.seeds
    order = [PATH]
    for number in range(1, context.mode.budget + 1):
        mark = f"{kind}:" if number == 1 else f"{kind}.{number}:"
        own = [name for name in state["scored"] if name.startswith(mark)]
        rank = {str(seed): place for place, seed in enumerate(seeds)}
        order += sorted(own, key=lambda name: rank.get(name.rpartition(":")[2], len(rank)))
    return [name for name in order if name in state["scored"]]


def _always(before: Candidate, after: Candidate, settings: CompassSettings) -> Acceptance:
    rise = f"the score goes from {before.score.total:.3f} to {after.score.total:.3f}"
    return Acceptance(True, f"Inserted, as this mode always does: {rise}.")


_RULES: Mapping[str, Callable[[Candidate, Candidate, CompassSettings], Acceptance]] = {
    "always": _always,
    "improvement": accept,
}


@dataclass(frozen=True)
class _Proposal:
    """The selected board, the inserted ones best first (the first is tried), and what the rule says of it."""

    selected: Candidate
    inserted: list[Candidate]
    verdict: Acceptance

    @property
    def best(self) -> Candidate:
        return self.inserted[0]


def _propose(state: RunState, context: RunContext) -> _Proposal:
    selected = state["scored"][state["selected"]]
    inserted = [state["scored"][name] for name in inserted_names(state, context)]
    best = best_candidate(inserted)
    rule = _RULES[context.mode.accept or "always"]
    ranked = [best, *(item for item in inserted if item.name != best.name)]
    return _Proposal(selected, ranked, rule(selected, best, context.config.compass))


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
        proposal=proposal.best.name,
        accepts=proposal.verdict.accepted,
        reason=proposal.verdict.reason,
        prompt=insertion_of(context, place.pair, state.get("bridge_prompt")).prompt,
        panels=context.folder.panels,
    )


def check_choice(choice: ReviewChoice, request: ReviewRequest) -> ReviewChoice:
    """Return a person's choice if it can be followed.

    Raises:
        UsageError: it is none of the four, names no board that is there, or has an empty prompt.
    """
    names = [item.name for item in request.inserted]
    if choice.action not in get_args(ReviewAction):
        raise UsageError(f"{choice.action!r} is no choice.", hint=f"Known: {', '.join(get_args(ReviewAction))}.")
    if choice.action == "choose" and choice.candidate not in names:
        raise UsageError(f"No inserted board is called {choice.candidate!r}.", hint=f"Known: {', '.join(names)}.")
    if choice.action == "edit" and not (choice.prompt or "").strip():
        raise UsageError("The new prompt is empty.", hint="Say what the inserted frame is to show.")
    return choice


class Reviewed(TypedDict):
    """What a person's answer changes in the state."""

    choice: ReviewChoice
    bridge_prompt: str | None


def review(state: RunState, runtime: Runtime[RunContext]) -> Reviewed:
    """Stop until a person has chosen. The answer to the interrupt is `{action, candidate, prompt}`.

    An answer that cannot be followed is asked for again, with what is wrong with it.
    """
    request = review_request(state, runtime.context)
    question: dict[str, object] = {
        "question": "Insert the frame? Answer {action: accept, reject, choose or edit, candidate, prompt}.",
        "proposal": request.proposal,
        "candidates": [item.name for item in request.inserted],
        "rule": request.reason,
        "prompt": request.prompt,
    }
    choice: ReviewChoice | None = None
    while choice is None:
        try:
            choice = check_choice(ReviewChoice(**interrupt(question)), request)
        except (TypeError, UsageError) as error:
            question = {**question, "wrong": str(error)}
    return {"choice": choice, "bridge_prompt": choice.prompt if choice.action == "edit" else state.get("bridge_prompt")}


def make_decision(state: RunState, context: RunContext) -> Decision:
    """Return the outcome in words and numbers.

    After an accepted frame, a further one that is not accepted changes nothing but the reason.
    """
    found = _decide(state, context)
    if not state.get("rounds"):
        return found
    earlier = state["decision"]
    reason = f"{earlier.reason} Then: {found.reason}"
    if not found.accepted:
        return earlier.model_copy(update={"reason": reason})
    return found.model_copy(update={"selected": earlier.selected, "reason": reason})


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
        total = state["scored"][state["selected"]].score.total
        return decision.model_copy(update={"reason": f"{context.mode.about} The board's score is {total:.3f}."})
    if not inserted_names(state, context):
        return decision.model_copy(update={"reason": state.get("note", "Nothing was inserted.")})
    proposal, choice = _propose(state, context), state.get("choice")
    accepted, reason, chosen = proposal.verdict.accepted, proposal.verdict.reason, proposal.best.name
    if choice is not None:
        chosen = choice.candidate if choice.action == "choose" and choice.candidate else chosen
        accepted, reason = choice.action != "reject", f"{_in_words(choice, chosen, proposal)} The rule: {reason}"
    changes = {"inserted": chosen, "accepted": accepted, "reviewed": choice is not None, "reason": reason}
    return decision.model_copy(update=changes)


def _in_words(choice: ReviewChoice, chosen: str, proposal: _Proposal) -> str:
    total = next(item.score.total for item in proposal.inserted if item.name == chosen)
    if choice.action == "reject":
        return "Kept as it was by a person's choice."
    instead = f" instead of {proposal.best.name}" if choice.action == "choose" else ""
    return f"Inserted {chosen} by a person's choice (score {total:.3f}){instead}."
