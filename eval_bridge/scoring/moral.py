"""The question of Eqs. 39 to 42: which of the twelve moral labels a story has, asked of its text and of its images.

A record's own moral question may have a lesson in words for an answer (Table 29); its label is known all the same. Such
a story is asked for the label beside its questions, and the answer counts in the moral target alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from katha.eval_bridge.matching.match import Matching, moral_label
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.scoring.outcomes import RIGHT, Outcomes, collect
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT
from katha.schema import MORAL_LABELS, Answer, Question, StoryRecord
from katha.schema.scores import MoralTarget

LABEL_PREFIX = "label:"
_ASKED = "Which moral label does the whole story carry?"
Seen = tuple[str, bool, bool, Sequence[str] | None]
"""A story's label, whether it was told from the text and from the images, and the options that were offered."""


def label_question(record: StoryRecord, seed: int = 42) -> Question | None:
    """Return the label question of a story whose moral questions have no label for an answer; None for another one."""
    own = [item for item in record.recoverability_questions if item.question_type == "moral"]
    label = moral_label(record.moral_label)
    if label is None or not own or any(moral_label(item.gold_answer) is not None for item in own):
        return None
    options = list(MORAL_LABELS)
    name = f"{LABEL_PREFIX}{record.story_id}"
    random.Random(f"{seed}:{name}").shuffle(options)
    return Question(
        question_id=name,
        story_id=record.story_id,
        question_type="moral",
        question=_ASKED,
        gold_answer=label,
        accepted_answers=[label],
        options=[*options, UNCLEAR],
    )


def label_questions(records: Iterable[StoryRecord], seed: int = 42) -> dict[str, list[Question]]:
    """Return the label questions by story."""
    found = ((record.story_id, label_question(record, seed)) for record in records)
    return {story: [item] for story, item in found if item is not None}


@dataclass
class LabelAnswers:
    """Takes the answers to label questions out of a stream; what came of them is known when it has run."""

    questions: Mapping[str, Sequence[Question]]
    matching: Matching

    def __post_init__(self) -> None:
        self._rows: list[Answer] = []
        self._outcomes: Outcomes | None = None

    def others(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Yield every row that is not an answer to a label question."""
        for row in answers:
            if row.question_id.startswith(LABEL_PREFIX):
                self._rows.append(row)
            else:
                yield row

    def seen(self, method: str, judge: str) -> list[Seen]:
        """Return one judge's results on the stories whose label it gave from text and images together."""
        if not self.questions or not self._rows:
            return []
        if self._outcomes is None:
            records = [
                StoryRecord(story_id=story, story_text=story, recoverability_questions=list(asked))
                for story, asked in self.questions.items()
            ]
            self._outcomes = collect(records, self._rows, matching=self.matching, selection="all")
        out = self._outcomes
        if method not in out.methods or judge not in out.judges:
            return []
        cells = out.cells[out.methods.index(method), out.judges.index(judge)]
        valid = (cells >= 0).all(axis=0) & (cells[BOTH] == RIGHT)
        return [
            (question.gold_answer, bool(cells[TEXT, at] == RIGHT), bool(cells[IMAGE, at] == RIGHT), question.options)
            for at, question in enumerate(out.questions)
            if valid[at]
        ]


def moral_target(seen: Sequence[Seen], chance: float) -> MoralTarget:
    """Return MTR in percentage points, its gap, and the two baselines (Eqs. 39 to 42); null without a story."""
    if not seen:
        return MoralTarget(text=None, image=None, gap=None, chance=chance, majority=None)
    labels = [label for label, _, _, _ in seen]
    text, image = (100.0 * float(np.mean([row[place] for row in seen])) for place in (1, 2))
    most = max(labels.count(label) for label in set(labels))
    return MoralTarget(text=text, image=image, gap=text - image, chance=chance, majority=100.0 * most / len(labels))
