"""What holds STG up (Table 4): other blocks of questions, other judges, half of the stories, groups of stories.

Methods are ranked by STG and rankings compared by Spearman's correlation (ties share their ranks). Everything is
made from the counts that `scores.json` is made of, with the same resampled stories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from katha.eval_bridge.scoring import statistics
from katha.eval_bridge.scoring.outcomes import ENSEMBLE, Outcomes
from katha.eval_bridge.scoring.ranks import mean_ranks
from katha.eval_bridge.scoring.rows import row_counts, row_numbers
from katha.eval_bridge.scoring.scores import BLOCKS, HEADLINE
from katha.eval_bridge.scoring.statistics import IMAGE, TEXT, Floats, points, story_gaps
from katha.schema import StoryRecord
from katha.schema.robustness import Effects, Grouping, GroupRow, HalfData, RankCorrelation, StoryGroups
from katha.schema.scores import BlockName, Interval

HALVES = 1_000
_FEWEST = 3
"""With two things a rank correlation is 1 or -1 whatever they are."""
_DIGITS = 12
"""STG is rounded to so many decimals (of 0..1) before it is ranked: a tie is a tie, whichever way a last digit fell."""


@dataclass(frozen=True)
class MethodOutcomes:
    """Outcomes, the boards that make up each method (`members`), and how they are resampled."""

    outcomes: Outcomes
    members: Mapping[str, Sequence[str]]
    resamples: int = 10_000
    seed: int = 42

    @property
    def judge(self) -> str:
        """The judge whose numbers conclusions are drawn from: the ensemble, or the first (only) one."""
        judges = self.outcomes.judges
        return ENSEMBLE if ENSEMBLE in judges else judges[0]

    @property
    def people(self) -> list[str]:
        """The judges that answered themselves."""
        return [name for name in self.outcomes.judges if not name.startswith(ENSEMBLE)]

    def counts(self, block: BlockName, judge: str | None = None) -> Floats:
        """Return counts of shape (methods, stories, dimensions, COUNTS)."""
        out = self.outcomes
        return np.stack(
            [
                row_counts(
                    out,
                    boards,
                    out.stories,
                    judge=judge or self.judge,
                    filtered=block != "raw",
                    among=out.methods if block == HEADLINE else (),
                ).pooled()
                for boards in self.members.values()
            ]
        )

    @cached_property
    def blocks(self) -> dict[BlockName, Floats]:
        """The counts of every block by the judge that is shown."""
        return {block: self.counts(block) for block in BLOCKS}

    def stg(self) -> dict[str, dict[BlockName, float | None]]:
        """Return STG by method and block, in percentage points."""
        gaps = {block: story_gaps(counts.sum(axis=1)) for block, counts in self.blocks.items()}
        return {
            name: {block: points(float(gaps[block][at])) for block in BLOCKS} for at, name in enumerate(self.members)
        }

    def drawn(self, tables: Sequence[Floats]) -> list[Floats] | None:
        """Return STG of each resample, shape (resamples, methods), for several tables of counts; None of too few."""
        if len(self.outcomes.stories) < 2 or not self.resamples:
            return None
        means = statistics.replicates(np.concatenate(tables), self.resamples, self.seed)
        gaps = means[..., TEXT] - means[..., IMAGE]
        return np.split(gaps, len(tables), axis=1)


def rank_rho(first: Floats, second: Floats) -> Floats:
    """Return Spearman's correlation along the last axis: (..., n) to (...); NaN where a side is flat or has a NaN."""
    ranks = [mean_ranks(np.round(side, _DIGITS)) for side in (first, second)]
    left, right = (side - side.mean(axis=-1, keepdims=True) for side in ranks)
    below = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    known = ~(np.isnan(first).any(axis=-1) | np.isnan(second).any(axis=-1)) & (below > 0)
    found: Floats = np.where(known, (left * right).sum(axis=-1) / np.where(below > 0, below, 1.0), np.nan)
    return found


def _span(values: Floats) -> Interval | None:
    kept = values[~np.isnan(values)]
    if not kept.size:
        return None
    low, high = np.percentile(kept, (2.5, 97.5))
    return float(low), float(high)


def _known(value: Floats | float) -> float | None:
    return None if np.isnan(value) else float(value)


def rank_by_blocks(measured: MethodOutcomes) -> list[RankCorrelation]:
    """Return how alike the blocks of questions rank the methods (Table 4, filtering artifact)."""
    return _rankings(measured, measured.blocks)


def rank_by_judges(measured: MethodOutcomes) -> list[RankCorrelation]:
    """Return how alike judges rank methods, each by its own common-valid STG, and boards, each by its own valid
    questions (Table 4, single-judge artifact)."""
    people = measured.people
    if len(people) < 2:
        return []
    found = _rankings(measured, {name: measured.counts(HEADLINE, name) for name in people})
    boards = {name: story_gaps(measured.counts("filtered", name)).ravel() for name in people}
    for a, b in combinations(people, 2):
        both = ~(np.isnan(boards[a]) | np.isnan(boards[b]))
        n = int(both.sum())
        rho = _known(rank_rho(boards[a][both], boards[b][both])) if n >= _FEWEST else None
        found.append(RankCorrelation(a=a, b=b, over="boards", n=n, rho=rho))
    return found


