"""Resampling of stories, paired tests and tables of pairs, and how many stories a difference needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.errors import UsageError
from katha.eval_bridge.matching.match import Matching
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, WRONG, Outcomes, collect
from katha.models.checkpoints import need
from katha.schema import CONDITIONS, DIMENSIONS, Answer, Condition, Dimension, StoryRecord
from katha.schema.scores import (
    Interval,
    PowerEstimate,
    RowDifference,
    RowNumbers,
    Selection,
    SpreadEstimate,
    StoriesNeeded,
    WilcoxonTest,
)

# Questions of one story are correlated, so stories are resampled, never questions. One seeded index matrix serves
# every method, judge, block and dimension; each comparison is therefore paired. Counts are whole numbers in float64,
# so sums do not depend on their order.

Floats = NDArray[np.float64]
_CHUNK_CELLS = 2_000_000
_EXACT = 2.0**24
_LEVELS = (2.5, 97.5)
_NOTHING = 1e-12
COUNTS = 4
"""Per story and dimension: questions, right under text, under image, under text+image."""


def story_counts(right: NDArray[np.bool_], kept: NDArray[np.bool_], cell_of: NDArray[np.intp], stories: int) -> Floats:
    """Sufficient statistics of shape (stories, dimensions, COUNTS).

    right: (conditions, Q). kept: (Q,) the block's questions. cell_of: (Q,) story * dimensions + dimension.
    """
    cells = stories * len(DIMENSIONS)
    where = cell_of[kept]
    number: Floats = np.bincount(where, minlength=cells).astype(np.float64)
    columns = [number]
    columns += [np.bincount(where[row[kept]], minlength=cells).astype(np.float64) for row in right]
    return np.stack(columns, axis=1).reshape(stories, len(DIMENSIONS), COUNTS)


def averages(counts: Floats) -> Floats:
    """Mean over the dimensions that have a question, for each condition: (..., dimensions, COUNTS) to (..., 3).

    In 0..1; NaN where no dimension has a question (Eqs. 17 and 18, missing dimensions left out).
    """
    number = counts[..., 0]
    present = number > 0
    rates = counts[..., 1:] / np.where(present, number, 1.0)[..., None]
    total = np.where(present[..., None], rates, 0.0).sum(axis=-2)
    dimensions = present.sum(axis=-1)[..., None]
    return np.where(dimensions > 0, total / np.maximum(dimensions, 1), np.nan)


def resample_counts(stories: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each story is drawn, in chunks of shape (rows, stories), `resamples` rows in all.

    The rows are those of `numpy.random.default_rng(seed).integers(0, stories, (resamples, stories))`, whatever the
    chunk size.
    """
    generator = np.random.default_rng(seed)
    step = max(1, _CHUNK_CELLS // stories)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = generator.integers(0, stories, (rows, stories))
        flat = (drawn + stories * np.arange(rows)[:, None]).ravel()
        yield np.bincount(flat, minlength=rows * stories).reshape(rows, stories).astype(np.float64)


def replicates(counts: Floats, resamples: int, seed: int) -> Floats:
    """`averages` of each resample: counts (blocks, stories, dimensions, COUNTS) to (resamples, blocks, 3)."""
    blocks, stories = counts.shape[:2]
    columns = np.moveaxis(counts, 1, 0).reshape(stories, -1)
    # Whole numbers below 2**24 are exact in float32, too, and their products take half the time.
    exact = stories * float(counts.max(initial=0.0)) < _EXACT
    kind: Any = np.float32 if exact and np.array_equal(counts, np.floor(counts)) else np.float64
    columns = columns.astype(kind)
    parts = []
    for drawn in resample_counts(stories, resamples, seed):
        sums = (drawn.astype(kind) @ columns).astype(np.float64).reshape(len(drawn), blocks, len(DIMENSIONS), COUNTS)
        parts.append(averages(sums))
    return np.concatenate(parts)


def interval(values: Floats) -> Interval | None:
    """The percentile 95% interval of `values` in percentage points, NaN left out; None without any value."""
    kept = values[~np.isnan(values)]
    if not kept.size:
        return None
    low, high = np.percentile(kept, _LEVELS)
    return 100.0 * float(low), 100.0 * float(high)


def share_interval(
    stories: Sequence[str] | Sequence[int],
    hits: Sequence[float],
    resamples: int,
    seed: int,
    *,
    counted: Sequence[float] | None = None,
) -> Interval | None:
    """Return the interval of the share of hits, one number (0 or 1) an item, when the items' stories are resampled.

    counted: 0 leaves an item out, but its story is still drawn. None with fewer than two stories.
    """
    names, places = np.unique(np.asarray(stories), return_inverse=True)
    if len(names) < 2 or resamples < 1:
        return None
    kept = np.ones(len(places)) if counted is None else np.asarray(counted, dtype=np.float64)
    sums = np.stack([np.bincount(places, weights=kept), np.bincount(places, weights=np.asarray(hits) * kept)], axis=1)
    drawn = np.concatenate([rows @ sums for rows in resample_counts(len(names), resamples, seed)])
    return interval(np.divide(drawn[:, 1], drawn[:, 0], out=np.full(len(drawn), np.nan), where=drawn[:, 0] > 0))


def paired_p(differences: Floats) -> float | None:
    """Two-sided bootstrap p of a difference: 2 (1 + smaller tail) / (1 + resamples), at most 1; None without any."""
    kept = differences[~np.isnan(differences)]
    if not kept.size:
        return None
    # A difference of nothing must count on both sides, whichever way its last digit was rounded.
    tail = min(int((kept <= _NOTHING).sum()), int((kept >= -_NOTHING).sum()))
    return min(1.0, 2.0 * (1 + tail) / (1 + kept.size))


def wilcoxon(differences: Floats) -> WilcoxonTest:
    """Two-sided Wilcoxon signed-rank test over stories, zero_method "wilcox" (zero differences are dropped).

    The effect is (W+ - W-) / (W+ + W-) (Eq. 49); it and p are None without a nonzero difference. Exact for up to 50
    differences without ties, else the normal approximation.
    """
    nonzero = differences[np.abs(differences) > _NOTHING]
    if not nonzero.size:
        return WilcoxonTest(p=None, n_nonzero=0, rank_biserial=None)
    if nonzero.size == 1:  # whichever sign it has; said here so that one story does not wait for SciPy's import
        return WilcoxonTest(p=1.0, n_nonzero=1, rank_biserial=float(np.sign(nonzero[0])))
    from scipy import stats

    sizes = np.round(np.abs(nonzero), 12)
    ranks = stats.rankdata(sizes)
    plus, minus = float(ranks[nonzero > 0].sum()), float(ranks[nonzero < 0].sum())
    exact = nonzero.size <= 50 and len(np.unique(sizes)) == nonzero.size
    method = "exact" if exact else "asymptotic"
    rounded = np.sign(nonzero) * sizes
    p = float(stats.wilcoxon(rounded, zero_method="wilcox", alternative="two-sided", method=method).pvalue)
    effect = (plus - minus) / (plus + minus)
    return WilcoxonTest(p=None if np.isnan(p) else p, n_nonzero=int(nonzero.size), rank_biserial=effect)


def bonferroni(p: float | None, family: int) -> float | None:
    """Return `p` corrected for `family` comparisons."""
    return None if p is None else min(1.0, family * p)


# Rows of a table that are compared in pairs: the same stories, the same resamples, whatever each row's scoring is.
#
# Each row is a set of story counts (see `statistics.story_counts`); every interval and difference is computed from
# these, with one seeded matrix of resampled stories for all rows.

FEWEST_STORIES = 6
"""With fewer, no two-sided exact paired test can reach 5% (2 / 2**5 is more), so no interval is given."""

_TEXT, _IMAGE, _BOTH = range(3)


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


def row_numbers(rows: Mapping[str, Floats], resamples: int, seed: int) -> dict[str, RowNumbers]:
    """Text, image, STG (percentage points) and their 95% intervals for each row's pooled counts."""
    if not rows:
        return {}
    table = np.stack(list(rows.values()))
    enough = table.shape[1] >= FEWEST_STORIES and resamples > 0
    drawn = replicates(table, resamples, seed) if enough else None
    found: dict[str, RowNumbers] = {}
    for place, (name, counts) in enumerate(rows.items()):
        means = averages(counts.sum(axis=0))
        own = drawn[:, place] if drawn is not None else None
        found[name] = RowNumbers(
            text=_points(means[_TEXT]),
            image=_points(means[_IMAGE]),
            stg=_points(means[_TEXT] - means[_IMAGE]),
            image_ci95=interval(own[:, _IMAGE]) if own is not None else None,
            stg_ci95=interval(_stg(own)) if own is not None else None,
        )
    return found


def compare(
    pairs: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]], resamples: int, seed: int
) -> list[RowDifference]:
    """STG of the first minus the second of each pair of pooled counts, on the stories of the mask (those both have).

    difference and ci95 are percentage points; the interval and p-values are None with fewer than `FEWEST_STORIES`.
    """
    return [_compare(first[has], second[has], resamples, seed) for first, second, has in pairs]


