"""`katha bench validate` and `stats` on a synthetic release of KathaBench-25K's shape, whole and damaged."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.synthetic import stories, write_release
from katha.app.cli.main import app
from katha.errors import InputFileError
from katha.eval_bridge.bench.files import expected_type, split_name
from katha.eval_bridge.bench.validate import Census, Inspection
from katha.schema import StoryRecord

Record = dict[str, Any]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("release"))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_release(tmp_path / "small", 3)


def problems(path: Path, **options: bool) -> list[tuple[int | None, str, str, str]]:
    return [(item.line, item.story, item.field, item.message) for item in Inspection(path, **options).problems()]


def change(path: Path, line: int, edit: Callable[[Record], None]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[line - 1])
    edit(record)
    lines[line - 1] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_whole_release_has_no_problem_and_the_published_counts(release: Path) -> None:
    inspection = Inspection(release)
    assert [str(item) for item in inspection.problems()] == []
    summary = inspection.summary()
    assert summary["complete"]
    tables = summary["tables"]
    assert tables["components"] == {
        "stories": 5000,
        "scenes": 25000,
        "transitions": 20000,
        "questions": 28712,
        "contrastive_variants": 10000,
    }
    assert tables["question_type"] == {
        "causal": 6325,
        "emotional": 6237,
        "moral": 5000,
        "consequence": 5000,
        "temporal_order": 5000,
        "action_visibility": 1150,
    }
    assert tables["transition_type"] == {"cause_effect": 10000, "moral_choice": 5000, "consequence_reveal": 5000}
    assert tables["split"] == {"train": 3500, "validation": 750, "public_test": 500, "hidden_test": 250}
    assert sorted(tables["source_dataset"].values()) == [1622, 1676, 1702]
    calls = {name: tuple(row.values()) for name, row in summary["budgets"].items()}
    assert calls == {
        "public_test": (500, 2500, 2871, 8613),
        "hidden_test": (250, 1250, 1436, 4308),
        "held_out_test": (750, 3750, 4307, 12921),
        "human_gold_1k": (1000, 5000, 5742, 17226),
        "strict_gold_400": (400, 2000, 2297, 6891),
        "all": (5000, 25000, 28712, 86136),
    }


def test_counts_that_are_not_the_published_ones_are_named() -> None:
    census = Census()
    for number, value in enumerate(stories()):
        if number == 7:
            value |= {"moral_label": "wisdom", "narrative_type": "hidden_consequence", "split": "test"}
            value["recoverability_questions"].pop()
        census.add(StoryRecord.model_validate(value))
    found = census.deviations()
    named = {(field, message.split()[0]) for field, message in found}
    assert {("narrative_type", "'moral_semantic'"), ("moral_label", "'wisdom'"), ("split", "train")} <= named
    assert any(field == "question_type" and "Table 14" in message for field, message in found)


def test_subset_says_what_it_is_and_is_fine(small: Path) -> None:
    inspection = Inspection(small)
    assert list(inspection.problems()) == []
    summary = inspection.summary()
    assert not summary["complete"]
    assert "a subset of 3 of the 5,000 stories" in summary["notes"][0]
    assert any("Table 6" in message for *_, message in problems(small, complete=True))


def set_path(*path: str | int, value: Any) -> Callable[[Record], None]:
    def edit(record: Record) -> None:
        target: Any = record
        for part in path[:-1]:
            target = target[part]
        if value is ...:
            del target[path[-1]]
        else:
            target[path[-1]] = value

    return edit


QUESTIONS = "recoverability_questions"


def test_a_question_id_of_another_released_story_is_named(small: Path) -> None:
    taken = set_path(QUESTIONS, 0, "question_id", value="kb25k_0001_q1")
    change(small / "annotations.jsonl", 2, taken)
    field = "question kb25k_0001_q1.question_id"
    assert problems(small) == [(2, "kb25k_0002", field, "story 'kb25k_0001' has a question of this id.")]


def test_own_stories_may_number_their_questions_alike(tmp_path: Path) -> None:
    rows = []
    for name, value in zip("ab", stories(2), strict=True):
        text = json.dumps(value).replace(value["story_id"], name).replace(f"{name}_q", "q")
        rows.append(json.dumps({**json.loads(text), "provenance": {}}))
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    assert problems(path) == []


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (set_path("scenes", 4, value=...), "scenes"),
        (set_path(QUESTIONS, value=[]), QUESTIONS),
        (set_path(QUESTIONS, 1, "accepted_answers", value=[]), "question kb25k_0002_q2.accepted_answers"),
        (set_path(QUESTIONS, 1, "accepted_answers", value=["a", " "]), "question kb25k_0002_q2.accepted_answers"),
        (set_path(QUESTIONS, 1, "question_type", value="intention"), f"{QUESTIONS}[1].question_type"),
        (set_path(QUESTIONS, 1, "question", value=" "), f"{QUESTIONS}[1].question"),
        (set_path(QUESTIONS, 1, "story_id", value="kb25k_0001"), f"{QUESTIONS}[1].story_id"),
        (set_path(QUESTIONS, 1, "evidence_scenes", value=[6]), "question kb25k_0002_q2.evidence_scenes"),
        (set_path(QUESTIONS, 1, "target_transition", value=[1, 3]), "target_transition"),
        (set_path(QUESTIONS, 1, "question_id", value="kb25k_0002_q1"), ""),
        (set_path("transitions", 2, "transition_type", value="twist"), "transitions[2].transition_type"),
        (set_path("transitions", 2, value=...), "transitions"),
        (set_path("transitions", 2, "causality", value=...), "transitions[2].causality"),
        (set_path("scenes", 0, "generation_prompt", value=...), "scenes[0].generation_prompt"),
        (set_path("moral_label", value="bravery"), "moral_label"),
        (set_path("moral_label", value=None), "moral_label"),
        (set_path("narrative_type", value="thriller"), "narrative_type"),
        (set_path("narrative_type", value="causal_transition"), "narrative_type"),
        (set_path("split", value="exam"), "split"),
        (set_path("story_text", value=...), "story_text"),
        (set_path("story_text", value=""), "story_text"),
        (set_path("story_id", value="../../etc/passwd"), ""),
        (set_path("provenance", "source_dataset", value="grimm"), "provenance.source_dataset"),
        (set_path("evidence_status", "resolution", value="coin"), "evidence_status.resolution"),
        (set_path("evidence_status", "resolution", value=[]), "evidence_status.resolution"),
        (
            set_path("evidence_status", "human_evidence_accepted", value="yes"),
            "evidence_status.human_evidence_accepted",
        ),
        (set_path("validation_status", value="draft"), "validation_status"),
    ],
)
def test_damage_is_named_by_line_and_field(small: Path, edit: Callable[[Record], None], field: str) -> None:
    change(small / "annotations.jsonl", 2, edit)
    found = [item for item in problems(small / "annotations.jsonl") if item[0] == 2]
    assert field in {name for _, _, name, _ in found}
    assert all(message for *_, message in found)


def test_evidence_that_people_did_not_accept_is_a_boolean_too(small: Path) -> None:
    before = problems(small / "annotations.jsonl")
    change(small / "annotations.jsonl", 2, set_path("evidence_status", "human_evidence_accepted", value=False))
    assert problems(small / "annotations.jsonl") == before


def test_broken_lines_are_all_reported(small: Path) -> None:
    path = small / "annotations.jsonl"
    good = path.read_bytes().splitlines()
    nan = good[0].replace(b'"number"', b"").replace(b'"scene_index":1', b'"scene_index":NaN', 1)
    half = good[2].replace(b"Story 3", b"Story \\ud800")
    path.write_bytes(b"\n".join([b"{torn", nan, b"[1]", b"\xff\xfe{}", b"", good[0], good[0], good[1], half]))
    found = problems(path)
    assert [line for line, *_ in found] == [1, 2, 3, 4, 7, 9]
    assert "NaN" in found[1][3]
    assert "UTF-8" in found[3][3]
    assert found[4][2] == "story_id"


@pytest.mark.parametrize(
    ("file", "line", "edit", "field"),
    [
        ("contrastive_variants.jsonl", 1, set_path("base_story_id", value="kb25k_0099"), "base_story_id"),
        ("contrastive_variants.jsonl", 2, set_path("variant_id", value="kb25k_0001_v1"), "variant_id"),
        ("contrastive_variants.jsonl", 2, set_path("narrative_type", value="counterfactual_pair"), "narrative_type"),
        ("contrastive_variants.jsonl", 2, set_path("original_moral", value="wisdom"), "original_moral"),
        ("contrastive_variants.jsonl", 2, set_path("changed_scene_id", value=6), "changed_scene_id"),
        ("human_validation.jsonl", 1, set_path("final_moral_label", value="wisdom"), "final_moral_label"),
        ("human_validation.jsonl", 1, set_path("resolution", value="human_adjudicated"), "resolution"),
        ("human_validation.jsonl", 1, set_path("annotator_ids", value=["a", "a", "b"]), "annotator_ids"),
        ("human_validation.jsonl", 1, set_path("signed_at", value="soon"), "signed_at"),
        ("human_validation.jsonl", 1, set_path("story_id", value="kb25k_0077"), "story_id"),
    ],
)
def test_links_between_files(small: Path, file: str, line: int, edit: Callable[[Record], None], field: str) -> None:
    change(small / file, line, edit)
    found = [item for item in Inspection(small).problems() if item.file == file]
    assert (line, field) in {(item.line, item.field) for item in found}


def test_variant_must_change_the_story_and_be_promised_truly(small: Path) -> None:
    text = json.loads((small / "annotations.jsonl").read_text().splitlines()[0])["story_text"]
    change(small / "contrastive_variants.jsonl", 1, set_path("contrastive_story_text", value=text))
    change(small / "annotations.jsonl", 3, set_path("provenance", "contrastive_variant_ids", 0, value="nobody"))
    fields = {item[2] for item in problems(small)}
    assert fields == {"contrastive_story_text", "provenance.contrastive_variant_ids"}


def test_gold_subset_is_checked_against_the_release(small: Path) -> None:
    lines = (small / "annotations.jsonl").read_text().splitlines()
    other = json.loads(lines[1])
    other["recoverability_questions"][0]["gold_answer"] = "another"
    (small / "strict_gold_400.jsonl").write_text("\n".join([lines[0], json.dumps(other)]) + "\n")
    found = [item for item in Inspection(small).problems() if item.file == "strict_gold_400.jsonl"]
    assert [item.story for item in found if item.line == 2] == ["kb25k_0002"]
    assert any("Table 20" in item.message for item in found)


def test_gold_subset_may_name_its_stories_and_is_counted_all_the_same(small: Path) -> None:
    rows = [
        {"story_id": "kb25k_0001"},
        {"story_id": "kb25k_0002", "narrative_type": "hidden_consequence", "moral_label": "zeal"},
        {"story_id": " "},
        {"story_id": "kb25k_0001"},
    ]
    gold = small / "strict_gold_400.jsonl"
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))
    inspection = Inspection(small)
    found = {(item.line, item.field) for item in inspection.problems() if item.file == gold.name}
    assert {(2, "narrative_type"), (2, "moral_label"), (3, "story_id"), (4, "story_id")} <= found
    assert (1, "story_id") not in found
    told = [item.message for item in Inspection(small).problems() if item.file == gold.name and item.line is None]
    assert "there are 4 stories; Table 20 has 400." in told
    assert "moral_semantic has 2 stories; Table 20 has 50." in told
    assert "strict_gold_400" not in inspection.summary()["budgets"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        folder = write_release(tmp_path / str(count), count)
        tracemalloc.start()
        assert sum(1 for _ in Inspection(folder).problems()) == 0
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    peak(5)
    assert peak(240) < peak(40) + 150_000


def test_command_prints_all_and_exits_with_one(small: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["bench", "validate", str(small)]).exit_code == 0
    change(small / "annotations.jsonl", 1, set_path("split", value="exam"))
    change(small / "annotations.jsonl", 3, set_path("moral_label", value="zeal"))
    result = runner.invoke(app, ["bench", "validate", str(small)])
    assert result.exit_code == 1
    assert "annotations.jsonl, line 1, story 'kb25k_0001', field 'split'" in result.stdout
    assert "line 3" in result.stdout
    asked = runner.invoke(app, ["bench", "validate", str(small), "--json"])
    value = json.loads(asked.stdout)
    assert asked.exit_code == 1
    assert not value["ok"]
    assert {item["field"] for item in value["problems"]} >= {"split", "moral_label"}
    stats = json.loads(runner.invoke(app, ["bench", "stats", str(small), "--json"]).stdout)
    assert stats["budgets"]["all"]["judge_calls"] == 3 * stats["tables"]["components"]["questions"]


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="holds no release file"):
        Inspection(tmp_path)
    with pytest.raises(InputFileError, match="Cannot read"):
        Inspection(tmp_path / "missing.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    assert [message for *_, message in problems(tmp_path / "empty.jsonl")] == ["the file holds no record."]


def test_names_and_identifier_ranges() -> None:
    assert expected_type("kb25k_1000") == "moral_semantic"
    assert expected_type("kb25k_1001") == "causal_transition"
    assert expected_type("kb25k_5000") == "counterfactual_pair"
    assert expected_type("kb25k_0000") is expected_type("kb25k_5001") is expected_type("story_1") is None
    assert split_name("Public-Test") == "public_test"
    assert split_name("exam") is None
