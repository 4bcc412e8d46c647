"""The modes as data, and what each one's inserted frame is asked to show."""

from __future__ import annotations

import pytest
from doubles import story
from pydantic import ValidationError

from katha.agents.requests import in_words
from katha.compass.modes import Mode, load_mode, load_modes
from katha.compass.repair import insertion, random_pair, transition_text
from katha.errors import UnknownPluginError
from katha.protocols import Capabilities, FrameRequest
from katha.schema import Character, Panel, Plan, Seen, Transition, Visual

TABLE = {
    "base": ("first", "none", None, None, None, None, None, "mean_over_seeds"),
    "random_frame": ("first", "extra", "neighbour_scene", "random", "always", "every", "always", "mean_over_seeds"),
    "non_semantic_frame": (
        *("first", "extra", "establishing", "random", "always", "every", "always", "mean_over_seeds"),
    ),
    "caption_bridge": ("first", "bridge", "captions", "weakest", "always", "every", "always", "mean_over_seeds"),
    "random_bridge": ("first", "bridge", "transition", "random", "always", "every", "always", "mean_over_seeds"),
    "rerank_only": ("best", "none", None, None, None, None, None, "selected"),
    "weakest_only": ("first", "none", None, "weakest", None, None, None, "selected"),
    "bridge_only": ("first", "bridge", "transition", "weakest", "weak", "every", "improvement", "mean_over_seeds"),
    "full": ("best", "bridge", "transition", "weakest", "weak", "every", "improvement", "selected"),
}


def test_the_modes_are_those_of_tables_43_55_and_75_and_one_that_only_finds() -> None:
    assert {
        name: (mode.select, mode.insert, mode.content, mode.at, mode.when, mode.draws, mode.accept, mode.report)
        for name, mode in load_modes().items()
        if name in TABLE
    } == TABLE


def test_an_unknown_mode_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownPluginError, match=r"'fulll'.*bridge_only"):
        load_mode("fulll")


def test_a_half_said_mode_is_refused() -> None:
    with pytest.raises(ValidationError, match="belong to an insertion"):
        Mode(name="x", about="", select="first", insert="bridge", content="transition", report="selected")
    with pytest.raises(ValidationError, match="belong to an insertion"):
        Mode(name="x", about="", select="first", insert="none", content="transition", report="selected")
    with pytest.raises(ValidationError, match="without an insertion, at is weakest"):
        Mode(name="x", about="", select="first", insert="none", at="random", report="selected")
    with pytest.raises(ValidationError, match="at a random transition, when is always"):
        Mode.model_validate({**load_mode("random_bridge").model_dump(), "when": "weak"})


def test_candidate_seeds() -> None:
    assert load_mode("full").candidate_seeds((42, 123)) == (42, 123)
    assert load_mode("base").candidate_seeds((42, 123)) == (42,)


WHERE = {"place": "the forest", "time_of_day": "night"}
PLAN = Plan(
    story_id="s",
    planner="p",
    characters=[
        Character(name="lion", kind="lion", appearance="a lion"),
        Character(name="mouse", kind="mouse", appearance="a small grey mouse"),
    ],
    panels=[
        Panel(index=1, prompt="The lion sleeps.", caption="The lion sleeps", characters=["lion"], **WHERE),
        Panel(index=2, prompt="The mouse runs.", caption="A mouse runs.", characters=["mouse"], **WHERE),
    ],
)
CHANGE = Transition(
    from_scene=1,
    to_scene=2,
    action="The mouse wakes the lion",
    causality="The mouse is careless.",
    emotion="The lion changes from calm to angry.",
    consequence="The mouse wakes the lion.",
)


def test_a_bridge_is_drawn_from_the_annotation() -> None:
    found = insertion("transition", PLAN, CHANGE, "s")
    assert found.prompt == (
        "The forest, night. The small grey mouse wakes the lion. The lion is angry. The mouse is careless."
    )
    assert found.characters == ("lion", "mouse")
    assert not found.other_seed


def test_a_bridge_says_nothing_twice_and_shows_the_cause() -> None:
    change = CHANGE.model_copy(
        update={
            "action": "The lion is angry and takes the mouse.",
            "consequence": "The lion is angry and takes the mouse.",
            "emotion": "The lion becomes angry.",
            "causality": "The lion is angry and takes the mouse because the mouse runs.",
        }
    )
    prompt = insertion("transition", PLAN, change, "s").prompt
    assert prompt == "The forest, night. The lion is angry and takes the small grey mouse. The mouse runs."


def test_a_caption_bridge_sees_the_captions_only() -> None:
    assert insertion("captions", PLAN, CHANGE, "s").prompt == "The lion sleeps. A mouse runs."


def test_an_establishing_shot_shows_place_and_characters_and_nothing_that_happens() -> None:
    prompt = insertion("establishing", PLAN, CHANGE, "s").prompt
    assert prompt == "Wide shot: a lion and a small grey mouse standing, the forest, night."


