"""From rows to outcomes: right, wrong or missing, and why a question left the valid set (Eq. 16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from katha.errors import RecordError
from katha.eval_bridge.matching.match import Matching, match, word_rule
from katha.schema import CONDITIONS, DIMENSIONS, Answer, Condition, Question, StoryRecord
from katha.schema.scores import LeftCount, LeftQuestion, Selection

ENSEMBLE = "ensemble"
CALIBRATED = "ensemble-calibrated"
"""The judge that weighs the others as people's labels taught it (see `gold_ensemble`)."""
MISSING, WRONG, RIGHT = -1, 0, 1
_NO_ROW = -2
_DIMENSION = {name: place for place, name in enumerate(DIMENSIONS)}
_CONDITION = {name: place for place, name in enumerate(CONDITIONS)}
_TEXT = _CONDITION["text"]
_LEVEL = {None: 0, "low": 1, "medium": 2, "high": 3}

Cells = NDArray[np.int8]


@dataclass(frozen=True)
class Outcomes:
    """Everything that scoring needs, in an order that depends on names alone.

    questions: (Q,) sorted by story and id. story_of, dimension_of: (Q,) places in `stories` and DIMENSIONS. cells: of
    shape (methods, judges, conditions, Q), each RIGHT, WRONG or MISSING; `judges` has the ensemble last if there are
    several. confidence: the same without the ensembles; 0 none stated, 1 low, 2 medium, 3 high. answered: (methods,
    stories), whether any row about the method's images is about that story. failures: by (method, judge), what most of
    the rows that are no answers say; a method of None stands for every method's text.
    """

    stories: tuple[str, ...]
    questions: tuple[Question, ...]
    story_of: NDArray[np.intp]
    dimension_of: NDArray[np.intp]
    methods: tuple[str, ...]
    judges: tuple[str, ...]
    cells: Cells
    confidence: Cells
    answered: NDArray[np.bool_]
    failures: Mapping[tuple[str | None, str], str]
    notes: tuple[str, ...]


class Aggregate(Protocol):
    """A way to make one judge of several."""

    def outcome(self, table: Cells, strength: Cells, names: Sequence[str]) -> Cells:
        """Outcomes of shape (methods, conditions, Q) from those of `names` and how sure they were."""
        ...


def majority(votes: Cells) -> Cells:
    """The ensemble's outcome of `votes`, shape (judges, ...): right only with more than half of the votes cast.

    A failure is no vote. With fewer than half of the judges voting the outcome is MISSING. A tie is wrong (Sec. E.7).
    """
    cast = (votes >= WRONG).sum(axis=0)
    right = (votes == RIGHT).sum(axis=0)
    outcome = np.where(2 * right > cast, RIGHT, WRONG)
    return np.where((2 * cast < votes.shape[0]) | (cast == 0), MISSING, outcome).astype(np.int8)


def _select(records: Iterable[StoryRecord], selection: Selection) -> tuple[list[tuple[str, Question]], list[str]]:
    """The questions that count, sorted by story and id, and notes about them."""
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


