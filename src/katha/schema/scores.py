"""Scores as records (`scores.json`): recoverability, STG, their intervals and comparisons.

Every number is in percentage points (0 to 100); what cannot be computed is None, with a sentence in `Scores.notes`.
The attribute names are the file's keys, so that `Scores.model_validate(read_json(path))` reads any `scores.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from katha.schema import Condition, Confidence, Dimension, ReadBack
from katha.schema.frames import Row, Tabular, flat

Selection = Literal["reporting", "steering", "all"]
"""Which half of the questions counts."""

Interval = tuple[float, float]
"""A 95% interval over stories: low, high."""

PERCENTILE = "percentile bootstrap"
"""How the intervals of a file were made that does not say it: files of before the jackknife."""

BlockName = Literal["raw", "filtered", "common_valid", "unguessed"]
"""Which questions count: every scored one, those valid for the method (Eq. 16), those valid for every method, and of
these the ones that were not right without any evidence."""


NO_SCORES = "No recoverability and no STG: "
"""How the note begins that says why nobody was asked about a run's boards."""


class Result(BaseModel):
    """Base of what scoring makes; a key that a later katha adds to a file is kept, not refused."""

    model_config = ConfigDict(frozen=True, extra="allow")


def absent(value: object) -> bool:
    """Return whether a key has nothing to say and is left out of its file."""
    return value is None


class DimensionScore(Result):
    """One dimension of one block: how many questions, and the shares right from text and from images."""

    n: int
    text: float | None
    image: float | None
    gap: float | None


class BlockIntervals(Result):
    """Bootstrap intervals over stories; None with fewer than two stories or without a question."""

    text: Interval | None
    image: Interval | None
    stg: Interval | None
    none: Interval | None = Field(default=None, exclude_if=absent)
    gain_image: Interval | None = Field(default=None, exclude_if=absent)
    gain_text: Interval | None = Field(default=None, exclude_if=absent)


class StoryAverage(Result):
    """The mean over stories of each story's own average over its dimensions: every story counts alike."""

    n_stories: int
    text: float | None
    image: float | None
    stg: float | None


class Block(Result):
    """Recoverability over one set of questions; the means are macro averages over dimensions (Eqs. 17 to 20).

    none: right without any evidence, on those of the block's questions that were asked so; gain_image, gain_text:
    evidence gain on the same questions, images or text minus that. All three are absent where none was.
    by_story: the other macro average, over stories. thin: dimensions that rest on one or two questions. inspect: STG is
    below zero, which is no better board but something to look into (Secs. B.3, D.2).
    """

    n: int
    text: float | None
    image: float | None
    text_image: float | None
    stg: float | None
    ci95: BlockIntervals
    dimensions: dict[Dimension, DimensionScore]
    latent_gap: float | None
    by_story: StoryAverage | None = None
    thin: list[Dimension] = []
    inspect: bool = False
    none: float | None = Field(default=None, exclude_if=absent)
    gain_image: float | None = Field(default=None, exclude_if=absent)
    gain_text: float | None = Field(default=None, exclude_if=absent)


class MoralTarget(Result):
    """MTR from text and from images (Eqs. 39 to 42), beside its chance and majority baselines."""

    text: float | None
    image: float | None
    gap: float | None
    chance: float
    majority: float | None


class GuessedShare(Result):
    """How many questions were asked without evidence, and the per cent of them that were right."""

    n: int
    none: float | None


class Guesses(Result):
    """Scored questions asked without any evidence, by dimension and by source family; n_unscored: those that have no
    such outcome."""

    n: int
    n_unscored: int
    by_dimension: dict[Dimension, GuessedShare]
    by_family: dict[str, GuessedShare] = {}


