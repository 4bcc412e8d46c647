"""`katha eval --batch` over the real SDKs: nothing is paid twice, whatever is lost on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from api_server import KEY, BatchServer, Step, batching
from evals import Watcher, draw, records

from katha.errors import JudgeError, UsageError
from katha.eval_bridge.judges.anthropic import AnthropicJudge
from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, EvalResult, evaluate
from katha.models.client import Backoff
from katha.protocols import Judge
from katha.schema import ASKED
from katha.store import Store

KINDS: dict[str, tuple[type[ApiJudge], str]] = {
    "anthropic": (AnthropicJudge, "claude-haiku-4-5-20251001"),
    "openai": (OpenAIJudge, "gpt-4o-2024-11-20"),
}
STORIES = 4
CALLS = STORIES * 3 * len(ASKED)
AT_ONCE = Backoff(max_retries=2, busy_retries=3, sleep=lambda seconds: None)


def answer(body: dict[str, Any]) -> str:
    """Right with the text, and by the images alone for the causal questions."""
    form = body.get("response_format", {}).get("json_schema") or body["output_config"]["format"]
    parts = body["messages"][0]["content"]
    right = "causal" in parts[-1]["text"] or any("Story s" in part.get("text", "") for part in parts)
    values = {name: rule.get("enum", ["gold"])[0] for name, rule in form["schema"]["properties"].items()}
    return json.dumps(values | {"final_answer" if "final_answer" in values else "answer": "gold" if right else "other"})


def good(body: dict[str, Any]) -> Step:
    return {"text": answer(body)}


@pytest.fixture(params=sorted(KINDS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(provider: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ExitStack() as running:
        yield running.enter_context(batching(provider, good))


def go(tmp: Path, server: BatchServer, out: str = "out", *, beside: Judge | None = None, **options: Any) -> EvalResult:
    stories = records(STORIES)
    kind, model = KINDS[server.provider]
    judge = kind(model, base_url=server.url, backoff=AT_ONCE)
    judges: dict[str, Judge] = {"api": judge} | ({"beside": beside} if beside is not None else {})
    settings = EvalSettings(resamples=20, controls=options.pop("controls", ()))
    with Store(tmp / f"cache-{out}") as store:
        try:
            job = EvalJob(stories, [draw(tmp / "flux", stories)], judges, settings)
            return evaluate(job, tmp / out, store, **({"batch": True} | options))
        finally:
            judge.close()


def test_a_batch_gives_what_calls_give(tmp_path: Path, server: BatchServer) -> None:
    told: list[tuple[str, int, int]] = []
    result = go(tmp_path, server, on_batch=lambda *state: told.append(state))
    assert (result.state.status, result.state.done.statuses) == ("finished", {"ok": CALLS})
    assert (len(server.made), server.asked, server.single_calls) == (1, CALLS, 0)
    assert told == [("api", 0, 1), ("api", 1, 1)]
    single = go(tmp_path, server, out="single", batch=False)
    assert (server.asked, server.single_calls) == (CALLS, CALLS)
    assert single.scores == result.scores
    costs = [one.state.done.calls["api"].cost for one in (result, single)]
    assert costs[0] == pytest.approx(costs[1] / 2)
    assert go(tmp_path, server).reused


def test_requests_are_those_of_single_calls(tmp_path: Path, server: BatchServer, provider: str) -> None:
    go(tmp_path, server)
    keys = [key for batch in server.made for key, _ in batch.requests]
    assert len(set(keys)) == CALLS
    assert all(len(key) == 64 for key in keys)
    asked = [body["messages"][0]["content"] for batch in server.made for _, body in batch.requests]
    blind = [parts for parts in asked if len(parts) == 1 or not any("image" in part["type"] for part in parts)]
    blind = [parts for parts in blind if "neither the story nor any picture" in json.dumps(parts)]
    assert len(blind) == STORIES * 3
    assert not any("Story s" in json.dumps(parts) for parts in blind)
    body = server.made[0].requests[-1][1]
    assert body["temperature"] == 0
    assert ("output_config" if provider == "anthropic" else "response_format") in body


def test_what_the_batch_did_not_bring_is_a_typed_failure_and_asked_again(
    tmp_path: Path, server: BatchServer, provider: str
) -> None:
    def rule(body: dict[str, Any]) -> Step:
        words = body["messages"][0]["content"][-1]["text"]
        if "s1" in words:
            return {"failed": "expired"}
        if "s2 and moral" in words:
            return {"failed": "errored"}
        return {"text": "prose"} if "s3 and causal" in words else good(body)

    server.rule = rule
    result = go(tmp_path, server)
    assert result.state.done.statuses == {"ok": CALLS - 20, "transport_failed": 16, "unparseable": 4}
    assert result.state.status == "incomplete"
    rows = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_bytes().splitlines()]
    failed = [row for row in rows if row["status"] == "transport_failed"]
    assert {row["answer"] for row in failed} == {None}
    assert all("expired" in row["error"] for row in failed if row["story_id"] == "s1")
    server.rule = good
    again = go(tmp_path, server)
    assert (again.state.status, server.asked, server.single_calls) == ("finished", CALLS + 16, 0)
    assert again.state.done.statuses == {"ok": CALLS - 4, "unparseable": 4}


def test_an_answer_that_never_came_does_not_make_a_second_batch(tmp_path: Path, server: BatchServer) -> None:
    server.lose = 1
    result = go(tmp_path, server)
    assert (result.state.status, len(server.made), server.asked) == ("finished", 1, CALLS)


def test_a_vendor_that_stays_away_loses_nothing(tmp_path: Path, server: BatchServer) -> None:
    server.busy = 99
    with pytest.raises(JudgeError, match="429"):
        go(tmp_path, server)
    server.busy = 0
    result = go(tmp_path, server)
    assert (result.state.status, len(server.made), server.asked) == ("finished", 1, CALLS)


def test_many_small_batches(tmp_path: Path, server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = {"price": 0.5, "requests": 10, "bytes": 10_000_000, "poll": 0.0}
    monkeypatch.setattr(ApiJudge, "batch_terms", property(lambda self: terms))
    assert go(tmp_path, server).state.status == "finished"
    assert [len(batch.requests) for batch in server.made] == [10, 10, 10, 10, 8]
    assert not list((tmp_path / "out" / "batches").glob("*.requests.jsonl"))


def test_a_budget_bounds_a_batch(tmp_path: Path, server: BatchServer) -> None:
    result = go(tmp_path, server, budget=Budget(max_calls=7))
    assert result.state.done.statuses == {"ok": 7, "budget_stopped": CALLS - 7}
    assert (result.state.status, server.asked) == ("budget_stopped", 7)
    assert go(tmp_path, server).state.done.statuses == {"ok": CALLS}
    assert server.asked == CALLS


def test_judges_without_batches_are_asked_as_ever(tmp_path: Path, server: BatchServer) -> None:
    watcher = Watcher()
    result = go(tmp_path, server, beside=watcher)
    assert (watcher.asked, server.asked, result.state.done.statuses) == (CALLS, CALLS, {"ok": 2 * CALLS})


def test_what_cannot_be_batched_is_refused(tmp_path: Path, server: BatchServer) -> None:
    with pytest.raises(UsageError, match="repeat"):
        go(tmp_path, server, controls=("repeat",))
    job = EvalJob(records(1), [draw(tmp_path / "flux", records(1))], {"w": Watcher()}, EvalSettings())
    with Store(tmp_path / "cache") as store, pytest.raises(UsageError, match="no judge here has a batch API"):
        evaluate(job, tmp_path / "no", store, batch=True)
    assert not (tmp_path / "no").exists()


def _command(tmp: Path, server: BatchServer) -> Callable[[], subprocess.Popen[str]]:
    stories = records(STORIES)
    (tmp / "stories.jsonl").write_text("\n".join(record.model_dump_json() for record in stories))
    kind, model = KINDS[server.provider]
    words = [str(Path(sys.executable).parent / "katha"), "eval", str(tmp / "stories.jsonl"), "--resamples", "20"]
    words += ["--boards", str(draw(tmp / "flux", stories).folder), "--out", str(tmp / "out"), "--batch", "--json"]
    words += ["--judge", f"{kind.PROVIDER}:{model}", "--base-url", server.url, "--judge-option", "poll=0.02"]
    environment = {**os.environ, "KATHA_CACHE": str(tmp / "cache")}
    return lambda: subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_sigkill_while_the_batch_is_made_and_while_it_is_waited_for(tmp_path: Path, server: BatchServer) -> None:
    """Killed before the id came back, then while polling: one batch is made and paid in all."""
    start = _command(tmp_path, server)
    made = threading.Event()
    children: list[subprocess.Popen[str]] = []

    def kill() -> None:
        children[-1].send_signal(signal.SIGKILL)
        made.set()

    server.on_create, server.looks = kill, 10**9
    children.append(start())
    assert made.wait(90)
    children[-1].communicate(timeout=30)
    (record,) = (json.loads(path.read_text()) for path in (tmp_path / "out" / "batches").glob("*.json"))
    assert (record["state"], record["batch_id"]) == ("ready", None)
    server.on_create = lambda: None
    looked = server.made[0].looks
    children.append(start())
    while server.made[0].looks > looked - 3:
        assert children[-1].poll() is None
        threading.Event().wait(0.01)
    children[-1].send_signal(signal.SIGKILL)
    children[-1].communicate(timeout=30)
    server.made[0].looks = 1
    children.append(start())
    output, errors = children[-1].communicate(timeout=120)
    assert children[-1].returncode == 0, errors
    assert json.loads(output)["statuses"] == {"ok": CALLS}
    assert (len(server.made), server.asked, server.single_calls) == (1, CALLS, 0)
