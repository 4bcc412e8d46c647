"""How often a judge is right when it says how sure it is: the calibration that needs no human labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from katha.eval_bridge.matching import Matching, match
from katha.schema import CONDITIONS, Answer, Confidence, Question

__all__ = ["confidence_table"]

LEVELS: tuple[Confidence, ...] = get_args(Confidence)


def confidence_table(
    questions: Mapping[tuple[str, str], Question], answers: Iterable[Answer], judges: Sequence[str], matching: Matching
) -> list[dict[str, Any]]:
    """By judge, condition and stated confidence: `n` answers and the per cent `right` (None without any)."""
    counts: dict[tuple[str, str, Confidence], list[int]] = {}
    for row in answers:
        question = questions.get((row.story_id, row.question_id))
        if question is None or row.status != "ok" or row.confidence is None:
            continue
        right = match(row, question, matching).right
        if right is not None:
            cell = counts.setdefault((row.judge, row.condition, row.confidence), [0, 0])
            cell[0] += 1
            cell[1] += right
    return [
        {"judge": judge, "condition": condition, "confidence": level, "n": n, "right": 100.0 * right / n if n else None}
        for judge in judges
        for condition in CONDITIONS
        for level in LEVELS
        for n, right in [counts.get((judge, condition, level), [0, 0])]
    ]
