"""Which of two methods' pictures a rater chooses, scene by scene and board by board (Roemmele et al., Secs. 5.2, 5.3).

The picture with the higher score is chosen; equal scores are a tie. A method's win rate is held against guessing, ties
allowed for, by the paper's one-sided binomial test, which takes pictures of one story to be independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import get_args

from katha.eval_bridge.metrics.illustration import Choice, choose, win_rate
from katha.schema.metrics import ChoiceUnit, MetricChoice, MetricColumn, MetricValue

Scores = Mapping[str, Mapping[int, float | None]]
"""A method's scores by story and scene, None where a scene has none."""
_DIGITS = 9
"""Means are compared as rounded: which way the last digit of a sum fell decides nothing."""


def choices(
    columns: Sequence[MetricColumn], methods: Sequence[str], values: Mapping[str, Sequence[MetricValue]]
) -> list[MetricChoice]:
    """Return, for each column that chooses and each ordered pair of methods, how often the first one is chosen.

    values: by column. Only stories of which both methods have a board are compared.
    """
    found = []
    for column in columns:
        if column.choice:
            scores = {method: _scores(values.get(column.name, []), method) for method in methods}
            for method, against in permutations(methods, 2):
                for unit in get_args(ChoiceUnit):
                    made = list(_UNITS[unit](scores[method], scores[against]))
                    found += [_counted(column.name, unit, method, against, made)] if made else []
    return found


def _scores(values: Sequence[MetricValue], method: str) -> Scores:
    """Return a method's scores; a story whose board failed as a whole has no scene."""
    given: dict[str, dict[int, list[float]]] = {}
    for value in values:
        if value.method == method and value.story_id is not None and not value.item:
            scenes = given.setdefault(value.story_id, {})
            if value.scene is not None:
                scenes.setdefault(value.scene, []).extend([] if value.value is None else [value.value])
    return {
        story: {scene: _mean(numbers) if numbers else None for scene, numbers in scenes.items()}
        for story, scenes in given.items()
    }


def _scenes(one: Scores, other: Scores) -> Iterator[Choice | None]:
    for story in sorted(set(one) & set(other)):
        for scene in sorted(set(one[story]) | set(other[story])):
            yield choose(one[story].get(scene), other[story].get(scene))


def _boards(one: Scores, other: Scores) -> Iterator[Choice | None]:
    """Yield the choice between two boards of a story: by their means over the scenes that both have a score of."""
    for story in sorted(set(one) & set(other)):
        first, second = one[story], other[story]
        pairs = [(first[scene], second.get(scene)) for scene in first]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        yield choose(_mean([a for a, _ in both]), _mean([b for _, b in both])) if both else None


_UNITS = {"scene": _scenes, "board": _boards}


def _mean(numbers: Sequence[float]) -> float:
    return round(math.fsum(numbers) / len(numbers), _DIGITS)


def _counted(column: str, unit: ChoiceUnit, method: str, against: str, made: Sequence[Choice | None]) -> MetricChoice:
    chosen, undecided, unscored = (made.count(choice) for choice in ("first", "undecided", None))
    pairs = len(made) - unscored
    rate = win_rate(chosen, undecided, pairs) if pairs else None
    return MetricChoice(
        column=column,
        unit=unit,
        method=method,
        against=against,
        pairs=pairs,
        chosen=chosen,
        undecided=undecided,
        unscored=unscored,
        rate=rate.rate if rate is not None else None,
        chance=rate.chance if rate is not None else None,
        p=rate.p if rate is not None else None,
    )
