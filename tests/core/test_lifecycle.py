"""Models that vendors take away: known by their day, asked for at the vendor's own list, refused before a call."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from doubles import plugins, story
from typer.testing import CliRunner

from katha.agents.run import run_story
from katha.app.cli.main import app
from katha.app.day_one import NO_PROBE
from katha.config import Settings, load_preset
from katha.configs import config_names, load_config
from katha.errors import UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.models.client import AnthropicClient, Fault, OpenAIClient, find_vendor
from katha.models.lifecycle import Ending, ending, models_of, standing
from katha.protocols import Evidence, JudgePrompt
from katha.renderers.hosted.gemini import GeminiRenderer
from katha.renderers.hosted.service import HostedOptions

KEY = "sk-very-secret"
PROVIDERS = ("anthropic", "openai", "gemini")
LISTS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {
            "type": "model",
            "id": f"claude-{name}",
            "display_name": name,
            "created_at": "2025-10-01T00:00:00Z",
            "lifecycle": stage,
            "retires_at": end,
        }
        for name, stage, end in (
            ("haiku-4-5-20251001", "active", None),
            ("sonnet-4-5-20250929", "deprecated", "2026-11-30T00:00:00Z"),
            ("opus-4-5-20251101", "retired", None),
        )
    ],
    "openai": [
        {"id": "gpt-image-2.6-flare", "object": "model", "created": 1, "owned_by": "openai", "shutdown_date": None},
        {"id": "gpt-4o", "object": "model", "created": 1, "owned_by": "openai", "shutdown_date": "2027-01-14"},
    ],
    "gemini": [{"id": "models/gemini-3.5-flash-lite", "object": "model", "created": 1, "owned_by": "google"}],
}


class Lister(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        provider = self.path.strip("/").split("/")[0]
        data = json.dumps({"object": "list", "data": LISTS[provider], "has_more": False}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every vendor's address is a server on this machine that lists models."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lister)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    for provider in PROVIDERS:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/{provider}")
    yield
    server.shutdown()
    server.server_close()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys, and every vendor at its own address."""
    for provider in PROVIDERS:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL", raising=False)
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def test_no_default_example_or_preset_names_a_model_that_is_gone() -> None:
    sections = load_config("providers.yaml")
    named = [(p, sections[p]["pictures"]["default"]["example"]) for p in ("openai", "gemini")]
    for name in config_names("presets"):
        preset = load_preset(name)
        for chosen in (preset.get("judges"), preset.get("renderer"), preset.get("planner")):
            proposed = chosen["first_of"] if isinstance(chosen, dict) else chosen
            for item in proposed if isinstance(proposed, list) else [str(proposed)]:
                parts = str(item).removeprefix("gemma-st:").split(":", 1)
                named += [(parts[0], parts[1])] if parts[0] in PROVIDERS else []
    assert len(named) > 4
    for provider, model in named:
        assert ending(provider, model) is None, f"{provider}:{model}"


def test_every_successor_is_a_model_that_stays() -> None:
    for provider in PROVIDERS:
        for model in load_config("providers.yaml")[provider]["ends"]:
            found = ending(provider, model)
            assert found is not None
            assert found.date > date(2025, 1, 1)
            assert ending(provider, found.instead) is None, model


def test_a_snapshot_ends_with_its_model_and_a_longer_name_does_not() -> None:
    assert ending("openai", "gpt-image-1.5-2025-12-16") == Ending(date(2026, 12, 1), "gpt-image-2.6-flare")
    assert ending("anthropic", "claude-sonnet-4-5-20250929") == Ending(date(2026, 11, 30), "claude-sonnet-5-5")
    assert ending("openai", "gpt-image-1-large") is None
    assert "gemini-2.5-flash-image" in models_of("gemini"), "rows of models that are gone stay, for prices"


def test_the_refusal_names_the_successor_and_comes_before_the_call(keys: None) -> None:
    renderer = GeminiRenderer("gemini-2.5-flash-image")
    for refuse in (renderer.require_served, lambda: renderer._client.patiently(lambda: pytest.fail("called"))):
        with pytest.raises(UsageError, match=r"withdrew the model .gemini-2\.5-flash-image. on 2026-10-02") as caught:
            refuse()
        assert "Use gemini:gemini-nano-banana-2.1" in str(caught.value)


def test_another_address_may_serve_it_still(keys: None) -> None:
    GeminiRenderer("gemini-2.5-flash-image", HostedOptions(base_url="https://mirror.example")).require_served()


