"""What pages share: their frame, pictures as data, a folder's files as records, the table of questions, and how numbers
are worded.

A page is one self-contained file that asks nothing of the network, so that it can be looked at, printed and passed on.
"""

from __future__ import annotations

import base64
import io
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from katha.agents.folder import RunRecord
from katha.errors import InputFileError
from katha.eval_bridge.judging.answers import read_answers
from katha.eval_bridge.matching.match import Rule, match
from katha.eval_bridge.matching.rules import scored_rule
from katha.eval_bridge.scoring.gate import CANNOT, unmeasured
from katha.eval_bridge.scoring.scores import UNSCORED
from katha.jsonio import dumps, read_record, read_text, write_bytes_atomic
from katha.pictures import ByteCache, decode, decoded, read_picture
from katha.schema import (
    Answer,
    Board,
    Candidates,
    Condition,
    Dimension,
    Frame,
    FrameKind,
    Plan,
    Question,
    ReadBack,
    Stage,
    StoryRecord,
)
from katha.schema.scores import NO_SCORES, Block, Scores

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from PIL.Image import Image

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
    write_bytes_atomic(path, template(name).render(**shown).encode("utf-8"))
    return path


def worded(name: str, value: object) -> str:
    """Return a value of a state file as the list of what repeats a run shows it."""
    if isinstance(value, list) and name in ("command", "seeds"):
        return shlex.join(value) if name == "command" else ", ".join(map(str, value))
    return value if isinstance(value, str) else dumps(value).strip()


# Pictures are embedded: large ones as a smaller JPEG, so that a page stays light.

_EMBED_AS_IS, _WIDEST, _SMALL = 300_000, 1024, 320


class Picture(NamedTuple):
    """A frame on a page: its data URI, what kind of frame it is, and what it shows in words."""

    uri: str
    kind: str
    alt: str


def pictures(name: str, frames: Iterable[tuple[int, FrameKind, Path]]) -> list[Picture]:
    """Return small pictures of the board called `name`; frames are given by index, kind and file."""
    return [
        Picture(panel_uri(path, small=True), kind, f"{name}, frame {index}" + ("" if kind == "scene" else f" ({kind})"))
        for index, kind, path in frames
    ]


_KEPT_BYTES = 64_000_000


@dataclass(frozen=True)
class _Light:
    """A picture as a page shows it small."""

    uri: str

    @property
    def weight(self) -> int:
        """Bytes that it takes."""
        return len(self.uri)


@cache
def _thumbnails() -> ByteCache[_Light]:
    """Small pictures by the bytes that they are of: a report that is written again has most of them already."""
    return ByteCache(_KEPT_BYTES, lambda data: _Light(jpeg_uri(decoded(data), _SMALL)))


def panel_uri(path: Path, *, small: bool = False) -> str:
    """Return the picture at `path` as a data URI; with `small` a JPEG of at most 320 pixels a side.

    Raises:
        InputFileError: the panel is missing or is not a picture.
    """
    data = read_picture(path, repr(str(path)))
    if not small:
        large = len(data) > _EMBED_AS_IS
        return jpeg_uri(open_picture(path, data), _WIDEST) if large else data_uri(data, "image/png")
    try:
        return _thumbnails().get(data).uri
    except InputFileError as error:
        said = error.message.replace("The picture", repr(str(path)), 1)
        raise InputFileError(said, hint=error.hint) from error


def jpeg_uri(picture: Image, side: int = _WIDEST) -> str:
    """Return a picture in RGB as the data URI of a JPEG of at most `side` pixels a side; nothing but pixels is kept."""
    out, small = io.BytesIO(), picture.copy()
    small.thumbnail((side, side))
    small.info.clear()
    small.save(out, "JPEG", quality=85)
    return data_uri(out.getvalue(), "image/jpeg")


def data_uri(data: bytes, mime: str) -> str:
    """Return bytes as a data URI."""
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


def open_picture(path: Path, data: bytes | None = None) -> Image:
    """Return the picture at `path` in RGB; with `data`, its bytes, the file is not read again.

    Raises:
        InputFileError: it is not a picture.
    """
    whole = read_picture(path, repr(str(path))) if data is None else data
    return decode(whole, repr(str(path)))


def thumbnail(png: bytes, size: int) -> bytes:
    """Return a picture as a light JPEG of at most `size` pixels on its longer side.

    Raises:
        InputFileError: it is not a picture.
    """
    picture = open_picture(Path("panel.png"), png)
    picture.thumbnail((size, size))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=85)
    return out.getvalue()


# What a page is made from: the files of a folder as records.


