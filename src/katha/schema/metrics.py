"""Records of the other papers' measures: what a metric is, its values, and the tables that are made of them.

A value that cannot be had is None with its reason, never 0: a failure is counted by its cause, and no mean has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from katha.schema.frames import Row, Tabular, flat
from katha.schema.scores import PERCENTILE, Result, of_before

Level = Literal["frame", "board", "set"]
"""What one value is of: a frame, a whole board, or all boards of one method together."""

MetricMode = Literal["paper", "code"]
"""Whether a metric follows its paper or the published code, where the two differ; a metric without both has one."""

Need = Literal["judge", "probabilities", "images", "texts", "references", "characters", "plan", "narrative", "detector"]
"""What a metric needs. judge: a vision-language judge that takes plain prompts. probabilities: of its first token.
images, texts: an encoder of them. references: gold pictures of the story. characters: pictures of its characters.
plan: the board's plan. narrative: VinaBench's annotations. detector: a model that finds things in pictures."""

Average = Literal["macro", "micro", "set"]
"""How a method's number is made of its boards' values: their mean, their mean weighted by `n`, or by `measure_set`."""


class MetricPart(Result):
    """One column of a metric. low, high: its range, None where it has no bound. better: which way is good.

    choice: whether it chooses between two methods' pictures of a scene: the one with the higher value.
    """

    name: str
    about: str
    low: float | None = 0.0
    high: float | None = 1.0
    better: Literal["higher", "lower", "neither"] = "higher"
    average: Average = "macro"
    choice: bool = False


class MetricCard(Result):
    """What a metric is. The documents' table and the pages' columns are made of it.

    name: as on the command line. paper: where it is defined (authors, year, section or table). formula: in one line.
    modes: which of `paper` and `code` it has; the first is the default. differs: how they differ. needs: what it cannot
    do without. models: what it loads unless told otherwise. licence: of code, models and data that it rests on, and
    what they forbid. cost: what one frame takes, in words ("2 judge calls", "one ViT-L/14 pass"). calls_per_frame: of a
    judge. vector: the test and the published number that prove it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    paper: str
    formula: str
    level: Level
    parts: tuple[MetricPart, ...]
    modes: tuple[MetricMode, ...] = ("paper",)
    differs: str = ""
    needs: tuple[Need, ...] = ()
    models: tuple[str, ...] = ()
    licence: str = ""
    cost: str = ""
    calls_per_frame: float = 0.0
    vector: str = ""

    def part(self, name: str) -> MetricPart:
        """Return the part of that name.

        Raises:
            KeyError: it has none.
        """
        return {part.name: part for part in self.parts}[name]


class MetricValue(Result):
    """One value of one part of a metric. Exactly one of `value` and `reason` is there.

    method: the boards' name. story_id: None for a value of a whole set. frame: from 1; None for a board or a set.
    scene: which one the frame is of, from 1; None for an inserted frame, too.
    item: what else it is of (a character's or an entity's name). n: on how many measurements it rests; its weight in a
    micro average. reason: why there is no value, in words that are equal for equal causes, so that they can be counted.
    """

    metric: str
    part: str
    method: str
    story_id: str | None = None
    frame: int | None = None
    scene: int | None = None
    item: str = ""
    value: float | None = None
    n: int = 1
    reason: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> MetricValue:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a metric's value has either a number or a reason for which there is none")
        return self

    @property
    def key(self) -> tuple[str, str, str, str, int, str]:
        """Return what it is of, as it is ordered."""
        return (self.metric, self.part, self.method, self.story_id or "", self.frame or 0, self.item)


# `table.json` of `katha metrics`: methods by columns, what is null and why, and how each column goes with STG.


class MetricColumn(Result):
    """One column of the table: `METRIC/PART`, of which metric, mode and part."""

    name: str
    metric: str
    part: str
    mode: MetricMode
    title: str
    about: str
    level: Level
    average: Average
    better: Literal["higher", "lower", "neither"]
    choice: bool = False


class MetricCell(Result):
    """One method's number in one column, its 95% interval over stories, and on how many boards it rests.

    nulls: how many values are missing; `MetricTable.nulls` counts their reasons.
    """

    value: float | None = None
    ci95: tuple[float, float] | None = None
    boards: int = 0
    nulls: int = 0


class MetricRow(Result):
    """One method: its cells by column name."""

    method: str
    boards: int
    cells: dict[str, MetricCell] = {}


class NullCount(Result):
    """A reason for which values are missing, how often, and in which column."""

    column: str
    reason: str
    count: int


ChoiceUnit = Literal["scene", "board"]
"""What is chosen between: two pictures of a scene, or two boards of a story."""


class MetricChoice(Result):
    """How often a rater chooses one method's pictures or boards over another's.

    pairs: with a score on both sides. chosen: of them, where `method` has the higher score. undecided: equal scores.
    unscored: pairs where a score is missing, left out. rate: chosen / pairs. chance: (1 - undecided / pairs) / 2. p: of
    the one-sided binomial test of the rate against chance.
    """

    column: str
    unit: ChoiceUnit
    method: str
    against: str
    pairs: int
    chosen: int
    undecided: int
    unscored: int
    rate: float | None = None
    chance: float | None = None
    p: float | None = None


class GapRow(Result):
    """A board's STG in percentage points: on its method's valid questions, every scored one, the common valid ones."""

    method: str
    story_id: str
    filtered: float | None = None
    raw: float | None = None
    common_valid: float | None = None


class Relation(Result):
    """How a column goes with STG over boards: Spearman's rank correlation, its 95% interval over stories, and n."""

    column: str
    block: Literal["raw", "filtered", "common_valid"]
    n: int
    spearman: float | None = None
    ci95: tuple[float, float] | None = None


class Disagreement(Result):
    """A board that a column and STG rank far apart; ranks are shares (0 worst, 1 best) of the boards that have both."""

    column: str
    method: str
    story_id: str
    value: float
    stg: float
    rank_by_column: float
    rank_by_stg: float


class MetricTable(Result, Tabular):
    """Everything that the page of `katha metrics` shows."""

    judge: str | None = None
    columns: list[MetricColumn] = []
    rows: list[MetricRow] = []
    nulls: list[NullCount] = []
    choices: list[MetricChoice] = []
    gaps: list[GapRow] = []
    relations: list[Relation] = []
    among: dict[str, dict[str, float | None]] = {}
    """Spearman's rank correlation of every two columns over the boards that have both."""
    disagreements: list[Disagreement] = []
    notes: list[str] = []
    status: Literal["finished", "incomplete", "budget_stopped"] = "finished"
    intervals: str = Field(default=PERCENTILE, exclude_if=of_before)

    def table_rows(self) -> Iterator[Row]:
        """Yield a row for each method and measure."""
        for row in self.rows:
            for name, cell in row.cells.items():
                yield {"method": row.method, "measure": name, **flat(cell)}
