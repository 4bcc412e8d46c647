"""The formats by name, and the one way in: check, write beside, move into place."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from katha.app.exports import (
    books,
    cast,
    documents,
    films,
    inspect_logs,
    pictures,
    player,
    projects,
    shots,
    subtitles,
    timelines,
    vectors,
)
from katha.app.exports.archives import JudgedFolder, write_hub_results
from katha.app.exports.board import ExportBoard, ExportOptions, read_sheet
from katha.errors import MissingExtraError, StoreError, UsageError
from katha.installing import install_line
from katha.jsonio import refuse_overwriting

Source = ExportBoard | JudgedFolder
"""What is exported: a run's board, or the answers of a judged folder."""
Write = Callable[[Any, Path, ExportOptions], None]


@dataclass(frozen=True)
class Format:
    """One kind of export.

    Args:
        suffix: How its file ends; empty for a folder.
        write: Writes a sheet, or a judged folder, to a path that does not exist.
        about: What it is for, in a few words.
        extra: The extra of this package that it needs.
        also: Other endings that its file may have.
    """

    suffix: str
    write: Write
    about: str
    extra: str | None = None
    also: tuple[str, ...] = ()


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "pdf": Format(".pdf", documents.write_pdf, "storyboard pages, a picture book or a contact sheet", "export"),
        "epub": Format(".epub", books.write_epub, "a fixed-layout picture book for readers"),
        "cbz": Format(".cbz", books.write_cbz, "a comic book archive"),
        "png": Format("", pictures.write_png, "a folder of PNG files with descriptive names"),
        "jpg": Format("", pictures.write_jpg, "the same as JPEG"),
        "svg": Format("", vectors.write_svg, "a folder of frames as vectors in named layers"),
        "gif": Format(".gif", films.write_gif, "an animatic for chats and slides", "export"),
        "mp4": Format(
            ".mp4",
            films.write_mp4,
            "an animatic with captions and cross-fades",
            "video",
        ),
        "otio": Format(
            ".otio", timelines.write_otio, "an edit timeline (OpenTimelineIO); pictures beside it", "export"
        ),
        "otioz": Format(".otioz", timelines.write_otioz, "an edit timeline with its pictures in one file", "export"),
        "fcpxml": Format(".fcpxml", timelines.write_fcpxml, "an edit timeline for Final Cut and Resolve"),
        "fcp7": Format(".xml", timelines.write_fcp7, "an edit timeline for Premiere (XML of Final Cut Pro 7)"),
        "srt": Format(".srt", subtitles.write_srt, "the dialogue as subtitles"),
        "player": Format(".html", player.write_player, "a page that plays the board, in one file"),
        "shots": Format(
            ".csv", shots.write_shots, "the shot list as a table, to be edited and read back", "export", (".xlsx",)
        ),
        "cast": Format("", cast.write_cast, "model sheets of the cast, from all sides (katha cast RUN --views)"),
        "storyboarder": Format("", projects.write_storyboarder, "a project of Wonder Unit Storyboarder"),
        "vistorybench": Format("", projects.write_vistorybench, "the results layout of ViStoryBench"),
    }
)
"""Every format of a board by the name that `--to` takes."""

ARCHIVES: Mapping[str, Format] = MappingProxyType(
    {
        "inspect": Format(
            "", inspect_logs.write_inspect, "logs of inspect_ai, each half, judge and board apart", "inspect"
        ),
        "hub-results": Format("", write_hub_results, "`.eval_results` for model repositories of the Hugging Face Hub"),
    }
)
"""Every format of a judged folder's answers by the name that `--to` takes."""


