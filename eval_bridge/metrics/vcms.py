"""VCMS, the visual context-aware metric for story visualization: caption reflection and image consistency.

Four questions a frame, each answered from 0 to 1 (Sec. 3 and Fig. 5 of Jhang et al.): Q1 `behaviour` and Q2 `setting`
against the caption, Q3 `character` and Q4 `style` against the frame before. The score is their mean (Table 6).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Question = Literal["behaviour", "setting", "character", "style"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
CAPTIONED: frozenset[Question] = frozenset(("behaviour", "setting"))
"""The questions about the caption; the others are about the frame before, which the first frame does not have."""

MOST_SHOTS = 2
"""Examples shown before a question; a third lowered the correlation with people (Table 4)."""

_NUMBER = re.compile(r"(?<![\d.])[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?")


def read_score(text: str) -> float | None:
    """Return the real number from 0 to 1 that a reply is, or None: two numbers, none, or one beyond the scale."""
    found = _NUMBER.findall(text.lower())
    if len(found) != 1:
        return None
    value = float(found[0])
    return value if 0.0 <= value <= 1.0 else None


def binary_score(yes: float, no: float, weight: float = -1.0) -> float:
    """Return the score of a yes/no answer from the probabilities of both words, from `weight` to 1.

    The paper gives "No" a negative weight and does not say which; -1 makes the scale symmetric.
    """
    return yes + weight * no


def sample_mean(samples: Iterable[float | None]) -> float | None:
    """Return the mean of the samples that could be read (the paper draws three at temperature 1); None without one."""
    read = [value for value in samples if value is not None]
    return math.fsum(read) / len(read) if read else None


@dataclass(frozen=True)
class Vcms:
    """One story's VCMS. A mean is None where no frame has an answer; `overall` needs all four.

    counts: by question, how many frames the mean rests on.
    """

    behaviour: float | None
    setting: float | None
    character: float | None
    style: float | None
    overall: float | None
    counts: Mapping[Question, int]


def story_vcms(scores: Mapping[Question, Sequence[float | None]]) -> Vcms:
    """Return the means of one board's answers, by question and over the questions.

    scores: by question, one value a frame, None where it was not asked or not answered. The paper does not say what Q3
    and Q4 are on the first frame, which has none before it: here they are None, so that `overall` weighs the four
    questions alike whatever the number of frames (the mean of the columns, as in Table 6).
    """
    means = {name: sample_mean(scores.get(name, ())) for name in QUESTIONS}
    counts = {name: sum(value is not None for value in scores.get(name, ())) for name in QUESTIONS}
    told = [value for value in means.values() if value is not None]
    overall = math.fsum(told) / len(QUESTIONS) if len(told) == len(QUESTIONS) else None
    return Vcms(**means, overall=overall, counts=counts)


def corrupt_captions(captions: Sequence[str], share: float = 0.5, seed: int = 42) -> tuple[list[str], frozenset[int]]:
    """Return the captions with a share of them taken from another place, and those places (Apps. J.1 and J.2).

    Q1 and Q2 of a judge must fall on them and Q3 and Q4 stay: by 48.8%, 46.2%, 0.7% and -3.4% in Table 13. A caption is
    replaced by one that reads otherwise; where all read alike nothing is replaced.
    """
    chance = random.Random(seed)
    places = chance.sample(range(len(captions)), round(share * len(captions)))
    corrupted, changed = list(captions), set[int]()
    for place in places:
        others = [caption for caption in captions if caption != captions[place]]
        if others:
            corrupted[place] = chance.choice(others)
            changed.add(place)
    return corrupted, frozenset(changed)
