"""`katha bench tables`: the paper's tables from the files of a study, as CSV, LaTeX and figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, Field

from katha.app.cli.console import echo_json, tell_table
from katha.app.cli.options import GivenOptions, Json, options_from
from katha.app.reports.data_tables import (
    ensemble_table,
    matching_table,
    robustness_tables,
    score_tables,
)
from katha.app.reports.figures import table_figure, write_figures
from katha.app.reports.study_tables import ablation_tables, compare_tables
from katha.config import Flag, Settings, read_settings
from katha.errors import MissingExtraError
from katha.eval_bridge.people.ensemble import EnsembleReport, fit_ensemble
from katha.eval_bridge.people.judgments import Judgment, read_judgments
from katha.eval_bridge.scoring.outcomes import collect
from katha.experiments.offline.evaluator_tables import matching_rows
from katha.experiments.offline.robustness import StudyFiles, read_study, robustness
from katha.jsonio import write_json
from katha.schema.robustness import Robustness
from katha.schema.scores import Scores
from katha.tables import DataTable, write_tables


class TablesOptions(BaseModel):
    """What a study's tables are made with, beside its own files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    human: Path | None = Field(default=None, description="People's judgments: visual, human_score (CSV or JSON Lines).")
    gold: Path | None = Field(
        default=None, description="People's labels of answers: single judges and ensembles (Table 62)."
    )
    pairs: Path | None = Field(default=None, description="Labelled pairs: matching rules side by side (Table 61).")
    rules: Annotated[tuple[str, ...], Flag("--rule", many=True)] = Field(
        default=(), description="One more rule for Table 61: embedding:MODEL, llm:JUDGE, ..."
    )
    verdicts: Path | None = Field(
        default=None, description="Where the verdicts of a model's --rule are kept and reused."
    )
    base_url: str | None = Field(default=None, description="Where an `llm:` rule calls.")
    matching: str | None = Field(default=None, description=Settings.model_fields["matching"].description)
    resamples: int = Field(default=10_000, ge=0, description="Bootstrap resamples of stories; 10000 unless told.")
    seed: int = Field(default=42, description="The seed of the bootstrap; 42 unless told.")


@options_from(TablesOptions, into="options", preset=False, limits=False)
def tables(
    study: Annotated[
        Path, typer.Argument(help="A folder of katha eval, compare or ablate; or stories, with --answers.")
    ],
    options: GivenOptions,
    answers: Annotated[
        list[Path] | None, typer.Option("--answers", help="answers.jsonl; may be given several times.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder; STUDY/tables unless told.")] = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw tables with intervals as SVG and PNG, too.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Write a study's tables as CSV, LaTeX, SVG and PNG: 2, 4, 30, 56, 57, 59, 68, and 61 and 62 where asked for.

    Asks no judge. Table 4's controls, reliability and the text's ceiling are in robustness.json, too.
    """
    asked = read_settings(TablesOptions, options.changes)
    given = read_study(study, answers or (), matching=asked.matching)
    judgments = list(read_judgments(asked.human)) if asked.human is not None else []
    found = robustness(given, judgments=judgments, resamples=asked.resamples, seed=asked.seed)
    made = [*_tables(given, given.scored(asked.resamples, asked.seed), found), *_asked_for(given, asked, judgments)]
    place = out or (study if study.is_dir() else study.parent) / "tables"
    write_json(place / "robustness.json", found.model_dump(mode="json"))
    written = [place / "robustness.json", *write_tables(place, made)]
    missing = None
    if figures:
        try:
            written += write_figures(place, [drawn for table in made if (drawn := table_figure(table)) is not None])
        except MissingExtraError as error:
            missing = str(error)
    if as_json:
        names = [str(path) for path in written]
        echo_json({"out": str(place), "files": names, "robustness": found.model_dump(mode="json")})
        return
    for table in made:
        if table.name in ("table-4", "table-61", "table-62"):
            tell_table(table)
    if missing is not None:
        typer.echo(f"No figures: {missing}")
    for note in found.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"{len(made)} tables, {len(written)} files: {place}")


def _tables(given: StudyFiles, scores: Scores, found: Robustness) -> list[DataTable]:
    made = score_tables(scores, found.people)
    own = ablation_tables(given.ablation) if given.ablation is not None else []
    own += compare_tables(given.compared) if given.compared is not None else []
    known = {table.name for table in own}
    repairs = given.ablation.cases if given.ablation is not None else None
    return [*own, *(table for table in made if table.name not in known), *robustness_tables(found, repairs)]


def _asked_for(given: StudyFiles, asked: TablesOptions, judgments: list[Judgment]) -> Iterator[DataTable]:
    """Yield Tables 61 and 62 where they are asked for."""
    if asked.pairs is not None or asked.rules:
        rows = matching_rows(
            given,
            asked.rules,
            pairs=asked.pairs,
            judgments=judgments,
            verdicts=asked.verdicts,
            base_url=asked.base_url,
        )
        yield matching_table(rows)
    if asked.gold is not None:
        yield ensemble_table(_fitted(given, list(read_judgments(asked.gold)), asked.seed))


def _fitted(given: StudyFiles, labels: list[Judgment], seed: int) -> EnsembleReport:
    """Return the worth of judges and ensembles on people's labels of answers to any question."""
    outcomes = collect(given.records, given.answers(), matching=given.rule(), selection="all")
    return fit_ensemble(outcomes, labels, seed=seed)[1]
