"""From the stories' files to arrays: each row's outcomes, lengths and costs, and what people say of its boards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from katha.compass.modes import RowScoring, SuiteRow
from katha.compass.repair import BoardKey, board_key
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.matching.rules import settle
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.people.agreement import Placed, column_rating, correlation, localization
from katha.eval_bridge.people.analysis import board_sections
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.scoring.gate import why_no_gap
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, WRONG, Outcomes, collect
from katha.eval_bridge.scoring.reliability import split_half
from katha.eval_bridge.scoring.rows import RowCounts, choose_questions, row_counts
from katha.eval_bridge.scoring.statistics import IMAGE, averages
from katha.eval_bridge.scoring.steering import steering_agreement
from katha.experiments.ablate.job import (
    HELD_OUT,
    OWN,
    AblationFolder,
    AblationJob,
    Judgments,
    RowBoard,
    StoryResult,
    protocol_of,
)
from katha.schema import CONDITIONS, DIMENSIONS, Answer, Question, StoryRecord
from katha.schema.scores import SteeringAgreement
from katha.schema.tables import DefectsFound, HumanColumns, VerdictAgreement

Floats = NDArray[np.float64]


RELIABILITY = 59
"""The table that has the reliability of STG as a column."""


class SuiteFolder:
    """Everything that the table is made from; read once from the folder.

    unsettled: what a rule of matching could not decide, one sentence each, of the outcomes that were asked for.
    """

    def __init__(self, job: AblationJob, folder: AblationFolder) -> None:
        self.job, self.folder = job, folder
        self._outcomes: dict[tuple[object, ...], Outcomes] = {}
        self.unsettled: list[str] = []
        self._unmeasured: dict[str, str | None] = {}

    @cached_property
    def results(self) -> list[StoryResult]:
        """Every story's result, in the order of the stories."""
        found = (self.folder.result(item.story_id, self.job.story_identity(item)) for item in self.job.records)
        return [item for item in found if item is not None]

    @cached_property
    def stories(self) -> list[StoryRecord]:
        """The stories as they were used; those that could not be prepared are left out."""
        return [story for item in self.results for story in self.folder.prepared(item.story_id)]

    @cached_property
    def names(self) -> list[str]:
        """The stories' ids, sorted: the order of every array."""
        return sorted(item.story_id for item in self.results)

    def boards(self, row: SuiteRow) -> Iterator[tuple[int, RowBoard]]:
        """Yield each board of a row with its story's place in `names`."""
        for result in self.results:
            place = self.names.index(result.story_id)
            yield from ((place, board) for board in result.boards if board.row == row.name)

    def methods(self, row: SuiteRow) -> list[str]:
        """Return the row's boards by name: one, or one a seed."""
        return list(dict.fromkeys(board.method for _, board in self.boards(row)))

    def labels(self, row: SuiteRow) -> list[str]:
        """Return the row's boards by label: one for each name, or for each judge that reports it."""
        return list(dict.fromkeys(board.label for _, board in self.boards(row)))

    def judged(self, row: SuiteRow) -> list[str]:
        """Return those of the row's boards that have answers."""
        known = self.outcomes(row).methods
        return [name for name in self.methods(row) if name in known]

    def lengths(self, row: SuiteRow) -> NDArray[np.int64]:
        """Return the displayed frames, shape (boards, stories); 0 where there is no board."""
        labels = self.labels(row)
        table = np.zeros((len(labels), len(self.names)), dtype=np.int64)
        for place, board in self.boards(row):
            table[labels.index(board.label), place] = len(board.board.frames)
        return table

    def same(self, a: SuiteRow, b: SuiteRow) -> Literal["boards", "all"] | None:
        """Return what two rows share: "boards" (asked or scored otherwise), "all", or None."""
        ours, theirs = self._looks(a), self._looks(b)
        if not ours or ours != theirs:
            return None
        return "all" if a.scored_like(b) else "boards"

    def _looks(self, row: SuiteRow) -> dict[int, set[BoardKey]]:
        """Return the row's boards by story."""
        found: dict[int, set[BoardKey]] = defaultdict(set)
        for place, item in self.boards(row):
            found[place].add(board_key(item.board.frames))
        return found

    def circular(self, *rows: SuiteRow) -> str | None:
        """Return why two planners cannot be compared: one of them has read the questions out of the story."""
        if len({row.planner for row in self.job.suite.rows}) < 2:
            return None
        for reader in {row.planner for row in rows if row.planner is not None}:
            read = sum(item.questions_from == reader for item in self.results)
            if read:
                return f"the questions of {read} stories, which bring none, were read by the planner {reader!r} itself"
        return None

    def equally_long(self, a: SuiteRow, b: SuiteRow) -> bool:
        """Return whether two rows show equally many frames of every story that both have a board of."""
        ours, theirs = ([set(column[column > 0]) for column in self.lengths(row).T] for row in (a, b))
        return all(one == two and len(one) == 1 for one, two in zip(ours, theirs, strict=True) if one and two)

    def guessed(self, row: SuiteRow) -> set[tuple[str, str]] | None:
        """Return the questions (story and id) that the row's judge had right without any evidence, or was not asked so;
        None where none was asked without."""
        found = self.outcomes(row)
        at = found.judges.index(row.scoring.judge) if row.scoring.judge is not None else -1
        if not found.judges or not (found.guesses[at] != MISSING).any():
            return None
        asked = zip(found.story_of, found.questions, found.guesses[at], strict=True)
        return {(found.stories[story], item.question_id) for story, item, guess in asked if guess != WRONG}

    @cached_property
    def given_away(self) -> dict[str, set[tuple[str, str]]]:
        """By row, the questions (story and id) with an answer that stands literally in the prompt of a frame that the
        row has inserted; single words are no giveaway."""
        found: dict[str, set[tuple[str, str]]] = {row.name: set() for row in self.job.suite.rows}
        asked = {story.story_id: story.recoverability_questions for story in self.stories}
        for result in self.results:
            for board in result.boards:
                told = [f" {normalise(frame.prompt)} " for frame in board.board.frames if frame.repaired]
                for item in asked.get(result.story_id, ()) if told else ():
                    texts = (normalise(text) for text in (item.gold_answer, *item.accepted_answers))
                    if any(f" {text} " in prompt for text in texts if " " in text for prompt in told):
                        found[board.row].add((result.story_id, item.question_id))
        return found

    def reliability(self, row: SuiteRow) -> float | None:
        """Return the split-half reliability of the row's board STG by its own scoring (Table 59); None where it has no
        STG, averages over questions, or the suite is not about it."""
        scoring = row.scoring
        if RELIABILITY not in self.job.suite.tables or row.lacks or scoring.average == "questions":
            return None
        if self.unmeasured(row) is not None:
            return None
        outcomes = self.outcomes(row)
        chosen = choose_questions(
            outcomes,
            self.judged(row),
            judge=scoring.judge,
            conditions=scoring.conditions,
            filtered=scoring.valid != "none",
            dimensions=scoring.dimensions,
        )
        return split_half(outcomes, chosen, row.name, seed=self.job.seed).value

    def given_rate(self, row: SuiteRow) -> float | None:
        """Return the share of the row's questions whose answer its inserted frames' prompts hold; None without any."""
        asked = [
            (story.story_id, item.question_id)
            for story in self.stories
            for item in story.recoverability_questions
            if item.role == row.half
        ]
        inserts = any(frame.repaired for _, board in self.boards(row) for frame in board.board.frames)
        held = sum(name in self.given_away[row.name] for name in asked)
        return 100.0 * held / len(asked) if asked and inserts else None

    def optimism(self, row: SuiteRow) -> float | None:
        """Return how much more image recoverability the judges that steered see the row gain over the baseline than
        those that did not, in percentage points of every scored question; None where all judges did both.

        Where each judge reports what the others chose: how much more a judge sees in the boards that it helped to
        choose than in those that it reports, the mean over judges.
        """
        base, reporters = self.job.suite.row(self.job.suite.baseline), self.job.reporters(row)
        if row is base or not row.scored_like(base):
            return None
        if None not in reporters:
            return self._crossed(row, [name for name in reporters if name is not None])
        if self.job.plugins(row).steering is None:
            return None
        gains = []
        for outcomes in (self._own, self.outcomes(row)):
            means = []
            for item in (row, base):
                means.append(self._seen(outcomes, self.methods(item)))
            gains.append(means[0] - means[1])
        return None if np.isnan(gains).any() else 100.0 * (gains[0] - gains[1])

    def _crossed(self, row: SuiteRow, judges: Sequence[str]) -> float | None:
        """Return what judges see in boards that they helped to choose, minus what they see in those that they report;
        the board of the baseline would stand on both sides."""
        boards = {board.label: board for _, board in self.boards(row)}
        surplus = []
        for judge in judges:
            chosen = [label for label, board in boards.items() if board.judge != judge]
            surplus.append(
                self._seen(self._own, chosen, judge) - self._seen(self.outcomes(row), self.judged(row), judge)
            )
        return None if np.isnan(surplus).any() else 100.0 * float(np.mean(surplus))

    def _seen(self, outcomes: Outcomes, methods: Sequence[str], judge: str | None = None) -> float:
        """Return the image recoverability of some boards by one judge, or all, in 0..1; NaN where nothing is scored."""
        names = [name for name in methods if name in outcomes.methods]
        if judge is not None and judge not in outcomes.judges:
            return float("nan")
        counts = row_counts(outcomes, names, self.names, judge=judge, filtered=False).pooled()
        return float(averages(counts.sum(axis=0))[IMAGE])

    @cached_property
    def _own(self) -> Outcomes:
        """The outcomes of the judges that steered, on the reporting questions."""
        rule = self.job.rule(self.job.config.matching, self.folder.path)
        self.unsettled += settle(rule, self.stories, self.rows(OWN))
        return collect(self.stories, self.rows(OWN), matching=rule, selection="reporting")

    def counts(
        self,
        row: SuiteRow,
        *,
        filtered: bool | None = None,
        common: bool = False,
        without: Collection[tuple[str, str]] = (),
    ) -> RowCounts:
        """Return the row's counts by its own scoring.

        filtered: replaces its rule of validity. common: only questions that are valid for every row scored like it.
        without: questions, by story and id, that are left out.
        """
        scoring = row.scoring
        alike = [other for other in self.job.suite.rows if row.scored_like(other)]
        return row_counts(
            self.outcomes(row),
            self.judged(row),
            self.names,
            judge=scoring.judge,
            conditions=scoring.conditions,
            filtered=scoring.valid != "none" if filtered is None else filtered,
            dimensions=scoring.dimensions,
            together=scoring.average == "questions",
            among=[name for other in alike for name in self.judged(other)] if common else (),
            without=without,
        )

    def unmeasured(self, row: SuiteRow) -> str | None:
        """Return why the row has no gap by its own scoring (see `scoring.gate`); None where it has one."""
        if row.name not in self._unmeasured:
            self._unmeasured[row.name] = why_no_gap(
                self.outcomes(row),
                self.judged(row),
                judge=row.scoring.judge,
                conditions=row.scoring.conditions,
                filtered=row.scoring.valid != "none",
                dimensions=row.scoring.dimensions,
            )
        return self._unmeasured[row.name]

    @cached_property
    def steering(self) -> SteeringAgreement:
        """Return how the steering recoverability of each distinct board goes with what is reported of its images."""
        found: dict[tuple[str, BoardKey], tuple[str, float, float]] = {}
        for row in self.job.suite.rows:
            if protocol_of(row) != HELD_OUT or row.scoring != RowScoring():
                continue
            outcomes = self.outcomes(row)
            for place, item in self.boards(row):
                key = (self.names[place], board_key(item.board.frames))
                if key in found or item.score.recoverability is None or item.method not in outcomes.methods:
                    continue
                counts = row_counts(outcomes, [item.method], self.names, judge=item.judge, filtered=False).pooled()
                seen = float(averages(counts[place])[IMAGE])
                if not np.isnan(seen):
                    found[key] = (self.names[place], item.score.recoverability, seen)
        return steering_agreement(found.values())

    def outcomes(self, row: SuiteRow) -> Outcomes:
        """Return the outcomes of the row's answers by its own rule."""
        scoring, protocol = row.scoring, protocol_of(row)
        matching = scoring.matching or self.job.config.matching
        labels = tuple(sorted(scoring.labels.items()))
        key = (protocol, matching, scoring.valid == "answer", scoring.accepted, labels)
        if key not in self._outcomes:
            stories = [coarse_story(item, scoring) for item in self.stories]
            rule = self.job.rule(matching, self.folder.path)
            self.unsettled += settle(rule, stories, self.rows(protocol))
            rows = (_coarse_row(item, scoring) for item in self.rows(protocol))
            self._outcomes[key] = collect(stories, rows, matching=rule, selection=row.half)
        return self._outcomes[key]

    def moral_options(self, row: SuiteRow) -> list[tuple[str, list[str]]]:
        """Return the answer and the options, `Unclear` apart, of each moral question that the row asks as a choice."""
        return [
            (item.gold_answer, options)
            for story in self.stories
            for item in story.recoverability_questions
            if item.question_type == "moral" and item.role == row.half
            if (options := [text for text in item.options or [] if text != UNCLEAR])
        ]

    def rows(self, protocol: str) -> Iterator[Answer]:
        """Yield every row of one protocol, story by story."""
        for result in self.results:
            yield from self.folder.answers(result.story_id, protocol)

    def invalid(self, row: SuiteRow) -> dict[str, str]:
        """Return why the row has no board, by story."""
        methods = {row.name, *(f"{row.name}@{seed}" for seed in self.job.config.seeds)}
        return {
            result.story_id: reason
            for result in self.results
            for name, reason in result.invalid.items()
            if name in methods and not any(board.row == row.name for board in result.boards)
        }

    def needs(self, rows: Sequence[SuiteRow]) -> tuple[int, int]:
        """Return the distinct frames and distinct questions of these rows together."""
        boards = [board for row in rows for _, board in self.boards(row)]
        frames = {name for board in boards for name in board.frames}
        return len(frames), len({name for board in boards for name in board.questions})


