"""Tables of experiments as records: `table.json` of `ablate` and of `compare`, and `tuning.json`.

Recoverability, STG, rates and intervals are percentage points (0 to 100); what cannot be computed is None, with a
sentence in `notes`. The attribute names are the files' keys and stand in the files' order, so that
`AblationTable.model_validate(read_json(path))` reads a file and `model_dump(mode="json")` writes the same bytes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from katha.schema import Dimension, Frame
from katha.schema.frames import Row, Tabular, flat
from katha.schema.people import HumanMoral, HumanRecoverability, Rating
from katha.schema.scores import (
    PERCENTILE,
    BlockName,
    Comparison,
    DimensionScore,
    Interval,
    Localization,
    RankAgreement,
    Result,
    RowDifference,
    ServiceUse,
    SteeringAgreement,
    absent,
    empty,
    of_before,
)

# What people say of one row's boards (Tables 55, 58 to 66 and 73). A section is None where nobody judged it.


class VerdictAgreement(Result):
    """Same verdict; counted right of what people find wrong; counted wrong of what they find right."""

    n: int
    agreement: float
    false_accept: float | None
    false_reject: float | None


class DefectsFound(Result):
    """Of the questions that people find defective under text and images, how many the row leaves out."""

    n: int
    detected: float


class HumanColumns(Result):
    """Everything that people say of one row's boards. human_mean: the mean of `human_score`."""

    recoverability: HumanRecoverability | None = None
    moral: HumanMoral | None = None
    ncs: Rating | None = None
    mas: Rating | None = None
    ees: Rating | None = None
    localization: Localization | None = None
    human_score: RankAgreement | None = None
    agreement: VerdictAgreement | None = None
    ambiguity_detected: DefectsFound | None = None
    visual: Rating | None = None
    human_mean: Rating | None = None


# `table.json` of `katha ablate`: rows, pairs of rows, costs, repair cases and what the intervals support.


class BlockNumbers(Result):
    """One row on another set of questions than its own valid ones; the change is against the baseline on the same set.

    n: how many questions of how many boards. What is None has no question or no difference.
    """

    n: int
    text: float | None
    image: float | None
    stg: float | None
    image_ci95: Interval | None
    stg_ci95: Interval | None
    delta_stg: float | None = None
    ci95: Interval | None = None
    p_corrected: float | None = None
    p_bootstrap_corrected: float | None = None


