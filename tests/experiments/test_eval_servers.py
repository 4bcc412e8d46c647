"""`katha eval` over the real SDKs: stories side by side, faults, a wrong key, budgets and SIGKILL."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from api_server import KEY, Server, Step, serving
from evals import answer, draw, records

from katha.errors import UsageError
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, EvalResult, evaluate
from katha.models.client import Backoff
from katha.schema import StoryRecord
from katha.store import Store

STORIES = 8
CALLS = STORIES * 3 * 4
"""Three questions a story, under three conditions, over one board."""
AT_ONCE = Backoff(max_retries=2, busy_retries=8, sleep=lambda seconds: None)


def good(number: int, body: dict[str, Any]) -> Step:
    return {"text": answer(body)}


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ExitStack() as running:
        yield lambda rule=good: running.enter_context(serving("openai", rule))


def go(tmp: Path, server: Server, out: str = "out", *, budget: Budget | None = None, **options: Any) -> EvalResult:
    stories = records(STORIES)
    judge = OpenAIJudge("gpt-4o-2024-11-20", base_url=server.url, **({"backoff": AT_ONCE} | options))
    job = EvalJob(stories, [draw(tmp / "flux", stories)], {"openai": judge}, EvalSettings(resamples=20))
    with Store(tmp / f"cache-{out}") as store:
        try:
            return evaluate(job, tmp / out, store, budget=budget)
        finally:
            judge.close()


def test_stories_are_asked_side_by_side(tmp_path: Path, serve: Callable[..., Server]) -> None:
    """Four calls of four stories have to be under way together before any of them is answered."""
    together, meeting = threading.Barrier(4), threading.Semaphore(4)

    def rule(number: int, body: dict[str, Any]) -> Step:
        return {"text": answer(body), "before": meet}

    def meet() -> None:
        if served.number > 12 and meeting.acquire(blocking=False):  # the first story is asked alone
            together.wait(30)

    served = serve(rule)
    result = go(tmp_path, served)
    assert not together.broken
    assert (result.state.status, len(served.bodies)) == ("finished", CALLS)
    alone = go(tmp_path, serve(), out="alone", concurrency=1)
    first, second = (tmp_path / name / "answers.jsonl" for name in ("out", "alone"))
    assert _unpaid(first) == _unpaid(second)
    assert result.scores == alone.scores


def _unpaid(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_three_faults_in_ten(tmp_path: Path, serve: Callable[..., Server]) -> None:
    dice = random.Random(3)
    faults: list[Step] = [
        {"status": 429}, {"status": 500}, {"cut": True}, {"text": "It is a fox."}, {"status": 400}, {"text": ""},
        {"stop": "length"}, {"stop": "content_filter"},
    ]  # fmt: skip

    def rule(number: int, body: dict[str, Any]) -> Step:
        return dice.choice(faults) if dice.random() < 0.3 else good(number, body)

    server = serve(rule)
    result = go(tmp_path, server)
    statuses, block = result.state.done.statuses, result.scores.methods["flux"].judges["openai"]
    assert sum(statuses.values()) == CALLS
    assert {"ok", "unparseable", "transport_failed", "truncated", "refused"} >= set(statuses)
    assert 0 < statuses["ok"] < CALLS
    assert block.n_unscored > 0
    assert block.raw.n + block.n_unscored == block.n_questions == STORIES * 3
    assert (block.raw.text, block.ambiguity_rate) == (100.0, 0.0)
    rows = _unpaid(tmp_path / "out" / "answers.jsonl")
    assert all((row["answer"] is None) == (row["status"] != "ok") for row in rows)
    assert len(server.bodies) > CALLS
    tries = Counter(server.bodies)
    assert len(tries) == CALLS, "a retry differs from what it repeats"


def test_faults_that_pass_are_asked_again_and_settled_ones_are_not(
    tmp_path: Path, serve: Callable[..., Server]
) -> None:
    def rule(number: int, body: dict[str, Any]) -> Step:
        words = body["messages"][0]["content"][-1]["text"]
        return (
            {"text": "prose"} if "s1 and causal" in words else {"status": 500} if "s2" in words else good(number, body)
        )

    server = serve(rule)
    result = go(tmp_path, server)
    assert (result.state.status, result.state.done.statuses) == (
        "incomplete", {"ok": CALLS - 16, "transport_failed": 12, "unparseable": 4}
    )  # fmt: skip
    server.rule, before = good, server.number
    again = go(tmp_path, server)
    assert (again.state.status, server.number - before) == ("finished", 12)
    assert again.state.done.statuses == {"ok": CALLS - 4, "unparseable": 4}


def test_a_wrong_key_costs_one_call(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(lambda number, body: {"status": 401})
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        go(tmp_path, server)
    assert len(server.bodies) == 1


def test_a_key_that_is_withdrawn_stops_the_run_and_loses_nothing(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve(lambda number, body: {"status": 403} if number >= 30 else good(number, body))
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        go(tmp_path, server)
    assert len(server.bodies) <= 30 + 16
    server.rule, before = good, server.number
    result = go(tmp_path, server)
    assert (server.number - before, result.state.done.statuses) == (CALLS - 30, {"ok": CALLS})
    results = result.state.done
    assert (results.calls["openai"].calls, results.spent["openai"].calls) == (CALLS - 30, CALLS)


@pytest.mark.parametrize("limits", [{"max_calls": 20}, {"max_cost": 0.015}])
def test_budgets_hold_with_many_calls_under_way(
    tmp_path: Path, serve: Callable[..., Server], limits: dict[str, Any]
) -> None:
    server = serve()
    result = go(tmp_path, server, budget=Budget(**limits))
    assert result.state.status == "budget_stopped"
    assert result.state.done.statuses == {"ok": len(server.bodies), "budget_stopped": CALLS - len(server.bodies)}
    assert 10 < len(server.bodies) <= limits.get("max_calls", CALLS)
    assert result.state.done.calls["openai"].cost <= limits.get("max_cost", 1.0)


def _command(tmp: Path, server: Server) -> tuple[list[str], dict[str, str]]:
    stories: list[StoryRecord] = records(STORIES)
    source = tmp / "stories.jsonl"
    source.write_text("\n".join(record.model_dump_json() for record in stories))
    boards = draw(tmp / "flux", stories).folder
    command = [str(Path(sys.executable).parent / "katha"), "eval", str(source), "--boards", str(boards), "--json"]
    command += ["--judge", "openai:gpt-4o", "--base-url", server.url, "--out", str(tmp / "out"), "--resamples", "20"]
    return command, {**os.environ, "KATHA_CACHE": str(tmp / "cache"), "OPENAI_API_KEY": KEY}


def test_sigkill_costs_only_the_calls_under_way(tmp_path: Path, serve: Callable[..., Server]) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def rule(number: int, body: dict[str, Any]) -> Step:
        if number == 40:
            reached.set()
        return {"text": answer(body), "before": lambda: go_on.wait(60) if number >= 40 else None}

    server = serve(rule)
    command, environment = _command(tmp_path, server)
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = reached.wait(60)
    child.send_signal(signal.SIGKILL)
    _, errors = child.communicate(timeout=30)
    assert found, errors
    go_on.set()
    before = len(server.bodies)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["statuses"] == {"ok": CALLS}
    assert before - 40 <= 16
    assert CALLS <= len(server.bodies) <= CALLS + 16 + 1
    # What the killed process paid for is on the account; the last command's own calls are fewer.
    results = json.loads((tmp_path / "out" / "eval.json").read_text())
    (called,), (spent,) = results["calls"].values(), results["spent"].values()
    assert called["calls"] <= CALLS - 23
    assert CALLS <= spent["calls"] <= len(server.bodies)
    assert spent["cost"] > called["cost"] > 0
