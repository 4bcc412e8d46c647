"""What people's judgments say (`katha people score`, `katha bench calibrate`, the human columns of an ablation).

Sections F and H of the KathaTrace paper, Tables 22, 37 to 39 and 49 to 51. Shares are in percentage points; ratings and
preferences are on their own scales. What cannot be computed is None, with a sentence in `notes`. An interval says for
whom it holds: `ci95` for other stories, as everywhere in katha; `ci95_raters` for other participants (Sec. H.4);
`ci95_both` for other participants and other stories at once, and is the one that conclusions rest on.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from katha.schema import Condition, Dimension
from katha.schema.scores import BlockIntervals, Bootstrap, DimensionScore, Interval, RankAgreement, Result


def _absent(value: object) -> bool:
    return value is None


class LabelAgreement(Result):
    """How often a judge's label is the human one (Eqs. 45 and 60), and its calibration error (Eqs. 48 and 62)."""

    n: int
    agreement: float | None
    ece: float | None


class RaterAgreement(Result):
    """How far raters agree on labels: Fleiss' kappa (Eq. 76) and Krippendorff's nominal alpha (Eq. 77).

    `n` items; kappa is of the `n_kappa` items that have the most frequent number of labels.
    """

    n: int
    fleiss_kappa: float | None
    krippendorff_alpha: float | None
    n_kappa: int = 0


class HumanMoral(Result):
    """HMR@1 and HMR@3 in percentage points (Eqs. 52 and 53)."""

    n: int
    hmr1: float | None
    hmr3: float | None


class Rating(Result):
    """Mean, standard deviation and intervals of ratings from 1 to 5 (Eq. 54), and Krippendorff's ordinal alpha."""

    n: int
    mean: float | None
    sd: float | None
    ci95: Interval | None
    krippendorff_alpha: float | None
    ci95_raters: Interval | None = None


class PreferenceTest(Result):
    """Preferences by one criterion (Eqs. 63 to 66 and 68 to 72): positive ones are for the first of the two methods.

    `p` is the paper's one-sided Wilcoxon test over all judgments, which takes them as independent. `p_both` is the
    one-sided test for other participants and other stories; `shown` says that it stays below 5% when corrected.
    """

    n: int
    n_nonzero: int
    p: float | None
    p_corrected: float | None
    rank_biserial: float | None
    mean: float | None = None
    n_raters: int = 0
    n_stories: int = 0
    ci95_raters: Interval | None = None
    ci95_both: Interval | None = None
    p_both: float | None = None
    p_both_corrected: float | None = None
    krippendorff_alpha: float | None = None
    family: int = 1
    counts: dict[int, int] = {}
    shown: bool = False


class HumanRecoverability(Result):
    """What people recover (Eqs. 56 to 59) on the questions valid for them; `gaps` by dimension.

    none: right without any evidence, also by story, on those of the questions that were asked so; gain_image,
    gain_text: evidence gain on the same questions, images or text minus that. All are absent where none was.
    """

    n_questions: int
    n_valid: int
    ambiguity_rate: float | None
    text: float | None
    image: float | None
    text_image: float | None
    stg: float | None
    ci95: BlockIntervals
    gaps: dict[Dimension, float | None]
    ci95_raters: BlockIntervals = BlockIntervals(text=None, image=None, stg=None)
    ci95_both: BlockIntervals = BlockIntervals(text=None, image=None, stg=None)
    dimensions: dict[Dimension, DimensionScore] = {}
    none: float | None = Field(default=None, exclude_if=_absent)
    gain_image: float | None = Field(default=None, exclude_if=_absent)
    gain_text: float | None = Field(default=None, exclude_if=_absent)
    none_by_story: dict[str, float] | None = Field(default=None, exclude_if=_absent)


class Gathered(Result):
    """One board's image recoverability by people and by a judge (Fig. 10)."""

    story_id: str
    human: float
    judge: float


class JudgeOnBoards(Result):
    """One judge against people on one method's boards (Table 39, Eqs. 60 to 62, 73 and 74).

    agreement: by condition, with the answer that most people gave. verdicts: how often judge and most people are both
    right or both wrong, in percentage points. boards: image recoverability story by story; `image` compares its ranks.
    """

    agreement: dict[Condition, LabelAgreement]
    verdicts: dict[Condition, float]
    image: RankAgreement
    boards: list[Gathered]


