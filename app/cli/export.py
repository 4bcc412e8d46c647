"""The verb that takes a board to other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import echo_json, progress_bar
from katha.app.cli.options import GivenOptions, Json, options_from
from katha.app.exports import ARCHIVES, FORMATS, ExportOptions
from katha.app.exports import export as export_run
from katha.app.exports.board import PRINT
from katha.config import read_settings
from katha.errors import UsageError

_OF_PAGES = ("layout", "portrait", "per_page", "text", "bleed")
_ONLY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_PAGES, ("pdf",)),
    "font": ("pdf", "gif", "mp4"),
    "fade": ("gif", "mp4"),
    "still": ("gif", "mp4"),
    "audio": ("mp4", "otio", "otioz", "fcpxml", "fcp7", "player"),
    "size": ("png", "jpg", "cbz", "epub", "gif", "mp4", "otio", "otioz", "fcpxml", "fcp7", "player", "storyboarder"),
    **dict.fromkeys(("logo", "multiple", "icc"), ("pdf",)),
    "date": ("pdf", "epub"),
    "isbn": ("pdf", "epub"),
    **dict.fromkeys(("author", "publisher"), ("pdf", "epub", "cbz")),
    "spoken": ("srt",),
    "seconds": tuple(name for name in FORMATS if name != "shots"),
    "dataset": ("hub-results",),
}
"""What an option is of, where that is not every format: elsewhere it would be left out without a word."""
_PRINTED = ("page", "landscape")
_OF_BOOKS = ("text", "bleed", "multiple", "icc")


@options_from(ExportOptions, into="options", preset=False, limits=False)
def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run; of anything judged, for answers.")],
    to: Annotated[str, typer.Option("--to", help=f"What is written: {', '.join((*FORMATS, *ARCHIVES))}.")],
    options: GivenOptions,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file or folder; STORY_ID with the format's ending unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take the board of RUN to another tool: pages, a book, pictures, a film, an edit timeline; or its answers.

    A panel's dialogue, action, notes, sound and duration (seconds) are read from RUN/plan.json.
    """
    chosen = read_settings(ExportOptions, options.changes)
    _require_followed(to, chosen)
    remarks: list[str] = []
    with progress_bar("Filming", "frame {}", quiet=as_json) as bar:
        made = export_run(run, to, out, chosen, remarks.append, lambda done, total: bar(str(done), done, total))
    for remark in remarks:
        typer.echo(remark, err=True)
    if as_json:
        echo_json({"out": str(made), "to": to})
    else:
        typer.echo(f"Exported: {made}")


def _require_followed(to: str, options: ExportOptions) -> None:
    """Refuse an option that the format does not follow.

    Raises:
        UsageError: there is one; it is named, with the formats that do.
    """
    for name in sorted(options.model_fields_set):
        flag, forms = f"--{name.replace('_', '-')}", _ONLY.get(name)
        if forms is not None and to not in forms and to in {**FORMATS, **ARCHIVES}:
            raise UsageError(f"{flag} does nothing in {to!r}.", hint=f"It is of {', '.join(forms)}.")
        if name in _PRINTED and to in FORMATS and to != "pdf" and options.size != PRINT:
            raise UsageError(f"{flag} is of a PDF, or of pictures for print.", hint=f"Give --size {PRINT} with it.")
        if name in _OF_BOOKS and options.layout != "book":
            raise UsageError(f"{flag} is of books.", hint=f"Give --layout book, or leave {flag} out.")
