"""Ranks and what is tested with them, by numpy alone: SciPy is larger than all of katha's other packages together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def mean_ranks(values: ArrayLike) -> Floats:
    """Return the ranks along the last axis, from 1; equal values share the mean of theirs."""
    given = np.asarray(values, dtype=np.float64)
    count = given.shape[-1]
    if not count:
        return given.copy()
    order = np.argsort(given, axis=-1, kind="stable")
    found = np.take_along_axis(given, order, axis=-1)
    begins = np.ones(given.shape, dtype=bool)
    begins[..., 1:] = found[..., 1:] != found[..., :-1]
    ends = np.ones(given.shape, dtype=bool)
    ends[..., :-1] = begins[..., 1:]
    places = np.arange(count)
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    last = np.minimum.accumulate(np.where(ends, places, count)[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(given.shape, dtype=np.float64)
    np.put_along_axis(ranks, order, (first + last) / 2.0 + 1.0, axis=-1)
    return ranks


def signed_rank_z(values: Floats) -> float:
    """Return how many standard errors the sum of positive ranks is above its mean, ties corrected for (Wilcoxon's
    signed-rank test in its normal approximation). values: without zeros."""
    sizes = np.abs(values)
    ranks, n = mean_ranks(sizes), len(values)
    _, tied = np.unique(sizes, return_counts=True)
    variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - float((tied**3 - tied).sum()) / 48.0
    return (float(ranks[values > 0].sum()) - n * (n + 1.0) / 4.0) / math.sqrt(variance)


def normal_tail(z: float) -> float:
    """Return the chance that a standard normal variable is above `z`."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))
