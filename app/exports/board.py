"""What is exported: a finished run's frames with words, times and speaking names, and how they are laid out."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from katha.agents.editor.names import speaking_name
from katha.agents.requests import frame_request
from katha.app.reports.page import finished_run, panel_path
from katha.config import Flag
from katha.errors import InputFileError
from katha.jsonio import read_record
from katha.protocols import FrameRequest
from katha.schema import Board, Frame, Panel, Plan, StoryRecord

Layout = Literal["storyboard", "book", "contact"]
_LONGEST = 3600.0


class ExportOptions(BaseModel):
    """How a board is laid out and timed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layout: Layout = Field(
        default="storyboard",
        description="Of a PDF: storyboard (a grid with words; unless told), book (a frame a page), contact.",
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
    seconds: float = Field(
        default=2.0, gt=0, le=600, description="How long a frame stands that has no duration; 2 unless told."
    )
    fade: float = Field(default=0.3, ge=0, le=5, description="Seconds of cross-fade in films; 0.3 unless told.")
    still: bool = Field(
        default=False, description="Keep drawings still in films, where their layers would move and eyes blink."
    )
    fps: int = Field(default=24, ge=1, le=120, description="Frames a second of films and timelines; 24 unless told.")
    plain: bool = Field(
        default=False, description="Leave captions out of films, contact sheets and the names of pictures."
    )
    language: str = Field(
        default="en",
        pattern=r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*",
        description="The words' language, as in BCP 47; en unless told.",
    )
    audio: Path | None = Field(default=None, description="A sound file that is laid under an mp4.")
    dataset: str | None = Field(
        default=None,
        description="Of hub-results: the benchmark's repository on the Hugging Face Hub, ORGANISATION/NAME.",
    )


@dataclass(frozen=True)
class Shot:
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

    @property
    def said(self) -> tuple[str, ...]:
        """The words of a book or a film: what is told, then what is spoken; the story has none for a bridge."""
        if self.kind != "scene":
            return ()
        spoken = self.dialogue if self.dialogue.casefold() not in self.caption.casefold() else ""
        return tuple(words for words in (self.caption, spoken) if words)

    @property
    def mark(self) -> str:
        """The number, with the kind of a frame that the story itself does not have."""
        return str(self.number) if self.kind == "scene" else f"{self.number} ({self.kind})"


@dataclass(frozen=True)
class Sheet:
    """A board that is ready to be exported."""

    story_id: str
    title: str
    text: str
    shots: tuple[Shot, ...]
    renderer: str
    width: int
    height: int

    @property
    def seconds(self) -> float:
        """How long the whole board stands."""
        return sum(shot.seconds for shot in self.shots)


def read_sheet(run: Path, options: ExportOptions) -> Sheet:
    """Return the board of a finished run.

    A panel's `dialogue`, `action`, `notes` and `duration` (seconds) are read from `plan.json`, where they are written.

    Raises:
        InputFileError: the run has not finished, a picture is missing or none, or a duration is no number of seconds.
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
    title = _clean(story.title or "") or story.story_id.replace("_", " ")
    text = "\n".join(map(_clean, story.story_text.splitlines()))
    return Sheet(board.story_id, title, text, shots, board.renderer, width, height)


def _shot(folder: Path, frame: Frame, panel: Panel | None, options: ExportOptions, renderer: str, plan: Plan) -> Shot:
    told: Mapping[str, Any] = (panel.model_extra or {}) if panel is not None else {}
    caption = (panel.caption or panel.prompt) if panel is not None else frame.prompt
    if frame.kind != "scene":
        caption = frame.prompt
    picture = panel_path(folder, frame)
    if not picture.is_file():
        raise InputFileError(
            f"The picture of frame {frame.index} is missing: {str(picture)!r}.", hint="Give the run's command again."
        )
    return Shot(
        number=frame.index,
        kind=frame.kind,
        name=speaking_name(frame.index, caption, frame.kind) if not options.plain else f"{frame.index:02d}",
        picture=picture,
        caption=_clean(caption),
        dialogue=_words(told, "dialogue") if frame.kind == "scene" else "",
        action=_words(told, "action") if frame.kind == "scene" else "",
        notes=_words(told, "notes") if frame.kind == "scene" else "",
        seconds=_seconds(told.get("duration"), frame.index, options.seconds)
        if frame.kind == "scene"
        else options.seconds,
        sha256=frame.sha256,
        prompt=_clean(frame.prompt),
        seed=frame.seed,
        drawn_by=renderer,
        asked=frame_request(plan, frame, (0, 0)),
        source=_source(folder, frame),
    )


def _source(folder: Path, frame: Frame) -> Path | None:
    """Return the drawing beside a frame's picture; None where there is none."""
    path = folder / "panels" / f"{frame.sha256}.svg"
    return path if frame.source is not None and path.is_file() else None


def _words(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return _clean(value) if isinstance(value, str) else ""


def _clean(words: str) -> str:
    """Return words in one line, without what no XML may hold (control characters, halves of letters)."""
    return " ".join("".join(" " if letter.isspace() else letter for letter in words if _is_text(letter)).split())


def _is_text(letter: str) -> bool:
    return letter.isspace() or (unicodedata.category(letter) not in ("Cc", "Cs") and ord(letter) & 0xFFFE != 0xFFFE)


def _seconds(value: object, index: int, default: float) -> float:
    if value is None:
        return default
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 < value <= _LONGEST
    ):
        return float(value)
    raise InputFileError(
        f"plan.json, panel {index}: 'duration' must be seconds, above 0, at most {_LONGEST:,.0f}; it is {value!r}."
    )


def _size(shots: tuple[Shot, ...]) -> tuple[int, int]:
    """Return width and height of the first frame, in pixels.

    Raises:
        InputFileError: it is no picture.
    """
    from katha.app.reports.page import open_picture

    for shot in shots[1:]:
        open_picture(shot.picture)
    first = open_picture(shots[0].picture)
    return first.width, first.height
