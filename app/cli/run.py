"""The verbs of one story: run, plan and report; `redo` and the person's side of `--review` have their own modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import katha
from katha.agents.folder import RunFolder
from katha.agents.spending import spent_told
from katha.agents.state import ReviewChoice, ReviewRequest, RunResult
from katha.app.cli.console import (
    echo_json,
    end,
    live_view,
    points,
    progress_bar,
    tell_choice,
    tell_needs,
    tell_outcome,
    workers_view,
)
from katha.app.cli.here import taken_here
from katha.app.cli.options import ANY_HELP, Adapter, DryRun, GivenOptions, Json, Lock, options_from, with_recordings
from katha.app.drawing import read_story, resume_run, settings_for
from katha.app.imports import FINDS, NEEDED, import_board
from katha.app.reports.page import finished_run, guessed, load_run, own_numbers, read_back, unjudged, unscored
from katha.app.reports.run_page import write_report
from katha.app.reports.sheet import write_sheet
from katha.compass.effects import effect_of, is_stale, stale_told
from katha.config import MOST_PANELS, Settings, split_settings
from katha.errors import StoreError, UsageError
from katha.experiments.inputs.stories import RunOptions
from katha.intake import noted
from katha.jsonio import dumps, write_bytes_atomic
from katha.schema import Coverage, ReadBack, StoryRecord
from katha.stories import holds_several, load_stories

if TYPE_CHECKING:
    from katha.experiments.needs import Needs

_PLANNED = ("planner", "planner_options", "renderer", "renderer_options", "base_url", "panels", "style")
_LINE = "  {:<14}{:>7}{:>10}{:>10}{:>10}{:>17}"
_NAMED = 8
Board = Annotated[
    Path | None,
    typer.Option("--import", help="Judge and repair this board: a .storyboarder file, a PDF, or a folder of pictures."),
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order", help="With --import: what its pictures' names are ordered by, a word (shot), first, last, names."
    ),
]
GivenPlan = Annotated[
    Path | None,
    typer.Option("--plan", help="Draw this plan (from `katha plan`, edited); of many stories: its --out."),
]


@with_recordings
@options_from(Settings)
@options_from(RunOptions, into="options", preset=False, limits=False)
def run(
    given: GivenOptions,
    options: GivenOptions,
    story: Annotated[
        str | None,
        typer.Argument(help=f"{ANY_HELP} The folder of a run goes on with it. With --import it may be left out."),
    ] = None,
    adapter: Adapter = None,
    plan: GivenPlan = None,
    board: Board = None,
    order: Order = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run's folder; out/STORY_ID unless told.")] = None,
    lock: Lock = None,
    dry_run: DryRun = False,
    opened: Annotated[bool, typer.Option("--open", help="Open the pictures that --review asks about.")] = False,
    as_json: Json = False,
) -> None:
    """Draw STORY, find the transition that cannot be read from the images, and repair it.

    The same command again does nothing twice: what is drawn and asked is kept. After a kill it goes on. Of many stories
    each has its own folder, OUT/STORY_ID. --import takes a board that is drawn already; without --bridge-renderer only
    its weakest transition is found.
    """
    changes = with_adapter(given, adapter)
    if story is not None and _is_run(story):
        if changes or options.changes or dry_run or any((given.preset, given.budget, plan, board, out, lock)):
            hint = "Name its folder alone; to draw its story otherwise, name the story and another --out."
            raise UsageError("A run is gone on with as it was begun.", hint=hint)
        _go_on(Path(story), as_json, opened)
        return
    if story is not None and board is None and lock is None:
        given, changes = taken_here(given, changes, story, plan=plan, counted=dry_run, quiet=as_json)
    if story is not None and holds_several(story):
        if board is not None or _reviews(False, opened):
            raise UsageError("--import is for one story.", hint="Name it as FILE.jsonl#STORY_ID.")
        _run_many(story, given, {**changes, **options.changes}, out or Path("out"), plan, lock, dry_run, as_json)
        return
    _refuse_for_one(options.changes, opened=opened and dry_run)
    told, changes = _told(story, board, given, changes, plan, order)
    if dry_run:
        tell_needs(_needs(told, given, plan, changes), as_json, locked=lock is not None)
        return
    reviews = _reviews(settings_for(given.preset, changes).review, opened)
    if given.preset is not None and not as_json:
        tell_choice(_needs(told, given, plan, changes))
    with live_view(quiet=as_json or reviews) as on_event:
        result = katha.run_story(
            told,
            given.preset,
            out=out,
            plan=plan,
            lock=lock,
            budget=given.budget,
            on_event=on_event,
            reviewer=_reviewer(opened) if reviews else None,
            **changes,
        )
    _tell_reviewed(result, reviews, as_json, opened, NEEDED if board and result.board.mode == FINDS else "")
    if not as_json and result.coverage is None:
        _tell_intake(told, given, changes)


def _reviewer(opened: bool) -> Callable[[ReviewRequest], ReviewChoice]:
    from katha.app.cli.review import reviewer  # and all that changes boards, for those who are asked alone

    return reviewer(opened)


def _reviews(reviews: bool, opened: bool) -> bool:
    """Return whether a person is asked.

    Raises:
        UsageError: pictures are to be opened, and there is no review.
    """
    if opened and not reviews:
        raise UsageError("--open opens the pictures of a review.", hint="Give --review too, or leave --open out.")
    return reviews


def _is_run(story: str) -> bool:
    """Return whether it is the folder of a run, and no story."""
    try:
        return (Path(story) / "run.json").is_file()
    except (OSError, ValueError):  # a story's own words are no path
        return False


def _go_on(run: Path, as_json: bool, opened: bool) -> None:
    """Go on with a run that was begun here or at the desk, from what is in its folder."""
    from katha.app.cli.review import at_terminal

    state = RunFolder(run).read()
    asks = at_terminal() and state is not None and bool(state.config.get("review"))
    reviews = _reviews(asks, opened)
    with live_view(quiet=as_json or reviews) as on_event:
        result = resume_run(run, on_event=on_event, reviewer=_reviewer(opened) if reviews else None)
    _tell_reviewed(result, reviews, as_json, opened)


def _tell_reviewed(result: RunResult, reviews: bool, as_json: bool, opened: bool, note: str = "") -> None:
    """Go through the board of a run with review, and print its outcome."""
    if reviews and not as_json:
        from katha.app.cli.review import review_board

        review_board(result.out, opened)
        result = RunFolder(result.out).load_result(reused=True)
    if note and not as_json:
        typer.echo(note)
    tell_result(result, as_json)


def _told(
    story: str | None,
    board: Path | None,
    given: GivenOptions,
    changes: dict[str, object],
    plan: Path | None,
    order: str | None,
) -> tuple[StoryRecord | Path, dict[str, object]]:
    """Return the story of the command and its settings: a board that is drawn already brings its own."""
    if board is not None:
        taken = import_board(board, story, given.preset, changes, plan, order)
        if taken.order:
            typer.echo(f"Order: {taken.order}", err=True)
        return taken.story, taken.changes
    if order is not None:
        raise UsageError("--order is of the pictures of --import.", hint="Leave it out.")
    if story is None:
        raise UsageError("There is no STORY.", hint="Name a text or record, or give a board with --import.")
    return Path(story), changes


def _run_many(
    stories: str,
    given: GivenOptions,
    changes: dict[str, object],
    out: Path,
    plans: Path | None,
    lock: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run every story, print each outcome, and exit with 1 if any has no board or lacks answers."""
    if dry_run:
        from katha.app.needs import needs_of_runs

        tell_needs(needs_of_runs(stories, given.preset, plans=plans, **changes), as_json, locked=lock is not None)
        return
    if Path(stories).is_dir():
        _, rest = split_settings(RunOptions, changes)
        mapping = settings_for(given.preset, rest).mapping
        _tell_stories([record.story_id for record in load_stories(stories, mapping)])
    with progress_bar("Running", "After {}", quiet=as_json) as on_progress:
        ends = katha.run_stories(
            stories,
            given.preset,
            out=out,
            plans=plans,
            lock=lock,
            budget=given.budget,
            on_progress=on_progress,
            on_workers=workers_view(quiet=as_json),
            **changes,
        )
    if as_json:
        echo_json({"out": str(out), "stories": [{**asdict(end), "out": str(end.out)} for end in ends]})
    else:
        for end in ends:
            typer.echo(f"  {end.story_id}: {end.failed or f'{end.frames} frames. {end.decision}'}")
        failed, whole = sum(bool(end.failed) for end in ends), sum(end.status == "finished" for end in ends)
        lacking = len(ends) - whole - failed
        typer.echo(f"{len(ends):,} stories: {whole:,} finished, {lacking:,} lack answers, {failed:,} failed.")
        typer.echo(f"Folders: {out}{os.sep}")
    if any(end.status != "finished" for end in ends):
        raise typer.Exit(1)