@dataclass(frozen=True)
class Run:
    """Everything that a finished run left in its folder."""

    folder: Path
    info: RunRecord
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


def panel_path(folder: Path, frame: Frame) -> Path:
    """Return where a frame's picture is in the folder of a run.

    Raises:
        InputFileError: it is none of the run's panels: a received folder may name any file, and a page be shown around.
    """
    if frame.image != f"panels/{frame.sha256}.png" or not frame.sha256.isalnum():
        raise InputFileError(f"{str(folder)!r} names the picture {frame.image!r}, which is none of its panels.")
    return folder / frame.image


def load_run(folder: Path) -> Run:
    """Read the files of a finished run.

    Raises:
        InputFileError: a file is missing or does not have its form.
    """
    scores = read_record(folder / "scores.json", Scores)
    board = read_record(folder / "storyboard.json", Board)
    candidates = read_record(folder / "candidates.json", Candidates)
    for one in (board, *(item.board for item in candidates.candidates)):
        for frame in one.frames:
            panel_path(folder, frame)
    return Run(
        folder=folder,
        info=read_record(folder / "run.json", RunRecord),
        story=read_record(folder / "story.jsonl", StoryRecord),
        plan=read_record(folder / "plan.json", Plan),
        board=board,
        candidates=candidates,
        answers=list(read_answers(folder / "answers.jsonl")),
        scores=scores,
        matching=scored_rule(scores, folder),
    )


# What was asked and answered under each condition, each answer with its verdict.

DASH = "\u2013"
VERDICTS = {True: ("right", "\u2713"), False: ("wrong", "\u2717"), None: ("none", DASH)}
"""How a page names a verdict, and the sign beside it."""


class PageColumn(NamedTuple):
    """One board under one condition; the text stands for all boards."""

    title: str
    method: str | None
    condition: Condition


class ShownAnswer(NamedTuple):
    """One judge's answer as it is shown: `verdict` is right, wrong or none, and `mark` its sign."""

    judge: str
    verdict: str
    mark: str
    answer: str
    note: str


class QuestionRow(NamedTuple):
    """One question and a cell for each column, which holds every judge's answer; `flag` says what a repair changed."""

    question: Question
    cells: list[list[ShownAnswer]]
    flag: str


class QuestionTable(NamedTuple):
    """Questions by columns; `several`: more than one judge answered, so that each answer is signed."""

    columns: list[PageColumn]
    rows: list[QuestionRow]
    several: bool


class AnswersOnPage:
    """Answers, found by method, judge, story, question and condition; `rule` gives their verdicts."""

    def __init__(self, answers: Iterable[Answer], judges: Sequence[str], rule: Rule) -> None:
        self._judges, self._rule = judges, rule
        self._found = {(row.method, row.judge, row.story_id, row.question_id, row.condition): row for row in answers}

    def table(
        self, story: str, questions: Iterable[Question], columns: list[PageColumn], *, flags: bool = False
    ) -> QuestionTable:
        """Return the table of a story's questions; with `flags`, for a board before (base) and after a repair."""
        rows = []
        for question in questions:
            cells = [[self._given(story, question, column, judge) for judge in self._judges] for column in columns]
            rows.append(QuestionRow(question, cells, _flag(cells) if flags else ""))
        return QuestionTable(columns, rows, len(self._judges) > 1)

    def _given(self, story: str, question: Question, column: PageColumn, judge: str) -> ShownAnswer:
        answer = self._found.get((column.method, judge, story, question.question_id, column.condition))
        if answer is None:
            return ShownAnswer(judge, "none", DASH, "not asked", "")
        if answer.status != "ok":
            return ShownAnswer(judge, "none", "!", answer.status, answer.error or "")
        verdict = match(answer, question, self._rule)
        name, mark = VERDICTS[verdict.right]
        return ShownAnswer(judge, name, mark, answer.answer or "", verdict.reason)


def columns_of(boards: Iterable[tuple[str, str]], *, guessed: bool = False) -> list[PageColumn]:
    """Return the text's column, two for each board, which is given by what it is called here and by its method, and
    last, where questions were `guessed` at, that of the answers without evidence."""
    columns = [PageColumn("Text", None, "text")]
    for title, method in boards:
        columns.append(PageColumn(f"Images, {title}", method, "image"))
        columns.append(PageColumn(f"Text and images, {title}", method, "text+image"))
    return [*columns, PageColumn("Guessed without either", None, "none")] if guessed else columns


