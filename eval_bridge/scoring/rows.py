"""Rows of a table that are compared in pairs, and how many stories a difference needs.

The rows are about the same stories, whatever each row's scoring is. Each is a set of story counts (see
`statistics.story_counts`); every interval, difference and p is computed from these and from the stories that hold a
question.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from katha.errors import UsageError
from katha.eval_bridge.matching.match import Matching
from katha.eval_bridge.scoring import intervals, statistics
from katha.eval_bridge.scoring.intervals import FEWEST_STORIES
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, WRONG, Outcomes, collect
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, averages, points, story_gaps
from katha.schema import ASKED, CONDITIONS, DIMENSIONS, Answer, Condition, Dimension, StoryRecord
from katha.schema.scores import (
    Comparison,
    Interval,
    PowerEstimate,
    RowDifference,
    RowNumbers,
    Selection,
    SpreadEstimate,
    StoriesNeeded,
)

THIN = 2
"""A dimension with so many questions or fewer is flagged."""


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

    @property
    def thin(self) -> list[Dimension]:
        """Return the dimensions that rest on so few questions that each has a large share of the average: a question
        counts once, however many boards it is asked about."""
        asked = self.counts[..., 0].sum(axis=1).max(axis=0, initial=0.0)
        return [name for name, number in zip(DIMENSIONS, asked, strict=True) if 0 < number <= THIN]


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


def row_numbers(rows: Mapping[str, Floats]) -> dict[str, RowNumbers]:
    """Return text, image, STG (percentage points) and their 95% intervals for each row's pooled counts."""
    found: dict[str, RowNumbers] = {}
    for name, counts in rows.items():
        means, spans = averages(counts.sum(axis=0)), Spans.of(counts)
        found[name] = RowNumbers(
            text=points(means[TEXT]),
            image=points(means[IMAGE]),
            stg=points(means[TEXT] - means[IMAGE]),
            image_ci95=spans.share(IMAGE),
            stg_ci95=spans.gap(TEXT, IMAGE),
        )
    return found


@dataclass(frozen=True)
class Spans:
    """The intervals of one row: its averages in 0..1 by condition, and the same with each story left out."""

    means: Floats
    left: Floats

    @classmethod
    def of(cls, counts: Floats) -> Self:
        """Return those of counts of shape (stories, dimensions, COUNTS); stories without a question are left out."""
        asked = counts[holds_question(counts)]
        return cls(averages(asked.sum(axis=0)), intervals.left_out(asked, averages))

    def share(self, place: int) -> Interval | None:
        """Return the interval of one condition."""
        return intervals.share(float(self.means[place]), self.left[:, place])

    def gap(self, first: int, second: int) -> Interval | None:
        """Return the interval of one condition minus another."""
        means, left = self.means, self.left
        return intervals.gap(float(means[first]), float(means[second]), left[:, first], left[:, second])


def holds_question(counts: Floats) -> NDArray[np.bool_]:
    """Return which stories hold a question: (..., stories, dimensions, COUNTS) to (..., stories)."""
    held: NDArray[np.bool_] = counts[..., 0].sum(axis=-1) > 0
    return held


def gap_interval(first: Floats, second: Floats) -> Interval | None:
    """Return the interval of STG of the first minus that of the second counts, over stories that hold a question of
    either; None where fewer than `FEWEST_STORIES` hold one of both."""
    held = holds_question(np.stack([first, second]))
    if held.all(axis=0).sum() < FEWEST_STORIES:
        return None
    pair = np.stack([first, second], axis=1)[held.any(axis=0)]

    def differ(sums: Floats) -> Floats:
        gaps = story_gaps(sums)
        changes: Floats = gaps[:, 0] - gaps[:, 1]
        return changes

    return intervals.difference(float(differ(pair.sum(axis=0)[None])[0]), intervals.left_out(pair, differ))