def _compare(a: Floats, b: Floats, resamples: int, seed: int) -> RowDifference:
    if not len(a):
        return RowDifference(n_stories=0)
    means = averages(np.stack([a.sum(axis=0), b.sum(axis=0)]))
    gaps = _stg(means)
    row = RowDifference(
        n_stories=len(a),
        difference=_points(gaps[0] - gaps[1]),
        image_difference=_points(means[0, _IMAGE] - means[1, _IMAGE]),
    )
    if len(a) < FEWEST_STORIES or resamples < 1 or row.difference is None:
        return row
    drawn = replicates(np.stack([a, b]), resamples, seed)
    differences = _stg(drawn[:, 0]) - _stg(drawn[:, 1])
    stories = _stg(averages(a)) - _stg(averages(b))
    tests = {
        "ci95": interval(differences),
        "p_bootstrap": paired_p(differences),
        "wilcoxon": wilcoxon(stories[~np.isnan(stories)]),
    }
    return row.model_copy(update=tests)


def correct(row: RowDifference, family: int) -> RowDifference:
    """Return a comparison of a family of so many with `p_corrected`: Wilcoxon's p by Bonferroni."""
    return row.model_copy(update={"family": family, "p_corrected": bonferroni(row.wilcoxon.p, family)})


def _points(value: float) -> float | None:
    return None if np.isnan(value) else 100.0 * float(value)


