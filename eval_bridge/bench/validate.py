"""Check a release: every line, every link between files, and the published counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from katha.eval_bridge.bench.files import (
    GOLD_TIERS,
    MORALS,
    NARRATIVE_TYPES,
    RESOLUTIONS,
    SCENES,
    SOURCES,
    STORIES,
    TRANSITION_TYPES,
    VALIDATION_STATUSES,
    VARIANTS_PER_STORY,
    Kind,
    Ledger,
    Problem,
    ReleaseFile,
    Row,
    expected_type,
    find_files,
    split_name,
    stream,
)
from katha.eval_bridge.bench.stats import Census, budget
from katha.schema import ContrastiveVariant, Question, Record, StoryRecord
from katha.stories import record_problems

# What is wrong with one record, all of it: stories (Tables 7, 8, 13), variants (Table 15), validations (Table 16).

Finding = tuple[str, str]
"""The field, and what is wrong with it."""

_FIELD = re.compile(r"field '([^']+)'")
_QUESTIONS = "recoverability_questions"
_QUESTION_KEYS = (_QUESTIONS, "questions", "qa_pairs", "recoverability_qa")
_TEXTS = {
    "scenes": ("scene_text",),
    "transitions": ("transition_type",),
    _QUESTIONS: ("question_id", "question_type", "question", "gold_answer"),
}
"""What must be there and say something."""
_PRESENT = {
    "scenes": ("characters", "objects", "action", "state", "visual_must_show", "generation_prompt"),
    "transitions": ("action", "causality", "consequence", "expected_change", "recoverability_target"),
    _QUESTIONS: ("accepted_answers", "evidence_scenes", "required_evidence", "answerability"),
}
"""What must be there and may be empty; everything else of Tables 7, 8 and 13 is optional."""
_VARIANT_TEXTS = (
    *("variant_id", "base_story_id", "variant_kind", "subset", "narrative_type", "pair_id", "change_type"),
    *("semantic_delta", "contrastive_scene_text", "contrastive_story_text"),
)
_VALIDATION_TEXTS = (
    *("story_id", "decision", "validation_status", "evidence_source", "resolution"),
    *("final_moral_label", "signed_at"),
)
_REVIEWERS = 3
_RELEASED = "kb25k_"
Model = TypeVar("Model", bound=BaseModel)


class ValidationRecord(Record):
    """A line of `human_validation.jsonl` (Table 16)."""

    story_id: str
    decision: str
    validation_status: str
    evidence_source: str
    protocol_complete: bool
    annotator_ids: list[str]
    adjudicator_id: str | None = None
    resolution: str
    final_moral_label: str
    correction_flags: list[str]
    signed_at: str


def check_story(value: Mapping[str, Any]) -> tuple[StoryRecord | None, list[Finding]]:
    """The record, if it fits the schema's types, and everything that is wrong with it as a released record."""
    record, findings = _typed(StoryRecord, value)
    if record is None:
        return None, findings
    for message in record_problems(record):
        found = _FIELD.search(message)
        findings.append((found[1] if found else "", message))
    for check in _STORY_CHECKS:
        findings += check(record, value)
    return record, findings


def check_variant(value: Mapping[str, Any]) -> tuple[ContrastiveVariant | None, list[Finding]]:
    """The same for a contrastive variant on its own; what it says about its story is checked elsewhere."""
    record, findings = _typed(ContrastiveVariant, value)
    if record is None:
        return None, findings
    findings += _missing_texts(value, _VARIANT_TEXTS, "")
    findings += _one_of("narrative_type", record.narrative_type, NARRATIVE_TYPES)
    if record.changed_scene_id not in range(1, SCENES + 1):
        findings.append(("changed_scene_id", f"it is {record.changed_scene_id}; it must be 1 to {SCENES}."))
    for field in ("original_moral", "contrastive_moral"):
        label = getattr(record, field)
        findings += _one_of(field, label, MORALS) if label is not None else []
    if "has_variant" not in value:
        findings.append(("has_variant", "it is missing."))
    return record, findings