class BoardJudgments(Result):
    """What people say of one method's boards: a section for each kind of judgment, absent where there is none."""

    judge_labels: LabelAgreement | None = Field(default=None, exclude_if=_absent)
    judge_scores: RankAgreement | None = Field(default=None, exclude_if=_absent)
    judge_scores_within_raters: RankAgreement | None = Field(default=None, exclude_if=_absent)
    labels: RaterAgreement | None = Field(default=None, exclude_if=_absent)
    labels_by_condition: dict[Condition, RaterAgreement] | None = Field(default=None, exclude_if=_absent)
    moral: HumanMoral | None = Field(default=None, exclude_if=_absent)
    ncs: Rating | None = Field(default=None, exclude_if=_absent)
    mas: Rating | None = Field(default=None, exclude_if=_absent)
    ees: Rating | None = Field(default=None, exclude_if=_absent)
    visual: Rating | None = Field(default=None, exclude_if=_absent)
    identity: Rating | None = Field(default=None, exclude_if=_absent)
    environment: Rating | None = Field(default=None, exclude_if=_absent)
    aesthetics: Rating | None = Field(default=None, exclude_if=_absent)
    criteria: dict[str, Rating] | None = Field(default=None, exclude_if=_absent)
    preference: dict[str, PreferenceTest] | None = Field(default=None, exclude_if=_absent)
    recoverability: HumanRecoverability | None = Field(default=None, exclude_if=_absent)
    judges: dict[str, JudgeOnBoards] | None = Field(default=None, exclude_if=_absent)


class HumanComparison(Result):
    """Human STG of two methods on the questions that are valid for both; negative: `a` loses less."""

    a: str
    b: str
    n_stories: int
    n_questions: int
    stg_a: float | None
    stg_b: float | None
    difference: float | None
    ci95: Interval | None
    ci95_raters: Interval | None
    ci95_both: Interval | None
    p_both: float | None
    family: int
    p_corrected: float | None
    reading: str


class PairAgreement(Result):
    """Eq. 75 over the pairs that people compared: the share that judge and people put in the same order.

    A pair is a story's two boards: people's order is the sign of their mean overall preference, the judge's that of its
    image recoverability.
    """

    n: int
    agreement: float | None


class PreferencePair(Result):
    """One comparison of two methods' boards (`pairs`) or of boards without and with their bridge (`bridge`).

    criteria: by criterion (Q1 to Q15). dimensions: mean preference by the criterion's dimension (Fig. 6). groups: the
    overall criterion by participants' group (Fig. 9). judges: pairwise agreement, by judge.
    """

    a: str
    b: str
    task: Literal["pairs", "bridge"]
    criteria: dict[str, PreferenceTest]
    dimensions: dict[str, PreferenceTest]
    groups: dict[str, PreferenceTest]
    judges: dict[str, PairAgreement] = {}


class PictureChoices(Result):
    """How often people chose one method's picture of a scene over another's (narrative scene illustration, Sec. 4.4).

    pairs: scenes of both. rate: of `a` among all responses, with `chance` for a guesser who may leave it open, and
    the one-sided binomial `p`, which takes responses to be independent. ci95: of the rate, over stories. kappa: of the
    raters of one pair of pictures, doubt at half weight, over `n_kappa` pairs of raters.
    """

    a: str
    b: str
    pairs: int
    responses: int
    chosen_a: int
    chosen_b: int
    undecided: int
    rate: float
    chance: float
    p: float
    ci95: Interval | None
    kappa: float | None
    n_kappa: int


class Calibration(BoardJudgments):
    """Everything that a set of judgments has the columns for; methods are never pooled.

    With several methods, what is said of one's boards stands under `methods`.
    """

    rows: int
    notes: list[str]
    methods: dict[str, BoardJudgments] | None = Field(default=None, exclude_if=_absent)
    comparisons: list[HumanComparison] | None = Field(default=None, exclude_if=_absent)
    preferences: list[PreferencePair] | None = Field(default=None, exclude_if=_absent)
    pictures: list[PictureChoices] | None = Field(default=None, exclude_if=_absent)


class Participant(Result):
    """One person's file: what was answered, how the checks went, and why it does not count, if it does not."""

    rater: str
    page: str
    file: str
    group: str | None
    answered: int
    of: int
    checks_failed: int
    checks: int
    repeats_inconsistent: int
    repeats: int
    median_seconds: float | None
    excluded: list[str]


class PeopleScores(Calibration):
    """`people.json` of `katha people score`: the analysis, who took part, and by which rules a rater was left out."""

    format: Literal[1] = 1
    study: str | None
    matching: str
    bootstrap: Bootstrap
    participants: list[Participant]
