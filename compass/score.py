"""Score boards, find the weakest transition, and decide on one bridge (Eqs. 24 to 28, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from katha.schema import Board, Candidate, CandidateScore, CompassSettings, Frame, Record, TransitionScore

# The annotation of T scenes has T-1 transitions whatever the number of displayed frames is. Coverage (Eq. 25)
# averages over the annotated transitions; a frame inserted in a transition counts for it, so the maximum runs over t,
# the inserted frame, and t+1. The copy penalty (Eq. 26) averages over the adjacent pairs of the displayed frames.
# Without an inserted frame both are the paper's formulas to the letter.

Vectors = NDArray[np.float64]


def span(frames: Sequence[Frame], pair: tuple[int, int]) -> list[int]:
    """The positions (from 0) of the frames that show a transition: its two scenes and what was inserted between."""
    first, last = pair
    return [
        position
        for position, frame in enumerate(frames)
        if (frame.kind == "scene" and frame.scene in (first, last))
        or (frame.kind != "scene" and frame.transition == pair)
    ]


def transition_similarity(images: Vectors, text: Vectors) -> float:
    """The maximum in Eq. 25: the best of the images (of shape (n, D)) for one transition's text (of shape (D,))."""
    return float(np.max(images @ text)) if len(images) else 0.0


def transition_coverage(similarities: Sequence[float], delta: float) -> float:
    """Eq. 25: the share of annotated transitions whose similarity is above `delta`; 0 when there is none."""
    return sum(value > delta for value in similarities) / len(similarities) if similarities else 0.0


def adjacent_similarities(images: Vectors) -> list[float]:
    """sim() of each pair of adjacent displayed frames; `images` holds unit vectors, of shape (N, D)."""
    return [float(value) for value in np.einsum("nd,nd->n", images[:-1], images[1:])]


def copy_penalty(adjacent: Sequence[float], gamma: float) -> float:
    """Eq. 26: the share of adjacent pairs that are near-duplicates (above `gamma`); 0 for a single frame."""
    return sum(value > gamma for value in adjacent) / len(adjacent) if adjacent else 0.0


def candidate_score(
    recoverability: float | None, coverage: float, copy: float, settings: CompassSettings
) -> CandidateScore:
    """Eq. 24, every term in 0..1. Without recoverability (no steering question was scored) its term is left out."""
    gained = settings.lambda_r * recoverability if recoverability is not None else 0.0
    total = gained + settings.lambda_t * coverage - settings.lambda_p * copy
    return CandidateScore(recoverability=recoverability, coverage=coverage, copy_penalty=copy, total=total)


# A board is measured once; any number of weights and thresholds can be tried on its features, without judge or
# renderer.

_UNSCORED = "No steering question was scored; coverage alone counts."

BoardKey = tuple[tuple[str, str, int | None, tuple[int, int] | None], ...]
TransitionKey = tuple[tuple[int, int], BoardKey]
"""A transition and the frames that show it, whatever the rest of the board is."""


class TransitionFeatures(Record):
    """One transition on the frames that show it: recoverability in 0..1 or None, Eq. 25's maximum and the largest
    similarity of neighbouring frames (both before thresholding)."""

    pair: tuple[int, int]
    recoverability: float | None
    n_questions: int
    similarity: float
    adjacent: float


class BoardFeatures(Record):
    """One board: recoverability in 0..1 or None, the similarity of each adjacent pair of frames, its transitions, and
    short names of the questions that measuring it takes."""

    recoverability: float | None
    adjacent: list[float]
    transitions: list[TransitionFeatures]
    asked: list[str] = []


def board_key(frames: Sequence[Frame]) -> BoardKey:
    """What a board's features depend on: its pictures in order, and what each stands for."""
    return tuple((frame.sha256, frame.kind, frame.scene, frame.transition) for frame in frames)


def weigh(name: str, board: Board, features: BoardFeatures, settings: CompassSettings) -> Candidate:
    """`board` with its score by Eq. 24 under `settings`."""
    plain = all(frame.transition is None for frame in board.frames)
    kind: Literal["base", "inserted"] = "base" if plain else "inserted"
    score = candidate_score(
        features.recoverability,
        transition_coverage([item.similarity for item in features.transitions], settings.delta),
        copy_penalty(features.adjacent, settings.gamma),
        settings,
    )
    transitions = [_weighed(item, settings) for item in features.transitions]
    return Candidate(name=name, kind=kind, board=board, score=score, transitions=transitions)


def _weighed(item: TransitionFeatures, settings: CompassSettings) -> TransitionScore:
    return TransitionScore(
        pair=item.pair,
        recoverability=item.recoverability,
        n_questions=item.n_questions,
        similarity=item.similarity,
        covered=item.similarity > settings.delta,
        copied=item.adjacent > settings.gamma,
        adjacent=item.adjacent,
        note=None if item.recoverability is not None else _UNSCORED,
    )


# Each choice comes with a sentence of reason that holds the numbers it rests on.


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
