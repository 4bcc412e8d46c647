"""Otsu's threshold, exact: over every split of the sorted values instead of a histogram's bins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["otsu"]


def otsu(values: ArrayLike) -> float:
    """The threshold whose two classes, `<= threshold` and `> threshold`, have the largest variance between them.

    Otsu, IEEE Transactions on Systems, Man, and Cybernetics 9(1), 1979. Equal values have no split: their value is
    returned, and nothing lies above it.

    Raises:
        ValueError: no values.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=None)
    if not ordered.size:
        raise ValueError("no values to split")
    ends = np.flatnonzero(np.diff(ordered))
    if not ends.size:
        return float(ordered[-1])
    below = ends + 1
    sums = np.cumsum(ordered)[ends]
    above = ordered.size - below
    between = below * above * ((ordered.sum() - sums) / above - sums / below) ** 2
    return float(ordered[ends[np.argmax(between)]])
