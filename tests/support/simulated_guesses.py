"""Simulated judges that see nothing: with pictures, blank frames or nothing in front of them they are right as often.

Some stories are remembered and some questions are easy, for whatever is shown; each answer is drawn anew. Text, and
text with pictures, they read as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from katha.eval_bridge.scoring.controls import control_results
from katha.eval_bridge.scoring.scores import score
from katha.schema import DIMENSIONS, Answer, Condition, Question, StoryRecord
from katha.schema.scores import ChanceControl, Interval

EACH = 6
"""Questions a story, one a dimension."""
_READS = 0.95


def stories(number: int) -> list[StoryRecord]:
    """Return stories with free questions whose right answer is `yes`."""
    return [
        StoryRecord(
            story_id=f"s{at:03}",
            story_text="A story.",
            recoverability_questions=[
                Question(
                    question_id=f"q{place}",
                    story_id=f"s{at:03}",
                    question_type=DIMENSIONS[place],
                    question="What?",
                    gold_answer="yes",
                )
                for place in range(EACH)
            ],
        )
        for at in range(number)
    ]


def _rates(draw: np.random.Generator, number: int, rate: float) -> np.ndarray:
    """Return the chance of each guess, (stories, questions), around `rate` on the logit scale."""
    centre = np.log(rate / (1 - rate))
    spread = draw.normal(0, 0.7, (number, 1)) + draw.normal(0, 0.7, (number, EACH))
    return np.asarray(1 / (1 + np.exp(-(centre + spread))))


def guessing(
    records: list[StoryRecord], judges: int, rate: float, seed: int, *, seen: float = 0.0
) -> tuple[list[Answer], list[Answer]]:
    """Return the answers of so many judges about one board, and to its blank frames.

    seen: how much of what is not guessed they see in the board's and the blank frames, which is nothing of nothing.
    """
    draw, rows, blank = np.random.default_rng(seed), list[Answer](), list[Answer]()
    for judge in range(judges):
        guess = _rates(draw, len(records), rate)
        shown = guess + seen * (1 - guess)
        reads = np.full_like(guess, _READS)
        under: tuple[tuple[Condition, str | None, np.ndarray], ...] = (
            ("none", None, guess),
            ("image", "board", shown),
            ("text", None, reads),
            ("text+image", "board", reads),
            ("image", "blank", shown),
        )
        for condition, method, chance in under:
            right = draw.random(guess.shape) < chance
            for at, record in enumerate(records):
                for place, item in enumerate(record.recoverability_questions):
                    row = Answer(
                        method=method,
                        judge=f"j{judge:03}",
                        story_id=record.story_id,
                        question_id=item.question_id,
                        condition=condition,
                        status="ok",
                        answer="yes" if right[at, place] else "no",
                        evidence_status="recoverable" if condition in ("text", "image") else None,
                    )
                    (blank if method == "blank" else rows).append(row)
    return rows, blank


def gains(
    number: int, judges: int, rate: float, seed: int, *, seen: float = 0.0, resamples: int = 2_000
) -> Iterator[tuple[Interval, Interval, bool | None]]:
    """Yield the interval of the evidence gain in the scores and of blank frames' gain in the control, and what the
    control says."""
    records = stories(number)
    rows, blank = guessing(records, judges, rate, seed, seen=seen)
    scores = score(records, rows, matching="exact-set", questions="all", resamples=resamples, seed=42)
    known = {
        (record.story_id, item.question_id): item for record in records for item in record.recoverability_questions
    }
    told = control_results(known, rows, blank, board="board", matching="exact-set", controls=("blank",), chance=False)
    for control in told:
        block = scores.methods["board"].judges[control.judge].common_valid
        assert isinstance(control, ChanceControl)
        assert block.ci95.gain_image is not None
        assert control.gain_ci95 is not None
        yield block.ci95.gain_image, control.gain_ci95, control.passes
