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

from katha.app.reports.charts import Axis, calibration_plots, confidence_lines
from katha.app.reports.page import (
    VERDICTS,
    AnswersOnPage,
    Picture,
    QuestionTable,
    columns_of,
    pictures,
    worded,
    write_page,
)
from katha.errors import InputFileError
from katha.eval_bridge.bench.boards import BoardProblem, MethodBoards, read_board
from katha.eval_bridge.judging.answers import iter_answers
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import scored_rule
from katha.eval_bridge.questions.choices import leaking
from katha.ids import folder_of
from katha.jsonio import iter_lines, read_json, read_record
from katha.schema import DIMENSIONS, Answer, QuestionMaking, StoryRecord
from katha.schema.scores import (
    BlockName,
    ConfidenceRow,
    ControlResult,
    LeftCount,
    LeftQuestion,
    MethodScores,
    Scores,
)

STORY_PAGES = "stories"
"""The folder of the pages of those stories that are not in the report itself."""
_INLINE, _PAGE = 30, 25
_LEFT_SHOWN = 300
_BLOCKS: dict[BlockName, str] = {
    "filtered": "Each board's own valid set",
    "common_valid": "Questions valid for every board",
    "unguessed": "Of these, questions that were wrong without any evidence",
    "raw": "Every scored question, before the filter",
}
_MAKING = ("written", "guessed", "unsettled", "told", "invisible", "rewritten", "dropped", "kept")
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
        write_page(folder / name, "stories.html.j2", **page)
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
    title: str
    boards: list[BoardView]
    answers: QuestionTable | None
    page: str | None


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
        scores = read_record(out / "scores.json", Scores)
        return cls(
            out,
            state,
            scores,
            [LeftQuestion.model_validate_json(line) for _, line in iter_lines(left)] if left.exists() else [],
            [StoryRecord.model_validate_json(line) for _, line in iter_lines(out / "stories.jsonl")],
            scored_rule(scores, out),
        )

    @property
    def guessed(self) -> bool:
        """Return whether questions were asked without any evidence, too."""
        return any(row.guesses for method in self.scores.methods.values() for row in method.judges.values())

    def shown(self) -> dict[str, Any]:
        """Everything that the report's template shows."""
        state, scores = self.state, self.scores
        names = {judge for method in scores.methods.values() for judge in method.judges}
        judges = sorted(names, key=lambda name: (name != "ensemble", name))
        lead = judges[0] if judges else None
        confidence = TypeAdapter(list[ConfidenceRow]).validate_python(state["confidence"])
        entries = {name: method.judges[lead] for name, method in scores.methods.items() if lead in method.judges}
        left = [item for item in self.left if lead is None or item.judge == lead]
        blocks = {name: title for name, title in _BLOCKS.items() if self.guessed or name != "unguessed"}
        families = {
            name
            for item in scores.methods.values()
            for row in item.judges.values()
            if row.guesses
            for name in row.guesses.by_family
        }
        steered = any(item.role == "steering" for record in self.records for item in record.recoverability_questions)
        return {
            "state": state,
            "scores": scores,
            "shown_judge": lead,
            "boards": [(judge, [(name, _leaderboard(scores, judge, name)) for name in blocks]) for judge in judges],
            "entries": entries,
            "dimensions": DIMENSIONS,
            "blocks": blocks,
            "families": sorted(families),
            "guesses": {name: row for name, row in entries.items() if row.guesses is not None},
            "steered": scores.questions != "reporting" and steered,
            "controls": TypeAdapter(list[ControlResult]).validate_python(state["controls"]),
            "verdicts": VERDICTS,
            "confidence": confidence_lines(confidence),
            "plots": calibration_plots(confidence),
            "left_counts": TypeAdapter(list[LeftCount]).validate_python(state["left"]),
            "left": left[:_LEFT_SHOWN],
            "left_total": len(left),
            "stories": self.stories(),
            "repeat": [(name, worded(name, state[name])) for name in _REPEATED],
            "making": self.making(),
            "leaks": self.leaks(),
        }

    def making(self) -> QuestionMaking | None:
        """Return the counts of how the stories' questions were made, summed; None where no model wrote any."""
        told = [(record.model_extra or {}).get("question_making") for record in self.records]
        made = [QuestionMaking.model_validate(one) for one in told if one]
        sums = {name: sum(getattr(one, name) for one in made) for name in _MAKING}
        return QuestionMaking.model_validate(sums) if made else None

    def leaks(self) -> list[tuple[str, str]]:
        """Return the stories whose options are taken too often without any evidence, each with how often."""
        found = [(record.story_id, leaking(record.recoverability_questions)) for record in self.records]
        return [(story, leak.told()) for story, leak in found if leak is not None and leak.leaks]

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

    def story_pages(self) -> Iterator[tuple[str, Mapping[str, object]]]:
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
            shown = {
                "first": number * _PAGE + 1,
                "last": number * _PAGE + len(page),
                "before": _page_name(number - 1) if number else None,
                "after": _page_name(number + 1) if number + 1 < len(pages) else None,
                "stories": [self._story(record, self.out / STORY_PAGES, answered) for record in page],
            }
            yield _page_name(number), shown

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

    def _answered(self, rows: Iterable[Answer], stories: Container[str]) -> AnswersOnPage:
        return AnswersOnPage((row for row in rows if row.story_id in stories), list(self.state["judges"]), self.rule)

    def _story(
        self,
        record: StoryRecord,
        base: Path,
        answered: AnswersOnPage | None,
        *,
        with_pictures: bool = False,
        page: str | None = None,
    ) -> StoryView:
        """One story. base: the folder that links start from. answered: None where it is told in full elsewhere."""
        places: Mapping[str, str] = self.state["boards"]
        boards = [self._board(name, Path(place), record, base, with_pictures) for name, place in places.items()]
        judged = [(board.name, board.name) for board in boards if board.judged]
        columns = columns_of(judged, guessed=self.guessed)
        asked = self.state["config"]["questions"]
        questions = [item for item in record.recoverability_questions if asked in ("all", item.role or asked)]
        shown = answered is not None and len(columns) > 1 and questions
        table = answered.table(record.story_id, questions, columns) if answered is not None and shown else None
        return StoryView(record, record.title or record.story_id, boards, table, page)

    def _board(self, name: str, folder: Path, record: StoryRecord, base: Path, with_pictures: bool) -> BoardView:
        invalid = self.state["invalid"].get(name, {}).get(record.story_id)
        note, shown = f"Not judged: {invalid}" if invalid else "", list[Picture]()
        if with_pictures and not invalid:
            try:
                board = read_board(MethodBoards(name, folder, self.state["config"].get("order")), record)
                frames = [(place, frame.kind, frame.path) for place, frame in enumerate(board.frames, 1)]
                shown = pictures(name, frames)
            except (BoardProblem, InputFileError) as error:
                note = f"Changed since it was judged: {error.message}"
        place = folder_of(folder, record.story_id)
        told = (place / "report.html").is_file()
        target = place / "report.html" if told else place
        link = quote(Path(os.path.relpath(target.resolve(), base.resolve())).as_posix()) if place.is_dir() else None
        return BoardView(name, not invalid, note, shown, link, "open its report" if told else "open the folder")


def _page_name(number: int) -> str:
    return f"{number + 1:04d}.html"


def _leaderboard(scores: Scores, judge: str, name: BlockName) -> tuple[Axis, list[tuple[str, MethodScores, object]]]:
    """The axis of the bars, and the methods: the smallest gap first, those without a number last."""
    judged = {title: method.judges[judge] for title, method in scores.methods.items() if judge in method.judges}
    blocks = {title: block for title, row in judged.items() if (block := row.block(name)) is not None}
    measured = {title: block.stg for title, block in blocks.items() if block.stg is not None}
    ends = [end for title, stg in measured.items() for end in (stg, *(blocks[title].ci95.stg or ()))]
    order = sorted(scores.methods, key=lambda title: (title not in measured, measured.get(title, 0.0), title))
    return Axis.around(ends, 0.0, 1.0), [(title, scores.methods[title], blocks.get(title)) for title in order]
