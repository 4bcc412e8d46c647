"""What is wrong with one record, all of it: stories (Tables 7, 8, 13), variants (Table 15), validations (Table 16)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from katha.eval_bridge.bench.reference import (
    MORALS,
    NARRATIVE_TYPES,
    RESOLUTIONS,
    SCENES,
    SOURCES,
    TRANSITION_TYPES,
    VALIDATION_STATUSES,
    expected_type,
    split_name,
)
from katha.schema import ContrastiveVariant, Question, Record, StoryRecord
from katha.stories import record_problems

__all__ = ["Finding", "ValidationRecord", "check_story", "check_validation", "check_variant", "is_released"]

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
