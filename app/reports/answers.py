"""The question table of every page: what was asked and answered under each condition, each answer with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from katha.app.reports.page import DASH
from katha.eval_bridge.matching.match import Rule, match
from katha.schema import Answer, Condition, Question

_VERDICTS = {True: ("right", "\u2713"), False: ("wrong", "\u2717"), None: ("none", DASH)}


class Column(NamedTuple):
    """One board under one condition; the text stands for all boards."""

    title: str
    method: str | None
    condition: Condition


class Given(NamedTuple):
    """One judge's answer as it is shown: `verdict` is right, wrong or none, and `mark` its sign."""

    judge: str
    verdict: str
    mark: str
    answer: str
    note: str


class Row(NamedTuple):
    """One question and a cell for each column, which holds every judge's answer; `flag` says what a repair changed."""

    question: Question
    cells: list[list[Given]]
    flag: str

    @property
    def pair(self) -> str:
        """The transition that the question is about."""
        pair = self.question.target_transition
        return f"{pair[0]}\u2192{pair[1]}" if pair else "whole story"


class Table(NamedTuple):
    """Questions by columns; `several`: more than one judge answered, so that each answer is signed."""

    columns: list[Column]
    rows: list[Row]
    several: bool


_Key = tuple[str | None, str, str, str, Condition]


@dataclass(frozen=True)
class Answered:
    """Answers, found by method, judge, story, question and condition; `rule` gives their verdicts."""

    answers: Mapping[_Key, Answer]
    judges: Sequence[str]
    rule: Rule

    @classmethod
    def of(cls, answers: Iterable[Answer], judges: Sequence[str], rule: Rule) -> Answered:
        """Return the answers in a form that tables are made from."""
        found = {(row.method, row.judge, row.story_id, row.question_id, row.condition): row for row in answers}
        return cls(found, judges, rule)

    def table(self, story: str, questions: Iterable[Question], columns: list[Column], *, flags: bool = False) -> Table:
        """Return the table of a story's questions; with `flags`, for a board before (base) and after a repair."""
        rows = []
        for question in questions:
            cells = [[self._given(story, question, column, judge) for judge in self.judges] for column in columns]
            rows.append(Row(question, cells, _flag(cells) if flags else ""))
        return Table(columns, rows, len(self.judges) > 1)

    def _given(self, story: str, question: Question, column: Column, judge: str) -> Given:
        answer = self.answers.get((column.method, judge, story, question.question_id, column.condition))
        if answer is None:
            return Given(judge, "none", DASH, "not asked", "")
        if answer.status != "ok":
            return Given(judge, "none", "!", answer.status, answer.error or "")
        verdict = match(answer, question, self.rule)
        name, mark = _VERDICTS[verdict.right]
        return Given(judge, name, mark, answer.answer or "", verdict.reason)


def columns_of(boards: Iterable[tuple[str, str]]) -> list[Column]:
    """Return the text's column and two for each board, which is given by what it is called here and by its method."""
    columns = [Column("Text", None, "text")]
    for title, method in boards:
        columns.append(Column(f"Images, {title}", method, "image"))
        columns.append(Column(f"Text and images, {title}", method, "text+image"))
    return columns


def _flag(cells: list[list[Given]]) -> str:
    """`recovered` or `harmed`: the repair changed an image-only verdict; `lost`: right by text, wrong by images."""
    if len(cells) < 4:
        return ""
    text, before, after = cells[0][0].verdict, cells[1][0].verdict, cells[3][0].verdict
    if before != after and "none" not in (before, after):
        return "recovered" if after == "right" else "harmed"
    return "lost" if text == "right" and after == "wrong" else ""
