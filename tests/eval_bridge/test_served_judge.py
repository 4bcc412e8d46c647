"""Judges and planners behind vLLM and SGLang: a server on this machine that speaks their protocol, beside `/v1` too."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from api_server import Handler, Server, Step
from evals import answer, draw, records
from PIL import Image
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.drawing import settings_for
from katha.app.presets import lacks
from katha.errors import JudgeError, ModelError, UsageError
from katha.eval_bridge.judges.served import ServedJudge, SglangJudge, VllmJudge, served_folder
from katha.eval_bridge.judging.abilities import threads_of
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.packets.instructions import reply_schema
from katha.eval_bridge.packets.packets import make_packet
from katha.experiments.evaluation.batches import batchable
from katha.models.base import Turn
from katha.models.client import Backoff, keyless
from katha.models.registry import make_model
from katha.models.served import counted_since
from katha.planners.gemma_st import GemmaPlanner
from katha.protocols import Evidence, JudgePrompt
from katha.schema import Question

MODEL, COMMIT = "Qwen/Qwen2.5-VL-7B-Instruct", "0123456789abcdef0123456789abcdef01234567"
PROMPT_TOKENS = 100


class Root(Handler):
    """What lies beside `/v1`, in the shapes of vLLM 0.1x and SGLang 0.5."""

    server: OpenServer

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path)
        data = (page if isinstance(page, str) else json.dumps(page)).encode() if page is not None else b"{}"
        if self.path == "/metrics" and page is not None:
            data = self.server.metrics().encode()
        with self.server.lock:
            self.server.looked.append(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("content-type", "text/plain" if self.path == "/metrics" else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


class OpenServer(Server):
    """A server of open models. Every call looks `PROMPT_TOKENS` tokens up and finds 80 of them, but the first none."""

    request_queue_size = 256

    def __init__(self, engine: str, dev: bool) -> None:
        super().__init__("openai", lambda number, body: self.step)
        self.RequestHandlerClass = Root
        self.engine, self.step, self.looked = engine, Step(), list[str]()
        cards = [{"id": MODEL, "object": "model", "created": 1, "owned_by": engine, "root": MODEL, "parent": None,
                  "max_model_len": 32768},
                 {"id": "planner", "object": "model", "created": 1, "owned_by": engine, "root": "/adapters/planner",
                  "parent": MODEL, "max_model_len": None}]  # fmt: skip
        config = {"model": MODEL, "dtype": "torch.bfloat16", "revision": COMMIT, "quantization": None}
        arguments = {"model_path": MODEL, "dtype": "bfloat16", "revision": COMMIT, "version": "0.5.4",
                     "quantization": "fp8", "context_length": 32768}  # fmt: skip
        self.pages: dict[str, Any] = {"/v1/models": {"object": "list", "data": cards}, "/metrics": ""}
        if engine == "vllm":
            self.pages["/version"] = {"version": "0.12.0"}
        else:
            self.pages["/get_server_info"] = arguments
        if dev:
            told = {"vllm_config": {"model_config": config}, "vllm_env": {}, "system_env": {}}
            self.pages["/server_info?config_format=json"] = told

    def metrics(self) -> str:
        asked = 1000 + PROMPT_TOKENS * self.number
        found = 500 + 80 * max(0, self.number - 1)
        if self.engine == "sglang":
            return (
                f'sglang:prompt_tokens_total{{model_name="m"}} {asked}\nsglang:cached_tokens_total{{a="b"}} {found}\n'
            )
        half = '# TYPE vllm:prefix_cache_{0} counter\nvllm:prefix_cache_{0}_total{{engine="{1}",model_name="m"}} {2}\n'
        parts = [half.format("queries", 0, float(asked)), half.format("hits", 0, float(found - 7)),
                 half.format("hits", 1, 7.0), 'vllm:prefix_cache_hits_created{engine="0"} 1.7e+09\n']  # fmt: skip
        return "".join(parts)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))

    def start(engine: str = "vllm", *, dev: bool = True) -> OpenServer:
        server = OpenServer(engine, dev)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.callback(server.server_close)
        running.callback(server.shutdown)
        return server

    with ExitStack() as running:
        yield start


def picture(seed: int) -> bytes:
    buffer = io.BytesIO()
    smooth = np.linspace(0, 255 - seed, 64 * 64 * 3).reshape(64, 64, 3).astype(np.uint8)
    Image.fromarray(smooth).save(buffer, "PNG")
    return buffer.getvalue()


EVIDENCE = Evidence("image", (picture(0), picture(40)))
OPTIONS = ("a fox", "a crow", "Unclear")


def prompt(number: int = 0, options: tuple[str, ...] | None = OPTIONS) -> JudgePrompt:
    return JudgePrompt(f"Who is it ({number})?", "causal", "Look.", options, reply_schema("image", options))


def judge_of(server: OpenServer, **options: Any) -> ServedJudge:
    kind = VllmJudge if server.engine == "vllm" else SglangJudge
    backoff = Backoff(max_retries=0, sleep=lambda seconds: None)
    return kind(options.pop("model", MODEL), base_url=server.url, **({"backoff": backoff} | options))


def sent(server: OpenServer, number: int) -> list[str]:
    content = server.body(number)["messages"][0]["content"]
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def test_the_spec_says_what_the_server_tells(servers: Any) -> None:
    vllm = judge_of(servers("vllm")).spec()
    assert vllm["name"] == f"vllm:{MODEL}"
    assert vllm["served"] == {"engine": "vllm", "version": "0.12.0", "root": MODEL, "parent": None, "revision": COMMIT,
                              "dtype": "bfloat16", "quantization": None, "window": 32768}  # fmt: skip
    assert "endpoint" not in vllm  # the same model on another machine gives the same answers
    sglang = judge_of(servers("sglang")).spec()["served"]
    assert (sglang["engine"], sglang["version"], sglang["quantization"]) == ("sglang", "0.5.4", "fp8")
    assert (sglang["revision"], sglang["dtype"]) == (COMMIT, "bfloat16")


def test_what_the_server_does_not_tell_is_none(servers: Any) -> None:
    """Without its development mode vLLM tells neither dtype nor revision, unless it was given a snapshot's folder."""
    server = servers("vllm", dev=False)
    told = judge_of(server).spec()["served"]
    assert (told["revision"], told["dtype"], told["root"]) == (None, None, MODEL)
    server.pages["/v1/models"]["data"][0]["root"] = f"/hub/models--o--n/snapshots/{COMMIT}"
    assert judge_of(server).spec()["served"]["revision"] == COMMIT
    server.pages["/v1/models"]["data"][0]["root"] = MODEL


