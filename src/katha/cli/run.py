"""`katha run`: a story in, a repaired storyboard out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from katha.cli import options

__all__ = ["run"]


def run(
    story: Annotated[str, typer.Argument(help="A text file, a record (.json), or FILE.jsonl#story_id.")],
    planner: options.Planner = None,
    planner_option: options.PlannerOptions = None,
    adapter: options.Adapter = None,
    renderer: options.Renderer = None,
    renderer_option: options.RendererOptions = None,
    memory: options.Memory = None,
    bridge_renderer: options.BridgeRenderer = None,
    bridge_option: options.BridgeOptions = None,
    judge: options.Judges = None,
    judge_option: options.JudgeOptions = None,
    mode: options.Mode = None,
    seeds: options.Seeds = None,
    panels: options.Panels = None,
    size: options.Size = None,
    style: options.Style = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="Draw this plan (from `katha plan`, edited).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder; out/STORY_ID unless told.")] = None,
    review: Annotated[bool, typer.Option("--review", help="Stop before the repair is decided and ask you.")] = False,
    similarity: options.Similarity = None,
    lock: options.Lock = None,
    preset: options.Preset = None,
    answers: options.Answers = None,
    matching: options.Matching = None,
    variant: options.Variant = None,
    base_url: options.BaseUrl = None,
    verify_reuse: options.VerifyReuse = None,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    as_json: options.Json = False,
) -> None:
    """Draw STORY, find the transition that cannot be read from the images, and repair it.

    The same command again does nothing twice: what is drawn and asked is kept. After a kill it goes on.
    """
    from katha.agents import load_plugins, run_story
    from katha.agents.drawers import require_memory
    from katha.agents.freezing import freeze
    from katha.cli.inputs import configuration, read_plan
    from katha.cli.progress import live_view
    from katha.cli.report import write_report
    from katha.cli.review import reviewer
    from katha.cli.summary import tell
    from katha.stories import check_scene_count, load_story

    config = configuration(
        preset,
        planner=planner,
        planner_option=options.with_adapter(planner_option, adapter),
        renderer=renderer,
        renderer_option=renderer_option,
        bridge_renderer=bridge_renderer,
        bridge_option=bridge_option,
        memory=memory,
        judge=judge,
        judge_option=judge_option,
        mode=mode,
        seeds=seeds,
        panels=panels,
        size=size,
        style=style,
        similarity=similarity,
        review=review,
        answers=answers,
        matching=matching,
        variant=variant,
        base_url=base_url,
        verify_reuse=verify_reuse,
    )
    require_memory(memory, [config.renderer, config.bridge_renderer])
    record = load_story(story)
    given = read_plan(plan, record) if plan is not None else None
    if given is not None:
        config = config.model_copy(update={"panels": len(given.panels)})
    check_scene_count(record, config.panels)
    plugins = load_plugins(config, options.budget_of(max_calls, max_cost))
    if lock is not None:
        config = freeze(config, lock, plugins, [record])
    ask_person = reviewer() if config.review else None
    with live_view(quiet=as_json or config.review) as on_event:
        result = run_story(
            record,
            config,
            out if out is not None else Path("out") / record.story_id,
            plan=given,
            on_event=on_event,
            review=ask_person,
            plugins=plugins,
        )
    tell(result, write_report(result.out), as_json=as_json)
