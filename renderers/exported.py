"""Boards that katha exported, read again with their words: comic archives, EPUBs and edit timelines.

Every one of them carries what is said of each frame as `told_words` reads it: a list (`frames.json`) in an archive,
metadata in a timeline, the logging fields that every editor shows in the XML of Final Cut Pro 7. The files may come
from anybody: nothing outside of them and of the folder beside them is read.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from katha.errors import InputFileError, first_line
from katha.jsonio import MOST_JSON, loads, read_bytes
from katha.pictures import MAX_BYTES, as_png, decode, read_picture
from katha.protocols import PanelWords
from katha.renderers.vector.raster import SECONDS_PASSED, rasterise
from katha.renderers.vector.svg import DrawingFault, read_svg, write_svg

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FRAME_KEY = "org.katha.frame"
"""The key of an FCPXML asset's metadata under which a frame's words stand."""
LISTS: Mapping[str, str] = {".cbz": "frames.json", ".epub": "META-INF/katha.frames.json"}
"""Where the list of frames is in an archive, by the archive's ending; its pictures lie beside it or in `OEBPS/`."""
SUFFIXES = (".cbz", ".epub", ".otio", ".otioz", ".fcpxml", ".xml")
LINES = ("place", "time_of_day", "shot_size", "shot_angle", "camera_move", "weather", "light", "sound")
"""What the XML of Final Cut Pro 7 has no field for: it is the fourth comment of a clip, a line each."""
ALONE = (".cbz", ".epub", ".otioz")
"""Those that hold their pictures themselves."""
LONG_SIDE = 1536
"""Pixels of the longer side of a picture that is made of a drawing or a page."""
_MOST_DRAWING = 4_000_000
_MOST_FRAMES, _LONGEST_WORDS, _LONGEST_TIME = 5_000, 20_000, 3_600
_HINT = "Give a file as katha exported it; cut another comic, book or film first: katha cut."
_WORDS = tuple(item.name for item in fields(PanelWords) if item.name != "duration")


def told_words(row: Mapping[str, Any], where: str) -> PanelWords:
    """Return what a list says of one frame; `where` names the frame in errors.

    Raises:
        InputFileError: a text is far too long.
    """
    told: dict[str, Any] = {}
    for name in _WORDS:
        value = row.get(name)
        if isinstance(value, str):
            if len(value) > _LONGEST_WORDS:
                said = f"{where}: {name!r} has {len(value):,} letters; at most {_LONGEST_WORDS:,} are read."
                raise InputFileError(said)
            told[name] = " ".join(value.split())
    seconds = row.get("seconds")
    known = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds <= _LONGEST_TIME
    return PanelWords(**told, duration=float(seconds) if known and isinstance(seconds, (int, float)) else None)


@dataclass(frozen=True)
class _Found:
    """One frame: its words, and what reads its picture."""

    words: PanelWords
    name: str
    read: Callable[[], bytes]


class Exported:
    """The frames of one exported board in order."""

    single = True

    def __init__(self, path: Path) -> None:
        """Read the words and find the pictures; none is decoded yet.

        Raises:
            InputFileError: it is not a board that katha exported, or a picture is missing or leads elsewhere.
        """
        self.place = path
        suffix = path.suffix.lower()
        found = _of_archive(path) if suffix in LISTS else _of_timeline(path)
        if not 0 < len(found) <= _MOST_FRAMES:
            said = f"{str(path)!r} has {len(found):,} frames of a board; 1 to {_MOST_FRAMES:,} are read."
            raise InputFileError(said, hint=_HINT)
        self._frames = found

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def words(self) -> tuple[PanelWords, ...]:
        """Return what is said of each frame."""
        return tuple(frame.words for frame in self._frames)

    def pngs(self, places: Sequence[int], story: str) -> Iterator[bytes]:
        """Yield the frames at `places` (from 0) as PNG; `story` is named in errors."""
        for place in places:
            frame = self._frames[place]
            name = f"Frame {place + 1} of {story} ({frame.name!r} in {str(self.place)!r})"
            data = frame.read()
            yield _drawn(data, name) if frame.name.lower().endswith(".svg") else as_png(decode(data, name))


