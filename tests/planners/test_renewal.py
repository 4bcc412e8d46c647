"""Plans changed by hand: panels added, moved and taken away, prompts and transitions rewritten, nothing numbered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from katha.agents.context import make_plan
from katha.config import Settings
from katha.planners.base import validate_plan
from katha.planners.plan_revision import read_plan
from katha.schema import Plan, StoryRecord

TEXT = (
    "Mina baked a cake in the kitchen. Theo played the guitar. The dog ate the cake. Mina cried. Theo ran to the shop. "
    "Grandmother opened the door."
)
RECORD = StoryRecord(story_id="s", story_text=TEXT)


@pytest.fixture(scope="module")
def value() -> dict[str, Any]:
    return make_plan(RECORD, Settings(panels=6)).model_dump(mode="json")


def again(value: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> Plan:
    copy = Plan.model_validate(value).model_dump(mode="json")
    change(copy)
    made = read_plan(copy, RECORD)
    validate_plan(made, RECORD)
    return made


def actions(plan: Plan) -> list[str]:
    return [step.action for step in plan.transitions]


def test_an_unchanged_plan_is_itself(value: dict[str, Any]) -> None:
    made = again(value, lambda plan: None)
    assert made.model_dump(mode="json") == value
    assert made.renewed == []


def test_a_new_prompt_renews_the_transitions_on_both_sides(value: dict[str, Any]) -> None:
    made = again(value, lambda plan: plan["panels"][2].update(prompt="The cat drinks the milk."))
    assert actions(made)[1] == "The cat drinks the milk."
    assert [actions(made)[at] for at in (0, 3, 4)] == [value["transitions"][at]["action"] for at in (0, 3, 4)]
    assert made.renewed == ["Made again from the prompts: the transitions from panel 2 to 3, 3 to 4."]


def test_panels_are_numbered_as_they_stand(value: dict[str, Any]) -> None:
    gone = again(value, lambda plan: plan["panels"].pop(2))
    assert [panel.index for panel in gone.panels] == [1, 2, 3, 4, 5]
    assert [step.pair for step in gone.transitions] == [(1, 2), (2, 3), (3, 4), (4, 5)]
    assert actions(gone)[2:] == [step["action"] for step in value["transitions"][3:]]
    assert "numbered 1 to 5" in gone.renewed[0]
    assert gone.coverage is not None
    assert gone.coverage.not_drawn == ["The dog ate the cake."]
    added = again(value, lambda plan: plan["panels"].insert(1, {"prompt": "The cat sleeps."}))
    assert [panel.index for panel in added.panels] == [1, 2, 3, 4, 5, 6, 7]
    assert actions(added)[0] == "The cat sleeps."
    assert actions(added)[2:] == actions(Plan.model_validate(value))[1:]
    moved = again(value, lambda plan: plan["panels"].insert(0, plan["panels"].pop()))
    assert moved.panels[0].prompt == value["panels"][5]["prompt"]
    assert actions(moved)[1:] == actions(Plan.model_validate(value))[:4]


def test_what_was_rewritten_by_hand_stays(value: dict[str, Any]) -> None:
    def both(plan: dict[str, Any]) -> None:
        plan["panels"][2]["prompt"] = "The cat drinks the milk."
        plan["transitions"][1].update(action="The cat comes to the bowl.", emotion=None, causality=None)

    made = again(value, both)
    assert actions(made)[1] == "The cat comes to the bowl."
    assert made.transitions[1].causality == ""
    assert "Kept, because it was changed by hand as well: the transition from panel 2 to 3." in made.renewed


def test_no_transitions_and_two_panels_are_a_plan(value: dict[str, Any]) -> None:
    def two(plan: dict[str, Any]) -> None:
        plan.update(panels=plan["panels"][:2], transitions=[])

    assert actions(again(value, two)) == [value["transitions"][0]["action"]]
    foreign = {key: item for key, item in value.items() if key not in ("made", "coverage")}
    assert again(foreign, lambda plan: None).transitions == Plan.model_validate(value).transitions


def test_prompts_that_cannot_be_read_are_told_as_they_are(value: dict[str, Any]) -> None:
    def french(plan: dict[str, Any]) -> None:
        for panel in plan["panels"]:
            panel["prompt"] = "Une souris court sur le nez du lion qui dormait dans la grande forêt."

    assert set(actions(again(value, french))) == {
        "Une souris court sur le nez du lion qui dormait dans la grande forêt."
    }


def test_an_act_whose_panel_is_taken_away_is_not_drawn() -> None:
    text = "Theo played the guitar. Mina turned the picture over and read out the names. The dog ate the cake."
    record = StoryRecord(story_id="s", story_text=text)
    whole = make_plan(record, Settings()).model_dump(mode="json")
    told = [panel["caption"] for panel in whole["panels"]]
    assert told[1:3] == ["Mina turned the picture over.", "Mina read out the names."]
    del whole["panels"][1]
    known = read_plan(whole, record).coverage
    assert known is not None
    assert (known.drawn, known.not_drawn) == (2, ["Mina turned the picture over."])


def test_a_caption_in_other_words_still_tells_its_sentence(value: dict[str, Any]) -> None:
    other = again(value, lambda plan: plan["panels"][0].update(caption="Mina bakes in her tiny kitchen."))
    assert other.coverage is not None
    assert (other.coverage.drawn, other.coverage.not_drawn) == (6, [])
    foreign = {"caption": "A whale sings.", "prompt": "A whale sings in the sea."}
    gone = again(value, lambda plan: plan["panels"][0].update(foreign))
    assert gone.coverage is not None
    assert gone.coverage.not_drawn == ["Mina baked a cake in the kitchen."]
