"""How many stories a difference in STG needs before it shows: an estimate to make before spending on judges.

The spread of stories is taken from an archive: the standard deviation of paired differences of story STG between two
methods, as the Wilcoxon test sees them. The number of stories is statsmodels' for a paired t-test, divided by the
Wilcoxon test's asymptotic relative efficiency under normal differences (3 / pi).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.errors import UsageError
from katha.eval_bridge.extras import need
from katha.eval_bridge.matching import Matching
from katha.eval_bridge.outcomes import RIGHT, WRONG, Outcomes, Selection, collect
from katha.eval_bridge.statistics import averages, story_counts
from katha.schema import CONDITIONS, DIMENSIONS, Answer, StoryRecord

__all__ = ["power_estimate", "stories_needed"]

_EFFICIENCY = 3.0 / math.pi
_TEXT, _IMAGE, _BOTH = range(3)
DIFFERENCES = (2.0, 3.0, 5.0, 7.0)


def stories_needed(spread: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Stories for a two-sided paired test to find `difference` (same unit as `spread`) with probability `power`.

    Raises:
        UsageError: a number out of range. MissingExtraError: statsmodels is not installed.
    """
    if not (spread > 0 and difference > 0 and 0 < alpha < power < 1):
        raise UsageError(
            f"Spread {spread} and difference {difference} must be positive, and alpha {alpha} below power {power}."
        )
    solver = need("statsmodels.stats.power", "The power estimate").TTestPower()
    effect = difference / spread
    if float(solver.power(effect, 3, alpha)) >= power:
        return 3
    exact = float(solver.solve_power(effect_size=effect, alpha=alpha, power=power, alternative="two-sided"))
    return math.ceil(exact / _EFFICIENCY)


def power_estimate(
    records: Iterable[StoryRecord],
    answers: Iterable[Answer],
    *,
    matching: Matching,
    questions: Selection = "reporting",
    differences: Sequence[float] = DIFFERENCES,
    power: float = 0.8,
    alpha: float = 0.05,
) -> dict[str, Any]:
    """For each pair of methods (or the one method): spread of story STG in points, and stories needed by difference.

    `alpha` is divided by the number of pairs (Bonferroni). The last judge is used: the ensemble where there are
    several. With one method the difference is taken to be between independent boards, which asks for the most stories.
    """
    outcomes = collect(records, answers, matching=matching, selection=questions)
    gaps = [_story_gaps(outcomes, method) for method in range(len(outcomes.methods))]
    pairs = list(combinations(range(len(gaps)), 2))
    rows = [
        _row(f"{outcomes.methods[a]} against {outcomes.methods[b]}", gaps[a] - gaps[b], 1.0, alpha / len(pairs))
        for a, b in pairs
    ]
    rows += [_row(outcomes.methods[0], gaps[0], math.sqrt(2.0), alpha)] if len(gaps) == 1 else []
    per_story = len(outcomes.questions) / len(outcomes.stories) if outcomes.stories else 0.0
    for row in rows:
        row["needed"] = [
            _needed(row["spread"], size, power, row["alpha"], per_story) for size in differences if row["spread"]
        ]
    notes = [
        f"{row['between']}: fewer than two stories differ, so there is no spread." for row in rows if not row["spread"]
    ]
    return {
        "power": power,
        "judge": outcomes.judges[-1] if outcomes.judges else None,
        "questions_per_story": per_story,
        "estimates": rows,
        "notes": notes + ([] if rows else ["No method was judged, so there is nothing to estimate from."]),
    }


def _row(between: str, values: NDArray[np.float64], factor: float, alpha: float) -> dict[str, Any]:
    kept = values[~np.isnan(values)]
    spread = 100.0 * factor * float(kept.std(ddof=1)) if kept.size > 1 else 0.0
    return {"between": between, "n_stories": int(kept.size), "spread": spread or None, "alpha": alpha}


def _needed(spread: float, difference: float, power: float, alpha: float, per_story: float) -> dict[str, Any]:
    stories = stories_needed(spread, difference, power=power, alpha=alpha)
    calls = math.ceil(stories * per_story) * len(CONDITIONS)
    return {"difference": difference, "stories": stories, "judge_calls": calls}


def _story_gaps(outcomes: Outcomes, method: int) -> NDArray[np.float64]:
    """The STG of each story on its valid questions, in 0..1, shape (stories,); NaN where none is valid."""
    cells = outcomes.cells[method, -1]
    valid = (cells >= WRONG).all(axis=0) & (cells[_BOTH] == RIGHT)
    cell_of = outcomes.story_of * len(DIMENSIONS) + outcomes.dimension_of
    means = averages(story_counts(cells == RIGHT, valid, cell_of, len(outcomes.stories)))
    gap: NDArray[np.float64] = means[:, _TEXT] - means[:, _IMAGE]
    return gap