def _drawn(source: bytes, what: str) -> bytes:
    """Return the PNG of a drawing, as large as a page's picture is.

    Raises:
        InputFileError: it is not a drawing that may be drawn.
    """
    try:
        drawing = read_svg(source, most_bytes=_MOST_DRAWING, lenient=True)
        _, _, wide, tall = (float(side) for side in drawing.root.attrib["viewBox"].replace(",", " ").split())
        scale = LONG_SIDE / max(wide, tall)
        size = max(1, round(wide * scale)), max(1, round(tall * scale))
        return rasterise(write_svg(drawing.root), *size, seconds=SECONDS_PASSED)
    except (DrawingFault, KeyError, ValueError, ZeroDivisionError) as fault:
        raise InputFileError(f"{what} cannot be drawn: {first_line(fault)}.", hint=_HINT) from fault


def _member(archive: Path, name: str, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file in an archive.

    Raises:
        InputFileError: the archive cannot be read, holds no such file, or one that is too large.
    """
    try:
        with zipfile.ZipFile(archive) as held, held.open(name) as file:
            data = file.read(limit + 1)
    except KeyError:
        raise InputFileError(f"{str(archive)!r} holds no file {name[:100]!r}.", hint=_HINT) from None
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        raise InputFileError(f"{str(archive)!r} cannot be read: {error}.", hint=_HINT) from error
    if len(data) > limit:
        raise InputFileError(f"{name[:100]!r} in {str(archive)!r} holds more than the {limit:,} bytes that are read.")
    return data


def _from_archive(archive: Path, name: str) -> Callable[[], bytes]:
    return lambda: _member(archive, name)


def _of_archive(path: Path) -> list[_Found]:
    """The frames of a comic archive or an EPUB.

    Raises:
        InputFileError: it holds no list of frames, or the list has not its form.
    """
    listed = LISTS[path.suffix.lower()]
    value = _parsed(_member(path, listed, MOST_JSON), f"{listed!r} in {str(path)!r}")
    rows = value.get("frames") if isinstance(value, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("file"), str) for row in rows
    ):
        raise InputFileError(f"{listed!r} in {str(path)!r} has no list of frames with a picture each.", hint=_HINT)
    folder = "OEBPS/" if path.suffix.lower() == ".epub" else ""
    return [
        _Found(
            told_words(row, f"{str(path)!r}, frame {at}"), row["file"], _from_archive(path, f"{folder}{row['file']}")
        )
        for at, row in enumerate(rows, 1)
    ]


def _parsed(data: bytes, what: str) -> Any:
    try:
        return loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise InputFileError(f"{what} is not JSON: {error}.", hint=_HINT) from error


def _of_timeline(path: Path) -> list[_Found]:
    """The frames of an edit timeline: its clips with a picture, in their order.

    Raises:
        InputFileError: it is not a timeline of a board, or a picture leads out of its folder.
    """
    suffix = path.suffix.lower()
    if suffix == ".otioz":
        clips = _otio_clips(_parsed(_member(path, "content.otio", MOST_JSON), f"The timeline in {str(path)!r}"))
    elif suffix == ".otio":
        clips = _otio_clips(_parsed(read_bytes(path, limit=MOST_JSON), repr(str(path))))
    else:
        root = _xml(path)
        clips = list(_fcpxml_clips(root) if root.tag == "fcpxml" else _fcp7_clips(root))
    found = []
    for at, (row, address) in enumerate(clips, 1):
        where = f"{str(path)!r}, clip {at}"
        name = unquote(address.removeprefix("./"))
        if _leaves(name):
            raise InputFileError(f"{where}: the picture {name[:100]!r} lies outside of the timeline's folder.")
        inside = _from_archive(path, name) if suffix == ".otioz" else _from_folder(path, name, where)
        found.append(_Found(told_words(row, where), name, inside))
    return found


def _leaves(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        not name or "\0" in name or path.is_absolute() or bool(PureWindowsPath(name).drive)
        or ".." in re.split(r"[/\\]", name)
    )  # fmt: skip


def _from_folder(timeline: Path, name: str, where: str) -> Callable[[], bytes]:
    picture = timeline.parent / name
    if not picture.resolve().is_relative_to(timeline.parent.resolve()):
        raise InputFileError(f"{where}: the picture {name[:100]!r} is a link out of its folder.", hint="Copy it in.")
    return lambda: read_picture(picture, f"{where} ({str(picture)!r})")


Clip = tuple[Mapping[str, Any], str]
"""What is said of a frame, and where its picture is."""


def _otio_clips(timeline: object) -> list[Clip]:
    """The clips of OpenTimelineIO's own JSON that have a frame's words."""
    found: list[Clip] = []
    left = [timeline]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += reversed(item)
        if not isinstance(item, dict):
            continue
        told = (item.get("metadata") or {}).get("katha") if isinstance(item.get("metadata"), dict) else None
        address = _target(item)
        if isinstance(told, dict) and address is not None:
            found.append((told, address))
        else:
            left += [item[key] for key in ("children", "tracks") if key in item]
    return found


def _target(clip: Mapping[str, Any]) -> str | None:
    """Return where a clip's picture is; of several references the active one."""
    several = clip.get("media_references")
    key = clip.get("active_media_reference_key")
    media = several.get(key) if isinstance(several, dict) and isinstance(key, str) else clip.get("media_reference")
    address = media.get("target_url") if isinstance(media, dict) else None
    return address if isinstance(address, str) else None


def _xml(path: Path) -> Element:
    """Return the root of an XML file that nobody vouches for.

    Raises:
        InputFileError: it is not a XML, or holds entities.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(read_bytes(path, limit=MOST_JSON))
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise InputFileError(f"{str(path)!r} is not XML that is read: {error}.", hint=_HINT) from error
    if root.tag not in ("fcpxml", "xmeml"):
        raise InputFileError(f"{str(path)!r} is not an edit timeline: its root is {root.tag[:50]!r}.", hint=_HINT)
    return root


def _fcpxml_clips(root: Element) -> Iterator[Clip]:
    """The stills of a timeline of Final Cut Pro X, with the words that their assets have."""
    assets = {asset.get("id"): asset for asset in root.iter("asset")}
    for video in root.iterfind(".//spine/video"):
        asset = assets.get(video.get("ref"))
        if asset is None:
            continue
        told = next((md.get("value", "") for md in asset.iter("md") if md.get("key") == FRAME_KEY), "")
        row = _parsed(told.encode(), f"What is said of {asset.get('name')!r}") if told else {}
        row = row if isinstance(row, dict) else {}
        note = video.findtext("note")
        yield {**row, **({"caption": note} if note else {})}, asset.get("src", "")


def _fcp7_clips(root: Element) -> Iterator[Clip]:
    """The stills of a timeline of Final Cut Pro 7, with what their logging fields say."""
    for clip in root.iterfind(".//video/track/clipitem"):
        names = {
            "caption": "logginginfo/description", "notes": "logginginfo/lognote", "dialogue": "comments/mastercomment1",
            "action": "comments/mastercomment2", "camera": "comments/mastercomment3",
        }  # fmt: skip
        told: dict[str, Any] = {name: clip.findtext(path) or "" for name, path in names.items()}
        told |= _lines_in(clip.findtext("comments/mastercomment4") or "")
        told["seconds"] = _seconds(clip)
        yield told, clip.findtext("file/pathurl") or ""


def lines_of(told: Mapping[str, str]) -> str:
    """Return the words of a shot as an editor's comment has them: a line each, "light: moonlight"."""
    return "\n".join(f"{name.replace('_', ' ')}: {words}" for name, words in told.items() if words)


def _lines_in(text: str) -> dict[str, str]:
    """Return the words of a shot by their names, from the lines of a comment; other lines are left out."""
    pairs = (line.partition(":") for line in text.splitlines())
    told = {name.strip().lower().replace(" ", "_"): words.strip() for name, _, words in pairs}
    return {name: told[name] for name in LINES if told.get(name)}


def _seconds(clip: Element) -> float | None:
    """Return how long a clip stands."""
    base, length = clip.findtext("rate/timebase") or "", clip.findtext("duration") or ""
    if not (base.isdecimal() and length.isdecimal() and int(base)):
        return None
    slower = 1001 / 1000 if clip.findtext("rate/ntsc") == "TRUE" else 1.0
    return round(int(length) * slower / int(base), 3)
