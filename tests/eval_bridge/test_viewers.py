"""Boards for viewers carry no story in their names, and the sums are of what each viewer saw."""

from __future__ import annotations

import json
import re
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
    assert "3 boards, 4 questions, 2 viewers\n" in said
    assert re.search(r"^right: judge 50\.0 \(.*\), viewers 100\.0 \(100\.0 to 100\.0\)", said, re.MULTILINE)
    assert "this is that story: yes 3 (100%)" in said
    assert "reach a picture: 3 of 6 (50%)" in said


_JUDGED = {"fox": "aaaa", "crow": "aab", "hen": "ab", "owl": "bbb"}
"""What the judge says; "a" is right."""


def _packed_singly(folder: Path, viewers: int) -> tuple[Path, dict[str, Any]]:
    runs = [_run(folder, name, list(judged)) for name, judged in _JUDGED.items()]
    out, key = folder / "out", folder / "key.json"
    main(["pack", *map(str, runs), "--out", str(out), "--key", str(key), "--singly", str(viewers)])
    return out, json.loads(key.read_text())


def _scored(folder: Path, viewers: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> str:
    paths = [folder / f"said{at}.json" for at in range(len(viewers))]
    for path, viewer in zip(paths, viewers, strict=True):
        path.write_text(json.dumps(viewer))
    capsys.readouterr()
    main(["score", *map(str, paths), "--key", str(folder / "key.json")])
    return capsys.readouterr().out


def test_a_single_viewer_sees_one_question_of_each_board_and_all_together_see_all(tmp_path: Path) -> None:
    out, key = _packed_singly(tmp_path, 5)
    assert sorted(path.name for path in out.iterdir()) == ["01", "02", "03", "04", "05"]
    orders, dealt = set(), set()
    for viewer in out.iterdir():
        boards = sorted(viewer.iterdir())
        orders.add(tuple(key[board.name]["run"] for board in boards))
        assert sorted(orders.copy().pop()) == sorted(_JUDGED)
        for board in boards:
            assert {path.name for path in board.iterdir()} == {"board.png", "questions.json"}
            (shown,) = json.loads((board / "questions.json").read_text())
            assert list(key[board.name]["questions"]) == [shown["question_id"]] == list(key[board.name]["judge"])
            dealt.add((key[board.name]["run"], shown["question_id"]))
    assert len({board.name for board in out.glob("*/*")}) == 5 * len(_JUDGED) == len(key)
    assert len(orders) > 1
    assert len(dealt) == sum(map(len, _JUDGED.values()))


def test_single_viewers_are_pooled_by_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, key = _packed_singly(tmp_path, 8)
    # The halves of the viewers contradict each other about the owl only.
    right = {"fox": "aaaa", "hen": "aa", "crow": "bbb"}
    viewers = [
        {
            board.name: {"answers": dict.fromkeys(row["questions"], right.get(row["run"], "ab"[at > 4])[0])}
            for board in (out / f"{at:02d}").iterdir()
            for row in [key[board.name]]
        }
        for at in range(1, 9)
    ]
    said = _scored(tmp_path, viewers, capsys)
    assert "4 boards, 12 questions, 8 viewers\n" in said
    # fox 4 and hen 2 right, crow 0 of 3; the first half has the owl's 3, the second none.
    assert re.search(r"^right: judge 58\.3 \(.*\), viewers 62\.5 \(.*\), viewers more by 4\.2 \(", said, re.MULTILINE)
    assert re.search(r"^  action_visibility \(12\): judge 58\.3", said, re.MULTILINE)
    assert "questions behind a board: 3.0 (2 to 4); answers by viewers: 32\n" in said
    # Ranks of fox, crow, hen, owl: 4, 3, 2, 1 with 3.5, 1, 3.5, 2; of the halves 3, 1, 3, 3 with 3.5, 1.5, 3.5, 1.5.
    assert "over 4 boards: judge with viewers 0.21 (" in said
    assert "half of the viewers with the other half 0.58 (" in said
    # Of the owl's questions two thirds, a third and a half are right: whichever are asked, it is above crow alone.
    assert "half of the questions with the other half, by viewers: 1.00\n" in said
    # Seven of the judge's twelve are right (rank 9, the others 3); ranks by viewers: 9.5 six times, 6, 5, 4, 2.
    assert "over 12 questions: judge with viewers 0.32 (" in said
    assert "frames:" not in said
    assert "questions behind a board: 3.0 (2 to 4) and 3.0 (2 to 4)\n" in said


def test_judge_and_viewers_are_compared_over_the_same_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, key = _packed_singly(tmp_path, 4)
    fox, owl = (next(board for board, row in key.items() if row["run"] == name) for name in ("fox", "owl"))
    seen = {board: {"answers": dict.fromkeys(key[board]["questions"], "a")} for board in (fox, owl)}
    assert "right: judge 50.0 (0.0 to 100.0), viewers 100.0" in _scored(tmp_path, [seen], capsys)


def test_files_that_are_not_one_viewers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, key = _packed_singly(tmp_path, 4)
    with pytest.raises(SystemExit, match="a board twice"):
        _scored(tmp_path, [{board: {"answers": {}} for board in key}], capsys)
    with pytest.raises(SystemExit, match="no board 99"):
        _scored(tmp_path, [{"99": {"answers": {}}}], capsys)
    again = tmp_path / "again"
    again.mkdir()
    runs = [tmp_path / "fox", _run(again, "fox", ["a"])]
    with pytest.raises(SystemExit, match="same name"):
        main(["pack", *map(str, runs), "--out", str(again / "out"), "--key", str(again / "key.json")])
