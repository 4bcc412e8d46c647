"""What each family of models is told of the ten examples, word by word: a change of a prompt is seen here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from katha.agents.requests import panel_request
from katha.composing import compose, load_family
from katha.composing.families import composing_data
from katha.configs import load_config
from katha.planners.gold import OraclePlanner
from katha.protocols import PlanRequest, tokens_of
from katha.schema import StoryRecord

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.json"))
GOLDEN = Path(__file__).parents[1] / "data" / "golden_prompts.json"
STYLE = "soft watercolour"
DIALECT = re.compile(r"There (is|are) (while|in|net\\b)|The place is the")
"""Sentences that only the stand-in's drawing reads."""


def told() -> dict[str, dict[str, list[str]]]:
    """Return by family and story what the first and the third frame are asked for as."""
    found: dict[str, dict[str, list[str]]] = {name: {} for name in composing_data().families}
    for path in EXAMPLES:
        record = StoryRecord.model_validate_json(path.read_text("utf-8"))
        plan = OraclePlanner().plan(record, PlanRequest(panels=len(record.scenes), style=STYLE))
        for name, prompts in found.items():
            requests = [panel_request(plan, plan.panels[at], 42, (1024, 1024)) for at in (0, 2)]
            prompts[record.story_id] = [compose(one, load_family(name), tokens_of).text for one in requests]
    return found


def test_prompts_are_as_they_were() -> None:
    """Written anew by `python tests/core/test_golden_prompts.py` where a change is meant; read the difference."""
    assert len(EXAMPLES) == 10
    assert told() == json.loads(GOLDEN.read_text("utf-8"))


def test_every_prompt_names_its_style_and_none_is_written_for_the_stand_in() -> None:
    for family, stories in told().items():
        for prompt in (text for prompts in stories.values() for text in prompts):
            assert STYLE in prompt.lower(), family
            assert not DIALECT.search(prompt), prompt
            assert ".." not in prompt
            assert " ," not in prompt


@pytest.mark.parametrize("name", ["api", "consistory", "flux", "schnell", "sdxl", "vector"])
def test_every_preset_that_draws_has_a_style(name: str) -> None:
    assert load_config(f"presets/{name}.yaml")["style"]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(told(), indent=1, ensure_ascii=False) + "\n", "utf-8")