class _Board:
    """Collects rows into cells; a later row replaces an earlier one with the same key."""

    def __init__(self, questions: Sequence[tuple[str, Question]], matching: Matching) -> None:
        self.matching = word_rule(matching)
        self.questions = questions
        self.place = {(story, question.question_id): at for at, (story, question) in enumerate(questions)}
        self.shared: dict[str, Cells] = {}
        self.own: dict[tuple[str, str], Cells] = {}
        self.sure: dict[tuple[str | None, str], Cells] = {}
        self.verdicts: dict[tuple[object, ...], int] = {}
        self.failed: dict[tuple[str | None, str], Counter[str]] = {}
        self.strangers = 0
        self.homeless = 0

    def add(self, row: Answer) -> None:
        at = self.place.get((row.story_id, row.question_id))
        if at is None:
            self.strangers += 1
            return
        question = self.questions[at][1]
        if row.role is not None and question.role is not None and row.role != question.role:
            self.strangers += 1
            return
        if row.status != "ok":
            told = self.failed.setdefault((row.method, row.judge), Counter())
            told[f"{row.status}: {row.error}" if row.error else row.status] += 1
        count = len(self.questions)
        if row.method is None and row.condition != "text":
            self.homeless += 1
        elif row.method is None:
            self._cell(self.shared, row.judge, (count,))[at] = self._outcome(row, question, at)
            self._cell(self.sure, (None, row.judge), (count,), 0)[at] = _LEVEL[row.confidence]
        else:
            cells = self._cell(self.own, (row.method, row.judge), (len(CONDITIONS), count))
            cells[_CONDITION[row.condition], at] = self._outcome(row, question, at)
            sure = self._cell(self.sure, (row.method, row.judge), (len(CONDITIONS), count), 0)
            sure[_CONDITION[row.condition], at] = _LEVEL[row.confidence]

    @staticmethod
    def _cell(store: dict, key: object, shape: tuple[int, ...], empty: int = _NO_ROW) -> Cells:  # type: ignore[type-arg]
        if key not in store:
            store[key] = np.full(shape, empty, dtype=np.int8)
        cells: Cells = store[key]
        return cells

    def _outcome(self, row: Answer, question: Question, at: int) -> int:
        if row.status != "ok" or row.answer is None:
            return MISSING
        key = (at, row.answer, row.condition, row.evidence_status, row.image_support)
        if key not in self.verdicts:
            right = match(row, question, self.matching).right
            self.verdicts[key] = MISSING if right is None else int(right)
        return self.verdicts[key]

    def cells(self, methods: Sequence[str], judges: Sequence[str]) -> tuple[Cells, Cells]:
        """Outcomes and confidence, (methods, judges, conditions, questions), with shared text answers filled in."""
        count = len(self.questions)
        table = np.full((len(methods), len(judges), len(CONDITIONS), count), _NO_ROW, dtype=np.int8)
        sure = np.zeros_like(table)
        for m, method in enumerate(methods):
            for j, judge in enumerate(judges):
                if (method, judge) in self.own:
                    table[m, j] = self.own[method, judge]
                    sure[m, j] = self.sure[method, judge]
                if judge in self.shared:
                    text = table[m, j, _TEXT].copy()
                    table[m, j, _TEXT] = np.where(text == _NO_ROW, self.shared[judge], text)
                    sure[m, j, _TEXT] = np.where(text == _NO_ROW, self.sure[None, judge], sure[m, j, _TEXT])
        return table, sure


def _depending(table: Cells, questions: Sequence[tuple[str, Question]]) -> Cells:
    """Where a question `depends_on` others (DSG): wrong where one of them is wrong, missing where one is missing."""
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
    board = _Board(questions, matching)
    for row in answers:
        board.add(row)
    methods = tuple(sorted({method for method, _ in board.own}))
    judges = tuple(sorted({judge for _, judge in board.own} | set(board.shared)))
    for taken in {ENSEMBLE, CALIBRATED} & set(judges):
        raise RecordError(f"A judge must not be called {taken!r}.", hint="Rename it in the answers file.")
    table, sure = board.cells(methods, judges)
    stories = tuple(sorted({story for story, _ in questions}))
    order = {story: at for at, story in enumerate(stories)}
    story_of = np.array([order[story] for story, _ in questions], dtype=np.intp)
    seen = (table[:, :, 1:] != _NO_ROW).any(axis=(1, 2))
    answered = np.zeros((len(methods), len(stories)), dtype=bool)
    for m in range(len(methods)):
        answered[m, story_of[seen[m]]] = True
    table = _depending(np.maximum(table, MISSING), questions)
    people, named = table, list(judges)
    if len(judges) > 1:
        table = np.concatenate([table, majority(np.moveaxis(people, 1, 0))[:, None]], axis=1)
        named.append(ENSEMBLE)
    if calibrated is not None and judges:
        table = np.concatenate([table, calibrated.outcome(people, sure, judges)[:, None]], axis=1)
        named.append(CALIBRATED)
    if board.strangers:
        notes.append(f"{board.strangers} rows answer no selected question of these stories and are left out.")
    if board.homeless:
        notes.append(f"{board.homeless} rows about images name no method and are left out.")
    return Outcomes(
        stories=stories,
        questions=tuple(question for _, question in questions),
        story_of=story_of,
        dimension_of=np.array([_DIMENSION[question.question_type] for _, question in questions], dtype=np.intp),
        methods=methods,
        judges=tuple(named),
        cells=table,
        confidence=sure,
        answered=answered,
        failures={key: told.most_common(1)[0][0] for key, told in board.failed.items()},
        notes=tuple(notes),
    )


