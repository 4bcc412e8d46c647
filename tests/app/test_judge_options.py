"""What a command says about its judges: address, reuse check, prompt variant, presets of the paper's pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cli_child
import pytest
from api_server import KEY, Server, Step, serving
from evals import answer, draw, records
from tiny_vlm import build
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.config import resolve
from katha.configs import config_names
from katha.errors import KathaError, UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.packets.instructions import variants

TEXT = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
PAPER = [
    "gemini:gemini-3.5-flash-lite",
    "anthropic:claude-haiku-4-5-20251001",
    "local:Qwen/Qwen2.5-VL-7B-Instruct",
    "local:Qwen/Qwen2.5-VL-3B-Instruct",
    "local:HuggingFaceTB/SmolVLM2-2.2B-Instruct",
    "local:HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
]


def good(number: int, body: dict[str, Any]) -> Step:
    return {"text": answer(body)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with ExitStack() as running:
        yield running.enter_context(serving("openai", good))


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def boards(tmp_path: Path) -> list[object]:
    """The arguments of an evaluation of two stories."""
    stories = records(2)
    (tmp_path / "stories.jsonl").write_text("\n".join(record.model_dump_json() for record in stories))
    return ["eval", tmp_path / "stories.jsonl", "--boards", draw(tmp_path / "flux", stories).folder, "--resamples", 9]


def test_a_run_asks_the_server_that_it_is_told(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_child.install(monkeypatch)
    words = ["run", TEXT, "--renderer", "block", "--size", "96x64", "--mode", "base", "--json", "--out", "out"]
    done = call(*words, "--judge", "openai:gpt-4o", "--base-url", server.url, "--variant", "uncertain")
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (told["config"]["base_url"], told["config"]["variant"]) == (server.url, "uncertain")
    assert KEY not in (tmp_path / "out" / "run.json").read_text()
    heard = {b"guess is worth less" in body for body in server.bodies}
    assert heard == {True, False}, "reporting questions use the variant, steering questions do not"
    assert server.number > 10


@pytest.mark.parametrize("variant", ["neutral", "plain", "strict", "uncertain", "paper"])
def test_an_evaluation_uses_the_variant(server: Server, boards: list[object], variant: str) -> None:
    words = [
        "--judge",
        "openai:gpt-4o",
        "--base-url",
        server.url,
        "--variant",
        variant,
        "--out",
        variant,
        "--json",
        "--no-entrance",
    ]
    assert call(*boards, *words).exit_code == 0
    stances = {
        "neutral": b"as it is",
        "plain": b"looks at them once",
        "strict": b"do not fill gaps",
        "uncertain": b"guess is worth less",
    }
    stances["paper"] = b"Return only the required structured output."
    assert set(stances) == set(variants())
    shown = [body for body in server.bodies if b"neither the story nor any picture" not in body]
    assert len(server.bodies) - len(shown) == len(server.bodies) // 4, "a guess has no stance"
    for name, words_of_it in stances.items():
        assert all((words_of_it in body) == (name == variant) for body in shown)


def test_reuse_is_checked_where_a_model_shares_its_prefix(server: Server, boards: list[object], tmp_path: Path) -> None:
    model = build("qwen2_5_vl", tmp_path / "model")
    words = ["--judge", f"local:{model}", "--verify-reuse", 0.5, "--out", "out", "--judge-option", "reuse=sequential"]
    words += ["--answers", "choice"]  # random weights write freely up to the limit, and the model would match them, too
    done = call(*boards, *words, "--json")
    assert done.exit_code == 0, done.output
    (account,) = json.loads(done.stdout)["calls"].values()
    (spec,) = json.loads((tmp_path / "out" / "eval.json").read_text())["judges"].values()
    assert spec["reuse"] == "sequential"
    checked = account["reuse"]["checked"]
    assert (account["calls"], account["reuse"]["flipped"]) == (24, 0)
    assert 3 < checked < 15
    assert f"{checked} replies were asked again without it, 0 changed" in call(*boards, *words).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--verify-reuse", "0.1"], "shares a prefix"),
        (["--base-url", "http://127.0.0.1:1/v1"], "calls a server"),
        (["--concurrency", "4"], "calls a server"),
        (["--base-url", "ftp://x"], "http://HOST"),
        (["--base-url", "https://me:secret@example.org"], "leave names, passwords"),
        (["--judge-option", "reuse=off"], "No judge here has an option 'reuse'"),
        (["--judge-option", "base_url=http://x"], "Use --base-url"),
        (["--variant", "bold"], "'bold' is not known"),
        (["--preset", "nothing"], "No preset is called"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_no_judge_has_is_refused_before_any_work(
    boards: list[object], words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UsageError, match=message) as caught:
        call(*boards, "--judge", "sketch-reader", "--out", tmp_path / "no", *words)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "no").exists()


def test_a_run_does_not_report_with_the_variant_that_steers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot report"):
        call("run", TEXT, "--variant", "neutral", "--out", tmp_path / "no")


def test_the_paper_s_judges_are_presets(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    config = resolve({}, preset="paper-judges", environment={})
    assert (list(config.judges), config.answers) == (PAPER, "free")
    halves = [resolve({}, preset=f"paper-judges-{half}", environment={}).judges for half in ("api", "open")]
    assert [*halves[0], *halves[1]] == PAPER
    main = [name for name in PAPER if not name.startswith("anthropic:")]
    letter = resolve({}, preset="paper", environment={})
    assert list(resolve({}, preset="paper-judges-main", environment={}).judges) == list(letter.judges) == main
    assert (letter.answers, letter.matching, letter.variant) == ("free", "exact-set", "paper")
    assert [name for name in config_names("presets") if resolve({}, preset=name, environment={}) is None] == []
    made = dict(make_judges(halves[0]))
    assert [judge.spec()["decoding"]["temperature"] for judge in made.values()] == [None, 0]
    assert [bool(getattr(judge, "price", None)) for judge in made.values()] == [True, True]
    for name in halves[1]:
        with pytest.raises(KathaError, match=f"hf download {name.removeprefix('local:')}"):
            make_judges([name])


def test_gemini_is_asked_over_its_compatible_endpoint(server: Server, boards: list[object]) -> None:
    words = ["--judge", "gemini:gemini-2.5-flash", "--base-url", server.url, "--out", "out", "--json"]
    done = call(*boards, *words)
    assert done.exit_code == 0, done.output
    body = json.loads(server.bodies[0])
    assert (body["model"], body["temperature"], body["reasoning_effort"]) == ("gemini-2.5-flash", 0, "none")
    assert body["response_format"]["json_schema"]["strict"] is True
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert json.loads(done.stdout)["calls"]["gemini:gemini-2.5-flash"]["cost"] > 0


def test_every_server_judge_needs_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: dict[str, Callable[[], object]] = {
        "GEMINI_API_KEY": lambda: make_judges(["gemini:gemini-2.5-flash"]),
        "ANTHROPIC_API_KEY": lambda: make_judges(["anthropic:claude-haiku-4-5"]),
        "OPENAI_API_KEY": lambda: make_judges(["openai:gpt-4o"]),
    }
    for name, make in keys.items():
        monkeypatch.delenv(name, raising=False)
        with pytest.raises(UsageError, match=name):
            make()