def compare(
    pairs: Sequence[tuple[Floats, Floats, NDArray[np.bool_]]], resamples: int, seed: int
) -> list[RowDifference]:
    """Return STG of the first minus the second of each pair of pooled counts, on the stories of the mask (both have).

    n_stories counts those that hold a question of both; the interval and p-values are None with fewer than
    `FEWEST_STORIES` of these. difference and ci95 are percentage points.
    """
    return [_compare(first[has], second[has], resamples, seed) for first, second, has in pairs]


def _compare(first: Floats, second: Floats, resamples: int, seed: int) -> RowDifference:
    held = holds_question(np.stack([first, second]))
    number, counts = int(held.all(axis=0).sum()), np.stack([first, second])[:, held.any(axis=0)]
    if not counts.size:
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
    ours, theirs = story_gaps(counts)
    stories = ours - theirs
    stories = stories[~np.isnan(stories)]
    tests = {
        "ci95": gap_interval(first, second),
        "spread": round(100.0 * float(stories.std(ddof=1)), 9),
        "p_bootstrap": statistics.paired_p(drawn_gaps[:, 0] - drawn_gaps[:, 1]),
        "wilcoxon": statistics.wilcoxon(stories),
    }
    return row.model_copy(update=tests)


Tested = TypeVar("Tested", RowDifference, Comparison)


def correct(
    rows: Sequence[Tested], family: int, primary: int | None = None, without: Collection[int] = ()
) -> list[Tested]:
    """Return comparisons with Wilcoxon's and the bootstrap's p corrected together (Holm), but for one.

    family: how many are corrected together, run or not. primary: the place of the one that is tested alone. without:
    the places of those that are no test.
    """
    alone, rest = {primary} - {None}, [at for at in range(len(rows)) if at != primary and at not in without]
    signed = statistics.holm([rows[at].wilcoxon.p for at in rest], family)
    drawn = statistics.holm([rows[at].p_bootstrap for at in rest], family)
    found = dict(zip(rest, zip(signed, drawn, strict=True), strict=True))
    found |= {at: (rows[at].wilcoxon.p, rows[at].p_bootstrap) for at in alone if at is not None}
    made = []
    for at, row in enumerate(rows):
        one, two = found.get(at, (None, None))
        size = 1 if at in alone else family
        changes = {"family": size, "p_corrected": one, "p_bootstrap_corrected": two}
        made.append(row.model_copy(update=changes))
    return made


# How many stories a difference in STG needs before it shows: an estimate to make before spending on judges.
#
# The spread of stories is taken from an archive: the standard deviation of paired differences of story STG between
# two methods, as the Wilcoxon test sees them. Stories count by the Wilcoxon test's asymptotic relative efficiency under
# normal differences (3 / pi) in the formula of a paired t-test.

_EFFICIENCY = 3.0 / math.pi
DIFFERENCES = (2.0, 3.0, 5.0, 7.0)
# More stories than anybody judges: "not to be shown" is then the answer.
_MOST_NEEDED = 1_000_000


def smallest_difference(spread: float, stories: int, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Return the difference (same unit as `spread`) that a two-sided paired test over so many stories finds with
    probability `power`; None with fewer than three."""
    count = stories * _EFFICIENCY
    if stories < 3:
        return None
    reach = intervals.t_quantile(count - 1.0, 1.0 - alpha / 2.0) + intervals.t_quantile(count - 1.0, power)
    return spread * reach / math.sqrt(count)


def stories_needed(spread: float, difference: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return stories for a two-sided paired test to find `difference` (same unit as `spread`) with probability `power`.

    Raises:
        UsageError: a number out of range.
    """
    if not (spread > 0 and difference > 0 and 0 < alpha < power < 1):
        raise UsageError(
            f"Spread {spread} and difference {difference} must be positive, and alpha {alpha} below power {power}."
        )
    low, high = 3, _MOST_NEEDED
    while low < high:
        middle = (low + high) // 2
        found = smallest_difference(spread, middle, power=power, alpha=alpha)
        low, high = (low, middle) if found is not None and found <= difference else (middle + 1, high)
    return low


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
            calls = math.ceil(stories * per_story) * len(ASKED)
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
