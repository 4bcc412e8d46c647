"""What holds a gap up (`robustness.json`): rank correlations, groups of stories, reliability, the text's ceiling.

The controls of Table 4, the reliability of Table 59, the text-ceiling analysis of Table 30 and the groups of Table 68.
Shares, STG and intervals are percentage points, correlations lie in -1 to 1; what cannot be computed is None, with a
sentence in `Robustness.notes`.
"""

from __future__ import annotations

from typing import Literal

from katha.schema import Dimension
from katha.schema.people import Rating
from katha.schema.scores import BlockName, Bootstrap, DimensionScore, Interval, Localization, RankAgreement, Result

Grouping = Literal["source_family", "narrative_type"]


class RankCorrelation(Result):
    """Spearman's correlation of two rankings of `n` things by STG; None of fewer than three, or where one is flat.

    over: what is ranked, methods or boards (a method on a story). ci95: stories are resampled.
    """

    a: str
    b: str
    over: Literal["methods", "boards"]
    n: int
    rho: float | None
    ci95: Interval | None = None


class HalfData(Result):
    """Rankings of methods from random halves of the stories against the ranking from all of them.

    rho: the mean over the halves, ci95: their 2.5th to 97.5th percentile. n_stories: in a half.
    """

    halves: int
    n_stories: int
    n_methods: int
    rho: float | None
    ci95: Interval | None


class GroupRow(Result):
    """One method on one group of stories. ci95: of the common-valid STG; None with fewer than six stories."""

    group: str
    method: str
    n_stories: int
    n_questions: int
    stg: dict[BlockName, float | None]
    ci95: Interval | None
    ambiguity_rate: float | None


class StoryGroups(Result):
    """Stories told apart by a field of the record (Tables 6 and 24).

    means: by group, the mean of the methods' common-valid STG. spread: the largest of these minus the smallest.
    without: how many stories do not fill the field in.
    """

    by: Grouping
    rows: list[GroupRow]
    means: dict[str, float]
    spread: float | None
    without: int


class Reliability(Result):
    """Split-half reliability of a method's board STG, stepped up to all questions (Spearman-Brown).

    n_boards: boards with two valid questions or more. ci95: over stories.
    """

    method: str
    n_boards: int
    divisions: int
    value: float | None
    ci95: Interval | None


class Pattern(Result):
    """Questions by what is right under text, under image and under both (Table 30), and their share of the scored."""

    text: bool
    image: bool
    text_image: bool
    n: int
    share: float


class TextCeiling(Result):
    """How high the text itself reaches on a method's valid questions.

    reached: image over text recoverability. only_together: valid questions that neither text nor images alone answer
    (Table 30, row 3); stg_without: STG without these.
    """

    method: str
    n_scored: int
    n_valid: int
    text: float | None
    image: float | None
    reached: float | None
    dimensions: dict[Dimension, DimensionScore]
    patterns: list[Pattern]
    only_together: int
    stg: float | None
    stg_without: float | None


CaseGroup = Literal["dataset", "high_collapse", "typical", "dimension"]


class QualitativeCase(Result):
    """One board that a rule chose (Table 68), or one story of the data set. dimension, gap: its largest valid gap."""

    group: CaseGroup
    story_id: str
    title: str
    method: str | None = None
    stg: float | None = None
    n_valid: int = 0
    dimension: Dimension | None = None
    gap: float | None = None
    source: str | None = None
    meaning: str | None = None


class QualitativeGroups(Result):
    """Boards by rule, never by eye. quartile: the STG from which a board is among the highest quarter, by method."""

    rule: str
    quartile: dict[str, float]
    median: dict[str, float]
    cases: list[QualitativeCase]


class Effects(Result):
    """How far STG falls by planning and by rendering (Table 4): mean ranges over groups that vary in nothing else."""

    planner: float | None
    renderer: float | None
    planner_groups: int
    renderer_groups: int


class PeopleColumns(Result):
    """What people say of a method's boards (Tables 2, 52, 53, 55): visual quality (1 to 5) and mean score."""

    method: str
    visual: Rating | None
    human_score: Rating | None


class MatchingRow(Result):
    """One matching rule (Table 61): rates on labelled pairs in per cent, Spearman's correlation with people."""

    rule: str
    n_pairs: int
    false_accept: float | None
    false_reject: float | None
    n_boards: int
    human_correlation: float | None


class EvaluatorRow(Result):
    """One row of Table 3, 54, 58, 60 or 72: all boards together, on the row's own valid questions.

    ambiguity_leakage: of the questions that people find defective, the percentage that the row keeps.
    """

    row: str
    about: str
    evaluator: str
    n_valid: int
    n_scored: int
    image: float | None
    image_ci95: Interval | None
    stg: float | None
    stg_ci95: Interval | None
    localization: Localization | None
    human_score: RankAgreement | None
    ambiguity_leakage: float | None


class EvaluatorTable(Result):
    """`table-N.json` of `katha eval --table N`: rows that ask or score otherwise."""

    format: Literal[1] = 1
    table: int
    title: str
    rows: list[EvaluatorRow]
    notes: list[str]


class Robustness(Result):
    """`robustness.json`. judge: whose numbers these are, the ensemble where there are several."""

    format: Literal[1] = 1
    judge: str | None
    questions: str
    bootstrap: Bootstrap
    methods: list[str]
    stg: dict[str, dict[BlockName, float | None]]
    blocks: list[RankCorrelation]
    judges: list[RankCorrelation]
    half_data: HalfData | None
    groups: list[StoryGroups]
    effects: Effects | None
    reliability: list[Reliability]
    ceiling: list[TextCeiling]
    cases: QualitativeGroups
    people: list[PeopleColumns] = []
    notes: list[str]
