"""Narrative scene illustration: criteria for a picture, criterial ratings and their statistics.

Section and table numbers are those of "LLMs Behind the Scenes" (Roemmele et al.).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from katha.errors import ReplyError
from katha.models.checkpoints import need

Mark = Literal["satisfied", "maybe", "not"]
Choice = Literal["first", "second", "undecided"]
POINTS: Mapping[Mark, float] = {"satisfied": 1.0, "maybe": 0.5, "not": 0.0}
"""What a criterion adds to a picture's score (Sec. 5.2)."""

HEIGHT = 240
"""Pictures are shown to raters at this height in pixels, with proportional width (Sec. 5.2)."""

_NUMBERED = re.compile(r"^\s*(?:[-*]\s*)?(\d+)\s*[.)]\s*(\S.*?)\s*$", re.MULTILINE)
_MARKS: Mapping[str, Mark] = {
    **dict.fromkeys("✓✔✅🗸☑", "satisfied"),
    **dict.fromkeys("?？❓", "maybe"),
    **dict.fromkeys("✗✘❌❎☒xX×", "not"),
}
_VARIATION = "️"


def read_criteria(reply: str) -> tuple[str, ...]:
    """Return the criteria of a reply by their numbers (Sec. 5.1).

    Raises:
        ReplyError: none, or they are not numbered 1, 2, 3 and on.
    """
    rows = _NUMBERED.findall(reply)
    if not rows or [int(number) for number, _ in rows] != list(range(1, len(rows) + 1)):
        numbers = ", ".join(number for number, _ in rows) or "none"
        raise ReplyError(f"The criteria must be numbered 1, 2, 3 and on; the reply has {numbers}.", raw=reply)
    return tuple(text for _, text in rows)


def read_marks(reply: str, count: int) -> tuple[Mark, ...]:
    """Return the mark after each of `count` criteria of a rater's reply (Table 19).

    Raises:
        ReplyError: a criterion is missing, out of order, or ends in no mark.
    """
    rows = _NUMBERED.findall(reply)
    if [int(number) for number, _ in rows] != list(range(1, count + 1)):
        raise ReplyError(f"The rater answered {len(rows)} criteria in order, of {count}.", raw=reply)
    marks: list[Mark] = []
    for number, text in rows:
        mark = _MARKS.get(text.replace(_VARIATION, "").rstrip(" .)*")[-1:])
        if mark is None:
            raise ReplyError(f"Criterion {number} ends in no mark: {text[-40:]!r}.", raw=reply)
        marks.append(mark)
    return tuple(marks)


def criterial_score(marks: Sequence[Mark]) -> float:
    """Return a picture's score: 1 for each criterion satisfied, 0.5 for each maybe (Sec. 5.2, Table 5)."""
    return sum(POINTS[mark] for mark in marks)


def read_rating(reply: str, highest: int) -> float | None:
    """Return the baseline rater's rating in half points from 0 to `highest` (Table 20), or None."""
    found = re.fullmatch(r"(?:Rating:)?\s*(\d+(?:\.\d+)?)\s*", reply.strip(), re.IGNORECASE)
    value = float(found[1]) if found else -1.0
    return value if 0 <= value <= highest and (2 * value).is_integer() else None


def choose(first: float | None, second: float | None) -> Choice | None:
    """Return which of two pictures a rater selects: the one with the higher score; None where one has no score."""
    if first is None or second is None:
        return None
    return "undecided" if first == second else "first" if first > second else "second"


@dataclass(frozen=True)
class Accuracy:
    """How often a rater selected what people did, over pairs on which both of them agree (Sec. 5.3).

    undecided: pairs with equal scores; they count as missed. unscored: pairs without a score; they are left out.
    """

    accuracy: float | None
    pairs: int
    undecided: int
    unscored: int


def accuracy(choices: Sequence[Choice | None], people: Sequence[tuple[Choice, Choice]]) -> Accuracy:
    """Return a rater's accuracy; pairs on which people differ, or which either left open, are no part of it."""
    agreed = [
        (choice, one)
        for choice, (one, other) in zip(choices, people, strict=True)
        if one == other and one != "undecided"
    ]
    scored = [(choice, one) for choice, one in agreed if choice is not None]
    hits = sum(choice == one for choice, one in scored)
    return Accuracy(
        accuracy=hits / len(scored) if scored else None,
        pairs=len(scored),
        undecided=sum(choice == "undecided" for choice, _ in scored),
        unscored=len(agreed) - len(scored),
    )


_ORDER: Mapping[str, int] = {"first": -1, "undecided": 0, "second": 1, "not": -1, "maybe": 0, "satisfied": 1}


def weighted_kappa(one: Sequence[Choice | Mark], other: Sequence[Choice | Mark]) -> float | None:
    """Return the linear-weighted kappa of two raters (scikit-learn) with what is open in the middle.

    Of choices it is kappa_u (Sec. 4.4): a disagreement by "I can't decide" weighs half. Of marks it is the correctness
    of a rater (App. A.2.3). None without items, or where both gave one and the same label throughout.
    """
    left, right = [_ORDER[label] for label in one], [_ORDER[label] for label in other]
    if not left or len({*left, *right}) < 2:
        return None
    score = need("sklearn.metrics", "Agreement between raters", "stats").cohen_kappa_score
    return float(score(left, right, labels=[-1, 0, 1], weights="linear"))


@dataclass(frozen=True)
class WinRate:
    """How often one kind of picture was selected. `chance`: what guessing gives, ties allowed for."""

    rate: float
    chance: float
    p: float
    responses: int


def win_rate(wins: int, ties: int, responses: int) -> WinRate:
    """Return the win rate with its one-sided binomial test against `(1 - ties / responses) / 2` (note 6, SciPy).

    Raises:
        ValueError: no response, or more wins and ties than responses.
    """
    if responses < 1 or wins < 0 or ties < 0 or wins + ties > responses:
        raise ValueError(f"{wins} wins and {ties} ties of {responses} responses cannot be")
    chance = (1 - ties / responses) / 2
    p = float(need("scipy.stats", "A win rate's test").binomtest(wins, responses, chance, alternative="greater").pvalue)
    return WinRate(wins / responses, chance, p, responses)
