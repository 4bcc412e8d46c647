"""Preferences on the five-point scale (Secs. F.7, H.2 to H.5): means, tests, and what they support."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from katha.configs import load_config
from katha.eval_bridge.people.agreement import krippendorff_alpha
from katha.eval_bridge.people.resampling import GivenNumbers
from katha.eval_bridge.scoring.ranks import mean_ranks, normal_tail, signed_rank_z
from katha.eval_bridge.scoring.statistics import Floats, bonferroni
from katha.schema.people import PreferencePair, PreferenceTest

# The paper's level (Sec. H).
LEVEL = 0.05
OVERALL = "overall"
"""The criterion of a preference that names none."""
_MOST_EXACT = 400


@dataclass(frozen=True)
class Criterion:
    """A question of Table 51: its number, its dimension, and in which tasks it is asked."""

    name: str
    dimension: str
    question: str
    tasks: tuple[str, ...]


def criteria() -> list[Criterion]:
    """Return the 15 criteria of Table 51."""
    return [Criterion(**{**row, "tasks": tuple(row["tasks"])}) for row in load_config("people.yaml")["criteria"]]


def signed_rank_p(values: Sequence[float]) -> float | None:
    """Return the one-sided p of Wilcoxon's signed-rank test against a median of zero (Eqs. 64 and 70).

    Zeros are dropped. Exact, ties included, up to 400 values: every pattern of signs is as likely, and the sums of
    doubled mid-ranks are whole numbers, so their distribution is counted. Beyond that the normal approximation.
    """
    kept = np.array([value for value in values if value], dtype=float)
    if not kept.size:
        return None
    if kept.size > _MOST_EXACT:
        return normal_tail(signed_rank_z(kept))
    doubled = np.rint(2 * mean_ranks(np.abs(kept))).astype(int)
    chances: Floats = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: len(chances) - rank]
        chances = 0.5 * (chances + moved)
    return min(1.0, float(chances[int(doubled[kept > 0].sum()) :].sum()))


def rank_biserial(values: Sequence[float]) -> float | None:
    """Return (W+ - W-) / (W+ + W-) of the values that are not zero (Eqs. 66 and 72)."""
    kept = np.array([value for value in values if value], dtype=float)
    if not kept.size:
        return None
    ranks = mean_ranks(np.abs(kept))
    return float((ranks[kept > 0].sum() - ranks[kept < 0].sum()) / ranks.sum())


@dataclass(frozen=True)
class Preference:
    """One judgment: who, about which story, and from -2 to 2 how far the first method's board is preferred."""

    rater: str
    story_id: str
    value: int
    criterion: str = OVERALL


def preference_test(rows: Sequence[Preference], family: int = 1) -> PreferenceTest:
    """Return everything about the preferences by one criterion; `family` criteria share the level (Eqs. 65 and 71)."""
    values = [row.value for row in rows]
    given = GivenNumbers.of((row.rater, row.story_id, row.value) for row in rows)
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        table[row.rater][f"{row.story_id} {row.criterion}"] = row.value
    crossed = given.crossed()
    p, p_both = signed_rank_p(values), crossed.p_greater() if crossed is not None else None
    corrected, both = bonferroni(p, family), bonferroni(p_both, family)
    return PreferenceTest(
        n=len(values),
        n_nonzero=sum(value != 0 for value in values),
        p=p,
        p_corrected=corrected,
        rank_biserial=rank_biserial(values),
        mean=given.mean(),
        n_raters=given.counts.shape[0],
        n_stories=given.counts.shape[1],
        ci95_raters=given.over_raters(),
        ci95_both=crossed.interval() if crossed is not None else None,
        p_both=p_both,
        p_both_corrected=both,
        krippendorff_alpha=krippendorff_alpha(table, "ordinal"),
        family=family,
        counts={score: values.count(score) for score in range(-2, 3)},
        shown=corrected is not None and both is not None and max(corrected, both) < LEVEL,
    )


def by_criterion(rows: Iterable[Mapping[str, Any]]) -> dict[str, PreferenceTest]:
    """Return the test of each criterion; as many as there are share the level."""
    given = _grouped(rows, "criterion")
    return {name: preference_test(own, len(given)) for name, own in sorted(given.items(), key=_place)}


def preference_pair(methods: tuple[str, str], task: str, rows: Sequence[Mapping[str, Any]]) -> PreferencePair:
    """Return one comparison of two methods, or of boards with and without their bridge.

    A dimension takes each participant's judgments of a story by all its criteria as they are; groups are told by the
    overall criterion (Q15), or by all criteria where it was not asked.
    """
    dimension_of = {item.name: item.dimension for item in criteria()}
    named = [{**row, "dimension": dimension_of.get(row.get("criterion", OVERALL), "Other")} for row in rows]
    overall = [row for row in named if row.get("criterion") in ("Q15", OVERALL)] or named
    groups = _grouped([row for row in overall if "group" in row], "group")
    dimensions = _grouped(named, "dimension")
    return PreferencePair(
        a=methods[0],
        b=methods[1],
        task="bridge" if task == "bridge" else "pairs",
        criteria=by_criterion(rows),
        dimensions={name: preference_test(own, len(dimensions)) for name, own in dimensions.items()},
        groups={name: preference_test(own, len(groups)) for name, own in sorted(groups.items())},
    )


def _grouped(rows: Iterable[Mapping[str, Any]], column: str) -> dict[str, list[Preference]]:
    """The preferences by the values of a column. Judgments of nobody in particular are one person's: no interval."""
    found: dict[str, list[Preference]] = defaultdict(list)
    for row in rows:
        about = (row.get("rater", ""), row.get("story_id", ""), row["preference"], row.get("criterion", OVERALL))
        found[row.get(column, OVERALL)].append(Preference(*about))
    return dict(found)


def _place(item: tuple[str, list[Preference]]) -> tuple[int, str]:
    """Q2 before Q10."""
    name = item[0]
    return (int(name[1:]) if name[:1] == "Q" and name[1:].isdigit() else 0, name)
