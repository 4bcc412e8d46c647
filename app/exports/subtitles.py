"""Dialogue and captions as subtitles."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions
from katha.errors import UsageError


def write_srt(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write SubRip subtitles, each for as long as its frame stands.

    Raises:
        UsageError: no frame says anything of what is asked for.
    """
    from pysubs2 import SSAEvent, SSAFile

    found = SSAFile()
    for shot, end in zip(sheet.shots, accumulate(shot.seconds for shot in sheet.shots), strict=True):
        told = [words for words in _said(shot, options) if words]
        if told:
            start = round(1000 * (end - shot.seconds))
            found.append(SSAEvent(start=start, end=round(1000 * end), text="\\N".join(told)))
    if not found.events:
        raise UsageError(
            f"No frame of {sheet.story_id!r} has {'a caption' if options.spoken == 'captions' else 'dialogue'}.",
            hint="Write it beside the frames (katha redo RUN --shots FILE), or give --spoken captions.",
        )
    target.write_text(found.to_string("srt"), "utf-8")


def _said(shot: ExportFrame, options: ExportOptions) -> tuple[str, ...]:
    if options.spoken == "both":
        return shot.said
    return (shot.caption if options.spoken == "captions" else shot.dialogue,)