class JudgeScores(Result):
    """What one judge, or the ensemble, made of one method's boards.

    guessable: the per cent of scored questions that were right without any evidence. The file holds `unguessed`,
    `guessable` and `guesses` only where questions were asked so. unmeasured: why no gap can be had with this judge;
    only the shares of `raw` are there then.
    """

    n_questions: int
    n_unscored: int
    n_valid: int
    ambiguity_rate: float | None
    raw: Block
    filtered: Block
    common_valid: Block
    moral_target: MoralTarget
    unmeasured: str | None = Field(default=None, exclude_if=absent)
    unguessed: Block | None = Field(default=None, exclude_if=absent)
    guessable: float | None = Field(default=None, exclude_if=absent)
    guesses: Guesses | None = Field(default=None, exclude_if=absent)

    def block(self, name: BlockName) -> Block | None:
        """Return the block of that name; None for `unguessed` where nothing was asked without evidence."""
        block: Block | None = getattr(self, name)
        return block


class MethodScores(Result):
    """One method: how many stories count, why others do not, and its scores by judge."""

    stories: int
    invalid_stories: dict[str, str]
    judges: dict[str, JudgeScores]
    read_back: ReadBack | None = Field(default=None, exclude_if=absent)
    """How many pictures of a run's board read back as meant, where nobody was asked about it."""


class WilcoxonTest(Result):
    """A two-sided signed-rank test over stories; `p` is None where no story differs."""

    p: float | None
    n_nonzero: int
    rank_biserial: float | None


class Comparison(Result):
    """Two methods over the same stories: the difference in STG, its interval, and corrected tests.

    headline: this is the block and judge that conclusions are drawn from: common-valid, by the ensemble or the only
    judge. differences: the difference in each block; disagree: these do not all have one sign.
    """

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
    p_bootstrap_corrected: float | None = None
    headline: bool = False
    differences: dict[BlockName, float | None] = {}
    disagree: bool = False


class PairAccuracy(Result):
    """Contrastive pairs of one method by one judge (Eqs. 29 and 30): the share that names the source's text."""

    n: int
    n_unscored: int
    pair_accuracy: float | None
    confusion: float | None
    ci95: Interval | None
    by_change_type: dict[str, float]


class PairScores(Result):
    """Pairwise contrastive scores (Sec. C.8), by method and judge."""

    n_pairs: int
    methods: dict[str, dict[str, PairAccuracy]]
    notes: list[str]


class Localization(Result):
    """How often the dimension with the largest gap is the one that people say fails, beside a guess among six."""

    n: int
    right: float
    chance: float
    ci95: Interval | None


class RankAgreement(Result):
    """Spearman and pairwise agreement (Eqs. 46 and 47) of boards' image recoverability with people's scores of them.

    pearson, kendall: the other correlations that VCMS prints. spearman_z, pearson_z: Fisher's z of the two, as it
    prints them; None for a correlation of 1, which has none.
    """

    n: int
    spearman: float | None
    pairwise_agreement: float | None
    pearson: float | None = Field(default=None, exclude_if=absent)
    kendall: float | None = Field(default=None, exclude_if=absent)
    spearman_z: float | None = Field(default=None, exclude_if=absent)
    pearson_z: float | None = Field(default=None, exclude_if=absent)


class JudgeAlignment(Result):
    """One judge against people; None for what nobody said anything about."""

    localization: Localization | None
    human_score: RankAgreement | None


class Alignment(Result):
    """How well each judge's scores agree with people on what fails (Tables 3, 54 and 58)."""

    judges: dict[str, JudgeAlignment]
    notes: list[str]


def empty(value: object) -> bool:
    """Return whether a list or a flag has nothing to say and is left out of its file."""
    return not value


def of_before(value: object) -> bool:
    """Return whether a file says nothing of how its intervals were made."""
    return value == PERCENTILE


class Bootstrap(Result):
    """How stories were resampled for p, and how intervals were made."""

    resamples: int
    seed: int
    intervals: str = Field(default=PERCENTILE, exclude_if=of_before)


