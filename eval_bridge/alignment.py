"""How well scores agree with people on what fails (Tables 3, 54, 58): dimension localization and rank correlation.

For each story and method the failing dimension is the one with the largest text-minus-image gap over its valid
questions. Localization is the share of people's `failing` labels that it hits; a story without a positive gap, with a
tie, or with questions of one dimension only names none and counts as missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.errors import RecordError
from katha.eval_bridge.calibration import pairwise_agreement, rank_correlation
from katha.eval_bridge.matching import Matching
from katha.eval_bridge.outcomes import RIGHT, WRONG, Aggregate, Outcomes, Selection, collect
from katha.eval_bridge.statistics import averages, interval, resample_counts, story_counts
from katha.schema import CONDITIONS, DIMENSIONS, Answer, StoryRecord

__all__ = ["Placed", "alignment", "correlation", "localization"]

_TEXT, _IMAGE, _BOTH = range(3)
Floats = NDArray[np.float64]


def alignment(
    records: Iterable[StoryRecord],
    answers: Iterable[Answer],
    judgments: Iterable[Mapping[str, Any]],
    *,
    matching: Matching,
    questions: Selection = "reporting",
    resamples: int = 10_000,
    seed: int = 42,
    calibrated: Aggregate | None = None,
) -> dict[str, Any]:
    """By judge: `localization` in percentage points with its interval and chance, and rank correlation with people.

    judgments: rows with `story_id` and `failing` or `human_score` (or both), and `method` where there are several.
    calibrated: the human-calibrated ensemble, one more judge.

    Raises:
        RecordError: a row is about an unknown method, or about none where there are several.
    """
    outcomes = collect(records, answers, matching=matching, selection=questions, calibrated=calibrated)
    rows = [row for row in judgments if "story_id" in row and ("failing" in row or "human_score" in row)]
    placed = _placed(rows, outcomes)
    found: dict[str, Any] = {"judges": {}, "notes": []}
    lost = len(rows) - len(placed)
    if lost:
        found["notes"].append(f"{lost} judgments are about stories that are not scored and are left out.")
    for at, judge in enumerate(outcomes.judges):
        counts = np.stack([_counts(outcomes, m, at) for m in range(len(outcomes.methods))])
        found["judges"][judge] = {
            "localization": localization(placed, counts, resamples, seed),
            "human_score": correlation(placed, counts),
        }
    return found


Placed = list[tuple[int, int, Mapping[str, Any]]]
"""Judgments, each with the places of its method and story in an array of counts (methods, stories, dimensions, 4)."""


def _placed(rows: list[Mapping[str, Any]], outcomes: Outcomes) -> Placed:
    """Each judgment with the places of its method and story; judgments about strange stories are dropped."""
    stories = {name: at for at, name in enumerate(outcomes.stories)}
    methods = {name: at for at, name in enumerate(outcomes.methods)}
    placed: Placed = []
    for row in rows:
        name = row.get("method", outcomes.methods[0] if len(outcomes.methods) == 1 else None)
        if name not in methods:
            known = ", ".join(outcomes.methods)
            raise RecordError(f"Line {row.get('line')}: the method {name!r} is none of those scored: {known}.")
        if row["story_id"] in stories:
            placed.append((methods[name], stories[row["story_id"]], row))
    return placed


def _counts(outcomes: Outcomes, method: int, judge: int) -> Floats:
    """Per story and dimension: valid questions and how many are right, shape (stories, dimensions, 4)."""
    cells = outcomes.cells[method, judge]
    valid = (cells >= WRONG).all(axis=0) & (cells[_BOTH] == RIGHT)
    cell_of = outcomes.story_of * len(DIMENSIONS) + outcomes.dimension_of
    return story_counts(cells == RIGHT, valid, cell_of, len(outcomes.stories))


def _failing(counts: Floats) -> str | None:
    """The dimension of one story, shape (dimensions, 4), with the one largest positive gap."""
    asked = counts[:, 0] > 0
    if asked.sum() < 2:
        return None
    gaps = np.where(asked, (counts[:, 1 + _TEXT] - counts[:, 1 + _IMAGE]) / np.maximum(counts[:, 0], 1), -np.inf)
    best = np.flatnonzero(gaps == gaps.max())
    return DIMENSIONS[int(best[0])] if len(best) == 1 and gaps.max() > 0 else None


def localization(placed: Placed, counts: Floats, resamples: int, seed: int) -> dict[str, Any] | None:
    """How often the failing dimension of `counts` is the one that people name; None without such a judgment."""
    own = [
        (story, _failing(counts[method, story]) == row["failing"]) for method, story, row in placed if "failing" in row
    ]
    if not own:
        return None
    stories = sorted({story for story, _ in own})
    sums = np.zeros((len(stories), 2))
    for story, hit in own:
        sums[stories.index(story)] += (1.0, hit)
    ci95 = None
    if len(stories) > 1 and resamples:
        drawn = np.concatenate([rows @ sums for rows in resample_counts(len(stories), resamples, seed)])
        ci95 = interval(drawn[:, 1] / drawn[:, 0])
    hits = sum(hit for _, hit in own)
    return {"n": len(own), "right": 100.0 * hits / len(own), "chance": 100.0 / len(DIMENSIONS), "ci95": ci95}


def correlation(placed: Placed, counts: Floats) -> dict[str, Any] | None:
    """Spearman and pairwise agreement of a board's image recoverability with people's score of it."""
    image = CONDITIONS.index("image")
    pairs = [  # rounded: a tie is a tie, whichever way the last digit of an average fell
        (round(float(averages(counts[method, story])[image]), 12), float(row["human_score"]))
        for method, story, row in placed
        if "human_score" in row
    ]
    kept = [(judge, human) for judge, human in pairs if not np.isnan(judge)]
    if not pairs:
        return None
    judged, people = [judge for judge, _ in kept], [human for _, human in kept]
    return {
        "n": len(kept),
        "spearman": rank_correlation(judged, people),
        "pairwise_agreement": pairwise_agreement(judged, people),
    }
