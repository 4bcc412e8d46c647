"""`katha bench tables`: the paper's tables from the files of a study, as CSV, LaTeX and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import echo_json, tell_table
from katha.app.cli.options import Json, Matching, Resamples, Seed
from katha.app.reports.data_tables import (
    ablation_tables,
    compare_tables,
    ensemble_table,
    matching_table,
    robustness_tables,
    score_tables,
)
from katha.app.reports.figures import table_figure, write_figures
from katha.errors import MissingExtraError
from katha.eval_bridge.people.ensemble import EnsembleReport, fit_ensemble
from katha.eval_bridge.people.judgments import Judgment, read_judgments
from katha.eval_bridge.scoring.outcomes import collect
from katha.experiments.matching_table import matching_rows
from katha.experiments.robustness import Study, read_study, robustness
from katha.jsonio import write_json
from katha.schema.robustness import Robustness
from katha.schema.scores import Scores
from katha.tables import DataTable, write_tables


def tables(
    study: Annotated[
        Path, typer.Argument(help="A folder of katha eval, compare or ablate; or stories, with --answers.")
    ],
    answers: Annotated[
        list[Path] | None, typer.Option("--answers", help="answers.jsonl; may be given several times.")
    ] = None,
    human: Annotated[
        Path | None, typer.Option("--human", help="People's judgments: visual, human_score (CSV or JSON Lines).")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option("--gold", help="People's labels of answers: single judges and ensembles (Table 62).")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="Labelled pairs: matching rules side by side (Table 61).")
    ] = None,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help="One more rule for Table 61: embedding:MODEL, llm:JUDGE, ...")
    ] = None,
    verdicts: Annotated[
        Path | None, typer.Option("--verdicts", help="Where the verdicts of a model's --rule are kept and reused.")
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Where an `llm:` rule calls.")] = None,
    matching: Matching = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder; STUDY/tables unless told.")] = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw tables with intervals as SVG and PNG, too.")
    ] = True,
    resamples: Resamples = 10_000,
    seed: Seed = 42,
    as_json: Json = False,
) -> None:
    """Write a study's tables as CSV, LaTeX, SVG and PNG: 2, 4, 30, 56, 57, 59, 68, and 61 and 62 where asked for.

    Asks no judge. Table 4's controls, reliability and the text's ceiling are in robustness.json, too.
    """
    given = read_study(study, answers or (), matching=matching)
    judgments = list(read_judgments(human)) if human is not None else []
    found = robustness(given, judgments=judgments, resamples=resamples, seed=seed)
    made = _tables(given, given.scored(resamples, seed), found)
    if pairs is not None or rule:
        rows = matching_rows(given, rule or (), pairs=pairs, judgments=judgments, verdicts=verdicts, base_url=base_url)
        made.append(matching_table(rows))
    if gold is not None:
        made.append(ensemble_table(_fitted(given, list(read_judgments(gold)), seed)))
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


def _tables(given: Study, scores: Scores, found: Robustness) -> list[DataTable]:
    made = score_tables(scores, found.people)
    own = ablation_tables(given.ablation) if given.ablation is not None else []
    own += compare_tables(given.compared) if given.compared is not None else []
    known = {table.name for table in own}
    return [*own, *(table for table in made if table.name not in known), *robustness_tables(found)]


def _fitted(given: Study, labels: list[Judgment], seed: int) -> EnsembleReport:
    """Return the worth of judges and ensembles on people's labels of answers to any question."""
    outcomes = collect(given.records, given.answers(), matching=given.rule(), selection="all")
    return fit_ensemble(outcomes, labels, seed=seed)[1]