class Trajectory(Result):
    """Text, image and STG of source stories or of their contrastive twins, on each one's own valid questions."""

    n: int
    text: float | None
    image: float | None
    stg: float | None


class ContrastGap(Result):
    """What one judge sees lost of stories, and of the boards of their contrastive twins (Table 4, surface appearance).

    difference: STG of the twins minus that of their stories, with interval and p over stories, as everywhere.
    """

    n_stories: int
    source: Trajectory
    contrast: Trajectory
    difference: float | None
    ci95: Interval | None
    p_bootstrap: float | None
    wilcoxon: WilcoxonTest


class Scores(Result, Tabular):
    """`scores.json`: methods, judges, blocks, intervals and comparisons.

    The file holds `contrastive`, `contrasts` and `alignment` only where pairs were asked, where contrastive twins stand
    among the stories (by method and judge), or where people's judgments were given.
    """

    format: Literal[1] = 1
    frozen: bool
    matching: str
    questions: Selection
    bootstrap: Bootstrap
    methods: dict[str, MethodScores]
    comparisons: list[Comparison]
    notes: list[str]
    contrastive: PairScores | None = Field(default=None, exclude_if=absent)
    contrasts: dict[str, dict[str, ContrastGap]] | None = Field(default=None, exclude_if=absent)
    alignment: Alignment | None = Field(default=None, exclude_if=absent)

    def table_rows(self) -> Iterator[Row]:
        """Yield a row for each method, judge and block of questions."""
        for method, scored in self.methods.items():
            for judge, found in scored.judges.items():
                for name in get_args(BlockName):
                    block = found.block(name)
                    if block is not None:
                        yield {"method": method, "judge": judge, "block": name, **flat(block)}

    def with_notes(self, notes: Sequence[str]) -> Scores:
        """Return the same scores with `notes` added."""
        return self.model_copy(update={"notes": [*self.notes, *notes]})

    def with_read_back(self, found: Mapping[str, ReadBack | None], why: str) -> Scores:
        """Return the same scores with each board of one story that nobody was asked about: how many of its pictures
        read back as meant (None where they cannot be read), and the note why it has no other number."""
        made = {
            name: MethodScores(stories=1, invalid_stories={}, judges={}, read_back=told) for name, told in found.items()
        }
        return self.model_copy(update={"methods": {**self.methods, **made}, "notes": [f"{NO_SCORES}{why}"]})

    def with_empty(self, invalid: Mapping[str, Mapping[str, str]]) -> Scores:
        """Return the same scores with each method that has no usable board at all: its reasons, and a note.

        invalid: by method, which stories have no board and why.
        """
        missing = {name: reasons for name, reasons in invalid.items() if name not in self.methods}
        empty = {name: MethodScores(stories=0, invalid_stories=dict(why), judges={}) for name, why in missing.items()}
        notes = [f"{name}: no story has a board that can be judged." for name in missing]
        return self.model_copy(update={"methods": {**self.methods, **empty}, "notes": [*self.notes, *notes]})


# What tables make of rows that are compared in pairs, whatever each row's scoring is (`table.json`, `tuning.json`).


class SteeringAgreement(Result):
    """How what a judge steers by goes with what is reported, over the boards of one story.

    boards, stories: those that differ within their story. correlation: Pearson's r after each story's means are taken
    off. ci95: over stories; None of fewer than six.
    """

    boards: int
    stories: int
    correlation: float | None
    ci95: Interval | None

    @property
    def predicts(self) -> bool:
        """Return whether the whole interval is above zero."""
        return self.ci95 is not None and self.ci95[0] > 0.0


class RowNumbers(Result):
    """Text, image and STG of one row, with their intervals where there are stories enough."""

    text: float | None
    image: float | None
    stg: float | None
    image_ci95: Interval | None
    stg_ci95: Interval | None


