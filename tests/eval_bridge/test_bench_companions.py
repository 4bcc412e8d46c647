"""The files that a release says of itself, held against its records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlcroissant
import pytest

from benchmarks.synthetic import write_release
from katha.eval_bridge.bench.validate import Inspection

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = write_release(tmp_path / "release", 3)
    inspection = Inspection(folder)
    list(inspection.problems())
    tables = inspection.summary()["tables"]
    digest = hashlib.sha256((folder / "annotations.jsonl").read_bytes()).hexdigest()
    row = {
        "name": "annotations.jsonl",
        "content_url": "annotations.jsonl",
        "encoding_formats": ["application/jsonlines"],
    }
    files = [mlcroissant.FileObject(id="annotations.jsonl", sha256=digest, **row)]
    metadata = mlcroissant.Metadata(
        name="KathaBench", description="Three stories.", url="https://example.org", distribution=files
    )
    morals = {label: {"target": 0, "observed": count} for label, count in tables["moral_label"].items()}
    sources = [{"collection": name} for name in tables["source_dataset"]]
    for name, value in {
        "statistics.json": {
            "total_stories": tables["components"]["stories"],
            "question_type": tables["question_type"],
            "unit": "record",
        },
        "moral_balance_requirements.json": {"labels": morals, "tolerance": 1},
        "source_manifest.json": {"sources": sources, "files": [{"path": "annotations.jsonl", "sha256": digest}]},
        "croissant_metadata.json": metadata.to_json(),
    }.items():
        (folder / name).write_text(json.dumps(value, default=str), encoding="utf-8")
    return folder


def told(folder: Path) -> list[str]:
    return [str(item) for item in Inspection(folder).problems() if item.file.endswith((".json", ".JSON"))]


def test_companions_that_agree_say_nothing(release: Path) -> None:
    assert told(release) == []


def _statistics(value: dict[str, Any]) -> None:
    value["question_type"]["causal"] = 9_999


def _total(value: dict[str, Any]) -> None:
    value["total_stories"] = 4


def _moral(value: dict[str, Any]) -> None:
    value["labels"]["courage"]["observed"] = 77


def _source(value: dict[str, Any]) -> None:
    value["sources"] = []


def _hash(value: dict[str, Any]) -> None:
    value["files"][0]["sha256"] = "0" * 64


def _gone(value: dict[str, Any]) -> None:
    value["files"].append({"path": "gone.jsonl", "sha256": "0" * 64})


def _no_files(value: dict[str, Any]) -> None:
    value["distribution"] = []


def _no_croissant(value: dict[str, Any]) -> None:
    del value["distribution"][0]["@type"]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("statistics.json", _statistics, "question_type.causal"),
        ("statistics.json", _total, "it is 4; the records hold 3."),
        ("moral_balance_requirements.json", _moral, "labels.courage.observed"),
        ("source_manifest.json", _source, "does not name the source"),
        ("source_manifest.json", _hash, "another sha256"),
        ("source_manifest.json", _gone, "the file is not there"),
        ("croissant_metadata.json", _no_files, "it lists no file"),
        ("croissant_metadata.json", _no_croissant, "Croissant:"),
    ],
)
def test_what_does_not_agree_is_told(release: Path, name: str, change: Change, said: str) -> None:
    value = json.loads((release / name).read_text("utf-8"))
    change(value)
    (release / name).write_text(json.dumps(value), encoding="utf-8")
    found = told(release)
    assert any(said in line and line.startswith(name) for line in found), found


def test_a_name_in_a_manifest_never_leads_outside(release: Path) -> None:
    value = {
        "sources": "kathasaritasagara aesop panchatantra",
        "files": [{"path": "../../etc/passwd", "sha256": "0" * 64}],
    }
    (release / "source_manifest.json").write_text(json.dumps(value), encoding="utf-8")
    assert told(release) == []


def test_a_companion_that_is_no_json_is_a_problem(release: Path) -> None:
    (release / "statistics.json").write_text("{", encoding="utf-8")
    assert "is not JSON" in told(release)[0]
