"""Pairs of rows over the same stories: difference, interval and corrected p, or why there is none (Tables 55, 75)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from katha.agents.ablation.tally import Tally
from katha.compass.suites import Row
from katha.eval_bridge.paired import compare, correct

__all__ = ["compared"]

What = Literal["all stories", "equal length"]
Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats, NDArray[np.bool_]]


def compared(
    tally: Tally, pooled: Mapping[str, Floats], pairs: Sequence[tuple[str, str]], what: What
) -> list[dict[str, Any]]:
    """One comparison a pair of rows, corrected together; `nothing` says why a pair has no difference.

    pooled: each row's counts, shape (stories, dimensions, 4).
    """
    even, job = what == "equal length", tally.job
    rows = [(job.suite.row(a), job.suite.row(b)) for a, b in pairs]
    counts = [_equal_length(tally, a, b) if even else _together(tally, pooled, a, b) for a, b in rows]
    found = compare(counts, job.resamples, job.seed)
    # The family is what the suite declares, whatever the data turn out to be.
    correct([item for pair, item in zip(rows, found, strict=True) if _without_gap(*pair) is None])
    return [
        {"a": a.name, "b": b.name, "what": what, **_told(item, _without_gap(a, b), tally.same(a, b, even=even), even)}
        for (a, b), item in zip(rows, found, strict=True)
    ]


def _without_gap(*rows: Row) -> str | None:
    """Why a difference of STG cannot be had from rows scored like that, or None where it can."""
    for row in rows:
        missing = [name for name in ("text", "image") if name not in row.scoring.conditions]
        if missing:
            return f"{row.name} has no answers under {' and '.join(missing)}, so it has no STG"
    return None


def _told(item: Mapping[str, Any], gapless: str | None, same: str | None, even: bool) -> dict[str, Any]:
    """A comparison with `same` (see `Tally.same`) and `nothing`: the reason where there is no difference."""
    nothing = gapless
    if nothing is None and not item["n_stories"]:
        nothing = "no story has a board of both" + (" with equally many frames" if even else "")
    elif nothing is None and same == "all":
        nothing = "these are the same boards"
    elif nothing is None and item["difference"] is None:
        nothing = "no story has valid questions for both"
    if nothing is None:
        return {**item, "same": same, "nothing": None}
    empty = dict.fromkeys(("difference", "image_difference", "ci95", "p_bootstrap", "p_corrected"))
    return {"family": 0, **item, **empty, "same": same, "nothing": nothing}


def _together(tally: Tally, pooled: Mapping[str, Floats], a: Row, b: Row) -> Pair:
    """Pooled counts of two rows, and which stories have a board of both."""
    both: NDArray[np.bool_] = np.all([tally.lengths(row).any(axis=0) for row in (a, b)], axis=0)
    return pooled[a.name], pooled[b.name], both


def _equal_length(tally: Tally, a: Row, b: Row) -> Pair:
    """Pooled counts of two rows from the boards of each story that show equally many frames."""
    ours, theirs = tally.lengths(a), tally.lengths(b)
    equal = (ours[:, None] == theirs[None]) & (ours[:, None] > 0)
    same_a, same_b = equal.any(axis=1), equal.any(axis=0)
    return tally.counts(a).pooled(same_a), tally.counts(b).pooled(same_b), same_a.any(axis=0)
