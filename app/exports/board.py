"""What is exported: a finished run's frames with words, times and descriptive file names, and how they are laid out."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)

from katha.agents.editor.names import caption_of, speaking_name
from katha.agents.editor.talk import Comment, comments_of, status_of
from katha.agents.folder import FIRST_VERSION, RunFolder
from katha.agents.requests import frame_request
from katha.app.exports.reading import needed, standing
from katha.app.reports.page import finished_run, panel_path
from katha.app.views import CastViews, views_of
from katha.config import Flag
from katha.errors import InputFileError
from katha.ids import id_of_name
from katha.jsonio import read_json, read_record
from katha.protocols import FrameRequest
from katha.schema import Board, Frame, FrameKind, Panel, Plan, StoryRecord

Layout = Literal["storyboard", "list", "book", "contact"]
Size = tuple[int, int]
FILM: Size = (1920, 1080)
"""Pixels of a film, a timeline and a player unless told."""
PRINT = "print"
"""The size of a page at 300 dots an inch."""
_LONGEST = 3600.0
_LONGEST_PROMPT = 160
"""Letters that an inserted frame's prompt may have to be its words, where nobody wrote any."""
_SIZE = re.compile(r"(\d{2,5})\s*[xX\u00d7]\s*(\d{2,5})")
_MOST_PIXELS = 40_000_000
_ROUNDED = Fraction(1, 150)
"""How far 23.98 is from 24000/1001, and less."""


def read_rate(value: object) -> Fraction:
    """Return a rate of frames: `25`, `24000/1001`, or as television rounds it, `23.976` for 24000/1001.

    Raises:
        ValueError: it is none.
    """
    try:
        rate = Fraction(str(value).strip())
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{str(value)[:40]!r} is not a rate; write 24, 23.976 or 24000/1001") from None
    nearest = Fraction(round(rate * Fraction(1001, 1000)) * 1000, 1001)
    return nearest if rate.denominator > 1 and abs(rate - nearest) < _ROUNDED else rate


def told_rate(rate: Fraction) -> int | str:
    """Return a rate as it is written: a number, or two with a stroke."""
    return rate.numerator if rate.denominator == 1 else str(rate)


def read_size(value: object) -> object:
    """Return a size in pixels, `1920x1080`, as two numbers; `print` as it is.

    Raises:
        ValueError: it is none.
    """
    if value is None or isinstance(value, (tuple, list)) or value == PRINT:
        return value
    found = _SIZE.fullmatch(str(value).strip())
    size = (int(found[1]), int(found[2])) if found is not None else (0, 0)
    if not 0 < size[0] * size[1] <= _MOST_PIXELS:
        raise ValueError(
            f"{str(value)[:40]!r} is not a size; write WIDTHxHEIGHT in pixels, at most {_MOST_PIXELS:,}, or {PRINT}"
        )
    return size


def _told_size(size: Size | str | None) -> str | None:
    return f"{size[0]}x{size[1]}" if isinstance(size, tuple) else size


def _own_file(value: object, info: ValidationInfo) -> object:
    """Refuse a file that another program names in JSON: what it sends is not what this machine's files are read for."""
    if value is not None and info.mode == "json":
        raise ValueError("files of this machine are named on its command line only")
    return value


def read_isbn(value: str) -> str:
    """Return an ISBN as its digits alone; "" as it is.

    Raises:
        ValueError: it has not 10 or 13 digits, or its check digit is another.
    """
    digits = re.sub(r"[\s-]|^ISBN:?", "", value.strip().upper())
    if not digits:
        return ""
    if re.fullmatch(r"\d{13}", digits):
        good = sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10 == 0
    elif re.fullmatch(r"\d{9}[\dX]", digits):
        good = sum((10 if digit == "X" else int(digit)) * (10 - at) for at, digit in enumerate(digits)) % 11 == 0
    else:
        good = False
    if not good:
        raise ValueError(f"{value[:40]!r} is not an ISBN; check its digits")
    return digits


def told_isbn(isbn: str) -> str:
    """Return an ISBN as it is printed: the prefix apart, as far as that is known without the agencies' tables."""
    return f"{isbn[:3]}-{isbn[3:12]}-{isbn[12:]}" if len(isbn) == 13 else f"{isbn[:-1]}-{isbn[-1:]}"


OwnFile = Annotated[Path | None, BeforeValidator(_own_file)]


