"""`report.html` of a run: the board before and after, the weakest transition, and every question and answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from katha.app.reports.answers import Answered, Column, Table, columns_of
from katha.app.reports.boards import Cell, FrameCell, Strips
from katha.app.reports.page import (
    DIMENSION_WORDS,
    Run,
    change,
    headline,
    load_run,
    points,
    template,
    unscored,
    write_page,
)
from katha.jsonio import dumps
from katha.schema import DIMENSIONS, Candidate, Dimension
from katha.schema.scores import DimensionScore

if TYPE_CHECKING:
    from jinja2 import Template

_REPEATED = (
    *("command", "katha", "seeds", "config", "planner", "renderer", "bridge_renderer", "services", "judges"),
    *("similarity", "matching", "prompts", "versions", "paid", "timings"),
)
"""What of `run.json` is shown, in this order, where it is there."""


class Number(NamedTuple):
    """One number of the board before and after; `better` says which way it went."""

    name: str
    hint: str
    before: str
    after: str
    change: str
    better: str


class DimensionRow(NamedTuple):
    """One dimension by its blocks before and after; None where no question of it is valid."""

    name: str
    before: DimensionScore | None
    after: DimensionScore | None


class Weakest(NamedTuple):
    """The weakest transition: what the story says of it, its frames, and the prompt of the frame that was tried."""

    pair: str
    fields: list[tuple[str, str]]
    frames: list[FrameCell]
    prompt: str | None


class Term(NamedTuple):
    """One term of a candidate's score (Eq. 24)."""

    name: str
    sign: str
    weight: float
    value: float | None


class CandidateRow(NamedTuple):
    """One board that was considered; `mark` says what became of it."""

    candidate: Candidate
    title: str
    mark: str
    terms: list[Term]
    frames: list[FrameCell]


class Before(NamedTuple):
    """The first seed's board; `same`: the accepted board shows the same frames."""

    cells: list[Cell]
    same: bool


class Asked(NamedTuple):
    """What was asked: reporting questions before and after, and steering questions of the selected board."""

    reporting: Table
    steering: Table


class Repeat(NamedTuple):
    """What somebody needs who repeats the run: its frames with their prompts, rows of `run.json`, and notes."""

    frames: list[FrameCell]
    rows: list[tuple[str, str]]
    notes: list[str]


@dataclass(frozen=True)
class Section:
    """One section of the page; `SECTIONS` has those that katha writes, in their order.

    anchor: the `id` of its element. link: its name in the list at the top of the page; empty for none. template: a file
    of `templates/`, or the path of one's own; it finds the run as `run`, and as `shown` what `view` returned.
    view: what is shown, read from the run's files; None leaves the section out.
    """

    anchor: str
    link: str
    template: str | Path
    view: Callable[[Run, Strips], object]


class _Shown(NamedTuple):
    anchor: str
    link: str
    template: Template
    shown: object


def write_report(run: Path, sections: Sequence[Section] | None = None) -> Path:
    """Write `run/report.html` and return its path; `sections` in place of `SECTIONS`.

    Raises:
        InputFileError: a file of the run, or a section's template, is missing or broken.
    """
    found = load_run(run)
    strips = Strips(found)
    method = _method(found)
    filled = ((item, item.view(found, strips)) for item in (SECTIONS if sections is None else sections))
    return write_page(
        run / "report.html",
        "run.html.j2",
        run=found,
        title=found.story.title or found.story.story_id,
        verdict=_verdict(found),
        found_in=strips.found_in,
        unscored=unscored(found.scores),
        headline=headline(found.scores, method),
        numbers=_numbers(found, method),
        sections=[
            _Shown(item.anchor, item.link, template(item.template), shown)
            for item, shown in filled
            if shown is not None
        ],
    )


def _method(run: Run) -> str:
    """The method whose numbers are those of the accepted board."""
    return run.board.mode if run.board.mode in run.scores.methods else "base"


def find_candidate(run: Run, name: str | None) -> Candidate | None:
    """Return the candidate of that name, if there is one."""
    return next((item for item in run.candidates.candidates if item.name == name), None)


def _final_candidate(run: Run) -> Candidate:
    decision = run.candidates.decision
    name = decision.inserted if decision.accepted else decision.selected
    return find_candidate(run, name) or run.candidates.candidates[0]


def _verdict(run: Run) -> str:
    inserted = next((frame for frame in run.board.frames if frame.kind != "scene"), None)
    if inserted is not None and inserted.transition is not None:
        first, second = inserted.transition
        what = "A bridge" if inserted.kind == "bridge" else "A frame"
        return f"{what} was inserted between scenes {first} and {second}."
    seeds = {item.board.seed for item in run.candidates.candidates if item.kind == "base"}
    chosen = find_candidate(run, run.candidates.decision.selected)
    if chosen is None or len(seeds) < 2:
        return "The storyboard was kept without an inserted frame."
    return f"The board of seed {chosen.board.seed} was chosen out of {len(seeds)} and kept without an inserted frame."


def _numbers(run: Run, shown: str) -> list[Number]:
    base, final = headline(run.scores, "base"), headline(run.scores, shown)
    gap = "Semantic Trajectory Gap (text minus image)"
    return [
        _number("Recoverable from the images", "Higher is better.", base.image, final.image, 1),
        _number(gap, "Lower is better.", base.stg, final.stg, -1),
    ]


