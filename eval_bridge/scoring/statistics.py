"""Resampling of stories, and paired tests over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.scoring.ranks import mean_ranks, normal_tail, signed_rank_z
from katha.schema import DIMENSIONS
from katha.schema.scores import WilcoxonTest

# Questions of one story are correlated, so stories are resampled, never questions. One seeded index matrix serves
# every method, judge, block and dimension; each comparison is therefore paired. Counts are whole numbers in float64,
# so sums do not depend on their order.

Floats = NDArray[np.float64]
# Resamples are drawn in parts of 16 MB, so that memory does not grow with their number.
_CHUNK_CELLS = 2_000_000
# Whole numbers below it are exact in float32.
_EXACT = 2.0**24
_NOTHING = 1e-12
_EXACT_STORIES = 200
"""So many stories that differ are counted out; the normal approximation is right to three digits long before that."""
TEXT, IMAGE, BOTH, GUESS = range(4)
"""Places of the conditions; without evidence is the last, where it is counted."""
COUNTS = 4
"""Per story and dimension: questions, right under text, under image, under text+image."""


def story_counts(right: NDArray[np.bool_], kept: NDArray[np.bool_], cell_of: NDArray[np.intp], stories: int) -> Floats:
    """Return sufficient statistics of shape (stories, dimensions, COUNTS), one more where guesses are counted, too.

    right: (conditions, Q). kept: (Q,) the block's questions. cell_of: (Q,) story * dimensions + dimension.
    """
    cells = stories * len(DIMENSIONS)
    where = cell_of[kept]
    number: Floats = np.bincount(where, minlength=cells).astype(np.float64)
    columns = [number]
    columns += [np.bincount(where[row[kept]], minlength=cells).astype(np.float64) for row in right]
    return np.stack(columns, axis=1).reshape(stories, len(DIMENSIONS), len(columns))


def averages(counts: Floats) -> Floats:
    """Return the mean over the dimensions that have a question: (..., dimensions, COUNTS) to (..., 3 conditions).

    In 0..1; NaN where no dimension has a question (Eqs. 17 and 18, missing dimensions left out).
    """
    number = counts[..., 0]
    present = number > 0
    rates = counts[..., 1:] / np.where(present, number, 1.0)[..., None]
    total = np.where(present[..., None], rates, 0.0).sum(axis=-2)
    dimensions = present.sum(axis=-1)[..., None]
    return np.where(dimensions > 0, total / np.maximum(dimensions, 1), np.nan)


def story_gaps(counts: Floats) -> Floats:
    """Return STG in 0..1, text minus image of `averages`: (..., dimensions, COUNTS) to (...)."""
    means = averages(counts)
    gaps: Floats = means[..., TEXT] - means[..., IMAGE]
    return gaps


def points(value: float) -> float | None:
    """Return a share in percentage points; None for NaN."""
    return None if np.isnan(value) else 100.0 * float(value)


def resample_counts(stories: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each story is drawn, in chunks of shape (rows, stories), `resamples` rows in all.

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
    """Return `averages` of each resample: counts (blocks, stories, dimensions, COUNTS) to (resamples, blocks, 3), or 4
    where guesses are counted."""
    blocks, stories = counts.shape[:2]
    columns = np.moveaxis(counts, 1, 0).reshape(stories, -1)
    # Whole numbers below 2**24 are exact in float32, too, and their products take half the time.
    exact = stories * float(counts.max(initial=0.0)) < _EXACT
    kind: Any = np.float32 if exact and np.array_equal(counts, np.floor(counts)) else np.float64
    columns = columns.astype(kind)
    parts = []
    for drawn in resample_counts(stories, resamples, seed):
        sums = (drawn.astype(kind) @ columns).astype(np.float64).reshape(len(drawn), blocks, *counts.shape[2:])
        parts.append(averages(sums))
    return np.concatenate(parts)


def paired_p(differences: Floats) -> float | None:
    """Return the two-sided bootstrap p: 2 (1 + smaller tail) / (1 + resamples), at most 1; None without a value."""
    kept = differences[~np.isnan(differences)]
    if not kept.size:
        return None
    # A difference of nothing must count on both sides, whichever way its last digit was rounded.
    tail = min(int((kept <= _NOTHING).sum()), int((kept >= -_NOTHING).sum()))
    return min(1.0, 2.0 * (1 + tail) / (1 + kept.size))


def wilcoxon(differences: Floats) -> WilcoxonTest:
    """Return the two-sided Wilcoxon signed-rank test over stories, zero_method "wilcox" (zero differences are dropped).

    The effect is (W+ - W-) / (W+ + W-) (Eq. 49); it and p are None without a nonzero difference. Up to 200 differences
    p is exact, ties included (see `signed_rank_p`); above it is the normal approximation with its tie correction.
    """
    nonzero = differences[np.abs(differences) > _NOTHING]
    if not nonzero.size:
        return WilcoxonTest(p=None, n_nonzero=0, rank_biserial=None)
    if nonzero.size == 1:  # whichever sign it has
        return WilcoxonTest(p=1.0, n_nonzero=1, rank_biserial=float(np.sign(nonzero[0])))
    sizes = np.round(np.abs(nonzero), 12).astype(np.float64)
    ranks = mean_ranks(sizes)
    plus, minus = float(ranks[nonzero > 0].sum()), float(ranks[nonzero < 0].sum())
    if nonzero.size <= _EXACT_STORIES:
        p = signed_rank_p(ranks, plus)
    else:
        p = min(1.0, 2.0 * normal_tail(abs(signed_rank_z(np.sign(nonzero) * sizes))))
    return WilcoxonTest(p=p, n_nonzero=int(nonzero.size), rank_biserial=(plus - minus) / (plus + minus))


def signed_rank_p(ranks: Floats, plus: float) -> float:
    """Return the exact two-sided p of a sum `plus` of positive ranks, each rank's sign being a fair coin.

    ranks: (n,), the mean rank where sizes tie. Without ties this is SciPy's
    `wilcoxon(method="exact")`; with ties it is the sign-flip permutation test, which SciPy counts out for a dozen only.
    """
    doubled = np.rint(2.0 * ranks).astype(np.int64)  # mean ranks of ties are halves
    share = np.zeros(int(doubled.sum()) + 1)
    share[0] = 1.0
    for rank in doubled:
        share *= 0.5
        share[rank:] += share[: share.size - rank].copy()
    at = round(2.0 * plus)
    return min(1.0, 2.0 * float(min(share[: at + 1].sum(), share[at:].sum())))


def holm(ps: Sequence[float | None], family: int) -> list[float | None]:
    """Return p-values of a family of so many corrected by Holm's steps; those that are not there count as 1."""
    found: list[float | None] = [None] * len(ps)
    least = 0.0
    for step, (p, at) in enumerate(sorted((p, at) for at, p in enumerate(ps) if p is not None)):
        least = max(least, min(1.0, max(1, family - step) * p))
        found[at] = least
    return found


def bonferroni(p: float | None, family: int) -> float | None:
    """Return `p` corrected for `family` comparisons."""
    return None if p is None else min(1.0, family * p)
