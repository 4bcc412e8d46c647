"""The API judges through the real SDKs against servers on this machine that fail in every way we know."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from api_server import GOOD, KEY, Server, Step, serving
from doubles import KeptAnswers
from PIL import Image

from katha.errors import JudgeError, UsageError
from katha.eval_bridge.judges.anthropic import AnthropicJudge
from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.abilities import judge_name
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.packets.instructions import reply_schema
from katha.eval_bridge.packets.packets import make_packet
from katha.models.client import Backoff, Pacer
from katha.protocols import Evidence, JudgePrompt
from katha.schema import Question

PLAIN: dict[str, Any] = {"structured": False}
JUDGES: dict[str, tuple[type[ApiJudge], str]] = {
    "anthropic": (AnthropicJudge, "claude-haiku-4-5-20251001"),
    "openai": (OpenAIJudge, "gpt-4o-2024-11-20"),
}


def prompt(number: int = 0) -> JudgePrompt:
    options = ("a fox", "a crow", "Unclear")
    return JudgePrompt(f"Who is it ({number})?", "causal", "Look.", options, reply_schema("image", options))


Serve = Callable[..., tuple[Server, ApiJudge, list[float]]]


@pytest.fixture(params=sorted(JUDGES))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serve(provider: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def start(*steps: Step, rule: Callable[[int, dict[str, Any]], Step] | None = None, **options: Any) -> Any:
        answer = rule or (lambda number, body: steps[min(number, len(steps) - 1)])
        server = running.enter_context(serving(provider, answer))
        waits: list[float] = []
        kind, model = JUDGES[provider]
        backoff = Backoff(max_retries=2, busy_retries=3, sleep=waits.append)
        judge = kind(options.pop("model", model), base_url=server.url, **({"backoff": backoff} | options))
        running.callback(judge.close)
        return server, judge, waits

    with ExitStack() as running:
        yield start


EVIDENCE = Evidence("image", (b"png-one", b"png-two"))


def test_request_shape(serve: Serve, provider: str) -> None:
    server, judge, _ = serve({})
    (reply,) = judge.ask(EVIDENCE, [prompt()])
    assert (reply.status, reply.answer, reply.confidence) == ("ok", "a fox", "high")
    body = json.loads(server.bodies[0])
    content = body["messages"][0]["content"]
    kinds = [part["type"] for part in content]
    picture = "image" if provider == "anthropic" else "image_url"
    assert kinds == ["text", picture, "text", picture, "text", "text"]
    assert [part["text"] for part in content if "text" in part][:3] == ["Picture 1", "Picture 2", "Look."]
    assert "cG5nLW9uZQ==" in json.dumps(content[1])
    assert "cG5nLXR3bw==" in json.dumps(content[3])
    assert body["temperature"] == 0
    assert not {"metadata", "user"} & set(body)
    if provider == "anthropic":
        assert [number for number, part in enumerate(content) if "cache_control" in part] == [3]
        schema = body["output_config"]["format"]["schema"]
        assert server.headers[0]["anthropic-version"] == "2023-06-01"
    else:
        schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["answer"]["enum"] == ["a fox", "a crow", "Unclear"]


def test_usage_and_cost(serve: Serve, provider: str) -> None:
    (reply,) = serve({})[1].ask(EVIDENCE, [prompt()])
    cost = {"anthropic": 10 * 1.0 + 5 * 1.25 + 100 * 0.1 + 20 * 5.0, "openai": 10 * 2.5 + 100 * 1.25 + 20 * 10.0}
    assert reply.usage["cost"] == pytest.approx(cost[provider] / 1e6)
    assert reply.usage["tokens"]["cached"] == 100
    (reply,) = serve({}, model="unheard-of")[1].ask(EVIDENCE, [prompt()])
    assert reply.usage["cost"] is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("It is a fox, I think.", "unparseable"),
        (GOOD[:20], "unparseable"),
        ('{"other": 1}', "unparseable"),
        ('{"answer": "a wolf", "confidence": "high"}', "unparseable"),
        ("", "unparseable"),
        ("x" * 2_000_000, "unparseable"),
        (GOOD, "ok"),
    ],
    ids=["prose", "half", "other", "no option", "empty", "2MB", "good"],
)
def test_replies(serve: Serve, text: str, status: str) -> None:
    server, judge, _ = serve({"text": text})
    (reply,) = judge.ask(EVIDENCE, [prompt()])
    assert reply.status == status
    assert (reply.answer is None) == (status != "ok")
    assert len(reply.raw or "") <= 2_000
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (f"<think>It is {{a bird}}.</think>\n{GOOD}", "ok"),
        (f"Sure!\n```json\n{GOOD}\n```\nAnything else?", "ok"),
        ([{"type": "text", "text": GOOD}], "ok"),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "I look."}]}, {"type": "text", "text": GOOD}],
            "ok",
        ),
        ([{"type": "reasoning", "text": GOOD}], "ok"),
        (7, "unparseable"),
        (f"<think>{GOOD}", "unparseable"),
    ],
    ids=["thought", "fence", "part", "thinking part", "only reasoning", "a number", "open thought"],
)
def test_shapes_of_messages(serve: Serve, provider: str, content: object, status: str) -> None:
    if provider == "anthropic" and not isinstance(content, str):
        return  # its messages are parts, which its SDK reads
    server, judge, _ = serve({"text": content} if isinstance(content, str) else {"message": {"content": content}})
    (reply,) = judge.ask(EVIDENCE, [prompt()])
    assert (reply.status, reply.answer) == (status, "a fox" if status == "ok" else None)
    assert len(server.bodies) == 1  # what will not change is not paid for again
    if isinstance(content, str) and status == "ok":
        assert reply.raw == content


def test_an_answer_among_the_thoughts_is_read_where_there_is_none_elsewhere(serve: Serve, provider: str) -> None:
    if provider == "anthropic":
        return  # it has no such field
    for name in ("reasoning_content", "reasoning"):
        _, judge, _ = serve({"message": {"content": None, name: f"I look. {GOOD}"}})
        (reply,) = judge.ask(EVIDENCE, [prompt()])
        assert (reply.status, reply.answer) == ("ok", "a fox")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"answer": "a fox", "confidence": "high", "reasoning": "so"}, "has 'reasoning' beside the schema's answer"),
        ({"answer": "a fox"}, "lacks 'confidence'"),
        ("a fox", "not JSON"),
    ],
)
def test_what_is_wrong_is_named_with_the_remedy(serve: Serve, said: object, words: str) -> None:
    for options, remedy in (({}, "structured=false"), (PLAIN, "another one")):
        _, judge, _ = serve({"text": json.dumps(said) if isinstance(said, dict) else str(said)}, **options)
        (reply,) = judge.ask(EVIDENCE, [prompt()])
        assert reply.status == "unparseable"
        assert words in str(reply.error)
        assert remedy in str(reply.error)


def test_a_server_that_finds_a_call_too_large_is_sent_smaller_pictures(serve: Serve) -> None:
    large = picture(300)
    allowed = len(large)  # in base64 it is a third more

    def rule(number: int, body: dict[str, Any]) -> Step:
        return {"status": 413} if len(json.dumps(body)) > allowed else {}

    server, judge, _ = serve(rule=rule)
    before = judge.amended
    replies = list(judge.ask(Evidence("image", (large,)), [prompt(0), prompt(1)]))
    assert [reply.status for reply in replies] == ["ok", "ok"]
    assert [len(body) > allowed for body in server.bodies] == [True, False, False]
    assert judge.amended != before  # and with it the key that answers are kept by
    never, judge, _ = serve({"status": 413})
    (reply,) = judge.ask(Evidence("image", (large,)), [prompt()])
    assert reply.status == "transport_failed"
    assert "picture_side" in str(reply.error)
    assert len(never.bodies) < 8


def picture(side: int) -> bytes:
    """Noise, which is large."""
    pixels = np.random.default_rng(side).integers(0, 255, (side, side, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_stops(serve: Serve, provider: str) -> None:
    cut, refused = {"anthropic": ("max_tokens", "refusal"), "openai": ("length", "content_filter")}[provider]
    _, judge, _ = serve({"stop": cut}, {"stop": refused})
    assert [reply.status for reply in judge.ask(EVIDENCE, [prompt(0), prompt(1)])] == ["truncated", "refused"]


@pytest.mark.parametrize(
    ("step", "calls", "first_wait"),
    [
        ({"status": 429, "headers": {"retry-after": "7"}}, 4, 7.0),
        ({"status": 529}, 4, 0.5),
        ({"status": 500}, 3, 0.5),
        ({"cut": True}, 3, 0.5),
        ({"hang": True}, 3, 0.5),
        ({"status": 413}, 1, None),
    ],
    ids=["429", "529", "500", "cut", "timeout", "413"],
)
def test_storms(serve: Serve, step: Step, calls: int, first_wait: float | None) -> None:
    server, judge, waits = serve(step, timeout=0.3)
    (reply,) = judge.ask(EVIDENCE, [prompt()])
    assert (reply.status, len(server.bodies), len(set(server.bodies))) == ("transport_failed", calls, 1)
    assert (waits[0] if waits else None) == (pytest.approx(first_wait, abs=0.2) if first_wait else None)
    assert KEY not in f"{reply}"


def test_recovers_with_identical_bytes(serve: Serve) -> None:
    server, judge, _ = serve({"status": 500}, {"status": 429}, {})
    (reply,) = judge.ask(EVIDENCE, [prompt()])
    assert (reply.status, reply.usage["retries"], len(set(server.bodies))) == ("ok", 2, 1)


def test_wrong_key_stops_at_once(serve: Serve, provider: str) -> None:
    server, judge, _ = serve({"status": 401, "message": f"bad key {KEY}"})
    with pytest.raises(UsageError, match=f"{provider.upper()}_API_KEY") as caught:
        list(judge.ask(EVIDENCE, [prompt(0), prompt(1)]))
    assert len(server.bodies) == 1
    assert KEY not in f"{caught.value}{judge.spec()}"


def test_missing_key(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"{provider.upper()}_API_KEY", raising=False)
    with pytest.raises(UsageError, match=f"{provider.upper()}_API_KEY"):
        JUDGES[provider][0]("some-model", base_url="https://example.org/v1")


def test_schema_fallback_once(serve: Serve) -> None:
    def rule(number: int, body: dict[str, Any]) -> Step:
        strict = {"response_format", "output_config"} & set(body)
        return {"status": 400, "message": "response_format: json_schema is not supported"} if strict else {}

    server, judge, _ = serve(rule=rule)
    before = judge.spec()
    replies = list(judge.ask(EVIDENCE, [prompt(number) for number in range(3)]))
    assert [(reply.status, reply.usage["schema_mode"]) for reply in replies] == [("ok", "plain")] * 3
    assert len(server.bodies) == 4
    assert "JSON schema" in server.bodies[1].decode()
    assert judge.spec() == before


def test_an_answer_is_kept_by_how_the_server_was_asked_for_it(serve: Serve) -> None:
    """Answers in words are those of `structured=false`, and a new process finds them after one call."""
    rejecting = True

    def rule(number: int, body: dict[str, Any]) -> Step:
        strict = {"response_format", "output_config"} & set(body)
        return {"status": 400, "message": "json_schema is not supported"} if rejecting and strict else {"text": right}

    right = json.dumps({"answer": "a fox", "confidence": "low"})
    items = [
        Question(
            question_id=f"q{number}", story_id="s", question_type="causal", question=f"Who is it ({number})?",
            gold_answer="a fox", options=["a fox", "a crow", "Unclear"],
        )
        for number in range(5)
    ]  # fmt: skip
    server, first, _ = serve(rule=rule)
    packet, evidence = make_packet("s", "text", (), "A fox sings.")
    kept = KeptAnswers()

    def asked(judge: Any) -> int:
        before, name = len(server.bodies), judge_name(judge)
        engine = JudgingEngine({name: judge}, kept, budget=Budget())
        rows = engine.ask(name, Inquiry(packet, evidence, items, None, "strict", "choice"))
        assert [row.status for row in rows] == ["ok"] * len(items)
        return len(server.bodies) - before

    again, plain, later = (type(first)(first.spec()["model"], base_url=server.url, **more) for more in ({}, PLAIN, {}))
    assert [asked(judge) for judge in (first, again, plain)] == [6, 2, 0]
    rejecting = False
    assert asked(later) == 5
    for judge in (again, plain, later):
        judge.close()


def test_no_credit_stops(serve: Serve, provider: str) -> None:
    server, judge, _ = serve({"status": 429, "code": "insufficient_quota"})
    if provider == "openai":
        with pytest.raises(JudgeError, match="credit"):
            list(judge.ask(EVIDENCE, [prompt()]))
        assert len(server.bodies) == 1


def test_random_faults_leave_no_question_out(serve: Serve) -> None:
    dice = random.Random(5)
    faults: list[Step] = [{"status": 429}, {"status": 500}, {"cut": True}, {"text": "prose"}]

    def rule(number: int, body: dict[str, Any]) -> Step:
        asked = body["messages"][0]["content"][-1]["text"].splitlines()[0]
        right = json.dumps({"answer": "a crow" if "7)" in asked else "a fox", "confidence": "low"})
        return dice.choice(faults) if dice.random() < 0.3 else {"text": right}

    _, judge, _ = serve(rule=rule)
    replies = list(judge.ask(EVIDENCE, [prompt(number) for number in range(60)]))
    assert len(replies) == 60
    assert {reply.status for reply in replies} <= {"ok", "unparseable", "transport_failed"}
    for number, reply in enumerate(replies):
        assert reply.answer == (None if reply.status != "ok" else "a crow" if number % 10 == 7 else "a fox")
    assert sum(reply.status == "ok" for reply in replies) > 40


def test_the_limit_grows_at_once_then_slowly_and_shrinks_once_a_round() -> None:
    pacer = Pacer(start=2, most=12)
    for _ in range(8):
        pacer.grow()
    assert pacer.limit == 10
    numbers = []
    for _ in range(3):
        with pacer.slot() as number:
            numbers.append(number)
    for number in numbers:
        pacer.shrink(number)
    assert pacer.limit == 8
    for _ in range(8):
        pacer.grow()
    assert pacer.limit == 8
    pacer.grow()
    assert pacer.limit == 9
    for _ in range(90):
        pacer.grow()
    assert pacer.limit == 12
    for _ in range(50):
        with pacer.slot() as number:
            pacer.shrink(number)
    assert pacer.limit == 1


def test_no_more_calls_than_the_limit_are_under_way() -> None:
    pacer, inside, most = Pacer(start=3, most=3), 0, 0
    lock, gate = threading.Lock(), threading.Barrier(3)

    def call() -> None:
        nonlocal inside, most
        with pacer.slot():
            with lock:
                inside += 1
                most = max(most, inside)
            gate.wait(20)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=call) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (most, inside) == (3, 0)


def test_a_wait_that_the_server_names_holds_for_every_call() -> None:
    now, waits = [100.0], []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    pacer = Pacer(sleep=sleep, clock=lambda: now[0])
    pacer.hold(7)
    with pacer.slot():
        pass
    with pacer.slot():
        pass
    assert waits == [7.0]
