"""`katha tune`: choose the compass's settings on validation stories, and freeze them in a lock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from katha.app.cli import options


def tune(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, or a folder of them.")],
    split: Annotated[
        str | None, typer.Option("--split", help="Tune on this split; the others are frozen unseen.")
    ] = None,
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
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    settings: Annotated[int, typer.Option("--settings", min=1, help="How many settings are tried.")] = 10_000,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples of stories.")] = 2_000,
    lock: Annotated[Path, typer.Option("--lock", help="Where the lock is written.")] = Path("compass.lock.yaml"),
    out: Annotated[Path, typer.Option("--out", help="The folder of features and of the curve.")] = Path("out/tune"),
    as_json: options.Json = False,
) -> None:
    """Choose candidate count, weights and thresholds on validation STORIES, and freeze them with what they rest on.

    Stories are drawn and judged once; then thousands of settings a second are tried on what was measured. Where stories
    carry splits, `validation` is tuned on unless told.
    """
    from katha.agents.context import load_plugins, require_memory
    from katha.app.cli.ablate import of_split, progress
    from katha.app.cli.options import configuration
    from katha.app.reports.tuning_page import write_tuning_report
    from katha.experiments.inputs import read_stories
    from katha.experiments.tune import TuneJob
    from katha.experiments.tune import tune as run

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
    require_memory(memory, [config.renderer, config.bridge_renderer])
    records = read_stories(stories)
    wanted = split or ("validation" if any(record.split for record in records) else None)
    chosen = of_split(records, wanted, stories)
    inside = {record.story_id for record in chosen}
    job = TuneJob(
        chosen,
        [record for record in records if record.story_id not in inside],
        config,
        settings=settings,
        resamples=resamples,
        given=load_plugins(config, options.budget_of(max_calls, max_cost)),
    )
    with progress(len(chosen), quiet=as_json) as on_story:
        result = run(job, out, lock, on_story=on_story)
    report = write_tuning_report(out)
    if as_json:
        typer.echo(json.dumps({"lock": str(result.lock), "report": str(report), "tuning": result.chosen}))
        return
    _tell(result.chosen, result.lock, report)


def _tell(chosen: Mapping[str, Any], lock: Path, report: Path) -> None:
    typer.echo(f"Tried {chosen['tried']:,} settings on {chosen['stories']} stories in {chosen['seconds']:.1f} s.")
    for name, value in chosen["setting"].items():
        default = chosen["default"][name]
        typer.echo(f"  {name:<18}{value:>8g}" + (f"   (was {default:g})" if value != default else ""))
    gain = chosen["gain"]
    span = f", 95% {gain['ci95'][0]:+.1f} to {gain['ci95'][1]:+.1f}" if gain["ci95"] else ""
    typer.echo(f"STG {_points(chosen['stg'])} on these stories, {_points(chosen['default_stg'])} with the old settings")
    typer.echo(f"  difference {_points(gain['difference'])}{span}; the choice itself is not in this interval")
    typer.echo(
        f"  on stories that the choice did not see ({chosen['folds']} parts): {_points(chosen['cross_validated'])}"
    )
    from katha.app.reports.tuning_page import advice

    if warning := advice(chosen):
        typer.echo(f"  {warning}")
    if chosen["equally_good"] > 1:
        typer.echo(f"  {chosen['equally_good']:,} settings reach the same; the cheapest is taken")
    for story, reason in chosen["invalid_stories"].items():
        typer.echo(f"Left out: {story}: {reason}")
    for note in chosen["notes"]:
        typer.echo(f"Note: {note}")
    typer.echo(f"Lock: {lock}")
    typer.echo(f"Report: {report}")


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
