"""Repairs by what was missed, done again from the replies of the models that proposed, drew and judged them."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.schema import Candidates

RECORDED = sorted((Path(__file__).parents[1] / "data" / "repair" / "recorded").glob("*/board.katha"))


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.parent.name)
def test_a_recorded_repair_is_done_again(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    words = ["run", str(recording.with_name("story.json")), "--replay", str(recording), "--out", str(out)]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    shipped, board = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in (recording.with_name("storyboard.json"), out / "storyboard.json")
    )
    assert [frame["sha256"] for frame in board["frames"]] == [frame["sha256"] for frame in shipped["frames"]]
    found = Candidates.model_validate_json((out / "candidates.json").read_text(encoding="utf-8"))
    before, (tried,), (evidence, *_) = found.candidates[0], found.decision.tried, found.decision.evidence
    missed = {item.question_id for item in (*evidence.missed, *evidence.elsewhere)}
    assert tried.accepted
    assert set(tried.answered) == missed, "the question that was missed is the one that is answered now"
    assert tried.lost == []
    assert found.decision.reason.endswith("Then: Nothing to repair: no steering question is missed.")
    page = " ".join(unescape((out / "report.html").read_text(encoding="utf-8")).split())
    redrawn = {frame["scene"]: frame["panel"]["caption"] for frame in board["frames"] if frame.get("panel")}
    assert set(redrawn) == {panel.index for panel in tried.move.panels}
    for scene, caption in redrawn.items():
        stands = " ".join(caption.split())
        assert f"Scene {scene}, redrawn</b> <span>{stands}</span>" in page, "a redrawn frame keeps the story's words"
    changed = [
        one.index for one, two in zip(before.board.frames, board["frames"], strict=True) if one.sha256 != two["sha256"]
    ]
    assert changed == [panel.index for panel in tried.move.panels], "no other frame has changed"


def test_there_are_recorded_repairs() -> None:
    assert len(RECORDED) == 3