class ExportOptions(BaseModel):
    """How a board is laid out and timed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layout: Layout = Field(
        default="storyboard",
        description="Of a PDF: storyboard (a grid with words; unless told), list (a row a frame with scene, shot and "
        "camera), book (a frame a page), contact.",
    )
    page: str = Field(
        default="a4", description="Page size: a4 (unless told), a5, letter, square, or WIDTHxHEIGHT in millimetres."
    )
    landscape: bool = Field(
        default=False, description="Turn the page; one with a single wide frame is turned unless --portrait is given."
    )
    portrait: bool = Field(default=False, description="Keep a page with a single wide frame upright.")
    per_page: int = Field(default=6, ge=1, le=9, description="Frames on a storyboard page, 1 to 9; 6 unless told.")
    text: Literal["below", "facing"] = Field(
        default="below", description="A book's words: below the picture (unless told), or on the facing page."
    )
    bleed: float = Field(default=0.0, ge=0, le=30, description="Bleed around a book's pages, in millimetres.")
    font: Annotated[tuple[Path, ...], Flag(many=True)] = Field(
        default=(), description="A TrueType font to try first, for scripts of your own."
    )
    seconds: float | None = Field(
        default=None,
        gt=0,
        le=600,
        description="How long a frame stands that has no duration; unless told, as long as its words need to be read, "
        "at least 2.",
    )
    fade: float = Field(default=0.3, ge=0, le=5, description="Seconds of cross-fade in films; 0.3 unless told.")
    still: bool = Field(
        default=False,
        description="Keep films and the player still: no move of the camera, no layers that move, no eyes that blink.",
    )
    fps: Annotated[
        Fraction, BeforeValidator(read_rate), PlainSerializer(told_rate), WithJsonSchema({"type": "string"})
    ] = Field(
        default=Fraction(24),
        ge=1,
        le=120,
        description="Frames a second of films and timelines; 24 unless told. 23.976, 29.97 and 30000/1001 are exact.",
    )
    plain: bool = Field(
        default=False, description="Leave captions out of films, contact sheets and the names of pictures."
    )
    language: str = Field(
        default="en",
        pattern=r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*",
        description="The words' language, as in BCP 47; en unless told.",
    )
    audio: Path | None = Field(
        default=None,
        description="A sound file for the whole board; or a folder of them: 03.wav or 3_door.mp3 is of frame 3, "
        "board.mp3 of the whole.",
    )
    size: Annotated[
        Size | Literal["print"] | None,
        BeforeValidator(read_size),
        PlainSerializer(_told_size),
        WithJsonSchema({"type": "string"}),
    ] = Field(
        default=None,
        description="Pixels of the pictures, WIDTHxHEIGHT (drawings are drawn at it, others scaled), or print: "
        "the page at 300 dpi. Unless told, 1920x1080 for films, timelines and the player, else as they were drawn.",
    )
    logo: OwnFile = Field(default=None, description="A picture for the head of a PDF's storyboard pages and lists.")
    date: str = Field(
        default="", max_length=40, description="A date for the head of a PDF's storyboard pages and for an imprint."
    )
    author: str = Field(default="", max_length=200, description="Who wrote and drew a book.")
    publisher: str = Field(default="", max_length=200, description="Who publishes a book.")
    isbn: Annotated[str, AfterValidator(read_isbn)] = Field(
        default="", description="A book's ISBN, of 13 or 10 digits; its check digit is checked."
    )
    multiple: int = Field(
        default=4,
        ge=1,
        le=64,
        description="A book of a PDF has a multiple of so many pages; 4 unless told, 1: any number.",
    )
    icc: OwnFile = Field(
        default=None,
        description="The printer's colour profile (ICC): a book is PDF/X-4 with it, letters in black ink.",
    )
    spoken: Literal["dialogue", "captions", "both"] = Field(
        default="dialogue", description="What subtitles say: dialogue (unless told), captions, both."
    )
    dataset: str | None = Field(
        default=None,
        description="Of hub-results: the benchmark's repository on the Hugging Face Hub, ORGANISATION/NAME.",
    )


@dataclass(frozen=True)
class ExportFrame:
    """One frame of the board as other tools see it.

    Args:
        number: Its place in the board, from 1.
        kind: scene, bridge or extra.
        name: A file name that tells what it shows, without an ending: `03_the_fox_begs`.
        picture: The drawn file.
        seconds: How long it stands.
        prompt: What it was drawn from, with `seed`.
        drawn_by: The renderer, as it was named.
        asked: What a renderer that draws the panels' fields was asked for.
        source: The drawing that the picture was made from; None where it was made otherwise.
        sound: What is heard, in words.
        shows: What its picture shows, in the plan's words.
        status: What was decided about it: open, changes, approved; empty where nothing was.
    """

    number: int
    kind: Literal["scene", "bridge", "extra"]
    name: str
    picture: Path
    caption: str
    dialogue: str
    action: str
    notes: str
    seconds: float
    sha256: str
    prompt: str
    seed: int
    drawn_by: str
    asked: FrameRequest
    source: Path | None = None
    place: str = ""
    time_of_day: str = ""
    shot_size: str = ""
    shot_angle: str = ""
    camera: str = ""
    camera_move: str = ""
    weather: str = ""
    light: str = ""
    sound: str = ""
    shows: str = ""
    status: str = ""
    comments: tuple[Comment, ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """The words of a book or a film: what is told, then what is spoken."""
        return words_of(self.kind, self.caption, self.dialogue)

    @property
    def spoken(self) -> str:
        """The dialogue, where the caption does not say it already."""
        return _unsaid(self.dialogue, self.caption)

    @property
    def mark(self) -> str:
        """The number, with the kind of a frame that the story itself does not have."""
        return str(self.number) if self.kind == "scene" else f"{self.number} ({self.kind})"

    @property
    def scene(self) -> str:
        """Return where and when it is, and in what light and weather: "the kitchen, night, moonlight"."""
        told = (self.place.replace("_", " "), self.time_of_day, self.light, self.weather)
        return ", ".join(part for part in told if part)

    @property
    def filmed(self) -> str:
        """Return how the camera moves, and where it is."""
        return ", ".join(part for part in (self.camera_move, self.camera) if part)

    @property
    def shot(self) -> str:
        """Return how it is framed: "wide shot, low angle"."""
        return ", ".join(part.replace("_", " ") for part in (self.shot_size, self.shot_angle) if part)


@dataclass(frozen=True)
class ExportBoard:
    """A board that is ready to be exported. version: its name in the run. cast: the views that
    are drawn of it; looks: how each of the cast looks now, by name. remarks: what there is to say of an export,
    a sentence each. on_frame: called while a film is made, with how many frames are done, of how many."""

    story_id: str
    title: str
    text: str
    shots: tuple[ExportFrame, ...]
    renderer: str
    width: int
    height: int
    version: str = ""
    cast: tuple[CastViews, ...] = ()
    looks: Mapping[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    on_frame: Callable[[int, int], None] = lambda done, total: None

    @property
    def seconds(self) -> float:
        """Return how long the whole board stands."""
        return sum(shot.seconds for shot in self.shots)


def words_of(kind: FrameKind, caption: str, dialogue: str) -> tuple[str, ...]:
    """Return the words of a frame: what is told, then what is spoken. An inserted frame has those that a person wrote
    for it, else what it shows, where that is a sentence or two."""
    told = caption if kind == "scene" or len(caption) <= _LONGEST_PROMPT else ""
    return tuple(words for words in (told, _unsaid(dialogue, caption)) if words)


def _unsaid(dialogue: str, caption: str) -> str:
    return dialogue if dialogue.casefold() not in caption.casefold() else ""


def tell_hurried(sheet: ExportBoard) -> None:
    """Remark on the frames that stand for less time than their words need to be read."""
    found = [(shot, needed(shot.said)) for shot in sheet.shots]
    short = [f"{shot.number} ({shot.seconds:g} s; {time:.1f} s)" for shot, time in found if shot.seconds < time - 0.25]
    if short:
        some, least = ("Frame", "stands") if len(short) == 1 else ("Frames", "stand")
        said = f"{some} {', '.join(short)} {least} for less time than the words need, which is the second number"
        sheet.remarks.append(f"{said}: give a duration, or none.")


def read_sheet(run: Path, options: ExportOptions) -> ExportBoard:
    """Return the board of a finished run.

    A panel's `dialogue`, `action`, `notes`, `sound` and `duration` (seconds) are read from `plan.json`, where they are
    written; those of an inserted frame from `storyboard.json`.

    Raises:
        InputFileError: the run has not finished, a picture is missing or none, or a duration is not a number of
        seconds.
    """
    folder = finished_run(run)
    board = read_record(folder / "storyboard.json", Board)
    plan = read_record(folder / "plan.json", Plan)
    story = read_record(folder / "story.jsonl", StoryRecord)
    panels = {panel.index: panel for panel in plan.panels}
    shots = tuple(
        _shot(folder, frame, panels.get(frame.scene or 0), options, frame.renderer or board.renderer, plan)
        for frame in board.frames
    )
    if not shots:
        raise InputFileError(f"The run in {str(run)!r} has no frame.")
    width, height = _size(shots)
    title = _clean(RunFolder(folder).title(story)) or story.story_id.replace("_", " ")
    text = "\n".join(map(_clean, story.story_text.splitlines()))
    looks = {item.name: item.appearance or item.kind for item in plan.characters}
    told = (board.story_id, title, text, shots, board.renderer, width, height, _version(folder))
    return ExportBoard(*told, cast=tuple(views_of(folder)), looks=looks)


def file_name(run: Path) -> str:
    """Return what the file of an export of a run is called, without an ending: by the board's title alone."""
    return id_of_name(RunFolder(run).title(read_record(run / "story.jsonl", StoryRecord)))