def export(
    run: Path | str,
    to: str,
    out: Path | str | None = None,
    options: ExportOptions | None = None,
    on_remark: Callable[[str], None] | None = None,
    on_frame: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the board of a finished run, or the answers of a judged folder, for another tool.

    Args:
        run: The folder of a finished run; for a name of `ARCHIVES` any folder with answers and scores.
        to: A name of `FORMATS` or `ARCHIVES`.
        out: The file or folder that is written; `STORY_ID` (or the folder's name) with the format's ending, here,
            unless told. A name without an ending gets the format's.
        options: Layout and times.
        on_remark: Called with a sentence on what was cut or left out.
        on_frame: Called while a film is made, with how many frames of the board are done, and of how many.

    Returns:
        What was written.

    Raises:
        UsageError: The format is not known, what it needs is not installed, or `out` exists as a folder or is the run.
        InputFileError: The run has not finished, or a picture is missing.
        StoreError: `out` cannot be written.

    Example:
        >>> export("out/fox_and_crow", "pdf", "fox.pdf", ExportOptions(layout="book"))
    """
    chosen = options or ExportOptions()
    form = FORMATS.get(to) or ARCHIVES.get(to)
    if form is None:
        raise UsageError(f"There is no export {to!r}.", hint=f"Known: {', '.join((*FORMATS, *ARCHIVES))}.")
    place = Path(run)
    source: Source = JudgedFolder(place) if to in ARCHIVES else read_sheet(place, chosen)
    if isinstance(source, ExportBoard) and on_frame is not None:
        source = replace(source, on_frame=on_frame)
    name = source.name if isinstance(source, JudgedFolder) else source.story_id
    target = Path(out) if out is not None else Path(f"{name}{form.suffix or f'_{to}'}")
    if form.suffix and not target.suffix and not target.exists():
        target = target.with_name(f"{target.name}{form.suffix}")
    refuse_overwriting(target, [chosen.audio, chosen.logo, chosen.icc, *chosen.font])
    _check(target, place, form)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as beside:
            made = Path(beside) / (target.name if target.suffix else target.name + form.suffix)
            _write(form, to, source, made, chosen)
            _put(made, target)
    except OSError as error:
        raise StoreError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from error
    if isinstance(source, ExportBoard) and on_remark is not None:
        for remark in source.remarks:
            on_remark(remark)
    return target


def _put(made: Path, target: Path) -> None:
    """Move what was written to where it belongs, with the files and folders beside it."""
    companions = [path for path in sorted(made.parent.iterdir()) if path != made]
    for companion in companions:
        _require_own(target.parent / companion.name, companion)
    if target.is_dir():
        target.rmdir()
    os.replace(made, target)
    for companion in companions:
        place = target.parent / companion.name
        if place.is_dir():
            shutil.rmtree(place)
        os.replace(companion, place)


def _write(form: Format, to: str, source: Source, made: Path, options: ExportOptions) -> None:
    try:
        form.write(source, made, options)
    except ImportError as error:
        extra = "video" if error.name == "av" else form.extra
        if extra is None:
            raise
        hint = f"Install it: {install_line(extra)}."
        raise MissingExtraError(
            f"The export {to!r} needs {error.name!r}, which is not installed.", hint=hint
        ) from error


def _require_own(target: Path, made: Path) -> None:
    """Refuse to replace a folder that holds anything but what this export writes there.

    Raises:
        UsageError: it does, or it is not a folder; a file of it is named.
    """
    if not os.path.lexists(target):
        return
    own = {path.name for path in made.iterdir()}
    strange = [target] if target.is_symlink() or not target.is_dir() else []
    strange += [path for path in sorted(target.iterdir()) if path.name not in own] if not strange else []
    if strange:
        raise UsageError(
            f"{str(target)!r} is where this export puts its pictures, and {strange[0].name!r} is not one of them.",
            hint="Name another --out.",
        )


def _check(target: Path, run: Path, form: Format) -> None:
    home, place = Path(os.path.realpath(run)), Path(os.path.realpath(target))
    inside = place.is_relative_to(home)
    if inside and place.parent != home / "exports":
        raise UsageError(f"{str(target)!r} lies in the run itself.", hint="Name a place outside, or RUN/exports/NAME.")
    if target.is_dir() and (form.suffix or any(target.iterdir())):
        raise UsageError(f"{str(target)!r} is a folder with something in it.", hint="Name a new one with --out.")
    if target.exists() and not target.is_dir() and not form.suffix:
        raise UsageError(f"{str(target)!r} is a file; this export is a folder.", hint="Name a new one with --out.")
    if form.suffix and target.suffix.lower() not in (form.suffix, *form.also):
        raise UsageError(f"{str(target)!r} must end in {' or '.join((form.suffix, *form.also))}.")
