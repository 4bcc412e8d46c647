"""Which stories a judge remembers: asked once, kept as an evaluation keeps it, counted by story and family."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from evals import Watcher, go, records
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.matching.rules import open_rule
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.remembered import Recall, recall
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import StoryRecord
from katha.store import Store


class Reader(Watcher):
    """Knows story s0 by heart, says nothing of the last one's moral, and else guesses the first option."""

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        assert (evidence.text, evidence.images) == (None, ())
        for prompt in prompts:
            self.asked += 1
            assert "Unclear" not in (prompt.options or ())
            if "s2 and moral" in prompt.question:
                yield JudgeReply("refused", error="no guess")
            else:
                yield JudgeReply("ok", "gold" if "s0" in prompt.question else "other")


def stories() -> list[StoryRecord]:
    families = ("aesop", "aesop", "grimm")
    return [
        record.model_copy(update={"provenance": {"source_dataset": family}})
        for record, family in zip(records(), families, strict=True)
    ]


def asked(tmp: Path, judge: Watcher, *, answers: str = "choice", budget: Budget | None = None) -> Recall:
    settings = EvalSettings.model_validate({"answers": answers})
    with Store(tmp / "cache") as store:
        return recall(stories(), {"j": judge}, settings, store, open_rule("lemma-set"), budget=budget)


def test_what_is_known_by_heart_stands_by_story_and_family(tmp_path: Path) -> None:
    found = asked(tmp_path, Reader()).judges["j"]
    assert {name: (row.n, row.right) for name, row in found.by_story.items()} == {
        "s0": (3, 100.0),
        "s1": (3, 0.0),
        "s2": (2, 0.0),
    }
    assert {name: (row.n, row.right) for name, row in found.by_family.items()} == {
        "aesop": (6, 50.0),
        "grimm": (2, 0.0),
    }
    assert (found.n, found.n_unscored, found.chance) == (8, 1, 25.0)
    assert found.right == pytest.approx(300 / 8)
    assert asked(tmp_path, Reader(), answers="free").judges["j"].chance is None


def test_it_is_what_an_evaluation_asks_and_is_not_asked_again(tmp_path: Path) -> None:
    result = go(tmp_path, [Watcher()])
    guesses = result.scores.methods["flux"].judges["watcher"].guesses
    assert guesses is not None
    judge = Watcher()
    found = asked(tmp_path, judge).judges["j"]
    assert judge.asked == 0
    assert found.n == guesses.n == 9
    right = sum(row.n * (row.none or 0.0) for row in guesses.by_dimension.values())
    assert found.right == pytest.approx(right / 9)
    fresh = Watcher()
    stopped = asked(tmp_path / "other", fresh, budget=Budget(max_calls=4))
    assert (fresh.asked, stopped.judges["j"].n, stopped.outcome.statuses["budget_stopped"]) == (4, 4, 5)


def test_the_command_prints_a_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "stories.jsonl"
    path.write_text("".join(record.model_dump_json() + "\n" for record in stories()))
    words = ["bench", "remembered", str(path), "--judge", "sketch-reader"]
    told = CliRunner().invoke(app, words, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert [line.split()[0] for line in told.output.splitlines()[:4]] == ["sketch-reader", "all", "aesop", "grimm"]
    value = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).output)
    found = value["judges"]["sketch-reader"]
    assert (found["n"], found["chance"], set(found["by_story"])) == (9, 25.0, {"s0", "s1", "s2"})
