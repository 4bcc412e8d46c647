"""Scores as records (`scores.json`): recoverability, STG, their intervals and comparisons.

Every number is in percentage points (0 to 100); what cannot be computed is None, with a sentence in `Scores.notes`.
The attribute names are the file's keys, so that `Scores.model_validate(read_json(path))` reads any `scores.json`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from katha.schema.story import Dimension

Interval = tuple[float, float]
"""A 95% percentile interval: low, high."""

BlockName = Literal["raw", "filtered", "common_valid"]
"""Which questions count: every scored one, those valid for the method (Eq. 16), those valid for every method."""


class _Record(BaseModel):
    # The file's form may grow: a key that a later katha adds is kept, not refused.
    model_config = ConfigDict(frozen=True, extra="allow")


class DimensionScore(_Record):
    """One dimension of one block: how many questions, and the shares right from text and from images."""

    n: int
    text: float | None
    image: float | None
    gap: float | None


class BlockIntervals(_Record):
    """Bootstrap intervals over stories; None with fewer than two stories or without a question."""

    text: Interval | None
    image: Interval | None
    stg: Interval | None


class Block(_Record):
    """Recoverability over one set of questions; the means are macro averages over dimensions (Eqs. 17 to 20)."""

    n: int
    text: float | None
    image: float | None
    text_image: float | None
    stg: float | None
    ci95: BlockIntervals
    dimensions: dict[Dimension, DimensionScore]
    latent_gap: float | None


class MoralTarget(_Record):
    """MTR from text and from images (Eqs. 39 to 42), beside its chance and majority baselines."""

    text: float | None
    image: float | None
    gap: float | None
    chance: float
    majority: float | None


class JudgeScores(_Record):
    """What one judge, or the ensemble, made of one method's boards."""

    n_questions: int
    n_unscored: int
    n_valid: int
    ambiguity_rate: float | None
    raw: Block
    filtered: Block
    common_valid: Block
    moral_target: MoralTarget

    def block(self, name: BlockName) -> Block:
        """Return the block of that name."""
        return {"raw": self.raw, "filtered": self.filtered, "common_valid": self.common_valid}[name]


class MethodScores(_Record):
    """One method: how many stories count, why others do not, and its scores by judge."""

    stories: int
    invalid_stories: dict[str, str]
    judges: dict[str, JudgeScores]


class WilcoxonTest(_Record):
    """A two-sided signed-rank test over stories; `p` is None where no story differs."""

    p: float | None
    n_nonzero: int
    rank_biserial: float | None


class Comparison(_Record):
    """Two methods over the same stories: the difference in STG, its interval, and corrected tests."""

    a: str
    b: str
    judge: str
    block: BlockName
    n_stories: int
    stg_a: float | None
    stg_b: float | None
    difference: float | None
    ci95: Interval | None
    p_bootstrap: float | None
    wilcoxon: WilcoxonTest
    family: int
    p_corrected: float | None


class Bootstrap(_Record):
    """How intervals were drawn: stories are resampled."""

    resamples: int
    seed: int


class Scores(_Record):
    """`scores.json`: methods, judges, blocks, intervals and comparisons."""

    format: Literal[1] = 1
    frozen: bool
    matching: str
    questions: str
    bootstrap: Bootstrap
    methods: dict[str, MethodScores]
    comparisons: list[Comparison]
    notes: list[str]

    def with_notes(self, notes: list[str]) -> Scores:
        """Return the same scores with `notes` added."""
        return self.model_copy(update={"notes": [*self.notes, *notes]})
