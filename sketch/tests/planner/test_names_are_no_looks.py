"""A name is no look: nobody is drawn black, green, young or sharp because of a surname."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from katha.protocols import PlanRequest
from katha.schema import StoryRecord
from katha_sketch.planner.rule import RulePlanner

NAMES = (Path(__file__).parents[1] / "data" / "names.txt").read_text("utf-8").split()


@pytest.mark.parametrize("title", ["Mr", "Mrs", ""])
def test_no_name_becomes_a_look(title: str) -> None:
    assert len(set(NAMES)) == len(NAMES) >= 200
    looks = {}
    for name in NAMES:
        who = f"{title} {name}".strip()
        text = f"{who} opened the door. A dog ran to {who}. {who} laughed."
        story = StoryRecord(story_id="names", title="Names", story_text=text)
        for one in RulePlanner().plan(story, PlanRequest(panels=3)).characters:
            word = rf"\b{name.lower()}\b"
            if name in one.name and re.search(word, one.appearance.lower()) and one.kind != name.lower():
                looks[who] = one.appearance
    assert looks == {}
