"""The folder of one run: its answer log, its panels, its record, and a change that died half way."""

from __future__ import annotations

from pathlib import Path

import pytest

from katha.agents.folder import RunFolder
from katha.errors import OutputFolderError
from katha.jsonio import sha256_hex
from katha.schema import Answer


def answer(text: str = "yes", **changes: object) -> Answer:
    fields = {"method": None, "judge": "j", "story_id": "s", "question_id": "q", "condition": "text", "status": "ok"}
    return Answer.model_validate({**fields, "answer": text, **changes})


def test_the_answer_log_survives_a_torn_line_and_the_last_row_wins(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    with folder.claim():
        folder.append_answers([answer("old"), answer("kept", question_id="q2")])
        torn = folder.answers.read_bytes() + '{"answer": "caf\u00e9'.encode()[:-1]
        folder.answers.write_bytes(torn)
        folder.append_answers([answer("new")])
        rows = folder.read_answers()
    assert [(row.question_id, row.answer) for row in rows] == [("q", "new"), ("q2", "kept")]
    folder.write_answers(rows)
    assert folder.answers.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', "\0", '{"format": 1, "katha": "1"}'])
def test_a_foreign_run_json_is_named(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.state_file.write_text(text)
    with pytest.raises(OutputFolderError, match=r"run\.json"):
        folder.read()


def test_panels_are_verified(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    sha256 = sha256_hex(b"picture")
    folder.add_panel(sha256, b"picture")
    assert folder.panel(sha256) == b"picture"
    (folder.panels / f"{sha256}.png").write_bytes(b"scribble")
    assert folder.panel(sha256) is None
    folder.add_panel(sha256, b"picture")
    assert folder.panel(sha256) == b"picture"


@pytest.mark.parametrize(
    "name", ["../../victim", "../victim", "001/../../../victim", "..", ".", "", "1", "001\n", "\udcff"]
)
def test_an_undone_change_stays_inside_of_the_run(tmp_path: Path, name: str) -> None:
    """`redo` once removed the folder that `versions/pending` named, wherever it was."""
    folder = RunFolder(tmp_path / "run")
    names = ("run.json", "storyboard.json", "candidates.json", "answers.jsonl", "scores.json")
    for place in (tmp_path / "victim", tmp_path / "run", folder.versions):
        place.mkdir(parents=True, exist_ok=True)
        for file in names:
            (place / file).write_text(f"precious {place.name}")
    (folder.versions / "pending").write_bytes(name.encode("utf-8", "surrogateescape"))
    with pytest.raises(OutputFolderError, match=r"pending.*names no version"):
        folder.restore()
    for place in (tmp_path / "victim", tmp_path / "run", folder.versions):
        assert {(place / file).read_text() for file in names} == {f"precious {place.name}"}


def test_a_version_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    for place in (tmp_path / "victim", tmp_path / "run"):
        place.mkdir()
        for file in ("run.json", "storyboard.json", "candidates.json", "answers.jsonl", "scores.json"):
            (place / file).write_text(place.name)
    folder.versions.mkdir()
    (folder.versions / "001").symlink_to(tmp_path / "victim")
    (folder.versions / "pending").write_text("001")
    with pytest.raises(OutputFolderError, match="names no version"):
        folder.restore()
    assert folder.scores.read_text() == "run"
    assert (tmp_path / "victim" / "run.json").read_text() == "victim"
