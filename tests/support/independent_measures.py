"""A second implementation of the measures of VCMS, ViStoryBench and scene illustration, from the papers' text alone.

Plain Python over lists, one loop a sum, so that it shares neither code nor a library's shortcut with what it checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from math import comb

Row = Sequence[float]


def cosine(first: Row, second: Row) -> float:
    """Return the cosine of two rows."""
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    return dot / math.sqrt(sum(a * a for a in first)) / math.sqrt(sum(b * b for b in second))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def copy_rate(generated: Row, references: Sequence[Row], temperature: float = 0.01) -> float:
    """ViStoryBench, Eq. S1, the first reference being the anchor."""
    exponents = [cosine(generated, row) / temperature for row in references]
    return 1.0 / sum(math.exp(each - exponents[0]) for each in exponents)


def count_match(detected: int, expected: int) -> float:
    """ViStoryBench, App. K: an exponential penalty of the error relative to the expected count, in per cent.

    The text divides by E; the published formula adds 1e-6 to it, which moves the fifth digit.
    """
    return 100.0 * math.e ** (-(abs(detected - expected) / (expected + 1e-6)))


def self_similarity(rows: Sequence[Row]) -> float:
    """The mean cosine over all pairs of different rows."""
    return mean([cosine(first, second) for first, second in combinations(rows, 2)])


def cross_similarity(crops: Mapping[str, Sequence[Row]], references: Mapping[str, Sequence[Row]]) -> float:
    """CIDS, App. I.1 step 4: over matched pairs, the cosine of a crop and the reference that matched it."""
    found = []
    for name, mine in crops.items():
        for crop in mine:
            found.append(max(cosine(crop, reference) for reference in references[name]))
    return mean(found)


def best_assignment(similarity: Mapping[str, Row]) -> float:
    """The largest total similarity of a one-to-one match, by trying every one (App. I.1 step 3)."""
    names, boxes = list(similarity), range(len(next(iter(similarity.values()))))
    size = min(len(names), len(boxes))
    return max(
        sum(similarity[name][box] for name, box in zip(chosen, order, strict=True))
        for chosen in combinations(names, size)
        for order in permutations(boxes, size)
    )


def inception(probabilities: Sequence[Row]) -> float:
    """exp of the mean KL divergence of each picture's classes from all pictures' (Salimans et al. 2016)."""
    together = [mean([row[at] for row in probabilities]) for at in range(len(probabilities[0]))]
    divergences = [
        sum(p * (math.log(p) - math.log(q)) for p, q in zip(row, together, strict=True) if p > 0)
        for row in probabilities
    ]
    return math.exp(mean(divergences))


def uncertain_kappa(one: Sequence[str], other: Sequence[str]) -> float:
    """kappa_u of scene illustration, Sec. 4.4: Cohen's, a disagreement by "undecided" weighing a half."""
    labels = ("first", "undecided", "second")

    def weight(a: str, b: str) -> float:
        return 0.0 if a == b else 0.5 if "undecided" in (a, b) else 1.0

    observed = mean([weight(a, b) for a, b in zip(one, other, strict=True)])
    shares = [{label: list(side).count(label) / len(side) for label in labels} for side in (one, other)]
    expected = sum(shares[0][a] * shares[1][b] * weight(a, b) for a in labels for b in labels)
    return 1.0 - observed / expected


def win_rate_p(wins: int, ties: int, responses: int) -> float:
    """Note 6: the one-sided binomial test against the chance (1 - ties / responses) / 2."""
    chance = (1 - ties / responses) / 2
    return sum(comb(responses, k) * chance**k * (1 - chance) ** (responses - k) for k in range(wins, responses + 1))
