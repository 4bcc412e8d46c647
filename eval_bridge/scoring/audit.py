"""Guards on scores: steering and reporting never meet, why a question left, and what changed between two scorings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import ValidationError

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.matching.match import Matching, Rule, match, normalise, word_rule
from katha.eval_bridge.matching.rules import KeptRule, keeps_verdicts, scored_rule
from katha.eval_bridge.packets.instructions import STEERING_VARIANTS, AnswersFormat, judge_prompt, prompt_sha256
from katha.eval_bridge.scoring.outcomes import ENSEMBLE, MISSING, RIGHT, Outcomes, collect
from katha.eval_bridge.scoring.statistics import BOTH
from katha.jsonio import read_json
from katha.schema import CONDITIONS, Answer, Condition, Question, StoryRecord
from katha.schema.scores import LeftCount, LeftQuestion, Scores, Selection

# Steering and reporting never meet (Sec. B.7): the guard that every report passes before its numbers are made.
#
# What chose a board (its questions, the prompts they were put with, its answers) may not measure it.

_FORMS: tuple[AnswersFormat, ...] = ("choice", "free")


def require_separate(
    record: StoryRecord, reporting: Iterable[Answer], steering: Iterable[Answer], counts: Iterable[int] = ()
) -> None:
    """Reject a report that reuses selection questions.

    reporting: the rows that numbers will be made of. steering: the rows that chose, localized and accepted. counts: how
    many pictures the reported boards have, since a prompt names their number.

    Raises:
        RecordError: the halves share a question (by id or by wording and answer), a reporting row answers a steering
            question or was put with a steering prompt, or a steering row answers a reporting question.
    """
    halves = {item.question_id: item.role for item in record.recoverability_questions}
    steers = {_wording(item): item for item in record.recoverability_questions if item.role == "steering"}
    for item in record.recoverability_questions:
        twin = steers.get(_wording(item))
        if item.role == "reporting" and twin is not None:
            raise _leak(record, f"{item.question_id!r} asks for reporting what {twin.question_id!r} asks for steering")
    prompts = _steering_prompts(record, counts)
    for row in steering:
        if halves.get(row.question_id) == "reporting":
            raise _leak(record, f"the reporting question {row.question_id!r} was used to steer")
        prompts.add(row.prompt_sha256)
    for row in reporting:
        if halves.get(row.question_id) == "steering" or row.role == "steering":
            raise _leak(record, f"the steering question {row.question_id!r} is in the report")
        if row.prompt_sha256 and row.prompt_sha256 in prompts:
            raise _leak(record, f"the question {row.question_id!r} was reported with a prompt that steered")


def _steering_prompts(record: StoryRecord, counts: Iterable[int]) -> set[str]:
    """Return the hashes that the reporting questions would have if they were put with the prompts that steer."""
    shown = [("text", 0), *((name, number) for name in CONDITIONS[1:] for number in set(counts))]
    return {
        prompt_sha256(judge_prompt(item, condition, variant=variant, answers_format=form, count=count))
        for item in record.recoverability_questions
        if item.role == "reporting"
        for form in (_FORMS if item.options else _FORMS[1:])
        for condition, count in shown
        for variant in STEERING_VARIANTS
    }


def _wording(item: Question) -> tuple[str, str, tuple[int, int] | None]:
    return normalise(item.question), normalise(item.gold_answer), item.target_transition


def _leak(record: StoryRecord, what: str) -> RecordError:
    return RecordError(
        f"Story {record.story_id!r}: steering reaches reporting: {what}.",
        hint="Give every question one role, and keep the prompt variants apart.",
    )


# Which verdicts differ between two scorings, and why: another rule, another answer, another selection.

Key = tuple[str, str, str, str, str]
"""Method (empty: a text-only answer that holds for every method), judge, story, question, condition."""
_SAID = {True: "right", False: "wrong", None: "no answer"}


@dataclass(frozen=True)
class ScoredAs:
    """How an archive was scored: the matching rule and which questions counted."""

    matching: Matching
    questions: Selection


@dataclass(frozen=True)
class VerdictChange:
    """One verdict that differs. A verdict is True, False, or None where there was no answer to judge."""

    method: str
    judge: str
    story: str
    question: str
    condition: str
    before: bool | None
    after: bool | None
    why: str

    def __str__(self) -> str:
        where = f"{self.method or 'every method'}, {self.judge}, {self.story}, {self.question}, {self.condition}"
        return f"{where}: {_SAID[self.before]} -> {_SAID[self.after]}: {self.why}"


def read_scoring(path: Path, verdicts: Sequence[Path] = ()) -> tuple[ScoredAs, Scores]:
    """Return how the scores in `path` were made, and the scores.

    verdicts: archives for a rule that a model decided, or for an earlier version of a words' rule; so is the one beside
    the scores.

    Raises:
        InputFileError: it is no scores.json. UsageError: it was made with a rule that is not known here.
    """
    try:
        scores = Scores.model_validate(read_json(path))
    except ValidationError as error:
        raise InputFileError(
            f"{str(path)!r} is no scores.json.", hint="Give a file that `katha score` or a run wrote."
        ) from error
    return ScoredAs(scored_rule(scores, path.parent, verdicts), scores.questions), scores


def changes(
    records: Iterable[StoryRecord], before: tuple[ScoredAs, Iterable[Answer]], after: tuple[ScoredAs, Iterable[Answer]]
) -> Iterator[VerdictChange]:
    """Yield every verdict that differs, in the order of the keys. The last row of a key counts, as in scoring.

    Answers whose earlier verdict was not kept are left out; the rule of `before` counts them (`KeptRule.missing`).
    """
    questions = {
        (record.story_id, item.question_id): item for record in records for item in record.recoverability_questions
    }
    old, new = (_verdicts(questions, *side) for side in (before, after))
    for key in sorted({*old, *new}):
        was, now = old.get(key, _NOTHING), new.get(key, _NOTHING)
        lost = isinstance(before[0].matching, KeptRule) and was.right is None and was.answer is not None
        if was.right != now.right and not lost:
            yield VerdictChange(*key, was.right, now.right, _why(was, now, before[0], after[0]))


class _Judged(NamedTuple):
    answer: str | None
    right: bool | None
    reason: str


_NOTHING = _Judged(None, None, "there is no row")


def _verdicts(
    questions: Mapping[tuple[str, str], Question], scoring: ScoredAs, answers: Iterable[Answer]
) -> dict[Key, _Judged]:
    found: dict[Key, _Judged] = {}
    for row in answers:
        question = questions.get((row.story_id, row.question_id))
        if question is None or (row.role is not None and question.role is not None and row.role != question.role):
            continue
        key = (row.method or "", row.judge, row.story_id, row.question_id, row.condition)
        if scoring.questions != "all" and question.role not in (scoring.questions, None):
            found[key] = _Judged(row.answer, None, f"{scoring.questions} questions only")
        elif row.status != "ok" or row.answer is None:
            found[key] = _Judged(None, None, f"status {row.status}")
        else:
            verdict = match(row, question, scoring.matching)
            found[key] = _Judged(row.answer, verdict.right, verdict.reason)
    return found


def _why(was: _Judged, now: _Judged, before: ScoredAs, after: ScoredAs) -> str:
    if was.answer != now.answer:
        return f"{was.answer!r} ({was.reason}), then {now.answer!r} ({now.reason})"
    rules: list[Rule] = [word_rule(scoring.matching) for scoring in (before, after)]
    old, new = (f"{rule.name} {rule.version}" if keeps_verdicts(rule) else rule.name for rule in rules)
    if old != new and None not in (was.right, now.right):
        return f"{now.answer!r}: {was.reason} ({old}), {now.reason} ({new})"
    return f"{now.answer!r}: {was.reason}, then {now.reason}"


# The valid-set ledger: why each question left, for every method and judge (Eq. 16, Sec. 3.5).

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
    """Yield every question that is not in a method's filtered set, with `why` and, in words, `detail`.

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
    """Yield each question that left, its detail still to be told, with the cells whose rows tell it."""
    kept = (outcomes.cells != MISSING).all(axis=2) & (outcomes.cells[:, :, BOTH] == RIGHT)
    for m, j, at in np.argwhere(~kept):
        method, judge, question = outcomes.methods[m], outcomes.judges[j], outcomes.questions[at]
        story = outcomes.stories[outcomes.story_of[at]]
        missing = [name for name, cell in zip(CONDITIONS, outcomes.cells[m, j, :, at], strict=True) if cell == MISSING]
        reason = invalid.get(method, {}).get(story)
        item = LeftQuestion(
            method=method,
            judge=judge,
            story_id=story,
            question_id=question.question_id,
            dimension=question.question_type,
            why="invalid_story" if reason else "unscored" if missing else "ambiguous",
            detail=reason or "",
        )
        cells: list[Cell] = [
            (owner, name, story, question.question_id, place)
            for name in ([name for name in outcomes.judges if name != ENSEMBLE] if judge == ENSEMBLE else [judge])
            for place in missing or [CONDITIONS[BOTH]]
            for owner in ((None, method) if place == "text" else (method,))
        ]
        yield item, cells
