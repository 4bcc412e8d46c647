"""From features to a choice: the best setting, what it gains and how sure that is, and the curve around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.compass.tuning import Grid, Setting, Table, best_setting, fold_gaps, sample_settings
from katha.compass.tuning_data import StoryData
from katha.eval_bridge.paired import FEWEST_STORIES, compare, row_numbers
from katha.schema import CompassSettings

__all__ = ["choose"]

_FOLDS = 5
_VARIED = ("candidates", "lambda_t", "lambda_p", "delta", "gamma", "repair_threshold")
Floats = NDArray[np.float64]


def choose(
    stories: Sequence[StoryData],
    seeds: Sequence[int],
    defaults: CompassSettings,
    tried: int,
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    """The setting with the smallest STG on the stories, and everything that says how far to trust it.

    All gaps are percentage points. `cross_validated` is the STG on stories that the choice did not see: with
    `folds` parts, each part is scored by the setting that the others choose.
    """
    first = Setting(len(seeds), **defaults.model_dump())
    grid = Grid.fitting(stories)
    settings = sample_settings(grid, tried, first, seed)
    table = Table(stories, [item.delta for item in settings] + list(grid.delta))
    folds = _folds(len(stories), seed)
    boards = table.boards(settings)
    sums = table.sums(boards, folds, int(folds.max()) + 1)
    best = best_setting(fold_gaps(sums.sum(axis=1)))
    chosen, everyone = settings[best], np.ones(len(stories), dtype=bool)
    own, old = table.of(boards[best]), table.of(boards[0])
    numbers = row_numbers({"chosen": own, "default": old}, resamples, seed)
    gain = compare([(own, old, everyone)], resamples, seed)[0]
    notes = []
    if len(stories) < FEWEST_STORIES:
        notes.append(f"Stories: {len(stories)}, fewer than a bootstrap can carry ({FEWEST_STORIES}): no intervals.")
    return {
        "format": 1,
        "setting": asdict(chosen),
        "default": asdict(first),
        "stories": len(stories),
        "tried": len(settings),
        "stg": numbers["chosen"]["stg"],
        "ci95": numbers["chosen"]["stg_ci95"],
        "default_stg": numbers["default"]["stg"],
        "gain": {"difference": gain["difference"], "ci95": gain["ci95"], "p_bootstrap": gain["p_bootstrap"]},
        "cross_validated": _cross_validated(sums),
        "folds": int(folds.max()) + 1,
        "equally_good": int((np.round(fold_gaps(sums.sum(axis=1)), 12) <= _lowest(sums)).sum()),
        "repaired": 100.0 * float(table.repaired(boards[best])),
        "curve": _curve(table, chosen, grid, resamples, seed),
        "notes": notes,
    }


def _lowest(sums: Floats) -> float:
    return float(np.nanmin(np.round(fold_gaps(sums.sum(axis=1)), 12)))


def _folds(count: int, seed: int) -> NDArray[np.int64]:
    """Each story's part, shape (stories,): equal in size, by seed."""
    order = list(range(count))
    Random(seed).shuffle(order)
    folds = np.zeros(count, dtype=np.int64)
    folds[order] = np.arange(count) % min(_FOLDS, count)
    return folds


def _cross_validated(sums: Floats) -> float | None:
    """STG on stories that the choice did not see; None with a single story."""
    parts = sums.shape[1]
    if parts < 2:
        return None
    whole = sums.sum(axis=1)
    unseen = [sums[best_setting(fold_gaps(whole - sums[:, part])), part] for part in range(parts)]
    gap = float(fold_gaps(np.sum(unseen, axis=0)))
    return None if np.isnan(gap) else 100.0 * gap


def _curve(table: Table, chosen: Setting, grid: Grid, resamples: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """STG along each setting with the others as chosen; each point with its interval and difference to the choice."""
    points = [
        (name, value, replace(chosen, **{name: value}))
        for name in _VARIED
        for value in sorted({*getattr(grid, name), getattr(chosen, name)})
    ]
    boards = table.boards([item for _, _, item in points])
    own = table.of(table.boards([chosen])[0])
    counts = [table.of(row) for row in boards]
    everyone = np.ones(table.size, dtype=bool)
    numbers = row_numbers({str(at): item for at, item in enumerate(counts)}, resamples, seed)
    against = compare([(item, own, everyone) for item in counts], resamples, seed)
    curve: dict[str, list[dict[str, Any]]] = {}
    for at, (name, value, _) in enumerate(points):
        point = {"value": value, "chosen": value == getattr(chosen, name), "stg": numbers[str(at)]["stg"]}
        point |= {"ci95": numbers[str(at)]["stg_ci95"], "repaired": 100.0 * float(table.repaired(boards[at]))}
        point |= {"difference": against[at]["difference"], "difference_ci95": against[at]["ci95"]}
        curve.setdefault(name, []).append(point)
    return curve
