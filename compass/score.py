"""Eqs. 24 to 26: how good a board is.

The annotation of T scenes has T-1 transitions whatever the number of displayed frames is. Coverage (Eq. 25) averages
over the annotated transitions; a frame inserted in a transition counts for it, so the maximum runs over t, the inserted
frame, and t+1. The copy penalty (Eq. 26) averages over the adjacent pairs of the displayed frames. Without an inserted
frame both are the paper's formulas to the letter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from katha.schema import CandidateScore, CompassSettings, Frame

__all__ = [
    "adjacent_similarities",
    "candidate_score",
    "copy_penalty",
    "span",
    "transition_coverage",
    "transition_similarity",
]

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
