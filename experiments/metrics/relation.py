"""How other measures go with STG over the same boards: rank correlations with intervals, and where they part.

STG is a loss: a measure that agrees with it has a correlation below zero where more of the measure is better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.matching.rules import archived_rule
from katha.eval_bridge.scoring import intervals
from katha.eval_bridge.scoring.gate import why_no_gap
from katha.eval_bridge.scoring.outcomes import collect
from katha.eval_bridge.scoring.ranks import mean_ranks
from katha.eval_bridge.scoring.rows import row_counts
from katha.eval_bridge.scoring.statistics import story_gaps
from katha.experiments.metrics.sources import BoardSource
from katha.schema.metrics import Disagreement, GapRow, MetricColumn, Relation
from katha.schema.scores import Interval

Floats = NDArray[np.float64]
Block = Literal["raw", "filtered", "common_valid"]
Values = Mapping[str, Mapping[tuple[str, str], float]]
# The three boards that two measures rank farthest apart are worth a look.
_PARTED = 3


def board_gaps(source: BoardSource) -> Iterator[GapRow]:
    """Yield STG of each board that judges have answered about, by the last judge: the ensemble where there are several.

    Steering answers and controls are no board's own, so they are left out.
    """
    if source.answers is None:
        return
    own = {board.method for board in source.boards}
    records = {board.record.story_id: board.record for board in source.boards}
    rule = archived_rule(source.matching, [source.verdicts] if source.verdicts is not None else [], settled=True)
    rows = (row for row in source.answers() if row.method is None or row.method in own)
    outcomes = collect(records.values(), rows, matching=rule, selection="all")
    stories = outcomes.stories
    known = [name for name in outcomes.methods if name in own]
    methods = [name for name in known if why_no_gap(outcomes, [name]) is None]
    for method in methods:
        blocks = {
            "filtered": row_counts(outcomes, [method], stories),
            "raw": row_counts(outcomes, [method], stories, filtered=False),
            "common_valid": row_counts(outcomes, [method], stories, among=methods),
        }
        gaps = {name: 100.0 * story_gaps(counts.pooled()) for name, counts in blocks.items()}
        for at, story in enumerate(stories):
            found = {name: None if np.isnan(values[at]) else float(values[at]) for name, values in gaps.items()}
            if any(value is not None for value in found.values()):
                yield GapRow(method=method, story_id=story, **found)


def relations(columns: Sequence[str], values: Values, gaps: Sequence[GapRow]) -> list[Relation]:
    """Return each column's rank correlation with STG under each block, over the boards that have both."""
    found = []
    for block in get_args(Block):
        stg = {(gap.method, gap.story_id): getattr(gap, block) for gap in gaps}
        for column in columns:
            keys = sorted(key for key in values[column] if stg.get(key) is not None)
            x = np.array([values[column][key] for key in keys])
            y = np.array([stg[key] for key in keys])
            stories, value = [story for _, story in keys], rank_correlation(x, y)
            found.append(
                Relation(
                    column=column,
                    block=block,
                    n=len(keys),
                    spearman=value,
                    ci95=_interval(value, x, y, stories),
                )
            )
    return found if gaps else []


def rank_correlation(x: Floats, y: Floats) -> float | None:
    """Return Spearman's rank correlation; None for fewer than three boards or a constant side."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(_spearman(x[None], y[None])[0])


def _spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rank correlation of each row, of shape (rows,); NaN where a side is constant. Ties share the
    mean of their ranks."""
    ranks = [mean_ranks(side) for side in (x, y)]
    first, second = (side - side.mean(axis=1, keepdims=True) for side in ranks)
    with np.errstate(invalid="ignore", divide="ignore"):
        made: Floats = (first * second).sum(axis=1) / np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return made


def _interval(value: float | None, x: Floats, y: Floats, stories: Sequence[str]) -> Interval | None:
    """Return the interval, each story being left out in turn with all of its boards; None with fewer than six stories,
    or where without one of them a side is constant."""
    names = np.array(stories)
    left = [rank_correlation(x[names != name], y[names != name]) for name in sorted(set(stories))]
    known = [item for item in left if item is not None]
    return None if value is None or len(known) < len(left) else intervals.correlation(value, np.array(known))


def rank_table(columns: Sequence[str], values: Values) -> dict[str, dict[str, float | None]]:
    """Return the rank correlation of every two columns over the boards that have both."""
    found: dict[str, dict[str, float | None]] = {}
    for one in columns:
        for other in columns:
            keys = sorted(set(values[one]) & set(values[other]))
            x, y = (np.array([values[name][key] for key in keys]) for name in (one, other))
            found.setdefault(one, {})[other] = rank_correlation(x, y)
    return found


def disagreements(columns: Sequence[MetricColumn], values: Values, gaps: Sequence[GapRow]) -> list[Disagreement]:
    """Return, for each column with a good direction, the boards that it and STG (filtered) rank farthest apart."""
    stg = {(gap.method, gap.story_id): gap.filtered for gap in gaps if gap.filtered is not None}
    found = []
    for column in columns:
        keys = sorted(set(values[column.name]) & set(stg))
        if column.better == "neither" or len(keys) < 3:
            continue
        sign = 1.0 if column.better == "higher" else -1.0
        own = mean_ranks([sign * values[column.name][key] for key in keys])
        other = mean_ranks([-(stg[key] or 0.0) for key in keys])
        first, second = ((ranks - 1.0) / (len(keys) - 1.0) for ranks in (own, other))
        apart = sorted(range(len(keys)), key=lambda at: (-abs(first[at] - second[at]), keys[at]))
        found += [
            Disagreement(
                column=column.name,
                method=keys[at][0],
                story_id=keys[at][1],
                value=values[column.name][keys[at]],
                stg=stg[keys[at]] or 0.0,
                rank_by_column=float(first[at]),
                rank_by_stg=float(second[at]),
            )
            for at in apart[:_PARTED]
            if first[at] != second[at]
        ]
    return found