def _tell_stories(ids: Sequence[str]) -> None:
    """Say which stories a folder holds, before any is drawn: none is lost without a word."""
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    typer.echo(f"{len(ids):,} stories: {', '.join(ids[:_NAMED])}{more}.", err=True)


def _needs(story: StoryRecord | Path, given: GivenOptions, plan: Path | None, changes: dict[str, object]) -> Needs:
    """Return what the run would take at most."""
    from katha.app.needs import needs_of_run  # with all studies: a run that counts nothing shall not read them

    return needs_of_run(story, given.preset, plan=plan, seen=None, **changes)


@with_recordings
@options_from(Settings, only=_PLANNED, limits=False)
@options_from(RunOptions, into="options", preset=False, limits=False)
def plan(
    story: Annotated[str, typer.Argument(help=ANY_HELP)],
    given: GivenOptions,
    options: GivenOptions,
    adapter: Adapter = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Of many stories: their folder; out/plans unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the plan of STORY: characters, one prompt a frame, and the transitions that must be readable.

    Change what you like (`katha plan STORY > plan.json`), then draw it with `katha run STORY --plan plan.json`. Of many
    stories each plan is a file, OUT/STORY_ID/plan.json; what is there is kept.
    """
    given, changes = taken_here(given, with_adapter(given, adapter), story, plans_only=True, quiet=True)
    if holds_several(story):
        _plan_many(story, given, {**changes, **options.changes}, out or Path("out/plans"), as_json)
        return
    _refuse_for_one({**options.changes, **({"out": out} if out is not None else {})})
    with live_view(quiet=False) as on_event:
        made = katha.plan_story(Path(story), given.preset, on_event=on_event, **changes)
    typer.echo(dumps(made.model_dump(mode="json")), nl=False)
    _tell_coverage(made.coverage, err=True)
    if made.coverage is None:
        _tell_intake(Path(story), given, changes)


@with_recordings
@options_from(Settings, only=(*_PLANNED, "size"), limits=False)
def cast(
    story: Annotated[str, typer.Argument(help=ANY_HELP)],
    given: GivenOptions,
    adapter: Adapter = None,
    plan: GivenPlan = None,
    out: Annotated[Path | None, typer.Option("--out", help="The SVG; out/STORY_ID.cast.svg unless told.")] = None,
    views: Annotated[
        bool,
        typer.Option("--views", help="STORY is a finished run: draw its cast from all sides, for --to cast."),
    ] = False,
    who: Annotated[
        list[str] | None, typer.Option("--of", help="With --views: of this character alone. Several may be named.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the cast sheet of STORY as SVG, and no frame: change it, and draw boards from it.

    With --views, draw the cast of STORY, a finished run, from all sides: `katha export RUN --to cast` makes sheets.

    `katha run STORY --renderer-option cast=FILE` draws from it, and so do later stories of the same heroes. A file that
    is there is not written over.
    """
    if views or who:
        _draw_views(Path(story), who or [], given, as_json)
        return
    given, changes = taken_here(given, with_adapter(given, adapter), story, plans_only=True, quiet=as_json)
    record = read_story(story, settings_for(given.preset, changes).mapping)
    target = out or Path("out") / f"{record.story_id}.cast.svg"
    if target.exists():
        raise UsageError(f"{str(target)!r} is there already.", hint="Name another --out, or take it away.")
    with live_view(quiet=as_json) as on_event:
        sheet = katha.draw_cast(record, given.preset, plan=plan, on_event=on_event, **changes)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomic(target, sheet)
    except OSError as error:
        raise StoreError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from error
    if as_json:
        echo_json({"out": str(target), "bytes": len(sheet)})
    else:
        typer.echo(f"Cast: {target}")


def _draw_views(run: Path, names: list[str], given: GivenOptions, as_json: bool) -> None:
    """Draw the cast of a finished run from all sides, and say where the pictures are."""
    found = katha.draw_views(run, names, **given.changes)
    if as_json:
        echo_json(
            [{"name": one.name, "views": {view: str(path) for view, path in one.pictures.items()}} for one in found]
        )
        return
    for one in found:
        typer.echo(f"{one.name}: {', '.join(str(path) for path in one.pictures.values())}")
    typer.echo(f"Sheets: katha export {run} --to cast")


def _tell_coverage(coverage: Coverage | None, *, err: bool = False) -> None:
    """Say what kind of text it is, whether much of it is left out, and which sentences are not drawn."""
    for line in (coverage.note, coverage.warning(), coverage.told()) if coverage is not None else ():
        if line:
            typer.echo(line, err=err)
    if coverage is not None and coverage.low and coverage.drawn < min(coverage.visible, MOST_PANELS):
        typer.echo(f"Draw more of them: --panels {min(coverage.visible, MOST_PANELS)}.", err=err)


def _tell_intake(story: StoryRecord | Path, given: GivenOptions, changes: Mapping[str, object]) -> None:
    """Say what the story's file was read as, and what of it was not read; where there is coverage, that says it."""
    for line in noted(read_story(story, settings_for(given.preset, changes).mapping)):
        typer.echo(line, err=True)


def _plan_many(stories: str, given: GivenOptions, changes: dict[str, object], out: Path, as_json: bool) -> None:
    """Plan every story, print where its plan is, and exit with 1 if any has none."""
    with progress_bar("Planning", "After {}", quiet=as_json) as on_progress:
        plans = katha.plan_stories(
            stories, given.preset, out=out, on_progress=on_progress, on_workers=workers_view(quiet=as_json), **changes
        )
    if as_json:
        rows = [
            {"story_id": found.story_id, "plan": str(found.path), "reused": found.reused, "failed": found.failed}
            for found in plans
        ]
        echo_json({"out": str(out), "stories": rows})
    else:
        for found in plans:
            told = f"{len(found.plan.panels)} panels, {found.path}" if found.plan is not None else found.failed
            typer.echo(f"  {found.story_id}: {told}")
    if any(found.plan is None for found in plans):
        raise typer.Exit(1)


def _refuse_for_one(given: Mapping[str, object], *, opened: bool = False) -> None:
    if opened:
        raise UsageError("--open does nothing with --dry-run: nobody is asked.", hint="Leave one of them out.")
    if given:
        raise UsageError(
            f"--{next(iter(given))} is for many stories.", hint="Name a JSON Lines file or a folder of them."
        )


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="Also draw the storyboard as one picture: .png, .jpg, .webp or .pdf.")
    ] = None,
    font: Annotated[
        list[Path] | None, typer.Option("--font", help="A TrueType file that --sheet writes with first; repeat it.")
    ] = None,
) -> None:
    """Write RUN/report.html again and print where it is."""
    folder = finished_run(run)
    if font and sheet is None:
        raise UsageError("--font is of the sheet.", hint="Give --sheet too, or leave --font out.")
    if sheet is not None:
        made = load_run(folder)
        typer.echo(f"Sheet: {write_sheet(made.board, folder, sheet, made.plan, font or ())}")
    typer.echo(f"Report: {write_report(folder)}")


