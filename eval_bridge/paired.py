"""Rows of a table that are compared in pairs: the same stories, the same resamples, whatever each row's scoring is.

Each row is a set of story counts (see `statistics.story_counts`); every interval and difference is computed from these,
with one seeded matrix of resampled stories for all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.outcomes import MISSING, RIGHT, Outcomes
from katha.eval_bridge.statistics import averages, interval, paired_p, replicates, story_counts, wilcoxon
from katha.schema import CONDITIONS, DIMENSIONS, Condition, Dimension

__all__ = ["FEWEST_STORIES", "RowCounts", "compare", "correct", "row_counts", "row_numbers"]

FEWEST_STORIES = 6
"""With fewer, no two-sided exact paired test can reach 5% (2 / 2**5 is more), so no interval is given."""

_TEXT, _IMAGE, _BOTH = range(3)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RowCounts:
    """One row: counts of shape (boards, stories, dimensions, 4), one board a seed; valid, scored: questions."""

    counts: Floats
    valid: int
    scored: int
    ambiguous: int

    def pooled(self, mask: NDArray[np.bool_] | None = None) -> Floats:
        """Shape (stories, dimensions, 4): the boards together; `mask` (boards, stories) leaves some out."""
        kept = self.counts if mask is None else self.counts * mask[:, :, None, None]
        total: Floats = kept.sum(axis=0)
        return total


def row_counts(
    outcomes: Outcomes,
    methods: Sequence[str],
    stories: Sequence[str],
    *,
    judge: str | None = None,
    conditions: Sequence[Condition] = CONDITIONS,
    filtered: bool = True,
    dimensions: Sequence[Dimension] = (),
    together: bool = False,
) -> RowCounts:
    """The counts of `methods` (the boards of one row) for `stories` in this order.

    conditions: those under which a question needs an outcome to be scored. filtered: only questions right under text
    and images count. dimensions: empty for all. together: questions are averaged whatever their dimension.
    """
    at = outcomes.judges.index(judge) if judge is not None else len(outcomes.judges) - 1
    used = [place for place, name in enumerate(CONDITIONS) if name in conditions]
    wanted = np.isin(outcomes.dimension_of, [DIMENSIONS.index(name) for name in dimensions or DIMENSIONS])
    order = np.array([stories.index(story) for story in outcomes.stories], dtype=np.intp)
    dimension_of = np.zeros_like(outcomes.dimension_of) if together else outcomes.dimension_of
    cell_of = order[outcomes.story_of] * len(DIMENSIONS) + dimension_of
    made, n_valid, n_scored, n_ambiguous = [], 0, 0, 0
    for name in methods:
        cells = outcomes.cells[outcomes.methods.index(name), at]
        scored = (cells[used] != MISSING).all(axis=0) & wanted
        right = cells == RIGHT
        valid = scored & right[_BOTH] if filtered else scored
        made.append(story_counts(right, valid, cell_of, len(stories)))
        n_valid, n_scored = n_valid + int(valid.sum()), n_scored + int(scored.sum())
        n_ambiguous += int((valid & (cells[_BOTH] != MISSING) & ~right[_BOTH]).sum())
    shape = (0, len(stories), len(DIMENSIONS), 4)
    return RowCounts(np.array(made) if made else np.zeros(shape), n_valid, n_scored, n_ambiguous)


def _stg(means: Floats) -> Floats:
    gap: Floats = means[..., _TEXT] - means[..., _IMAGE]
    return gap


def row_numbers(rows: Mapping[str, Floats], resamples: int, seed: int) -> dict[str, dict[str, Any]]:
    """Text, image, STG (percentage points) and their 95% intervals for each row's pooled counts."""
    if not rows:
        return {}
    table = np.stack(list(rows.values()))
    enough = table.shape[1] >= FEWEST_STORIES and resamples > 0
    drawn = replicates(table, resamples, seed) if enough else None
    found: dict[str, dict[str, Any]] = {}
    for place, (name, counts) in enumerate(rows.items()):
        means = averages(counts.sum(axis=0))
        own = drawn[:, place] if drawn is not None else None
        found[name] = {
            "text": _points(means[_TEXT]),
            "image": _points(means[_IMAGE]),
            "stg": _points(means[_TEXT] - means[_IMAGE]),
            "image_ci95": interval(own[:, _IMAGE]) if own is not None else None,
            "stg_ci95": interval(_stg(own)) if own is not None else None,
        }
    return found


def compare(
    pairs: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]], resamples: int, seed: int
) -> list[dict[str, Any]]:
    """STG of the first minus the second of each pair of pooled counts, on the stories of the mask (those both have).

    difference and ci95 are percentage points; the interval and p-values are None with fewer than `FEWEST_STORIES`.
    """
    return [_compare(first[has], second[has], resamples, seed) for first, second, has in pairs]


def _compare(a: Floats, b: Floats, resamples: int, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"n_stories": len(a), "difference": None, "image_difference": None, "ci95": None}
    row |= {"p_bootstrap": None, "wilcoxon": {"p": None, "n_nonzero": 0, "rank_biserial": None}}
    if not len(a):
        return row
    means = averages(np.stack([a.sum(axis=0), b.sum(axis=0)]))
    gaps = _stg(means)
    row["difference"] = _points(gaps[0] - gaps[1])
    row["image_difference"] = _points(means[0, _IMAGE] - means[1, _IMAGE])
    if len(a) >= FEWEST_STORIES and resamples > 0 and row["difference"] is not None:
        drawn = replicates(np.stack([a, b]), resamples, seed)
        differences = _stg(drawn[:, 0]) - _stg(drawn[:, 1])
        stories = _stg(averages(a)) - _stg(averages(b))
        row |= {"ci95": interval(differences), "p_bootstrap": paired_p(differences)}
        row["wilcoxon"] = wilcoxon(stories[~np.isnan(stories)])
    return row


def correct(rows: Sequence[dict[str, Any]]) -> None:
    """Add `family` and `p_corrected` (Bonferroni, of Wilcoxon's p) to comparisons that belong together."""
    for row in rows:
        p = row["wilcoxon"]["p"]
        row["family"] = len(rows)
        row["p_corrected"] = min(1.0, len(rows) * p) if p is not None else None


def _points(value: float) -> float | None:
    return None if np.isnan(value) else 100.0 * float(value)
