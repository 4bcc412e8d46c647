"""Algorithm 1's choices: the best candidate, the weakest transition, and whether an inserted frame stays.

Each choice comes with a sentence of reason that holds the numbers it rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from katha.schema import Candidate, CandidateScore, CompassSettings, TransitionScore

__all__ = ["Acceptance", "Weakest", "accept", "best_candidate", "transition_score", "weakest_transition"]


@dataclass(frozen=True)
class Weakest:
    """The transition of Eq. 27: its pair of scenes, its score in 0..1, and why it is the weakest."""

    pair: tuple[int, int]
    score: float
    reason: str


@dataclass(frozen=True)
class Acceptance:
    """Whether the inserted frame stays, and why."""

    accepted: bool
    reason: str


def _rank(score: CandidateScore) -> tuple[bool, float]:
    return (score.recoverability is not None, score.total)


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """The arg max of Eq. 24; of equals the first. One whose questions no judge answered comes after those scored."""
    return max(candidates, key=lambda candidate: _rank(candidate.score))


def transition_score(transition: TransitionScore) -> float:
    """What Eq. 27 minimises, in 0..1: recoverability, or coverage alone for a transition without scored questions."""
    return transition.recoverability if transition.recoverability is not None else float(transition.covered)


def weakest_transition(transitions: Sequence[TransitionScore]) -> Weakest | None:
    """Eq. 27's arg min; ties go to the lower coverage similarity, then to the earlier transition. None without any."""
    if not transitions:
        return None
    ranked = sorted(transitions, key=lambda item: (transition_score(item), item.similarity, item.pair))
    worst = ranked[0]
    score = transition_score(worst)
    names = f"scenes {worst.pair[0]} and {worst.pair[1]}"
    if worst.recoverability is None:
        reason = (
            f"The transition between {names} has no scored steering question; by coverage alone it scores {score:.2f} "
            f"(similarity {worst.similarity:.2f})."
        )
    else:
        reason = (
            f"From the frames of {names} alone, {100 * score:.0f}% of the {worst.n_questions} steering "
            f"question{'s' if worst.n_questions != 1 else ''} could be answered, the least of {len(transitions)} "
            f"transition{'s' if len(transitions) != 1 else ''}."
        )
    tied = [item for item in ranked[1:] if transition_score(item) == score]
    if tied:
        rule = "lower coverage similarity" if tied[0].similarity > worst.similarity else "earlier place"
        reason += f" It ties with {len(tied)} more and comes first by its {rule}."
    return Weakest(worst.pair, score, reason)


def accept(before: Candidate, after: Candidate, settings: CompassSettings) -> Acceptance:
    """Algorithm 1, line 13: the frozen score must rise strictly, and the inserted frame must not copy a neighbour.

    The copy threshold is gamma of Eq. 26, held against the pairs that the insertion made; a copy elsewhere in the
    board is no reason to refuse a repair. Where no judge could answer anything there is no score to rise: coverage
    alone decides only where there is nothing to ask.
    """
    old, new = before.score, after.score
    rise = f"the score goes from {old.total:.3f} to {new.total:.3f}"
    if (old.recoverability is None) != (new.recoverability is None):
        return Acceptance(
            False, "Not inserted: only one of the two boards has scored questions, so they do not compare."
        )
    if new.recoverability is None and any(item.n_questions for item in after.transitions):
        return Acceptance(
            False,
            "Not inserted: no judge could answer a steering question about either board, so nothing shows a gain.",
        )
    old_frames = {frame.sha256 for frame in before.board.frames}
    fresh = [frame for frame in after.board.frames if frame.sha256 not in old_frames]
    inserted = {frame.transition for frame in fresh or after.board.frames if frame.transition is not None}
    closest = max((item.adjacent for item in after.transitions if item.pair in inserted), default=0.0)
    copies = closest > settings.gamma
    against = f"its similarity to a neighbour is {closest:.2f}, the copy threshold {settings.gamma:.2f}"
    if not new.total > old.total:
        return Acceptance(False, f"Not inserted: {rise}, which is no improvement.")
    if copies:
        return Acceptance(False, f"Not inserted: {rise}, but it nearly repeats a neighbour ({against}).")
    return Acceptance(True, f"Inserted: {rise}, and it repeats no neighbour ({against}).")
