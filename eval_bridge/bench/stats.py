"""Counting a release while it streams by: the numbers of Tables 5, 6, 9 to 14, 20, 24, 47 and 48."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from katha.eval_bridge.bench.files import (
    CONDITIONS_ASKED,
    GOLD_TIERS,
    MORALS,
    NARRATIVE_TYPES,
    QUESTIONS,
    SCENES,
    SOURCES,
    SPLITS,
    STORIES,
    TRANSITION_TYPES,
    expected_type,
    split_name,
    split_stories,
)
from katha.schema import StoryRecord, Transition

_FIELDS = ("action", "causality", "intention", "emotion", "consequence", "expected_change", "moral_target")
_DISTRIBUTIONS: tuple[tuple[str, str, Mapping[str, int]], ...] = (
    ("narrative_type", "Table 6", NARRATIVE_TYPES),
    ("transition_type", "Table 9", TRANSITION_TYPES),
    ("moral_label", "Table 12", MORALS),
    ("question_type", "Table 14", QUESTIONS),
    ("source_dataset", "Table 24", SOURCES),
)


class Census:
    """Counts of the stories of one file: its size does not depend on how many there are."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.by: dict[str, Counter[str]] = {name: Counter() for name, _, _ in _DISTRIBUTIONS}
        self.fields: Counter[str] = Counter()
        self.split_stories: Counter[str] = Counter()
        self.split_questions: Counter[str] = Counter()

    def add(self, record: StoryRecord) -> None:
        """Count one story."""
        questions = record.recoverability_questions
        self.totals.update(
            stories=1, scenes=len(record.scenes), transitions=len(record.transitions), questions=len(questions)
        )
        self.by["narrative_type"][record.narrative_type or ""] += 1
        self.by["moral_label"][record.moral_label or ""] += 1
        self.by["source_dataset"][str(record.provenance.get("source_dataset", "")).casefold()] += 1
        self.by["transition_type"].update(item.transition_type for item in record.transitions)
        self.by["question_type"].update(item.question_type for item in questions)
        for item in record.transitions:
            self.fields.update(field for field in _FIELDS if _filled(item, field))
        split = split_name(record.split or "") or ""
        self.split_stories[split] += 1
        self.split_questions[split] += len(questions)

    def add_reference(self, value: Mapping[str, Any]) -> None:
        """Count one story that a gold subset names without repeating it."""
        self.totals["stories"] += 1
        kind = value.get("narrative_type") or expected_type(str(value.get("story_id", "")))
        self.by["narrative_type"][str(kind or "")] += 1
        self.split_stories[""] += 1

    @property
    def complete(self) -> bool:
        """Whether there are as many stories as in the full release."""
        return self.totals["stories"] == STORIES

    def deviations(self) -> list[tuple[str, str]]:
        """Where the counts are not those of the full release: the field, and a sentence."""
        found = [
            (field, f"{value!r} occurs {counts[value]:,} times; {table} has {expected.get(value, 0):,}.")
            for field, table, expected in _DISTRIBUTIONS
            for counts in [self.by[field]]
            for value in {**expected, **counts}
            if counts[value] != expected.get(value, 0)
        ]
        for name, wanted in (("scenes", SCENES * STORIES), ("transitions", (SCENES - 1) * STORIES)):
            if self.totals[name] != wanted:
                found.append((name, f"there are {self.totals[name]:,}; Table 5 has {wanted:,}."))
        for field in _FIELDS:
            wanted = STORIES if field == "moral_target" else (SCENES - 1) * STORIES
            if self.fields[field] != wanted:
                found.append((field, f"{self.fields[field]:,} transitions have it; Table 10 has {wanted:,}."))
        return found + self._split_deviations()

    def _split_deviations(self) -> list[tuple[str, str]]:
        halved = any(self.split_stories[name] for name in ("public_test", "hidden_test"))
        names = tuple(SPLITS) if halved else ("train", "validation", "test")
        return [
            ("split", f"{name} has {self.split_stories[name]:,} stories; Sec. B.7 has {split_stories(name):,}.")
            for name in names
            if self.split_stories[name] != split_stories(name)
        ]

    def tier_deviations(self, tier: str) -> list[tuple[str, str]]:
        """Where a gold subset is not what Table 20 says."""
        wanted, stories, types = GOLD_TIERS[tier], self.totals["stories"], self.by["narrative_type"]
        found = []
        if stories != wanted.stories:
            found.append(("", f"there are {stories:,} stories; Table 20 has {wanted.stories:,}."))
        return found + [
            ("narrative_type", f"{name} has {types[name]} stories; Table 20 has {wanted.per_type}.")
            for name in NARRATIVE_TYPES
            if types[name] != wanted.per_type
        ]

    def title(self) -> str:
        """What these stories are: the full release, one of its splits, or a subset of it."""
        stories = self.totals["stories"]
        if self.complete:
            return f"the full benchmark: {stories:,} stories"
        parts = ", ".join(f"{count:,} {name or 'without a split'}" for name, count in _sorted(self.split_stories))
        types = sum(1 for name in NARRATIVE_TYPES if self.by["narrative_type"][name])
        size = f"a subset of {stories:,} of the {STORIES:,} stories" if stories < STORIES else f"{stories:,} stories"
        return f"{size} ({parts}), {types} of {len(NARRATIVE_TYPES)} narrative types"

    def tables(self) -> dict[str, Any]:
        """The counts under the names of the released fields."""
        counts = {name: _ordered(self.by[name], expected) for name, _, expected in _DISTRIBUTIONS}
        totals = {name: self.totals[name] for name in ("stories", "scenes", "transitions", "questions")}
        return {
            "components": totals,
            **counts,
            "transition_fields": {field: self.fields[field] for field in _FIELDS},
            "split": dict(_sorted(self.split_stories)),
        }

    def budgets(self) -> dict[str, dict[str, int]]:
        """Table 48 (splits that are here) and the whole: stories, panels, questions, and judge calls for one judge."""
        halves = ("public_test", "hidden_test")
        rows = {
            name: (self.split_stories[name], self.split_questions[name]) for name in halves if self.split_stories[name]
        }
        test = (*halves, "test")
        if any(self.split_stories[name] for name in test):
            rows["held_out_test"] = (
                sum(self.split_stories[name] for name in test),
                sum(self.split_questions[name] for name in test),
            )
        rows["all"] = (self.totals["stories"], self.totals["questions"])
        return {name: budget(*row) for name, row in rows.items()}


def budget(stories: int, questions: int) -> dict[str, int]:
    """What judging costs: one panel a scene, one call a question and condition (Tables 47 and 48)."""
    return {
        "stories": stories,
        "panels": SCENES * stories,
        "questions": questions,
        "judge_calls": CONDITIONS_ASKED * questions,
    }


def _filled(item: Transition, field: str) -> bool:
    return bool(str(getattr(item, field) or "").strip())


def _sorted(counts: Counter[str]) -> list[tuple[str, int]]:
    order = {name: at for at, name in enumerate((*SPLITS, "test", ""))}
    return sorted(((name, count) for name, count in counts.items() if count), key=lambda pair: order[pair[0]])


def _ordered(counts: Counter[str], expected: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in {**expected, **counts}}