def check_validation(value: Mapping[str, Any]) -> tuple[ValidationRecord | None, list[Finding]]:
    """The same for a validation record."""
    record, findings = _typed(ValidationRecord, value)
    if record is None:
        return None, findings
    findings += _missing_texts(value, _VALIDATION_TEXTS, "")
    findings += _one_of("decision", record.decision, ("accepted",))
    findings += _one_of("validation_status", record.validation_status, VALIDATION_STATUSES)
    findings += _one_of("resolution", record.resolution, RESOLUTIONS)
    findings += _one_of("final_moral_label", record.final_moral_label, MORALS)
    if not record.protocol_complete:
        findings.append(("protocol_complete", "it is false; every released record has completed the protocol."))
    reviewers = {name.strip() for name in record.annotator_ids} - {""}
    if len(reviewers) != _REVIEWERS:
        findings.append(("annotator_ids", f"it names {len(reviewers)} reviewers, not {_REVIEWERS}."))
    if (record.resolution == "human_adjudicated") != bool(record.adjudicator_id):
        findings.append(("adjudicator_id", f"it is {record.adjudicator_id!r} where resolution is {record.resolution}."))
    try:
        datetime.fromisoformat(record.signed_at)
    except ValueError:
        findings.append(("signed_at", f"{record.signed_at!r} is no ISO 8601 time."))
    return record, findings


def _typed(model: type[Model], value: Mapping[str, Any]) -> tuple[Model | None, list[Finding]]:
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, [(_path(item["loc"]), f"{item['msg']}.") for item in error.errors()]


