"""`katha bench split` and `katha bench match`."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.synthetic import write_release
from katha.app.cli.main import app
from katha.errors import InputFileError, OutputFolderError, RecordError, UsageError
from katha.eval_bridge.bench.files import NARRATIVE_TYPES
from katha.eval_bridge.bench.split import assign_splits, save_split
from katha.eval_bridge.matching.report import measure_file


def whole_types() -> dict[str, str]:
    kinds = [kind for kind, count in NARRATIVE_TYPES.items() for _ in range(count)]
    return {f"kb25k_{number:04d}": kind for number, kind in enumerate(kinds, 1)}


def test_split_of_the_release_has_the_published_sizes_in_every_type() -> None:
    types = whole_types()
    parts = assign_splits(types)
    assert {name: len(ids) for name, ids in parts.items()} == {
        "train": 3500,
        "validation": 750,
        "public_test": 500,
        "hidden_test": 250,
    }
    assert sorted(story for ids in parts.values() for story in ids) == sorted(types)
    for name, share in (("train", 0.7), ("validation", 0.15), ("public_test", 0.1), ("hidden_test", 0.05)):
        assert Counter(types[story] for story in parts[name]) == {
            kind: round(share * count) for kind, count in NARRATIVE_TYPES.items()
        }


def test_split_depends_on_seed_and_ids_alone() -> None:
    types = whole_types()
    shuffled = list(types.items())
    random.Random(1).shuffle(shuffled)
    assert assign_splits(dict(shuffled)) == assign_splits(types)
    assert assign_splits(types, 43) != assign_splits(types)


@pytest.mark.parametrize("count", [1, 2, 7, 13, 33])
def test_small_files_are_divided_in_proportion(count: int) -> None:
    types = {f"s{number}": ("a", "b", "c")[number % 3] for number in range(count)}
    parts = assign_splits(types)
    assert sum(map(len, parts.values())) == count
    for name, share in (("train", 0.7), ("validation", 0.15), ("public_test", 0.1), ("hidden_test", 0.05)):
        assert abs(len(parts[name]) - share * count) < 2


def without_split(folder: Path) -> Path:
    path = folder / "plain.jsonl"
    rows = [json.loads(line) for line in (folder / "annotations.jsonl").read_text().splitlines()]
    path.write_text("".join(json.dumps(row | {"split": None}) + "\n" for row in rows))
    return path


def test_split_refuses_to_replace_another(tmp_path: Path) -> None:
    folder = write_release(tmp_path / "release", 30)
    with pytest.raises(RecordError, match="carries another split already"):
        save_split(folder, tmp_path / "split.json")
    assert not (tmp_path / "split.json").exists()
    forced = save_split(folder, tmp_path / "split.json", force=True)
    assert json.loads((tmp_path / "split.json").read_text()) == forced.model_dump()
    plain = without_split(folder)
    first = save_split(plain, tmp_path / "other.json")
    assert save_split(plain, tmp_path / "other.json") == first
    with pytest.raises(OutputFolderError, match="holds something else"):
        save_split(plain, tmp_path / "other.json", seed=7)
    assert save_split(plain, tmp_path / "other.json", seed=7, force=True).seed == 7


def test_split_needs_stories(tmp_path: Path) -> None:
    folder = write_release(tmp_path / "release", 2)
    with pytest.raises(InputFileError, match="holds no stories"):
        save_split(folder / "contrastive_variants.jsonl", tmp_path / "split.json")


def pair(answer: str, label: str, kind: str) -> dict[str, Any]:
    return {
        "question": "What does the mouse do?",
        "gold_answer": "bites the net",
        "accepted_answers": ["bites the net", "frees the lion"],
        "answer": answer,
        "label": label,
        "kind": kind,
    }


def test_match_counts_by_kind(tmp_path: Path) -> None:
    rows = [
        pair("bites the net", "right", "judge"),
        pair("Frees the lion.", "right", "judge"),
        pair("she chews the mesh", "right", "judge"),
        pair("frees the lion", "wrong", "judge"),
        pair("runs away", "wrong", "vague"),
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = measure_file(path, "exact-set")
    assert report.n == 5
    assert report.false_accept == pytest.approx(1 / 2)
    assert report.false_reject == pytest.approx(1 / 3)
    judged = report.by_kind["judge"]
    assert judged.model_dump() == {
        "n": 4,
        "right": 3,
        "false_accept": 1,
        "false_reject": 1,
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
        "false_accept_ci95": pytest.approx((0.2065, 1.0), abs=1e-4),
        "false_reject_ci95": pytest.approx((0.0615, 0.7923), abs=1e-4),
    }
    assert report.false_accept_ci95 == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert report.by_kind["vague"].false_reject_ci95 is None
    assert report.by_kind["vague"].precision is None
    assert [row.line for row in report.confusions] == [3, 4]
    asked = CliRunner().invoke(app, ["bench", "match", str(path), "--rule", "exact-set", "--json"])
    assert json.loads(asked.stdout) == report.model_dump(mode="json")
    shown = CliRunner().invoke(app, ["bench", "match", str(path), "--matching", "exact-set"])
    assert "line 4, wrong: 'frees the lion'" in shown.stdout
    assert "false accepts 50.0% [9.5, 90.5], false rejects 33.3% [6.1, 79.2]" in shown.stdout


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("{", InputFileError, "line 2: the line is not JSON"),
        (json.dumps(pair("a", "maybe", "k")), RecordError, "line 2.*label"),
        (json.dumps({"answer": "a", "label": "right"}), RecordError, "line 2.*'question'"),
        (json.dumps(pair("a", "right", "k") | {"accepted_answers": "a"}), RecordError, "line 2.*accepted_answers"),
    ],
)
def test_match_names_the_broken_line(tmp_path: Path, line: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(pair("a", "right", "k")) + "\n" + line + "\n")
    with pytest.raises(error, match=message):
        measure_file(path, "exact-set")


def test_match_refuses_unknown_rules_and_empty_files(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("")
    with pytest.raises(UsageError, match="No matching rule"):
        measure_file(tmp_path / "pairs.jsonl", "magic")
    with pytest.raises(InputFileError, match="holds no pair"):
        measure_file(tmp_path / "pairs.jsonl", "exact-set")
