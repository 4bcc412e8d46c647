"""Boards for viewers carry no story in their names, and the sums are of what each viewer saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.viewers import main


def _run(folder: Path, name: str, judged: list[str]) -> Path:
    run = folder / name
    run.mkdir()
    Image.new("RGB", (48, 32), "white").save(run / "frame.png")
    asked = [
        {
            "question_id": f"{name}_q{at}",
            "question": "What happens?",
            "options": ["a", "b"],
            "role": "reporting",
            "question_type": "action_visibility",
            "gold_answer": "a",
        }
        for at in range(len(judged))
    ]
    story = {"story_text": "The fox ran.", "recoverability_questions": asked}
    answers = [
        {"question_id": f"{name}_q{at}", "answer": said, "condition": "image", "method": "m", "status": "ok"}
        for at, said in enumerate(judged)
    ]
    board = {"mode": "m", "frames": [{"image": "frame.png", "kind": "scene", "scene": 1, "prompt": "The fox runs."}]}
    plan = {"panels": [{"index": 1, "caption": "The fox ran."}], "coverage": {"drawn": 1, "visible": 2}}
    (run / "story.jsonl").write_text(json.dumps(story))
    (run / "answers.jsonl").write_text("\n".join(json.dumps(row) for row in answers))
    (run / "storyboard.json").write_text(json.dumps(board))
    (run / "plan.json").write_text(json.dumps(plan))
    return run


def test_packed_boards_are_scored_by_who_saw_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [_run(tmp_path, name, judged) for name, judged in (("fox", ["a", "b"]), ("crow", ["a"]), ("hen", ["b"]))]
    out, key = tmp_path / "out", tmp_path / "key.json"
    main(["pack", *map(str, runs), "--out", str(out), "--key", str(key)])
    for board in out.iterdir():
        shown = (board / "questions.json").read_text()
        assert not any(name in shown for name in ("fox", "crow", "hen"))
        assert {path.name for path in board.iterdir()} == {"board.png", "told.png", "questions.json", "story.txt"}
    kept: dict[str, Any] = json.loads(key.read_text())
    all_right = {
        board: {"answers": dict.fromkeys(row["questions"], "a"), "story": "yes"} for board, row in kept.items()
    }
    viewers = []
    for at, boards in enumerate((list(kept)[:2], list(kept)[2:])):
        path = tmp_path / f"viewer{at}.json"
        path.write_text(json.dumps({board: all_right[board] for board in boards}))
        viewers.append(str(path))
    capsys.readouterr()
    main(["score", *viewers, "--key", str(key)])
    said = capsys.readouterr().out
    assert "3 boards, 4 questions, 2 viewers\nright: judge 50.0, viewers 100.0\n" in said
    assert "this is that story: yes 3 (100%)" in said
    assert "reach a picture: 3 of 6 (50%)" in said