# How many stories a difference in STG needs before it shows: an estimate to make before spending on judges.
#
# The spread of stories is taken from an archive: the standard deviation of paired differences of story STG between
# two methods, as the Wilcoxon test sees them. The number of stories is statsmodels' for a paired t-test, divided by
# the Wilcoxon test's asymptotic relative efficiency under normal differences (3 / pi).

_EFFICIENCY = 3.0 / math.pi
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
) -> PowerEstimate:
    """For each pair of methods (or the one method): spread of story STG in points, and stories needed by difference.

    `alpha` is divided by the number of pairs (Bonferroni). The last judge is used: the ensemble where there are
    several. With one method the difference is taken to be between independent boards, which asks for the most stories.
    """
    outcomes = collect(records, answers, matching=matching, selection=questions)
    gaps = [_story_gaps(outcomes, method) for method in range(len(outcomes.methods))]
    pairs = list(combinations(range(len(gaps)), 2))
    spreads = [(f"{outcomes.methods[a]} against {outcomes.methods[b]}", gaps[a] - gaps[b], 1.0) for a, b in pairs]
    spreads += [(outcomes.methods[0], gaps[0], math.sqrt(2.0))] if len(gaps) == 1 else []
    per_story = len(outcomes.questions) / len(outcomes.stories) if outcomes.stories else 0.0
    share = alpha / max(1, len(pairs))
    rows = []
    for between, values, factor in spreads:
        kept = values[~np.isnan(values)]
        spread = 100.0 * factor * float(kept.std(ddof=1)) if kept.size > 1 else 0.0
        needed = [_needed(spread, size, power, share, per_story) for size in differences if spread]
        rows.append(
            SpreadEstimate(between=between, n_stories=int(kept.size), spread=spread or None, alpha=share, needed=needed)
        )
    notes = [f"{row.between}: fewer than two stories differ, so there is no spread." for row in rows if not row.spread]
    return PowerEstimate(
        power=power,
        judge=outcomes.judges[-1] if outcomes.judges else None,
        questions_per_story=per_story,
        estimates=rows,
        notes=notes or ([] if rows else ["No method was judged, so there is nothing to estimate from."]),
    )


def _needed(spread: float, difference: float, power: float, alpha: float, per_story: float) -> StoriesNeeded:
    stories = stories_needed(spread, difference, power=power, alpha=alpha)
    calls = math.ceil(stories * per_story) * len(CONDITIONS)
    return StoriesNeeded(difference=difference, stories=stories, judge_calls=calls)


def _story_gaps(outcomes: Outcomes, method: int) -> NDArray[np.float64]:
    """The STG of each story on its valid questions, in 0..1, shape (stories,); NaN where none is valid."""
    cells = outcomes.cells[method, -1]
    valid = (cells >= WRONG).all(axis=0) & (cells[_BOTH] == RIGHT)
    cell_of = outcomes.story_of * len(DIMENSIONS) + outcomes.dimension_of
    means = averages(story_counts(cells == RIGHT, valid, cell_of, len(outcomes.stories)))
    gap: NDArray[np.float64] = means[:, _TEXT] - means[:, _IMAGE]
    return gap