def test_a_plan_of_what_is_seen_calls_everybody_by_name() -> None:
    seen = PLAN.model_copy(update={"visual": Visual()})
    found = insertion("transition", seen, CHANGE, "s")
    assert found.prompt == "The mouse wakes the lion. The mouse is careless."
    assert (found.scene, found.moods) == (2, (Seen(name="lion", mood="angry"),))
    assert insertion("establishing", seen, CHANGE, "s").prompt == "Wide shot: the lion and the mouse standing."


def with_mouse(name: str, appearance: str, kind: str = "mouse") -> Plan:
    """The plan with another mouse, an owl that is in neither scene, and panels that tell more than the sheets."""
    owl = Character(name="owl", kind="owl", appearance="a snowy owl")
    cast = [PLAN.characters[0], Character(name=name, kind=kind, appearance=appearance), owl]
    told = {"prompt": "By day a big angry mouse runs past the owl in the kitchen.", "characters": [name]}
    return PLAN.model_copy(
        update={"characters": cast, "panels": [PLAN.panels[0], PLAN.panels[1].model_copy(update=told)]}
    )


def sent(plan: Plan, prompt: str) -> str:
    """What a renderer is sent that draws from the prompt alone."""
    people = tuple(one for one in plan.characters if one.name != "owl")
    return in_words(FrameRequest(prompt, 1, 64, 48, characters=people), Capabilities()).prompt


def test_a_bridge_keeps_a_look_to_the_letter_and_shows_nobody_else() -> None:
    plan = with_mouse("mouse", "a freckled one-eyed mouse")
    prompt = insertion("transition", plan, CHANGE, "s").prompt
    assert prompt == (
        "The forest, night. The freckled one-eyed mouse wakes the lion. The lion is angry. The mouse is careless."
    )
    assert sent(plan, prompt) == prompt


@pytest.mark.parametrize(
    ("name", "appearance", "told"),
    [
        ("mouse", "a freckled, one-eyed mouse", "The freckled, one-eyed mouse wakes the lion."),
        ("mouse", "a freckled one-eyed rodent", "The mouse wakes the lion."),
        ("mouse", "a grey mouse, freckled one-eyed face, no clothes", "The mouse wakes the lion."),
        ("Pip", "a freckled one-eyed animal", "The mouse wakes the lion."),
    ],
)
def test_a_look_that_is_no_part_of_a_sentence_stands_beside_it(name: str, appearance: str, told: str) -> None:
    plan = with_mouse(name, appearance)
    prompt = insertion("transition", plan, CHANGE, "s").prompt
    assert prompt == f"The forest, night. {told} The lion is angry. The mouse is careless."
    assert sent(plan, prompt).count("one-eyed") == 1
    assert appearance in insertion("establishing", plan, CHANGE, "s").prompt


@pytest.mark.parametrize(
    ("kind", "action"),
    [("lion", "The lion wakes the lion."), ("mouse", "The mouse's tail falls."), ("ant", "The elephant sits.")],
)
def test_a_look_is_given_to_nobody_else(kind: str, action: str) -> None:
    plan = with_mouse("Pip", f"a one-eyed {kind}", kind)
    change = CHANGE.model_copy(update={"action": action, "causality": "", "emotion": "", "consequence": ""})
    assert insertion("transition", plan, change, "s").prompt == f"The forest, night. {action}"


def test_a_bridge_is_nowhere_where_the_plan_names_no_place() -> None:
    panels = [panel.model_copy(update={"place": "", "time_of_day": ""}) for panel in PLAN.panels]
    panels = [panel.model_copy(update={"prompt": f"Forest by night. {panel.prompt}"}) for panel in panels]
    plan = PLAN.model_copy(update={"panels": panels})
    assert insertion("transition", plan, CHANGE, "s").prompt.startswith("The small grey mouse wakes the lion.")
    assert insertion("establishing", plan, CHANGE, "s").prompt.endswith("mouse standing.")


def test_another_generation_needs_another_seed() -> None:
    found = insertion("neighbour_scene", PLAN, CHANGE, "s")
    assert found.other_seed
    assert found.prompt in {panel.prompt for panel in PLAN.panels}


def test_the_random_transition_depends_on_the_story_alone() -> None:
    pairs = [(number, number + 1) for number in range(1, 5)]
    assert random_pair(pairs, "lion") == random_pair(pairs, "lion")
    assert {random_pair(pairs, f"story {number}") for number in range(60)} == set(pairs)


def test_the_transition_s_text_holds_its_fields_once() -> None:
    text = transition_text(story().transitions[0])
    assert text.startswith("The lion runs to tree number 2. The lion is hungry.")
    assert text.count("The lion rests at tree number 2.") == 1
