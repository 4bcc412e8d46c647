"""Whether what a judge steers by predicts what is reported: their correlation over the boards of one story."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from katha.eval_bridge.scoring import intervals
from katha.eval_bridge.scoring.statistics import Floats
from katha.schema.scores import SteeringAgreement

_NOTHING = 1e-12
BY_CHANCE = "choosing by this judge is choosing by chance"


def steering_agreement(boards: Iterable[tuple[str, float, float]]) -> SteeringAgreement:
    """Return the within-story correlation of two numbers of each board: (story, steering, reporting).

    Each story's own means are taken off first, so that easy stories count for nothing; stories whose boards do not
    differ in either number hold nothing. None where nothing varies.
    """
    told: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for story, steering, reporting in boards:
        told[story].append((steering, reporting))
    products = []
    number = 0
    for own in (np.array(told[story]) for story in sorted(told)):
        away = own - own.mean(axis=0)
        if (np.abs(away).max(axis=0) > _NOTHING).any():
            products.append([*(away**2).sum(axis=0), away.prod(axis=1).sum()])
            number += len(own)
    sums: Floats = np.array(products, dtype=np.float64).reshape(-1, 3)
    r = _correlations(sums.sum(axis=0)[None])[0]
    span = intervals.correlation(float(r), intervals.left_out(sums, _correlations)) if not np.isnan(r) else None
    return SteeringAgreement(
        boards=number, stories=len(sums), correlation=None if np.isnan(r) else round(float(r), 9), ci95=span
    )


def _correlations(sums: Floats) -> Floats:
    """Return r of sums of squares and products, (n, 3) to (n,); NaN where a side does not vary."""
    below = np.sqrt(np.maximum(sums[:, 0] * sums[:, 1], 0.0))
    made: Floats = np.where(below > _NOTHING, sums[:, 2] / np.where(below > _NOTHING, below, 1.0), np.nan)
    return made


def steering_words(found: SteeringAgreement) -> str:
    """Return what the correlation says of choosing, as a sentence."""
    what = "Steering against reporting within a story"
    if found.correlation is None:
        return f"{what}: no boards of a story differ in both, so {BY_CHANCE}."
    told = f"{what}: r {found.correlation:+.2f} over {found.boards} boards of {found.stories} stories"
    if found.ci95 is None:
        return f"{told}, too few for an interval, so it is not shown that steering predicts reporting."
    low, high = found.ci95
    said = "" if found.predicts else f": {BY_CHANCE}"
    return f"{told} (95% {low:+.2f} to {high:+.2f}, {intervals.METHOD}){said}."
