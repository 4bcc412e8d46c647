"""How often experiments made without an effect conclude one, and how often a known effect is found; and how often the
weakest transition is found where half of them have no steering question.

The rule is that of `katha ablate` (interval over stories, exact signed ranks and bootstrap p: of one contrast alone, of
the others corrected together) on the common-valid questions; `katha compare` draws its readings from the same
functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from katha.compass.repair import weakest_transition
from katha.eval_bridge.scoring.rows import compare, correct
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, story_counts
from katha.experiments.ablate.conclusions import finding
from katha.schema import DIMENSIONS, TransitionScore
from katha.schema.tables import RowComparison

__all__ = ["conclusions", "measure", "weakest_found"]

_EXPERIMENTS, _STORIES, _ROWS = 1_000, 40, 5
_QUESTIONS = 2
"""Of each dimension and story, as the reporting half has them."""


@dataclass(frozen=True)
class Conclusions:
    """In how many of the experiments the first row is said to lose less than the baseline, and any row to differ."""

    experiments: int
    less: int
    any_at_all: int


def conclusions(
    experiments: int, *, stories: int = _STORIES, rows: int = _ROWS, effect: float = 0.0, resamples: int = 1_000
) -> Conclusions:
    """Make experiments of `rows` rows and a baseline, and draw the conclusions that a table draws.

    Stories differ in how well their images are read, and rows alike in nothing but chance; with `effect` every row's
    chance of a right answer from the images is that much higher (0 to 1) than the baseline's.
    """
    less = some = 0
    for number in range(experiments):
        found = _findings(np.random.default_rng([42, number]), stories, rows, effect, resamples)
        less += found[0] == "lower"
        some += any(item in ("lower", "higher") for item in found)
    return Conclusions(experiments, less, some)


def _findings(dice: np.random.Generator, stories: int, rows: int, effect: float, resamples: int) -> list[str]:
    asked = stories * len(DIMENSIONS) * _QUESTIONS
    cells = np.repeat(np.arange(stories * len(DIMENSIONS)), _QUESTIONS)
    seen = np.clip(np.repeat(dice.beta(2.0, 1.5, stories), len(DIMENSIONS) * _QUESTIONS), 0.05, 0.95)
    told = dice.random(asked) < 0.93
    right = np.zeros((rows + 1, 3, asked), dtype=bool)
    for row in range(rows + 1):
        right[row, TEXT] = told  # the text is asked once for all
        right[row, IMAGE] = dice.random(asked) < np.clip(seen + effect * (row > 0), 0.0, 1.0)
        right[row, BOTH] = dice.random(asked) < 0.9
    common = right[:, BOTH].all(axis=0)
    counts: list[Floats] = [story_counts(right[row], common, cells, stories) for row in range(rows + 1)]
    everyone: NDArray[np.bool_] = np.ones(stories, dtype=bool)
    pairs = compare([(counts[row], counts[0], everyone) for row in range(1, rows + 1)], resamples, 42)
    named = {"a": "row", "b": "base", "what": "all stories"}
    told_rows = [dict(item) | named for item in correct(pairs, rows - 1, primary=0)]
    return [finding(RowComparison.model_validate(item)) for item in told_rows]


def weakest_found(informs: float, questions: int = 2, stories: int = 4_000) -> dict[str, float]:
    """Return, in per cent of made stories, how often three rules name the truly weakest of four transitions, and how
    often the second of them names one that was not asked about.

    Each transition has its own chance of being understood; the steering questions are at transitions drawn by chance
    (two a story, as the release has them). informs: how much of the similarity is that chance, 0 to 1; the rest is
    noise. `asked` is what a run does; `one scale` ranks shares of answers and coverage of 0 or 1 together; `coverage`
    never looks at answers.
    """
    dice = np.random.default_rng(42)
    hits, unasked = dict.fromkeys(("asked", "one scale", "coverage"), 0), 0
    for _ in range(stories):
        chance = dice.beta(1.2, 1.2, 4)
        similarity = informs * chance + (1.0 - informs) * dice.random(4)
        at = dice.integers(0, 4, questions)
        steps = []
        for place in range(4):
            number = int((at == place).sum())
            share = float(dice.binomial(number, chance[place])) / number if number else None
            steps.append(_step(place, share, number, float(similarity[place])))
        truth = int(np.argmin(chance))
        mixed = min(steps, key=lambda item: (_value(item), item.similarity))
        asked = weakest_transition(steps)
        hits["asked"] += asked is not None and asked.pair[0] - 1 == truth
        hits["one scale"] += mixed.pair[0] - 1 == truth
        hits["coverage"] += int(np.argmin(similarity)) == truth
        unasked += mixed.recoverability is None
    told = {name: round(100.0 * count / stories, 1) for name, count in hits.items()}
    return told | {"unasked by one scale": round(100.0 * unasked / stories, 1)}


def _step(place: int, share: float | None, number: int, similarity: float) -> TransitionScore:
    return TransitionScore(
        pair=(place + 1, place + 2),
        recoverability=share,
        n_questions=number,
        similarity=similarity,
        covered=similarity > 0.5,
        copied=False,
    )


def _value(item: TransitionScore) -> float:
    return item.recoverability if item.recoverability is not None else float(item.covered)


def measure() -> dict[str, Any]:
    """Null experiments with the level that they hold, the power at known effects, and localization."""
    null = conclusions(_EXPERIMENTS)
    powers = {points: conclusions(200, effect=points / 100.0).less / 2.0 for points in (5, 10, 15)}
    return {
        "experiments": null.experiments,
        "stories": _STORIES,
        "comparisons": _ROWS,
        "concludes_less_percent": 100.0 * null.less / null.experiments,
        "concludes_anything_percent": 100.0 * null.any_at_all / null.experiments,
        "allowed_percent": round(100.0 * float(stats.binom.ppf(0.975, null.experiments, 0.05)) / null.experiments, 1),
        "power_percent_by_points": powers,
        "weakest_transition_percent": {informs: weakest_found(informs) for informs in (0.0, 0.25, 0.5)},
    }
