"""The ablation modes (Tables 43, 55, 75) and suites as typed data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from katha.config import refuse_code
from katha.configs import config_names, load_chosen, load_config, load_offered
from katha.errors import KathaError, UnknownPluginError, UsageError
from katha.schema import CONDITIONS, CompassSettings, Condition, Dimension, MoveKind, Role

Content = Literal["neighbour_scene", "establishing", "captions", "transition", "written", "again"]


class Data(BaseModel):
    """What a file of modes or suites holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Mode(Data):
    """What one mode selects, inserts and accepts. The fields are explained at the top of `configs/modes.yaml`."""

    name: str
    about: str
    select: Literal["first", "best"]
    insert: Literal["none", "extra", "bridge", "moves"]
    content: Content | None = None
    moves: tuple[MoveKind, ...] = ()
    informed: bool = True
    at: Literal["random", "weakest"] | None = None
    when: Literal["always", "weak", "missed"] | None = None
    draws: Literal["single", "every"] | None = None
    accept: Literal["always", "improvement"] | None = None
    budget: int = Field(default=1, ge=1, le=8)
    readings: int = Field(default=1, ge=1, le=2)
    report: Literal["selected", "mean_over_seeds"]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        given = [value is not None for value in (self.content, self.when, self.draws, self.accept)]
        alone = self.insert == "none"
        if any(given) if alone else not all((*given, self.at)):
            raise ValueError(f"mode {self.name!r}: content, at, when, draws and accept belong to an insertion")
        if alone and self.at == "random":
            raise ValueError(f"mode {self.name!r}: without an insertion, at is weakest or left out")
        if self.at == "random" and self.when != "always":
            raise ValueError(f"mode {self.name!r}: at a random transition, when is always")
        if (self.insert == "moves") != (self.content in ("written", "again")):
            raise ValueError(f"mode {self.name!r}: moves are written or drawn again, and nothing else is")
        if bool(self.moves) != (self.content == "written"):
            raise ValueError(f"mode {self.name!r}: the kinds of moves belong to those that are written")
        if self.insert == "moves" and (self.at, self.accept) != ("weakest", "improvement"):
            raise ValueError(f"mode {self.name!r}: moves are made at the weakest transition, and kept if they improve")
        return self

    @property
    def writes(self) -> bool:
        """Return whether a writer says what is drawn."""
        return self.content == "written"

    @property
    def adds(self) -> bool:
        """Return whether a frame may be added to a board."""
        return self.insert in ("extra", "bridge") or "bridge" in self.moves

    @property
    def steers(self) -> bool:
        """Return whether a judge's answers decide anything about its boards."""
        chosen = self.select == "best" or self.draws == "every" or self.at == "weakest"
        return chosen or self.accept == "improvement" or self.when in ("weak", "missed")

    def candidate_seeds(self, seeds: tuple[int, ...]) -> tuple[int, ...]:
        """Return the seeds whose boards are drawn: all when there is a choice among them, else the first."""
        return seeds[:1] if self.select == "first" else seeds


@cache
def load_modes() -> dict[str, Mode]:
    """Return every mode by its name, in the file's order."""
    return {name: Mode(name=name, **fields) for name, fields in load_config("modes.yaml").items()}


def load_mode(name: str) -> Mode:
    """Return the mode of that name.

    Raises:
        UnknownPluginError: there is none.
    """
    modes = load_modes()
    if name not in modes:
        raise UnknownPluginError(f"No mode is called {name!r}.", hint=f"Known: {', '.join(modes)}.")
    return modes[name]


# A suite is a set of rows that are compared with one of them, the baseline. A row says which boards it makes (a mode,
# with fields of it, settings, planner or renderer replaced), what is asked of them, and how the answers are scored.

Half = Literal["held_out", "same"]