def _shot(
    folder: Path, frame: Frame, panel: Panel | None, options: ExportOptions, renderer: str, plan: Plan
) -> ExportFrame:
    shown = panel if frame.kind == "scene" else frame.panel
    told: Mapping[str, Any] = shown.model_dump() if shown is not None else {}
    if frame.kind != "scene":
        told = {**told, **(frame.model_extra or {})}
    caption = caption_of(frame, plan)
    picture = panel_path(folder, frame)
    spoken = _words(told, "dialogue")
    usual = options.seconds or standing(words_of(frame.kind, _clean(caption), spoken))
    if not picture.is_file():
        raise InputFileError(
            f"The picture of frame {frame.index} is missing: {str(picture)!r}.", hint="Give the run's command again."
        )
    return ExportFrame(
        number=frame.index,
        kind=frame.kind,
        name=speaking_name(frame.index, caption, frame.kind) if not options.plain else f"{frame.index:02d}",
        picture=picture,
        caption=_clean(caption),
        seconds=_seconds(told.get("duration"), frame, usual),
        sha256=frame.sha256,
        prompt=_clean(frame.prompt),
        seed=frame.seed,
        drawn_by=renderer,
        asked=frame_request(plan, frame, (0, 0)),
        source=_source(folder, frame),
        shows=_clean(panel.prompt if frame.kind == "scene" and panel is not None else frame.prompt),
        status=status_of(frame),
        comments=comments_of(frame),
        **{key: _words(told, key) for key in WORDS},
    )


