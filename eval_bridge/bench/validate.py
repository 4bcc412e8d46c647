"""Check a release: every line, every link between files, and the published counts. Nothing stops at the first."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from pydantic import ValidationError

from katha.configs import load_config
from katha.eval_bridge.bench.companions import check_companions
from katha.eval_bridge.bench.files import (
    GOLD_TIERS,
    MORALS,
    NARRATIVE_TYPES,
    QUESTIONS,
    RESOLUTIONS,
    SCENES,
    SOURCES,
    SPLITS,
    STORIES,
    TRANSITION_TYPES,
    VALIDATION_STATUSES,
    VARIANTS_PER_STORY,
    FileProblem,
    JsonLine,
    Kind,
    ReleaseFile,
    expected_type,
    find_files,
    split_name,
    split_stories,
    stream,
)
from katha.eval_bridge.questions.choices import leaking
from katha.jsonio import sha256_hex
from katha.mapping import RecordMapping
from katha.schema import CONDITIONS, ContrastiveVariant, Question, Record, StoryRecord
from katha.stories import record_problems

# What is wrong with one record, all of it: stories (Tables 7, 8, 13), variants (Table 15), validations (Table 16).

Finding = tuple[str, str]
"""The field, and what is wrong with it."""

_RULES = load_config("release.yaml")
_FIELD = re.compile(r"field '([^']+)'")
_QUESTION_KEYS = ("recoverability_questions", "questions", "qa_pairs", "recoverability_qa")
# The paper's release has three reviewers a story (Table 23).
_REVIEWERS = 3
_RELEASED = "kb25k_"


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


def _path(parts: tuple[int | str, ...]) -> str:
    """`scenes[2].scene_text`, counted from 0 as JSON is."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def _one_of(field: str, value: Any, allowed: Iterable[str]) -> Iterator[Finding]:
    if value not in tuple(allowed):
        yield field, f"it is {value!r}; it must be one of {', '.join(allowed)}."


def _lacking(value: Mapping[str, Any], kind: str, prefix: str = "") -> Iterator[Finding]:
    """The fields that a record of this kind must have and does not."""
    for field in _RULES["fields"][kind]["texts"]:
        if not str(value.get(field) or "").strip():
            yield f"{prefix}{field}", "it is empty." if field in value else "it is missing."
    for field in _RULES["fields"][kind].get("present", ()):
        if field not in value:
            yield f"{prefix}{field}", "it is missing."


def is_released(record: StoryRecord) -> bool:
    """Return whether a record says, by id or source, that it is of the release; any other has rules of its own."""
    return record.story_id.startswith(_RELEASED) or "source_dataset" in record.provenance