def _flag(cells: list[list[ShownAnswer]]) -> str:
    """`recovered` or `harmed`: the repair changed an image-only verdict; `lost`: right by text, wrong by images."""
    if len(cells) < 4:
        return ""
    text, before, after = cells[0][0].verdict, cells[1][0].verdict, cells[3][0].verdict
    if before != after and "none" not in (before, after):
        return "recovered" if after == "right" else "harmed"
    return "lost" if text == "right" and after == "wrong" else ""


# Of scores, what is shown first.


class OwnNumbers(NamedTuple):
    """The filtered numbers of one method, by the ensemble where there is one, else by its only judge."""

    judge: str | None = None
    text: float | None = None
    image: float | None = None
    stg: float | None = None
    n_valid: int = 0
    n_questions: int = 0


def own_numbers(scores: Scores, method: str) -> OwnNumbers:
    """Return the numbers of a method that are shown first; none where nothing judged it, or where the judge cannot
    measure it (see `scoring.gate`)."""
    judges = scores.methods[method].judges if method in scores.methods else {}
    judge = "ensemble" if "ensemble" in judges else next(iter(judges), None)
    if judge is None:
        return OwnNumbers()
    row = judges[judge]
    block = row.filtered
    if unmeasured(row) is not None:
        return OwnNumbers(judge, n_valid=row.n_valid, n_questions=row.n_questions)
    return OwnNumbers(judge, block.text, block.image, block.stg, row.n_valid, row.n_questions)


_NOBODY = "none"
"""The judge that is asked nothing."""


def read_back(scores: Scores) -> dict[str, ReadBack | None] | None:
    """Return, by board, how many pictures read back as meant, where a run's judge reads pictures and was asked nothing
    (None of a board whose pictures it cannot read); None where questions were asked."""
    if any(method.judges or not method.stories for method in scores.methods.values()):
        return None
    return {name: method.read_back for name, method in scores.methods.items()} or None


def unjudged(scores: Scores) -> bool:
    """Return whether nobody was to judge the boards."""
    return all(set(method.judges) == {_NOBODY} for method in scores.methods.values())


def unscored(scores: Scores) -> list[str]:
    """Return why a board has no numbers: the notes that say so, one a board and judge; and where a judge understands
    too few of the questions. A board that nobody was to judge has none, and that is not a fault."""
    if unjudged(scores):
        return []
    silent = [note for note in scores.notes if note.startswith(NO_SCORES)]
    told = [*silent, *(note for note in scores.notes if f": {UNSCORED}." in note)]
    for method in scores.methods:
        row = own_numbers(scores, method)
        judged = scores.methods[method].judges.get(row.judge or "")
        if judged is not None and (why := unmeasured(judged)) is not None:
            told.append(f"{method}: {CANNOT} ({row.judge}): {why}.")
    return told


def guessed(scores: Scores) -> list[str]:
    """Return what the shown numbers of each method owe to the evidence; nothing where no question was asked without."""
    told = []
    for method in scores.methods:
        row = scores.methods[method].judges.get(own_numbers(scores, method).judge or "")
        if row is not None and (words := _guessed_words(method, row.common_valid, row.unguessed)) is not None:
            told.append(words)
    return told


def _guessed_words(method: str, valid: Block, rest: Block | None) -> str | None:
    """Return what a method's common-valid numbers owe to the evidence; rest: the block of what was not guessed."""
    if valid.none is None:
        return None
    gain = f"the images add {change(valid.gain_image)} points{_span(valid.ci95.gain_image)}"
    left = f"; STG of what was not guessed {points(rest.stg)}{_span(rest.ci95.stg)}" if rest and rest.n else ""
    return f"{method}: guessed without any evidence, {points(valid.none)}% are right; {gain}{left}."


def _span(ends: Sequence[float] | None) -> str:
    return f" [{ends[0]:.1f}, {ends[1]:.1f}]" if ends is not None else ""


# Numbers and names as pages word them; each is a filter of the templates under its own name.

DIMENSION_WORDS: dict[Dimension, str] = {
    "action_visibility": "Action",
    "causal": "Cause",
    "emotional": "Emotion",
    "consequence": "Consequence",
    "temporal_order": "Order",
    "moral": "Moral",
}


STAGE_WORDS: dict[Stage, str] = {
    "plan": "Planning",
    "render": "Drawing",
    "critique": "Reading the candidates",
    "select": "Choosing a candidate",
    "localize": "Finding the weakest transition",
    "propose": "Proposing moves",
    "bridge": "Drawing the bridge",
    "decide": "Deciding",
    "judge": "Asking the reporting questions",
    "report": "Writing the run",
}
"""What a stage of a run is called while it is under way."""


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
