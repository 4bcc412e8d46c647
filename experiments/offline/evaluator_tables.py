"""Tables whose rows ask other questions about the same boards (3, 54, 58, 60), or match answers otherwise (61)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from katha.compass.modes import RowScoring
from katha.configs import load_config
from katha.errors import UsageError
from katha.eval_bridge.matching.match import require_rule, rule_names
from katha.eval_bridge.matching.report import measure_file
from katha.eval_bridge.matching.rules import make_decider, open_rule, settle
from katha.eval_bridge.packets.instructions import require_variant
from katha.eval_bridge.people.agreement import alignment, correlation, localization, place_judgments
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.questions.elements import has_elements
from katha.eval_bridge.questions.evaluators import DEFAULT_EVALUATOR, load_evaluator
from katha.eval_bridge.scoring.gate import why_no_gap
from katha.eval_bridge.scoring.outcomes import RIGHT, Outcomes, collect
from katha.eval_bridge.scoring.robustness import MethodOutcomes
from katha.eval_bridge.scoring.rows import row_counts, row_numbers
from katha.eval_bridge.scoring.statistics import BOTH
from katha.experiments.ablate.tally import coarse_story
from katha.experiments.offline.robustness import StudyFiles
from katha.schema import DIMENSIONS, StoryRecord
from katha.schema.robustness import EvaluatorRow, EvaluatorTable, MatchingRow


class RowSpec(BaseModel):
    """One row of `configs/tables.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str
    evaluator: str = DEFAULT_EVALUATOR
    variant: str | None = None
    scoring: RowScoring = RowScoring()

    @property
    def study(self) -> str:
        """The folder of its evaluation: the evaluator's name, with the prompt variant where the row has one."""
        return self.evaluator if self.variant is None else f"{self.evaluator}-{self.variant}"

    @property
    def asked(self) -> dict[str, str]:
        """The settings of its evaluation."""
        return {"evaluator": self.evaluator} | ({"variant": self.variant} if self.variant is not None else {})


class TableSpec(BaseModel):
    """One table of `configs/tables.yaml`: its rows by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    rows: dict[str, RowSpec]

    @property
    def studies(self) -> dict[str, dict[str, str]]:
        """The evaluations that its rows need, each once, with their settings."""
        return {row.study: row.asked for row in self.rows.values()}

    def asked_of(self, records: Sequence[StoryRecord]) -> TableSpec:
        """Return it without the rows whose questions a model has not written for every one of these stories."""
        kinds = {name: load_evaluator(row.evaluator).written for name, row in self.rows.items()}
        rows = {
            name: row
            for name, row in self.rows.items()
            if (kind := kinds[name]) is None or all(has_elements(record, kind) for record in records)
        }
        return self.model_copy(update={"rows": rows})

    @property
    def varies(self) -> bool:
        """Return whether its rows differ by their prompts."""
        return any(row.variant is not None for row in self.rows.values())


def load_table(number: int) -> TableSpec:
    """Return the rows of a table of the paper.

    Raises:
        UsageError: its rows ask nothing else.
    """
    tables = load_config("tables.yaml")
    if number not in tables:
        known = ", ".join(map(str, tables))
        raise UsageError(f"Table {number} is none that asks other questions.", hint=f"Known: {known}.")
    spec = TableSpec.model_validate(tables[number])
    for row in spec.rows.values():
        load_evaluator(row.evaluator)
        if row.variant is not None:
            require_variant(row.variant)
    return spec


def evaluator_table(
    number: int,
    studies: Mapping[str, StudyFiles],
    judgments: Sequence[Judgment] = (),
) -> EvaluatorTable:
    """Return the table's rows from its evaluations, by name; a row without an evaluation is left out and named.

    judgments: people's, with `failing` and `human_score` of boards, and `right` of questions under text+image.
    """
    spec = load_table(number)
    rows = [_row(name, row, studies[row.study], judgments) for name, row in spec.rows.items() if row.study in studies]
    notes = []
    left = [row.evaluator for row in spec.rows.values() if row.study not in studies]
    if left:
        notes.append(
            f"Not asked, for the stories have no such questions by a model: {', '.join(left)} (`katha bench questions "
            "--evaluator`)."
        )
    if not judgments:
        notes.append(
            "No judgments by people were given (--human FILE): localization, correlation and leakage are null."
        )
    if any(row.scoring.accepted == "canonical" for row in spec.rows.values()):
        notes.append("Chosen options are matched literally: without accepted-answer sets only free answers can differ.")
    return EvaluatorTable(table=number, title=spec.title, rows=rows, notes=notes)