# The valid-set ledger: why each question left, for every method and judge (Eq. 16, Sec. 3.5).

_BOTH = CONDITIONS.index("text+image")
_SHOWN = 160
Rows = Callable[[], Iterable[Answer]]
Cell = tuple[str | None, str, str, str, Condition]


def question_ledger(
    records: Sequence[StoryRecord],
    rows: Rows,
    *,
    matching: Matching,
    questions: Selection,
    invalid: Mapping[str, Mapping[str, str]],
) -> Iterator[LeftQuestion]:
    """Every question that is not in a method's filtered set, with `why` and, in words, `detail`.

    why: `invalid_story` (no usable board), `unscored` (a condition has no outcome) or `ambiguous` (wrong under
    text+image). `rows` gives the answers anew each time it is called, so that they are never all in memory.
    """
    outcomes = collect(records, rows(), matching=matching, selection=questions)
    left = list(_left(outcomes, invalid))
    wanted = {cell for _, cells in left for cell in cells}
    said: dict[Cell, str] = {}
    for row in rows():
        cell = (row.method, row.judge, row.story_id, row.question_id, row.condition)
        if cell in wanted:
            said[cell] = _words(row)
    for item, cells in left:
        details = list(dict.fromkeys(f"{cell[4]}: {said[cell]}" for cell in cells if cell in said))
        yield item.model_copy(update={"detail": item.detail or "; ".join(details) or "was not asked"})


def summarise(items: Iterable[LeftQuestion]) -> list[LeftCount]:
    """Return how many questions left for each reason, by method and judge, sorted."""
    counts = Counter((item.method, item.judge, item.why) for item in items)
    return [
        LeftCount(method=method, judge=judge, why=why, n=number)
        for (method, judge, why), number in sorted(counts.items())
    ]


def _words(row: Answer) -> str:
    if row.status != "ok":
        return f"{row.status} ({row.error[:_SHOWN]})" if row.error else row.status
    support = f", image support {row.image_support}" if row.image_support else ""
    return f"answered {(row.answer or '')[:_SHOWN]!r}{support}"


def _left(outcomes: Outcomes, invalid: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[LeftQuestion, list[Cell]]]:
    """Each question that left, its detail still to be told, with the cells whose rows tell it."""
    for m, method in enumerate(outcomes.methods):
        for j, judge in enumerate(outcomes.judges):
            for at, question in enumerate(outcomes.questions):
                story = outcomes.stories[outcomes.story_of[at]]
                cells = outcomes.cells[m, j, :, at]
                missing = [name for place, name in enumerate(CONDITIONS) if cells[place] == MISSING]
                if not missing and cells[_BOTH] == RIGHT:
                    continue
                reason = invalid.get(method, {}).get(story)
                places: list[Condition] = missing or ["text+image"]
                people = [name for name in outcomes.judges if name != ENSEMBLE] if judge == ENSEMBLE else [judge]
                item = LeftQuestion(
                    method=method,
                    judge=judge,
                    story_id=story,
                    question_id=question.question_id,
                    dimension=question.question_type,
                    why="invalid_story" if reason else "unscored" if missing else "ambiguous",
                    detail=reason or "",
                )
                yield (
                    item,
                    [
                        (owner, name, story, question.question_id, place)
                        for name in people
                        for place in places
                        for owner in ((None, method) if place == "text" else (method,))
                    ],
                )
