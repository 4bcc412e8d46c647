"""`fragments` over the vendors' real SDKs: what is sent, and what is made of the replies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from api_server import serving
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import ReplyError
from katha.protocols import PlanRequest
from katha.registry import default_registry
from katha.schema import Plan, StoryRecord

MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4o"}
PIECES = ("Joe went to the junkyard.", "He dug through old clothes. At the bottom was a shirt.", "It fit.")
STORY = " ".join(PIECES)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def reply(number: int, body: dict[str, Any]) -> dict[str, Any]:
    """Cut the story into its pieces, and caption a piece by its own words, as a server that is held to a schema."""
    told = str(body["messages"][-1]["content"])
    piece = re.findall(r"Story Fragment: (.*)\nCaption for Story Fragment:", told)
    if piece:
        return {"text": json.dumps({"caption": f"A man named Joe: {piece[-1]}"})}
    return {"text": json.dumps({"fragmented_story": " ".join(f"[{piece}]" for piece in PIECES)})}


@pytest.mark.parametrize("provider", list(MODELS))
def test_fragments_and_captions_come_from_a_server(provider: str) -> None:
    with serving(provider, reply) as server:
        planner = default_registry("planners").create(f"fragments:{provider}:{MODELS[provider]}", base_url=server.url)
        plan = planner.plan(StoryRecord(story_id="joe", title="Joe", story_text=STORY), PlanRequest(panels=3))
        assert [panel.source for panel in plan.panels] == list(PIECES)
        assert [panel.prompt for panel in plan.panels] == [f"A man named Joe: {piece}" for piece in PIECES]
        assert server.number == 1 + len(PIECES)
        sent = [json.dumps(server.body(number)) for number in range(4)]
        assert "fragmented_story" in sent[0], "the schema is sent"
        assert all("caption" in body for body in sent[1:])
        assert all(STORY in body for body in sent)
        assert planner.spec()["model"]["name"] == f"{provider}:{MODELS[provider]}"


def test_a_story_that_comes_back_in_other_words_is_refused() -> None:
    changed = {"text": json.dumps({"fragmented_story": "[Joe went to a junkyard.] [It fit.]"})}
    with serving("openai", lambda number, body: changed) as server:
        planner = default_registry("planners").create("fragments:openai:gpt-4o", base_url=server.url)
        with pytest.raises(ReplyError, match="word 4 is 'a', in the story 'the'"):
            planner.plan(StoryRecord(story_id="joe", title="Joe", story_text=STORY), PlanRequest(panels=2))


def test_the_command_plans_by_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "joe.txt"
    path.write_text(STORY, encoding="utf-8")
    with serving("openai", reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        arguments = ["plan", str(path), "--planner", "fragments:openai:gpt-4o", "--panels", "3"]
        told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    plan = Plan.model_validate_json(told.stdout)
    assert [panel.caption for panel in plan.panels] == list(PIECES)