def _counts(found: Mapping[str, ReadBack | None]) -> dict[str, object]:
    return {name: told.model_dump(mode="json") if told is not None else None for name, told in found.items()}


def with_adapter(given: GivenOptions, adapter: str | None) -> dict[str, object]:
    """Return what was given, with `--adapter` among the planner's options."""
    if adapter is None:
        return given.changes
    return {**given.changes, "planner_options": [*given.changes.get("planner_options", ()), f"adapter={adapter}"]}


def tell_result(result: RunResult, as_json: bool) -> None:
    """Print the outcome of a run: the numbers before and after, what was decided, and where the report is."""
    scores = result.scores
    methods = {name: own_numbers(scores, name) for name in scores.methods}
    decision, report, found = result.candidates.decision, result.out / "report.html", read_back(scores)
    effect, state = effect_of(result.candidates), RunFolder(result.out).read()
    spent = state.spent if state is not None else 0.0
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
                "notes": list(result.notes),
                "coverage": result.coverage.model_dump(mode="json") if result.coverage is not None else None,
                "methods": {name: row._asdict() for name, row in methods.items()},
                **({"effect": effect.record()} if effect is not None else {}),
                "spent": spent,
                "stale": [frame.index for frame in result.board.frames if is_stale(frame)],
                **({"read_back": _counts(found)} if found is not None else {}),
                "status": result.outcome.status(),
                "failures": result.outcome.failures(),
            }
        )
        end(result.outcome)
        return
    _tell_coverage(result.coverage)
    for line in (*result.renewed, *result.notes):
        typer.echo(line)
    scenes = sum(frame.kind == "scene" for frame in result.board.frames)
    if found is None and not unjudged(scores):
        typer.echo(_LINE.format("", "frames", "text", "image", "STG", "valid questions"))
        for name, row in methods.items():
            board = ("before", scenes) if name == "base" else (name, len(result.board.frames))
            numbers = map(points, (row.text, row.image, row.stg))
            typer.echo(_LINE.format(*board, *numbers, f"{row.n_valid} of {row.n_questions}"))
    for name, told in (found or {}).items():
        said = told.told() if told is not None else "these pictures cannot be read with this judge"
        typer.echo(f"  {'before' if name == 'base' else name:<14}{said}")
    for note in (*(guessed(scores) if found is None else ()), *unscored(scores)):
        typer.echo(note)
    typer.echo(decision.reason)
    more = [
        effect.told() if effect is not None and not unjudged(scores) else "",
        *stale_told(result.board, str(result.out)),
    ]
    for line in filter(None, (*more, spent_told(spent))):
        typer.echo(line)
    tell_outcome(result.outcome)
    typer.echo(f"Report: {report}")
    end(result.outcome)
