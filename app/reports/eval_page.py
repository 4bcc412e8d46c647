"""`report.html` of an evaluation: leaderboards, where meaning is lost, controls, what left, and every story's answers.

Stories beyond the first thirty are on pages of their own, which are written one after the other.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import TypeAdapter

from katha.app.reports.answers import Answered, Table, columns_of
from katha.app.reports.boards import pictures
from katha.app.reports.charts import Axis, Bar, calibration_plots, confidence_lines, shade
from katha.app.reports.page import DIMENSION_WORDS, Picture, interval, points, read_record, write_page
from katha.errors import InputFileError
from katha.eval_bridge.bench.boards import BoardProblem, Boards, read_board
from katha.eval_bridge.judging.answers import iter_answers
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import folder_rule
from katha.jsonio import dumps, iter_lines, read_json
from katha.schema import DIMENSIONS, Answer, StoryRecord
from katha.schema.scores import (
    BlockName,
    ConfidenceRow,
    ControlResult,
    JudgeScores,
    LeftCount,
    LeftQuestion,
    MethodScores,
    RepeatControl,
    Scores,
)

STORY_PAGES = "stories"
"""The folder of the pages of those stories that are not in the report itself."""
_INLINE, _PAGE = 30, 25
_LEFT_SHOWN = 300
_BLOCKS: dict[BlockName, str] = {
    "filtered": "Each board's own valid set",
    "common_valid": "Questions valid for every board",
    "raw": "Every scored question, before the filter",
}
_WHY = {
    "invalid_story": "no board that can be judged",
    "unscored": "not scored: a condition has no answer",
    "ambiguous": "ambiguous: wrong even with text and images",
}
_VERDICTS = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("none", "–")}
_REPEATED = ("command", "katha", "config", "boards", "judges", "prompts", "statuses", "calls", "budget", "leakage")


def write_eval_report(out: Path) -> Path:
    """Write `out/report.html`, and pages of the stories that are not in it; return its path.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    evaluation = _Evaluation.read(out)
    folder = out / STORY_PAGES
    written = set()
    for name, page in evaluation.story_pages():
        folder.mkdir(exist_ok=True)
        write_page(folder / name, "stories.html.j2", page=page)
        written.add(name)
    for old in folder.glob("*.html"):
        if old.name not in written:
            old.unlink()
    return write_page(out / "report.html", "eval.html.j2", **evaluation.shown())


class BoardView(NamedTuple):
    """One story's board under one method: its pictures, or in `note` why there is none; a link to its folder."""

    name: str
    judged: bool
    note: str
    pictures: list[Picture]
    link: str | None
    opens: str


class StoryView(NamedTuple):
    """One story: its boards and every answer; `page` is where it is told in full, if that is elsewhere."""

    record: StoryRecord
    boards: list[BoardView]
    answers: Table | None
    page: str | None

    @property
    def title(self) -> str:
        """The story's title, or its id."""
        return self.record.title or self.record.story_id


class StoryPage(NamedTuple):
    """Twenty-five stories on a page of their own; `before` and `after` name the pages beside it."""

    first: int
    last: int
    before: str | None
    after: str | None
    stories: list[StoryView]


class LeaderRow(NamedTuple):
    """One method on a leaderboard; None where the judge did not judge it."""

    name: str
    method: MethodScores
    entry: JudgeScores | None
    block: BlockName
    bar: Bar | None
    zero: float

    @property
    def stg(self) -> float | None:
        """The gap that the board is sorted by."""
        return self.entry.block(self.block).stg if self.entry is not None else None


class ControlRow(NamedTuple):
    """One control as its table words it."""

    result: ControlResult
    what: str
    n: int
    value: str
    ci: str
    board: str
    chance: str
    unclear: str
    verdict: str
    sign: str


