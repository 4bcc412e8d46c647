"""Frames that were drawn as vectors: SVG in named layers, for editors, pages and books."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from katha.agents.requests import in_words
from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions
from katha.app.exports.lists import LIST, listing
from katha.app.reports.page import open_picture
from katha.errors import RenderError, UsageError
from katha.jsonio import dumps, read_bytes
from katha.pictures import decode
from katha.plugin_boundary import named_failures
from katha.protocols import Renderer, can
from katha.registry import default_registry
from katha.renderers.vector import svg as drawings
from katha.renderers.vector.raster import rasterise

_SVG, _INKSCAPE = "http://www.w3.org/2000/svg", "http://www.inkscape.org/namespaces/inkscape"
_MOST_BYTES = 4_000_000
BORDER = "border"
"""The layer of the paper around a picture."""
_BARE = "shape"
"""What a layer is called that has no name."""


def write_svg(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write a folder with the frames that were drawn as vectors, in named layers, and a list of all frames.

    A frame that was made otherwise, or by another version of its renderer, has no vectors: it is written as it is, and
    its `layers` in the list are empty.

    Raises:
        UsageError: no frame has vectors.
    """
    drawn = {shot.number: drawn_as_vectors(shot) for shot in sheet.shots}
    if not any(drawn.values()):
        raise UsageError(
            f"No frame of {sheet.story_id!r} was drawn as vectors, by the renderers that are installed.",
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
    (target / LIST).write_text(dumps(told), "utf-8")


def unframed(svg: str | None) -> str | None:
    """Return a drawing without the border of its paper, which no camera moves past; None of none."""
    if svg is None:
        return None
    root = svg_root(svg)
    for layer in [item for item in root if item.get("id") == BORDER]:
        root.remove(layer)
    return ElementTree.tostring(root, "unicode")


def drawn_as_vectors(shot: ExportFrame) -> str | None:
    """Return the frame as SVG in layers; None where that would not be the picture of the board, pixel for pixel, or
    its drawing holds what may not be drawn."""
    if shot.source is not None:
        try:  # the run may come from elsewhere: only what may be drawn is handed on
            drawing = drawings.read_svg(read_bytes(shot.source), most_bytes=_MOST_BYTES, lenient=True)
        except drawings.DrawingFault:
            return None
        return labelled(drawings.write_svg(drawing.root))
    renderer = _redraws(shot.drawn_by)
    if renderer is None:
        return None
    with open_picture(shot.picture) as kept:
        width, height = kept.size
        pixels = kept.convert("RGB").tobytes()
    with named_failures(f"renderer {shot.drawn_by!r}", RenderError):
        svg = renderer.vectors(in_words(replace(shot.asked, width=width, height=height), renderer.capabilities))
    try:
        return svg if svg is not None and decode(rasterise(svg, width, height)).tobytes() == pixels else None
    except drawings.DrawingFault:
        return None


def _redraws(name: str) -> Renderer | None:
    """Return the renderer of that name, if it can draw its frames as vectors again; others are not even made."""
    registry = default_registry("renderers")
    try:
        registry.refuse_code(name, "The board")
        factory, _ = registry.load(name)
        made: object = registry.create(name) if can(factory, Renderer.vectors) else None
    except UsageError:  # it is not installed here, or is code that a file names
        return None
    return made if isinstance(made, Renderer) else None


def svg_root(svg: str) -> ElementTree.Element:
    """Return a drawing's root, which is written again without prefixes."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("inkscape", _INKSCAPE)
    return ElementTree.fromstring(svg)


def labelled(svg: str) -> str:
    """Return a drawing whose groups on top are layers that Inkscape, Illustrator and Figma show by their names."""
    root = svg_root(svg)
    for number, item in enumerate(root, 1):
        if item.tag.rpartition("}")[2] not in ("defs", "title", "desc"):
            name = item.get("id", "").removeprefix("f-").replace("-", " ") or f"{_BARE} {number}"
            item.set(f"{{{_INKSCAPE}}}label", name)
            if item.tag.rpartition("}")[2] == "g":
                item.set(f"{{{_INKSCAPE}}}groupmode", "layer")
    return ElementTree.tostring(root, "unicode")


def _layers(svg: str) -> list[str]:
    label = f"{{{_INKSCAPE}}}label"
    return [item.attrib[label] for item in ElementTree.fromstring(svg) if label in item.attrib]
