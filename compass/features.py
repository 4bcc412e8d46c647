"""What is measured on a board, apart from how it is weighed: everything that Eqs. 24 to 27 need but the settings.

A board is measured once; any number of weights and thresholds can be tried on its features, without judge or renderer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from katha.compass.score import candidate_score, copy_penalty, transition_coverage
from katha.schema import Board, Candidate, CompassSettings, Frame, Record, TransitionScore

__all__ = ["BoardFeatures", "BoardKey", "TransitionFeatures", "TransitionKey", "board_key", "weigh"]

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
