"""`katha compare --batch` over the real SDKs: pictures of services come in batches, and nothing is paid for twice."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drawn_boards
import pytest
from api_server import KEY, BatchServer, Step, batching
from doubles import BlockRenderer, ScenePlanner, plugins, prepare, tale
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.recording import recorded
from katha.config import Settings
from katha.errors import RenderError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.comparison.compare import CompareJob, CompareResult, run_comparison
from katha.experiments.comparison.methods import Method
from katha.jsonio import sha256_hex
from katha.models.batches import BatchResult
from katha.models.client import Backoff, find_vendor
from katha.protocols import PlanRequest
from katha.renderers.hosted.gemini import GeminiRenderer
from katha.renderers.hosted.openai import OpenAIRenderer
from katha.renderers.hosted.service import BatchedRenderer, HostedOptions
from katha.renderers.vector import VectorRenderer
from katha.renderers.vector.options import VectorOptions
from katha.schema import Plan, StoryRecord
from katha.testing import picture

KINDS: dict[str, tuple[type[BatchedRenderer], str]] = {
    "openai": (OpenAIRenderer, "gpt-image-1.5"),
    "gemini": (GeminiRenderer, "gemini-2.5-flash-image"),
}
SIZE = (1024, 1024)
SCENES = 3
STORIES = ("s1", "s2")


def drawn(provider: str, body: dict[str, Any]) -> Step:
    """A picture that depends on what was asked for."""
    data = b64encode(picture(sha256_hex(json.dumps(body, sort_keys=True).encode()), SIZE)).decode()
    if provider == "openai":
        sent = {"text_tokens": 20, "image_tokens": 300}
        usage = {"input_tokens": 320, "input_tokens_details": sent, "output_tokens": 1000, "total_tokens": 1320}
        return {"body": {"created": 1, "data": [{"b64_json": data}], "usage": usage}}
    part = {"inlineData": {"mimeType": "image/png", "data": data}}
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 1290, "totalTokenCount": 1310}
    told = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {"body": {"candidates": [told], "usageMetadata": usage, "modelVersion": "served"}}


@pytest.fixture(params=sorted(KINDS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with batching(provider, lambda body: drawn(provider, body)) as running:
        yield running


def go(
    server: BatchServer,
    out: Path,
    *,
    batch: bool = True,
    budget: Budget | None = None,
    planner: ScenePlanner | None = None,
    **options: Any,
) -> Any:
    kind, model = KINDS[server.provider]
    renderer = kind(model, HostedOptions(base_url=server.url, retries=2, **options))
    renderer._client.backoff = Backoff(max_retries=2, busy_retries=3, sleep=lambda seconds: None)
    config = Settings(renderer=f"{server.provider}:{model}", judges=("pixel",), mode="base", seeds=(7,), size=SIZE)
    given = {"one": plugins(renderer=renderer, budget=budget, planner=planner or ScenePlanner())}
    records = [tale(name, SCENES) for name in STORIES]
    job = CompareJob(records, [Method("one", config)], config, prepare, resamples=20, given=given, budget=budget)
    told: list[str] = []
    try:
        result = run_comparison(job, out, batch=batch, on_story=lambda name, done: told.append(name))
    finally:
        renderer._client.close()
    return result, told


def boards(result: CompareResult) -> list[bytes]:
    return [path.read_bytes() for path in sorted(result.out.glob("boards/*/*/*/panels/*.png"))]


def test_portraits_and_scenes_come_in_batches_at_the_batch_s_price(server: BatchServer, tmp_path: Path) -> None:
    result, told = go(server, tmp_path / "out")
    assert result.table.methods[0].invalid_rate == 0
    assert (len(server.made), server.single_calls) == (2, 0)
    assert [len(batch.requests) for batch in server.made] == [1, SCENES * len(STORIES)]
    assert len(set(boards(result))) == SCENES * len(STORIES)
    assert any("1 of 1 batches have ended" in line for line in told)
    portrait = b64encode(picture(sha256_hex(json.dumps(server.made[0].requests[0][1], sort_keys=True).encode()), SIZE))
    for _, body in server.made[1].requests:
        assert portrait.decode() in json.dumps(body), "scenes are drawn from the portrait that came first"
    if server.provider == "openai":
        assert [batch.endpoint for batch in server.made] == ["/v1/images/generations", "/v1/images/edits"]
        assert server.made[1].requests[0][1]["input_fidelity"] == "high"
        assert server.made[1].requests[0][1]["images"][0]["image_url"].startswith("data:image/png;base64,")
    (use,) = result.table.methods[0].services
    each = (20 * 5 + 300 * 8 + 1000 * 32) if server.provider == "openai" else (20 * 0.3 + 1290 * 30)
    assert use.cost == pytest.approx((SCENES * len(STORIES) + 1) * each / 1e6 / 2)
    again, _ = go(server, tmp_path / "again")
    assert boards(again) == boards(result)
    assert len(server.made) == 2, "all of it is in the cache"


def test_a_batch_that_was_sent_before_a_kill_is_come_back_to(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(next(iter(KINDS[server.provider][0]("m", HostedOptions(base_url=server.url))._batch_apis().values())))
    ended = kind.ended
    monkeypatch.setattr(kind, "ended", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        go(server, tmp_path / "out", portraits=False)
    monkeypatch.setattr(kind, "ended", ended)
    result, _ = go(server, tmp_path / "out", portraits=False)
    assert (server.asked, server.single_calls, len(server.made)) == (SCENES * len(STORIES), 0, 1)
    assert len(boards(result)) == SCENES * len(STORIES)


def test_a_lost_answer_to_a_creation_makes_no_second_batch(server: BatchServer, tmp_path: Path) -> None:
    server.lose, server.busy = 1, 1
    go(server, tmp_path / "out", portraits=False)
    assert (server.asked, len(server.made), server.single_calls) == (SCENES * len(STORIES), 1, 0)


def test_what_a_batch_does_not_bring_is_asked_for_by_a_call(server: BatchServer, tmp_path: Path) -> None:
    bad: list[str] = []

    def rule(body: dict[str, Any]) -> Step:
        text = json.dumps(body)
        if "tree number 2" in text and len(bad) < len(STORIES):
            bad.append(text)
            return {"failed": "expired"}
        return drawn(server.provider, body)

    server.rule = rule
    result, _ = go(server, tmp_path / "out", portraits=False)
    assert (len(bad), server.single_calls) == (2, 2)
    assert len(boards(result)) == SCENES * len(STORIES)


@dataclass
class Empty(ScenePlanner):
    """Has nobody in the second scene."""

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        plan = super().plan(story, request)
        panels = [item.model_copy(update={"characters": []}) if item.index == 2 else item for item in plan.panels]
        return plan.model_copy(update={"panels": panels})


def test_scenes_from_words_and_from_pictures_are_collected_side_by_side(server: BatchServer, tmp_path: Path) -> None:
    result, _ = go(server, tmp_path / "out", planner=Empty())
    sizes = [len(batch.requests) for batch in server.made]
    assert sizes == ([1, 2, 4] if server.provider == "openai" else [1, 6])
    assert (server.single_calls, len(set(boards(result)))) == (0, SCENES * len(STORIES))
    assert len(list((tmp_path / "out" / "batches").glob("*.results.jsonl"))) == len(sizes)


def test_what_the_budget_does_not_cover_is_not_sent(server: BatchServer, tmp_path: Path) -> None:
    result, _ = go(server, tmp_path / "out", portraits=False, budget=Budget(max_calls=4))
    assert (server.asked, server.single_calls, result.status) == (4, 0, "incomplete")


CAST = """```svg
<svg viewBox="0 0 1600 1240"><defs><g id="li-body"><rect x="-60" y="-300" width="120" height="300" fill="#2b9c95"/></g>
<g id="li-head-calm"><circle cx="0" cy="-60" r="60" fill="#f2c29b"/></g></defs>
<rect width="1600" height="1240" fill="#eee"/><use href="#li-body" x="300" y="600"/></svg>
```"""


def in_words(body: dict[str, Any]) -> Step:
    """A cast, frames that depend on what was asked for, and nothing to mend."""
    asked = body["messages"][-1]["content"]
    asked = asked if isinstance(asked, str) else asked[-1]["text"]
    if "Now draw the cast sheet" in asked:
        return {"text": CAST}
    colour = sha256_hex(asked.encode())[:6]
    ground = f'<rect width="1280" height="1280" fill="#{colour}"/>'
    drawing = f'<svg viewBox="0 0 1280 1280">{ground}<use href="#li-body" x="600" y="900"/></svg>'
    return {"text": f"```svg\n{drawing}\n```" if asked.startswith("Draw frame") else "FINE"}


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_conversations_are_held_in_batches_and_drawn_without_a_call(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
    model = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-6-luna"}[provider]
    with batching(provider, in_words) as server, recorded():

        def compare(out: Path, budget: Budget | None = None) -> CompareResult:
            renderer = VectorRenderer(f"{provider}:{model}", options=VectorOptions(base_url=server.url))
            client = renderer.batched_client()
            assert client is not None
            client.backoff = Backoff(max_retries=2, busy_retries=3, sleep=lambda seconds: None)
            config = Settings(
                renderer=f"vector:{provider}:{model}", judges=("pixel",), mode="base", seeds=(42,), size=SIZE
            )
            given = {"one": plugins(renderer=renderer, budget=budget)}
            records = [tale(name, SCENES) for name in STORIES]
            job = CompareJob(
                records, [Method("one", config)], config, prepare, resamples=20, given=given, budget=budget
            )
            return run_comparison(job, out, batch=True)

        result = compare(tmp_path / "out")
        assert result.table.methods[0].invalid_rate == 0
        assert server.single_calls == 0
        scenes = SCENES * len(STORIES)
        told = [len(batch.requests) for batch in server.made]
        assert told == [2, 2, scenes, scenes, 2], "casts, looks at them, frames, looks at them, looks at the boards"
        assert len(set(boards(result))) == scenes
        (use,) = result.table.methods[0].services
        card = find_vendor(provider, model).card["price"]
        tokens = {"input": 10, "cached": 100, "output": 20} | ({"cache_write": 5} if provider == "anthropic" else {})
        each = sum(count * card[kind] for kind, count in tokens.items()) / 1e6
        assert use.cost == pytest.approx(sum(told) * each / 2)
        compare(tmp_path / "again")
        assert (len(server.made), server.single_calls) == (len(told), 0)


def test_a_batch_s_reply_of_another_shape_is_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with recorded():
        renderer, keys = VectorRenderer("openai:gpt-6-luna"), list[str]()
        client = renderer.batched_client()
        assert client is not None
        with (
            client.collecting(lambda key, body: keys.append(key)),
            pytest.raises(RenderError, match="waits for a batch"),
        ):
            list(renderer.render_board(drawn_boards.requests()))
        assert len(keys) == 1, "the cast comes first"
        assert not client.keep_batched(BatchResult(keys[0], {"odd": 1}))
        assert not client.keep_batched(BatchResult("another", {"odd": 1}))
        assert VectorRenderer("openai:gpt-6-luna", options=VectorOptions(contract="tried")).batched_client() is None


def test_without_a_batch_api_the_flag_is_refused(tmp_path: Path) -> None:
    config = Settings(renderer="block", judges=("pixel",), mode="base", seeds=(7,))
    given = {"one": plugins(renderer=BlockRenderer())}
    job = CompareJob([tale("s1", SCENES)], [Method("one", config)], config, prepare, given=given)
    with pytest.raises(UsageError, match="no renderer here has a batch API"):
        run_comparison(job, tmp_path / "out", batch=True)
    story = tmp_path / "s.txt"
    story.write_text("A lion slept. A mouse woke him. He let it go.")
    words = ["compare", str(story), "--renderer", "sketch", "--renderer", "sketch:ink", "--batch", "--out", "x"]
    assert isinstance(CliRunner().invoke(app, words).exception, UsageError)


def test_a_vendor_that_stays_broken_is_one_sentence(server: BatchServer, tmp_path: Path) -> None:
    server.busy = 10**6
    with pytest.raises(RenderError, match=f"{server.provider} did not take the batch call: HTTP 429"):
        go(server, tmp_path / "out", portraits=False)
