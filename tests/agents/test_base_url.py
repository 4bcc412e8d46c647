"""One flag says where language models are called, whatever they do; a plug-in's own option goes before."""

from __future__ import annotations

from typing import Any

import pytest

from katha.agents.context import judges_address, load_plugins, make_planner, make_renderer
from katha.config import Settings
from katha.errors import ModelError, UsageError
from katha.eval_bridge.matching.rules import make_decider
from katha.protocols import Judge

HERE, OWN = "http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"
EVERYBODY = Settings(
    planner="gemma-st:openai:plans",
    renderer="vector:openai:draws",
    bridge_renderer="vector:anthropic:bridges",
    judges=("openai:sees",),
    writer="openai:writes",
    matching="llm:openai:matches",
    mode="agentic",
    base_url=HERE,
)


@pytest.fixture(autouse=True)
def at_their_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-nothing")
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)


def address(made: Any) -> str:
    """Where a plug-in calls its model."""
    for name in ("_model", "_judge", "model"):
        inner = getattr(made, name, None)
        if inner is not None and not isinstance(inner, str):
            return address(inner)
    return str((getattr(made, "vendor", None) or made._vendor).url)


def test_one_flag_reaches_whoever_has_a_language_model() -> None:
    made = load_plugins(EVERYBODY)
    found = {"planner": made.planner, "renderer": made.renderer, "bridge": made.bridge, "writer": made.writer}
    found |= {"judge": made.judges["openai:sees"], "matcher": make_decider(EVERYBODY.matching, EVERYBODY.base_url)}
    assert {name: address(one) for name, one in found.items()} == dict.fromkeys(found, HERE)


def test_an_option_of_its_own_goes_before() -> None:
    told = EVERYBODY.model_copy(
        update={"planner_options": {"base_url": OWN}, "renderer_options": {"base_url": OWN}, "bridge_renderer": None}
    )
    made = load_plugins(told)
    assert (address(made.planner), address(made.renderer)) == (OWN, OWN)
    assert address(made.judges["openai:sees"]) == HERE


@pytest.mark.parametrize("renderer", ["openai:gpt-image-2.6-flare", "gemini:gemini-nano-banana-2.1"])
def test_image_services_and_whoever_has_no_such_model_keep_their_own(renderer: str) -> None:
    drawn: Any = make_renderer(EVERYBODY.model_copy(update={"renderer": renderer}))
    assert "127.0.0.1" not in address(drawn)
    make_planner(EVERYBODY.model_copy(update={"planner": "direct"}))
    with pytest.raises(ModelError, match="not on this machine"):  # and not that it has no such option
        make_planner(EVERYBODY.model_copy(update={"planner": "gemma-st:some/model"}))


def test_a_flag_that_reaches_nobody_is_refused_and_one_that_reaches_a_planner_is_not() -> None:
    unseen = EVERYBODY.model_copy(update={"judges": ("none",), "matching": "exact-set", "bridge_renderer": None})
    assert judges_address(unseen) is None
    nobody = unseen.model_copy(
        update={"planner": "direct", "renderer": "folder:x", "writer": None, "mode": "base", "guide": None}
    )
    assert judges_address(nobody) == HERE
    with pytest.raises(UsageError, match="--base-url is given, but no judge here calls a server"):
        load_plugins(nobody)
    assert isinstance(load_plugins(unseen).judges["none"], Judge)
