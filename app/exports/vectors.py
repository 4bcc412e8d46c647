"""Frames of the sketch as SVG, drawn once more from what the run kept and held against the picture that it kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from katha.app.exports.board import ExportOptions, Sheet, Shot
from katha.app.exports.pictures import listing
from katha.app.reports.page import open_picture
from katha.errors import UsageError

_NAME = "sketch"


def write_svg(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write a folder with the frames that the sketch drew, in named layers, and a list of all frames.

    A frame that somebody else drew, or another version of the sketch, has no vectors: it is written as it is, and its
    `layers` in the list are empty.

    Raises:
        UsageError: no frame has vectors.
    """
    drawn = {shot.number: vectors(shot) for shot in sheet.shots}
    if not any(drawn.values()):
        raise UsageError(
            f"No frame of {sheet.story_id!r} was drawn by this version of the sketch, so there are no vectors.",
            hint="Use --to png.",
        )
    target.mkdir()
    told = listing(sheet, ".svg")
    for shot, row in zip(sheet.shots, told["frames"], strict=True):
        svg = drawn[shot.number]
        row["layers"] = _layers(svg) if svg else []
        if svg:
            (target / row["file"]).write_text(svg, "utf-8")
        else:
            row["file"] = f"{shot.name}.png"
            open_picture(shot.picture).save(target / row["file"])
    (target / "frames.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")


def vectors(shot: Shot) -> str | None:
    """Return the frame as SVG in layers; None where that would not be the picture of the board, pixel for pixel."""
    from katha.renderers.sketch import layered_svg, rasterise

    name, _, own = shot.drawn_by.partition(":")
    if name != _NAME:
        return None
    with open_picture(shot.picture) as kept:
        width, height = kept.size
        pixels = kept.convert("RGB").tobytes()
    try:
        svg = layered_svg(replace(shot.asked, width=width, height=height), own)
    except UsageError:  # a style that another version drew
        return None
    return svg if _pixels(rasterise(svg, width, height)) == pixels else None


def _pixels(png: bytes) -> bytes:
    from katha.pictures import decode

    return decode(png).tobytes()


def _layers(svg: str) -> list[str]:
    from xml.etree import ElementTree

    label = "{http://www.inkscape.org/namespaces/inkscape}label"
    return [item.attrib[label] for item in ElementTree.fromstring(svg) if label in item.attrib]