def _story(record: StoryRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    for message in record_problems(record):
        found = _FIELD.search(message)
        yield found[1] if found else "", message
    for field, count, wanted in (
        ("scenes", len(record.scenes), SCENES),
        ("transitions", len(record.transitions), SCENES - 1),
    ):
        if count != wanted:
            yield field, f"there are {count}; a released story has {wanted}."
    if not record.recoverability_questions:
        yield "recoverability_questions", "there is no question."
    yield from _items(record.story_id, value)
    for question in record.recoverability_questions:
        for field, message in _question(question):
            yield f"question {question.question_id}.{field}", message
    leak = leaking(record.recoverability_questions)
    if leak is not None and leak.leaks:
        yield "recoverability_questions", f"the options leak: {leak.told()}."
    yield from _labels(record, value)
    if is_released(record):
        yield from _status(record)


def _items(story: str, value: Mapping[str, Any]) -> Iterator[Finding]:
    """Required fields of every scene, transition and question, and that they name their own story."""
    asked = next((name for name in _QUESTION_KEYS if name in value), _QUESTION_KEYS[0])
    for kind, key in (("scenes", "scenes"), ("transitions", "transitions"), (_QUESTION_KEYS[0], asked)):
        for at, item in enumerate(value.get(key) or ()):
            yield from _lacking(item, kind, f"{key}[{at}].")
            if item.get("story_id") not in (None, "", story):
                yield f"{key}[{at}].story_id", f"it is {item['story_id']!r}, which is another story."


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
    yield from _lacking(value, "stories")
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
            yield f"transitions[{at}].moral_target", f"{item.moral_target!r} is not a moral label."


def _status(record: StoryRecord) -> Iterator[Finding]:
    """Secs. A.7 and A.16."""
    origin, evidence = record.provenance, record.evidence_status
    rights, license_ = ("public_domain_or_rights_compatible",), ("CC-BY-4.0",)
    yield from _one_of("provenance.source_dataset", str(origin.get("source_dataset", "")).casefold(), SOURCES)
    yield from _one_of("provenance.source_rights_status", origin.get("source_rights_status"), rights)
    yield from _one_of("provenance.dataset_license", origin.get("dataset_license"), license_)
    yield from _one_of("validation_status", record.validation_status, VALIDATION_STATUSES)
    yield from _one_of("evidence_status.resolution", evidence.get("resolution"), RESOLUTIONS)
    if not isinstance(evidence.get("human_evidence_accepted"), bool):
        yield "evidence_status.human_evidence_accepted", "it must be true or false."


def _variant(record: ContrastiveVariant, value: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _lacking(value, "variants")
    yield from _one_of("narrative_type", record.narrative_type, NARRATIVE_TYPES)
    if record.changed_scene_id not in range(1, SCENES + 1):
        yield "changed_scene_id", f"it is {record.changed_scene_id}; it must be 1 to {SCENES}."
    for field in ("original_moral", "contrastive_moral"):
        if getattr(record, field) is not None:
            yield from _one_of(field, getattr(record, field), MORALS)
    if "has_variant" not in value:
        yield "has_variant", "it is missing."


def _validation(record: ValidationRecord, value: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _lacking(value, "validation")
    yield from _one_of("decision", record.decision, ("accepted",))
    yield from _one_of("validation_status", record.validation_status, VALIDATION_STATUSES)
    yield from _one_of("resolution", record.resolution, RESOLUTIONS)
    yield from _one_of("final_moral_label", record.final_moral_label, MORALS)
    if not record.protocol_complete:
        yield "protocol_complete", "it is false; every released record has completed the protocol."
    reviewers = {name.strip() for name in record.annotator_ids} - {""}
    if len(reviewers) != _REVIEWERS:
        yield "annotator_ids", f"it names {len(reviewers)} reviewers, not {_REVIEWERS}."
    if (record.resolution == "human_adjudicated") != bool(record.adjudicator_id):
        yield "adjudicator_id", f"it is {record.adjudicator_id!r} where resolution is {record.resolution}."
    try:
        datetime.fromisoformat(record.signed_at)
    except ValueError:
        yield "signed_at", f"{record.signed_at!r} is not ISO 8601 time."


_CHECKS: Mapping[str, tuple[type[Record], Callable[[Any, Mapping[str, Any]], Iterator[Finding]]]] = {
    "variants": (ContrastiveVariant, _variant),
    "validation": (ValidationRecord, _validation),
}
"""The schema of a line by the kind of its file, and what the schema's types cannot tell; stories unless told."""


def check_record(kind: Kind, value: Mapping[str, Any]) -> tuple[Record | None, list[Finding]]:
    """Return the record, if it fits the schema's types, and everything that is wrong with it as a released record.

    What it says about the records of other files is checked elsewhere.
    """
    model, check = _CHECKS.get(kind, (StoryRecord, _story))
    try:
        record = model.model_validate(value)
    except ValidationError as error:
        found = [(_path(item["loc"]), f"{item['msg']}.") for item in error.errors()]
        return (_read_otherwise(value) if model is StoryRecord else None), found
    return record, list(check(record, value))


def _read_otherwise(value: Mapping[str, Any]) -> StoryRecord | None:
    """Return a story whose keys have other names than the released ones, as every verb reads it; None for no story."""
    try:
        return StoryRecord.model_validate(_mapping().canonical(value)[0])
    except ValidationError:
        return None


@cache
def _mapping() -> RecordMapping:
    return RecordMapping()


# What has to be remembered across lines: ids and links, in a temporary SQLite file, so that memory stays flat.

_SCHEMA = """
PRAGMA temp_store = FILE;
CREATE TABLE records (kind TEXT, key TEXT, story TEXT, link TEXT, file TEXT, line INTEGER, type TEXT, moral TEXT,
                      resolution TEXT, content TEXT, text TEXT, PRIMARY KEY (kind, key));
CREATE INDEX records_by_link ON records (kind, link);
"""
_JOINED = """
SELECT r.*, count(s.key) AS n FROM records r LEFT JOIN records s ON s.kind = :to AND s.{by} = r.link
WHERE r.kind = :of GROUP BY r.rowid HAVING {wrong} ORDER BY r.rowid
"""


class Ledger:
    """Remember records while streaming, then ask what does not fit together. SQLite spills to disk what is too much."""

    def __init__(self) -> None:
        self.db = sqlite3.connect("")
        self.db.row_factory = sqlite3.Row
        self.db.executescript(_SCHEMA)

    def add(self, kind: str, key: str, story: str, **columns: Any) -> str | None:
        """Remember a record; if one of its kind has the key, return whose it is. It links to its story unless told."""
        row = {"kind": kind, "key": key, "story": story, "link": story, **columns}
        sql = f"INSERT OR IGNORE INTO records ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        if self.db.execute(sql, tuple(row.values())).rowcount == 1:
            return None
        return str(next(self.db.execute("SELECT story FROM records WHERE kind = ? AND key = ?", (kind, key)))["story"])

    def broken_links(self, names: Mapping[str, str], *, full: bool) -> Iterator[FileProblem]:
        """Every link that is broken. `names` maps the kinds of files that are there to their names.

        `full`: every story must have its variants and validation.
        """
        for rule in _RULES["links"]:
            if rule["to"] not in names or (rule.get("full") and not full):
                continue
            sql = _JOINED.format(by=rule.get("by", "key"), wrong=rule["wrong"])
            known = {"of": rule["of"], "to": rule["to"], "full": full, "variants": VARIANTS_PER_STORY}
            for row in self.db.execute(sql, known):
                message = rule["message"].format(**row, variants=VARIANTS_PER_STORY, others=names[rule["to"]])
                file, line = (names[rule["at"]], None) if "at" in rule else (row["file"], row["line"])
                yield FileProblem(file, line, row["story"], rule["field"], message)


def _digest(text: str) -> str:
    """A short digest, so that texts can be compared without being kept."""
    return sha256_hex(text.encode("utf-8"))[:32]


# Counting a release while it streams by: the numbers of Tables 5, 6, 9 to 14, 20, 24, 47 and 48.

_TRANSITION_FIELDS = ("action", "causality", "intention", "emotion", "consequence", "expected_change", "moral_target")
_TOTALS = ("stories", "scenes", "transitions", "questions")
_DISTRIBUTIONS: tuple[tuple[str, str, Mapping[str, int]], ...] = (
    ("narrative_type", "Table 6", NARRATIVE_TYPES),
    ("transition_type", "Table 9", TRANSITION_TYPES),
    ("moral_label", "Table 12", MORALS),
    ("question_type", "Table 14", QUESTIONS),
    ("source_dataset", "Table 24", SOURCES),
)
_HALVES = ("public_test", "hidden_test")


class Census:
    """Counts of the stories of one file: its size does not depend on how many there are.

    totals: stories, scenes, transitions and questions. by: counts of values by the field that holds them; under
    `fields` the transitions' fields that say something, under `asked` the questions by split.
    """

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.by: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, record: StoryRecord) -> None:
        """Count one story."""
        steps, questions = record.transitions, record.recoverability_questions
        split = split_name(record.split or "") or ""
        sizes = (1, len(record.scenes), len(steps), len(questions))
        self.totals.update(dict(zip(_TOTALS, sizes, strict=True)))
        self.by["narrative_type"][record.narrative_type or ""] += 1
        self.by["moral_label"][record.moral_label or ""] += 1
        self.by["source_dataset"][str(record.provenance.get("source_dataset", "")).casefold()] += 1
        self.by["transition_type"].update(step.transition_type or "" for step in steps)
        self.by["question_type"].update(question.question_type for question in questions)
        filled = ((field, str(getattr(step, field) or "").strip()) for step in steps for field in _TRANSITION_FIELDS)
        self.by["fields"].update(field for field, text in filled if text)
        self.by["split"][split] += 1
        self.by["asked"][split] += len(questions)

    def add_reference(self, value: Mapping[str, Any]) -> None:
        """Count one story that a gold subset names without repeating it."""
        self.totals["stories"] += 1
        kind = value.get("narrative_type") or expected_type(str(value.get("story_id", "")))
        self.by["narrative_type"][str(kind or "")] += 1
        self.by["split"][""] += 1

    @property
    def complete(self) -> bool:
        """Return whether there are as many stories as in the full release."""
        return self.totals["stories"] == STORIES

    def deviations(self) -> list[Finding]:
        """Return where the counts are not those of the full release: the field, and a sentence."""
        steps, splits = (SCENES - 1) * STORIES, self.by["split"]
        rows = [
            (field, counts[value], expected.get(value, 0), f"{value!r} occurs {{:,}} times; {table} has {{:,}}.")
            for field, table, expected in _DISTRIBUTIONS
            for counts in [self.by[field]]
            for value in {**expected, **counts}
        ]
        for name, wanted in (("scenes", SCENES * STORIES), ("transitions", steps)):
            rows.append((name, self.totals[name], wanted, "there are {:,}; Table 5 has {:,}."))
        for field in _TRANSITION_FIELDS:
            wanted = STORIES if field == "moral_target" else steps
            rows.append((field, self.by["fields"][field], wanted, "{:,} transitions have it; Table 10 has {:,}."))
        for name in SPLITS if any(splits[half] for half in _HALVES) else ("train", "validation", "test"):
            rows.append(
                ("split", splits[name], split_stories(name), f"{name} has {{:,}} stories; Sec. B.7 has {{:,}}.")
            )
        return _deviating(rows)

    def tier_deviations(self, tier: str) -> list[Finding]:
        """Return where a gold subset is not what Table 20 says."""
        wanted, types = GOLD_TIERS[tier], self.by["narrative_type"]
        rows = [("", self.totals["stories"], wanted.stories, "there are {:,} stories; Table 20 has {:,}.")]
        for name in NARRATIVE_TYPES:
            rows.append(
                ("narrative_type", types[name], wanted.per_type, f"{name} has {{}} stories; Table 20 has {{}}.")
            )
        return _deviating(rows)

    def title(self) -> str:
        """Say what these stories are: the full release, one of its splits, or a subset of it."""
        stories = self.totals["stories"]
        if self.complete:
            return f"the full benchmark: {stories:,} stories"
        parts = ", ".join(f"{count:,} {name or 'without a split'}" for name, count in self._splits().items())
        types = sum(1 for name in NARRATIVE_TYPES if self.by["narrative_type"][name])
        size = f"a subset of {stories:,} of the {STORIES:,} stories" if stories < STORIES else f"{stories:,} stories"
        return f"{size} ({parts}), {types} of {len(NARRATIVE_TYPES)} narrative types"

    def _splits(self) -> dict[str, int]:
        """Stories by split, in the order of the release; the splits that are not here are left out."""
        return {name: self.by["split"][name] for name in (*SPLITS, "test", "") if self.by["split"][name]}

    def tables(self) -> dict[str, dict[str, int]]:
        """The counts under the names of the released fields."""
        return {
            "components": {name: self.totals[name] for name in _TOTALS},
            **{
                field: {value: self.by[field][value] for value in {**expected, **self.by[field]}}
                for field, _, expected in _DISTRIBUTIONS
            },
            "transition_fields": {field: self.by["fields"][field] for field in _TRANSITION_FIELDS},
            "split": self._splits(),
        }

    def budgets(self) -> dict[str, dict[str, int]]:
        """Table 48 (splits that are here) and the whole: stories, panels, questions, and judge calls for one judge."""
        stories, asked = self.by["split"], self.by["asked"]
        rows = {name: (stories[name], asked[name]) for name in _HALVES if stories[name]}
        held = [name for name in (*_HALVES, "test") if stories[name]]
        if held:
            rows["held_out_test"] = (sum(stories[name] for name in held), sum(asked[name] for name in held))
        rows["all"] = (self.totals["stories"], self.totals["questions"])
        return {name: _budget(*row) for name, row in rows.items()}


def _deviating(rows: Iterable[tuple[str, int, int, str]]) -> list[Finding]:
    """The rows (field, count, published count, sentence) whose counts differ."""
    return [(field, sentence.format(count, wanted)) for field, count, wanted, sentence in rows if count != wanted]


def _budget(stories: int, questions: int) -> dict[str, int]:
    """Return what the paper's judging costs: a panel a scene, a call a question and condition (Tables 47 and 48)."""
    return {
        "stories": stories,
        "panels": SCENES * stories,
        "questions": questions,
        "judge_calls": len(CONDITIONS) * questions,
    }


# One pass over the files of a release.

_EXPECTED = {"variants": ("Table 5", VARIANTS_PER_STORY * STORIES), "validation": ("Sec. A.9", STORIES)}
_USED = "the id was used before in this file."


class Summary(TypedDict):
    """Rows by file, whether it is the full release, how many problems, and the tables, budgets and notes on it."""

    files: dict[str, int]
    complete: bool
    problems: int
    tables: dict[str, dict[str, int]]
    budgets: dict[str, dict[str, int]]
    notes: list[str]


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
        self.folder = path if path.is_dir() else None
        self.complete = complete
        self.censuses: dict[str, Census] = {}
        self.rows: dict[str, int] = {}
        self.found = 0

    def problems(self) -> Iterator[FileProblem]:
        """Every problem, file by file, then between files, then of the counts.

        Raises:
            InputFileError: a file cannot be read.
        """
        ledger = Ledger()
        with closing(ledger.db):
            for problem in self._all(ledger):
                self.found += 1
                yield problem

    def _all(self, ledger: Ledger) -> Iterator[FileProblem]:
        for file in self.files:
            self.rows[file.kind] = 0
            if file.kind not in _CHECKS:
                self.censuses[file.kind] = Census()
            for row in stream(file.path):
                if isinstance(row, FileProblem):
                    yield row
                    continue
                self.rows[file.kind] += 1
                for story, field, message in self._row(row, file.kind, ledger):
                    yield FileProblem(row.file, row.line, story, field, message)
            if not self.rows[file.kind]:
                yield FileProblem(file.path.name, None, "", "", "the file holds no record.")
        names: dict[str, str] = {file.kind: file.path.name for file in self.files}
        if self.folder is not None:
            yield from check_companions(self.folder, self.summary()["tables"])
        yield from ledger.broken_links(names, full=self._full())
        for file in self.files:
            for field, message in self._wrong_counts(file.kind):
                yield FileProblem(file.path.name, None, "", field, message)

    def _row(self, row: JsonLine, kind: Kind, ledger: Ledger) -> Iterator[tuple[str, str, str]]:
        """Check and remember one line: what is wrong with it, as story, field and sentence."""
        place = {"file": row.file, "line": row.line}
        if kind in GOLD_TIERS and set(row.value) <= {"story_id", "narrative_type", "moral_label"}:
            yield from _reference(row.value, kind, ledger, place)
            self.censuses[kind].add_reference(row.value)
            return
        record, findings = check_record(kind, row.value)
        story = str(row.value.get("base_story_id" if kind == "variants" else "story_id", "?"))
        yield from ((story, field, message) for field, message in findings)
        if isinstance(record, StoryRecord):
            self.censuses[kind].add(record)
            yield from _remember_story(record, kind, ledger, place)
        elif isinstance(record, ContrastiveVariant):
            known = {"type": record.narrative_type, "moral": record.original_moral}
            text = _digest(record.contrastive_story_text.strip())
            if ledger.add(kind, record.variant_id, record.base_story_id, **place, **known, text=text) is not None:
                yield record.base_story_id, "variant_id", f"the id {record.variant_id!r} was used before."
        elif isinstance(record, ValidationRecord):
            known = {"moral": record.final_moral_label, "resolution": record.resolution}
            if ledger.add(kind, record.story_id, record.story_id, **place, **known) is not None:
                yield record.story_id, "story_id", _USED

    def _full(self) -> bool:
        return "stories" in self.censuses and (self.complete or self.censuses["stories"].totals["stories"] >= STORIES)

    def _wrong_counts(self, kind: Kind) -> list[Finding]:
        census = self.censuses.get(kind)
        if kind in GOLD_TIERS and census is not None and census.totals["stories"]:
            return census.tier_deviations(kind)
        if kind == "stories" and self._full() and census is not None:
            return census.deviations()
        if kind in _EXPECTED and self._full():
            table, wanted = _EXPECTED[kind]
            return _deviating([("", self.rows[kind], wanted, f"there are {{:,}} records; {table} has {{:,}}.")])
        return []

    def summary(self) -> Summary:
        """Return what was read and counted."""
        main = next((self.censuses[file.kind] for file in self.files if file.kind in self.censuses), None)
        tables = main.tables() if main is not None else {}
        if tables:
            tables["components"]["contrastive_variants"] = self.rows.get("variants", 0)
        budgets = main.budgets() if main is not None else {}
        for name in GOLD_TIERS:
            if name in self.censuses and name not in budgets and self.censuses[name].totals["questions"]:
                totals = self.censuses[name].totals
                budgets[name] = _budget(totals["stories"], totals["questions"])
        return {
            "files": {file.path.name: self.rows[file.kind] for file in self.files},
            "complete": main is not None and main.complete,
            "problems": self.found,
            "tables": tables,
            "budgets": budgets,
            "notes": [f"{file.path.name}: {self._title(file)}." for file in self.files],
        }

    def _title(self, file: ReleaseFile) -> str:
        if file.kind in self.censuses:
            return self.censuses[file.kind].title()
        return f"{self.rows[file.kind]:,} {'contrastive variants' if file.kind == 'variants' else 'validation records'}"


def _reference(
    value: Mapping[str, Any], kind: Kind, ledger: Ledger, place: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Remember a story that a gold subset names instead of repeating it."""
    story = str(value.get("story_id") or "").strip()
    if not story:
        yield "?", "story_id", "it is missing or empty."
    labels = {"type": value.get("narrative_type"), "moral": value.get("moral_label")}
    known = {name: None if label is None else str(label) for name, label in labels.items()}
    if ledger.add(kind, story, story, **place, **known) is not None:
        yield story, "story_id", _USED


def _remember_story(
    record: StoryRecord, kind: Kind, ledger: Ledger, place: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Remember a story, its questions (released ids are unique, Table 13) and the variants that it promises."""
    story, questions = record.story_id, record.recoverability_questions
    content = "\n".join([record.story_text, *(f"{item.question_id} {item.gold_answer}" for item in questions)])
    known = {"type": record.narrative_type, "moral": record.moral_label}
    known["resolution"] = str(record.evidence_status.get("resolution"))
    told = {"content": _digest(content), "text": _digest(record.story_text)}
    if ledger.add(kind, story, story, **place, **known, **told) is not None:
        yield story, "story_id", _USED
    for item in questions if is_released(record) else ():
        owner = ledger.add(f"questions of {kind}", item.question_id, story)
        if owner not in (None, story):
            yield story, f"question {item.question_id}.question_id", f"story {owner!r} has a question of this id."
    promised = record.provenance.get("contrastive_variant_ids") if kind == "stories" else None
    for at, name in enumerate(promised if isinstance(promised, list) else ()):
        ledger.add("promised", f"{place['line']} {at}", story, link=str(name), **place)
