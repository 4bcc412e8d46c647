"""`katha eval` has a judge take the entrance test that never took it, once, where that costs little."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import KEY, Server, Step, serving
from evals import answer, draw, records
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.entrance import CALLS, costs_little, inquiries

PRICED, UNPRICED = "openai:gpt-4o", "openai:toy"
STORIES, ASKED = 2, 24


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    def good(number: int, body: dict[str, Any]) -> Step:
        return {"text": answer(body)}

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    with serving("openai", good) as running:
        yield running


@pytest.fixture
def ask(server: Server, tmp_path: Path) -> Any:
    (tmp_path / "stories.jsonl").write_text("\n".join(record.model_dump_json() for record in records(STORIES)))
    boards = draw(tmp_path / "flux", records(STORIES)).folder

    def call(judge: str, out: str, *words: str) -> Any:
        given = ["eval", "stories.jsonl", "--boards", str(boards), "--resamples", "9", "--judge", judge]
        done = CliRunner().invoke(app, [*given, "--base-url", server.url, "--out", out, *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done

    return call


def test_a_judge_is_tested_once_and_its_result_stands_beside_every_score(
    server: Server, ask: Any, tmp_path: Path
) -> None:
    first = ask(PRICED, "first")
    assert server.number == ASKED + CALLS
    assert "Entrance test (openai:gpt-4o): " in first.stdout
    assert "of 6 right (blank " in first.stdout
    notes = json.loads((tmp_path / "first" / "scores.json").read_text())["notes"]
    assert any(note.startswith("Entrance test (openai:gpt-4o)") for note in notes)
    again = ask(PRICED, "again", "--answers", "choice")
    assert server.number == CALLS + 2 * ASKED, "other questions are asked, and no test"
    assert "Entrance test (openai:gpt-4o): " in again.stdout
    assert "not taken" not in again.stdout
    ask(PRICED, "first")
    assert server.number == CALLS + 2 * ASKED


def test_a_dry_run_says_what_the_test_is_of_the_calls(server: Server, ask: Any) -> None:
    told = ask(PRICED, "out", "--dry-run").stdout
    assert f"{ASKED + CALLS} calls" in told
    assert f"{CALLS} of the calls are the entrance test, asked once; --no-entrance leaves it out." in told
    found = json.loads(ask(PRICED, "out", "--dry-run", "--json").stdout)["judges"]["openai:gpt-4o"]
    assert (found["calls"], found["entrance"]) == (ASKED + CALLS, CALLS)
    assert "entrance" not in ask(PRICED, "out", "--dry-run", "--no-entrance").stdout
    assert server.number == 0


@pytest.mark.parametrize(("judge", "words"), [(PRICED, ["--no-entrance"]), (UNPRICED, [])])
def test_nobody_is_tested_who_is_not_to_be_or_whose_price_nobody_knows(
    server: Server, ask: Any, judge: str, words: list[str]
) -> None:
    told = ask(judge, "out", *words)
    assert server.number == ASKED
    assert f"Entrance test ({judge}): not taken; --entrance asks it, 6 calls once." in told.stdout


def test_a_test_that_is_asked_for_is_taken_at_any_price(server: Server, ask: Any) -> None:
    ask(UNPRICED, "out", "--entrance")
    assert server.number == ASKED + CALLS


def test_a_recording_of_before_is_replayed_without_the_test(server: Server, ask: Any) -> None:
    ask(PRICED, "out", "--no-entrance", "--record", "board.katha")
    asked = server.number
    told = ask(PRICED, "other", "--replay", "board.katha")
    assert server.number == asked
    assert "not taken" in told.stdout


def test_a_recording_with_the_test_has_it_again(server: Server, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ask(PRICED, "out", "--record", "board.katha").stdout
    asked = server.number
    monkeypatch.setenv("KATHA_CACHE", "another")
    after = ask(PRICED, "other", "--replay", "board.katha").stdout
    assert server.number == asked
    (line,) = (line for line in before.splitlines() if line.startswith("Entrance test"))
    assert line in after


def test_what_nobody_can_read_is_not_asked_again(server: Server, ask: Any) -> None:
    server.rule = lambda number, body: {"text": "No." if number < CALLS else answer(body)}
    told = ask(PRICED, "out")
    assert "0 of 6 right" in told.stdout
    assert "6 without an answer" in told.stdout
    asked = server.number
    assert "0 of 6 right" in ask(PRICED, "out", "--resamples", "8").stdout
    assert server.number == asked


def test_little_is_cents_or_a_tenth_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cheap, unknown = (OpenAIJudge(name.removeprefix("openai:")) for name in (PRICED, UNPRICED))
    assert len(inquiries()) == CALLS
    assert costs_little(cheap, 1)
    assert not costs_little(unknown, 10 * CALLS - 1)
    assert costs_little(unknown, 10 * CALLS)
    cheap.price = {"input": 500.0, "output": 2_000.0}
    assert not costs_little(cheap, 1)