def _number(name: str, hint: str, before: float | None, after: float | None, up: int) -> Number:
    moved = None if before is None or after is None else after - before
    better = "same" if not moved else "better" if moved * up > 0 else "worse"
    return Number(name, hint, points(before), points(after), change(moved), better)


def _after(run: Run, strips: Strips) -> list[Cell]:
    tag = "repaired" if run.candidates.decision.accepted else "weakest"
    return strips.strip(run.board, _final_candidate(run), tag)


def _before(run: Run, strips: Strips) -> Before:
    base = find_candidate(run, f"candidate:{run.info['seeds'][0]}") or run.candidates.candidates[0]
    tag = "weakest" if base.name == run.candidates.decision.selected else ""
    same = [frame.sha256 for frame in base.board.frames] == [frame.sha256 for frame in run.board.frames]
    return Before(strips.strip(base.board, base, tag), same)


def _dimensions(run: Run, strips: Strips) -> list[DimensionRow]:
    before, after = _blocks(run, "base"), _blocks(run, _method(run))
    return [DimensionRow(DIMENSION_WORDS[name], before.get(name), after.get(name)) for name in DIMENSIONS]


def _blocks(run: Run, method: str) -> dict[Dimension, DimensionScore]:
    judge = headline(run.scores, method).judge
    return run.scores.methods[method].judges[judge].filtered.dimensions if judge is not None else {}


def _weakest(run: Run, strips: Strips) -> Weakest | None:
    decision = run.candidates.decision
    if decision.weakest is None:
        return None
    told = next((item for item in run.story.transitions or run.plan.transitions if item.pair == decision.weakest), None)
    names = ("action", "causality", "intention", "emotion", "consequence", "moral_target") if told is not None else ()
    fields = [(name.replace("_", " ").capitalize(), getattr(told, name)) for name in names]
    tried = find_candidate(run, decision.inserted) or find_candidate(run, decision.selected)
    board = tried.board if tried is not None else run.board
    around = [item for item in board.frames if item.scene in decision.weakest or item.transition == decision.weakest]
    return Weakest(
        pair=f"{decision.weakest[0]} to {decision.weakest[1]}",
        fields=[(name, value) for name, value in fields if value],
        frames=strips.frames(around),
        prompt=next((frame.prompt for frame in around if frame.kind != "scene"), None),
    )


def _candidates(run: Run, strips: Strips) -> list[CandidateRow]:
    return [_candidate_row(item, run, strips) for item in run.candidates.candidates]


def _candidate_row(item: Candidate, run: Run, strips: Strips) -> CandidateRow:
    settings, score, decision = run.candidates.settings, item.score, run.candidates.decision
    inserted, chosen = item.name == decision.inserted, item.name == decision.selected
    return CandidateRow(
        item,
        _candidate_title(item, strips.found_in is not None),
        "accepted" if inserted and decision.accepted else "tried" if inserted else "selected" if chosen else "",
        [
            Term("Recoverability", "+", settings.lambda_r, score.recoverability),
            Term("Transition coverage", "+", settings.lambda_t, score.coverage),
            Term("Copy penalty", "\u2212", settings.lambda_p, score.copy_penalty),
        ],
        strips.frames(item.board.frames),
    )


def _candidate_title(item: Candidate, found: bool) -> str:
    scenes = sorted({frame.seed for frame in item.board.frames if frame.kind == "scene"})
    title = "The board as it was found" if found else f"Seed {', '.join(map(str, scenes))}"
    inserted = next((frame for frame in item.board.frames if frame.kind != "scene"), None)
    if inserted is None:
        return title
    what = "a bridge" if inserted.kind == "bridge" else "an extra frame"
    return f"{title}, with {what} of seed {inserted.seed}"


def _asked(run: Run, strips: Strips) -> Asked:
    answered = Answered.of(run.answers, sorted({answer.judge for answer in run.answers}), run.matching)
    boards = [("before", "base")] + ([("after", run.board.mode)] if run.board.mode != "base" else [])
    guiding = [Column("Images", run.candidates.decision.selected, "image")]
    questions, story = run.story.recoverability_questions, run.story.story_id
    reporting = [item for item in questions if item.role == "reporting"]
    steering = [item for item in questions if item.role == "steering"]
    return Asked(
        answered.table(story, reporting, columns_of(boards), flags=True),
        answered.table(story, steering, guiding),
    )


def _repeat(run: Run, strips: Strips) -> Repeat:
    rows = [
        (name.replace("_", " "), _worded(name, run.info[name])) for name in _REPEATED if run.info.get(name) is not None
    ]
    return Repeat(
        [strips.frame(frame) for frame in run.board.frames],
        [*rows, ("plan sha256", run.board.plan_sha256)],
        [*run.scores.notes, *run.info.get("notes", [])],
    )


def _worded(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and name in ("command", "seeds"):
        return shlex.join(value) if name == "command" else ", ".join(map(str, value))
    return dumps(value).strip()


SECTIONS = (
    Section("after", "Storyboard", "run_after.html.j2", _after),
    Section("before", "", "run_before.html.j2", _before),
    Section("weakest", "Weakest transition", "run_weakest.html.j2", _weakest),
    Section("candidates", "Candidates", "run_candidates.html.j2", _candidates),
    Section("dimensions", "Dimensions", "run_dimensions.html.j2", _dimensions),
    Section("asked", "Questions", "run_asked.html.j2", _asked),
    Section("repeat", "Repeat it", "run_repeat.html.j2", _repeat),
)
"""The page, section by section. One more is a function that returns what is shown, a template, and a line here."""
