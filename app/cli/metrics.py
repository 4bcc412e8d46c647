"""`katha metrics`: boards of any origin measured by other papers' metrics, and the table of what there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from katha.app.cli.console import echo_json, progress_bar, tell_order, tell_outcome, workers_view
from katha.app.cli.options import CALLED, GivenOptions, Json, options_from, with_recordings
from katha.app.measuring import MetricOptions, estimate, measure
from katha.config import Settings
from katha.errors import UsageError
from katha.eval_bridge.metrics.base import metric_cards
from katha.schema.metrics import MetricTable

if TYPE_CHECKING:
    from katha.eval_bridge.judging.budget import CallEstimate
    from katha.experiments.metrics.job import MetricsState

_SHOWN = 8


@with_recordings
@options_from(Settings, only=CALLED)
@options_from(MetricOptions, into="options", preset=False, limits=False)
def metrics(
    given: GivenOptions,
    options: GivenOptions,
    boards: Annotated[
        list[str] | None,
        typer.Argument(help="DIR or NAME=DIR: boards, a run, an evaluation, a comparison, an ablation."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder of the measurement.")] = Path("out/metrics"),
    list_them: Annotated[bool, typer.Option("--list", help="List the metrics: what each is and needs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask nothing; print calls, tokens and dollars.")] = False,
    as_json: Json = False,
) -> None:
    """Measure BOARDS by the metrics of other papers, and hold them against STG where it is known.

    A value that cannot be had is counted with its reason and is never 0. The same command again measures nothing; after
    a kill, or with a larger budget, it goes on where it stopped.
    """
    if list_them:
        _list(as_json)
        return
    if not boards:
        raise UsageError("There is no board to measure.", hint="Give BOARDS, or --list for the metrics that there are.")
    changes = {**given.changes, **options.changes}
    if dry_run:
        _tell_estimate(*estimate(boards, given.preset, on_order=tell_order, **changes), as_json)
        return
    with progress_bar("Measuring", quiet=as_json) as on_progress:
        heard = workers_view(quiet=as_json)
        result = measure(
            boards,
            out,
            given.preset,
            budget=given.budget,
            on_progress=on_progress,
            on_workers=heard,
            on_order=tell_order,
            **changes,
        )
    report = result.out / "report.html"
    if as_json:
        found = {"out": str(result.out), "report": str(report), "reused": result.reused, "status": result.status}
        echo_json({**found, "table": result.table.model_dump(mode="json")})
    else:
        tell_measures(result.table)
        if not result.reused:
            _tell_seconds(result.state)
        tell_outcome(result.outcome)
        typer.echo(f"Report: {report}")
    nothing = all(cell.value is None for row in result.table.rows for cell in row.cells.values())
    if result.status == "incomplete" or nothing:
        raise typer.Exit(1)


def tell_measures(table: MetricTable) -> None:
    """Print a table of metrics: a line a column, its numbers by method, and why values are missing."""
    width = max([24, *(len(column.name) for column in table.columns)])
    names = [row.method[:16] for row in table.rows]
    typer.echo(f"  {'measure'.ljust(width)}" + "".join(f"{name:>18}" for name in names))
    stg = {item.column: item for item in table.relations if item.block == "filtered"}
    for column in table.columns:
        cells = [row.cells[column.name] for row in table.rows]
        shown = "".join(f"{'-' if cell.value is None else f'{cell.value:.3f}':>18}" for cell in cells)
        relation = stg.get(column.name)
        beside = f"   with STG {relation.spearman:+.2f}" if relation and relation.spearman is not None else ""
        typer.echo(f"  {column.name.ljust(width)}{shown}{beside}")
    for choice in [item for item in table.choices if item.unit == "scene"][: 2 * _SHOWN]:
        rate = (
            "no pair has both scores"
            if choice.rate is None
            else f"{choice.rate:.0%} against chance {choice.chance:.0%}"
        )
        test = "" if choice.p is None else f", p {choice.p:.3g}"
        typer.echo(
            f"  {choice.column} chooses {choice.method} over {choice.against} in {choice.chosen:,} of {choice.pairs:,} "
            f"pictures ({choice.undecided:,} undecided): {rate}{test}"
        )
    for item in table.nulls[:_SHOWN]:
        typer.echo(f"  {item.column}: {item.count:,} without a value: {item.reason}")
    if len(table.nulls) > _SHOWN:
        typer.echo(f"  and {len(table.nulls) - _SHOWN:,} more reasons; see table.json.")
    for note in table.notes:
        typer.echo(f"Note: {note}")
    if table.status != "finished":
        typer.echo("Some values are missing that can be had. The same command tries again.")


def _tell_seconds(state: MetricsState) -> None:
    """Print what each metric took of what was measured now."""
    for name, took in state.seconds.items():
        each = f", {took.seconds / took.pictures:.3f} s a picture" if took.pictures else ""
        typer.echo(f"  {name}: {took.seconds:.1f} s for {took.pictures:,} pictures{each}")


def _tell_estimate(judge: str, found: CallEstimate, boards: int, as_json: bool) -> None:
    if as_json:
        keys = ("calls", "reused", "input_tokens", "output_tokens", "cost")
        echo_json({"dry_run": True, "boards": boards, "judge": judge, **{key: getattr(found, key) for key in keys}})
        return
    cost = "price unknown" if found.cost is None else f"about ${found.cost:.2f}"
    if judge:
        typer.echo(
            f"  {judge}: {found.calls:,} calls ({found.reused:,} more are in the cache), about {found.input_tokens:,} "
            f"tokens in and {found.output_tokens:,} out, {cost}"
        )
    typer.echo(f"{boards:,} boards. Nothing was asked.")


def _list(as_json: bool) -> None:
    cards = metric_cards()
    if as_json:
        echo_json([card.model_dump(mode="json") for card in cards.values()])
        return
    for name, card in cards.items():
        typer.echo(f"{name:<18}{card.title} ({card.paper})")
        facts = {
            "formula": card.formula,
            "parts": ", ".join(part.name for part in card.parts),
            "modes": ", ".join(card.modes),
            "needs": ", ".join(card.needs),
            "cost": card.cost,
            "licence": card.licence,
        }
        for key, value in facts.items():
            if value:
                typer.echo(f"{'':<18}  {key}: {value}")
