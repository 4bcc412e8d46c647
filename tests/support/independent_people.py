"""The people's scores once more, written from Sections F and H of the KathaTrace paper and docs/people.md alone.

Plain Python and loops: no code of katha's is used, so that both can only agree by being right.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from scipy import special

Row = dict[str, Any]
DIMENSIONS = ("action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral")


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# Eqs. 56 to 59.


def votes(rows: list[Row], method: str) -> dict[tuple[str, str], dict[str, list[bool]]]:
    """By question: the raters' correctness under each condition; the text has no method."""
    found: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "right" in row and row.get("method", method) == method:
            found[row["story_id"], row["question_id"]][row["condition"]].append(bool(row["right"]))
    return found


def valid(rows: list[Row], method: str) -> set[tuple[str, str]]:
    """Asked under all three conditions, and right under text and image for more than half of those asked."""
    return {
        question
        for question, given in votes(rows, method).items()
        if {"text", "image", "text+image"} <= given.keys() and sum(given["text+image"]) > len(given["text+image"]) / 2
    }


def recovered(rows: list[Row], method: str, condition: str, kept: set[tuple[str, str]]) -> float | None:
    """R_z: raters, then questions, then the dimensions that have a question; in points. Questions that nobody of these
    rows was asked under every condition are left out."""
    given = votes(rows, method)
    kind = {(row["story_id"], row["question_id"]): row["question_type"] for row in rows if "right" in row}
    own = [q for q in kept if all(given[q][z] for z in ("text", "image", "text+image"))]
    asked = [k for k in DIMENSIONS if any(kind[q] == k for q in own)]
    shares = [mean([mean(given[q][condition]) for q in own if kind[q] == k]) for k in asked]
    return 100 * mean(shares) if shares else None


def stg(rows: list[Row], method: str, kept: set[tuple[str, str]]) -> float:
    text, image = recovered(rows, method, "text", kept), recovered(rows, method, "image", kept)
    return math.nan if text is None or image is None else text - image


def gain(rows: list[Row], method: str, kept: set[tuple[str, str]]) -> float:
    """Evidence gain: right from the images minus right from nothing, on what was asked both ways."""
    asked = {question for question in kept if votes(rows, method)[question]["none"]}
    image, none = recovered(rows, method, "image", asked), recovered(rows, method, "none", asked)
    return math.nan if image is None or none is None else image - none


# Intervals and tests for other participants and other stories: each is left out in turn (docs/people.md).


def crossed(rows: list[Row], number: Callable[[list[Row]], float]) -> tuple[float, float, float]:
    """The estimate, its standard error, and Satterthwaite's degrees of freedom."""
    parts = []
    for column in ("rater", "story_id"):
        names = sorted({row[column] for row in rows})
        left = [number([row for row in rows if row[column] != name]) for name in names]
        n = len(names)
        parts.append((n - 1) / n * sum((value - mean(left)) ** 2 for value in left) / 1.0)
        parts.append(n - 1)
    variance = parts[0] + parts[2]
    freedom = variance**2 / (parts[0] ** 2 / parts[1] + parts[2] ** 2 / parts[3])
    return number(rows), math.sqrt(variance), freedom


def above(estimate: float, error: float, freedom: float) -> float:
    """The one-sided p of Student's t, from the incomplete beta function."""
    t = estimate / error
    tail = 0.5 * float(special.betainc(freedom / 2, 0.5, freedom / (freedom + t * t)))
    return tail if t > 0 else 1 - tail


# Eqs. 63 to 72.


def ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    return [mean([at + 1 for at, other in enumerate(order) if other == value]) for value in values]


def signed_ranks(values: Sequence[int]) -> tuple[float, float]:
    """W+ and W-, zeros dropped."""
    kept = [value for value in values if value]
    own = ranks([abs(value) for value in kept])
    plus = sum(rank for rank, value in zip(own, kept, strict=True) if value > 0)
    return plus, sum(own) - plus


def wilcoxon_p(values: Sequence[int]) -> float:
    """The share of all patterns of signs whose W+ is as large or larger."""
    kept = [value for value in values if value]
    own, (seen, _) = ranks([abs(value) for value in kept]), signed_ranks(values)
    sums = [sum(itertools.compress(own, signs)) for signs in itertools.product((0, 1), repeat=len(own))]
    return sum(value >= seen - 1e-9 for value in sums) / len(sums)


# Eqs. 76 and 77.


def fleiss(items: list[list[str]]) -> float:
    """Items of as many labels each."""
    number, size = len(items), len(items[0])
    agreed = mean([(sum(n * n for n in Counter(item).values()) - size) / (size * (size - 1)) for item in items])
    shares = [count / (number * size) for count in Counter(itertools.chain(*items)).values()]
    chance = sum(share**2 for share in shares)
    return (agreed - chance) / (1 - chance)


def alpha(units: list[list[float]], distance: Callable[[float, float, Counter[float]], float]) -> float:
    """Krippendorff's alpha from the pairs inside units and the pairs of all values of such units."""
    paired = [unit for unit in units if len(unit) > 1]
    everything = Counter(itertools.chain(*paired))
    total = sum(everything.values())
    observed = sum(
        distance(a, b, everything) / (len(unit) - 1) for unit in paired for a, b in itertools.permutations(unit, 2)
    )
    expected = sum(
        everything[a] * (everything[b] - (a == b)) * distance(a, b, everything) for a in everything for b in everything
    )
    return 1 - (observed / total) / (expected / (total * (total - 1)))


def nominal(a: float, b: float, everything: Counter[float]) -> float:
    return float(a != b)


def ordinal(a: float, b: float, everything: Counter[float]) -> float:
    low, high = min(a, b), max(a, b)
    between = sum(n for value, n in everything.items() if low <= value <= high)
    return (between - (everything[low] + everything[high]) / 2) ** 2


# Eqs. 60 to 62 and 75.


def spearman(one: Sequence[float], two: Sequence[float]) -> float:
    a, b = ranks(one), ranks(two)
    x, y = [value - mean(a) for value in a], [value - mean(b) for value in b]
    return sum(p * q for p, q in zip(x, y, strict=True)) / math.sqrt(sum(p * p for p in x) * sum(q * q for q in y))


def ece(sure: Sequence[float], right: Sequence[bool]) -> float:
    bins: dict[int, list[int]] = defaultdict(list)
    for at, value in enumerate(sure):
        bins[min(int(value * 10), 9)].append(at)
    gaps = [abs(mean([right[at] for at in own]) - mean([sure[at] for at in own])) for own in bins.values()]
    return sum(len(own) / len(sure) * gap for own, gap in zip(bins.values(), gaps, strict=True))


def most(given: Sequence[str]) -> str | None:
    """The answer that was given most often; None where two are."""
    (best, times), *others = Counter(given).most_common()
    return best if not others or others[0][1] < times else None