class RowScoring(Data):
    """How a row's answers are scored; the defaults are the protocol.

    conditions: what a question needs an answer under. valid: which scored questions count: those whose answer under
    text and images matches and is not contradicted (`support`), those whose answer matches (`answer`), or all (`none`).
    dimensions: empty for all six. judge: one judge by name; None is the ensemble (or the only judge). labels: moral
    labels by the coarser label that they count as; empty for the twelve. accepted: the accepted-answer set, or the
    canonical answer alone. average: over the dimensions, or over questions whatever their dimension.
    """

    matching: str | None = None
    conditions: tuple[Condition, ...] = CONDITIONS
    valid: Literal["support", "answer", "none"] = "support"
    dimensions: tuple[Dimension, ...] = ()
    judge: str | None = None
    labels: dict[str, str] = {}
    accepted: Literal["set", "canonical"] = "set"
    average: Literal["dimensions", "questions"] = "dimensions"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.valid != "none" and "text+image" not in self.conditions:
            raise ValueError("validity needs the condition 'text+image'; give valid: none without it")
        return self


class SuiteRow(Data):
    """One line of the table. `mode` is the row's own name unless given; `renderer_options` go over the command's."""

    name: str
    about: str = ""
    mode: str
    change: dict[str, object] = {}
    compass: dict[str, float] = {}
    planner: str | None = None
    renderer: str | None = None
    renderer_options: dict[str, object] = {}
    prompts: Half = "held_out"
    questions: Half = "held_out"
    scoring: RowScoring = RowScoring()

    @property
    def lacks(self) -> list[str]:
        """The conditions without which it has no STG."""
        return [name for name in ("text", "image") if name not in self.scoring.conditions]

    def scored_like(self, other: SuiteRow) -> bool:
        """Return whether two rows ask the same questions and score them alike, so that they differ in boards alone."""
        ours, theirs = ((row.scoring, row.prompts, row.questions) for row in (self, other))
        return ours == theirs

    @property
    def half(self) -> Role:
        """The questions that it is asked."""
        return "reporting" if self.questions == "held_out" else "steering"

    @property
    def steered(self) -> bool:
        """Return whether its numbers come from questions or prompts that may have chosen the boards."""
        return "same" in (self.prompts, self.questions)

    def build_mode(self) -> Mode:
        """Return the mode with the row's name and changes."""
        fields = load_mode(self.mode).model_dump() | self.change
        return Mode.model_validate(fields | {"name": self.name, "about": self.about or fields["about"]})

    def settings(self, base: CompassSettings) -> CompassSettings:
        """Return `base` with the row's own weights and thresholds."""
        return CompassSettings.model_validate(base.model_dump() | self.compass)


