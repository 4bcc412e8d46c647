"""A run's numbers are what its answers say: recomputed by plain loops, and by `katha score`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from slow_score import slow_scores
from typer.testing import CliRunner

from katha.agents.run import run_story
from katha.app.cli.main import app
from katha.config import Settings
from katha.stories import load_story

FABLE = Path(__file__).parents[2] / "examples" / "fox_and_crow.json"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One fable with people's questions, run by the embedded default with two seeds."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(folder / "cache"))
        run_story(load_story(str(FABLE)), Settings(seeds=(1, 2)), folder / "out")
    return folder / "out"


def reported(scores: dict[str, Any]) -> dict[str, dict[str, Any]]:
    blocks = {name: method["judges"]["sketch-reader"] for name, method in scores["methods"].items()}
    keys = ("n", "text", "image", "text_image", "stg")
    return {
        name: {kind: {key: found[kind][key] for key in keys} for kind in ("raw", "filtered")}
        for name, found in blocks.items()
    }


def test_reported_numbers_follow_from_the_answers(run: Path) -> None:
    mine, theirs = slow_scores(run), reported(json.loads((run / "scores.json").read_text()))
    assert mine.keys() == theirs.keys() == {"base", "full"}
    for method, blocks in theirs.items():
        for kind, numbers in blocks.items():
            told = {name: number for name, number in numbers.items() if number is not None}  # else it is not measured
            assert {name: mine[method][kind][name] for name in told} == pytest.approx(told), (method, kind)
            assert "n" in told
    assert theirs["base"]["raw"]["n"] > 0


def test_scoring_the_files_again_gives_the_same_numbers(run: Path, tmp_path: Path) -> None:
    rows = [
        line for line in (run / "answers.jsonl").read_text().splitlines() if json.loads(line)["role"] == "reporting"
    ]
    answers, out = tmp_path / "reporting.jsonl", tmp_path / "scores.json"
    answers.write_text("\n".join(rows) + "\n")
    command = ["score", str(run / "story.jsonl"), "--answers", str(answers), "--out", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert reported(json.loads(out.read_text())) == reported(json.loads((run / "scores.json").read_text()))


def test_another_answer_gives_another_number(run: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (run / "answers.jsonl").read_text().splitlines()]
    for row in rows:
        row["answer"] = "Unclear" if row["condition"] == "text" else row["answer"]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "story.jsonl").write_text((run / "story.jsonl").read_text())
    assert slow_scores(tmp_path)["base"]["raw"]["text"] == 0 != slow_scores(run)["base"]["raw"]["text"]
