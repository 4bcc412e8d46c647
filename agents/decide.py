"""From measured boards to a decision: the mode's rule, and a reviewing person's choice above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from katha.agents.boards import PATH, inserted_name, insertion_of, insertion_seeds
from katha.agents.context import RunContext
from katha.agents.state import ReviewAction, ReviewChoice, ReviewRequest, RunState
from katha.compass.score import Acceptance, accept, best_candidate
from katha.errors import UsageError
from katha.schema import Board, Candidate, CompassSettings, Decision


def inserted_names(state: RunState, context: RunContext) -> list[str]:
    """The names of the measured boards with a frame more than the selected one, in the order of their seeds."""
    board = Board.model_validate(state["boards"][state["selected"]])
    seeds = insertion_seeds(context, board)
    names = [inserted_name(context.mode.insert, board, seed) for seed in seeds]
    return [name for name in names if name in state.get("scored", {})]


def all_names(state: RunState, context: RunContext) -> list[str]:
    """Every measured board beside the seeds': the composed one, then those with frames inserted, round by round."""
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


def _proposal(state: RunState, context: RunContext) -> tuple[Candidate, list[Candidate], Candidate, Acceptance]:
    """The selected board, the inserted ones best first, the one that is tried, and what the rule says of it."""
    selected = Candidate.model_validate(state["scored"][state["selected"]])
    inserted = [Candidate.model_validate(state["scored"][name]) for name in inserted_names(state, context)]
    best = best_candidate(inserted)
    ranked = [best, *(item for item in inserted if item.name != best.name)]
    rule = _RULES[context.mode.accept or "always"]
    return selected, ranked, best, rule(selected, best, context.config.compass)


def review_request(state: RunState, context: RunContext) -> ReviewRequest:
    """What a person is asked, from the state of a run that waits for them."""
    selected, inserted, best, verdict = _proposal(state, context)
    weakest = state["weakest"] or {}
    first, second = weakest["pair"]
    return ReviewRequest(
        story_id=context.record.story_id,
        mode=context.mode.name,
        selected=selected,
        weakest=(first, second),
        weakest_reason=weakest["reason"],
        inserted=tuple(inserted),
        proposal=best.name,
        accepts=verdict.accepted,
        reason=verdict.reason,
        prompt=insertion_of(context, (first, second), state.get("bridge_prompt")).prompt,
        panels=context.folder.panels,
    )


def read_choice(choice: ReviewChoice, request: ReviewRequest) -> dict[str, Any]:
    """A person's choice as state.

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
    return {"action": choice.action, "candidate": choice.candidate, "prompt": choice.prompt}


def review(state: RunState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Stop until a person has chosen. The answer to the interrupt is `{action, candidate, prompt}`.

    An answer that cannot be followed is asked for again, with what is wrong with it.
    """
    request = review_request(state, runtime.context)
    question = {
        "question": "Insert the frame? Answer {action: accept, reject, choose or edit, candidate, prompt}.",
        "proposal": request.proposal,
        "candidates": [item.name for item in request.inserted],
        "rule": request.reason,
        "prompt": request.prompt,
    }
    choice: dict[str, Any] | None = None
    while choice is None:
        try:
            choice = read_choice(ReviewChoice(**interrupt(question)), request)
        except (TypeError, UsageError) as error:
            question = {**question, "wrong": str(error)}
    edited = choice["prompt"] if choice["action"] == "edit" else state.get("bridge_prompt")
    return {"choice": choice, "bridge_prompt": edited}


def make_decision(state: RunState, context: RunContext) -> Decision:
    """The outcome in words and numbers. After an accepted frame, a further one that is not accepted changes nothing
    but the reason."""
    found = _decide(state, context)
    if not state.get("rounds"):
        return found
    earlier = Decision.model_validate(state["decision"])
    reason = f"{earlier.reason} Then: {found.reason}"
    if not found.accepted:
        return earlier.model_copy(update={"reason": reason})
    return found.model_copy(update={"selected": earlier.selected, "reason": reason})


def _decide(state: RunState, context: RunContext) -> Decision:
    """One round's outcome; a person's choice stands above the rule and says so."""
    weakest, localizes = state.get("weakest"), context.mode.at == "weakest"
    known: dict[str, Any] = {
        "selected": state["selected"],
        "weakest": weakest["pair"] if weakest and localizes else None,
        "weakest_reason": weakest["reason"] if weakest and localizes else None,
    }
    if context.mode.insert == "none":
        total = Candidate.model_validate(state["scored"][state["selected"]]).score.total
        return Decision(**known, reason=f"{context.mode.about} The board's score is {total:.3f}.")
    if not inserted_names(state, context):
        return Decision(**known, reason=state.get("note", "Nothing was inserted."))
    _, inserted, best, verdict = _proposal(state, context)
    choice = state.get("choice")
    if choice is None:
        return Decision(**known, inserted=best.name, accepted=verdict.accepted, reason=verdict.reason)
    chosen = choice["candidate"] if choice["action"] == "choose" else best.name
    total = next(item.score.total for item in inserted if item.name == chosen)
    words = {
        "accept": f"Inserted {chosen} by a person's choice (score {total:.3f}).",
        "choose": f"Inserted {chosen} by a person's choice (score {total:.3f}) instead of {best.name}.",
        "reject": "Kept as it was by a person's choice.",
    }[choice["action"]]
    accepted = choice["action"] != "reject"
    return Decision(
        **known, inserted=chosen, accepted=accepted, reviewed=True, reason=f"{words} The rule: {verdict.reason}"
    )