def _rankings(
    measured: MethodOutcomes, tables: Mapping[BlockName, Floats] | Mapping[str, Floats]
) -> list[RankCorrelation]:
    """Return the correlation of every pair of tables of counts over methods."""
    gaps: dict[str, Floats] = {name: story_gaps(counts.sum(axis=1)) for name, counts in tables.items()}
    several = len(measured.members) >= _FEWEST
    drawn = measured.drawn(list(tables.values())) if several else None
    resampled: dict[str, Floats] = dict(zip(gaps, drawn, strict=True)) if drawn is not None else {}
    return [
        RankCorrelation(
            a=a,
            b=b,
            over="methods",
            n=len(measured.members),
            rho=_known(rank_rho(gaps[a], gaps[b])) if several else None,
            ci95=_span(rank_rho(resampled[a], resampled[b])) if resampled else None,
        )
        for a, b in combinations(gaps, 2)
    ]


def half_data(measured: MethodOutcomes, halves: int = HALVES) -> HalfData | None:
    """Return how alike random halves of the stories rank the methods (Table 4, dataset-size artifact).

    A half is the S // 2 stories, sorted by id, with the smallest numbers in a row of
    `numpy.random.default_rng(seed).random((halves, S))`. None with fewer than three methods or four stories.
    """
    counts, stories = measured.blocks[HEADLINE], len(measured.outcomes.stories)
    if len(measured.members) < _FEWEST or stories < 2 * 2:
        return None
    half = stories // 2
    chosen = np.argsort(np.random.default_rng(measured.seed).random((halves, stories)), axis=1)[:, :half]
    weights = np.zeros((halves, stories))
    np.put_along_axis(weights, chosen, 1.0, axis=1)
    gaps = story_gaps(np.einsum("hs,msdc->hmdc", weights, counts))
    whole = np.broadcast_to(story_gaps(counts.sum(axis=1)), gaps.shape)
    rhos = rank_rho(gaps, whole)
    kept = rhos[~np.isnan(rhos)]
    return HalfData(
        halves=halves,
        n_stories=half,
        n_methods=len(measured.members),
        rho=float(kept.mean()) if kept.size else None,
        ci95=_span(rhos),
    )


_FIELDS: Mapping[Grouping, Callable[[StoryRecord], str | None]] = {
    "source_family": lambda record: record.source_family,
    "narrative_type": lambda record: record.narrative_type or None,
}


def story_groups(measured: MethodOutcomes, records: Sequence[StoryRecord]) -> list[StoryGroups]:
    """Return STG and ambiguity by source family and by narrative type, for the fields that any story fills in."""
    known = set(measured.outcomes.stories)
    found = []
    for by, field in _FIELDS.items():
        named = {record.story_id: field(record) for record in records if record.story_id in known}
        names = sorted({name for name in named.values() if name is not None})
        rows = [row for name in names for row in _group(measured, name, [s for s, own in named.items() if own == name])]
        means = {name: _mean([row.stg[HEADLINE] for row in rows if row.group == name]) for name in names}
        told = {name: value for name, value in means.items() if value is not None}
        if rows:
            spread = max(told.values()) - min(told.values()) if len(told) > 1 else None
            without = sum(name is None for name in named.values())
            found.append(StoryGroups(by=by, rows=rows, means=told, spread=spread, without=without))
    return found


def _group(measured: MethodOutcomes, group: str, stories: Sequence[str]) -> list[GroupRow]:
    """Return every method on some of the stories."""
    at = sorted(measured.outcomes.stories.index(story) for story in stories)
    own = {block: counts[:, at] for block, counts in measured.blocks.items()}
    gaps = {block: story_gaps(counts.sum(axis=1)) for block, counts in own.items()}
    numbers = row_numbers(dict(zip(measured.members, own[HEADLINE], strict=True)))
    rows = []
    for place, name in enumerate(measured.members):
        scored, valid = (int(own[block][place, :, :, 0].sum()) for block in ("raw", "filtered"))
        rows.append(
            GroupRow(
                group=group,
                method=name,
                n_stories=len(at),
                n_questions=scored,
                stg={block: points(float(gaps[block][place])) for block in BLOCKS},
                ci95=numbers[name].stg_ci95,
                ambiguity_rate=100.0 * (scored - valid) / scored if scored else None,
            )
        )
    return rows


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is there; None where one is missing, because the groups would not be alike then."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def effects(stg: Mapping[str, float | None], planners: Mapping[str, tuple[str, str, str]]) -> Effects | None:
    """Return how far STG falls by planning and by rendering (Table 4, renderer-only explanation).

    stg: common-valid, by method. planners: planner, renderer and mode of each. The range (largest minus smallest) is
    taken over methods that differ in the planner alone, or in the renderer alone, and averaged over such groups.
    """
    ranges: list[list[float]] = []
    for place in (0, 1):
        groups: dict[tuple[str, ...], list[float]] = {}
        for name, parts in planners.items():
            value = stg.get(name)
            if value is not None:
                groups.setdefault(parts[:place] + parts[place + 1 :], []).append(value)
        ranges.append([max(values) - min(values) for values in groups.values() if len(values) > 1])
    planner, renderer = (sum(found) / len(found) if found else None for found in ranges)
    if planner is None and renderer is None:
        return None
    return Effects(planner=planner, renderer=renderer, planner_groups=len(ranges[0]), renderer_groups=len(ranges[1]))
