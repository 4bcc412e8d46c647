"""Rows of a table that are compared in pairs, and how many stories a difference needs.

The rows are about the same stories, whatever each row's scoring is. Each is a set of story counts (see
`statistics.story_counts`); every interval and difference is computed from these, with one seeded matrix of resampled
stories for all rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from katha.errors import UsageError
from katha.eval_bridge.matching.match import Matching
from katha.eval_bridge.scoring import statistics
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, WRONG, Outcomes, collect
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, averages, interval, points, story_gaps
from katha.models.checkpoints import need
from katha.schema import CONDITIONS, DIMENSIONS, Answer, Condition, Dimension, StoryRecord
from katha.schema.scores import PowerEstimate, RowDifference, RowNumbers, Selection, SpreadEstimate, StoriesNeeded

FEWEST_STORIES = 6
"""With fewer, no two-sided exact paired test can reach 5% (2 / 2**5 is more), so no interval is given."""


@dataclass(frozen=True)
class RowCounts:
    """One row: counts of shape (boards, stories, dimensions, 4), one board a seed; valid, scored: questions."""

    counts: Floats
    valid: int
    scored: int

    def pooled(self, mask: NDArray[np.bool_] | None = None) -> Floats:
        """Return the boards together, of shape (stories, dimensions, 4); `mask` (boards, stories) leaves some out."""
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
    among: Sequence[str] = (),
    without: Collection[tuple[str, str]] = (),
) -> RowCounts:
    """Return the counts of `methods` (the boards of one row) for `stories` in this order.

    conditions: those under which a question needs an outcome to be scored. filtered: only questions right under text
    and images count. dimensions: empty for all. together: questions are averaged whatever their dimension. among: the
    questions are those that count for all of these boards (the common-valid set), whatever they are for the others.
    without: questions, by story and id, that are left out.
    """
    if not methods:
        return RowCounts(np.zeros((0, len(stories), len(DIMENSIONS), statistics.COUNTS)), 0, 0)
    chosen = choose_questions(
        outcomes,
        methods,
        judge=judge,
        conditions=conditions,
        filtered=filtered,
        dimensions=dimensions,
        among=among,
        without=without,
    )
    order = np.array([stories.index(story) for story in outcomes.stories], dtype=np.intp)
    dimension_of = np.zeros_like(outcomes.dimension_of) if together else outcomes.dimension_of
    cell_of = order[outcomes.story_of] * len(DIMENSIONS) + dimension_of
    made = [
        statistics.story_counts(right, valid, cell_of, len(stories))
        for right, valid in zip(chosen.right, chosen.valid, strict=True)
    ]
    counts = np.array(made).reshape(-1, len(stories), len(DIMENSIONS), statistics.COUNTS)
    return RowCounts(counts, int(chosen.valid.sum()), int(chosen.scored.sum()))


@dataclass(frozen=True)
class Chosen:
    """Questions of the boards of one row: right (boards, conditions, Q), and valid and scored (boards, Q)."""

    right: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    scored: NDArray[np.bool_]


def choose_questions(
    outcomes: Outcomes,
    methods: Sequence[str],
    *,
    judge: str | None = None,
    conditions: Sequence[Condition] = CONDITIONS,
    filtered: bool = True,
    dimensions: Sequence[Dimension] = (),
    among: Sequence[str] = (),
    without: Collection[tuple[str, str]] = (),
) -> Chosen:
    """Return which questions of `methods` are right and which count; the options are those of `row_counts`."""
    at = outcomes.judges.index(judge) if judge is not None else len(outcomes.judges) - 1
    used = [place for place, name in enumerate(CONDITIONS) if name in conditions]
    wanted = np.isin(outcomes.dimension_of, [DIMENSIONS.index(name) for name in dimensions or DIMENSIONS])
    if without:
        named = zip(outcomes.story_of, outcomes.questions, strict=True)
        wanted &= np.array([(outcomes.stories[at], item.question_id) not in without for at, item in named], dtype=bool)
    places = [outcomes.methods.index(name) for name in methods]
    right = outcomes.cells[:, at] == RIGHT
    scored = (outcomes.cells[:, at][:, used] != MISSING).all(axis=1) & wanted
    valid = scored & right[:, BOTH] if filtered else scored
    shared = valid[[outcomes.methods.index(name) for name in among]].all(axis=0)
    valid = scored & shared if among else valid
    return Chosen(right[places], valid[places], scored[places])


def row_numbers(rows: Mapping[str, Floats], resamples: int, seed: int) -> dict[str, RowNumbers]:
    """Return text, image, STG (percentage points) and their 95% intervals for each row's pooled counts."""
    if not rows:
        return {}
    table = np.stack(list(rows.values()))
    enough = table.shape[1] >= FEWEST_STORIES and resamples > 0
    drawn = statistics.replicates(table, resamples, seed) if enough else None
    found: dict[str, RowNumbers] = {}
    for place, (name, counts) in enumerate(rows.items()):
        means = averages(counts.sum(axis=0))
        own = drawn[:, place] if drawn is not None else None
        found[name] = RowNumbers(
            text=points(means[TEXT]),
            image=points(means[IMAGE]),
            stg=points(means[TEXT] - means[IMAGE]),
            image_ci95=interval(own[:, IMAGE]) if own is not None else None,
            stg_ci95=interval(own[:, TEXT] - own[:, IMAGE]) if own is not None else None,
        )
    return found


