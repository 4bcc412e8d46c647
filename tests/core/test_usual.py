"""How judges are asked and who matches their answers, where nobody says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

import huggingface_hub
import pytest

from katha.config import Settings, refuse_code, resolve
from katha.configs import config_names
from katha.errors import UsageError
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.registry import default_registry

HERE = "http://127.0.0.1:9/v1"
NLI = "nli:cross-encoder/nli-deberta-v3-small"


class Writer(Judge):
    """Writes, and takes no prompt but katha's own."""

    def spec(self) -> dict[str, str]:
        return {"name": "writer"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        yield from (JudgeReply("ok", "a net") for _ in prompts)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is named, no model installed, and whoever calls one fails."""

    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setitem(default_registry("judges")._local, "writer", Writer)
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("judges", "answers", "matching", "note"),
    [
        (("sketch-reader",), "choice", "lemma-set", ""),
        (("none",), "choice", "lemma-set", ""),
        (("recorded:answers.jsonl",), "choice", "lemma-set", ""),
        (("anthropic:claude-haiku-5-5",), "free", "llm:anthropic:claude-sonnet-5-5", ""),
        (("anthropic:claude-sonnet-5-5",), "free", "llm:anthropic:claude-haiku-5-5", ""),
        (("openai:a", "gemini:b"), "free", "llm:openai:gpt-6-luna", ""),
        (("sketch-reader", "openai:gpt-6-luna"), "free", "llm:openai:gpt-6.1-terra", ""),
        (("openai:gpt-6-luna", "openai:gpt-6.1-terra"), "free", "llm:openai:gpt-6-luna", "which is a judge itself"),
        (("vllm:owner/model",), "free", "llm:vllm:owner/model", "which is a judge itself"),
        (("local:owner/model",), "free", "llm:local:owner/model", "which is a judge itself"),
        (("writer",), "free", "lemma-set", "No model is there to match free answers: lemma-set, a rule."),
        (("nowhere.at_all:Judge",), "free", "lemma-set", "No model is there"),
    ],
)
def test_who_judges_says_how_and_who_matches(judges: tuple[str, ...], answers: str, matching: str, note: str) -> None:
    config = Settings(judges=judges)
    assert (config.answers, config.matching) == (answers, matching)
    assert note in config.matching_note
    assert bool(note) == bool(config.matching_note)


@pytest.mark.parametrize("name", [name.removesuffix(".yaml") for name in config_names("presets")])
def test_a_preset_asks_freely_where_its_judges_write(name: str) -> None:
    def first(_: str, proposed: Sequence[object]) -> object:
        return next(one for one in proposed if one is not None)

    config = resolve({}, preset=name, environment={}, choose=first)
    assert config.answers == ("choice" if config.judges == ("sketch-reader",) else "free")
    free = config.matching.startswith("llm:") or (name, config.matching) == ("paper", "exact-set")
    assert free == (config.answers == "free")


def test_elsewhere_only_the_judges_own_model_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(judges=("openai:judge",), base_url=HERE).matching == "llm:openai:judge"
    monkeypatch.setenv("OPENAI_BASE_URL", HERE)
    assert Settings(judges=("openai:judge",)).matching == "llm:openai:judge"
    assert Settings(judges=("gemini:judge",)).matching == "llm:gemini:gemini-3.5-flash-lite"


def test_an_installed_model_matches_before_a_rule_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: "/somewhere/config.json")
    assert Settings(judges=("writer",)).matching == NLI
    assert Settings(judges=("writer",)).matching_note == ""
    assert Settings(judges=("local:owner/model",)).matching == NLI
    assert Settings(judges=("openai:a",)).matching == "llm:openai:gpt-6-luna"
    assert Settings(judges=("sketch-reader",)).matching == "lemma-set", "what only chooses needs no model"


def test_without_the_stand_in_it_is_the_papers_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_registry("matchers"), "names", list)
    config = Settings(judges=("writer",))
    assert config.matching == "exact-set"
    assert config.matching_note == "No model is there to match free answers: exact-set, a rule."


def test_what_follows_follows_and_what_was_said_stays() -> None:
    usual = Settings()
    assert (usual.answers, usual.matching) == ("choice", "lemma-set")
    for changed in (usual.with_plugins(judges=("openai:a",)), resolve({"judges": ("openai:a",)}, base=usual)):
        assert (changed.answers, changed.matching) == ("free", "llm:openai:gpt-6-luna")
    said = resolve({"answers": "choice", "matching": "exact-set", "judges": ("openai:a",)}, environment={})
    assert (said.answers, said.matching, said.matching_note) == ("choice", "exact-set", "")
    kept = Settings.model_validate_json(Settings(judges=("openai:a",)).model_dump_json())
    assert kept.with_plugins(judges=("gemini:b",)).matching == "llm:openai:gpt-6-luna", "a folder's own replays"
    free = Settings(judges=("openai:a",), matching="exact-set")
    assert free.matching_note == "", "it was named"


def test_a_file_names_no_code_that_matches() -> None:
    with pytest.raises(UsageError, match=r"code is not run because a file names it"):
        refuse_code({"matching": "llm:somewhere.module:Judge"}, "run.json")
    refuse_code({"matching": "llm:openai:gpt-6-luna"}, "run.json")


def test_a_board_drawn_without_a_judge_is_chosen_by_answers_as_its_steering_judge_gives_them() -> None:
    who = {"planner": "rule", "renderer": "sketch"}
    chosen = Settings(**who, judges=("none",), steering_judges=("openai:some",))
    assert (chosen.answers, chosen.matching.partition(":")[0]) == ("free", "llm")
    assert Settings(**who, judges=("none",)).answers == "choice", "nobody is asked"
