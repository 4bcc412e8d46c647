"""Simulated participants whose parameters are known: judgments as rows of a file, for tests and benchmarks.

Participants differ (some see more, some lean to the first board), stories differ (some are hard, some are drawn better
by one method than by the other), and what is left is chance: all three as a real study has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from katha.schema import DIMENSIONS

Row = dict[str, str | int | bool]


@dataclass(frozen=True)
class Study:
    """What is simulated. `within`: every rater meets every story under every condition; else each story under one.
    `guesses`: one of the conditions is no evidence."""

    raters: int = 12
    stories: int = 12
    questions: int = 4
    methods: tuple[str, ...] = ("a", "b")
    within: bool = False
    guesses: bool = False


@dataclass(frozen=True)
class Truth:
    """Shares right by condition, by how much the second method's images are better, and the spreads (on the logit or
    the preference scale): of raters, of stories, and of stories by method."""

    text: float = 0.85
    image: float = 0.55
    both: float = 0.95
    none: float = 0.3
    better: float = 0.0
    raters: float = 0.5
    stories: float = 0.5
    boards: float = 0.5


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def answers(draw: Generator, study: Study, truth: Truth) -> list[Row]:
    """Return who was right about what, under which condition."""
    base = {"text": _logit(truth.text), "image": _logit(truth.image), "text+image": _logit(truth.both)}
    base["none"] = _logit(truth.none)
    ability = draw.normal(0, truth.raters, study.raters)
    hardness = draw.normal(0, truth.stories, (study.stories, study.questions))
    drawn = draw.normal(0, truth.boards, (study.stories, len(study.methods)))
    rows: list[Row] = []
    for r in range(study.raters):
        for s in range(study.stories):
            cells = [("text", -1), *(("image", m) for m in range(len(study.methods)))]
            cells += [("text+image", m) for m in range(len(study.methods))]
            cells += [("none", -1)] if study.guesses else []
            own = cells if study.within else [cells[(r + s) % len(cells)]]
            for condition, m in own:
                shift = (m * truth.better + drawn[s, m]) if condition == "image" else 0.0
                for q in range(study.questions):
                    chance = 1 / (1 + np.exp(-(base[condition] + ability[r] + hardness[s, q] + shift)))
                    row: Row = {
                        "rater": f"r{r}",
                        "story_id": f"s{s:02}",
                        "question_id": f"q{q}",
                        "question_type": DIMENSIONS[q % len(DIMENSIONS)],
                        "condition": condition,
                        "right": bool(draw.random() < chance),
                        "line": len(rows) + 1,
                    }
                    rows.append(row if m < 0 else {**row, "method": study.methods[m]})
    return rows


def preferences(draw: Generator, study: Study, mean: float, truth: Truth, criteria: tuple[str, ...]) -> list[Row]:
    """Return preferences for the first method whose mean over all people and stories is `mean`, within -1 to 1.

    Values are drawn around it and rounded up or down at random, so that rounding moves no mean.
    """
    leaning = draw.normal(0, truth.raters, study.raters).clip(-0.5, 0.5)
    better = draw.normal(0, truth.boards, study.stories).clip(-0.5, 0.5)
    rows: list[Row] = []
    for r in range(study.raters):
        for s in range(study.stories):
            for name in criteria:
                exact = np.clip(mean + leaning[r] + better[s] + draw.uniform(-0.9, 0.9), -2.0, 2.0)
                value = int(np.floor(exact + draw.random()))
                row: Row = {"rater": f"r{r}", "story_id": f"s{s:02}", "criterion": name, "preference": value}
                rows.append({**row, "method": "a", "against": "b", "task": "pairs", "line": len(rows) + 1})
    return rows