def _version(folder: Path) -> str:
    """Return the name of the version that the board stands at."""
    told = read_json(folder / "run.json")
    name = told.get("version") if isinstance(told, dict) else None
    return name if isinstance(name, str) else FIRST_VERSION


def _source(folder: Path, frame: Frame) -> Path | None:
    """Return the drawing beside a frame's picture; None where there is none."""
    path = folder / "panels" / f"{frame.sha256}.svg"
    return path if frame.source is not None and path.is_file() else None


WORDS = (
    "dialogue", "action", "notes", "sound", "place", "time_of_day", "shot_size", "shot_angle", "camera",
    "camera_move", "weather", "light",
)  # fmt: skip
"""What is said of a frame beside its caption, by the names of its panel's fields."""


def _words(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return _clean(value) if isinstance(value, str) else ""


def _clean(words: str) -> str:
    """Return words in one line, without what no XML may hold (control characters, halves of letters)."""
    return " ".join("".join(" " if letter.isspace() else letter for letter in words if _is_text(letter)).split())


def _is_text(letter: str) -> bool:
    return letter.isspace() or (unicodedata.category(letter) not in ("Cc", "Cs") and ord(letter) & 0xFFFE != 0xFFFE)


def _seconds(value: object, frame: Frame, default: float) -> float:
    if value is None:
        return default
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 < value <= _LONGEST
    ):
        return float(value)
    where = f"plan.json, panel {frame.scene}" if frame.kind == "scene" else f"storyboard.json, frame {frame.index}"
    raise InputFileError(f"{where}: 'duration' must be seconds, above 0, at most {_LONGEST:,.0f}; it is {value!r}.")


def _size(shots: tuple[ExportFrame, ...]) -> tuple[int, int]:
    """Return width and height of the first frame, in pixels.

    Raises:
        InputFileError: it is not a picture.
    """
    from katha.app.reports.page import open_picture

    for shot in shots[1:]:
        open_picture(shot.picture)
    first = open_picture(shots[0].picture)
    return first.width, first.height
