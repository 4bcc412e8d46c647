"""What a verb takes where nobody is named: a key, a server on this machine, a card, the stand-in; and what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from katha.app import day_one
from katha.app.cli.main import app
from katha.app.cli.plugins import _presets
from katha.app.day_one import LocalServer, choose, listed, settings_of, unfit
from katha.config import Settings, resolve
from katha.configs import load_config
from katha.errors import UsageError
from katha.models.calls import calls_through

TEXT = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}


class Lister(BaseHTTPRequestHandler):
    body: bytes = b""
    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        self.send_response(200)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)


class Machine:
    """A machine whose ports, card and environment a test sets; nothing of the real one is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data: dict[str, Any] = json.loads(json.dumps(load_config("day-one.yaml")))
        self.data["servers"]["ports"] = {}
        self.asked: list[str] = []
        self._servers: list[ThreadingHTTPServer] = []
        self._patch = monkeypatch
        monkeypatch.setattr(day_one, "load_config", lambda name: self.data if "day" in name else load_config(name))
        monkeypatch.setattr(day_one, "card", lambda: None)
        monkeypatch.delenv("KATHA_NO_PROBE")

    def serve(self, name: str, *models: str, body: bytes | None = None) -> str:
        whole = json.dumps({"object": "list", "data": [{"id": model} for model in models]}).encode()
        handler = type("Own", (Lister,), {"body": body if body is not None else whole, "asked": self.asked})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self._servers.append(server)
        self.data["servers"]["ports"][name] = server.server_address[1]
        return f"http://127.0.0.1:{server.server_address[1]}/v1"

    def card(self, size: int, *whole: str) -> None:
        """A card of so many GB, and the presets whose weights are here."""
        self._patch.setattr(day_one, "card", lambda: size)
        self._patch.setattr(day_one, "_missing", lambda choice: "" if choice.preset in whole else "weights")

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    made = Machine(monkeypatch)
    yield made
    made.close()


def taken(given: Mapping[str, Any] | None = None, preset: str | None = None) -> Settings:
    choice = choose(given or {}, preset)
    if choice is None:
        return resolve(given or {}, preset=preset)
    return resolve(choice.over(given or {}), preset=choice.preset)


def who(config: Settings) -> tuple[str, str, tuple[str, ...]]:
    return config.planner, config.renderer, config.judges


STAND_IN = ("rule", "sketch", ("sketch-reader",))


def test_with_nothing_it_is_the_stand_in(machine: Machine) -> None:
    assert who(taken()) == STAND_IN
    assert taken() == Settings()