def _coarse_row(row: Answer, scoring: RowScoring) -> Answer:
    """Return `row` as the scoring reads it: without the image support, or with a coarser moral label."""
    changes: dict[str, str] = {}
    if scoring.valid == "answer" and row.image_support is not None:
        changes["image_support"] = "supported"
    if row.answer is not None and normalise(row.answer) in scoring.labels:
        changes["answer"] = scoring.labels[normalise(row.answer)]
    return row.model_copy(update=changes) if changes else row


def coarse_story(record: StoryRecord, scoring: RowScoring) -> StoryRecord:
    """Return `record` with the answers that the scoring accepts: coarser labels, or the canonical answers alone."""
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


# People's judgments beside the score of the same boards (Tables 55, 58 to 66 and 73).


_BOTH = CONDITIONS.index("text+image")


def human_columns(people: Judgments, tally: SuiteFolder, row: SuiteRow) -> HumanColumns:
    """Return what people say of one row's boards; None for what nobody judged or the row cannot answer."""
    own = [item for item in people.about(row) if item["story_id"] in tally.names]
    if not own or not tally.judged(row):
        return HumanColumns()
    sections = board_sections(people.path, own)
    mean = {"human_mean": column_rating(own, "human_score")}
    return HumanColumns.model_validate(sections | mean | _alignment(tally, row, own) | _verdicts(tally, row, own))


