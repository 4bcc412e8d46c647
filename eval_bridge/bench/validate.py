"""Checking a release: every line, every link between files, and the published counts. Nothing stops at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from katha.eval_bridge.bench.census import Census, budget
from katha.eval_bridge.bench.checks import check_story, check_validation, check_variant, is_released
from katha.eval_bridge.bench.files import Kind, Problem, ReleaseFile, Row, find_files, stream
from katha.eval_bridge.bench.ledger import Ledger
from katha.eval_bridge.bench.links import link_problems
from katha.eval_bridge.bench.reference import GOLD_TIERS, STORIES, VARIANTS_PER_STORY
from katha.schema import StoryRecord

__all__ = ["Inspection"]

_EXPECTED = {"variants": ("Table 5", VARIANTS_PER_STORY * STORIES), "validation": ("Sec. A.9", STORIES)}


class Inspection:
    """One pass over the release files at a path.

    `problems()` streams what is wrong; when it is exhausted, `summary()` says what was read and counted. Memory does
    not grow with the files.
    """

    def __init__(self, path: Path, *, complete: bool = False) -> None:
        """`complete`: also report that stories of the full release are missing.

        Raises:
            InputFileError: no such file, or no release file in the folder.
        """
        self.files = find_files(path)
        self.complete = complete
        self.censuses: dict[str, Census] = {}
        self.rows: dict[str, int] = {}
        self.found = 0

    def problems(self) -> Iterator[Problem]:
        """Every problem, file by file, then between files, then of the counts.

        Raises:
            InputFileError: a file cannot be read.
        """
        with Ledger() as ledger:
            for problem in self._all(ledger):
                self.found += 1
                yield problem

    def _all(self, ledger: Ledger) -> Iterator[Problem]:
        for file in self.files:
            self.rows[file.kind] = 0
            if file.kind not in _READERS:
                self.censuses[file.kind] = Census()
            for row in stream(file):
                if isinstance(row, Problem):
                    yield row
                    continue
                self.rows[file.kind] += 1
                yield from self._row(row, file.kind, ledger)
            if not self.rows[file.kind]:
                yield Problem(file.path.name, None, "", "", "the file holds no record.")
        names: dict[str, str] = {file.kind: file.path.name for file in self.files}
        yield from link_problems(ledger, names, full=self._full())
        yield from self._count_problems()

    def _row(self, row: Row, kind: Kind, ledger: Ledger) -> Iterator[Problem]:
        reader = _READERS.get(kind)
        if reader is not None:
            yield from reader(row, ledger)
            return
        if kind in GOLD_TIERS and set(row.value) <= {"story_id", "narrative_type", "moral_label"}:
            yield from _reference(row, kind, ledger)
            self.censuses[kind].add_reference(row.value)
            return
        record, findings = check_story(row.value)
        yield from _report(row, str(row.value.get("story_id", "?")), findings)
        if record is None:
            return
        self.censuses[kind].add(record)
        texts = [record.story_text, *(f"{q.question_id} {q.gold_answer}" for q in record.recoverability_questions)]
        fresh = ledger.add(
            "stories",
            file=kind,
            story=record.story_id,
            line=row.line,
            type=record.narrative_type,
            moral=record.moral_label,
            resolution=str(record.evidence_status.get("resolution")),
            split=record.split,
            questions=len(record.recoverability_questions),
            digest=ledger.digest("\n".join(texts)),
        )
        if not fresh:
            yield Problem(row.file, row.line, record.story_id, "story_id", "the id was used before in this file.")
        yield from _question_ids(row, record, kind, ledger)
        if kind == "stories":
            ledger.add("texts", story=record.story_id, digest=ledger.digest(record.story_text))
            promised = record.provenance.get("contrastive_variant_ids")
            for name in promised if isinstance(promised, list) else ():
                ledger.add("promised", id=str(name), story=record.story_id, file=row.file, line=row.line)

    def _full(self) -> bool:
        return "stories" in self.censuses and (self.complete or self.censuses["stories"].totals["stories"] >= STORIES)

    def _count_problems(self) -> Iterator[Problem]:
        for file in self.files:
            census = self.censuses.get(file.kind)
            found: list[tuple[str, str]] = []
            if file.kind in GOLD_TIERS and census is not None and census.totals["stories"]:
                found = census.tier_deviations(file.kind)
            elif file.kind == "stories" and self._full() and census is not None:
                found = census.deviations()
            elif file.kind in _EXPECTED and self._full():
                table, wanted = _EXPECTED[file.kind]
                if self.rows[file.kind] != wanted:
                    found = [("", f"there are {self.rows[file.kind]:,} records; {table} has {wanted:,}.")]
            for field, message in found:
                yield Problem(file.path.name, None, "", field, message)

    def summary(self) -> dict[str, Any]:
        """What was read: files, what the stories are, counts by table, judging budgets, and how many problems."""
        main = next((self.censuses[file.kind] for file in self.files if file.kind in self.censuses), None)
        notes = [f"{file.path.name}: {self._title(file)}." for file in self.files]
        tables = main.tables() if main is not None else {}
        if tables:
            tables["components"] |= {"contrastive_variants": self.rows.get("variants", 0)}
        budgets = main.budgets() if main is not None else {}
        for name in GOLD_TIERS:
            if name in self.censuses and name not in budgets and self.censuses[name].totals["questions"]:
                totals = self.censuses[name].totals
                budgets[name] = budget(totals["stories"], totals["questions"])
        return {
            "files": {file.path.name: self.rows[file.kind] for file in self.files},
            "complete": main is not None and main.complete,
            "problems": self.found,
            "tables": tables,
            "budgets": budgets,
            "notes": notes,
        }

    def _title(self, file: ReleaseFile) -> str:
        if file.kind in self.censuses:
            return self.censuses[file.kind].title()
        return f"{self.rows[file.kind]:,} {'contrastive variants' if file.kind == 'variants' else 'validation records'}"


def _report(row: Row, story: str, findings: list[tuple[str, str]]) -> Iterator[Problem]:
    for field, message in findings:
        yield Problem(row.file, row.line, story, field, message)


def _reference(row: Row, kind: Kind, ledger: Ledger) -> Iterator[Problem]:
    """A gold subset may name its stories instead of repeating them."""
    story = str(row.value.get("story_id") or "").strip()
    if not story:
        yield Problem(row.file, row.line, "?", "story_id", "it is missing or empty.")
    labels = {"type": row.value.get("narrative_type"), "moral": row.value.get("moral_label")}
    known = {name: None if label is None else str(label) for name, label in labels.items()}
    if not ledger.add("stories", file=kind, story=story, line=row.line, **known):
        yield Problem(row.file, row.line, story, "story_id", "the id was used before in this file.")


def _question_ids(row: Row, record: StoryRecord, kind: Kind, ledger: Ledger) -> Iterator[Problem]:
    """Released question ids are unique (Table 13); elsewhere they have to be within their story only."""
    for question in record.recoverability_questions if is_released(record) else ():
        owner = ledger.take(kind, question.question_id, record.story_id)
        if owner is not None:
            field = f"question {question.question_id}.question_id"
            yield Problem(row.file, row.line, record.story_id, field, f"story {owner!r} has a question of this id.")


def _variant(row: Row, ledger: Ledger) -> Iterator[Problem]:
    record, findings = check_variant(row.value)
    yield from _report(row, str(row.value.get("base_story_id", "?")), findings)
    if record is None:
        return
    fresh = ledger.add(
        "variants",
        id=record.variant_id,
        story=record.base_story_id,
        file=row.file,
        line=row.line,
        type=record.narrative_type,
        moral=record.original_moral,
        digest=ledger.digest(record.contrastive_story_text.strip()),
    )
    if not fresh:
        message = f"the id {record.variant_id!r} was used before."
        yield Problem(row.file, row.line, record.base_story_id, "variant_id", message)


def _validation(row: Row, ledger: Ledger) -> Iterator[Problem]:
    record, findings = check_validation(row.value)
    yield from _report(row, str(row.value.get("story_id", "?")), findings)
    if record is None:
        return
    fresh = ledger.add(
        "validations",
        story=record.story_id,
        file=row.file,
        line=row.line,
        moral=record.final_moral_label,
        resolution=record.resolution,
    )
    if not fresh:
        yield Problem(row.file, row.line, record.story_id, "story_id", "the id was used before in this file.")


_READERS: Mapping[str, Callable[[Row, Ledger], Iterator[Problem]]] = {"variants": _variant, "validation": _validation}
