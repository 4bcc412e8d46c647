"""The Semantic Compass (Secs. B.5 and B.6): score candidates, find the weakest transition, decide on one bridge."""

from katha.compass.choose import (
    Acceptance,
    Weakest,
    accept,
    best_candidate,
    transition_score,
    weakest_transition,
)
from katha.compass.content import MASTER_SEED, Insertion, insertion, random_pair, transition_text
from katha.compass.features import BoardFeatures, TransitionFeatures, board_key, weigh
from katha.compass.modes import Mode, load_mode, load_modes
from katha.compass.score import (
    adjacent_similarities,
    candidate_score,
    copy_penalty,
    span,
    transition_coverage,
    transition_similarity,
)

__all__ = [
    "MASTER_SEED",
    "Acceptance",
    "BoardFeatures",
    "Insertion",
    "Mode",
    "TransitionFeatures",
    "Weakest",
    "accept",
    "adjacent_similarities",
    "best_candidate",
    "board_key",
    "candidate_score",
    "copy_penalty",
    "insertion",
    "load_mode",
    "load_modes",
    "random_pair",
    "span",
    "transition_coverage",
    "transition_score",
    "transition_similarity",
    "transition_text",
    "weakest_transition",
    "weigh",
]
