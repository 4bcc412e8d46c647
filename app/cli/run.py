"""Run `katha run`: a story in, a repaired storyboard out; with `--review` a person decides on the bridge."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from katha.app.cli import options
from katha.errors import UsageError

if TYPE_CHECKING:
    from katha.agents.state import ReviewChoice, ReviewRequest

# ---
# `katha run`: a story in, a repaired storyboard out.


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
    from katha.agents.context import load_plugins, require_memory
    from katha.agents.record import freeze
    from katha.agents.run import run_story
    from katha.app.cli.options import configuration, read_plan
    from katha.app.cli.progress import live_view
    from katha.app.cli.summary import tell
    from katha.app.reports.run_page import write_report
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


# ---
# The person's side of `--review`: see the bridge that is proposed, and decide.


_KEYS = {"a": "accept", "r": "reject", "s": "another seed", "e": "edit the prompt"}


def reviewer() -> Callable[[ReviewRequest], ReviewChoice]:
    """The callback that asks the person at the terminal.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--review asks a person, and this is not a terminal.", hint="Leave --review out.")
    return _ask


def _ask(request: ReviewRequest) -> ReviewChoice:
    from rich.console import Console
    from rich.prompt import Prompt

    from katha.agents.state import ReviewChoice

    console = Console()
    _show(console.print, request)
    keys = ", ".join(f"[b]{key}[/b] {words}" for key, words in _KEYS.items())
    console.print(keys)
    key = Prompt.ask("Your choice", choices=list(_KEYS), default="a" if request.accepts else "r", console=console)
    if key == "s":
        names = [candidate.name for candidate in request.inserted]
        return ReviewChoice("choose", candidate=Prompt.ask("Which one", choices=names, console=console))
    if key == "e":
        console.print(f"Now: {request.prompt}", highlight=False)
        return ReviewChoice("edit", prompt=Prompt.ask("New prompt", default=request.prompt, console=console))
    return ReviewChoice("accept" if key == "a" else "reject")


def _show(say: Callable[..., None], request: ReviewRequest) -> None:
    first, second = request.weakest
    say(f"The weakest transition is {first} to {second}: {request.weakest_reason}", highlight=False)
    say(f"Board as it is: score {request.selected.score.total:.3f}", highlight=False)
    for candidate in request.inserted:
        frame = next(frame for frame in candidate.board.frames if frame.kind != "scene")
        mark = " (proposed)" if candidate.name == request.proposal else ""
        picture = request.panels / f"{frame.sha256}.png"
        say(f"  {candidate.name}: score {candidate.score.total:.3f}{mark}  {picture}", highlight=False)
    say(f"The rule would {'accept' if request.accepts else 'reject'} it: {request.reason}", highlight=False)
