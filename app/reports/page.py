"""The frame of every page: templates, pictures as data, a finished run as records, and how numbers are worded.

A page is one self-contained file that asks nothing of the network, so that it can be looked at, printed and passed on.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from katha.errors import InputFileError, unreadable
from katha.jsonio import read_json, read_text, write_bytes_atomic
from katha.schema import Answer, Board, Candidates, Dimension, Plan, StoryRecord
from katha.schema.scores import Scores

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from katha.eval_bridge.matching.match import Rule

# Pages are made from templates in one place, with one style sheet and one set of filters.


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(asset), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    words = (points, change, interval, percent, p_value, dimension, count)
    environment.filters |= {word.__name__: word for word in words}
    environment.globals |= {"asset": asset}
    return environment


def asset(name: str) -> str:
    """Return a template, style sheet or script of the pages."""
    return files("katha.app.reports.templates").joinpath(name).read_text(encoding="utf-8")


def template(source: str | Path) -> Template:
    """Return the template of a file of `templates/`, or the one at a path of one's own.

    Raises:
        InputFileError: the file at the path cannot be read.
    """
    if isinstance(source, Path):
        return _environment().from_string(read_text(source))
    return _environment().get_template(source)


def write_page(path: Path, name: str, **shown: Any) -> Path:
    """Fill the template of that name with what is shown, write the page, and return its path."""
    html = template(name).render(**shown)
    write_bytes_atomic(path, html.encode("utf-8"))
    return path


# Pictures are embedded: large ones as a smaller JPEG, so that a page stays light.

_EMBED_AS_IS = 300_000
_WIDEST = 1024
_SMALL = 320


class Picture(NamedTuple):
    """A frame on a page: its data URI, what kind of frame it is, and what it shows in words."""

    uri: str
    kind: str
    alt: str


def panel_uri(path: Path, *, small: bool = False) -> str:
    """Return the picture at `path` as a data URI; with `small` a JPEG of at most 320 pixels a side.

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


# What a page is made from: the files of a folder as records.

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class Run:
    """Everything that a finished run left in its folder; `info` is `run.json` as it is."""

    folder: Path
    info: dict[str, Any]
    story: StoryRecord
    plan: Plan
    board: Board
    candidates: Candidates
    answers: list[Answer]
    scores: Scores
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

    scores = read_record(folder / "scores.json", Scores)
    return Run(
        folder=folder,
        info=read_json(folder / "run.json"),
        story=read_record(folder / "story.jsonl", StoryRecord),
        plan=read_record(folder / "plan.json", Plan),
        board=read_record(folder / "storyboard.json", Board),
        candidates=read_record(folder / "candidates.json", Candidates),
        answers=list(read_answers(folder / "answers.jsonl")),
        scores=scores,
        matching=folder_rule(scores.matching, folder),
    )


def read_record(path: Path, kind: type[R]) -> R:
    """Return the record in a JSON file.

    Raises:
        InputFileError: the file is missing or does not have its form; the field is named.
    """
    try:
        return kind.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputFileError(f"{str(path)!r}, field {field!r}: {first['msg']}.") from error


# Of scores, what is shown first.


class Headline(NamedTuple):
    """The filtered numbers of one method, by the ensemble where there is one, else by its only judge."""

    judge: str | None = None
    text: float | None = None
    image: float | None = None
    stg: float | None = None
    n_valid: int = 0
    n_questions: int = 0


def headline(scores: Scores, method: str) -> Headline:
    """Return the numbers of a method that are shown first; none where nothing judged it."""
    judges = scores.methods[method].judges
    judge = "ensemble" if "ensemble" in judges else next(iter(judges), None)
    if judge is None:
        return Headline()
    row = judges[judge]
    block = row.filtered
    return Headline(judge, block.text, block.image, block.stg, row.n_valid, row.n_questions)


def unscored(scores: Scores) -> list[str]:
    """Return why a board has no numbers: the notes that say so, one a board and judge."""
    from katha.eval_bridge.scoring.scores import UNSCORED

    return [note for note in scores.notes if f": {UNSCORED}." in note]


# Numbers and names as pages word them; each is a filter of the templates under its own name.

DASH = "\u2013"
DIMENSION_WORDS: dict[Dimension, str] = {
    "action_visibility": "Action",
    "causal": "Cause",
    "emotional": "Emotion",
    "consequence": "Consequence",
    "temporal_order": "Order",
    "moral": "Moral",
}


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
    """A p-value with three decimals, the smallest as a bound; or a dash."""
    return none if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int | None) -> str:
    """A count with its thousands set apart, or a dash."""
    return DASH if value is None else f"{value:,}"


def dimension(name: Dimension) -> str:
    """A dimension's name in one word."""
    return DIMENSION_WORDS[name]
