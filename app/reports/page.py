"""The frame of every page: environment, files of a run as records, numbers and names as pages word them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from katha.errors import InputFileError, unreadable
from katha.eval_bridge.scoring.scores import UNSCORED
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


def finished_run(folder: Path) -> Path:
    """Return `folder` if it holds a run that has a storyboard.

    Raises:
        InputFileError: It does not; the message says how to make one.
    """
    if not (folder / "run.json").is_file():
        raise InputFileError(f"{str(folder)!r} is not the folder of a run.", hint="Make one with `katha run STORY`.")
    if not (folder / "storyboard.json").is_file():
        raise InputFileError(
            f"The run in {str(folder)!r} has not finished.", hint="Give the same `katha run` command again."
        )
    return folder


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
# What is shown of scores first.


def headline(scores: dict[str, Any], method: str) -> dict[str, Any]:
    """The filtered block of one method, by the ensemble where there is one, else by its only judge."""
    judges = scores["methods"][method]["judges"]
    judge = "ensemble" if "ensemble" in judges else next(iter(judges), None)
    if judge is None:
        return {"judge": None, "text": None, "image": None, "stg": None, "n_valid": 0, "n_questions": 0}
    block = judges[judge]
    filtered = block["filtered"]
    return {
        "judge": judge,
        "text": filtered["text"],
        "image": filtered["image"],
        "stg": filtered["stg"],
        "n_valid": block["n_valid"],
        "n_questions": block["n_questions"],
    }


def unscored(scores: dict[str, Any]) -> list[str]:
    """Why a board has no numbers: the notes that say so, one a board and judge."""
    return [note for note in scores["notes"] if f": {UNSCORED}." in note]


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


DASH = "\u2013"


def points(value: float | None, none: str = DASH) -> str:
    """Percentage points with one decimal, or a dash."""
    return none if value is None else f"{value:.1f}"


def change(value: float | None, none: str = DASH) -> str:
    """A difference in percentage points with its sign, or a dash."""
    return none if value is None else f"{value:+.1f}"


def interval(ends: Sequence[float] | None, form: str = ".1f", none: str = "") -> str:
    """The ends of an interval, `12.0 to 34.5`; nothing where there is none."""
    return f"{ends[0]:{form}} to {ends[1]:{form}}" if ends else none


def percent(fraction: float | None) -> str:
    """A fraction of 0 to 1 in whole per cent, or a dash."""
    return DASH if fraction is None else f"{100 * fraction:.0f}%"


def p_value(value: float | None, none: str = DASH) -> str:
    """A p-value to three digits, or a dash."""
    return none if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
