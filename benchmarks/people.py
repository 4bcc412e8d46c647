"""How often a study with people concludes something that is not so (1,000 simulated studies), and finds what is (200).

Participants and stories differ, and boards of a story differ by method, as in a real study. A false conclusion is a
method said to lose less by human STG, or a criterion of 15 called preferred, where in truth there is nothing; the
baseline is the paper's test alone, which takes judgments as independent. Coverage is the share of 95% intervals over
participants and stories that hold the truth; power is the same with a true difference.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from simulated_people import Study, Truth, answers, preferences

from katha.eval_bridge.people.preferences import by_criterion
from katha.eval_bridge.people.recoverability import RaterAnswers, compare

_STUDIES, _POWERED = 1_000, 200
_CRITERIA = tuple(f"Q{number}" for number in range(1, 16))
_BETTER, _PREFERRED = 1.5, 0.8
"""True differences for the power: on the logit of image recoverability, and on the preference scale."""


def share(found: Sequence[bool]) -> dict[str, float]:
    """Per cent, and the ends of Wilson's 95% interval."""
    n, hits, z = len(found), sum(found), 1.959964
    centre, half = (hits + z * z / 2) / (n + z * z), z * np.sqrt(hits * (n - hits) / n + z * z / 4) / (n + z * z)
    return {"per_cent": 100 * hits / n, "low": 100 * float(centre - half), "high": 100 * float(centre + half)}


def _recovering(study: Study, better: float) -> tuple[list[bool], list[bool]]:
    """Return whether studies conclude, and whether their intervals leave out zero."""
    concluded, outside = [], []
    for seed in range(_POWERED if better else _STUDIES):
        drawn = answers(np.random.default_rng(seed), study, Truth(better=better))
        (row,) = compare(RaterAnswers.of(drawn))
        concluded.append(row.reading != "no difference is shown")
        outside.append(row.ci95_both is not None and not row.ci95_both[0] <= 0.0 <= row.ci95_both[1])
    return concluded, outside


def _preferring(study: Study, mean: float) -> tuple[list[bool], list[bool], list[bool]]:
    """Return whether a criterion is called preferred, by katha and by the paper's test alone; whether Q1's interval
    holds."""
    shown, paper, held = [], [], []
    for seed in range(_POWERED if mean else _STUDIES):
        rows = preferences(np.random.default_rng(seed), study, mean, Truth(), _CRITERIA)
        tests = by_criterion(rows)
        shown.append(any(test.shown for test in tests.values()))
        paper.append(any(test.p_corrected is not None and test.p_corrected < 0.05 for test in tests.values()))
        span = tests["Q1"].ci95_both
        held.append(span is not None and span[0] <= mean <= span[1])
    return shown, paper, held


def measure() -> dict[str, Any]:
    """Return the shares for a between and a within study of human STG, and for preferences by 15 criteria."""
    between, within, choosing = Study(10, 12, 4), Study(6, 12, 4, within=True), Study(10, 12)
    nothing, found = _recovering(between, 0.0), _recovering(between, _BETTER)
    nothing_within, found_within = _recovering(within, 0.0), _recovering(within, _BETTER)
    shown, paper, held = _preferring(choosing, 0.0)
    power, _, power_held = _preferring(choosing, _PREFERRED)
    return {
        "studies": _STUDIES,
        "stg_between_false": share(nothing[0]),
        "stg_between_power": share(found[0]),
        "stg_within_false": share(nothing_within[0]),
        "stg_within_power": share(found_within[0]),
        "stg_within_uncovered": share(nothing_within[1]),
        "preferences_false": share(shown),
        "preferences_false_by_the_papers_test_alone": share(paper),
        "preferences_power": share(power),
        "preferences_covered": share([*held, *power_held]),
        "ratio_of_false_conclusions": sum(shown) / max(1, sum(paper)),
    }
