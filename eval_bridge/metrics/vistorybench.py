"""The formulas of ViStoryBench over scores, counts and features: prompt alignment, OCCM, CIDS, CSD, copy-paste, IS.

Section letters are those of its supplement; `code` is what its repository computes at 514cc31, where that is another
thing than what the paper says. Features are rows of finite numbers of any length: every function makes them unit rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from katha.models.checkpoints import need

Aspect = Literal["scene", "shot", "interaction", "action"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)
"""The four of prompt alignment (App. H): setting, camera, the characters' interaction, one character's own action."""

Mode = Literal["paper", "code"]
Floats = NDArray[np.float64]
HIGHEST_SCORE = 4
TEMPERATURE = 0.01
_SCORE = re.compile(r"\bscore\W*(?:[a-z]+\W+)?(\d+(?:\.\d+)?)", re.IGNORECASE)


def read_alignment(text: str) -> int | None:
    """Return the score from 0 to 4 after the last "Score:" of a reply, or None.

    (The code takes the first, which is the analysis's where a model repeats the form; and 0 for none.)
    """
    found = _SCORE.findall(text)
    if not found:
        return None
    value = float(found[-1])
    return int(value) if value.is_integer() and 0 <= value <= HIGHEST_SCORE else None


def prompt_alignment(means: Mapping[Aspect, float | None]) -> float | None:
    """Return the mean of the four aspects (App. H, Table S4), each from 0 to 4; None where one is missing."""
    values = [means.get(aspect) for aspect in ASPECTS]
    told = [value for value in values if value is not None]
    return math.fsum(told) / len(ASPECTS) if len(told) == len(ASPECTS) else None


def individual_action(shots: Sequence[Sequence[int]], mode: Mode = "paper") -> float | None:
    """Return a story's individual action: the mean over its shots of the mean over a shot's characters.

    `code` rounds the mean of each shot, and then that of the story, to a whole number; None without any score.
    """
    means = [math.fsum(scores) / len(scores) for scores in shots if scores]
    if not means:
        return None
    if mode == "code":
        return float(round(math.fsum(round(mean) for mean in means) / len(means)))
    return math.fsum(means) / len(means)


def occm(detected: int, expected: int) -> float | None:
    """Return onstage character count matching (App. K), 0 to 100: `100 exp(-|D - E| / (E + 1e-6))`.

    The text of App. K divides by E; the published formula adds 1e-6 to it, as here, which moves the fifth digit.
    None for a shot without expected characters: the relative error has no scale, and the code leaves it out, too.
    """
    if expected < 1:
        return None
    return 100.0 * math.exp(-abs(detected - expected) / (expected + 1e-6))


def unit_rows(features: NDArray[np.floating] | Sequence[Sequence[float]]) -> Floats:
    """Return the rows divided by their length; a row of zeros stays."""
    rows = np.atleast_2d(np.asarray(features, dtype=np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float64)


def pair_mean(features: Floats) -> float | None:
    """Return the mean cosine of all pairs of rows; None for fewer than two. (The code says 0 for one image's CSD.)"""
    rows = unit_rows(features)
    count = len(rows)
    if count < 2:
        return None
    # The sum over pairs without the matrix of all pairs: half of |sum|^2 - sum |row|^2.
    total = rows.sum(axis=0)
    return float((total @ total - (rows * rows).sum()) / (count * (count - 1)))


def nearest(crops: Floats, references: Floats) -> Floats:
    """Return each crop's largest cosine with a character's references, shape (B,) of (B, D) and (R, D)."""
    return np.asarray((unit_rows(crops) @ unit_rows(references).T).max(axis=1), dtype=np.float64)


def match_characters(similarity: Mapping[str, Floats]) -> dict[str, int]:
    """Return which box is which character (App. I.1): the assignment of the largest total similarity.

    similarity: by character, one number a box (see `nearest`). With fewer boxes than characters some have none.
    """
    names = [name for name, row in similarity.items() if len(row)]
    if not names:
        return {}
    matched = need("scipy.optimize", "Matching characters", "local").linear_sum_assignment
    rows, columns = matched(np.stack([similarity[name] for name in names]), maximize=True)
    return {names[row]: int(column) for row, column in zip(rows, columns, strict=True)}


@dataclass(frozen=True)
class Cids:
    """Character identification similarity of one story, -1 to 1; None where nothing could be compared.

    characters: how many have references. unmatched: those that no box was matched with. single: those with one crop.
    """

    cross: float | None
    own: float | None
    characters: int
    unmatched: tuple[str, ...]
    single: tuple[str, ...]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def cids(crops: Mapping[str, Floats], references: Mapping[str, Floats], mode: Mode = "paper") -> Cids:
    """Return cross- and self-similarity of a story's characters (App. I.1).

    crops: by character, (N, D), the features of the boxes that were matched with it over all shots. references: (R, D).

    `paper`: cross is the mean over all matched pairs of the cosine with the reference that the match was made by (the
    most similar one), self the mean over characters with two crops or more of their pairs' mean; a character that was
    never found enters neither. `code`: both are means over all characters; a character's cross is the mean over crops
    and references, its self 1 where it has one crop, and both are 0 where it was never found.
    """
    cross: list[float] = []
    own: list[float] = []
    unmatched: list[str] = []
    single: list[str] = []
    for name, given in references.items():
        mine = crops.get(name)
        if mine is None or not len(mine):
            unmatched.append(name)
            if mode == "code":
                cross.append(0.0)
                own.append(0.0)
            continue
        table = unit_rows(mine) @ unit_rows(given).T
        cross += [float(table.mean())] if mode == "code" else [float(value) for value in table.max(axis=1)]
        pairs = pair_mean(mine)
        if pairs is None:
            single.append(name)
        if pairs is not None or mode == "code":
            own.append(1.0 if pairs is None else pairs)
    return Cids(_mean(cross), _mean(own), len(references), tuple(unmatched), tuple(single))


def csd_cross(frames: Floats, references: Sequence[Floats]) -> float | None:
    """Return style similarity with the references (App. J): over frames, the mean over its characters' pictures.

    frames: (N, D) style features. references: for each frame (R, D), the first reference picture of each character on
    stage (of any character where none is); a frame with none is left out.
    """
    rows = unit_rows(frames)
    found = [
        float((unit_rows(given) @ row).mean()) for row, given in zip(rows, references, strict=True) if len(given) > 0
    ]
    return _mean(found)


def copy_paste(generated: Floats, references: Floats, anchor: int = 0, temperature: float = TEMPERATURE) -> float:
    """Return the share of the anchor in a softmax of cosines over a character's references (Eq. S1).

    generated: (D,). references: (R, D), R from 2: with one reference the share is 1 whatever was drawn.

    Raises:
        ValueError: fewer than two references.
    """
    if len(references) < 2:
        raise ValueError("the copy-paste rate compares at least two references")
    logits = (unit_rows(references) @ unit_rows(generated)[0]) / temperature
    weights = np.exp(logits - logits.max())
    return float(weights[anchor] / weights.sum())


def copy_paste_mirrored(generated: Floats, reference: Floats, mirrored: Floats) -> float:
    """Return the copy-paste rate of the code since January 2026: the reference against its own mirror image.

    A picture that favours neither gives 0.5, so that it cannot be compared with the paper's reading or Table S4.
    """
    return copy_paste(generated, np.stack([np.ravel(reference), np.ravel(mirrored)]))


class InceptionSum:
    """The inception score of a set (one split) as its rows come: only two sums are held.

    The mean of KL(p_i || m) is the mean of sum(p_i log p_i) minus sum(m log m), m being the mean row.
    """

    def __init__(self) -> None:
        self.count = 0
        self._negentropy = 0.0
        self._rows: Floats | None = None

    def add(self, probabilities: Floats) -> None:
        """Add rows of class probabilities, (N, classes)."""
        rows = np.asarray(probabilities, dtype=np.float64)
        if not len(rows):
            return
        self.count += len(rows)
        self._negentropy += _negentropy(rows)
        total = rows.sum(axis=0)
        self._rows = total if self._rows is None else self._rows + total

    def score(self) -> float | None:
        """Return the score: 1 where all rows are alike, at most their number; None without rows."""
        if self._rows is None:
            return None
        mean = self._rows / self.count
        return max(1.0, math.exp(self._negentropy / self.count - _negentropy(mean)))


def _negentropy(shares: Floats) -> float:
    """Return the sum of p log p, in which a share of nothing is nothing."""
    return float((shares * np.log(np.where(shares > 0, shares, 1.0))).sum())


def inception_score(probabilities: Floats) -> float | None:
    """Return the inception score of rows that are all there: exp of the mean KL divergence from the mean row."""
    total = InceptionSum()
    total.add(probabilities)
    return total.score()