def _row(name: str, row: RowSpec, study: StudyFiles, judgments: Sequence[Judgment]) -> EvaluatorRow:
    rule, scoring = study.rule(), row.scoring
    records = [coarse_story(record, scoring) for record in study.records]
    settle(rule, records, study.answers())
    outcomes = collect(records, study.answers(), matching=rule, selection=study.questions)
    judge = MethodOutcomes(outcomes, {}).judge
    counts = row_counts(
        outcomes,
        outcomes.methods,
        outcomes.stories,
        judge=judge,
        filtered=scoring.valid != "none",
        dimensions=scoring.dimensions,
    )
    numbers = row_numbers({name: counts.pooled()})[name]
    hidden = why_no_gap(
        outcomes, outcomes.methods, judge=judge, filtered=scoring.valid != "none", dimensions=scoring.dimensions
    )
    boards = [item for item in judgments if "story_id" in item and ("failing" in item or "human_score" in item)]
    placed = place_judgments(boards, outcomes) if boards else []
    asked = {DIMENSIONS[at] for at in np.unique(outcomes.dimension_of)} & set(scoring.dimensions or DIMENSIONS)
    return EvaluatorRow(
        row=name,
        about=row.about,
        evaluator=row.evaluator,
        n_valid=counts.valid,
        n_scored=counts.scored,
        image=numbers.image,
        image_ci95=numbers.image_ci95,
        stg=numbers.stg if hidden is None else None,
        stg_ci95=numbers.stg_ci95 if hidden is None else None,
        localization=localization(placed, counts.counts) if len(asked) > 1 else None,
        human_score=correlation(placed, counts.counts),
        ambiguity_leakage=_leakage(outcomes, judge, scoring, judgments),
    )


def _leakage(outcomes: Outcomes, judge: str, scoring: RowScoring, judgments: Sequence[Judgment]) -> float | None:
    """Return the percentage of questions that most people find defective under text and images and the row keeps."""
    votes: dict[tuple[str, str, str | None], list[bool]] = defaultdict(list)
    for row in judgments:
        if row.get("condition") == "text+image" and {"story_id", "question_id", "right"} <= row.keys():
            votes[row["story_id"], row["question_id"], row.get("method")].append(row["right"])
    place = {
        (outcomes.stories[story], question.question_id): at
        for at, (story, question) in enumerate(zip(outcomes.story_of, outcomes.questions, strict=True))
    }
    at, kept = outcomes.judges.index(judge), []
    for (story, question, method), cast in votes.items():
        if (story, question) not in place or 2 * sum(cast) >= len(cast):
            continue
        for name in outcomes.methods if method is None else [method] if method in outcomes.methods else []:
            cell = outcomes.cells[outcomes.methods.index(name), at, BOTH, place[story, question]]
            kept.append(scoring.valid == "none" or cell == RIGHT)
    return 100.0 * sum(map(bool, kept)) / len(kept) if kept else None


# Matching rules side by side (Table 61): labelled pairs, and agreement with people.

LETTER_RULES = ("exact-string", "keyword", "exact-set")
"""The rules that need no model: every row of Table 61 but the embedding's and the language model's."""


def matching_rows(
    study: StudyFiles,
    rules: Sequence[str] = (),
    *,
    pairs: Path | None = None,
    judgments: Sequence[Judgment] = (),
    verdicts: Path | None = None,
    base_url: str | None = None,
) -> list[MatchingRow]:
    """Return a row for each rule that needs no model, the paper's and those of installed matchers, and for those of
    `rules` (`embedding:MODEL`, `llm:JUDGE`).

    pairs: labelled pairs of an answer and an accepted set. judgments: people's, with `human_score`. verdicts: where a
    model's verdicts are kept and found again.

    Raises:
        UsageError: a rule is unknown, or its model cannot be had. InputFileError, RecordError: a line is not a pair.
    """
    names = [require_rule(name) for name in dict.fromkeys([*LETTER_RULES, *rule_names(), *rules])]
    scored = [row for row in judgments if "story_id" in row and "human_score" in row]
    found = []
    for name in names:
        archives = [verdicts] if verdicts is not None else []
        rule = open_rule(name, archives, decider=make_decider(name, base_url), keep=verdicts)
        measured = measure_file(pairs, rule) if pairs is not None else None
        settle(rule, study.records, study.answers())
        outcomes = study.outcomes_by(rule)
        judge = MethodOutcomes(outcomes, study.members(outcomes)).judge
        aligned = (
            alignment(study.records, study.answers(), scored, matching=rule, questions=study.questions)
            if scored
            else None
        )
        person = aligned.judges[judge].human_score if aligned is not None else None
        found.append(
            MatchingRow(
                rule=name,
                n_pairs=measured.n if measured is not None else 0,
                false_accept=_percent(measured.false_accept if measured is not None else None),
                false_reject=_percent(measured.false_reject if measured is not None else None),
                n_boards=person.n if person is not None else 0,
                human_correlation=person.spearman if person is not None else None,
            )
        )
    return found


def _percent(value: float | None) -> float | None:
    return None if value is None else 100.0 * value
