"""`katha plan`: the plan of a story as JSON, to be read, edited and handed to `katha run --plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from katha.app.cli import options


def plan(
    story: Annotated[str, typer.Argument(help="A text file, a record (.json), or FILE.jsonl#story_id.")],
    planner: options.Planner = None,
    planner_option: options.PlannerOptions = None,
    adapter: options.Adapter = None,
    renderer: options.Renderer = None,
    renderer_option: options.RendererOptions = None,
    panels: options.Panels = None,
    style: options.Style = None,
    preset: options.Preset = None,
) -> None:
    """Print the plan of STORY: characters, one prompt a frame, and the transitions that must be readable.

    Change what you like (`katha plan STORY > plan.json`), then draw it with `katha run STORY --plan plan.json`.
    """
    from katha.agents.plan import make_plan
    from katha.config import resolve
    from katha.jsonio import dumps
    from katha.stories import check_scene_count, load_story

    flags = {
        "planner": planner,
        "planner_options": options.with_adapter(planner_option, adapter),
        "renderer": renderer,
        "renderer_options": renderer_option or None,
        "panels": panels,
        "style": style,
    }
    config = resolve(flags, preset=preset)
    record = load_story(story)
    check_scene_count(record, config.panels)
    typer.echo(dumps(make_plan(record, config).model_dump(mode="json")), nl=False)