class AblationRow(Result):
    """One row of a suite (Tables 55, 74, 75). `delta_stg`, `ci95` and `p_corrected` are against the baseline.

    These and `image`, `stg` are on the row's own valid questions. `common_valid` is the headline: the questions valid
    for every row that is scored like this one; None where no other row is. `raw`: every scored question. `rest`: the
    common-valid ones whose answer no inserted frame's prompt holds. `unguessed`: the common-valid ones that the row's
    judge had wrong without any evidence; None where nothing was asked without. given_away: the percentage of the
    row's questions whose answer its own inserted frames' prompts hold. optimism: what the judges that steered see it
    gain in image recoverability, minus what the others see. stg_reliability: split-half reliability of its boards' STG
    (Table 59).

    unmeasured: why the row has no gap with this judge; only the shares of `raw` are there then. thin: dimensions of the
    headline that rest on one or two questions; inspect: its STG is below zero (both as in `scores.json`).

    harmed, equal, improved: shares of stories whose boards are worse, as good or better than the baseline's. labels,
    chance: only in a row that scores moral labels alone (Table 65). not_run: why the row was not run; it has no number
    then, and every count is None.
    """

    mode: str
    about: str
    text: float | None = None
    image: float | None = None
    stg: float | None = None
    delta_stg: float | None = None
    ci95: Interval | None = None
    p_corrected: float | None = None
    image_ci95: Interval | None = None
    stg_ci95: Interval | None = None
    stories: int | None = None
    invalid_stories: dict[str, str] = {}
    valid: int | None = None
    scored: int | None = None
    valid_rate: float | None = None
    ambiguity_leakage: float | None = None
    frames: float | None = None
    frames_rendered: int | None = None
    questions_asked: int | None = None
    accepted_bridges: float | None = None
    copy_rate: float | None = None
    boards_per_story: int | None = None
    harmed: float | None = None
    equal: float | None = None
    improved: float | None = None
    labels: int | None = None
    chance: float | None = None
    human: HumanColumns | None = None
    steered: bool
    not_run: str | None = None
    common_valid: BlockNumbers | None = None
    raw: BlockNumbers | None = None
    rest: BlockNumbers | None = None
    unguessed: BlockNumbers | None = None
    given_away: float | None = None
    optimism: float | None = None
    stg_reliability: float | None = None
    unmeasured: str | None = Field(default=None, exclude_if=absent)
    thin: list[Dimension] = Field(default=[], exclude_if=empty)
    inspect: bool = Field(default=False, exclude_if=empty)

    @property
    def headline(self) -> BlockNumbers | None:
        """The numbers that are shown first: on the common-valid questions, or of a scoring of its own by its own."""
        if self.not_run is not None:
            return None
        if self.common_valid is not None:
            return self.common_valid
        numbers = {name: getattr(self, name) for name in BlockNumbers.model_fields if name in type(self).model_fields}
        return BlockNumbers.model_validate(numbers | {"n": self.valid or 0})

    @model_serializer(mode="wrap")
    def _without_what_is_not_of_it(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave `labels` and `chance` out of rows that are not about moral labels: their files never had them."""
        row: dict[str, object] = dump(self)
        absent = {"labels", "chance"} - self.model_fields_set
        return {name: value for name, value in row.items() if name not in absent}


class RowComparison(RowDifference):
    """Two rows over the same stories: the difference of `a` minus `b`, or in `nothing` why there is none.

    what: "all stories", or "equal length" for rows that show as many frames and draw and choose as often by design.
    same: the rows have the same "boards" (asked or scored otherwise) or share "all". family: how many tests the
    correction is for. The numbers are those on the rows' own valid questions; `common_valid`, where both rows are
    scored alike, is what conclusions are drawn from, and `raw` stands beside it. disagree: their signs do.
    """

    a: str
    b: str
    what: Literal["all stories", "equal length"]
    same: Literal["boards", "all"] | None = None
    nothing: str | None = None
    common_valid: RowDifference | None = None
    raw: RowDifference | None = None
    rest: RowDifference | None = None
    unguessed: RowDifference | None = None
    disagree: bool = False
    role: Literal["primary", "secondary"] | None = Field(default=None, exclude_if=absent)

    @property
    def headline(self) -> RowDifference:
        """The difference that conclusions are drawn from: common-valid, or of two scorings each by its own."""
        return self if self.common_valid is None else self.common_valid

    @model_serializer(mode="wrap")
    def _in_the_file_s_order(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Put the rows first, and `family` before the numbers where there are none: so the file has always been."""
        row: dict[str, object] = dump(self)
        first = ("a", "b", "what") if self.nothing is None else ("a", "b", "what", "family")
        return {name: row[name] for name in first} | row


class AblationBudget(Result):
    """What the suite draws and asks together, row by row, and with nothing shared (Table 74)."""

    frames_distinct: int
    frames_by_rows: int
    frames_naive: int
    questions_distinct: int
    questions_by_rows: int
    questions_naive: int


class ChangedQuestion(Result):
    """A question that a repair made answerable from the images, or no longer answerable."""

    question: str
    dimension: Dimension
    gold: str
    before: bool
    after: bool


class RepairCase(Result):
    """One accepted repair before and after, on the questions valid for both boards (Table 68)."""

    group: Literal["success", "boundary", "harm"]
    story_id: str
    title: str
    before: str
    after: str
    stg_before: float
    stg_after: float
    delta: float
    image_change: float
    n_valid: int
    weakest: tuple[int, int] | None
    reason: str
    frames: list[Frame]
    frames_before: list[str]
    questions: list[ChangedQuestion]


class RepairCases(Result):
    """The cases of the suite's focus row, chosen by `rule`, and how often its repairs harm."""

    row: str
    rule: str
    repaired: int
    measured: int
    harmed: int
    improved: int
    harm_rate: float | None
    cases: list[RepairCase]


class HumanFile(Result):
    """The file of judgments that the human columns are made of."""

    file: str
    sha256: str


Verdict = Literal["shown", "partly shown", "not shown", "refuted", "undecided", "open", "measured"]


class Conclusion(Result):
    """What the intervals support, by rule, and one sentence for each comparison."""

    verdict: Verdict
    text: str
    sentences: list[str]


class AblationTable(Result, Tabular):
    """`table.json` of `katha ablate`."""

    suite: str
    about: str
    tables: list[int]
    baseline: str
    focus: str | None
    stories: int
    judges: list[str]
    rows: list[AblationRow]
    comparisons: list[RowComparison]
    budget: AblationBudget
    cases: RepairCases | None
    human: HumanFile | None
    frozen: bool
    lock: str | None
    scores: str | None
    notes: list[str]
    conclusion: Conclusion
    steering: SteeringAgreement | None = Field(default=None, exclude_if=absent)
    intervals: str = Field(default=PERCENTILE, exclude_if=of_before)

    def table_rows(self) -> Iterator[Row]:
        """Yield a row for each row of the suite."""
        yield from map(flat, self.rows)

    def row(self, mode: str) -> AblationRow:
        """Return the row of that name."""
        return next(row for row in self.rows if row.mode == mode)


# `table.json` of `katha compare`: methods, their differences, and the same story side by side.


class MethodRow(Result):
    """One method (Table 57). signature: the failure types that it loses most by (Table 69). frames: of a board, on
    average; a method with more of them shows more. thin: dimensions with one or two of the common-valid questions;
    inspect: STG on these is below zero."""

    name: str
    planner: str
    renderer: str
    mode: str
    seeds: list[int]
    closed: bool
    services: list[ServiceUse]
    boards: int
    boards_valid: int
    invalid_rate: float | None
    stories: int
    stories_valid: int
    text: float | None
    image: float | None
    raw_stg: float | None
    filtered_stg: float | None
    common_valid_stg: float | None
    ci95: Interval | None
    latent_gap: float | None
    ambiguity_rate: float | None
    dimensions: dict[Dimension, DimensionScore]
    signature: list[str]
    common_valid_ci95: Interval | None = None
    common_valid_text: float | None = None
    common_valid_image: float | None = None
    none: float | None = Field(default=None, exclude_if=absent)
    gain_image: float | None = Field(default=None, exclude_if=absent)
    unguessed_stg: float | None = Field(default=None, exclude_if=absent)
    n_common: int | None = None
    n_valid: int | None = None
    n_scored: int | None = None
    frames: float | None = None
    thin: list[Dimension] = Field(default=[], exclude_if=empty)
    inspect: bool = Field(default=False, exclude_if=empty)


class StoryCell(Result):
    """One method on one story: what is recovered of its valid questions, and where it fails (Tables 69 and 70).

    reason: why there is no board at all. boards_invalid: how many of its boards could not be judged.
    """

    reason: str | None
    boards_invalid: int
    n: int
    text: float | None
    image: float | None
    stg: float | None
    recovered: Literal["yes", "partial", "no", "none"]
    failures: list[str]


class StoryRow(Result):
    """One story under every method, by the method's name."""

    story_id: str
    title: str
    moral: str
    methods: dict[str, StoryCell]


class InvalidBoard(Result):
    """A board that is not there or cannot be judged."""

    board: str
    story_id: str
    reason: str


Standing = Literal["finished", "incomplete"]
"""Whether the same command has anything left to try."""


class CompareTable(Result, Tabular):
    """`table.json` of `katha compare`. judge: whose numbers these are, the ensemble where there are several."""

    format: Literal[1] = 1
    judge: str | None
    questions: str
    methods: list[MethodRow]
    comparisons: list[Comparison]
    stories: list[StoryRow]
    invalid: list[InvalidBoard]
    notes: list[str]
    status: Standing
    intervals: str = Field(default=PERCENTILE, exclude_if=of_before)

    def table_rows(self) -> Iterator[Row]:
        """Yield a row for each method."""
        yield from map(flat, self.methods)


# `tuning.json` of `katha tune`: the setting that was chosen, and how far to trust it.


class TuningGain(Result):
    """STG of the choice minus that of the settings before, on the stories that chose it."""

    difference: float | None
    ci95: Interval | None
    p_bootstrap: float | None


class TuningBlock(Result):
    """The choice and the settings before it on one block of questions: how many, and STG."""

    n: int
    stg: float | None
    default_n: int
    default_stg: float | None


class CurvePoint(Result):
    """One value of one setting, the others as chosen; `difference` is against the choice."""

    value: int | float
    chosen: bool
    stg: float | None
    ci95: Interval | None
    repaired: float
    difference: float | None
    difference_ci95: Interval | None


class TuningResult(Result):
    """`tuning.json`. setting, default: candidate count, weights and thresholds by name.

    cross_validated: STG on stories that the choice did not see, in `folds` parts. equally_good: how many of the
    settings that were tried reach the same STG. repaired: percentage of stories. STG is on the questions valid for
    the plain board of every seed; `blocks` has the other questions beside it. unmeasured: why the judge cannot measure
    these stories: nothing is chosen then, and there is no STG.
    """

    format: Literal[1] = 1
    setting: dict[str, int | float]
    default: dict[str, int | float]
    stories: int
    tried: int
    stg: float | None
    ci95: Interval | None
    default_stg: float | None
    gain: TuningGain
    cross_validated: float | None
    folds: int
    equally_good: int
    repaired: float
    curve: dict[str, list[CurvePoint]]
    notes: list[str]
    blocks: dict[BlockName, TuningBlock] = {}
    invalid_stories: dict[str, str] = {}
    seconds: float = 0.0
    steering: SteeringAgreement | None = Field(default=None, exclude_if=absent)
    intervals: str = Field(default=PERCENTILE, exclude_if=of_before)
    unmeasured: str | None = Field(default=None, exclude_if=absent)

    @property
    def better(self) -> bool:
        """Return whether the choice is shown to be better than the settings before: on the stories that chose it by its
        whole interval, and on stories that it has not seen by its STG."""
        if self.setting == self.default or self.gain.ci95 is None or self.gain.ci95[1] >= 0.0:
            return False
        unseen, before = self.cross_validated, self.default_stg
        return unseen is not None and before is not None and unseen < before


class Memory(Result):
    """Questions that a judge had right with no evidence, in per cent; `chance` of a guess among the options, None of
    free answers."""

    n: int
    n_unscored: int
    right: float | None
    chance: float | None


class JudgeMemory(Memory):
    """What one judge remembers of stories (`katha bench remembered`), also by source family and by story."""

    by_family: dict[str, Memory] = {}
    by_story: dict[str, Memory] = {}