@pytest.mark.parametrize("provider", list(KEYS))
def test_a_key_plans_draws_and_judges(machine: Machine, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    machine.serve("Ollama", "qwen3:32b")
    monkeypatch.setenv(KEYS[provider], "k")
    config = taken()
    assert config.planner.startswith(f"gemma-st:{provider}:")
    assert config.renderer.startswith(f"vector:{provider}:")
    assert [judge.partition(":")[0] for judge in config.judges] == [provider]
    assert config.seeds == (42,)
    assert machine.asked == [], "where a key is, no server is asked"


def test_keys_come_in_the_order_of_the_data(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    assert "gemini" in taken().planner
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "openai" in taken().planner
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert "anthropic" in taken().planner


def test_every_model_of_the_choices_has_a_price_and_room_to_think() -> None:
    providers = load_config("providers.yaml")
    for row in load_config("day-one.yaml")["keys"]:
        assert row["provider"] in providers
        for spec in (row["planner"], row["renderer"], *row["judges"]):
            provider, model = spec.split(":")[-2:]
            rows = providers[provider]["text"]["models"]
            card = rows[max((name for name in rows if model.startswith(name)), key=len)]
            assert card["price"]["output"] > 0, spec
        assert all(providers[row["provider"]]["ends"].get(spec.split(":")[-1]) is None for spec in row["judges"])


def test_flag_then_preset_then_environment_then_what_is_here(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert who(taken({"renderer": "sketch"})) == STAND_IN, "a flag names one: the rest is as it always is"
    assert who(taken(preset="embedded")) == STAND_IN
    unjudged = taken({"judges": ("none",)})
    assert unjudged.renderer.startswith("vector:anthropic"), "that nobody judges does not say who draws"
    assert (unjudged.judges, unjudged.mode) == (("none",), "base")
    monkeypatch.setenv("KATHA_JUDGES", "openai:served")
    assert who(taken()) == ("rule", "sketch", ("openai:served",))
    monkeypatch.delenv("KATHA_JUDGES")
    monkeypatch.setenv("KATHA_SEEDS", "7")
    assert (taken().seeds, taken({"seeds": (9,)}).seeds) == ((7,), (9,))
    assert taken({"style": "ink", "panels": 4}).renderer.startswith("vector:anthropic")


def test_a_server_on_its_usual_port_is_taken_with_its_largest_model(machine: Machine) -> None:
    url = machine.serve("Ollama", "nomic-embed-text:latest", "llama3.2:3b", "qwen3:32b", "qwen2.5vl:7b")
    config = taken()
    assert (config.planner, config.renderer) == ("gemma-st:openai:qwen3:32b", "vector:openai:qwen3:32b")
    assert config.planner_options == {"base_url": url}
    assert config.renderer_options == {"base_url": url, "contract": "tried", "eyes": False}
    assert config.judges == ("openai:qwen2.5vl:7b",), "only a model that sees can judge"
    assert config.base_url == url
    assert machine.asked == ["/v1/models"]


def test_where_no_model_sees_nobody_judges(machine: Machine) -> None:
    machine.serve("LM Studio", "some-model", "another")
    config = taken()
    assert config.planner == "gemma-st:openai:some-model"
    assert (config.judges, config.mode) == (("none",), "base")


def test_a_model_that_sees_does_all() -> None:
    found = settings_of(LocalServer("vLLM", "http://127.0.0.1:8000/v1", ("google/gemma-3-27b-it",)))
    assert found["judges"] == ("openai:google/gemma-3-27b-it",)
    assert found["renderer_options"] == {"base_url": "http://127.0.0.1:8000/v1", "contract": "tried"}, (
        "it may show that it sees"
    )


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"[]", b'{"data": 3}', b'{"data": [{"id": 7}, 3]}', b'{"data": []}', b"\xff"]
)
def test_what_listens_there_and_is_no_server_of_models_is_passed_over(machine: Machine, body: bytes) -> None:
    machine.serve("llama.cpp", body=body)
    assert who(taken()) == STAND_IN


def test_only_this_machine_is_asked() -> None:
    assert listed("http://192.0.2.1:11434/v1", 0.01) == []
    assert listed("https://localhost:1/v1", 0.01) == []


def test_a_server_that_openai_base_url_names_here_is_asked_and_not_the_vendor(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = machine.serve("odd", "mistral-7b")
    machine.data["servers"]["ports"] = {}
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "anything")
    assert taken().planner == "gemma-st:openai:mistral-7b"


def test_nothing_is_looked_for_where_that_is_switched_off(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.serve("Ollama", "qwen3:32b")
    machine.card(24, "sdxl")
    monkeypatch.setenv("KATHA_NO_PROBE", "1")
    assert who(taken()) == STAND_IN
    assert machine.asked == []


@pytest.mark.parametrize(
    ("size", "whole", "expected"),
    [
        (80, ("flux", "sdxl"), ("flux:black-forest-labs/FLUX.1-dev", "full")),
        (48, ("flux", "sdxl"), ("flux:black-forest-labs/FLUX.1-dev", "model-offload")),
        (80, ("sdxl",), ("sdxl:stabilityai/stable-diffusion-xl-base-1.0", "full")),
        (24, ("flux", "sdxl"), ("sdxl:stabilityai/stable-diffusion-xl-base-1.0", "full")),
        (12, ("sdxl",), ("sdxl:stabilityai/stable-diffusion-xl-base-1.0", "model-offload")),
        (8, ("sdxl",), ("sdxl:stabilityai/stable-diffusion-xl-base-1.0", "model-offload")),
        (6, ("sdxl",), ("sketch", None)),
        (80, (), ("sketch", None)),
    ],
)
def test_a_card_takes_the_best_preset_that_fits_and_is_whole(
    machine: Machine, size: int, whole: tuple[str, ...], expected: tuple[str, str | None]
) -> None:
    machine.card(size, *whole)
    config = taken()
    assert (config.renderer, config.memory) == expected


def test_a_replay_takes_what_was_recorded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    class Closed:
        closed = True

    with calls_through(Closed()):  # type: ignore[arg-type]
        assert choose({}) is None


# The line.


def _stop(*given: object, **named: object) -> None:
    raise SystemExit(3)


def test_the_line_comes_before_anything_and_costs_nothing(machine: Machine, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(TEXT), "--panels", "4", "--seeds", "1", "--out", str(tmp_path / "o")])
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[0] == (
        "No key, server or card is here: rule plans, sketch draws, sketch-reader judges; free of charge"
        " (`katha doctor` says what a model needs)."
    )


def test_the_line_names_key_models_and_price(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://nobody.invalid")
    done = CliRunner().invoke(app, ["run", str(TEXT), "--dry-run"])
    first = done.stderr.splitlines()[0]
    assert first.startswith("ANTHROPIC_API_KEY is set: gemma-st:anthropic:claude-sonnet-5-5 plans, vector:anthropic:")
    assert "dollars in all: about $" in done.stdout


def test_a_server_that_nobody_prices_is_limited_by_the_number_that_a_dry_run_prints(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", machine.serve("here", "writer"))
    machine.data["servers"]["ports"] = {}
    done = CliRunner().invoke(app, ["run", str(TEXT), "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "vector:openai:writer draws, nobody judges; what it costs is not known here." in done.stderr
    assert "answers" not in done.stdout, "nobody is asked"
    calls = [int(line.split(": ")[1].split(",")[0]) for line in done.stdout.splitlines() if line.startswith("  ")]
    told = f"To stop there: --max-calls {sum(calls)}; --max-cost is refused, since it cannot hold."
    assert told in done.stdout
    with pytest.raises(UsageError, match="so --max-cost cannot hold") as caught:
        CliRunner().invoke(app, ["run", str(TEXT), "--max-cost", "1"], catch_exceptions=False)
    assert caught.value.hint == "Limit it by --max-calls N: --dry-run instead of --max-cost says how many."


def test_the_line_of_a_run_has_the_price(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr("katha.run_story", _stop)
    done = CliRunner().invoke(app, ["run", str(TEXT), "--out", str(tmp_path / "o")])
    assert done.exit_code == 3
    assert "openai:gpt-6-luna judges; about $0." in done.stderr.splitlines()[0]
    assert "--preset embedded" in done.stderr


def test_a_plan_says_who_plans_and_nothing_of_pictures(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.setattr("katha.plan_story", _stop)
    done = CliRunner().invoke(app, ["plan", str(TEXT)])
    line = done.stderr.splitlines()[0]
    assert line.startswith("GEMINI_API_KEY is set: gemma-st:gemini:gemini-3.8-flash plans; ")
    assert "draws" not in line


# What fits.


def test_doctor_says_ready_only_where_a_card_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unfit("embedded", None) == ""
    assert unfit("flux", 80) == ""
    assert "no NVIDIA card" in unfit("flux", None)
    assert "12 GB" in unfit("flux", 12)
    monkeypatch.setattr("katha.app.cli.plugins.lacks", lambda name: (Settings(), ""))
    found = _presets(None)
    assert "no NVIDIA card" in found["would run"]["flux"]
    assert "ready" not in found["would run"]["flux"]
    assert list(found["best here"]) == ["vector"]
    assert list(_presets(80)["best here"]) == ["flux"]


def test_a_board_that_nobody_judges_is_finished_and_says_so(machine: Machine, tmp_path: Path) -> None:
    words = ["--judge", "none", "--mode", "base", "--panels", "4", "--seeds", "1"]
    done = CliRunner().invoke(app, ["run", str(TEXT), *words, "--out", str(tmp_path / "o")])
    assert done.exit_code == 0, done.output
    assert "Not judged: no judge was named (--judge)." in done.stdout
    state = json.loads((tmp_path / "o" / "run.json").read_text())
    assert state["status"] == "finished"


# The doctor.


class Chat(BaseHTTPRequestHandler):
    """A server of models that says yes, or refuses."""

    status = 200
    asked: list[dict[str, Any]]

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _send(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(self.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._send(
            {"object": "list", "data": [{"id": "tiny-vl:2b", "object": "model", "created": 1, "owned_by": "me"}]}
        )

    def do_POST(self) -> None:
        type(self).asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
        usage = {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 13}
        self._send(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        )


def test_doctor_spends_nothing_unasked_and_tries_each_with_one_call(machine: Machine) -> None:
    handler = type("Own", (Chat,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    machine.data["servers"]["ports"]["Ollama"] = server.server_address[1]
    try:
        plain = CliRunner().invoke(app, ["doctor", "--json"])
        assert handler.asked == []
        assert "Ollama at 127.0.0.1" in json.loads(plain.stdout)["next"]["katha run STORY"]
        done = CliRunner().invoke(app, ["doctor", "--try", "--json"])
        tried = len(handler.asked)
        drew = CliRunner().invoke(app, ["doctor", "--draw", "--json"])
    finally:
        server.shutdown()
        server.server_close()
    assert tried == 1, "the model that plans and judges is one"
    assert len(handler.asked) == tried + 2, "its drawing, and one more try"
    told = json.loads(drew.stdout)["drawn"]["openai:tiny-vl:2b"]
    assert told.startswith("cannot draw: The reply has 0 drawings"), told
    assert "2 calls" in told
    assert json.loads(done.stdout)["tried"]["openai:tiny-vl:2b"].startswith("works (")


def test_doctor_tells_what_does_not_work_and_what_to_do_with_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(CliRunner().invoke(app, ["doctor", "--try", "--json"]).stdout)
    assert "ANTHROPIC_API_KEY" in found["next"]["for a real model"]
    assert "gemma-st:paste" in found["next"]["for a real model"]
    assert list(found["tried"]) == ["nothing"]
