"""From the stories' files to arrays: each row's outcomes, lengths and costs, over the same stories in one order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.compass.modes import Row, Scoring
from katha.compass.score import BoardKey, board_key
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.matching.rules import settle
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.scoring.outcomes import Outcomes, Selection, collect
from katha.eval_bridge.scoring.statistics import RowCounts, row_counts
from katha.experiments.ablate.folder import AblationFolder, AblationJob, RowBoard, StoryResult, protocol_of
from katha.schema import Answer, Question, StoryRecord

Floats = NDArray[np.float64]


@dataclass
class Tally:
    """Everything that the table is made from; read once from the folder."""

    job: AblationJob
    folder: AblationFolder

    def __post_init__(self) -> None:
        self._outcomes: dict[tuple[Any, ...], Outcomes] = {}
        self.unsettled: list[str] = []

    @cached_property
    def results(self) -> list[StoryResult]:
        """Every story's result, in the order of the stories."""
        found = [self.folder.finished(item.story_id, self.job.story_identity(item)) for item in self.job.records]
        return [item for item in found if item is not None]

    @cached_property
    def stories(self) -> list[StoryRecord]:
        """The stories as they were used; those that could not be prepared are left out."""
        found = [self.folder.prepared(item.story_id) for item in self.results]
        return [item for item in found if item is not None]

    @cached_property
    def names(self) -> list[str]:
        """The stories' ids, sorted: the order of every array."""
        return sorted(item.story_id for item in self.results)

    def boards(self, row: Row) -> Iterator[tuple[int, RowBoard]]:
        """Each board of a row with its story's place in `names`."""
        for result in self.results:
            place = self.names.index(result.story_id)
            yield from ((place, board) for board in result.boards if board.row == row.name)

    def methods(self, row: Row) -> list[str]:
        """The row's boards by name: one, or one a seed."""
        return list(dict.fromkeys(board.method for _, board in self.boards(row)))

    def judged(self, row: Row) -> list[str]:
        """Those of the row's boards that have answers."""
        known = self.outcomes(row).methods
        return [name for name in self.methods(row) if name in known]

    def pools(self) -> dict[str, list[str]]:
        """The methods that count together, by their row."""
        return {row.name: self.methods(row) for row in self.job.suite.rows}

    def lengths(self, row: Row) -> NDArray[np.int64]:
        """Displayed frames, shape (boards, stories); 0 where there is no board."""
        methods = self.methods(row)
        table = np.zeros((len(methods), len(self.names)), dtype=np.int64)
        for place, board in self.boards(row):
            table[methods.index(board.method), place] = len(board.board.frames)
        return table

    def same(self, a: Row, b: Row, *, even: bool = False) -> str | None:
        """What two rows share: "boards" (asked or scored otherwise), "all", or None.

        even: of boards that show equally many frames.
        """
        looks = [self._looks(row) for row in (a, b)]
        places = looks[0].keys() & looks[1].keys() if even else looks[0].keys() | looks[1].keys()
        if not places or any(looks[0].get(place) != looks[1].get(place) for place in places):
            return None
        measured = [(row.scoring, row.prompts, row.questions) for row in (a, b)]
        return "all" if measured[0] == measured[1] else "boards"

    def _looks(self, row: Row) -> dict[tuple[int, int], set[BoardKey]]:
        """The row's boards by story and number of frames."""
        found: dict[tuple[int, int], set[BoardKey]] = {}
        for place, item in self.boards(row):
            found.setdefault((place, len(item.board.frames)), set()).add(board_key(item.board.frames))
        return found

    def counts(self, row: Row, *, filtered: bool | None = None) -> RowCounts:
        """The row's counts by its own scoring; `filtered` replaces its rule of validity."""
        scoring = row.scoring
        outcomes = self.outcomes(row)
        return row_counts(
            outcomes,
            self.judged(row),
            self.names,
            judge=scoring.judge,
            conditions=scoring.conditions,
            filtered=scoring.valid != "none" if filtered is None else filtered,
            dimensions=scoring.dimensions,
            together=scoring.average == "questions",
        )

    def outcomes(self, row: Row) -> Outcomes:
        """The outcomes of the row's answers by its own rule."""
        scoring, protocol = row.scoring, protocol_of(row)
        matching = scoring.matching or self.job.config.matching
        labels = tuple(sorted(scoring.labels.items()))
        key = (protocol, matching, scoring.valid == "answer", scoring.accepted, labels)
        if key not in self._outcomes:
            selection: Selection = "reporting" if row.questions == "held_out" else "steering"
            stories = [_coarse_story(item, scoring) for item in self.stories]
            rule = self.folder.rule(matching)
            self.unsettled += settle(rule, stories, self.rows(protocol))
            rows = (_coarse_row(item, scoring) for item in self.rows(protocol))
            self._outcomes[key] = collect(stories, rows, matching=rule, selection=selection)
        return self._outcomes[key]

    def moral_options(self, row: Row) -> list[tuple[str, list[str]]]:
        """The answer and the options, `Unclear` apart, of each moral question that the row asks as a choice."""
        role = "reporting" if row.questions == "held_out" else "steering"
        return [
            (item.gold_answer, options)
            for story in self.stories
            for item in story.recoverability_questions
            if item.question_type == "moral" and item.role == role
            if (options := [text for text in item.options or [] if text != UNCLEAR])
        ]

    def rows(self, protocol: str) -> Iterator[Answer]:
        """Every row of one protocol, story by story."""
        for result in self.results:
            yield from self.folder.answers(result.story_id, protocol)

    def invalid(self, row: Row) -> dict[str, str]:
        """Why the row has no board, by story."""
        methods = {row.name, *(f"{row.name}@{seed}" for seed in self.job.config.seeds)}
        return {
            result.story_id: reason
            for result in self.results
            for name, reason in result.invalid.items()
            if name in methods and not any(board.row == row.name for board in result.boards)
        }

    def needs(self, rows: Sequence[Row]) -> tuple[int, int]:
        """Distinct frames and distinct questions of these rows together."""
        wanted = {row.name for row in rows}
        frames: set[str] = set()
        questions: set[str] = set()
        for result in self.results:
            for board in result.boards:
                if board.row in wanted:
                    frames.update(board.frames)
                    questions.update(board.questions)
        return len(frames), len(questions)


def _coarse_row(row: Answer, scoring: Scoring) -> Answer:
    """`row` as the scoring reads it: without the image support, or with a coarser moral label."""
    changes: dict[str, Any] = {}
    if scoring.valid == "answer" and row.image_support is not None:
        changes["image_support"] = "supported"
    if row.answer is not None and normalise(row.answer) in scoring.labels:
        changes["answer"] = scoring.labels[normalise(row.answer)]
    return row.model_copy(update=changes) if changes else row


def _coarse_story(record: StoryRecord, scoring: Scoring) -> StoryRecord:
    """`record` with the answers that the scoring accepts: coarser labels, or the canonical answers alone."""
    labels, canonical = scoring.labels, scoring.accepted == "canonical"

    def coarse(item: Question) -> Question:
        accepted = [item.gold_answer, *([] if canonical else item.accepted_answers)]
        if item.question_type == "moral" and labels:
            accepted = [labels.get(normalise(text), text) for text in accepted]
            return item.model_copy(update={"gold_answer": accepted[0], "accepted_answers": accepted, "options": None})
        return item.model_copy(update={"accepted_answers": accepted})

    if not labels and not canonical:
        return record
    questions = [coarse(item) for item in record.recoverability_questions]
    return record.model_copy(update={"recoverability_questions": questions})