def _place(item: Judgment, methods: Sequence[str]) -> int | None:
    """Return which of the row's boards a judgment names; None: no one of them."""
    seed = item.get("method", "").partition("@")[2]
    return next((at for at, name in enumerate(methods) if seed and name.endswith(f"@{seed}")), None)


def _alignment(tally: SuiteFolder, row: SuiteRow, own: Sequence[Judgment]) -> dict[str, object]:
    """Return localization and rank correlation by the row's own scoring.

    A judgment of no one board meets all of them together.
    """
    counts, methods, scoring = tally.counts(row), tally.judged(row), row.scoring
    table = np.concatenate([counts.counts, counts.pooled()[None]])
    everyone = len(methods)
    places = [(_place(item, methods), tally.names.index(item["story_id"]), item) for item in own]
    placed: Placed = [(everyone if at is None else at, story, item) for at, story, item in places]
    told = {"text", "image"} <= set(scoring.conditions)
    several = scoring.average == "dimensions" and len(scoring.dimensions or DIMENSIONS) > 1
    return {
        "localization": localization(placed, table) if told and several else None,
        "human_score": correlation(placed, table) if "image" in scoring.conditions else None,
    }


def _verdicts(tally: SuiteFolder, row: SuiteRow, own: Sequence[Judgment]) -> dict[str, object]:
    """Return how often the row's verdicts are those of most people, and which defective questions it leaves out."""
    given: dict[tuple[str, str, str, int | None], list[bool]] = defaultdict(list)
    methods = tally.judged(row)
    for item in own:
        if {"question_id", "condition", "right"} <= item.keys() and item["condition"] in CONDITIONS:
            given[item["story_id"], item["question_id"], item["condition"], _place(item, methods)].append(item["right"])
    if not given:
        return {}
    outcomes = tally.outcomes(row)
    known = {
        (outcomes.stories[story], question.question_id): at
        for at, (story, question) in enumerate(zip(outcomes.story_of, outcomes.questions, strict=True))
    }
    judge = outcomes.judges.index(row.scoring.judge) if row.scoring.judge is not None else -1
    pairs, defective = [], []
    for (story, question, condition, place), votes in given.items():
        if (story, question) not in known or 2 * sum(votes) == len(votes):
            continue
        right, at, seen = 2 * sum(votes) > len(votes), known[story, question], CONDITIONS.index(condition)
        for name in methods if place is None else [methods[place]]:
            cells = outcomes.cells[outcomes.methods.index(name), judge]
            if cells[seen, at] != MISSING and condition in row.scoring.conditions:
                pairs.append((bool(cells[seen, at] == RIGHT), right))
            if condition == "text+image" and not right:
                defective.append(row.scoring.valid != "none" and bool(cells[_BOTH, at] != RIGHT))
    found = DefectsFound(n=len(defective), detected=100.0 * sum(defective) / len(defective)) if defective else None
    return {"agreement": _agreement(pairs), "ambiguity_detected": found}


def _agreement(pairs: Sequence[tuple[bool, bool]]) -> VerdictAgreement | None:
    """Return how often the score and most people agree, by pairs of (right by the score, right by people)."""
    if not pairs:
        return None
    wrong, right = [ours for ours, people in pairs if not people], [ours for ours, people in pairs if people]
    return VerdictAgreement(
        n=len(pairs),
        agreement=100.0 * sum(ours == people for ours, people in pairs) / len(pairs),
        false_accept=100.0 * sum(wrong) / len(wrong) if wrong else None,
        false_reject=100.0 * (len(right) - sum(right)) / len(right) if right else None,
    )
