"""Cut a comic, a picture book or a film into the frames of a board that `katha eval` and `katha run --import` take.

What was found is in OUT/cut.yaml, which a person may correct; the same command then cuts by the file and looks for
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from katha.app.cutting.boxes import Box, Order
from katha.app.cutting.panels import find_panels
from katha.app.cutting.shots import FILMS, FilmShot, find_shots, frames_at, read_shots
from katha.app.cutting.sources import PageSource, open_source
from katha.config import Flag
from katha.errors import InputFileError, UsageError, first_line
from katha.jsonio import dumps, file_sha256, read_yaml, sha256_hex, write_bytes_atomic
from katha.lettering import WordScanner, without_words
from katha.pictures import as_png
from katha.renderers.folder import read_pages
from katha.schema import Board, Frame

if TYPE_CHECKING:
    from PIL.Image import Image

By = Literal["panels", "pages", "shots"]
Text = Literal["mask", "keep"]
RECORD = "cut.yaml"
_BOARD = "storyboard.json"
# Smaller pieces are specks of a scan; renderers and judges refuse pictures under 16 pixels, too.
_SMALLEST = 16
_ABOUT = """\
# What `katha cut` found. Correct it and give the same command again: it cuts by this file and looks for nothing.
# Boxes are [left, top, right, bottom] in pixels of the page; panels are frames in this order, text is painted over.
# Seconds: a shot begins at `start`, ends at `end`, and is shown by its frame at `at`.
"""


class CutOptions(BaseModel):
    """How frames are cut."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: By | None = Field(
        default=None,
        description="panels (of comics), pages (of picture books) or shots (of films); by the file's kind.",
    )
    order: Order | None = Field(
        default=None, description="How panels are read: ltr (unless told), rtl (manga) or ttb (straight down)."
    )
    text: Text | None = Field(
        default=None, description="mask (unless told) paints what is written over, since it tells the story; or keep."
    )
    pages: str | None = Field(default=None, description="Only these pages, 2-9 or 1,3,5-8.")
    shots: Annotated[Path | None, Flag("--shots")] = Field(
        default=None, description="A file with the film's shots: start and end of each, a line a shot."
    )


class CutPage(BaseModel):
    """One page as it is cut."""

    model_config = ConfigDict(extra="forbid")

    page: int = Field(ge=1)
    size: tuple[int, int]
    panels: list[tuple[int, int, int, int]]
    text: list[tuple[int, int, int, int]] = []

    @model_validator(mode="after")
    def _panels_are_on_the_page(self) -> Self:
        for left, top, right, bottom in self.panels:
            inside = left >= 0 and top >= 0 and right <= self.size[0] and bottom <= self.size[1]
            if not inside or right - left < _SMALLEST or bottom - top < _SMALLEST:
                box = [left, top, right, bottom]
                raise ValueError(f"the panel {box} is not on the page, or is under {_SMALLEST} pixels a side")
        return self