def test_a_server_that_is_not_there_or_serves_another_model(servers: Any) -> None:
    server = servers("vllm")
    with pytest.raises(UsageError, match=rf"does not serve 'other'.*{MODEL}, planner"):
        judge_of(server, model="other").spec()
    away = VllmJudge(MODEL, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(JudgeError, match=rf"does not answer.*vllm serve {MODEL}"):
        away.spec()
    with keyless():
        assert VllmJudge(MODEL, base_url="http://127.0.0.1:9/v1").spec()["served"] is None
    with pytest.raises(UsageError, match="pictures is png, jpeg, file"):
        VllmJudge(MODEL, pictures="gif")  # type: ignore[arg-type]


def test_a_server_of_one_s_own_needs_no_key_and_costs_nothing(servers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    elsewhere = VllmJudge(MODEL, base_url="http://node7.cluster.local:8000/v1")
    assert (elsewhere.price, elsewhere.concurrency, threads_of(elsewhere)) == ({}, 128, 128)
    with pytest.raises(UsageError, match="no judge here has a batch API"):
        batchable({"a": elsewhere})


@pytest.mark.parametrize("pictures", ["png", "jpeg", "file"])
def test_pictures_are_encoded_once(servers: Any, pictures: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = servers()
    judge = judge_of(server, pictures=pictures)
    assert [reply.status for reply in judge.ask(EVIDENCE, [prompt(0), prompt(1)])] == ["ok", "ok"]
    first, second = sent(server, 0), sent(server, 1)
    assert first == second
    assert judge._url.cache_info().misses == 2
    assert judge._url.cache_info().hits == 2
    if pictures == "file":
        paths = [Path(unquote(urlsplit(url).path)) for url in first]
        assert [path.read_bytes() for path in paths] == list(EVIDENCE.images)
        assert {path.parent for path in paths} == {served_folder()}
        assert judge.spec() == judge_of(server).spec()  # the very bytes: the same answers
        return
    kind, data = first[0].removeprefix("data:image/").split(";base64,")
    decoded = base64.b64decode(data)
    assert kind == pictures
    if pictures == "png":
        assert decoded == EVIDENCE.images[0]
        return
    shown, true = (
        np.asarray(Image.open(io.BytesIO(one)).convert("RGB"), float) for one in (decoded, EVIDENCE.images[0])
    )
    assert 0 < np.abs(shown - true).mean() < 3
    assert judge.spec()["pictures"] == "jpeg"


def test_a_schema_cannot_be_left_through_a_string(servers: Any) -> None:
    server = servers()
    server.step = {"text": '{"answer": "a fox", "evidence_status": "recoverable", "confidence": "high"}'}
    (reply,) = judge_of(server).ask(EVIDENCE, [prompt(0, None)])
    assert reply.status == "ok"
    held = server.body(0)["response_format"]["json_schema"]["schema"]["properties"]["answer"]["pattern"]
    assert held.startswith('^[^"\\\\')
    assert server.body(0)["temperature"] == 0


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_prefix_hits_are_read_from_the_server(servers: Any, engine: str) -> None:
    server = servers(engine)
    judge = judge_of(server)
    assert judge.prefix_hits() is None
    packet, evidence = make_packet("s", "image", list(EVIDENCE.images), None)
    questions = [
        Question.model_validate({"question_id": f"q{at}", "story_id": "s", "question_type": "causal",
                                 "question": f"Why {at}?", "gold_answer": "a fox", "options": list(OPTIONS),
                                 "role": "reporting"})
        for at in range(5)
    ]  # fmt: skip
    judging = JudgingEngine({"m": judge})
    judging.ask("m", Inquiry(packet, evidence, questions, "base", "strict", "choice"))
    cache = judging.accounts()["m"].prefix_cache
    assert cache is not None
    assert (cache.looked_up, cache.found) == (5 * PROMPT_TOKENS, 4 * 80)
    del server.pages["/metrics"]
    assert judging.accounts()["m"].prefix_cache is None
    assert counted_since((10, 20), (500, 1000)) == (10, 20)  # the server was started again


def test_an_evaluation_shows_what_the_prefix_cache_had(servers: Any, tmp_path: Path) -> None:
    server, stories = servers(), records(2)
    server.rule = lambda number, body: {"text": answer(body)}
    (tmp_path / "stories.jsonl").write_text("\n".join(record.model_dump_json() for record in stories))
    boards = draw(tmp_path / "flux", stories).folder
    words = ["eval", tmp_path / "stories.jsonl", "--boards", boards, "--resamples", 9, "--out", tmp_path / "out",
             "--judge", f"vllm:{MODEL}", "--base-url", server.url, "--judge-option", "pictures=file"]  # fmt: skip

    def call(*more: str) -> Any:
        return CliRunner().invoke(app, [*map(str, words), *more], catch_exceptions=False)

    dry = call("--dry-run", "--json")
    assert (dry.exit_code, server.number) == (0, 0)
    first = call("--json")
    assert first.exit_code == 0, first.output
    (account,) = json.loads(first.stdout)["calls"].values()
    found = {"looked_up": PROMPT_TOKENS * server.number, "found": 80 * (server.number - 1)}
    assert account["prefix_cache"] == found
    (spec,) = json.loads((tmp_path / "out" / "eval.json").read_text())["judges"].values()
    assert spec["served"]["revision"] == COMMIT
    share = f"{100 * found['found'] / found['looked_up']:.0f}% of {found['looked_up']:,} tokens"
    assert f"Prefix cache (vllm:{MODEL}): the server had {share} already." in call().stdout


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--mode", "base"),
        ("compare", "--renderer", "sketch", "--renderer", "sketch:ink", "--resamples", "0"),
        ("ablate", "--rows", "base", "--resamples", "0"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_that_draws_ends_with_what_the_prefix_cache_had(
    servers: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    server, story = servers(), tmp_path / "story.txt"
    server.rule = lambda number, body: {"text": answer(body)}
    story.write_text("A lion caught a mouse. The mouse begged. The lion let it go.")
    given = ["--seeds", "1", "--judge", f"vllm:{MODEL}", "--base-url", server.url, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [words[0], str(story), *words[1:], *given])
    found, looked_up = 80 * (server.number - 1), PROMPT_TOKENS * server.number
    assert server.number > 2
    said = (
        f"Prefix cache (vllm:{MODEL}): the server had {100 * found / looked_up:.0f}% of {looked_up:,} tokens already."
    )
    assert said in done.stdout, done.output


def test_a_hundred_and_twenty_eight_questions_are_under_way_at_once(servers: Any) -> None:
    """The server answers the last 128 only when all of them have come."""
    server, together = servers(), threading.Barrier(128)
    server.rule = lambda number, body: {"before": lambda: together.wait(60)} if number >= 126 else {}
    judge = judge_of(server)

    def ask(number: int) -> str:
        return next(iter(judge.ask(EVIDENCE, [prompt(number)]))).status

    with ThreadPoolExecutor(128) as threads:
        assert set(threads.map(ask, range(126))) == {"ok"}  # each good call allows one more at once
        assert set(threads.map(ask, range(126, 254))) == {"ok"}
    assert not together.broken


def test_a_planner_s_adapter_on_a_server_keeps_its_settings(servers: Any, tmp_path: Path) -> None:
    server, adapter = servers(), tmp_path / "adapter"
    adapter.mkdir()
    note = {"base": MODEL, "base_revision": COMMIT, "without": ["links", "shots"]}
    (adapter / "katha_adapter.json").write_text(json.dumps(note))
    planner = GemmaPlanner("vllm:planner", adapter=adapter, base_url=server.url)
    spec = planner.spec()
    assert spec["without"] == ["links", "shots", "questions"]
    assert spec["adapter"].startswith("sha256:")
    assert (spec["model"]["served"]["parent"], spec["model"]["served"]["root"]) == (MODEL, "/adapters/planner")
    model = make_model("vllm:planner", base_url=server.url)
    server.step = {"text": '{"a": "b"}'}
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 300}},
              "required": ["a"], "additionalProperties": False}  # fmt: skip
    assert model.complete([Turn("user", "Plan.")], schema).text == '{"a": "b"}'
    body = server.body(0)
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("planner", 0, 8192)
    assert "pattern" in body["response_format"]["json_schema"]["schema"]["properties"]["a"]
    with pytest.raises(ModelError, match="does not answer"):
        make_model("sglang:planner", base_url="http://127.0.0.1:9/v1").spec()


def test_a_preset_takes_the_server_that_is_named_and_has_its_model(
    servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VLLM_BASE_URL", "SGLANG_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError) as refused:
        settings_for("flux", {})
    hint = str(refused.value.hint)
    assert hint.startswith(f"Add one (local:{MODEL}: ")  # servers that nobody named come last
    assert f"; vllm:{MODEL}: Set VLLM_BASE_URL; sglang:{MODEL}: Set SGLANG_BASE_URL)" in hint
    assert lacks("flux")[0].judges == (f"local:{MODEL}",)
    drawn = settings_for("sdxl", {})
    assert (drawn.judges, drawn.mode) == (("none",), "base"), "a small card without a key draws, and nobody judges"
    sglang, vllm = servers("sglang"), servers()
    monkeypatch.setenv("SGLANG_BASE_URL", sglang.url)
    assert settings_for("sdxl", {}).judges == (f"sglang:{MODEL}",)
    monkeypatch.setenv("VLLM_BASE_URL", vllm.url)
    for preset in ("sdxl", "consistory", "flux", "schnell"):
        assert settings_for(preset, {}).judges == (f"vllm:{MODEL}",)
    monkeypatch.delenv("SGLANG_BASE_URL")
    vllm.pages["/v1/models"] = {"data": [{"id": "another"}]}
    with pytest.raises(UsageError) as refused:
        settings_for("flux", {})
    assert f"vllm:{MODEL}: It serves another" in str(refused.value.hint)


def test_doctor_says_what_servers_have(servers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLANG_BASE_URL", raising=False)
    server = servers()
    monkeypatch.setenv("VLLM_BASE_URL", server.url)
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert told["servers"]["sglang"] == "not named: set SGLANG_BASE_URL to the address of one"
    assert told["servers"]["vllm"].startswith(f"serves {MODEL}, planner (127.0.0.1:")
    assert f" + vllm:{MODEL}, mode" in told["would run"]["sdxl"]
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert told["servers"]["vllm"].startswith("The vllm server at 127.0.0.1:9/v1 does not answer")
