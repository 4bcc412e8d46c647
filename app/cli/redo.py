"""`katha redo`: a finished board changed by hand: another seed or prompt, takes, a part of a frame, back and forth, and
what differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, Field

from katha.agents.editor.editing import (
    Version,
    diff_versions,
    edit_board,
    forward,
    go_to,
    keep_drawing,
    keep_picture,
    list_versions,
    read_board,
    undo,
)
from katha.agents.editor.edits import AmendFrame, ChangeCharacter, ChangeFrame, Edit, GivePicture, TakeFrame
from katha.agents.editor.names import name_takes
from katha.agents.editor.steps import Edited
from katha.agents.folder import RunFolder
from katha.agents.frames import next_seed
from katha.agents.pictures import rectangle
from katha.app.cli.console import echo_json, live_view
from katha.app.cli.options import Given, Json, options_from, with_recordings
from katha.app.cli.pictures import launch, show
from katha.app.cli.review import at_terminal, choose_take, tell_takes
from katha.app.cli.run import tell_result
from katha.app.reports.page import finished_run
from katha.app.reports.run_page import write_report
from katha.app.reports.sheet import write_sheet
from katha.config import Settings, read_settings
from katha.errors import UsageError
from katha.jsonio import read_bytes, read_record
from katha.pictures import read_picture
from katha.renderers.references import CharacterPictures
from katha.schema import Board, Plan

_REDRAWN = ("renderer_options", "bridge_renderer_options", "guide_options", "memory", "characters")
_FLAGS = dict(
    zip(
        _REDRAWN,
        ("--renderer-option", "--bridge-option", "--guide-option", "--memory", "--characters"),
        strict=True,
    )
)
_RECTANGLE = re.compile(r"\s*,\s*".join([r"(\d{1,3}(?:\.\d+)?)"] * 4))


class _Asked(BaseModel):
    """What is to be drawn anew, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frame: int | None = Field(default=None, ge=1, description="Which frame of the storyboard, counted from 1.")
    seed: int | None = Field(default=None, ge=0, lt=2**32, description="The seed to draw it with.")
    prompt: str | None = Field(default=None, description="Draw it from these words instead.")
    mask: str | None = Field(
        default=None,
        description="Draw only this part of it anew: LEFT,TOP,WIDTH,HEIGHT in percent of the picture; or a picture "
        "that is white there.",
    )
    svg: Path | None = Field(default=None, description="Put this drawing of your own (SVG) into it.")
    change: str | None = Field(
        default=None, description="Have the model that drew it change its drawing as these words say, and nothing else."
    )
    part: str = Field(default="", description="The id of the group in its SVG that --change is about.")


@with_recordings
@options_from(Settings, only=_REDRAWN, preset=False, limits=False)
@options_from(_Asked, into="asked", preset=False, limits=False)
def redo(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    asked: Given,
    given: Given,
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
    opened: Annotated[bool, typer.Option("--open", help="Open the pictures that are told of.")] = False,
    as_json: Json = False,
) -> None:
    """Change a frame of RUN by hand, keep the version before, and judge again what depends on it.

    Without --frame an edited RUN/plan.json is drawn. --characters puts pictures on the characters' sheets, and draws
    their frames again. The options of renderers go over the run's own, where they change no picture: another rung of
    memory, a longer timeout.
    """
    ways = {"--list": listed, "--diff": differs, "--to": version is not None and not differs}
    ways |= {"--forward" if back is False else "--undo": back is not None, "--takes": takes is not None}
    drawn = read_settings(_Asked, asked.changes)
    told = [*(f"--{name}" for name in asked.changes), *(_FLAGS[name] for name in given.changes)]
    _require_followed([way for way in ways if ways[way]], told)
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
        _takes(folder, _named(drawn.frame, "--takes"), takes, drawn.prompt, opened)
    else:
        _tell(_changed(folder, given.changes, drawn, quiet=as_json), as_json)


def _changed(run: Path, given: Mapping[str, Any], asked: _Asked, *, quiet: bool) -> Edited:
    """Change the board as the frame that is named and the settings ask for it."""
    with live_view(quiet=quiet) as on_event:
        changes = {name: value for name, value in given.items() if name != "characters"}
        edits = [*_sheets(run, given.get("characters"))]
        if asked.svg is not None:
            number = _named(asked.frame, "--svg")
            edits.append(GivePicture(frame=number, picture=keep_drawing(run, read_bytes(asked.svg), number)))
        elif asked.mask is not None:
            edits.append(_part(run, _named(asked.frame, "--mask"), asked.seed, asked.prompt, asked.mask))
        elif asked.change is not None:
            edits.append(AmendFrame(frame=_named(asked.frame, "--change"), words=asked.change, part=asked.part))
        elif asked.frame is not None:
            edits.append(_edit(asked.frame, asked.seed, asked.prompt))
        return edit_board(run, edits, on_event=on_event, changes=changes)