@dataclass(frozen=True)
class _Evaluation:
    """An evaluation's folder as records; `state` is `eval.json` as it is."""

    out: Path
    state: Mapping[str, Any]
    scores: Scores
    left: list[LeftQuestion]
    records: list[StoryRecord]
    rule: Rule

    @classmethod
    def read(cls, out: Path) -> _Evaluation:
        state, left = read_json(out / "eval.json"), out / "left.jsonl"
        return cls(
            out,
            state,
            read_record(out / "scores.json", Scores),
            [LeftQuestion.model_validate_json(line) for _, line in iter_lines(left)] if left.exists() else [],
            [StoryRecord.model_validate_json(line) for _, line in iter_lines(out / "stories.jsonl")],
            folder_rule(state["config"]["matching"], out),
        )

    def shown(self) -> dict[str, Any]:
        """Everything that the report's template shows."""
        state, scores = self.state, self.scores
        judges = _judges(scores)
        lead = judges[0] if judges else None
        confidence = TypeAdapter(list[ConfidenceRow]).validate_python(state["confidence"])
        left = [item for item in self.left if lead is None or item.judge == lead]
        stories = self.stories()
        steered = any(item.role == "steering" for record in self.records for item in record.recoverability_questions)
        return {
            "state": state,
            "scores": scores,
            "headline": lead,
            "boards": [(judge, [(name, _leaderboard(scores, judge, name)) for name in _BLOCKS]) for judge in judges],
            "entries": {name: method.judges[lead] for name, method in scores.methods.items() if lead in method.judges},
            "dimensions": DIMENSIONS,
            "shade": shade,
            "blocks": _BLOCKS,
            "steered": scores.questions != "reporting" and steered,
            "controls": [_control(item) for item in _controls(state)],
            "confidence": confidence_lines(confidence),
            "plots": calibration_plots(confidence),
            "left_counts": TypeAdapter(list[LeftCount]).validate_python(state["left"]),
            "left": left[:_LEFT_SHOWN],
            "left_total": len(left),
            "why": _WHY,
            "inline": [story for story in stories if story.page is None],
            "others": [story for story in stories if story.page is not None],
            "repeat": [(name, _worded(name, state[name])) for name in _REPEATED],
        }

    def stories(self) -> list[StoryView]:
        """Every story with links to its boards; those that lost most questions (30 at most) in full, with pictures."""
        order, shown, pages = self._divided()
        answered = self._answered(self._answers(), shown)
        page_of = {
            record.story_id: f"{STORY_PAGES}/{_page_name(number)}#{record.story_id}"
            for number, page in enumerate(pages)
            for record in page
        }
        return [
            self._story(record, self.out, answered, with_pictures=True)
            if record.story_id in shown
            else self._story(record, self.out, None, page=page_of[record.story_id])
            for record in order
        ]

    def story_pages(self) -> Iterator[tuple[str, StoryPage]]:
        """The name and content of each page of 25 stories, in order: `answers.jsonl` is read once, as it comes."""
        _, _, pages = self._divided()
        place = {record.story_id: number for number, page in enumerate(pages) for record in page}
        rows = (row for row in self._answers() if row.story_id in place)
        groups = groupby(rows, key=lambda row: place[row.story_id])
        waiting = next(groups, None)
        for number, page in enumerate(pages):
            answers: Iterable[Answer] = ()
            if waiting is not None and waiting[0] == number:
                answers = list(waiting[1])
                waiting = next(groups, None)
            answered = self._answered(answers, place)
            yield (
                _page_name(number),
                StoryPage(
                    first=number * _PAGE + 1,
                    last=number * _PAGE + len(page),
                    before=_page_name(number - 1) if number else None,
                    after=_page_name(number + 1) if number + 1 < len(pages) else None,
                    stories=[self._story(record, self.out / STORY_PAGES, answered) for record in page],
                ),
            )

    def _divided(self) -> tuple[list[StoryRecord], frozenset[str], list[list[StoryRecord]]]:
        """The stories, most questions lost first; who is shown in the report; the others by page, as given."""
        losses = Counter(item.story_id for item in self.left)
        order = sorted(self.records, key=lambda record: (-losses[record.story_id], record.story_id))
        shown = frozenset(record.story_id for record in order[:_INLINE])
        others = [record for record in self.records if record.story_id not in shown]
        return order, shown, [others[at : at + _PAGE] for at in range(0, len(others), _PAGE)]

    def _answers(self) -> Iterator[Answer]:
        path = self.out / "answers.jsonl"
        yield from iter_answers(path) if path.exists() else ()

    def _answered(self, rows: Iterable[Answer], stories: Container[str]) -> Answered:
        return Answered.of((row for row in rows if row.story_id in stories), list(self.state["judges"]), self.rule)

    def _story(
        self,
        record: StoryRecord,
        base: Path,
        answered: Answered | None,
        *,
        with_pictures: bool = False,
        page: str | None = None,
    ) -> StoryView:
        """One story. base: the folder that links start from. answered: None where it is told in full elsewhere."""
        places: Mapping[str, str] = self.state["boards"]
        boards = [self._board(name, Path(place), record, base, with_pictures) for name, place in places.items()]
        columns = columns_of((board.name, board.name) for board in boards if board.judged)
        asked = self.state["config"]["questions"]
        questions = [item for item in record.recoverability_questions if asked in ("all", item.role or asked)]
        shown = answered is not None and len(columns) > 1 and questions
        return StoryView(
            record, boards, answered.table(record.story_id, questions, columns) if answered and shown else None, page
        )

    def _board(self, name: str, folder: Path, record: StoryRecord, base: Path, with_pictures: bool) -> BoardView:
        invalid = self.state["invalid"].get(name, {}).get(record.story_id)
        note, shown = f"Not judged: {invalid}" if invalid else "", list[Picture]()
        if with_pictures and not invalid:
            try:
                board = read_board(Boards(name, folder), record)
                frames = [(place, frame.kind, frame.path) for place, frame in enumerate(board.frames, 1)]
                shown = pictures(name, frames)
            except (BoardProblem, InputFileError) as error:
                note = f"Changed since it was judged: {error.message}"
        place = folder / record.story_id
        told = (place / "report.html").is_file()
        target = place / "report.html" if told else place
        link = quote(Path(os.path.relpath(target.resolve(), base.resolve())).as_posix()) if place.is_dir() else None
        return BoardView(name, not invalid, note, shown, link, "open its report" if told else "open the folder")


