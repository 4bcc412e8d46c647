"""Edit timelines: OpenTimelineIO, alone or bundled with its pictures, and Final Cut's XML of today and of old."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions, Size
from katha.app.exports.lists import told_of
from katha.app.exports.sizes import drawings_of, film_size, save_fitted
from katha.app.exports.sounds import Sound, sounds_of
from katha.renderers.exported import FRAME_KEY, LINES, lines_of

if TYPE_CHECKING:
    from opentimelineio.schema import Timeline


def write_otio(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write `NAME.otio` and `NAME_media/` beside it; the timeline names its media relative to itself."""
    import opentimelineio as otio

    media = _copied(sheet, options, target.parent / f"{target.stem}_media")
    otio.adapters.write_to_file(_timeline(sheet, options, media), str(target), adapter_name="otio_json")


def write_otioz(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write a timeline and its media in one file."""
    import opentimelineio as otio

    media = _copied(sheet, options, target.parent / f".{target.stem}_media")
    timeline = _timeline(sheet, options, media, f"{media.folder.resolve()}/")
    otio.adapters.write_to_file(timeline, str(target), adapter_name="otioz")
    shutil.rmtree(media.folder)


@dataclass(frozen=True)
class _Media:
    """The folder beside a timeline: the file of each frame by its number, the sounds with theirs, and the pixels of the
    film."""

    folder: Path
    pictures: Mapping[int, str]
    sounds: Sequence[tuple[Sound, str]]
    size: Size


def _copied(sheet: ExportBoard, options: ExportOptions, folder: Path) -> _Media:
    """Return a new folder with the frames under their descriptive file names, in a film's size, and the sounds."""
    folder.mkdir()
    drawings = drawings_of(sheet)
    size = film_size(sheet, options, drawings)
    asked = options.size is not None
    pictures = {
        shot.number: save_fitted(
            shot, folder, size if asked or shot.number in drawings else None, drawings.get(shot.number)
        )
        for shot in sheet.shots
    }
    sounds = [(sound, f"sound_{sound.path.name}") for sound in sounds_of(sheet, options.audio)]
    for sound, name in sounds:
        shutil.copyfile(sound.path, folder / name)
    return _Media(folder, pictures, sounds, size)


def _timeline(sheet: ExportBoard, options: ExportOptions, media: _Media, where: str | None = None) -> Timeline:
    """Return a video track with a still a shot, and a track for each sound. Bridges have an orange marker, dialogue a
    green one and comments a red one, as long as they are heard or read; all shots have `metadata["katha"]`."""
    import opentimelineio as otio

    schema, time = otio.schema, otio.opentime
    folder = where if where is not None else f"{media.folder.name}/"

    def span(ticks: int) -> Any:
        rate = float(options.fps)
        return time.TimeRange(time.RationalTime(0, rate), time.RationalTime(ticks, rate))

    def linked(name: str, ticks: int) -> Any:
        return schema.ExternalReference(target_url=quote(f"{folder}{name}", safe="/:"), available_range=span(ticks))

    timeline = schema.Timeline(sheet.title, metadata={"katha": {"story_id": sheet.story_id, "title": sheet.title}})
    track = schema.Track("storyboard", kind=schema.TrackKind.Video)
    timeline.tracks.append(track)
    colours = {"dialogue": schema.MarkerColor.GREEN, "comment": schema.MarkerColor.RED}
    starts = [0]
    for shot in sheet.shots:
        ticks = _ticks(shot.seconds, options)
        starts.append(starts[-1] + ticks)
        still = linked(media.pictures[shot.number], ticks)
        clip = schema.Clip(
            shot.name, media_reference=still, source_range=span(ticks), metadata={"katha": told_of(shot)}
        )
        for mark in _marks(shot):
            long = span(ticks if mark.kind == "dialogue" else 1)
            colour = colours.get(mark.kind, schema.MarkerColor.ORANGE)
            clip.markers.append(schema.Marker(mark.name, marked_range=long, color=colour, comment=mark.words))
        track.append(clip)
    for number, (sound, name) in enumerate(media.sounds, 1):
        lane = schema.Track(f"sound {number}", kind=schema.TrackKind.Audio)
        begins = starts[max(0, sound.frame - 1)]
        if begins:
            lane.append(schema.Gap(source_range=span(begins)))
        ticks = min(_ticks(sound.length, options), starts[-1] - begins)
        heard = schema.Clip(sound.path.stem, media_reference=linked(name, ticks), source_range=span(ticks))
        lane.append(heard)
        timeline.tracks.append(lane)
    return timeline


class _Mark(NamedTuple):
    """A marker on a shot: its kind, its name, and its words where they are not its name."""

    kind: str
    name: str
    words: str = ""


def _marks(shot: ExportFrame) -> list[_Mark]:
    found = [_Mark(shot.kind, shot.kind)] if shot.kind != "scene" else []
    found += [_Mark("dialogue", shot.dialogue)] if shot.dialogue else []
    return found + [_Mark("comment", f"{one.by or 'comment'}", one.text) for one in shot.comments]


def _ticks(seconds: float, options: ExportOptions) -> int:
    return max(1, round(seconds * options.fps))


def _exact(ticks: int, options: ExportOptions) -> str:
    """Return a time as Final Cut writes it: seconds as a fraction, whole frames of the rate."""
    return f"{ticks * options.fps.denominator}/{options.fps.numerator}s"


def write_fcpxml(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write FCPXML 1.6 in the shape that Final Cut and Resolve read stills from, and `NAME_media/` beside it."""
    media = _copied(sheet, options, target.parent / f"{target.stem}_media")
    root = ElementTree.Element("fcpxml", version="1.6")
    resources = ElementTree.SubElement(root, "resources")
    size = {"width": str(media.size[0]), "height": str(media.size[1])}
    ElementTree.SubElement(resources, "format", {"id": "r1", "name": "FFVideoFormatRateUndefined", **size})
    ElementTree.SubElement(resources, "format", {"id": "r2", "frameDuration": _exact(1, options), **size})
    event = ElementTree.SubElement(ElementTree.SubElement(root, "library"), "event", name=sheet.title)
    project = ElementTree.SubElement(event, "project", name=sheet.title)
    lengths = [_ticks(shot.seconds, options) for shot in sheet.shots]
    starts = [0, *accumulate(lengths)]
    sequence = ElementTree.SubElement(
        project,
        "sequence",
        {"format": "r2", "duration": _exact(starts[-1], options), "tcStart": "0s", "tcFormat": "NDF"},
    )
    spine = ElementTree.SubElement(sequence, "spine")
    heard = {shot.number: [one for one in media.sounds if max(1, one[0].frame) == shot.number] for shot in sheet.shots}
    sounds = {id(one): f"a{number}" for number, one in enumerate(media.sounds, 1)}
    for number, (shot, at, length) in enumerate(zip(sheet.shots, starts, lengths, strict=False), 3):
        source = {"id": f"r{number}", "name": shot.name, "src": _address(media, media.pictures[shot.number])}
        still = {"start": "0s", "duration": "0s", "hasVideo": "1", "format": "r1"}
        asset = ElementTree.SubElement(resources, "asset", {**source, **still})
        words = ElementTree.SubElement(asset, "metadata")
        ElementTree.SubElement(words, "md", {"key": FRAME_KEY, "value": json.dumps(told_of(shot), ensure_ascii=False)})
        times = {"offset": _exact(at, options), "start": "0s", "duration": _exact(length, options)}
        video = ElementTree.SubElement(spine, "video", {"ref": f"r{number}", "name": shot.name, **times})
        ElementTree.SubElement(video, "note").text = shot.caption
        for one in heard[shot.number]:
            sound, name = one
            lasts = _exact(min(_ticks(sound.length, options), starts[-1] - at), options)
            told = {"id": sounds[id(one)], "name": sound.path.stem, "src": _address(media, name), "hasAudio": "1"}
            ElementTree.SubElement(resources, "asset", {**told, "start": "0s", "duration": lasts})
            lane = {"lane": f"-{list(sounds).index(id(one)) + 1}", "offset": "0s", "duration": lasts}
            ElementTree.SubElement(video, "audio", {"ref": sounds[id(one)], "name": sound.path.stem, **lane})
        for mark in _marks(shot):
            told = {"start": "0s", "duration": _exact(1, options), "value": mark.words or mark.name}
            ElementTree.SubElement(video, "marker", {**told, **({"note": mark.name} if mark.words else {})})
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    target.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n{text}\n', "utf-8")


def _address(media: _Media, name: str) -> str:
    return quote(f"{media.folder.name}/{name}")


Tree = Mapping[str, Any]
"""Elements by their names: a text, elements inside, or several of the same name as a list."""


def write_fcp7(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the XML of Final Cut Pro 7 (xmeml 5), which Premiere reads, and `NAME_media/` beside it."""
    media = _copied(sheet, options, target.parent / f"{target.stem}_media")
    lengths = [_ticks(shot.seconds, options) for shot in sheet.shots]
    starts = [0, *accumulate(lengths)]
    rate = {"timebase": round(options.fps), "ntsc": _truth(options.fps.denominator == 1001)}
    pixels = {"width": media.size[0], "height": media.size[1], "pixelaspectratio": "square", "fielddominance": "none"}
    clips = [
        {
            "@id": f"clip-{shot.number}",
            "name": shot.name,
            **_placed(at, length, rate),
            "stillframe": "TRUE",
            "file": {
                "@id": f"file-{shot.number}",
                "name": media.pictures[shot.number],
                "pathurl": _address(media, media.pictures[shot.number]),
                "rate": rate,
                "duration": length,
                "media": {"video": {"samplecharacteristics": {"rate": rate, **pixels}}},
            },
            "marker": [
                {"name": mark.name, "comment": mark.words, "in": 0, "out": length if mark.kind == "dialogue" else -1}
                for mark in _marks(shot)
            ],
            "logginginfo": {
                "description": shot.caption,
                "scene": shot.scene,
                "shottake": shot.shot,
                "lognote": shot.notes,
            },
            "comments": {
                "mastercomment1": shot.dialogue,
                "mastercomment2": shot.action,
                "mastercomment3": shot.camera,
                "mastercomment4": lines_of({name: getattr(shot, name) for name in LINES}),
            },
        }
        for shot, at, length in zip(sheet.shots, starts, lengths, strict=False)
    ]
    tracks = [
        {"clipitem": _sound_clip(number, one, media, starts, rate, options)}
        for number, one in enumerate(media.sounds, 1)
    ]
    seen = {"format": {"samplecharacteristics": {"rate": rate, **pixels}}, "track": {"clipitem": clips}}
    heard = {"format": {"samplecharacteristics": {"depth": 16, "samplerate": 48_000}}, "track": tracks}
    code = {"rate": rate, "string": "00:00:00:00", "frame": 0, "displayformat": "NDF"}
    sequence = {"@id": "sequence-1", "name": sheet.title, "duration": starts[-1], "rate": rate, "timecode": code}
    root = ElementTree.Element("xmeml", version="5")
    _grow(root, {"sequence": {**sequence, "media": {"video": seen, "audio": heard}}})
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    target.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE xmeml>\n{text}\n', "utf-8")


def _placed(at: int, length: int, rate: Tree) -> Tree:
    """Return where a clip lies on a track, and that all of it is used."""
    return {
        "enabled": "TRUE", "duration": length, "rate": rate, "start": at, "end": at + length, "in": 0, "out": length,
    }  # fmt: skip


def _sound_clip(
    number: int, one: tuple[Sound, str], media: _Media, starts: Sequence[int], rate: Tree, options: ExportOptions
) -> Tree:
    sound, name = one
    at = starts[max(0, sound.frame - 1)]
    length = min(_ticks(sound.length, options), starts[-1] - at)
    channels = {"audio": {"samplecharacteristics": {"depth": 16, "samplerate": 48_000}, "channelcount": 2}}
    file = {"name": name, "pathurl": _address(media, name), "rate": rate, "duration": length, "media": channels}
    source = {"mediatype": "audio", "trackindex": 1}
    placed = {"name": sound.path.stem, **_placed(at, length, rate)}
    return {"@id": f"sound-{number}", **placed, "file": {"@id": f"sound-file-{number}", **file}, "sourcetrack": source}


def _grow(parent: ElementTree.Element, tree: Tree) -> None:
    """Put elements into one; a name that begins with @ is an attribute's."""
    for name, value in tree.items():
        if name.startswith("@"):
            parent.set(name[1:], str(value))
            continue
        for item in value if isinstance(value, list) else [value]:
            child = ElementTree.SubElement(parent, name)
            if isinstance(item, Mapping):
                _grow(child, item)
            else:
                child.text = str(item)


def _truth(value: bool) -> str:
    return "TRUE" if value else "FALSE"
