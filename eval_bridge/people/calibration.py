"""Judges beside people on the same boards (Secs. F.6 and H.6; Tables 37 and 39, Fig. 10), by method, never pooled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from katha.eval_bridge.matching.match import Rule, normalise
from katha.eval_bridge.people import agreement as c
from katha.eval_bridge.people.collected import majority
from katha.eval_bridge.people.judgments import CONFIDENCE, Judgment
from katha.eval_bridge.people.recoverability import RaterAnswers
from katha.eval_bridge.scoring.outcomes import ENSEMBLE, MISSING, RIGHT, WRONG, Outcomes, collect
from katha.eval_bridge.scoring.statistics import averages, story_counts
from katha.schema import ASKED, CONDITIONS, Answer, Condition, StoryRecord
from katha.schema.people import Gathered, JudgeOnBoards, LabelAgreement, PairAgreement, PreferencePair

_IMAGE = CONDITIONS.index("image")
Scores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Image recoverability in points by judge, method and story."""


class Archive:
    """Judges' answers about the boards that people judged.

    An ensemble's answer is the one that most judges gave; its verdict is `majority`'s of their verdicts.
    """

    def __init__(self, records: Sequence[StoryRecord], answers: Iterable[Answer], rule: Rule) -> None:
        """Read the archive; raises RecordError as `collect` does."""
        rows = [row for row in answers if "/" not in (row.method or "")]
        self.outcomes: Outcomes = collect(records, rows, matching=rule, selection="all")
        self._given: dict[tuple[str, str | None, str, str, str], Answer] = {
            (row.judge, row.method, row.story_id, row.question_id, row.condition): row
            for row in rows
            if row.status == "ok" and row.answer is not None
        }

    def answer(self, judge: str, method: str | None, key: tuple[str, str, str]) -> tuple[str, float | None] | None:
        """Return what a judge said about (story, question, condition), and how sure it was; None where it did not."""
        names = [name for name in self.outcomes.judges if name != ENSEMBLE] if judge == ENSEMBLE else [judge]
        found = [self._given.get((name, method, *key)) or self._text(name, key) for name in names]
        said = [row for row in found if row is not None]
        most = majority(
            {"answer": normalise(row.answer or ""), "story_id": "", "question_id": "", "condition": ""} for row in said
        )
        if not most:
            return None
        (chosen,) = most.values()
        sure = [CONFIDENCE[row.confidence] for row in said if row.confidence is not None]
        return chosen, float(np.mean(sure)) if sure else None

    def _text(self, judge: str, key: tuple[str, str, str]) -> Answer | None:
        return self._given.get((judge, None, *key)) if key[2] in ("text", "none") else None

    def boards(self, method: str, people: Sequence[Judgment]) -> dict[str, JudgeOnBoards]:
        """Return each judge beside people on one method's boards; text-only judgments hold for every method."""
        if method not in self.outcomes.methods:
            return {}
        own = [row for row in people if row.get("method") == method or ("method" not in row and "answer" in row)]
        asked = [row for row in own if "right" in row]
        if not asked:
            return {}
        human = RaterAnswers.of([{name: value for name, value in row.items() if name != "method"} for row in asked])
        scores = human.per_story(0)
        valid = {human.questions[at] for at in np.flatnonzero(human.valid[0])}
        return {judge: self._judge(judge, method, asked, scores, valid) for judge in self.outcomes.judges}

    def _judge(
        self,
        judge: str,
        method: str,
        asked: Sequence[Judgment],
        human: Mapping[str, float],
        valid: set[tuple[str, str]],
    ) -> JudgeOnBoards:
        most = majority(asked)
        agreement, verdicts = dict[Condition, LabelAgreement](), dict[Condition, float]()
        for condition in ASKED:
            pairs = [
                (said, normalise(people))
                for (_, story, question, under), people in most.items()
                if under == condition and (said := self.answer(judge, method, (story, question, under))) is not None
            ]
            if pairs:
                agreement[condition] = _labels(pairs)
            alike = self._verdicts(judge, method, condition, asked)
            if alike:
                verdicts[condition] = 100.0 * sum(alike) / len(alike)
        own = self.image(judge, method, valid)
        both = [Gathered(story_id=name, human=human[name], judge=own[name]) for name in sorted(set(human) & set(own))]
        return JudgeOnBoards(
            agreement=agreement,
            verdicts=verdicts,
            image=c.rank_agreement([one.judge for one in both], [one.human for one in both]),
            boards=both,
        )

    def _verdicts(self, judge: str, method: str, condition: Condition, asked: Sequence[Judgment]) -> list[bool]:
        """Return whether judge and most people are both right or both wrong, question by question; a tie of people is
        none."""
        votes: dict[tuple[str, str], list[bool]] = {}
        for row in asked:
            if row["condition"] == condition:
                votes.setdefault((row["story_id"], row["question_id"]), []).append(row["right"])
        if condition == "none":
            cells = self.outcomes.guesses[self.outcomes.judges.index(judge)]
        else:
            cells = self._cells(judge, method)[CONDITIONS.index(condition)]
        found = []
        for at, question in enumerate(self._questions()):
            given = votes.get(question, [])
            if cells[at] != MISSING and 2 * sum(given) != len(given):
                found.append((2 * sum(given) > len(given)) == (cells[at] == RIGHT))
        return found

    def image(self, judge: str, method: str, valid: set[tuple[str, str]]) -> dict[str, float]:
        """Return the judge's image recoverability by story, in points, on the questions of `valid` that it answered."""
        outcomes, cells = self.outcomes, self._cells(judge, method)
        kept = np.array([question in valid for question in self._questions()]) & (cells[_IMAGE] >= WRONG)
        counts = story_counts(cells == RIGHT, kept, outcomes.cell_of, len(outcomes.stories))
        shares = 100.0 * averages(counts)[:, _IMAGE]
        return {
            name: round(float(value), 9)  # a tie is a tie, whichever way a last digit fell
            for name, value in zip(outcomes.stories, shares, strict=True)
            if not np.isnan(value)
        }

    def _cells(self, judge: str, method: str) -> Any:
        return self.outcomes.cells[self.outcomes.methods.index(method), self.outcomes.judges.index(judge)]

    def _questions(self) -> list[tuple[str, str]]:
        outcomes = self.outcomes
        return [
            (outcomes.stories[story], question.question_id)
            for story, question in zip(outcomes.story_of, outcomes.questions, strict=True)
        ]

    def pairs(self, pair: PreferencePair, rows: Sequence[Judgment]) -> dict[str, PairAgreement]:
        """Return each judge's pairwise agreement with people (Eq. 75) on the stories whose two boards they compared.

        People's order is the sign of the mean overall preference (Q15), or of all criteria where it was not asked.
        """
        if not {pair.a, pair.b} <= set(self.outcomes.methods):
            return {}
        own = [
            row
            for row in rows
            if "preference" in row
            and row.get("task") == pair.task
            and (row["method"], row["against"]) == (pair.a, pair.b)
        ]
        own = [row for row in own if row.get("criterion") == "Q15"] or own
        given = c.by_key(own, "story_id", "preference")
        every = set(self._questions())
        return {judge: self._ordered(judge, pair, given, every) for judge in self.outcomes.judges}

    def _ordered(
        self, judge: str, pair: PreferencePair, given: Mapping[str, Sequence[int]], every: set[tuple[str, str]]
    ) -> PairAgreement:
        first, second = self.image(judge, pair.a, every), self.image(judge, pair.b, every)
        hits = [
            np.sign(first[story] - second[story]) == np.sign(sum(values))
            for story, values in given.items()
            if story in first and story in second
        ]
        return PairAgreement(n=len(hits), agreement=100.0 * float(np.mean(hits)) if hits else None)


def _labels(pairs: Sequence[tuple[tuple[str, float | None], str]]) -> LabelAgreement:
    value = c.agreement([said for (said, _), _ in pairs], [people for _, people in pairs])
    sure = [(confidence, said == people) for (said, confidence), people in pairs if confidence is not None]
    ece = c.calibration_error([confidence for confidence, _ in sure], [right for _, right in sure])
    return LabelAgreement(n=len(pairs), agreement=None if value is None else 100.0 * value, ece=ece)
