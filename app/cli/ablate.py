"""`katha ablate`: a suite of modes over many stories, compared in pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from katha.app.cli import options

if TYPE_CHECKING:
    from katha.schema import StoryRecord

_HEAD = (
    f"  {'row':<26}{'image':>7}{'STG':>7}{'change':>8}{'95% interval':>17}{'p':>8}{'frames':>8}{'drawn':>8}{'asked':>8}"
)


def ablate(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, or a folder of them.")],
    suite: Annotated[str, typer.Option("--suite", help="A suite by name, or a YAML file of your own.")] = "length",
    rows: Annotated[str | None, typer.Option("--rows", help="Only these rows of the suite, with commas.")] = None,
    split: options.Split = None,
    planner: options.Planner = None,
    planner_option: options.PlannerOptions = None,
    renderer: options.Renderer = None,
    renderer_option: options.RendererOptions = None,
    bridge_renderer: options.BridgeRenderer = None,
    bridge_option: options.BridgeOptions = None,
    memory: options.Memory = None,
    judge: options.Judges = None,
    judge_option: options.JudgeOptions = None,
    similarity: options.Similarity = None,
    seeds: options.Seeds = None,
    panels: options.Panels = None,
    size: options.Size = None,
    style: options.Style = None,
    preset: options.Preset = None,
    answers: options.Answers = None,
    matching: options.Matching = None,
    variant: options.Variant = None,
    base_url: options.BaseUrl = None,
    verify_reuse: options.VerifyReuse = None,
    lock: options.Lock = None,
    human: Annotated[
        Path | None,
        typer.Option("--human", help="People's judgments of the boards (CSV or JSON Lines): human columns."),
    ] = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples of stories.")] = 10_000,
    out: Annotated[Path | None, typer.Option("--out", help="The folder; out/SUITE unless told.")] = None,
    as_json: options.Json = False,
) -> None:
    """Run every row of a suite over STORIES, and say what the differences support.

    Each distinct frame is drawn once and each distinct question asked once, however the rows overlap. The same command
    again does nothing; after a kill it goes on.
    """
    from katha.agents.context import load_plugins, require_memory
    from katha.agents.record import freeze
    from katha.app.cli.options import configuration
    from katha.app.cli.summary import end
    from katha.app.reports.ablation_page import write_ablation_report
    from katha.compass.modes import load_suite
    from katha.experiments.ablate.job import AblationJob
    from katha.experiments.ablate.story import run_ablation
    from katha.experiments.inputs import read_stories

    config = configuration(
        preset,
        planner=planner,
        planner_option=planner_option,
        renderer=renderer,
        renderer_option=renderer_option,
        bridge_renderer=bridge_renderer,
        bridge_option=bridge_option,
        memory=memory,
        judge=judge,
        judge_option=judge_option,
        similarity=similarity,
        seeds=seeds,
        panels=panels,
        size=size,
        style=style,
        answers=answers,
        matching=matching,
        variant=variant,
        base_url=base_url,
        verify_reuse=verify_reuse,
    )
    chosen = load_suite(suite).for_judges(config.judges)
    if rows is not None:
        chosen = chosen.only(tuple(part.strip() for part in rows.split(",") if part.strip()))
    require_memory(memory, [config.renderer, config.bridge_renderer, *(row.renderer for row in chosen.rows)])
    records = of_split(read_stories(stories), split, stories)
    plugins, frozen = load_plugins(config, options.budget_of(max_calls, max_cost)), None
    if lock is not None:
        config = freeze(config, lock, plugins, records)
        frozen = {"file": lock.name, "sha256": config.lock}
    job = AblationJob(
        records, chosen, config, given=plugins, lock=frozen, resamples=resamples, strict=rows is not None, human=human
    )
    with progress(len(records), quiet=as_json) as on_story:
        result = run_ablation(job, out or Path("out") / chosen.name, on_story=on_story)
    _tell(result.table.model_dump(mode="json"), result.out, write_ablation_report(result.out), as_json=as_json)
    for sentence in result.outcome.sentences():
        typer.echo(sentence, err=True)
    if result.status == "incomplete":
        typer.echo("Some boards or answers are missing. The same command asks for them again.", err=True)
    end(result.outcome)


def of_split(records: list[StoryRecord], split: str | None, source: str) -> list[StoryRecord]:
    """The stories of `split`; `test` holds public and hidden test together.

    Raises:
        UsageError: no story is in it.
    """
    from katha.compass.lock import TEST_SPLITS
    from katha.errors import UsageError

    if split is None:
        return records
    wanted = TEST_SPLITS if split == "test" else (split,)
    kept = [record for record in records if record.split in wanted]
    if not kept:
        known = sorted({record.split for record in records if record.split})
        there = f"There is {', '.join(known)}." if known else "No story names a split: see `katha bench split`."
        raise UsageError(f"{source!r} has no story of the split {split!r}.", hint=there)
    return kept


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Callable[[str, int], None] | None]:
    """A bar over the stories on standard error; None when `quiet` or when that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Running", total=total)
        yield lambda story, done: bar.update(task, completed=done, description=f"After {story}")


def _tell(table: Mapping[str, Any], out: Path, report: Path, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"out": str(out), "report": str(report), "table": table}, ensure_ascii=False))
        return
    typer.echo(_HEAD)
    for row in table["rows"]:
        typer.echo(_line(row))
    for row in table["rows"]:
        if row["human"] is not None:
            typer.echo(_people(row))
    budget = table["budget"]
    typer.echo(
        f"Drawn: {budget['frames_distinct']:,} frames (naively {budget['frames_naive']:,}). "
        f"Asked: {budget['questions_distinct']:,} questions (naively {budget['questions_naive']:,})."
    )
    for sentence in table["conclusion"]["sentences"]:
        typer.echo(f"  {sentence}")
    for note in table["notes"]:
        typer.echo(f"Note: {note}")
    typer.echo(f"Conclusion: {table['conclusion']['text']}")
    if not table["frozen"]:
        typer.echo("Unfrozen: the settings are not those of a lock (see `katha tune`).")
    typer.echo(f"Report: {report}")


def _line(row: Mapping[str, Any]) -> str:
    from katha.experiments.ablate.conclusions import p_words

    if row["not_run"] is not None:
        return f"  {row['mode']:<26} not run: {row['not_run']}"
    span = f"{row['ci95'][0]:+.1f} to {row['ci95'][1]:+.1f}" if row["ci95"] else "-"
    p = "-" if row["p_corrected"] is None else p_words(row["p_corrected"])
    change = "-" if row["delta_stg"] is None else f"{row['delta_stg']:+.1f}"
    frames = "-" if row["frames"] is None else f"{row['frames']:.2f}"
    numbers = f"{_points(row['image']):>7}{_points(row['stg']):>7}{change:>8}{span:>17}{p:>8}{frames:>8}"
    return f"  {row['mode']:<26}{numbers}{row['frames_rendered']:>8,}{row['questions_asked']:>8,}"


def _people(row: Mapping[str, Any]) -> str:
    """What people say of a row's boards, where they were asked."""
    from katha.app.reports.ablation_page import people_words

    return f"  {row['mode']}, people: {', '.join(people_words(row['human'])) or 'nobody judged these boards'}"


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