def _page_name(number: int) -> str:
    return f"{number + 1:04d}.html"


def _judges(scores: Scores) -> list[str]:
    """The ensemble first, then the judges by name."""
    names = {judge for method in scores.methods.values() for judge in method.judges}
    return sorted(names, key=lambda name: (name != "ensemble", name))


def _leaderboard(scores: Scores, judge: str, name: BlockName) -> list[LeaderRow]:
    """The methods, the smallest gap first; those without a number last. Bars share one axis."""
    known = [method.judges[judge].block(name) for method in scores.methods.values() if judge in method.judges]
    measured = [(block, block.stg) for block in known if block.stg is not None]
    axis = Axis.around([end for block, stg in measured for end in (stg, *(block.ci95.stg or ()))], 0.0, 1.0)
    rows = []
    for title, method in scores.methods.items():
        entry = method.judges.get(judge)
        block = entry.block(name) if entry is not None else None
        rows.append(
            LeaderRow(
                title, method, entry, name, axis.bar(block.stg, block.ci95.stg) if block else None, axis.place(0.0)
            )
        )
    return sorted(rows, key=lambda row: (row.stg is None, row.stg or 0.0, row.name))


def _controls(state: Mapping[str, Any]) -> list[ControlResult]:
    return TypeAdapter(list[ControlResult]).validate_python(state["controls"])


def _control(item: ControlResult) -> ControlRow:
    verdict, sign = _VERDICTS[item.passes]
    if isinstance(item, RepeatControl):
        ci = interval(item.ci95)
        return ControlRow(item, "same answer", item.n, points(item.agreement), ci, "", "", "", verdict, sign)
    focus = item.focus or item
    return ControlRow(
        item,
        DIMENSION_WORDS[item.dimension] if item.dimension else "all questions",
        focus.n,
        points(focus.image),
        interval(focus.ci95),
        points(focus.board),
        points(focus.chance),
        points(item.unclear),
        verdict,
        sign,
    )


def _worded(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return " ".join(value) if name == "command" else dumps(value).strip()
