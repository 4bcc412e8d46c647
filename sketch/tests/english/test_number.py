"""Plural and singular of nouns: one library for all, and its forms in what a plan says that somebody looks like."""

from __future__ import annotations

import subprocess
import sys

import pytest

from katha.protocols import PlanRequest
from katha.schema import StoryRecord
from katha_sketch.planner.rule import RulePlanner
from katha_sketch.vocabulary.inflect import is_plural, plural, singular

NOUNS = [
    ("wolf", "wolves"),
    ("thief", "thieves"),
    ("calf", "calves"),
    ("deer", "deer"),
    ("sheep", "sheep"),
    ("knife", "knives"),
    ("man", "men"),
    ("child", "children"),
    ("mouse", "mice"),
    ("loaf", "loaves"),
    ("half", "halves"),
    ("leaf", "leaves"),
    ("hero", "heroes"),
    ("bus", "buses"),
    ("shoe", "shoes"),
    ("horse", "horses"),
]


@pytest.mark.parametrize("many", [many for one, many in NOUNS if one != "half"])
def test_a_plan_has_several_of_a_kind_in_the_right_plural(many: str) -> None:
    text = f"Three {many} lived by the river. They sang and laughed."
    plan = RulePlanner().plan(StoryRecord(story_id="several", story_text=text), PlanRequest(panels=1))
    assert [character.appearance for character in plan.characters] == [f"three {many}"]


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *NOUNS,
        ("daisy", "daisies"),
        ("lens", "lenses"),
        ("omen", "omens"),
        ("caiman", "caimans"),
        ("German", "Germans"),
        ("old woman", "old women"),
        ("bunch of grapes", "bunches of grapes"),
        ("headache", "headaches"),
    ],
)
def test_plural_and_singular_are_each_other_s_way_back(one: str, many: str) -> None:
    assert (plural(one), singular(many)) == (many, one)
    assert (plural(many), singular(one)) == (many, one)


@pytest.mark.parametrize("word", ["does", "her", "his", "is", "these", "us", "was", "we"])
def test_what_is_no_noun_stays(word: str) -> None:
    assert plural(word) == singular(word) == word


def test_a_plural_is_known_by_its_form() -> None:
    assert [word for word in ("bus", "glass", "feet", "women", "police", "stairs", "sheep") if is_plural(word)] == [
        "feet",
        "women",
        "police",
        "stairs",
    ]


def test_importing_the_planner_does_not_load_the_library() -> None:
    told = "import sys, katha_sketch.planner.rule; print('pluralizer' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
