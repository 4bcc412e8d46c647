"""A board as a page shows it, and as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.reports.page import Run, panel_uri, percent
from katha.errors import InputFileError, StoreError, UsageError
from katha.schema import Board, Candidate, Frame, TransitionScore

if TYPE_CHECKING:
    from PIL.Image import Image

# ---
# A board as the report shows it: its frames, and between them how much of each transition was recovered.


class Images:
    """Panels as data URIs, each read once: whole for the boards, small for the candidates side by side."""

    def __init__(self, run: Run) -> None:
        self._panels = run.folder / "panels"
        self._known: dict[tuple[str, bool], str] = {}

    def uri(self, sha256: str, small: bool) -> str:
        """The panel of that hash."""
        key = (sha256, small)
        if key not in self._known:
            self._known[key] = panel_uri(self._panels / f"{sha256}.png", small=small)
        return self._known[key]


def find_candidate(run: Run, name: str | None) -> Candidate | None:
    """The candidate of that name, if there is one."""
    return next((item for item in run.candidates.candidates if item.name == name), None)


def strip(board: Board, candidate: Candidate, run: Run, images: Images, tag: str) -> list[dict[str, Any]]:
    """Frames and, between the frames of two scenes, the transition that joins them; `tag` marks the weakest."""
    scores = {score.pair: score for score in candidate.transitions}
    weakest = run.candidates.decision.weakest
    cells: list[dict[str, Any]] = []
    last_scene: int | None = None
    for frame in board.frames:
        pair = frame.transition if frame.transition is not None else _pair(last_scene, frame.scene)
        if pair is not None and pair in scores:
            cells.append(_gap(scores.pop(pair), tag if weakest == pair else ""))
        cells.append(frame_view(frame, run, images))
        cells[-1]["bare"] = frame.kind != "scene" and frame is not board.frames[-1]
        last_scene = frame.scene if frame.scene is not None else last_scene
    return cells


def _pair(first: int | None, second: int | None) -> tuple[int, int] | None:
    return None if first is None or second is None else (first, second)


def frame_view(frame: Frame, run: Run, images: Images, small: bool = False) -> dict[str, Any]:
    """What is shown of one frame; `small` for a thumbnail."""
    captions = {panel.index: panel.caption or panel.prompt for panel in run.plan.panels}
    if frame.kind == "scene":
        caption = captions.get(frame.scene or 0, "")
        name = f"Scene {frame.scene}"
    else:
        caption = frame.prompt
        name = "Bridge" if frame.kind == "bridge" else "Extra frame"
        name += f", drawn by {frame.renderer}" if frame.renderer else ""
    return {
        "cell": "frame",
        "kind": frame.kind,
        "index": frame.index,
        "name": name,
        "caption": caption,
        "alt": f"Frame {frame.index}, {name.lower()}: {caption}",
        "uri": images.uri(frame.sha256, small),
        "seed": None if frame.kind == "scene" and found_in(run) else frame.seed,
        "prompt": frame.prompt,
        "sha256": frame.sha256,
    }


def found_in(run: Run) -> str | None:
    """The folder of a board that somebody else made; its scenes have no seed. None for a board that was drawn."""
    spec = run.info.get("renderer") or {}
    return str(spec["path"]) if spec.get("name") == "folder" else None


def _gap(score: TransitionScore, tag: str) -> dict[str, Any]:
    value = score.recoverability
    first, second = score.pair
    judged = f"{percent(value)} of {score.n_questions} steering questions" if value is not None else "not asked"
    return {
        "cell": "gap",
        "pair": f"{first}\u2192{second}",
        "value": value if value is not None else (1.0 if score.covered else 0.0),
        "label": percent(value) if value is not None else ("covered" if score.covered else "not covered"),
        "long": f"Transition from scene {first} to {second}: {judged}; similarity {score.similarity:.2f}.",
        "tag": tag,
    }


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
