"""Drawing one frame again: the others keep their bytes, the old version stays, and only what must be is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doubles import BlockRenderer, plugins, story

from katha.agents import folder
from katha.agents.editor.editing import redo_frame
from katha.agents.folder import RunFolder
from katha.agents.run import run_story
from katha.agents.state import RunResult
from katha.config import Settings
from katha.errors import OutputFolderError, UsageError
from katha.eval_bridge.scoring.scores import score
from katha.protocols import Capabilities
from katha.schema import StoryRecord

FILES = ("run.json", "storyboard.json", "candidates.json", "answers.jsonl", "scores.json")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def finished(out: Path, mode: str = "random_bridge", **changes: Any) -> RunResult:
    config = Settings(planner="scenes", renderer="block", judges=("pixel",), seeds=(42, 123), mode=mode)
    return run_story(story(), config, out, plugins=plugins(**changes))


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FILES}


def test_one_frame_changes_and_the_old_version_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = finished(out)
    files, panels = contents(out), {path.name: path.read_bytes() for path in (out / "panels").iterdir()}
    made = plugins()
    after = redo_frame(out, 1, 7, plugins=made)
    assert len(made.renderer.drawn) == 1
    assert made.renderer.drawn[0].seed == 7
    assert after.board.frames[0].seed == 7
    assert after.board.frames[0].sha256 != before.board.frames[0].sha256
    assert after.board.frames[1:] == before.board.frames[1:]
    assert {name: (out / "panels" / name).read_bytes() for name in panels} == panels
    assert {name: (out / "versions" / "001" / name).read_bytes() for name in FILES} == files
    assert "drawn again by hand with seed 7 instead of 42" in after.candidates.decision.reason
    assert json.loads((out / "run.json").read_text())["redone"] == [{"frame": 1, "seed": 7, "version": "001"}]


def test_only_what_depends_on_the_frame_is_judged_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished(out)
    before = {(row.packet_sha256, row.prompt_sha256) for row in RunFolder(out).read_answers()}
    made = plugins()
    redo_frame(out, 1, 7, plugins=made)
    rows = RunFolder(out).read_answers()
    new = {(row.packet_sha256, row.prompt_sha256) for row in rows} - before
    assert len(made.judges["pixel"].asked) == len(new)
    pairs = {row.method for row in rows if (row.packet_sha256, row.prompt_sha256) in new}
    assert pairs <= {"redo:1:7", "redo:1:7/transition:1-2", "random_bridge"}
    assert pairs


def test_the_scores_follow(tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished(out)
    after = redo_frame(out, 2, 9, plugins=plugins())
    record = StoryRecord.model_validate_json((out / "story.jsonl").read_bytes())
    reporting = [row for row in RunFolder(out).read_answers() if row.role == "reporting"]
    again = score([record], reporting, matching="lemma-set").with_notes(after.scores.notes[-1:])
    assert again == after.scores
    final = next(item for item in after.candidates.candidates if item.name == after.candidates.decision.inserted)
    assert final.board.frames == after.board.frames


def test_a_scene_of_a_seed_is_the_same_picture_as_in_that_seed_s_board(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = finished(out, "rerank_only")
    boards = {item.name: item.board for item in result.candidates.candidates}
    other = 123 if result.board.seed == 42 else 42
    made = plugins()
    after = redo_frame(out, 3, other, plugins=made)
    assert made.renderer.drawn == []
    assert after.board.frames[2].sha256 == boards[f"candidate:{other}"].frames[2].sha256


def test_a_bridge_can_be_redone_and_redone_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = finished(out)
    bridge = next(frame for frame in before.board.frames if frame.kind == "bridge")
    redo_frame(out, bridge.index, 11, plugins=plugins())
    back = redo_frame(out, bridge.index, bridge.seed, plugins=plugins())
    assert back.board.frames == before.board.frames
    assert back.scores == before.scores
    assert redo_frame(out, bridge.index, bridge.seed, plugins=plugins()).reused


def test_a_batch_renderer_inserts_the_frame_among_the_others(tmp_path: Path) -> None:
    out, able = tmp_path / "out", Capabilities(identity="batch", insertion="reference", default_size=(64, 48))
    before = finished(out, renderer=BlockRenderer(capabilities=able))
    made = plugins(renderer=BlockRenderer(capabilities=able))
    after = redo_frame(out, 2, 7, plugins=made)
    assert len(made.renderer.drawn) == 1
    changed = [old != new for old, new in zip(before.board.frames, after.board.frames, strict=True)]
    assert changed.index(True) == 1
    assert sum(changed) == 1


def test_a_rerun_after_a_redo_keeps_the_person_s_frame(tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished(out)
    after = redo_frame(out, 1, 7, plugins=plugins())
    again = finished(out)
    assert again.reused
    assert again.board == after.board


def test_a_redo_that_died_half_way_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    finished(out)
    files = contents(out)

    write = folder.write_json

    def die(path: Path, value: Any) -> None:
        if path.name == "storyboard.json":
            raise KeyboardInterrupt
        write(path, value)

    monkeypatch.setattr(folder, "write_json", die)
    with pytest.raises(KeyboardInterrupt):
        redo_frame(out, 1, 7, plugins=plugins())
    assert contents(out) != files
    monkeypatch.undo()
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    assert finished(out).reused
    assert contents(out) == files
    assert redo_frame(out, 1, 7, plugins=plugins()).board.frames[0].seed == 7


@pytest.mark.parametrize("number", [0, -1, 7, 99])
def test_a_frame_that_is_not_there_is_refused(tmp_path: Path, number: int) -> None:
    out = tmp_path / "out"
    finished(out)
    files = contents(out)
    with pytest.raises(UsageError, match=rf"no frame {number}.*1 to 6"):
        redo_frame(out, number, 7, plugins=plugins())
    assert contents(out) == files


def test_only_a_finished_run_can_be_redone(tmp_path: Path) -> None:
    with pytest.raises(OutputFolderError, match="no folder"):
        redo_frame(tmp_path / "nowhere", 1, 7, plugins=plugins())
    (tmp_path / "empty").mkdir()
    with pytest.raises(OutputFolderError, match="no finished run"):
        redo_frame(tmp_path / "empty", 1, 7, plugins=plugins())


def test_changed_plug_ins_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished(out)
    with pytest.raises(OutputFolderError, match="another renderer"):
        redo_frame(out, 1, 7, plugins=plugins(renderer=BlockRenderer(version=2)))
