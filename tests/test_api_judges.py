"""The API judges through the real SDKs against servers on this machine that fail in every way we know."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from katha.errors import JudgeError, UsageError
from katha.eval_bridge.instructions import reply_schema
from katha.eval_bridge.judges.anthropic import AnthropicJudge
from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judges.failures import Backoff
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judges.pacing import Pacer
from katha.protocols import Evidence, JudgePrompt

KEY = "sk-very-secret"
GOOD = '{"answer": "a fox", "confidence": "high"}'
Step = dict[str, Any]
JUDGES: dict[str, tuple[type[ApiJudge], str]] = {
    "anthropic": (AnthropicJudge, "claude-haiku-4-5-20251001"),
    "openai": (OpenAIJudge, "gpt-4o-2024-11-20"),
}


def prompt(number: int = 0) -> JudgePrompt:
    options = ("a fox", "a crow", "Unclear")
    return JudgePrompt(f"Who is it ({number})?", "causal", "Look.", options, reply_schema("image", options))


def body_of(provider: str, step: Step) -> dict[str, Any]:
    text = step.get("text", GOOD)
    if provider == "anthropic":
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100}
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "served",
            "content": [{"type": "text", "text": text}],
            "stop_reason": step.get("stop", "end_turn"), "usage": {**usage, "output_tokens": 20},
        }  # fmt: skip
    details = {"cached_tokens": 100}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "served",
        "choices": [{"index": 0, "finish_reason": step.get("stop", "stop"),
                     "message": {"role": "assistant", "content": text, "refusal": step.get("refusal")}}],
        "usage": {"prompt_tokens": 110, "completion_tokens": 20, "total_tokens": 130, "prompt_tokens_details": details},
    }  # fmt: skip


class Server(ThreadingHTTPServer):
    """Answers each request with what `rule` says; keeps the bodies and headers that came."""

    daemon_threads = True

    def __init__(self, provider: str, rule: Callable[[int, dict[str, Any]], Step]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.provider, self.rule, self.lock = provider, rule, threading.Lock()
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}" + ("/v1" if self.provider == "openai" else "")


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append(raw)
            self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
            step = self.server.rule(number, json.loads(raw))
        if step.get("hang"):
            self.server.release.wait(20)
            return
        status = step.get("status", 200)
        error = {"error": {"type": "bad", "message": step.get("message", "no"), "code": step.get("code")}}
        data = json.dumps(body_of(self.server.provider, step) if status == 200 else error).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in step.get("headers", {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if step.get("cut") else data)
        self.close_connection = True


Serve = Callable[..., tuple[Server, ApiJudge, list[float]]]


@pytest.fixture(params=sorted(JUDGES))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serve(provider: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    started: list[tuple[Server, ApiJudge]] = []

    def start(*steps: Step, rule: Callable[[int, dict[str, Any]], Step] | None = None, **options: Any) -> Any:
        server = Server(provider, rule or (lambda number, body: steps[min(number, len(steps) - 1)]))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        waits: list[float] = []
        kind, model = JUDGES[provider]
        backoff = Backoff(max_retries=2, busy_retries=3, sleep=waits.append)
        judge = kind(options.pop("model", model), base_url=server.url, **({"backoff": backoff} | options))
        started.append((server, judge))
        return server, judge, waits

    yield start
    for server, judge in started:
        server.release.set()
        if "_client" in vars(judge):
            vars(judge)["_client"].close()
        server.shutdown()
        server.server_close()


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
    assert (waits[0] if waits else None) == first_wait
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


def test_pacing() -> None:
    pacer = Pacer(start=10, most=12)
    pacer.shrink()
    assert pacer.limit == 8
    for _ in range(9):
        pacer.grow()
    assert pacer.limit == 12
    for _ in range(50):
        pacer.shrink()
    assert pacer.limit == 1


def test_the_first_question_is_asked_alone() -> None:
    asked: list[int] = []
    replies = Pacer(start=4).run(lambda number: asked.append(number) or number, range(6))
    assert (next(replies), asked) == (0, [0])
    assert list(replies) == [1, 2, 3, 4, 5]
