"""`katha eval`: judge boards that are there, by every question, judge and condition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import katha
from katha.app.cli.console import echo_json, end, points, progress_bar, tell_outcome
from katha.app.cli.options import Given, Json, Stories, options_from
from katha.app.reports.page import Headline, headline, unscored
from katha.config import Settings
from katha.experiments.inputs import EvalOptions
from katha.schema.scores import MethodScores

if TYPE_CHECKING:
    from katha.eval_bridge.judging.budget import Estimate
    from katha.experiments.evaluate import EvalResult

_ASKED = ("judges", "judge_options", "answers", "matching", "variant", "base_url", "verify_reuse")
_LINE = "  {name:<22}{stories:>8}{text:>8}{image:>8}{stg:>8}{interval:>18}{valid:>16}"
_STOPPED = "The budget stopped it. The same command with a larger one goes on where it stopped."


@options_from(Settings, only=_ASKED)
@options_from(EvalOptions, into="options", preset=False, limits=False)
def evaluate(
    stories: Stories,
    boards: Annotated[
        list[str],
        typer.Option("--boards", help="DIR or NAME=DIR, a folder with one folder per story. Several are compared."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder of the evaluation.")],
    given: Given,
    options: Given,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask nothing; print calls, tokens and dollars.")] = False,
    as_json: Json = False,
) -> None:
    """Judge the boards of STORIES under text, image and text+image, and write scores and a report.

    The same command again asks nothing. After a kill, or with a larger budget, it goes on where it stopped.
    """
    changes = {**given.changes, **options.changes}
    with progress_bar("Judging", "Judging {}", quiet=as_json) as on_progress:
        if dry_run:
            from katha.app.studies import estimate

            _tell_estimate(*estimate(stories, boards, out, given.preset, on_progress=on_progress, **changes), as_json)
            return
        result = katha.evaluate(
            stories,
            boards,
            out,
            given.preset,
            budget=given.budget,
            on_progress=on_progress,
            on_batch=None if as_json else _tell_batch,
            **changes,
        )
    _tell(result, out / "report.html", as_json)


def _tell_batch(judge: str, ended: int, of: int) -> None:
    typer.echo(f"{judge}: {ended} of {of} batches have ended. (Stopping this command does not stop them.)", err=True)


def _tell_estimate(sums: Mapping[str, Estimate], invalid: Mapping[str, Mapping[str, str]], as_json: bool) -> None:
    """Print what asking would take, judge by judge."""
    if as_json:
        keys = ("calls", "reused", "input_tokens", "output_tokens", "cost")
        judges = {name: {key: getattr(item, key) for key in keys} for name, item in sums.items()}
        echo_json({"dry_run": True, "judges": judges, "invalid": invalid})
        return
    for name, item in sums.items():
        cost = "price unknown" if item.cost is None else f"about ${item.cost:.2f}"
        typer.echo(
            f"  {name}: {item.calls:,} calls ({item.reused:,} more are in the cache), about {item.input_tokens:,} "
            f"tokens in and {item.output_tokens:,} out, {cost}"
        )
    _tell_invalid(invalid)
    typer.echo("Nothing was asked.")


def _tell(result: EvalResult, report: Path, as_json: bool) -> None:
    """Print the outcome of an evaluation, as text or as one JSON object."""
    scores = result.scores
    methods = {name: headline(scores, name) for name in scores.methods}
    state, results = result.state, result.state.done
    if as_json:
        told = {
            "stories",
            "questions",
            "statuses",
            "calls",
            "kept",
            "invalid",
            "leakage",
            "controls",
            "budget",
            "failures",
        }
        found = {
            "out": str(result.out),
            "report": str(report),
            "reused": result.reused,
            "methods": {name: row._asdict() for name, row in methods.items()},
        }
        echo_json(found | {"status": state.status} | results.model_dump(mode="json", include=told))
        end(result.outcome)
        return
    typer.echo(
        _LINE.format(
            name="board", stories="stories", text="text", image="image", stg="STG", interval="95%", valid="valid"
        )
    )
    for name, row in methods.items():
        typer.echo(_line(name, row, scores.methods[name]))
    for note in unscored(scores):
        typer.echo(note)
    _tell_invalid(results.invalid)
    for item in results.controls:
        typer.echo(f"Control {item.control} ({item.judge}): {item.reading}")
    leakage = results.leakage
    typer.echo(f"Leakage scan: {leakage.packets} image-only packets, {len(leakage.found)} found.")
    for name, call in results.calls.items():
        if call.reuse is not None:
            checked, flipped = call.reuse.checked, call.reuse.flipped
            typer.echo(f"Prefix reuse ({name}): {checked:,} replies were asked again without it, {flipped:,} changed.")
    if leakage.pictures_read:
        typer.echo(f"Words drawn into pictures: {len(leakage.drawn)} lines in {leakage.pictures_read} pictures.")
    tell_outcome(result.outcome)
    if state.status == "budget_stopped":
        typer.echo(_STOPPED)
    typer.echo(f"Report: {report}")
    end(result.outcome)


def _line(name: str, row: Headline, method: MethodScores) -> str:
    ci = method.judges[row.judge].filtered.ci95.stg if row.judge is not None else None
    return _LINE.format(
        name=name[:22],
        stories=method.stories,
        text=points(row.text),
        image=points(row.image),
        stg=points(row.stg),
        interval=f"[{ci[0]:.1f}, {ci[1]:.1f}]" if ci else "-",
        valid=f"{row.n_valid} of {row.n_questions}",
    )


def _tell_invalid(invalid: Mapping[str, Mapping[str, str]]) -> None:
    for name, reasons in invalid.items():
        for story, reason in list(reasons.items())[:8]:
            typer.echo(f"  {name}, {story}: not judged, {reason.removesuffix('.')}.", err=True)
        if len(reasons) > 8:
            typer.echo(f"  {name}: {len(reasons) - 8} more stories were not judged; see eval.json.", err=True)