def _path(parts: tuple[int | str, ...]) -> str:
    """`scenes[2].scene_text`, counted from 0 as JSON is."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def _one_of(field: str, value: Any, allowed: Any) -> list[Finding]:
    return [] if value in allowed else [(field, f"it is {value!r}; it must be one of {', '.join(allowed)}.")]


def _missing_texts(value: Mapping[str, Any], fields: tuple[str, ...], prefix: str) -> Iterator[Finding]:
    for field in fields:
        if not str(value.get(field) or "").strip():
            yield f"{prefix}{field}", "it is empty." if field in value else "it is missing."


def _counts(record: StoryRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    for field, items, wanted in (
        ("scenes", record.scenes, SCENES),
        ("transitions", record.transitions, SCENES - 1),
    ):
        if len(items) != wanted:
            yield field, f"there are {len(items)}; a released story has {wanted}."
    if not record.recoverability_questions:
        yield "recoverability_questions", "there is no question."


def _items(record: StoryRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    """Required texts and lists of every scene, transition and question, and that they name their own story."""
    for group, texts in _TEXTS.items():
        key = next((name for name in _QUESTION_KEYS if name in value), group) if group == _QUESTIONS else group
        for at, item in enumerate(value.get(key) or ()):
            prefix = f"{key}[{at}]."
            yield from _missing_texts(item, texts, prefix)
            yield from ((f"{prefix}{field}", "it is missing.") for field in _PRESENT[group] if field not in item)
            if item.get("story_id") not in (None, "", record.story_id):
                yield f"{prefix}story_id", f"it is {item['story_id']!r}, which is another story."


def _questions(record: StoryRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    for question in record.recoverability_questions:
        for field, message in _question(question):
            yield f"question {question.question_id}.{field}", message


def _question(question: Question) -> Iterator[Finding]:
    if not question.accepted_answers:
        yield "accepted_answers", "the accepted set is empty."
    if any(not answer.strip() for answer in question.accepted_answers):
        yield "accepted_answers", "the accepted set holds a blank answer."
    for field, scenes in (("target_scene", [question.target_scene]), ("evidence_scenes", question.evidence_scenes)):
        for scene in scenes:
            if scene is not None and not 1 <= scene <= SCENES:
                yield field, f"it names scene {scene}; scenes are 1 to {SCENES}."


def _labels(record: StoryRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _missing_texts(value, ("title",), "")
    yield from _one_of("narrative_type", record.narrative_type, NARRATIVE_TYPES)
    meant = expected_type(record.story_id)
    if meant is not None and record.narrative_type in NARRATIVE_TYPES and meant != record.narrative_type:
        yield "narrative_type", f"it is {record.narrative_type!r}; identifiers of this range are {meant!r}."
    if record.moral_label is None:
        yield "moral_label", "it is missing."
    if record.split is None or split_name(record.split) is None:
        yield "split", f"it is {record.split!r}; it must be train, validation, public_test, hidden_test or test."
    for at, item in enumerate(record.transitions):
        if item.moral_target is not None and item.moral_target not in MORALS:
            yield f"transitions[{at}].moral_target", f"{item.moral_target!r} is no moral label."
        if item.transition_type not in TRANSITION_TYPES:
            yield f"transitions[{at}].transition_type", f"{item.transition_type!r} is no transition type."


def is_released(record: StoryRecord) -> bool:
    """Whether a record says that it is of the release, by its id or its source; any other file has rules of its own."""
    return record.story_id.startswith(_RELEASED) or "source_dataset" in record.provenance


def _status(record: StoryRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    """Secs. A.7 and A.16, for a record that is of the release; any other file may have its own provenance."""
    origin = record.provenance
    if not is_released(record):
        return
    source = str(origin.get("source_dataset", "")).casefold()
    yield from _one_of("provenance.source_dataset", source, SOURCES)
    for field, wanted in (
        ("source_rights_status", "public_domain_or_rights_compatible"),
        ("dataset_license", "CC-BY-4.0"),
    ):
        yield from _one_of(f"provenance.{field}", origin.get(field), (wanted,))
    yield from _one_of("validation_status", record.validation_status, VALIDATION_STATUSES)
    yield from _one_of("evidence_status.resolution", record.evidence_status.get("resolution"), RESOLUTIONS)
    if record.evidence_status.get("human_evidence_accepted") is not True:
        yield "evidence_status.human_evidence_accepted", "it must be true."


_STORY_CHECKS: tuple[Callable[[StoryRecord, Mapping[str, Any]], Iterator[Finding]], ...] = (
    _counts,
    _items,
    _questions,
    _labels,
    _status,
)


# What does not fit together between the files of a release: variants, validations and gold subsets against stories.

_STORY = "(SELECT * FROM stories WHERE file = 'stories')"
_VARIANTS: tuple[tuple[str, str, str], ...] = (
    (
        f"SELECT v.file, v.line, v.story, v.id FROM variants v LEFT JOIN {_STORY} s USING (story)"
        " WHERE s.story IS NULL",
        "base_story_id",
        "variant {!r} belongs to a story that is not in the annotations.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.id FROM variants v JOIN {_STORY} s USING (story) WHERE v.type != s.type",
        "narrative_type",
        "variant {!r} has another narrative type than its story.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.id FROM variants v JOIN {_STORY} s USING (story) WHERE v.moral != s.moral",
        "original_moral",
        "variant {!r} has another original moral than its story's label.",
    ),
    (
        "SELECT v.file, v.line, v.story, v.id FROM variants v JOIN texts t USING (story) WHERE v.digest = t.digest",
        "contrastive_story_text",
        "variant {!r} has the text of its story unchanged.",
    ),
    (
        "SELECT p.file, p.line, p.story, p.id FROM promised p LEFT JOIN variants v ON v.id = p.id AND v.story = p.story"
        " WHERE v.id IS NULL",
        "provenance.contrastive_variant_ids",
        "variant {!r} is not in the variants file, or belongs to another story.",
    ),
)
_VALIDATIONS: tuple[tuple[str, str, str], ...] = (
    (
        f"SELECT v.file, v.line, v.story, v.moral FROM validations v LEFT JOIN {_STORY} s USING (story)"
        " WHERE s.story IS NULL",
        "story_id",
        "the story is not in the annotations.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.moral FROM validations v JOIN {_STORY} s USING (story)"
        " WHERE v.moral != s.moral",
        "final_moral_label",
        "it is {!r}, which is not the label of the story.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.resolution FROM validations v JOIN {_STORY} s USING (story)"
        " WHERE v.resolution != s.resolution",
        "resolution",
        "it is {!r}, which is not the story's evidence_status.resolution.",
    ),
)


def link_problems(ledger: Ledger, names: Mapping[str, str], *, full: bool) -> Iterator[Problem]:
    """Every link that is broken. `names` maps the kinds of files that are there to their names.

    Links to a file that is not there are not checked. `full`: every story must have its variants and validation.
    """
    has_stories = "stories" in names
    if has_stories and "variants" in names:
        yield from _asked(ledger, _VARIANTS)
        yield from _numbers(ledger, names["variants"], full=full)
    if has_stories and "validation" in names:
        yield from _asked(ledger, _VALIDATIONS)
        if full:
            yield from _unvalidated(ledger, names["validation"])
    for tier in GOLD_TIERS:
        if tier in names:
            yield from _gold(ledger, tier, names, has_stories=has_stories)


def _asked(ledger: Ledger, questions: tuple[tuple[str, str, str], ...]) -> Iterator[Problem]:
    for sql, field, message in questions:
        for file, line, story, detail in ledger.ask(sql):
            yield Problem(file, line, story, field, message.format(detail))


def _numbers(ledger: Ledger, name: str, *, full: bool) -> Iterator[Problem]:
    """Two variants a story (Table 5): never more, and in the full release never fewer."""
    sql = (
        f"SELECT s.story, count(v.id) AS n FROM {_STORY} s LEFT JOIN variants v USING (story)"
        f" GROUP BY s.story HAVING n > ? OR (? AND n < ?)"
    )
    for story, count in ledger.ask(sql, VARIANTS_PER_STORY, full, VARIANTS_PER_STORY):
        yield Problem(name, None, story, "base_story_id", f"it has {count} variants, not {VARIANTS_PER_STORY}.")


def _unvalidated(ledger: Ledger, name: str) -> Iterator[Problem]:
    sql = f"SELECT s.story FROM {_STORY} s LEFT JOIN validations v USING (story) WHERE v.story IS NULL"
    for (story,) in ledger.ask(sql):
        yield Problem(name, None, story, "story_id", "the story has no validation record.")


def _gold(ledger: Ledger, tier: str, names: Mapping[str, str], *, has_stories: bool) -> Iterator[Problem]:
    """A gold subset holds stories of the release as they are; the strict one is part of the other."""
    rows = f"(SELECT * FROM stories WHERE file = '{tier}')"
    checks: list[tuple[str, str, str]] = []
    if has_stories:
        checks = [
            (
                f"SELECT g.line, g.story FROM {rows} g LEFT JOIN {_STORY} s USING (story) WHERE s.story IS NULL",
                "story_id",
                "the story is not in the annotations.",
            ),
            (
                f"SELECT g.line, g.story FROM {rows} g JOIN {_STORY} s USING (story) WHERE g.digest != s.digest",
                "",
                "its text or questions are not those of the annotations.",
            ),
            *(
                (
                    f"SELECT g.line, g.story FROM {rows} g JOIN {_STORY} s USING (story)"
                    f" WHERE g.{column} != s.{column}",
                    field,
                    "it is not that of the annotations.",
                )
                for column, field in (("type", "narrative_type"), ("moral", "moral_label"))
            ),
        ]
    if tier == "strict_gold_400" and "human_gold_1k" in names:
        sql = (
            f"SELECT g.line, g.story FROM {rows} g LEFT JOIN (SELECT story AS h FROM stories WHERE file ="
            " 'human_gold_1k') ON h = g.story WHERE h IS NULL"
        )
        checks.append((sql, "story_id", f"the story is not in {names['human_gold_1k']}."))
    for sql, field, message in checks:
        for line, story in ledger.ask(sql):
            yield Problem(names[tier], line, story, field, message)


# Checking a release: every line, every link between files, and the published counts. Nothing stops at the first.

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
    if record is not None and not ledger.add(
        "variants",
        id=record.variant_id,
        story=record.base_story_id,
        file=row.file,
        line=row.line,
        type=record.narrative_type,
        moral=record.original_moral,
        digest=ledger.digest(record.contrastive_story_text.strip()),
    ):
        message = f"the id {record.variant_id!r} was used before."
        yield Problem(row.file, row.line, record.base_story_id, "variant_id", message)


def _validation(row: Row, ledger: Ledger) -> Iterator[Problem]:
    record, findings = check_validation(row.value)
    yield from _report(row, str(row.value.get("story_id", "?")), findings)
    if record is not None and not ledger.add(
        "validations",
        story=record.story_id,
        file=row.file,
        line=row.line,
        moral=record.final_moral_label,
        resolution=record.resolution,
    ):
        yield Problem(row.file, row.line, record.story_id, "story_id", "the id was used before in this file.")


_READERS: Mapping[str, Callable[[Row, Ledger], Iterator[Problem]]] = {"variants": _variant, "validation": _validation}
