"""`katha cut`: a comic, a picture book or a film as the frames of a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from katha.app.cli.console import echo_json
from katha.app.cli.options import GivenOptions, Json, options_from
from katha.app.cutting.cut import RECORD, CutOptions
from katha.app.cutting.cut import cut as cut_board
from katha.app.reports.cut_page import CutPreview
from katha.errors import UsageError


@options_from(CutOptions, preset=False, limits=False)
def cut(
    source: Annotated[Path, typer.Argument(help="A folder of pages, a picture, a CBZ, a PDF, or a film.")],
    given: GivenOptions,
    out: Annotated[Path, typer.Option("--out", help="The board's folder, named as its story: boards/STORY_ID.")],
    as_json: Json = False,
) -> None:
    """Cut a comic, a picture book or a film into the frames of a board, to be previewed and corrected by hand.

    The board goes into `katha eval --boards` and `katha run --import`. Change OUT/cut.yaml and give the same command
    again: it cuts by the file.
    """
    try:
        options = CutOptions(**given.changes)
    except ValidationError as error:
        first = error.errors()[0]
        known = str(first["msg"]).replace("Input should be", "known are")
        raise UsageError(f"--{first['loc'][0]} {first['input']!r} is not known; {known}.") from error
    preview = CutPreview()
    made = cut_board(source, out, options, preview)
    page = preview.write(made)
    text = sum(len(sheet.text) for sheet in made.file.pages) + sum(len(shot.text) for shot in made.file.shots)
    if as_json:
        told = {"out": str(out), "preview": str(page), "frames": len(made.board.frames), "text": text}
        echo_json({**told, "by": made.file.by, "corrected": made.corrected, "record": str(out / RECORD)})
        return
    masked = (
        f"; lines of text painted over: {text}" if made.file.text == "mask" else "; text is kept, and a judge reads it"
    )
    typer.echo(f"Frames by {made.file.by}: {len(made.board.frames)}{masked}.")
    typer.echo(f"Look at {page}; correct {out / RECORD} and give the same command again.")
