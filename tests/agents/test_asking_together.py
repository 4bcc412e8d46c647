"""What a story costs where its questions are asked together: calls at a server, the same answers, and the dry run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from api_server import KEY, Server, Step, serving
from asked import asked_in, reply_to
from doubles import plugins, story

from katha.agents.run import run_story
from katha.config import Settings
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.answers import read_answers
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.needs import run_needs
from katha.models.client import Backoff
from katha.schema import Answer, StoryRecord

MODEL = "gpt-4o-2024-11-20"
Serve = Callable[..., Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def start(rule: Callable[[int, dict[str, Any]], Step] = lambda number, body: {"text": reply_to(body)}) -> Server:
        return running.enter_context(serving("openai", rule))

    with ExitStack() as running:
        yield start


def run(
    out: Path, server: Server, monkeypatch: pytest.MonkeyPatch, record: StoryRecord, **changes: Any
) -> dict[tuple[str | None, str, str], Answer]:
    """The answers of a run of its own cache by method, question and condition."""
    monkeypatch.setenv("KATHA_CACHE", str(out / "cache"))
    budget = changes.pop("budget", None)
    judge = OpenAIJudge(MODEL, base_url=server.url, backoff=Backoff(max_retries=1, sleep=lambda seconds: None))
    who = {"planner": "scenes", "renderer": "block", "judges": (f"openai:{MODEL}",)}
    config = Settings(**{**who, "seeds": (42,), "matching": "exact-set", **changes})
    run_story(record, config, out / "run", plugins=plugins(judges={f"openai:{MODEL}": judge}, budget=budget))
    judge.close()
    rows = read_answers(out / "run" / "answers.jsonl")
    return {(row.method, row.question_id, row.condition): row for row in rows}


def said(rows: dict[tuple[str | None, str, str], Answer]) -> dict[tuple[str | None, str, str], object]:
    return {name: (row.status, row.answer, row.image_support, row.confidence) for name, row in rows.items()}


@pytest.mark.parametrize(("panels", "most"), [(6, 20), (17, 30)])
def test_a_story_takes_a_call_for_each_packet(
    panels: int, most: int, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, server = story(scenes=panels), serve()
    rows = run(tmp_path / "together", server, monkeypatch, record)
    packets = {(row.packet_sha256, row.role) for row in rows.values()}
    assert len(packets) <= server.number <= most
    assert all(row.status == "ok" for row in rows.values())
    singly = serve()
    monkeypatch.setattr(OpenAIJudge, "asks_together", False)
    apart = run(tmp_path / "singly", singly, monkeypatch, record)
    assert said(apart) == said(rows)
    assert singly.number > 4 * server.number
    assert sum(map(len, singly.bodies)) > 3 * sum(map(len, server.bodies))


def test_no_run_takes_more_calls_than_its_dry_run_says(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ask in ("together", "singly"):
        for mode in ("base", "full"):
            server, record = serve(), story(scenes=6)
            run(tmp_path / ask / mode, server, monkeypatch, record, ask=ask, mode=mode)
            config = Settings(judges=(f"openai:{MODEL}",), seeds=(42,), ask=ask, mode=mode)
            (need,) = (need for need in run_needs([record], config).needs if need.kind == "answers")
            assert server.number <= need.calls
            if mode == "base":
                assert server.number == need.calls


def test_the_report_is_asked_singly_where_that_is_wanted(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    rows = run(tmp_path, server, monkeypatch, story(), ask="singly")
    assert {bool(row.usage.get("together")) for row in rows.values() if row.role == "reporting"} == {False}
    assert all(row.usage["together"] > 1 for (name, _, _), row in rows.items() if name == "candidate:42")
    asked = [asked_in(server.body(number)) for number in range(server.number)]
    assert {call.pictures for call in asked if call.together} <= {2, 3, 5, 6}


def test_a_run_of_which_calls_failed_asks_only_these_again(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, broken = serve(), [True]

    def rule(number: int, body: dict[str, Any]) -> Step:
        fails = broken[0] and not any(part["type"] != "text" for part in body["messages"][0]["content"])
        return {"status": 500} if fails else {"text": reply_to(body)}

    server, record = serve(rule), story()
    first = run(tmp_path / "a", server, monkeypatch, record)
    lost = [row for row in first.values() if row.status != "ok"]
    assert {(row.condition, row.status) for row in lost} == {(name, "transport_failed") for name in ("none", "text")}
    broken[0], before = False, server.number
    again = run(tmp_path / "a", server, monkeypatch, record)
    assert server.number == before + 2
    assert said(again) == said(run(tmp_path / "b", good, monkeypatch, record))


def test_a_call_is_one_of_the_budget(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server, budget = serve(), Budget(max_cost=100.0)
    run(tmp_path, server, monkeypatch, story(), budget=budget)
    assert budget.calls == server.number
    each = (10 * 2.5 + 100 * 1.25 + 20 * 10.0) / 1e6
    assert budget.cost == pytest.approx(server.number * each)
    rows = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    unlike = {(row["packet_sha256"], row["prompt_sha256"]): row["usage"].get("cost", 0.0) for row in rows}
    assert sum(unlike.values()) == pytest.approx(budget.cost)


def test_a_board_of_two_frames_is_asked_once(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server, record = serve(), story(scenes=2)
    unbound = [
        item.model_copy(
            update={"question_id": f"{name}-{item.question_id}", "gold_answer": name, "target_transition": None}
            | {"question_type": "temporal_order", "question": f"{name}?", "accepted_answers": [name]}
        )
        for item in record.recoverability_questions
        for name in ("before", "after")
    ]
    record = record.model_copy(update={"recoverability_questions": [*record.recoverability_questions, *unbound]})
    rows = run(tmp_path, server, monkeypatch, record, mode="base")
    whole, pair = (
        {row.question_id: row.prompt_sha256 for (name, _, _), row in rows.items() if name == board}
        for board in ("candidate:42", "candidate:42/transition:1-2")
    )
    assert 0 < len(pair) < len(whole)
    assert pair.items() <= whole.items()
    assert [asked_in(server.body(number)).pictures for number in range(server.number)] == [2, 0, 0, 2, 2]