def compare(
    pairs: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]], resamples: int, seed: int
) -> list[RowDifference]:
    """Return STG of the first minus the second of each pair of pooled counts, on the stories of the mask (both have).

    difference and ci95 are percentage points; the interval and p-values are None with fewer than `FEWEST_STORIES`.
    """
    return [_compare(np.stack([first[has], second[has]]), resamples, seed) for first, second, has in pairs]


def _compare(counts: Floats, resamples: int, seed: int) -> RowDifference:
    number = counts.shape[1]
    if not number:
        return RowDifference(n_stories=0)
    whole = counts.sum(axis=1)
    gaps, images = story_gaps(whole), averages(whole)[:, IMAGE]
    row = RowDifference(
        n_stories=number, difference=points(gaps[0] - gaps[1]), image_difference=points(images[0] - images[1])
    )
    if number < FEWEST_STORIES or resamples < 1 or row.difference is None:
        return row
    drawn = statistics.replicates(counts, resamples, seed)
    drawn_gaps = drawn[..., TEXT] - drawn[..., IMAGE]
    differences = drawn_gaps[:, 0] - drawn_gaps[:, 1]
    first, second = story_gaps(counts)
    stories = first - second
    tests = {
        "ci95": interval(differences),
        "p_bootstrap": statistics.paired_p(differences),
        "wilcoxon": statistics.wilcoxon(stories[~np.isnan(stories)]),
    }
    return row.model_copy(update=tests)


def correct(row: RowDifference, family: int) -> RowDifference:
    """Return a comparison of a family of so many with Wilcoxon's and the bootstrap's p corrected (Bonferroni)."""
    corrected = {
        "p_corrected": statistics.bonferroni(row.wilcoxon.p, family),
        "p_bootstrap_corrected": statistics.bonferroni(row.p_bootstrap, family),
    }
    return row.model_copy(update={"family": family, **corrected})


# How many stories a difference in STG needs before it shows: an estimate to make before spending on judges.
#
# The spread of stories is taken from an archive: the standard deviation of paired differences of story STG between
# two methods, as the Wilcoxon test sees them. The number of stories is statsmodels' for a paired t-test, divided by
# the Wilcoxon test's asymptotic relative efficiency under normal differences (3 / pi).

_EFFICIENCY = 3.0 / math.pi
DIFFERENCES = (2.0, 3.0, 5.0, 7.0)


def stories_needed(spread: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return stories for a two-sided paired test to find `difference` (same unit as `spread`) with probability `power`.

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
        needed = []
        for size in differences if spread else ():
            stories = stories_needed(spread, size, power=power, alpha=share)
            calls = math.ceil(stories * per_story) * len(CONDITIONS)
            needed.append(StoriesNeeded(difference=size, stories=stories, judge_calls=calls))
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


def _story_gaps(outcomes: Outcomes, method: int) -> Floats:
    """Return the STG of each story on its valid questions, in 0..1, of shape (stories,); NaN where none is valid."""
    cells = outcomes.cells[method, -1]
    valid = (cells >= WRONG).all(axis=0) & (cells[BOTH] == RIGHT)
    return story_gaps(statistics.story_counts(cells == RIGHT, valid, outcomes.cell_of, len(outcomes.stories)))
