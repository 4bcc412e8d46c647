"""A board as a page shows it: pictures in a row, or a strip with what is recovered between them; and as one picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from katha.app.reports.page import Picture, Run, panel_uri, percent
from katha.errors import InputFileError, StoreError, UsageError
from katha.schema import Board, Candidate, Frame, FrameKind, TransitionScore

if TYPE_CHECKING:
    from PIL.Image import Image


def pictures(name: str, frames: Iterable[tuple[int, FrameKind, Path]]) -> list[Picture]:
    """Return small pictures of the board called `name`; frames are given by index, kind and file."""
    return [
        Picture(
            panel_uri(path, small=True),
            kind,
            f"{name}, frame {index}" + ("" if kind == "scene" else f" ({kind})"),
        )
        for index, kind, path in frames
    ]


# ---
# A board of a run: its frames, and between them how much of each transition was recovered.


class FrameCell(NamedTuple):
    """A frame of a strip. `bare`: what follows an inserted frame has no ring of its own."""

    frame: Frame
    name: str
    caption: str
    uri: str
    seed: int | None
    bare: bool = False
    cell: str = "frame"

    @property
    def alt(self) -> str:
        """What the picture shows, for those who do not see it."""
        return f"Frame {self.frame.index}, {self.name.lower()}: {self.caption}"


class GapCell(NamedTuple):
    """A ring between two frames, filled by how much of the transition was recovered (0 to 1)."""

    pair: str
    value: float
    label: str
    long: str
    tag: str
    cell: str = "gap"


Cell = FrameCell | GapCell


class Strips:
    """The boards of one run as a page shows them; each panel is read once for each size."""

    def __init__(self, run: Run) -> None:
        self._run, self._known = run, dict[tuple[str, bool], str]()
        self._captions = {panel.index: panel.caption or panel.prompt for panel in run.plan.panels}
        spec = run.info.get("renderer") or {}
        self.found_in = str(spec["path"]) if spec.get("name") == "folder" else None
        """The folder of a board that somebody else made; its scenes have no seed. None for a board drawn here."""

    def strip(self, board: Board, candidate: Candidate, tag: str) -> list[Cell]:
        """Return frames and, between the frames of two scenes, the transition that joins them.

        tag: what the weakest transition is marked with.
        """
        scores = {score.pair: score for score in candidate.transitions}
        weakest = self._run.candidates.decision.weakest
        cells: list[Cell] = []
        last_scene: int | None = None
        for frame in board.frames:
            pair = frame.transition if frame.transition is not None else _pair(last_scene, frame.scene)
            if pair is not None and pair in scores:
                cells.append(_gap(scores.pop(pair), tag if weakest == pair else ""))
            bare = frame.kind != "scene" and frame is not board.frames[-1]
            cells.append(self.frame(frame)._replace(bare=bare))
            last_scene = frame.scene if frame.scene is not None else last_scene
        return cells

    def frames(self, frames: Iterable[Frame]) -> list[FrameCell]:
        """Return frames as thumbnails."""
        return [self.frame(frame, small=True) for frame in frames]

    def frame(self, frame: Frame, *, small: bool = False) -> FrameCell:
        """Return what is shown of one frame; `small` for a thumbnail."""
        if frame.kind == "scene":
            caption, name = self._captions.get(frame.scene or 0, ""), f"Scene {frame.scene}"
        else:
            caption, name = frame.prompt, "Bridge" if frame.kind == "bridge" else "Extra frame"
            name += f", drawn by {frame.renderer}" if frame.renderer else ""
        seed = None if frame.kind == "scene" and self.found_in is not None else frame.seed
        return FrameCell(frame, name, caption, self._uri(frame.sha256, small), seed)

    def _uri(self, sha256: str, small: bool) -> str:
        if (sha256, small) not in self._known:
            path = self._run.folder / "panels" / f"{sha256}.png"
            self._known[sha256, small] = panel_uri(path, small=small)
        return self._known[sha256, small]


def _pair(first: int | None, second: int | None) -> tuple[int, int] | None:
    return None if first is None or second is None else (first, second)


def _gap(score: TransitionScore, tag: str) -> GapCell:
    value = score.recoverability
    first, second = score.pair
    judged = f"{percent(value)} of {score.n_questions} steering questions" if value is not None else "not asked"
    return GapCell(
        pair=f"{first}\u2192{second}",
        value=value if value is not None else float(score.covered),
        label=percent(value) if value is not None else ("covered" if score.covered else "not covered"),
        long=f"Transition from scene {first} to {second}: {judged}; similarity {score.similarity:.2f}.",
        tag=tag,
    )


# ---
# The storyboard as one picture: its frames in reading order, numbered, the inserted one framed.


_COLUMNS = 3
_CELL_WIDTH = 480
_GAP = 18
_BORDER = 8
_LABEL = 34
_PAPER, _INK, _MARK = "#fbf6ea", "#2b2a33", "#c2571a"
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".pdf")
_KINDS = {"scene": "", "bridge": "  bridge", "extra": "  extra frame"}


def write_sheet(board: Board, run: Path, target: Path) -> Path:
    """Draw the contact sheet of `board` into `target` (PNG, JPEG, WebP or PDF by its name).

    Raises:
        UsageError: another file ending. InputFileError: a panel is missing. StoreError: `target` cannot be written.
    """
    from PIL import Image

    if target.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{str(target)!r}: a contact sheet ends in {', '.join(_SUFFIXES)}.")
    pictures = [_open(run / frame.image) for frame in board.frames]
    height = max(round(_CELL_WIDTH * picture.height / picture.width) for picture in pictures)
    columns = min(_COLUMNS, len(pictures))
    rows = -(-len(pictures) // columns)
    step = (_CELL_WIDTH + _GAP, height + _LABEL + _GAP)
    sheet = Image.new("RGB", (columns * step[0] + _GAP, rows * step[1] + _GAP), _PAPER)
    for position, (frame, picture) in enumerate(zip(board.frames, pictures, strict=True)):
        corner = (_GAP + position % columns * step[0], _GAP + position // columns * step[1])
        _place(sheet, picture, frame, corner)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(target)
    except OSError as error:
        raise StoreError(f"Cannot write {str(target)!r}: {error.strerror or error}.") from error
    return target


def _open(path: Path) -> Image:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise InputFileError(f"{str(path)!r} is not a picture that can be read.") from error


def _place(sheet: Image, picture: Image, frame: Frame, corner: tuple[int, int]) -> None:
    from PIL import Image, ImageDraw, ImageFont

    x, y = corner
    scaled = picture.resize(
        (_CELL_WIDTH, round(_CELL_WIDTH * picture.height / picture.width)), Image.Resampling.LANCZOS
    )
    draw = ImageDraw.Draw(sheet)
    if frame.kind != "scene":
        box = (x - _BORDER, y - _BORDER, x + scaled.width + _BORDER - 1, y + scaled.height + _BORDER - 1)
        draw.rectangle(box, fill=_MARK)
    sheet.paste(scaled, corner)
    colour = _INK if frame.kind == "scene" else _MARK
    label = f"{frame.index}{_KINDS[frame.kind]}"
    draw.text((x + 2, y + scaled.height + _BORDER + 2), label, fill=colour, font=ImageFont.load_default(20))