class RowDifference(Result):
    """STG of one row minus another's on the stories that both have a question of; `family` is 0 until p is corrected.

    spread: the standard deviation over stories of that difference.
    """

    n_stories: int
    difference: float | None = None
    image_difference: float | None = None
    ci95: Interval | None = None
    p_bootstrap: float | None = None
    wilcoxon: WilcoxonTest = WilcoxonTest(p=None, n_nonzero=0, rank_biserial=None)
    family: int = 0
    p_corrected: float | None = None
    p_bootstrap_corrected: float | None = None
    spread: float | None = Field(default=None, exclude_if=absent)


# What `eval.json` holds beside the scores: controls, stated confidence, and which questions left the valid set.


class ChanceBlock(Result):
    """Image-only answers to the questions of a control, the share right on the real board, and the chance level.

    none: right without evidence, and how much more with the control's pictures (`gain`, interval over stories), on the
    questions that were answered both ways; absent where none was.
    """

    n: int
    image: float | None
    ci95: Interval | None
    board: float | None
    chance: float | None
    none: float | None = Field(default=None, exclude_if=absent)
    gain: float | None = Field(default=None, exclude_if=absent)
    gain_ci95: Interval | None = Field(default=None, exclude_if=absent)


class ChanceControl(Result):
    """A control that must fall to chance or to what is guessed (Table 72). `board`: the share right on the real board.

    focus: what must fall, where that is one dimension or several of them (`dimensions`).
    """

    control: str
    board: float | None
    judge: str
    n: int
    image: float | None
    ci95: Interval | None
    chance: float | None
    n_unscored: int
    unclear: float | None
    dimension: Dimension | None
    focus: ChanceBlock | None
    none: float | None = Field(default=None, exclude_if=absent)
    gain: float | None = Field(default=None, exclude_if=absent)
    gain_ci95: Interval | None = Field(default=None, exclude_if=absent)
    dimensions: tuple[Dimension, ...] | None = Field(default=None, exclude_if=absent)
    passes: bool | None
    reading: str


class RepeatControl(Result):
    """The control `repeat`: how often the judge says the same twice. `board` is the board's name."""

    control: str
    board: str
    judge: str
    n: int
    agreement: float | None
    ci95: Interval | None
    verdict_agreement: float | None
    n_unscored: int
    passes: bool | None
    reading: str


ControlResult = ChanceControl | RepeatControl


class ConfidenceRow(Result):
    """Answers that a judge gave with one stated confidence, and the per cent of them that are right."""

    judge: str
    condition: Condition
    confidence: Confidence
    n: int
    right: float | None


Why = Literal["invalid_story", "unscored", "ambiguous"]
"""Why a question is not valid: no usable board, a condition without an outcome, or wrong under text+image."""


class LeftQuestion(Result):
    """One question that is not in a method's filtered set (`left.jsonl`), and in words why."""

    method: str
    judge: str
    story_id: str
    question_id: str
    dimension: Dimension
    why: Why
    detail: str


class LeftCount(Result):
    """How many questions left for one reason."""

    method: str
    judge: str
    why: Why
    n: int


# How many stories a difference needs (`katha score --power`).


class StoriesNeeded(Result):
    """Stories, and calls of one judge, that find a difference of so many points."""

    difference: float
    stories: int
    judge_calls: int


class SpreadEstimate(Result):
    """The spread of paired story gaps between two methods in points; None where fewer than two stories differ."""

    between: str
    n_stories: int
    spread: float | None
    alpha: float
    needed: list[StoriesNeeded]


class PowerEstimate(Result):
    """For each pair of methods, the stories that differences of some sizes need."""

    power: float
    judge: str | None
    questions_per_story: float
    estimates: list[SpreadEstimate]
    notes: list[str]


class ServiceUse(Result):
    """One service that drew frames (G.5): model as asked and as served, dates, frames, tokens by kind, dollars."""

    service: str
    model: str
    served: str
    dates: list[str]
    frames: int
    tokens: dict[str, int]
    cost: float | None
