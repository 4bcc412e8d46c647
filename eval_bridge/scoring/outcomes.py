"""From rows of answers to outcomes: every question right, wrong or missing, by method, judge and condition (B.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from katha.errors import RecordError
from katha.eval_bridge.matching.match import Matching, match, word_rule
from katha.eval_bridge.scoring.statistics import TEXT
from katha.schema import CONDITIONS, DIMENSIONS, Answer, Condition, Question, StoryRecord
from katha.schema.scores import Selection

ENSEMBLE = "ensemble"
CALIBRATED = "ensemble-calibrated"
"""The judge that weighs the others as people's labels taught it (see `gold_ensemble`)."""
MISSING, WRONG, RIGHT = -1, 0, 1
_NO_ROW = -2
_LEVEL = {None: 0, "low": 1, "medium": 2, "high": 3}
Cells = NDArray[np.int8]


@dataclass(frozen=True)
class Outcomes:
    """Everything that scoring needs, in an order that depends on names alone.

    questions: (Q,) sorted by story and id. story_of, dimension_of: (Q,) places in `stories` and DIMENSIONS. cells: of
    shape (methods, judges, conditions, Q), each RIGHT, WRONG or MISSING; `judges` has the ensemble last if there are
    several. guesses: (judges, Q), the outcomes without evidence, which hold for every method. confidence: the cells
    without the ensembles; 0 none stated, 1 low, 2 medium, 3 high. answered: (methods, stories), whether any row about
    the method's images is about that story. failures: by (method, judge), what most of the rows that are no answers
    say; a method of None stands for every method's text.
    """

    stories: tuple[str, ...]
    questions: tuple[Question, ...]
    story_of: NDArray[np.intp]
    dimension_of: NDArray[np.intp]
    methods: tuple[str, ...]
    judges: tuple[str, ...]
    cells: Cells
    guesses: Cells
    confidence: Cells
    answered: NDArray[np.bool_]
    failures: Mapping[tuple[str | None, str], str]
    notes: tuple[str, ...]

    @cached_property
    def cell_of(self) -> NDArray[np.intp]:
        """The place of each question in `story_counts`, of shape (Q,)."""
        return self.story_of * len(DIMENSIONS) + self.dimension_of


class Aggregate(Protocol):
    """A way to make one judge of several."""

    def outcome(self, table: Cells, strength: Cells, names: Sequence[str]) -> Cells:
        """Return outcomes of shape (methods, conditions, Q) from those of `names` and how sure they were."""
        ...


def majority(votes: Cells) -> Cells:
    """Return the ensemble's outcome of `votes`, shape (judges, ...): right only with more than half of the votes cast.

    A failure is not a vote. With fewer than half of the judges voting the outcome is MISSING. A tie is wrong (Sec.
    E.7).
    """
    cast = (votes >= WRONG).sum(axis=0)
    right = (votes == RIGHT).sum(axis=0)
    outcome = np.where(2 * right > cast, RIGHT, WRONG)
    return np.where((2 * cast < votes.shape[0]) | (cast == 0), MISSING, outcome).astype(np.int8)


def _select(records: Iterable[StoryRecord], selection: Selection) -> tuple[list[tuple[str, Question]], list[str]]:
    """Return the questions that count, sorted by story and id, and notes about them."""
    chosen: dict[tuple[str, str], Question] = {}
    stories: set[str] = set()
    unsplit = 0
    for record in records:
        if record.story_id in stories:
            raise RecordError(f"Story {record.story_id!r} is given twice.", hint="Keep one of the two records.")
        stories.add(record.story_id)
        for question in record.recoverability_questions:
            key = (record.story_id, question.question_id)
            if key in chosen:
                raise RecordError(f"Story {record.story_id!r} has the question {question.question_id!r} twice.")
            if selection == "all" or question.role in (selection, None):
                chosen[key] = question
                unsplit += selection != "all" and question.role is None
    notes = [f"{unsplit} questions carry no role and are counted as {selection}."] if unsplit else []
    return [(story, chosen[story, name]) for story, name in sorted(chosen)], notes


