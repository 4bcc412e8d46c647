"""What `katha tune` works on: the features of every board that any setting could end with, measured once a story."""

from __future__ import annotations

from collections.abc import Sequence

from katha.compass.choose import weakest_transition
from katha.compass.features import BoardFeatures, TransitionFeatures
from katha.schema import Record, TransitionScore

__all__ = ["CandidateData", "RepairData", "StoryData", "possible_weakest", "weakest_at"]

Counts = list[list[float]]
"""Story counts of one board on the reporting questions: (dimensions, 4), see `eval_bridge.statistics`."""


class RepairData(Record):
    """A candidate with a bridge drawn from one seed; `closest`: its largest similarity to a neighbour."""

    seed: int
    features: BoardFeatures
    closest: float
    counts: Counts


class CandidateData(Record):
    """One seed's board, and its repairs by transition (`first-second`), one for each bridge seed."""

    seed: int
    features: BoardFeatures
    counts: Counts
    repairs: dict[str, list[RepairData]] = {}


class StoryData(Record):
    """One validation story: its candidates in the order of the seeds."""

    story_id: str
    identity: str = ""
    candidates: list[CandidateData]


def possible_weakest(transitions: Sequence[TransitionFeatures]) -> list[tuple[int, int]]:
    """The transitions that Eq. 27 can choose under any threshold: one without a scored question is scored by coverage,
    which changes only where the threshold passes a similarity."""
    deltas = (-1.0, *(item.similarity for item in transitions))
    return sorted({pair for delta in deltas if (pair := weakest_at(transitions, delta)[0]) is not None})


def weakest_at(transitions: Sequence[TransitionFeatures], delta: float) -> tuple[tuple[int, int] | None, float]:
    """Eq. 27 under one threshold: the transition and its score; None without any."""
    scored = [
        TransitionScore(
            pair=item.pair,
            recoverability=item.recoverability,
            n_questions=item.n_questions,
            similarity=item.similarity,
            covered=item.similarity > delta,
            copied=False,
        )
        for item in transitions
    ]
    weakest = weakest_transition(scored)
    return (weakest.pair, weakest.score) if weakest is not None else (None, 0.0)
