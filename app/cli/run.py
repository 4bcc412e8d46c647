"""The verbs of one story: run, plan, redo and report; and the person's side of `--review`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import katha
from katha.agents.state import ReviewChoice, ReviewRequest, RunResult
from katha.app.cli.console import echo_json, end, live_view, points, tell_needs, tell_outcome
from katha.app.cli.options import Adapter, DryRun, Given, Json, Lock, Story, options_from
from katha.app.needs import needs_of_run
from katha.app.reports.page import finished_run, headline, load_run, unscored
from katha.app.reports.run_page import write_report
from katha.app.reports.sheet import write_sheet
from katha.config import Settings, resolve
from katha.errors import UsageError
from katha.jsonio import dumps

_PLANNED = ("planner", "planner_options", "renderer", "renderer_options", "panels", "style")
_REDRAWN = ("renderer_options", "bridge_renderer_options", "memory")
_LINE = "  {:<14}{:>7}{:>10}{:>10}{:>10}{:>17}"


@options_from(Settings)
def run(
    story: Story,
    given: Given,
    adapter: Adapter = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="Draw this plan (from `katha plan`, edited).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder; out/STORY_ID unless told.")] = None,
    lock: Lock = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Draw STORY, find the transition that cannot be read from the images, and repair it.

    The same command again does nothing twice: what is drawn and asked is kept. After a kill it goes on.
    """
    changes = with_adapter(given, adapter)
    if dry_run:
        tell_needs(needs_of_run(story, given.preset, plan=plan, **changes), as_json, locked=lock is not None)
        return
    reviews = resolve(changes, preset=given.preset).review
    with live_view(quiet=as_json or reviews) as on_event:
        result = katha.run_story(
            Path(story),
            given.preset,
            out=out,
            plan=plan,
            lock=lock,
            budget=given.budget,
            on_event=on_event,
            reviewer=reviewer() if reviews else None,
            **changes,
        )
    _tell(result, as_json)


@options_from(Settings, only=_PLANNED, limits=False)
def plan(story: Story, given: Given, adapter: Adapter = None) -> None:
    """Print the plan of STORY: characters, one prompt a frame, and the transitions that must be readable.

    Change what you like (`katha plan STORY > plan.json`), then draw it with `katha run STORY --plan plan.json`.
    """
    made = katha.plan_story(Path(story), given.preset, **with_adapter(given, adapter))
    typer.echo(dumps(made.model_dump(mode="json")), nl=False)


@options_from(Settings, only=_REDRAWN, preset=False, limits=False)
def redo(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    frame: Annotated[int, typer.Option("--frame", min=1, help="Which frame of the storyboard, counted from 1.")],
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The seed to draw it with.")],
    given: Given,
    as_json: Json = False,
) -> None:
    """Draw one frame of RUN again with another seed, keep the old version, and judge again what depends on it.

    The options go over the run's own, where they change no picture: another rung of memory, a longer timeout.
    """
    with live_view(quiet=as_json) as on_event:
        result = katha.redo_frame(run, frame, seed, on_event=on_event, **given.changes)
    _tell(result, as_json)


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="Also draw the storyboard as one picture: .png, .jpg, .webp or .pdf.")
    ] = None,
) -> None:
    """Write RUN/report.html again and print where it is."""
    folder = finished_run(run)
    if sheet is not None:
        typer.echo(f"Sheet: {write_sheet(load_run(folder).board, folder, sheet)}")
    typer.echo(f"Report: {write_report(folder)}")


def with_adapter(given: Given, adapter: str | None) -> dict[str, object]:
    """What was given, with `--adapter` among the planner's options."""
    if adapter is None:
        return given.changes
    return {**given.changes, "planner_options": [*given.changes.get("planner_options", ()), f"adapter={adapter}"]}


def _tell(result: RunResult, as_json: bool) -> None:
    """Print the outcome of a run: the numbers before and after, what was decided, and where the report is."""
    scores = result.scores
    methods = {name: headline(scores, name) for name in scores.methods}
    decision, report = result.candidates.decision, result.out / "report.html"
    if as_json:
        echo_json(
            {
                "story_id": result.board.story_id,
                "out": str(result.out),
                "report": str(report),
                "mode": result.board.mode,
                "frames": len(result.board.frames),
                "accepted": decision.accepted,
                "weakest": decision.weakest,
                "reason": decision.reason,
                "reused": result.reused,
                "renewed": list(result.renewed),
                "coverage": result.coverage.model_dump(mode="json") if result.coverage is not None else None,
                "methods": {name: row._asdict() for name, row in methods.items()},
                "status": result.outcome.status(),
                "failures": result.outcome.failures(),
            }
        )
        end(result.outcome)
        return
    if result.coverage is not None:
        for line in (result.coverage.note, result.coverage.warning(), result.coverage.told()):
            if line:
                typer.echo(line)
    for line in result.renewed:
        typer.echo(line)
    scenes = sum(frame.kind == "scene" for frame in result.board.frames)
    typer.echo(_LINE.format("", "frames", "text", "image", "STG", "valid questions"))
    for name, row in methods.items():
        board = ("before", scenes) if name == "base" else (name, len(result.board.frames))
        numbers = map(points, (row.text, row.image, row.stg))
        typer.echo(_LINE.format(*board, *numbers, f"{row.n_valid} of {row.n_questions}"))
    for note in unscored(scores):
        typer.echo(note)
    typer.echo(decision.reason)
    tell_outcome(result.outcome)
    typer.echo(f"Report: {report}")
    end(result.outcome)


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

    console = Console()

    def say(words: str) -> None:
        console.print(words, highlight=False)

    first, second = request.weakest
    say(f"The weakest transition is {first} to {second}: {request.weakest_reason}")
    say(f"Board as it is: score {request.selected.score.total:.3f}")
    for candidate in request.inserted:
        frame = next(frame for frame in candidate.board.frames if frame.kind != "scene")
        mark = " (proposed)" if candidate.name == request.proposal else ""
        say(f"  {candidate.name}: score {candidate.score.total:.3f}{mark}  {request.panels / f'{frame.sha256}.png'}")
    say(f"The rule would {'accept' if request.accepts else 'reject'} it: {request.reason}")
    keys = ", ".join(f"[b]{key}[/b] {words}" for key, words in _KEYS.items())
    console.print(keys)
    key = Prompt.ask("Your choice", choices=list(_KEYS), default="a" if request.accepts else "r", console=console)
    if key == "s":
        names = [candidate.name for candidate in request.inserted]
        return ReviewChoice("choose", candidate=Prompt.ask("Which one", choices=names, console=console))
    if key == "e":
        say(f"Now: {request.prompt}")
        return ReviewChoice("edit", prompt=Prompt.ask("New prompt", default=request.prompt, console=console))
    return ReviewChoice("accept" if key == "a" else "reject")
