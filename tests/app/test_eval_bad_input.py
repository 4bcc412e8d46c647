"""`katha eval` on bad records: one clear sentence with file, line and field, exit code 2, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "lion_and_mouse.json"


def story(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return record | changes


def asked(**changes: Any) -> dict[str, Any]:
    return story(recoverability_questions=[story()["recoverability_questions"][0] | changes])


NAN = json.dumps(story()).replace('"scene_index": 1', '"scene_index": NaN', 1)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([story(), story()], r"line 2: the story id 'lion_and_mouse' was used before"),
        ([asked(), "{broken"], r"line 2 is not JSON: .*\(column 2\)"),
        (["[1]"], r"line 1: a story record must be a JSON object"),
        ([NAN], r"line 1 is not JSON: NaN is not a JSON number"),
        ([story(story_id="../../etc")], r"line 1: .*never a path"),
        ([story(story_id="/etc/passwd")], r"line 1: .*never a path"),
        ([story(scenes=story()["scenes"][:4])], r"line 1: .*field 'transitions' must join adjacent scenes"),
        ([asked(question_type="smell")], r"line 1: .*field 'recoverability_questions.0.question_type'"),
        ([asked(gold_answer="", accepted_answers=[])], r"line 1: .*field 'gold_answer' is empty"),
        ([asked(target_transition=[4, 7])], r"line 1: .*field 'target_transition' names \[4, 7\]"),
        (
            [story(recoverability_questions=[story()["recoverability_questions"][0]] * 2)],
            r"line 1: .*question id 'lion_and_mouse_action_1' is used twice",
        ),
    ],
)
def test_a_bad_record_is_named_and_nothing_is_begun(tmp_path: Path, rows: list[Any], says: str) -> None:
    source = tmp_path / "stories.jsonl"
    source.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    (tmp_path / "boards").mkdir()
    words = ["eval", source, "--boards", tmp_path / "boards", "--out", tmp_path / "out"]
    told = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(told.exception, UsageError)
    assert told.exception.exit_code == 2
    with pytest.raises(UsageError, match=says):
        raise told.exception
    assert "stories.jsonl" in told.exception.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--matching", "nli"], "needs a model"),
        (["--matching", "llm:nobody:x"], "No judge is called 'nobody'"),
        (["--matching", "magic"], "No matching rule is called 'magic'"),
        (["--evaluator", "magic"], "No evaluator is called 'magic'"),
        (["--variants", "nowhere.jsonl"], "Cannot read 'nowhere.jsonl'"),
        (["--evaluator", "tifa", "--variants", "nowhere.jsonl"], "has no contrastive pairs"),
    ],
)
def test_a_wrong_option_is_refused_before_any_work(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "boards").mkdir()
    told = CliRunner().invoke(
        app, ["eval", str(EXAMPLE), "--boards", str(tmp_path / "boards"), "--out", str(tmp_path / "out"), *words]
    )
    assert isinstance(told.exception, UsageError)
    assert says in told.exception.message
    assert not (tmp_path / "out").exists()
