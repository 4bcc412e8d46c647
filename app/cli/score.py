"""`katha score`: an archive of answers to scores, offline; what changed since; how many stories a difference needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import comparison, echo_json, interval, points
from katha.app.cli.options import GivenOptions, Json, options_from
from katha.app.reports.page import guessed
from katha.config import read_settings
from katha.eval_bridge.scoring.scores import HEADLINE
from katha.experiments.offline.scoring import ScoreOptions, ScoreReport, score_archives
from katha.schema.scores import JudgeAlignment, PowerEstimate, Scores

_SHOWN = 40
_HEAD = (
    f"  {'method':<26}{'judge':<22}{'text':>7}{'image':>7}{'STG':>7}{'95% interval':>17}{'ambiguous':>11}{'valid':>16}"
)


@options_from(ScoreOptions, into="options", preset=False, limits=False)
def score(
    stories: Annotated[Path, typer.Argument(help="Records with their questions (.jsonl), or the folder they are in.")],
    answers: Annotated[list[Path], typer.Option("--answers", help="answers.jsonl; may be given several times.")],
    options: GivenOptions,
    out: Annotated[Path, typer.Option("--out", help="Where the scores are written.")] = Path("scores.json"),
    as_json: Json = False,
) -> None:
    """Score answers to the questions of STORIES and write scores.json. Asks no judge and needs no images."""
    found = score_archives(stories, answers, read_settings(ScoreOptions, options.changes), out)
    if not as_json:
        _tell(found, out)
        return
    told: dict[str, object] = {"out": str(out), "scores": found.scores.model_dump(mode="json")}
    told |= {"power": found.power.model_dump(mode="json")} if found.power is not None else {}
    if found.changes is not None:
        told |= {"unnamed": found.unnamed, "changes": [asdict(change) for change in found.changes]}
    echo_json(told)


def _tell(found: ScoreReport, out: Path) -> None:
    scores = found.scores
    typer.echo(_HEAD)
    for line in _headlines(scores):
        typer.echo(line)
    for row in scores.comparisons:
        if row.block == HEADLINE and row.difference is not None:
            typer.echo(f"  {comparison(row, row.judge)}")
    for method, judges in scores.contrastive.methods.items() if scores.contrastive is not None else ():
        for judge, pairs in judges.items():
            rates = f"PairAcc {points(pairs.pair_accuracy)}, confusion {points(pairs.confusion)}"
            typer.echo(f"  {method}, {judge}: {rates} on {pairs.n:,} pairs")
    for judge, aligned in scores.alignment.judges.items() if scores.alignment is not None else ():
        typer.echo(f"  {judge}: {_aligned(aligned)}")
    if found.power is not None:
        _tell_power(found.power)
    _tell_changes(found)
    for line in guessed(scores):
        typer.echo(f"  {line}")
    for note in [*scores.notes, *(scores.contrastive.notes if scores.contrastive is not None else ())]:
        typer.echo(f"Note: {note}")
    typer.echo(f"Scores: {out}")


def _headlines(scores: Scores) -> Iterator[str]:
    for method, entry in scores.methods.items():
        for judge, row in entry.judges.items():
            block = row.filtered
            numbers = "".join(f"{points(value):>7}" for value in (block.text, block.image, block.stg))
            valid = f"{row.n_valid:,} of {row.n_questions - row.n_unscored:,}"
            rate, span = points(row.ambiguity_rate), interval(block.ci95.stg)
            yield f"  {method:<26}{judge:<22}{numbers}{span:>17}{rate:>11}{valid:>16}"


def _aligned(row: JudgeAlignment) -> str:
    told = []
    if row.localization is not None:
        told.append(f"finds the failing dimension in {points(row.localization.right)}% of {row.localization.n:,}")
    if row.human_score is not None:
        rank = row.human_score.spearman
        told.append(f"Spearman with people {'-' if rank is None else f'{rank:.2f}'} on {row.human_score.n:,}")
    return ", ".join(told)


def _tell_power(power: PowerEstimate) -> None:
    for row in power.estimates:
        for need in row.needed:
            size, share = f"{need.difference:g} points", f"{100 * power.power:.0f}%"
            cost = f"{need.stories:,} stories ({need.judge_calls:,} calls of one judge)"
            typer.echo(f"  {row.between}: to find {size} with {share}: {cost}; spread {row.spread:.1f}")
    for note in power.notes:
        typer.echo(f"Note: {note}")


def _tell_changes(found: ScoreReport) -> None:
    if found.changes is None or found.before is None:
        return
    for change in found.changes[:_SHOWN]:
        typer.echo(f"  {change}")
    if len(found.changes) > _SHOWN:
        typer.echo(f"  and {len(found.changes) - _SHOWN:,} more; --json lists them all.")
    typer.echo(f"{len(found.changes):,} verdicts changed." if found.changes else "No verdict changed.")
    if found.unnamed:
        lost = f"{found.unnamed:,} answers were scored by an earlier version of the rule"
        typer.echo(f"{lost}, and verdicts.jsonl does not lie by its scores: what changed in them cannot be named.")
    for method, entry in found.before.methods.items():
        for judge, row in entry.judges.items():
            later = found.scores.methods.get(method)
            now = later.judges.get(judge) if later is not None else None
            was, new = row.filtered.stg, now.filtered.stg if now is not None else None
            if was != new:
                typer.echo(f"  {method}, {judge}: STG {points(was)} -> {points(new)}")
