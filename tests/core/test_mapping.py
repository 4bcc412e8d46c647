"""Records as people ship them: one file for each way in which they deviate from the released form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.drawing import plan_story
from katha.errors import InputFileError, KathaError, RecordError, UsageError
from katha.mapping import READ_AS, RecordMapping, assumptions
from katha.schema import StoryRecord
from katha.stories import iter_records, load_stories

SHIPPED = Path(__file__).parent.parent / "data" / "shipped"
LOST: dict[str, Any] = {
    "moral_unknown": {"moral_label": None},
    "null_fields": {"scenes": None, "transitions": None},
    "scenes_as_texts": {"scenes": None},
    "no_transitions": {"transitions": None},
    "transition_type_fourth": {"transitions": None},
}
"""What a file does not tell, and cannot come back: None where the field is compared elsewhere."""


def told(record: StoryRecord) -> dict[str, Any]:
    kept = record.model_dump(mode="json", exclude={"provenance", "evidence_status", "validation_status"})
    return {key: value for key, value in kept.items() if not key.endswith("_as_shipped")}


UNREAD = ("moral_unknown", "no_transitions", "transition_type_fourth")
"""What is not known at all: refused where a story is loaded, left out and told by `bench convert`."""


def one(name: str, mapping: RecordMapping | None = None) -> StoryRecord:
    path = SHIPPED / f"{name}.jsonl"
    if name not in UNREAD:
        (record,) = iter_records(path, mapping)
        return record
    value, _ = RecordMapping().canonical(json.loads(path.read_text("utf-8")), "kite_1")
    return StoryRecord.model_validate(value)


def test_a_released_record_is_left_as_it_is() -> None:
    record = one("released")
    assert READ_AS not in record.provenance
    assert assumptions([record]) == []


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in SHIPPED.glob("*.jsonl") if path.stem not in ("released", "demo_stories"))
)
def test_each_deviation_is_read_and_told(name: str) -> None:
    record, released = one(name), one("released")
    sentences = record.provenance[READ_AS]
    assert sentences
    assert assumptions([record, released])[0].endswith("(1 of 2 records).")
    lost = LOST.get(name, {})
    found, wanted = told(record), told(released)
    for key, value in lost.items():
        if value is None and key != "moral_label":
            found.pop(key)
            wanted.pop(key)
        else:
            wanted[key] = value
    # Scene texts are the story's own sentences here, so a text made of them is the same text.
    assert found == wanted
    assert len(record.recoverability_questions) == 3


def test_what_is_lost_has_a_neutral_value() -> None:
    assert one("transition_type_fourth").transitions[0].transition_type is None
    assert one("no_transitions").transitions[1].pair == (2, 3)
    assert one("null_fields").scenes[0].objects == []
    assert one("scenes_as_texts").scenes[0].scene_text == "Ana flies a kite."
    assert (one("moral_unknown").model_extra or {})["moral_label_as_shipped"] == "sour_grapes_rationalization"


@pytest.mark.parametrize("name", UNREAD)
def test_what_nobody_can_read_is_refused_where_a_story_is_loaded(name: str) -> None:
    with pytest.raises(RecordError, match="kite"):
        list(iter_records(SHIPPED / f"{name}.jsonl"))


def test_a_mapping_of_ones_own_comes_first(tmp_path: Path) -> None:
    record = one("demo_stories", RecordMapping(SHIPPED / "demo_mapping.yaml"))
    assert (record.story_id, record.moral_label) == ("demo_grapes", "humility")
    plain = one("demo_stories")  # nobody is asked about a moral in its authors' own words
    assert (plain.moral_label, bool((plain.model_extra or {})["moral_label_as_shipped"])) == (None, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("keys: [1]", "field 'keys'"),
        ("keys: {story: {a: b}}", "keys.story.a"),
        ("other: 1", "other"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_mapping_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputFileError, match=said.replace(".", r"\.")):
        RecordMapping(path)


def test_convert_keeps_the_others_and_counts(tmp_path: Path) -> None:
    shipped = tmp_path / "release.jsonl"
    lines = [(SHIPPED / f"{name}.jsonl").read_text("utf-8") for name in ("released", "scenes_from_zero")]
    renamed = json.loads(lines[1]) | {"story_id": "kite2"}
    shipped.write_text("".join([lines[0], json.dumps(renamed) + "\n", "junk\n", lines[0]]), encoding="utf-8")
    out = tmp_path / "canonical.jsonl"
    result = CliRunner().invoke(app, ["bench", "convert", str(shipped), "--out", str(out), "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["records"], found["questions"], len(found["problems"])) == (2, 6, 2)
    assert found["assumed"] == {"scenes are numbered from 0; they are read from 1": 1}
    first, second = load_stories(out)
    assert first.story_id == "kite"
    assert [scene.scene_index for scene in second.scenes] == [1, 2, 3]


def test_convert_never_writes_over_its_input(tmp_path: Path) -> None:
    shipped = tmp_path / "release.jsonl"
    text = (SHIPPED / "released.jsonl").read_text("utf-8")
    shipped.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["bench", "convert", str(shipped), "--out", str(shipped)])
    assert isinstance(result.exception, UsageError)
    assert shipped.read_text("utf-8") == text


def test_convert_reads_the_demo_with_its_mapping(tmp_path: Path) -> None:
    command = ["bench", "convert", str(SHIPPED / "demo_stories.jsonl"), "--out", str(tmp_path / "c.jsonl")]
    result = CliRunner().invoke(app, [*command, "--mapping", str(SHIPPED / "demo_mapping.yaml")])
    assert result.exit_code == 0, result.output
    assert "1 stories have no question, the first 'demo_grapes'." in result.output


def test_stories_are_planned_and_scored_by_a_mapping_without_converting(tmp_path: Path) -> None:
    mapping = SHIPPED / "demo_mapping.yaml"
    plan = plan_story(SHIPPED / "demo_stories.jsonl", panels=3, mapping=mapping)
    assert (plan.story_id, len(plan.panels)) == ("demo_grapes", 3)
    theirs = json.loads((SHIPPED / "released.jsonl").read_text("utf-8"))
    theirs["ask"] = theirs.pop("recoverability_questions")
    for item in theirs["ask"]:
        item["reply"] = item.pop("gold_answer")
    (tmp_path / "theirs.jsonl").write_text(json.dumps(theirs), encoding="utf-8")
    own = tmp_path / "own.yaml"
    own.write_text("keys: {story: {recoverability_questions: [ask]}, recoverability_questions: {gold_answer: [reply]}}")
    rows = [
        {"method": "m", "judge": "j", "story_id": "kite", "question_id": item["question_id"], "condition": condition}
        | {"status": "ok", "answer": item["reply"]}
        for item in theirs["ask"]
        for condition in ("text", "image", "text+image")
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["score", str(tmp_path / "theirs.jsonl"), "--answers", str(tmp_path / "answers.jsonl"), "--resamples", "0"]
    words += ["--questions", "all", "--out", str(tmp_path / "scores.json")]
    assert CliRunner().invoke(app, [*words, "--mapping", str(own)]).exit_code == 0
    found = json.loads((tmp_path / "scores.json").read_text())["methods"]["m"]["judges"]["j"]
    assert (found["raw"]["n"], found["raw"]["image"]) == (len(theirs["ask"]), 100.0)
    assert isinstance(CliRunner().invoke(app, words).exception, KathaError)
