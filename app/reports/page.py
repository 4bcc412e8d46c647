"""The frame of every page: environment, files of a run as records, numbers and names as pages word them."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from katha.errors import InputFileError, unreadable
from katha.jsonio import read_json
from katha.schema import Answer, Board, Candidates, Dimension, Plan, Record, StoryRecord

if TYPE_CHECKING:
    from katha.eval_bridge.matching.match import Rule

# ---
# A run's folder as typed records, and its panels as data URIs.


R = TypeVar("R", bound=Record)
_EMBED_AS_IS = 300_000
_WIDEST = 1024
_SMALL = 320


@dataclass(frozen=True)
class Run:
    """Everything that a finished run left in its folder."""

    folder: Path
    info: dict[str, Any]
    story: StoryRecord
    plan: Plan
    board: Board
    candidates: Candidates
    answers: list[Answer]
    scores: dict[str, Any]
    matching: Rule


def load_run(folder: Path) -> Run:
    """Read the files of a finished run.

    Raises:
        InputFileError: a file is missing or does not have its form.
    """
    from katha.eval_bridge.judging.answers import read_answers
    from katha.eval_bridge.matching.rules import folder_rule

    scores = read_json(folder / "scores.json")
    return Run(
        folder=folder,
        info=read_json(folder / "run.json"),
        story=_record(folder / "story.jsonl", StoryRecord),
        plan=_record(folder / "plan.json", Plan),
        board=_record(folder / "storyboard.json", Board),
        candidates=_record(folder / "candidates.json", Candidates),
        answers=list(read_answers(folder / "answers.jsonl")),
        scores=scores,
        matching=folder_rule(scores["matching"], folder),
    )


def _record(path: Path, kind: type[R]) -> R:
    try:
        return kind.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputFileError(f"{str(path)!r}, field {field!r}: {first['msg']}.") from error


def panel_uri(path: Path, *, small: bool = False) -> str:
    """The picture at `path` as a data URI; a large one is embedded as a smaller JPEG so that the report stays light.

    With `small` it is a JPEG of at most 320 pixels a side.

    Raises:
        InputFileError: the panel is missing or is no picture.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    mime = "image/png"
    if small or len(data) > _EMBED_AS_IS:
        data, mime = _lighter(data, path, _SMALL if small else _WIDEST), "image/jpeg"
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


def _lighter(data: bytes, path: Path, side: int) -> bytes:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            picture = image.convert("RGB")
    except (UnidentifiedImageError, OSError) as error:
        raise InputFileError(f"{str(path)!r} is not a picture that can be read.") from error
    picture.thumbnail((side, side))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=85)
    return out.getvalue()


# ---
# Numbers and names as the report words them.


DIMENSION_WORDS: dict[Dimension, str] = {
    "action_visibility": "Action",
    "causal": "Cause",
    "emotional": "Emotion",
    "consequence": "Consequence",
    "temporal_order": "Order",
    "moral": "Moral",
}


def points(value: float | None) -> str:
    """Percentage points with one decimal, or a dash."""
    return "\u2013" if value is None else f"{value:.1f}"


def percent(fraction: float | None) -> str:
    """A fraction of 0 to 1 in whole per cent, or a dash."""
    return "\u2013" if fraction is None else f"{100 * fraction:.0f}%"


def signed(before: float | None, after: float | None) -> str:
    """The change in percentage points with its sign, or a dash."""
    return "\u2013" if before is None or after is None else f"{after - before:+.1f}"