class CutShot(BaseModel):
    """One shot as it is shown."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    start: float = Field(ge=0)
    end: float
    at: float = Field(ge=0)
    text: list[tuple[int, int, int, int]] = []


class CutFile(BaseModel):
    """`cut.yaml`: where every frame comes from."""

    model_config = ConfigDict(extra="forbid")

    source: str
    sha256: str
    by: By
    order: Order = "ltr"
    text: Text = "mask"
    pages: list[CutPage] = []
    shots: list[CutShot] = []

    @property
    def count(self) -> int:
        """Return how many frames there are."""
        return len(self.shots) + sum(len(page.panels) for page in self.pages)


@dataclass(frozen=True)
class CutBoard:
    """A board that was cut. corrected: by a file that was there already."""

    out: Path
    file: CutFile
    board: Board
    corrected: bool


@dataclass(frozen=True)
class CutSheet:
    """A page or shot as it is previewed: its picture as found, what is written on it, and its frames."""

    name: str
    picture: Image
    text: tuple[Box, ...]
    panels: tuple[Box, ...]
    first: int


def cut(source: Path, out: Path, options: CutOptions, on_sheet: Callable[[CutSheet], None] | None = None) -> CutBoard:
    """Cut `source` into the frames of a board in the folder `out`, and return what was cut.

    Args:
        source: A folder of pages, a picture, a CBZ, a PDF, or a film.
        out: The board's folder; its name is the story's id. A `cut.yaml` in it is obeyed.
        options: How to cut.
        on_sheet: Is told every page and shot.

    Raises:
        InputFileError: the source cannot be read, is another than the file's, or the file is not a cut.
        UsageError: the options do not fit the source, or the file that is there.
        MissingExtraError: what finds panels, words or shots is not installed.
    """
    found, corrected = _read(out / RECORD), True
    if found is None:
        found, corrected = _look(source, options), False
    else:
        _require_same(found, source, options, out)
    if not found.count:
        raise InputFileError(f"{str(source)!r} gives no frame.", hint=f"Give {RECORD} one, or choose other pages.")
    if not corrected:
        _write(out / RECORD, found)
    frames: list[Frame] = []
    for sheet in _sheets(found, source):
        if on_sheet is not None:
            on_sheet(sheet)
        clean = without_words(sheet.picture, sheet.text)
        for box in sheet.panels:
            png = as_png(clean.crop(box))
            image = f"panels/{sha256_hex(png)}.png"
            write_bytes_atomic(out / image, png)
            at = len(frames) + 1
            frames.append(Frame(index=at, scene=at, image=image, sha256=sha256_hex(png), prompt="", seed=0))
    board = Board(
        story_id=out.resolve().name,
        method="cut",
        mode="cut",
        planner="none",
        renderer="cut",
        seed=0,
        plan_sha256=file_sha256(out / RECORD),
        frames=frames,
    )
    write_bytes_atomic(out / _BOARD, dumps(board.model_dump(mode="json")).encode("utf-8"))
    _clear(out / "panels", {Path(frame.image).name for frame in frames})
    return CutBoard(out, found, board, corrected)


def _clear(panels: Path, kept: set[str]) -> None:
    """Take frames of an earlier cut away: pictures named by a hash, and no other file."""
    for path in panels.glob("*.png"):
        if len(path.stem) == 64 and path.name not in kept:
            path.unlink()


def _look(source: Path, options: CutOptions) -> CutFile:
    """Find the frames of a source."""
    film = source.suffix.lower() in FILMS and source.is_file()
    by: By = options.by or ("shots" if film else "panels")
    if film != (by == "shots"):
        raise UsageError(
            f"{str(source)!r} is {'a' if film else 'not a'} film: it is not cut by {by}.", hint="Leave --by out."
        )
    told = [name for name, given in (("pages", options.pages), ("order", options.order)) if given is not None]
    if by == "shots" and told:
        raise UsageError(f"--{told[0]} is for pages.", hint="A film is cut by shots.")
    if by != "shots" and options.shots is not None:
        raise UsageError("--shots is for films.", hint="Leave it out.")
    text, order = options.text or "mask", options.order or "ltr"
    scanner = WordScanner("--text mask") if text == "mask" else None
    head = {"source": source.resolve().name, "by": by, "order": order, "text": text}
    if by == "shots":
        shots = read_shots(options.shots) if options.shots is not None else find_shots(source)
        pictures = frames_at(source, [shot.at for shot in shots])
        found = [_shot(shot, picture, scanner) for shot, picture in zip(shots, pictures, strict=True)]
        return CutFile.model_validate({**head, "sha256": file_sha256(source), "shots": found})
    pages = open_source(source)
    places = read_pages(options.pages) if options.pages is not None else range(len(pages))
    beyond = max(places, default=0) + 1
    if beyond > len(pages):
        raise UsageError(f"{str(source)!r} has {len(pages)} pages and no page {beyond}.", hint="Correct --pages.")
    made = [_page(pages, place, by, order, scanner) for place in places]
    return CutFile.model_validate({**head, "sha256": pages.sha256(), "pages": made})


def _page(pages: PageSource, place: int, by: By, order: Order, scanner: WordScanner | None) -> CutPage:
    picture = pages.page(place)
    panels = find_panels(picture, order) if by == "panels" else [Box(0, 0, *picture.size)]
    text = scanner.places(picture) if scanner is not None else []
    return CutPage(page=place + 1, size=picture.size, panels=list(panels), text=text)


def _shot(shot: FilmShot, picture: Image, scanner: WordScanner | None) -> CutShot:
    text = scanner.places(picture) if scanner is not None else []
    return CutShot(start=shot.start, end=shot.end, at=shot.at, text=text)


def _sheets(found: CutFile, source: Path) -> Iterator[CutSheet]:
    """Yield every page and shot that frames come from."""
    if found.by == "shots":
        pictures = frames_at(source, [shot.at for shot in found.shots])
        for number, (shot, picture) in enumerate(zip(found.shots, pictures, strict=True), 1):
            name = f"Shot {number}: {shot.start:g} to {shot.end:g} s, shown at {shot.at:g} s"
            whole = Box(0, 0, *picture.size)
            yield CutSheet(name, picture, tuple(Box(*box) for box in shot.text), (whole,), number)
        return
    pages, first = open_source(source), 1
    for page in found.pages:
        if page.page > len(pages):
            raise InputFileError(f"{RECORD} names page {page.page}; {str(source)!r} has {len(pages)}.")
        picture = pages.page(page.page - 1)
        if picture.size != page.size:
            raise InputFileError(f"{RECORD}: page {page.page} is {picture.size[0]} x {picture.size[1]} pixels.")
        panels = tuple(Box(*box) for box in page.panels)
        yield CutSheet(f"Page {page.page}", picture, tuple(Box(*box) for box in page.text), panels, first)
        first += len(panels)


def _require_same(found: CutFile, source: Path, options: CutOptions, out: Path) -> None:
    """Refuse a source or options that are not those of the file that is there.

    Raises:
        InputFileError: the source has changed. UsageError: an option says something else.
    """
    hint = f"Name another --out, or take {str(out / RECORD)!r} away to look again."
    told = {name: getattr(options, name) for name in ("by", "order", "text")}
    other = next((name for name, value in told.items() if value not in (None, getattr(found, name))), None)
    if other is not None:
        raise UsageError(f"{RECORD} says {other} {getattr(found, other)}, the command {told[other]}.", hint=hint)
    pages = [page.page - 1 for page in found.pages]
    if options.pages is not None and not set(pages) <= set(read_pages(options.pages)):
        raise UsageError(f"{RECORD} has other pages than --pages {options.pages}.", hint=hint)
    if (found.by == "shots") != (source.suffix.lower() in FILMS and source.is_file()):
        raise InputFileError(f"{RECORD} is of {found.source!r}, not of {str(source)!r}.", hint=hint)
    sha256 = file_sha256(source) if found.by == "shots" else open_source(source).sha256()
    if sha256 != found.sha256:
        raise InputFileError(f"{str(source)!r} is not what {RECORD} was made from ({found.source!r}).", hint=hint)


def _read(path: Path) -> CutFile | None:
    if not path.exists():
        return None
    try:
        return CutFile.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        said = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise InputFileError(f"{str(path)!r}, field {where!r}: {first_line(Exception(said))}.") from error


def _write(path: Path, found: CutFile) -> None:
    """Write the file, boxes one a line."""

    class Dumper(yaml.SafeDumper):
        """Keeps a box on one line."""

    Dumper.add_representer(tuple, lambda to, box: to.represent_sequence("tag:yaml.org,2002:seq", box, flow_style=True))
    text = yaml.dump(found.model_dump(), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=200)
    write_bytes_atomic(path, (_ABOUT + text).encode("utf-8"))