def _named(frame: int | None, option: str) -> int:
    if frame is None:
        raise UsageError(f"{option} needs a frame.", hint=f"Name it: --frame 3 {option} ...")
    return frame


def _part(run: Path, number: int, seed: int | None, prompt: str | None, mask: str) -> Edit:
    """The edit that draws a part of a frame anew; the mask is kept in the run, as the desk keeps it."""
    frames, found = read_board(run).board.frames, _RECTANGLE.fullmatch(mask.strip())
    if number > len(frames):
        raise UsageError(f"There is no frame {number}.", hint=f"The storyboard has frames 1 to {len(frames)}.")
    if found is not None:
        png = RunFolder(run).panel(frames[number - 1].sha256)
        if png is None:
            raise UsageError(f"The picture of frame {number} is lost.", hint=f"Bring it back: katha run {run}.")
        left, top, width, height = map(float, found.groups())
        data = rectangle(png, left, top, width, height)
    elif Path(mask).is_file():
        data = read_picture(Path(mask), f"The mask {mask!r}")
    else:
        said = f"--mask {mask!r} is neither four numbers nor a picture."
        raise UsageError(said, hint="Write LEFT,TOP,WIDTH,HEIGHT in percent: --mask 50,0,50,100.")
    kept = keep_picture(run, data, "The mask")
    return TakeFrame(
        frame=number, seed=next_seed(frames[number - 1].seed) if seed is None else seed, prompt=prompt, mask=kept
    )


def _edit(frame: int, seed: int | None, prompt: str | None) -> Edit:
    if prompt is not None:
        return ChangeFrame(frame=frame, prompt=prompt, seed=seed)
    if seed is None:
        raise UsageError(
            f"Nothing is to change in frame {frame}.",
            hint="Give --seed, --prompt, --change, --takes, --mask or --svg.",
        )
    return TakeFrame(frame=frame, seed=seed)


def _sheets(run: Path, folder: Path | None) -> list[Edit]:
    """The edits that put the pictures of a folder on the sheets of the characters that they are named after."""
    if folder is None:
        return []
    cast, pictures = read_board(run).plan.characters, CharacterPictures(folder)
    if (stray := pictures.unused(cast)) is not None or not cast:
        raise UsageError(stray or "This board has no characters.", hint="Name each picture after its character.")
    kept = {item.name: keep_picture(run, pictures[item.name]) for item in cast if item.name in pictures}
    return [ChangeCharacter(name=name, reference=sha256) for name, sha256 in kept.items()]


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
        score = "-" if item.score is None else f"{item.score:.3f}"
        typer.echo(f"{mark} {item.name}  score {score}  {item.says}{parent}  {sheet}")
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
    """What differs, as part of a file's name."""
    return "_".join(re.findall(r"[^\W_]+", what)).lower()


def _require_followed(ways: list[str], changes: list[str]) -> None:
    """Refuse options that cannot be followed together: one of them would be left out without a word.

    Raises:
        UsageError: two ways at once, a change beside a way that makes none, or a change of no frame.
    """
    if len(ways) > 1:
        raise UsageError(f"{ways[0]} and {ways[1]} are two commands.", hint="Give one of them.")
    allowed = changes if not ways else ["--frame", "--prompt"] if ways == ["--takes"] else []
    stray = [flag for flag in changes if flag not in allowed]
    if stray and "--mask" in stray and ways == ["--takes"]:
        raise UsageError("--takes draws whole frames, and --mask a part of one.", hint="Leave one of them out.")
    if "--svg" in changes and len(changes) > 2:
        raise UsageError("--svg is a picture as it is.", hint="Give --frame and --svg alone.")
    if "--part" in changes and "--change" not in changes:
        raise UsageError("--part says what --change is about.", hint='Add --change "the hat is red".')
    beside = next((flag for flag in changes if flag in ("--seed", "--prompt", "--mask")), None)
    if "--change" in changes and beside is not None:
        raise UsageError(f"--change alters a drawing, and {beside} makes a new one.", hint="Leave one of them out.")
    if stray:
        raise UsageError(f"{ways[0]} takes no {stray[0]}.", hint="Give one command for each.")
    unnamed = [
        flag
        for flag in changes
        if flag in ("--seed", "--prompt", "--mask", "--svg", "--change") and "--frame" not in changes
    ]
    if unnamed and not ways:
        raise UsageError(f"{unnamed[0]} needs a frame.", hint=f"Name it: --frame 3 {unnamed[0]} ...")
