"""`katha redo`: a finished board changed by hand: another seed or prompt, takes, a part of a frame, back and forth, and
what differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from katha.agents.editor.edit_session import Edited
from katha.agents.editor.editing import (
    Version,
    diff_versions,
    edit_board,
    forward,
    go_to,
    list_versions,
    read_board,
    undo,
)
from katha.agents.editor.merging import merge_run
from katha.agents.editor.names import caption_of, name_takes
from katha.agents.folder import RunFolder
from katha.app.cli.changes import ChangeRequest, edits_of, flag_of, require_followed, sheets, targets
from katha.app.cli.console import echo_json, live_view
from katha.app.cli.options import GivenOptions, Json, options_from, with_recordings
from katha.app.cli.pictures import launch, show
from katha.app.cli.review import at_terminal, choose_take, tell_takes
from katha.app.cli.run import tell_result
from katha.app.reports.page import finished_run
from katha.app.reports.run_page import write_report
from katha.app.reports.sheet import write_sheet
from katha.app.shots import merge_shots
from katha.config import Settings, read_settings
from katha.errors import UsageError
from katha.jsonio import read_record
from katha.schema import Board, Plan

_REDRAWN = ("renderer_options", "bridge_renderer_options", "guide_options", "memory", "characters")
_FLAGS = dict(
    zip(
        _REDRAWN,
        ("--renderer-option", "--bridge-option", "--guide-option", "--memory", "--characters"),
        strict=True,
    )
)


@with_recordings
@options_from(Settings, only=_REDRAWN, preset=False, limits=False)
@options_from(ChangeRequest, into="asked", preset=False, limits=False)
def redo(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    asked: GivenOptions,
    given: GivenOptions,
    takes: Annotated[
        int | None, typer.Option("--takes", min=1, max=12, help="Draw so many takes of it to choose from.")
    ] = None,
    back: Annotated[
        bool | None,
        typer.Option(
            "--undo/--forward", help="Go back to the version before, or forward to the last one made from this one."
        ),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--to", help="Go to this version, or compare with it (--diff).")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the versions, each with a sheet of its frames.")] = False,
    differs: Annotated[
        bool, typer.Option("--diff", help="Say what differs from the version before, or from --to.")
    ] = False,
    shots: Annotated[
        Path | None,
        typer.Option("--shots", help="Take over what was changed in a shot list (katha export RUN --to shots)."),
    ] = None,
    merge: Annotated[
        Path | None, typer.Option("--merge", help="Take over what was changed in this copy of RUN.")
    ] = None,
    opened: Annotated[bool, typer.Option("--open", help="Open the pictures that the output names.")] = False,
    as_json: Json = False,
) -> None:
    """Change frames of RUN by hand, keep the version before, and judge again what depends on it.

    Without a frame an edited RUN/plan.json is drawn. --characters puts pictures on the characters' sheets, and draws
    their frames again. The options of renderers go over the run's own, where they change no picture: another rung of
    memory, a longer timeout.
    """
    ways = {"--list": listed, "--diff": differs, "--to": version is not None and not differs}
    ways |= {"--shots": shots is not None, "--merge": merge is not None}
    ways |= {"--forward" if back is False else "--undo": back is not None, "--takes": takes is not None}
    wanted = read_settings(ChangeRequest, asked.changes)
    told = [*map(flag_of, asked.changes), *(_FLAGS[name] for name in given.changes)]
    require_followed([way for way in ways if ways[way]], told)
    folder = finished_run(run)
    if listed:
        _list(folder, as_json, opened)
    elif differs:
        _diff(folder, version, as_json, opened)
    elif version is not None:
        _tell(go_to(folder, version), as_json)
    elif back is not None:
        _tell(undo(folder) if back else forward(folder), as_json)
    elif takes is not None:
        _takes(folder, _named(wanted.frame, "--takes"), takes, wanted.prompt, opened)
    elif shots is not None or merge is not None:
        _merge(folder, shots, merge, as_json)
    elif told == ["--find"]:
        _found(folder, wanted, as_json)
    else:
        _tell(_changed(folder, given.changes, wanted, quiet=as_json), as_json)


def _merge(run: Path, shots: Path | None, copy: Path | None, as_json: bool) -> None:
    """Take over what was changed in a shot list or in a copy of the run, and say what of it does not fit."""
    found = merge_shots(run, shots) if shots is not None else merge_run(run, finished_run(copy or run))
    for remark in found.remarks:
        typer.echo(remark, err=True)
    if not found.edits:
        typer.echo("Nothing else was changed there.", err=True)
        tell_result(RunFolder(run).load_result(reused=True), as_json)
        return
    with live_view(quiet=as_json) as on_event:
        done = edit_board(run, found.edits, on_event=on_event)
    _tell(done, as_json)


def _changed(run: Path, given: Mapping[str, Any], asked: ChangeRequest, *, quiet: bool) -> Edited:
    """Change the board as the frames that are named and the settings ask for it."""
    with live_view(quiet=quiet) as on_event:
        changes = {name: value for name, value in given.items() if name != "characters"}
        edits = [*sheets(run, given.get("characters")), *edits_of(run, asked)]
        return edit_board(run, edits, on_event=on_event, changes=changes)


def _named(frame: int | None, option: str) -> int:
    if frame is None:
        raise UsageError(f"{option} needs a frame.", hint=f"Name it: --frame 3 {option} ...")
    return frame


def _found(run: Path, asked: ChangeRequest, as_json: bool) -> None:
    """Print the frames of which the words are said."""
    view = read_board(run)
    rows = [(number, caption_of(view.board.frames[number - 1], view.plan)) for number in targets(run, asked)]
    if as_json:
        echo_json([{"frame": number, "caption": caption} for number, caption in rows])
        return
    for number, caption in rows:
        typer.echo(f"{number:>4}  {caption}")


def _tell(done: Edited, as_json: bool) -> None:
    """Write the report again and print what was done."""
    write_report(done.result.out)
    if not as_json:
        typer.echo(f"Version {done.version}.")
        for remark in done.remarks:
            typer.echo(remark)
    tell_result(done.result, as_json)


def _takes(run: Path, frame: int, count: int, prompt: str | None, opened: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if not at_terminal():
        paths, _ = tell_takes(console, run, frame, count, prompt)
        launch(paths if opened else [])
        typer.echo(f"Take one: katha redo {run} --frame {frame} --seed SEED" + (" --prompt PROMPT" if prompt else ""))
        return
    if choose_take(console, run, frame, count, prompt, opened):
        write_report(run)


def _list(run: Path, as_json: bool, opened: bool) -> None:
    """Print the versions, newest last, each with the sheet of its frames."""
    from rich.console import Console

    versions, console = list_versions(run), Console()
    sheets = [_sheet(run, item) for item in versions]
    if as_json:
        rows = zip(versions, sheets, strict=True)
        echo_json(
            [
                {"version": item.name, "parent": item.parent, "says": item.says, "score": item.score}
                | {"current": item.current, "sheet": str(sheet)}
                for item, sheet in rows
            ]
        )
        return
    for item, sheet in zip(versions, sheets, strict=True):
        mark, parent = "*" if item.current else " ", f" (from {item.parent})" if item.parent else ""
        score = "" if item.score is None else f"  score {item.score:.3f}"
        typer.echo(f"{mark} {item.name}{score}  {item.says}{parent}  {sheet}")
        show(console, [sheet])
    launch(sheets if opened else [])


def _sheet(run: Path, version: Version) -> Path:
    """The contact sheet of a version, drawn once."""
    path = run / "versions" / version.name / "sheet.png"
    if not path.is_file():
        place = RunFolder(run).version_folder(version.name)
        board, plan = read_record(place / "storyboard.json", Board), read_record(place / "plan.json", Plan)
        write_sheet(board, run, path, plan)
    return path


def _diff(run: Path, other: str | None, as_json: bool, opened: bool) -> None:
    """Print what differs from another version, with the pictures before and after."""
    found = diff_versions(run, other)
    if as_json:
        echo_json([vars(item) for item in found])
        return
    if not found:
        typer.echo("Nothing differs.")
    told = [
        (f"{_plain(item.what)}_{when}", one)
        for item in found
        for when, one in zip(("before", "after"), item.pictures or (), strict=False)
        if one is not None
    ]
    paths = name_takes(RunFolder(run), [(at, name, one) for at, (name, one) in enumerate(told, 1)]) if told else []
    shown = iter(paths)
    for item in found:
        pictures = [one for one in item.pictures or () if one is not None]
        same = bool(pictures) and item.before == item.after
        words = item.after if same else f"{item.before or '-'} -> {item.after or '-'}"
        typer.echo(f"{item.what}{', another picture' if same else ''}: {words}")
        if pictures:
            typer.echo(f"    {' -> '.join(str(path) for path in islice(shown, len(pictures)))}")
    launch(paths if opened else [])


def _plain(what: str) -> str:
    """Return what differs, as part of a file's name."""
    return "_".join(re.findall(r"[^\W_]+", what)).lower()
