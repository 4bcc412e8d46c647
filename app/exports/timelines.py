"""Edit timelines: OpenTimelineIO, alone or bundled with its pictures, and Final Cut's XML."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree

from katha.app.exports.board import ExportOptions, Sheet, Shot

if TYPE_CHECKING:
    from opentimelineio.schema import Timeline


def write_otio(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write `NAME.otio` and `NAME_media/` beside it; the timeline names its pictures relative to itself."""
    import opentimelineio as otio

    media = _copied(sheet, target.parent / f"{target.stem}_media")
    timeline = _timeline(sheet, options, f"{media.name}/")
    otio.adapters.write_to_file(timeline, str(target), adapter_name="otio_json")


def write_otioz(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write a timeline and its pictures in one file."""
    import opentimelineio as otio

    media = _copied(sheet, target.parent / f".{target.stem}_media")
    timeline = _timeline(sheet, options, f"{media.resolve()}/")
    otio.adapters.write_to_file(timeline, str(target), adapter_name="otioz")
    shutil.rmtree(media)


def _copied(sheet: Sheet, folder: Path) -> Path:
    """Return a new folder with the frames under their speaking names."""
    folder.mkdir()
    for shot in sheet.shots:
        shutil.copyfile(shot.picture, folder / f"{shot.name}{shot.picture.suffix}")
    return folder


def _timeline(sheet: Sheet, options: ExportOptions, folder: str) -> Timeline:
    """Return one video track with a still a shot; bridges have an orange marker, all have `metadata["katha"]`."""
    import opentimelineio as otio

    schema, time = otio.schema, otio.opentime

    def span(seconds: float) -> Any:
        return time.TimeRange(
            time.RationalTime(0, options.fps), time.RationalTime(_ticks(seconds, options), options.fps)
        )

    timeline = schema.Timeline(sheet.title, metadata={"katha": {"story_id": sheet.story_id}})
    track = schema.Track("storyboard", kind=schema.TrackKind.Video)
    timeline.tracks.append(track)
    for shot in sheet.shots:
        name = f"{shot.name}{shot.picture.suffix}"
        address = quote(f"{folder}{name}", safe="/:")
        media = schema.ExternalReference(target_url=address, available_range=span(shot.seconds))
        clip = schema.Clip(shot.name, media_reference=media, source_range=span(shot.seconds), metadata=_told(shot))
        if shot.kind != "scene":
            clip.markers.append(
                schema.Marker(shot.kind, marked_range=span(1 / options.fps), color=schema.MarkerColor.ORANGE)
            )
        track.append(clip)
    return timeline


def _ticks(seconds: float, options: ExportOptions) -> int:
    return max(1, round(seconds * options.fps))


def _told(shot: Shot) -> dict[str, Any]:
    keys = ("number", "kind", "caption", "dialogue", "action", "notes", "sha256", "prompt")
    return {"katha": {key: getattr(shot, key) for key in keys}}


def write_fcpxml(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write FCPXML 1.6 in the shape that Final Cut and Resolve read stills from, and `NAME_media/` beside it."""
    media = _copied(sheet, target.parent / f"{target.stem}_media")
    root = ElementTree.Element("fcpxml", version="1.6")
    resources = ElementTree.SubElement(root, "resources")
    size = {"width": str(sheet.width), "height": str(sheet.height)}
    still = {"id": "r1", "name": "FFVideoFormatRateUndefined", **size}
    ElementTree.SubElement(resources, "format", still)
    film = {"id": "r2", "frameDuration": f"1/{options.fps}s", **size}
    ElementTree.SubElement(resources, "format", film)
    event = ElementTree.SubElement(ElementTree.SubElement(root, "library"), "event", name=sheet.title)
    project = ElementTree.SubElement(event, "project", name=sheet.title)
    total = sum(_ticks(shot.seconds, options) for shot in sheet.shots)
    sequence = ElementTree.SubElement(
        project, "sequence", {"format": "r2", "duration": f"{total}/{options.fps}s", "tcStart": "0s", "tcFormat": "NDF"}
    )
    spine = ElementTree.SubElement(sequence, "spine")
    at = 0
    for number, shot in enumerate(sheet.shots, 3):
        name = f"{shot.name}{shot.picture.suffix}"
        source = {"id": f"r{number}", "name": shot.name, "src": quote(f"{media.name}/{name}")}
        still = {"start": "0s", "duration": "0s", "hasVideo": "1", "format": "r1"}
        ElementTree.SubElement(resources, "asset", {**source, **still})
        length = _ticks(shot.seconds, options)
        video = ElementTree.SubElement(
            spine,
            "video",
            {
                "ref": f"r{number}",
                "name": shot.name,
                "offset": f"{at}/{options.fps}s",
                "start": "0s",
                "duration": f"{length}/{options.fps}s",
            },
        )
        ElementTree.SubElement(video, "note").text = shot.caption
        if shot.kind != "scene":
            told = {"start": "0s", "duration": f"1/{options.fps}s", "value": shot.kind}
            ElementTree.SubElement(video, "marker", told)
        at += length
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    target.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n{text}\n', "utf-8")
