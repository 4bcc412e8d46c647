"""`katha compare`: the same stories, plans, questions and judges for every renderer, planner or mode."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from katha.app.cli import options

if TYPE_CHECKING:
    from katha.config import RunConfig
    from katha.experiments.methods import Method

_HEAD = f"  {'method':<30}{'boards':>8}{'invalid':>9}{'image':>7}{'raw':>7}{'STG':>7}{'common':>8}{'95% interval':>17}"
_SHOWN = 8


def compare(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, a text, or a folder of them.")],
    renderer: Annotated[
        list[str] | None, typer.Option("--renderer", help="A renderer to compare; give it several times.")
    ] = None,
    planner: Annotated[
        list[str] | None, typer.Option("--planner", help="A planner to compare; give it several times.")
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="A repair mode to compare; base unless told.")
    ] = None,
    methods: Annotated[
        Path | None, typer.Option("--methods", help="A YAML list of methods, each with options of its own.")
    ] = None,
    renderer_option: Annotated[
        list[str] | None,
        typer.Option("--renderer-option", help="KEY=VALUE for those of the renderers that have it."),
    ] = None,
    bridge_renderer: options.BridgeRenderer = None,
    bridge_option: options.BridgeOptions = None,
    memory: options.Memory = None,
    judge: options.Judges = None,
    judge_option: options.JudgeOptions = None,
    seeds: options.Seeds = None,
    panels: options.Panels = None,
    size: options.Size = None,
    style: options.Style = None,
    similarity: options.Similarity = None,
    preset: options.Preset = None,
    answers: options.Answers = None,
    matching: options.Matching = None,
    variant: options.Variant = None,
    base_url: options.BaseUrl = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples of stories.")] = 10_000,
    out: Annotated[Path, typer.Option("--out", help="The folder of the comparison.")] = Path("out/compare"),
    as_json: options.Json = False,
) -> None:
    """Compare renderers (or planners, or modes) on STORIES by what their boards lose of the story (STG).

    Every method gets the same plans, questions and judges. A story that a method cannot draw is counted as invalid,
    with the reason. The same command again does nothing; after a kill it goes on.
    """
    from katha.agents.context import require_memory
    from katha.app.cli.options import configuration
    from katha.app.cli.summary import end
    from katha.app.reports.compare_page import write_compare_report
    from katha.experiments.compare import CompareJob, run_comparison
    from katha.experiments.inputs import read_stories

    config = configuration(
        preset,
        bridge_renderer=bridge_renderer,
        bridge_option=bridge_option,
        memory=memory,
        judge=judge,
        judge_option=judge_option,
        mode="base",
        seeds=seeds,
        panels=panels,
        size=size,
        style=style,
        similarity=similarity,
        answers=answers,
        matching=matching,
        variant=variant,
        base_url=base_url,
    )
    found = _methods(config, methods, planner or (), renderer or (), mode or (), renderer_option)
    require_memory(memory, [name for one in found for name in (one.config.renderer, one.config.bridge_renderer)])
    job = CompareJob(
        records=read_stories(stories),
        methods=found,
        config=config,
        prepare=_prepare(stories),
        resamples=resamples,
        command=("katha", *sys.argv[1:]),
        budget=options.budget_of(max_calls, max_cost),
    )
    total = len(job.records) * len(job.methods)
    with _progress(total, quiet=as_json) as on_story:
        result = run_comparison(job, out, on_story=on_story)
    report, table = write_compare_report(out), result.table.model_dump(mode="json")
    if as_json:
        value = {"out": str(out), "report": str(report), "reused": result.reused, "table": table}
        typer.echo(json.dumps(value, ensure_ascii=False))
    else:
        _tell(table, report)
    for sentence in result.outcome.sentences():
        typer.echo(sentence, err=True)
    end(result.outcome)


def _methods(
    config: RunConfig,
    file: Path | None,
    planners: Sequence[str],
    renderers: Sequence[str],
    modes: Sequence[str],
    given: Sequence[str] | None,
) -> list[Method]:
    """The methods of a file, or every planner with every renderer in every mode."""
    from katha.errors import UsageError
    from katha.experiments.methods import cross_methods, read_methods
    from katha.registry import read_options

    if file is None:
        return cross_methods(config, planners, renderers, modes, read_options(given or ()))
    if planners or renderers or modes or given:
        raise UsageError(
            "--methods names the methods already.",
            hint="Leave --renderer, --planner, --mode and --renderer-option out.",
        )
    return read_methods(file, config)


def _prepare(stories: str) -> Callable[[Any], Any]:
    """Questions, options and halves for the stories: the same for every method."""
    from katha.eval_bridge.questions.options import assign_roles
    from katha.experiments.inputs import prepare_stories

    complete = prepare_stories(stories)

    def prepare(records: Any) -> Any:
        return [
            record.model_copy(update={"recoverability_questions": assign_roles(record.recoverability_questions, 42)})
            for record in complete(records)
        ]

    return prepare


@contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[Callable[[str, int], None] | None]:
    """A bar over methods and stories on standard error; None when `quiet` or when that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Drawing", total=total)
        yield lambda name, done: bar.update(task, completed=done, description=name)


def _tell(table: Mapping[str, Any], report: Path) -> None:
    typer.echo(_HEAD)
    for row in table["methods"]:
        span = f"{row['ci95'][0]:.1f} to {row['ci95'][1]:.1f}" if row["ci95"] else "-"
        numbers = "".join(f"{_points(row[name]):>7}" for name in ("image", "raw_stg", "filtered_stg"))
        rate = f"{_points(row['invalid_rate'])}%"
        common = _points(row["common_valid_stg"])
        typer.echo(f"  {row['name'][:29]:<30}{row['boards']:>8}{rate:>9}{numbers}{common:>8}{span:>17}")
    for row in table["comparisons"]:
        if row["block"] == "common_valid" and row["difference"] is not None:
            typer.echo(f"  {_comparison(row)}")
    for row in table["methods"]:
        if row["signature"]:
            typer.echo(f"  {row['name']} loses most: {', '.join(row['signature'])}.")
    for item in table["invalid"][:_SHOWN]:
        typer.echo(f"  {item['board']}, {item['story_id']}: invalid, {item['reason']}", err=True)
    if len(table["invalid"]) > _SHOWN:
        typer.echo(f"  and {len(table['invalid']) - _SHOWN} more invalid boards; see table.json.", err=True)
    if table["status"] != "finished":
        typer.echo("Some boards or answers are missing. The same command asks for them again.")
    typer.echo(f"Report: {report}")


def _comparison(row: Mapping[str, Any]) -> str:
    span = f", {row['ci95'][0]:.1f} to {row['ci95'][1]:.1f}" if row["ci95"] else ""
    p = f", corrected p {row['p_corrected']:.4f} of {row['family']}" if row["p_corrected"] is not None else ""
    return (
        f"{row['a']} against {row['b']}: STG differs by {row['difference']:+.1f}{span}{p} ({row['n_stories']} stories)"
    )


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