class _Rows:
    """Collects rows into cells; a later row replaces an earlier one with the same key."""

    def __init__(self, questions: Sequence[tuple[str, Question]], matching: Matching) -> None:
        self.matching = word_rule(matching)
        self.questions = questions
        self.place = {(story, question.question_id): at for at, (story, question) in enumerate(questions)}
        self.cells: dict[tuple[str | None, str], Cells] = {}  # outcomes and confidence: (2, conditions, questions)
        self.guesses: dict[str, Cells] = {}
        self.verdicts: dict[tuple[object, ...], int] = {}
        self.failed: dict[tuple[str | None, str], Counter[str]] = {}
        self.strangers = self.homeless = 0

    def add(self, row: Answer) -> None:
        at = self.place.get((row.story_id, row.question_id))
        question = self.questions[at][1] if at is not None else None
        if question is None or (row.role is not None and question.role is not None and row.role != question.role):
            self.strangers += 1
            return
        key = (row.method, row.judge)
        if row.status != "ok":
            told = self.failed.setdefault(key, Counter())
            told[f"{row.status}: {row.error}" if row.error else row.status] += 1
        if row.condition == "none":
            own = self.guesses.setdefault(row.judge, np.full(len(self.questions), MISSING, dtype=np.int8))
            own[at] = self._outcome(row, question, at)
            return
        if row.method is None and row.condition != "text":
            self.homeless += 1
            return
        if key not in self.cells:
            self.cells[key] = np.zeros((2, len(CONDITIONS), len(self.questions)), dtype=np.int8)
            self.cells[key][0] = _NO_ROW
        outcome = self._outcome(row, question, at)
        self.cells[key][:, CONDITIONS.index(row.condition), at] = outcome, _LEVEL[row.confidence]

    def _outcome(self, row: Answer, question: Question, at: int | None) -> int:
        if row.status != "ok" or row.answer is None:
            return MISSING
        key = (at, row.answer, row.condition, row.evidence_status, row.image_support)
        if key not in self.verdicts:
            right = match(row, question, self.matching).right
            self.verdicts[key] = MISSING if right is None else int(right)
        return self.verdicts[key]

    def table(self, methods: Sequence[str], judges: Sequence[str]) -> Cells:
        """Return outcomes and confidence, (2, methods, judges, conditions, questions), with shared text filled in."""
        table = np.zeros((2, len(methods), len(judges), len(CONDITIONS), len(self.questions)), dtype=np.int8)
        table[0] = _NO_ROW
        for m, method in enumerate(methods):
            for j, judge in enumerate(judges):
                if (method, judge) in self.cells:
                    table[:, m, j] = self.cells[method, judge]
                if (None, judge) in self.cells:
                    shared, own = self.cells[None, judge][:, TEXT], table[:, m, j, TEXT]
                    table[:, m, j, TEXT] = np.where(own[0] == _NO_ROW, shared, own)
        return table


def _depending(table: Cells, questions: Sequence[tuple[str, Question]]) -> Cells:
    """Return where a question `depends_on` others (DSG): wrong where one of them is wrong, missing where one is
    missing."""
    place = {(story, question.question_id): at for at, (story, question) in enumerate(questions)}
    given = table.copy()
    for at, (story, question) in enumerate(questions):
        for name in (question.model_extra or {}).get("depends_on") or ():
            parent = place.get((story, name))
            if parent is not None:
                table[..., at] = np.minimum(table[..., at], given[..., parent])
    return table


