"""Presets that propose: the first of what this machine has; and how far a plan is that takes long."""

from __future__ import annotations

from pathlib import Path

import pytest

from katha.app.cli.plugins import _presets
from katha.app.drawing import settings_for
from katha.app.needs import needs_of_run
from katha.app.presets import lacks
from katha.config import resolve
from katha.errors import UsageError

TEXT = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VLLM_BASE_URL", "SGLANG_BASE_URL")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


@pytest.fixture
def preset(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "planner: {first_of: ['gemma-st:anthropic:claude-haiku-4-5', rule]}\n"
        "judges: {first_of: ['anthropic:claude-haiku-4-5', 'gemini:gemini-2.5-flash', [sketch-reader]]}\n"
    )
    return str(path)


def test_the_first_that_is_here_is_taken(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_for(preset, {})
    assert (found.planner, found.judges) == ("rule", ("sketch-reader",))
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert settings_for(preset, {}).judges == ("gemini:gemini-2.5-flash",)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    found = settings_for(preset, {})
    assert (found.planner, found.judges) == ("gemma-st:anthropic:claude-haiku-4-5", ("anthropic:claude-haiku-4-5",))


def test_a_flag_and_the_environment_come_before_a_proposal(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("KATHA_JUDGES", "openai:served")
    found = settings_for(preset, {"planner": "rule"})
    assert (found.planner, found.judges) == ("rule", ("openai:served",))


def test_where_nothing_is_here_each_proposal_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("judges: {first_of: ['anthropic:claude-haiku-4-5', 'gemini:gemini-2.5-flash']}\n")
    with pytest.raises(UsageError) as refused:
        settings_for(str(path), {})
    assert "ANTHROPIC_API_KEY" in str(refused.value.hint)
    assert "GEMINI_API_KEY" in str(refused.value.hint)
    needs = needs_of_run(TEXT, str(path)).needs  # counting needs no key
    assert [need.name for need in needs if need.kind == "answers"] == ["anthropic:claude-haiku-4-5"]


def test_a_preset_proposes_no_code(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("judges: {first_of: [sketch-reader, 'os.path:join']}\n")
    with pytest.raises(UsageError, match="code"):
        resolve({}, preset=str(path))


@pytest.mark.parametrize("name", ["flux", "schnell", "sdxl", "consistory", "api", "paper"])
def test_a_preset_of_boards_names_who_plans_draws_and_judges(name: str) -> None:
    config, problem = lacks(name)
    assert problem
    assert config.renderer != "sketch"
    assert "sketch-reader" not in config.judges


def test_the_best_preset_here_is_the_first_that_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(_presets(None)["best here"]) == ["embedded"]
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert list(_presets(None)["best here"]) == ["vector"]
    assert "gemma-st:gemini:gemini-3.8-flash + gemini:" in _presets(None)["would run"]["api"]


def test_the_command_says_who_does_what_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from katha.app.cli.main import app

    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    out = CliRunner().invoke(app, ["run", str(TEXT), "--preset", "flux", "--judge", "none"])
    assert out.exit_code != 0  # its weights are not here
    assert out.stderr.startswith(
        "At most: rule plans (1), flux:black-forest-labs/FLUX.1-dev draws (14).\nNobody judges"
    )