def test_a_run_refuses_a_withdrawn_judge_before_it_draws(
    keys: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (judge,) = dict(make_judges(["gemini:gemini-2.0-flash"])).values()
    parts = plugins(judges={"old": judge})
    monkeypatch.setattr(type(parts.renderer), "render_board", lambda *_: pytest.fail("drawn"))
    with pytest.raises(UsageError, match=r"withdrew the model .gemini-2\.0-flash."):
        run_story(story(), Settings(judges=("old",), mode="base", seeds=(7,)), tmp_path / "out", plugins=parts)


def test_a_run_refuses_a_withdrawn_bridge_renderer_before_it_draws_but_only_where_it_inserts(
    keys: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = plugins(bridge=GeminiRenderer("gemini-2.5-flash-image"))
    config = Settings(judges=("pixel",), mode="caption_bridge", seeds=(7,), size=(1024, 1024))
    base = config.model_copy(update={"mode": "base"})
    run_story(story(), base, tmp_path / "base", plugins=parts)
    with pytest.raises(UsageError, match=r"withdrew the model .gemini-2\.5-flash-image."):  # the scenes are there
        run_story(story(), config, tmp_path / "bridged", plugins=parts)
    monkeypatch.setattr(type(parts.renderer), "render_board", lambda *_: pytest.fail("drawn"))
    with pytest.raises(UsageError, match=r"withdrew the model .gemini-2\.5-flash-image."):
        run_story(story(), config.model_copy(update={"seeds": (8,)}), tmp_path / "other", plugins=parts)


def test_a_withdrawn_judge_is_refused_in_an_evaluation(keys: None) -> None:
    (judge,) = dict(make_judges(["gemini:gemini-2.0-flash"])).values()
    with pytest.raises(UsageError, match=r"Use gemini:gemini-3\.5-flash-lite"):
        list(judge.ask(Evidence("text", (), "A lion."), [JudgePrompt("Who?", "causal", "Say.", None, {})]))


@pytest.mark.parametrize(
    ("provider", "model", "words"),
    [
        ("anthropic", "claude-haiku-4-5", "served"),
        ("anthropic", "claude-sonnet-4-5", "served until 2026-11-30: use claude-sonnet-5-5"),
        ("anthropic", "claude-opus-4-5", "withdrawn: the vendor does not list it: use claude-opus-5-5"),
        ("openai", "gpt-4o", "served until 2027-01-14: use gpt-6-luna"),
        ("openai", "gpt-image-1.5", "withdrawn: the vendor does not list it: use gpt-image-2.6-flare"),
        ("gemini", "gemini-3.5-flash-lite", "served"),
    ],
)
def test_the_vendors_list_says_what_is_served(lists: None, provider: str, model: str, words: str) -> None:
    kind = AnthropicClient if provider == "anthropic" else OpenAIClient
    assert standing(provider, model, kind(find_vendor(provider, "-"), timeout=5).offered()) == words


def test_doctor_asks_for_the_list_where_there_is_a_key(lists: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("katha.app.cli.plugins.is_loopback", lambda url: False)  # the servers here are the vendors
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["models"]
    assert told["openai:gpt-image-1.5"].startswith("withdrawn")
    assert told["anthropic:claude-haiku-4-5"] == "served"
    assert KEY not in done.stdout


def test_doctor_knows_the_days_without_a_key_and_survives_a_dead_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS:
        monkeypatch.delenv(f"{provider.upper()}_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("katha.app.cli.plugins.is_loopback", lambda url: False)
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)["models"]
    assert told["gemini:gemini-2.5-flash-image"] == "withdrawn on 2026-10-02: use gemini-nano-banana-2.1"
    assert "did not list its models" in told["openai"]
    assert "gemini:gemini-3.5-flash-lite" not in told


def test_doctor_calls_no_model_withdrawn_that_a_server_here_does_not_have(
    lists: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NO_PROBE, raising=False)
    value = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert value["models"]["openai"].startswith("OPENAI_BASE_URL names a server on this machine")
    assert "openai:gpt-6-luna" not in value["models"]
    assert "which is asked for its own models, not for" in value["would run"]["vector"]
    assert value["best here"] == {"what is there": "katha run STORY"}
    told = CliRunner().invoke(app, ["doctor"]).stdout
    assert len(told.splitlines()) < 30
    assert "not now" not in told
    assert "what it costs is not known here" in told
    whole = CliRunner().invoke(app, ["doctor", "--all"]).stdout
    assert "extra [local]" in whole
    assert "not now" in whole


def test_a_list_that_cannot_be_had_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    client = OpenAIClient(find_vendor("openai", "-", base_url="http://127.0.0.1:9/v1"), timeout=5)
    with pytest.raises(Fault):
        client.typed(client.offered)
