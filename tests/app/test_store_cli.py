"""`katha store check|gc|copy`, and commands of two machines that share a store."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from bad_inputs import EXAMPLE, SMALL
from calls import Called, call
from services import PostgresServer, S3Server

TEXT = str(EXAMPLE.with_suffix(".txt"))


@pytest.fixture
def shared(postgres: PostgresServer, s3_keys: S3Server) -> dict[str, str]:
    """What names the shared store."""
    return {"KATHA_STORE": postgres.fresh(), "KATHA_OBJECTS": s3_keys.bucket()}


def katha(folder: Path, machine: str, *words: object, **environment: str) -> Called:
    return call(words, folder, folder / machine, seconds=120, before=lambda: os.environ.update(environment))


def told(folder: Path, machine: str, *words: object, **environment: str) -> dict[str, Any]:
    done = katha(folder, machine, *words, "--json", **environment)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_a_cache_is_copied_and_another_machine_pays_for_nothing(tmp_path: Path, shared: dict[str, str]) -> None:
    assert katha(tmp_path, "one", "run", TEXT, *SMALL, "--out", "out one").code == 0
    drawn = told(tmp_path, "one", "store", "check")["files"]
    where = {"KATHA_OBJECTS": shared["KATHA_OBJECTS"]}
    copied = told(tmp_path, "one", "store", "copy", "one", shared["KATHA_STORE"], **where)
    assert (copied["files"], copied["missing_files"]) == (drawn, 0)
    assert told(tmp_path, "one", "store", "copy", "one", shared["KATHA_STORE"], **where)["records"] == 0
    assert katha(tmp_path, "two", "run", TEXT, *SMALL, "--out", "out two", **shared).code == 0
    assert json.loads((tmp_path / "out two" / "run.json").read_text())["paid"]["frames_rendered"] == 0
    boards = [(tmp_path / name / "storyboard.json").read_bytes() for name in ("out one", "out two")]
    assert boards[0] == boards[1]
    found = told(tmp_path, "two", "store", "check", **shared)
    assert (found["files"], found["damaged_files"], found["missing_files"]) == (drawn, 0, 0)
    assert katha(tmp_path, "two", "store", "copy", "nowhere", "there").code == 2


def test_garbage_is_told_first_and_removed_when_asked(tmp_path: Path) -> None:
    assert katha(tmp_path, "one", "run", TEXT, *SMALL, "--out", "out").code == 0
    (tmp_path / "one" / "index.sqlite").unlink()
    shutil.rmtree(tmp_path / "out" / "panels")
    words = ("store", "gc", "--days", 0)
    assert told(tmp_path, "one", *words, "out")["files"] == 0
    found = told(tmp_path, "one", *words)
    assert found["files"] > 0
    assert not found["removed"]
    assert "Give --remove" in katha(tmp_path, "one", *words).out
    assert told(tmp_path, "one", *words, "--remove")["files"] == found["files"]
    assert told(tmp_path, "one", *words)["files"] == 0
    assert katha(tmp_path, "one", *words, "nowhere").code == 2


def test_a_wrong_address_is_one_sentence_and_begins_nothing(tmp_path: Path) -> None:
    wrong = {"KATHA_STORE": "postgresql://me:secret@127.0.0.1:1/katha", "KATHA_OBJECTS": "/tmp"}
    done = katha(tmp_path, "one", "run", TEXT, "--out", "out", **wrong)
    assert done.code == 1
    assert "The database postgresql://127.0.0.1:1/katha cannot be used" in done.err
    assert "secret" not in done.err + done.out
    assert done.err.strip().count("\n") <= 3
    lacking = katha(tmp_path, "one", "run", TEXT, "--out", "out", KATHA_STORE=wrong["KATHA_STORE"])
    assert lacking.code == 2
    assert "KATHA_OBJECTS" in lacking.err
    seen = told(tmp_path, "one", "doctor", **wrong)
    assert seen["folders"]["index"] == "postgresql://127.0.0.1:1/katha"