class Suite(Data):
    """Rows, the baseline that each is compared with, and what else is compared with what.

    primary: the one contrast that the suite is about, tested alone; the rest are secondary and corrected together
    (Holm). focus: the row whose repairs are shown as cases. controls: pairs that show equally many frames and draw and
    choose equally often by design; they decide what a gain comes from. compare: further pairs. declared: how many
    comparisons the suite is about, whichever of its rows are run; None: those of these. asked: what `primary` is of the
    whole suite, where one of its rows is left out.
    """

    name: str
    about: str
    tables: tuple[int, ...] = ()
    baseline: str
    primary: tuple[str, str] | None = None
    focus: str | None = None
    controls: tuple[tuple[str, str], ...] = ()
    compare: tuple[tuple[str, str], ...] = ()
    declared: int | None = None
    asked: tuple[str, str] | None = None
    rows: tuple[SuiteRow, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _linked(self) -> Self:
        names = [row.name for row in self.rows]
        declared = [*([self.primary] if self.primary else []), *self.controls, *self.compare]
        compared = [name for pair in declared for name in pair]
        wanted = [self.baseline, *([self.focus] if self.focus else []), *compared]
        unknown = next((name for name in wanted if name not in names), None)
        if unknown is not None:
            raise ValueError(f"there is no row {unknown!r}")
        return self

    @property
    def against(self) -> list[tuple[str, str]]:
        """Every other row with the baseline."""
        return [(row.name, self.baseline) for row in self.rows if row.name != self.baseline]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every comparison, each once: the primary one, with the baseline, the controls, and the further pairs."""
        first = [self.primary] if self.primary else []
        return list(dict.fromkeys([*first, *self.against, *self.controls, *self.compare]))

    @property
    def family(self) -> int:
        """Return how many differences of STG the suite is about."""
        with_gap = [pair for pair in self.pairs if not any(self.row(name).lacks for name in pair)]
        return len(with_gap) if self.declared is None else self.declared

    @property
    def secondary(self) -> int:
        """Return how many of them are corrected together: all but the primary one, run or not."""
        return self.family - (self.asked is not None or self.primary is not None)

    def against_row(self, name: str) -> Suite:
        """Return the suite with another row as the one that all others are held against.

        Raises:
            UsageError: there is no such row.
        """
        known = [row.name for row in self.rows]
        if name not in known:
            raise UsageError(f"The suite {self.name!r} has no row {name!r}.", hint=f"It has: {', '.join(known)}.")
        return self.model_copy(update={"baseline": name, "focus": self.focus if self.focus != name else None})

    def row(self, name: str) -> SuiteRow:
        """Return the row of that name."""
        return next(row for row in self.rows if row.name == name)

    def only(self, names: tuple[str, ...]) -> Suite:
        """Return the suite with these rows (and its baseline) alone.

        Raises:
            UsageError: there is no such row.
        """
        known = [row.name for row in self.rows]
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            raise UsageError(f"The suite {self.name!r} has no row {unknown!r}.", hint=f"It has: {', '.join(known)}.")
        return self.model_copy(
            update={
                "rows": tuple(row for row in self.rows if row.name in names),
                "baseline": self.baseline if self.baseline in names else names[0],
                "focus": self.focus if self.focus in names else None,
                "controls": tuple(pair for pair in self.controls if set(pair) <= set(names)),
                "compare": tuple(pair for pair in self.compare if set(pair) <= set(names)),
                "primary": self.primary if self.primary and set(self.primary) <= set(names) else None,
                "asked": self.asked or self.primary,
                "declared": self.family,
            }
        )

    def for_judges(self, judges: tuple[str, ...]) -> Suite:
        """Return the suite with a row a judge where a row asks for `each`."""
        rows: list[SuiteRow] = []
        for row in self.rows:
            if row.scoring.judge != "each":
                rows.append(row)
                continue
            for judge in judges:
                scoring = row.scoring.model_copy(update={"judge": judge})
                rows.append(row.model_copy(update={"name": f"{row.name}: {judge}", "scoring": scoring}))
        return self.model_copy(update={"rows": tuple(rows)})


def suite_names() -> list[str]:
    """Return the suites that ship with katha and those of installed packages, sorted."""
    return config_names("suites")


def load_suite(name: str) -> Suite:
    """Return the suite `name`, or the one in the YAML file at that path; every row checked.

    What installed packages offer by the name of a suite adds to it: rows for their own plug-ins, fields in its place.

    Raises:
        UnknownPluginError: no such suite. UsageError: the file, a row, its mode or a setting is wrong; it is named.
    """
    suite = _parse(_added(load_chosen("suites", name, "The suite"), load_offered("suites", name, "The suite")), name)
    for row in suite.rows:  # refuse a row that could not be run, before anything is
        where = f"The suite {suite.name!r}, row {row.name!r}"
        refuse_code(row.model_dump(include={"planner", "renderer", "renderer_options"}), where, received=True)
        try:
            row.build_mode()
            row.settings(CompassSettings())
        except KathaError as error:
            raise UsageError(f"{where}: {error.message}", hint=error.hint) from error
        except ValidationError as error:
            raise UsageError(f"{where}: {_first(error)}") from error
    return suite


def _added(value: Any, others: Sequence[Any]) -> Any:
    for other in others:
        if _has_rows(value) and _has_rows(other):
            value = {**value, **other, "rows": {**value["rows"], **other["rows"]}}
    return value


def _has_rows(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("rows"), dict)


def _parse(value: Any, name: str) -> Suite:
    if not _has_rows(value):
        raise UsageError(f"The suite {name!r} must be a mapping with rows by their names.")
    rows = []
    for key, fields in value["rows"].items():
        if fields is not None and not isinstance(fields, dict):
            raise UsageError(f"The suite {name!r}, row {key!r}: it must be a mapping of fields.")
        rows.append({"name": str(key), "mode": str(key)} | (fields or {}))
    try:
        return Suite.model_validate({"name": Path(name).stem} | value | {"rows": rows})
    except ValidationError as error:
        raise UsageError(f"The suite {name!r}, {_first(error)}") from error


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "as a whole"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}."