def collect(
    records: Iterable[StoryRecord],
    answers: Iterable[Answer],
    *,
    matching: Matching,
    selection: Selection,
    calibrated: Aggregate | None = None,
) -> Outcomes:
    """Match every answer to a selected question. `calibrated` adds one more judge, made of the others.

    Raises:
        RecordError: a story or question is given twice. UsageError: unknown matching rule.
    """
    questions, notes = _select(records, selection)
    found = _Rows(questions, matching)
    for row in answers:
        found.add(row)
    methods = sorted({method for method, _ in found.cells if method is not None})
    judges = sorted({judge for _, judge in found.cells})
    for taken in {ENSEMBLE, CALIBRATED} & set(judges):
        raise RecordError(f"A judge must not be called {taken!r}.", hint="Rename it in the answers file.")
    table, sure = found.table(methods, judges)
    stories = tuple(sorted({story for story, _ in questions}))
    order = {story: at for at, story in enumerate(stories)}
    story_of = np.array([order[story] for story, _ in questions], dtype=np.intp)
    guesses = np.full((len(judges), len(questions)), MISSING, dtype=np.int8)
    for j, judge in enumerate(judges):
        guesses[j] = found.guesses.get(judge, guesses[j])
    seen = (table[:, :, 1:] != _NO_ROW).any(axis=(1, 2))
    answered = np.zeros((len(methods), len(stories)), dtype=bool)
    for m in range(len(methods)):
        answered[m, story_of[seen[m]]] = True
    table = _depending(np.maximum(table, MISSING), questions)
    people, named = table, [*judges]
    if len(judges) > 1:
        table = np.concatenate([table, majority(np.moveaxis(people, 1, 0))[:, None]], axis=1)
        guesses = np.concatenate([guesses, majority(guesses)[None]])
        named.append(ENSEMBLE)
    if calibrated is not None and judges:
        table = np.concatenate([table, calibrated.outcome(people, sure, judges)[:, None]], axis=1)
        guesses = np.concatenate([guesses, guesses[-1:]])
        named.append(CALIBRATED)
    if found.strangers:
        notes.append(f"{found.strangers} rows answer no selected question of these stories and are left out.")
    if found.homeless:
        notes.append(f"{found.homeless} rows about images name no method and are left out.")
    return Outcomes(
        stories=stories,
        questions=tuple(question for _, question in questions),
        story_of=story_of,
        dimension_of=np.array([DIMENSIONS.index(question.question_type) for _, question in questions], dtype=np.intp),
        methods=tuple(methods),
        judges=tuple(named),
        cells=table,
        guesses=guesses,
        confidence=sure,
        answered=answered,
        failures={key: told.most_common(1)[0][0] for key, told in found.failed.items()},
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class Recoverability:
    """Recoverability in 0..1 by dimension, their mean (None when nothing was scored), and how many questions count."""

    dimensions: dict[str, float]
    mean: float | None
    n_questions: int
    n_scored: int


def recoverability(
    answers: Iterable[Answer], questions: Iterable[Question], matching: Matching, condition: Condition = "image"
) -> Recoverability:
    """Return R of Eqs. 17 and 18 on `questions` under one condition, without a validity filter: the term that steers.

    Give the answers of one board (or of one adjacent pair): the last row of each judge and question counts, several
    judges vote, and questions without an outcome are left out and counted.
    """
    asked = {question.question_id: question for question in questions}
    record = StoryRecord(
        story_id="board",
        story_text="board",
        recoverability_questions=[item.model_copy(update={"role": None}) for item in asked.values()],
    )
    rows = [
        row.model_copy(update={"method": "board", "story_id": "board", "role": None})
        for row in answers
        if row.condition == condition
    ]
    outcomes = collect([record], rows, matching=matching, selection="all")
    place = CONDITIONS.index(condition)
    cells = outcomes.cells[0, -1, place] if outcomes.methods else np.full(len(asked), MISSING, dtype=np.int8)
    scored = cells != MISSING
    rates: dict[str, float] = {
        name: float((cells[own] == RIGHT).mean())
        for at, name in enumerate(DIMENSIONS)
        if (own := scored & (outcomes.dimension_of == at)).any()
    }
    mean = sum(rates.values()) / len(rates) if rates else None
    return Recoverability(rates, mean, len(asked), int(scored.sum()))
