"""The planner that needs no model: text and records to plans whose prompts read back, and refusals that say why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.errors import PlanError, UsageError
from katha.language import load_vocabulary, read_scene
from katha.planners.base import validate_plan
from katha.planners.rule import RulePlanner
from katha.protocols import Planner, PlanRequest
from katha.schema import MORAL_LABELS, Plan, StoryRecord

FABLES = sorted((Path(__file__).parents[1] / "data" / "fables").glob("*.txt"))
PRONOUNS = {"he", "she", "it", "they", "him", "her", "them", "his", "its", "their"}


def story(text: str, **fields: Any) -> StoryRecord:
    return StoryRecord.model_validate({"story_id": "s", "title": "T", "story_text": text, **fields})


def plan(text: str, panels: int = 5, **fields: Any) -> Plan:
    return RulePlanner().plan(story(text, **fields), PlanRequest(panels=panels))


def record(**fields: Any) -> StoryRecord:
    """The lion and the mouse with annotations, as KathaBench has them."""
    rows: list[tuple[str, dict[str, Any]]] = [
        (
            "A lion sleeps in the forest.",
            {"generation_prompt": "A lion sleeping under a tree in a forest", "emotion": "calm"},
        ),
        ("A small mouse wakes him and the lion seizes her.", {"visual_must_show": ["the lion holds the mouse"]}),
        ("The lion is caught in a net.", {"generation_prompt": "The lion trapped in a net", "emotion": "fear"}),
        ("The mouse gnaws the ropes.", {"visual_must_show": ["mouse biting the rope", "lion in a net"]}),
        ("They are friends.", {"action": "hugs the mouse", "characters": ["lion", "mouse"], "emotion": "grateful"}),
    ]
    scenes = [{"scene_index": at, "scene_text": text, **more} for at, (text, more) in enumerate(rows, 1)]
    transitions = [{"from_scene": at, "to_scene": at + 1, "action": f"kept {at}"} for at in range(1, 5)]
    text = " ".join(text for text, _ in rows)
    base = {"story_id": "lm", "story_text": text, "scenes": scenes, "transitions": transitions}
    return StoryRecord.model_validate({**base, **fields})


def test_it_is_a_planner() -> None:
    planner = RulePlanner()
    assert isinstance(planner, Planner)
    assert planner.spec()["name"] == "rule"
    assert len(str(planner.spec()["vocabulary"])) == 64
    with pytest.raises(UsageError, match="no argument"):
        RulePlanner("large")


@pytest.mark.parametrize("path", FABLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("panels", [2, 5, 9])
def test_a_fable_becomes_a_plan_that_holds_together(path: Path, panels: int) -> None:
    made = plan(path.read_text(), panels)
    validate_plan(made, story(path.read_text()))
    assert len(made.panels) == panels
    assert made.information == ["story_text"]
    concepts = {load_vocabulary().find(character.kind, "character") for character in made.characters}
    for panel in made.panels:
        reading = read_scene(panel.prompt)
        assert reading.unread == ()
        assert len(reading.actors) == len(panel.characters) > 0
        assert {actor.concept for actor in reading.actors} <= concepts
        assert any(actor.action or actor.emotion for actor in reading.actors)
        assert not PRONOUNS & set(panel.prompt.lower().replace(".", " ").split())
        assert panel.caption in " ".join(path.read_text().split()).replace("n't", " n't")
        assert panel.must_show


@pytest.mark.parametrize("path", FABLES, ids=lambda path: path.stem)
def test_the_six_fields_are_sentences(path: Path) -> None:
    made = plan(path.read_text())
    assert [transition.pair for transition in made.transitions] == [(1, 2), (2, 3), (3, 4), (4, 5)]
    for transition in made.transitions:
        for text in (transition.action, transition.causality, transition.intention, transition.consequence):
            assert text
            assert text[0].isupper()
            assert text.endswith(".")
        assert " because " in transition.causality
        assert transition.moral_target in MORAL_LABELS
        assert transition.expected_change
        assert transition.recoverability_target
    assert made.transitions[-1].transition_type == "consequence_reveal"


def test_the_main_events_are_shown() -> None:
    text = (FABLES[0].parent / "doves_and_net.txt").read_text()
    shown = [(a.concept, a.action, a.target) for p in plan(text).panels for a in read_scene(p.prompt).actors]
    assert ("dove", "trapped", "net") in shown
    assert ("mouse", "free", "dove") in shown


def test_feelings_change_in_words() -> None:
    made = plan("The fox was happy and danced. The wolf came. The fox trembled and hid. The wolf slept.", 2)
    assert made.transitions[0].emotion == "The fox changes from happy to afraid."


def test_characters_of_one_kind_are_told_apart() -> None:
    made = plan((FABLES[0].parent / "town_country_mouse.txt").read_text())
    looks = {character.name: character.appearance for character in made.characters}
    assert looks["country mouse"] == "a mouse with a red scarf"
    assert looks["town mouse"] == "a mouse with a blue scarf"
    for panel in made.panels:
        mice = [actor.attributes for actor in read_scene(panel.prompt).actors if actor.concept == "mouse"]
        assert len(set(mice)) == len(mice)
        assert all(mice)


def test_an_anchor_shows_one_character_alone() -> None:
    made = plan("A small grey mouse bit the rope. The old lion laughed.")
    anchors = {character.name: character.anchor_prompt for character in made.characters}
    (mouse,) = read_scene(anchors["mouse"]).actors
    assert (mouse.concept, mouse.attributes, mouse.action) == ("mouse", ("small", "grey"), None)


def test_the_storys_own_words_are_kept() -> None:
    made = plan("The hare ran. The tortoise walked to the hare.", 2)
    assert [character.kind for character in made.characters] == ["hare", "tortoise"]
    assert "hare" in made.panels[0].prompt


def test_fewer_sentences_than_panels_is_no_error() -> None:
    made = plan("The fox chased the hen. The hen hid.", 24)
    assert len(made.panels) == 24
    assert made.panels[-1].prompt != made.panels[0].prompt


def test_planning_twice_gives_the_same_plan() -> None:
    text = FABLES[0].read_text()
    assert plan(text) == plan(text)


def test_a_prompt_limit_is_kept() -> None:
    text = (FABLES[0].parent / "town_country_mouse.txt").read_text()
    made = RulePlanner().plan(story(text), PlanRequest(prompt_tokens=24))
    assert all(len(panel.prompt.split()) * 4 <= 24 * 3 or panel.prompt.count(".") == 1 for panel in made.panels)


def test_of_a_record_only_the_scenes_texts_are_seen() -> None:
    made = RulePlanner().plan(record(), PlanRequest())
    validate_plan(made, record())
    assert made.information == ["story_text", "scene_count", "scene_text"]
    assert not any("kept" in transition.action for transition in made.transitions)
    readings = [read_scene(panel.prompt) for panel in made.panels]
    assert readings[0].actors[0].action == "sleep"
    assert readings[2].actors[0].action == "trapped"
    assert ("mouse", "bite") in {(actor.concept, actor.action) for actor in readings[3].actors}
    assert [panel.caption for panel in made.panels] == [scene.scene_text for scene in record().scenes]


def test_a_scene_that_names_nobody_shows_its_neighbour() -> None:
    rows = record().model_dump()["scenes"]
    for at in (0, 3):
        rows[at]["scene_text"] = "It went on and on."
    made = RulePlanner().plan(record(scenes=rows), PlanRequest())
    assert made.panels[0].characters == made.panels[1].characters
    assert made.panels[3].characters == made.panels[2].characters
    for row in rows:
        row["scene_text"] = "It went on and on."
    with pytest.raises(PlanError, match="nobody in any 'scene_text'"):
        RulePlanner().plan(record(scenes=rows), PlanRequest())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("Hello", "one word"),
        ("bread " * 40_000, "characters"),
        ("Il était une fois un lion qui dormait dans la forêt. Une souris courut sur son nez.", "English"),
        ("Ein Löwe schlief im Wald. Eine kleine Maus lief über seine Nase und weckte ihn auf.", "English"),
        ("Un león dormía en el bosque. Un ratón corrió sobre su nariz y lo despertó.", "English"),
        ("獅子が森で眠っていた。小さなねずみが鼻の上を走った。", "English"),
        ("The price of it went up in that year, and the year after that.", "no event"),
    ],
)
def test_texts_that_cannot_be_planned(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        plan(text)
    assert caught.value.hint
    assert "'s'" in caught.value.message


def test_records_that_do_not_fit() -> None:
    full = record().model_dump()
    kept = [row for row in full["transitions"] if row["from_scene"] != 2]
    rows = [*full["scenes"][:4], {**full["scenes"][4], "scene_index": 9}]
    more = [*full["transitions"], {"from_scene": 1, "to_scene": 3}]
    cases = [
        (record(), 7, "5 scenes, but 7 panels"),
        (record(transitions=kept), 5, "none from scene 2 to scene 3"),
        (record(scenes=rows), 5, "numbered 1 to 5"),
        (record(transitions=more), 5, "scene 1 to scene 3"),
    ]
    for wrong, panels, said in cases:
        with pytest.raises(PlanError, match=said):
            RulePlanner().plan(wrong, PlanRequest(panels=panels))


def _edit(**fields: Any) -> Plan:
    made = plan("The fox chased the hen. The hen hid in the barn.", 3).model_dump()
    for path, value in fields.items():
        head, _, tail = path.partition("__")
        if tail:
            made[head][1][tail] = value
        else:
            made[head] = value
    return Plan.model_validate(made)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"story_id": "other"}, "story_id"),
        ({"panels__prompt": "  "}, "prompt"),
        ({"panels__characters": ["dragon"]}, "characters"),
        ({"panels__index": 7}, "panels"),
        ({"panels": []}, "panels"),
        ({"transitions__to_scene": 9}, "transitions"),
        ({"transitions": [{"from_scene": 1, "to_scene": 2}]}, "transitions"),
        ({"characters": []}, "characters"),
    ],
)
def test_an_edited_plan_that_does_not_fit(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError, match=field):
        validate_plan(_edit(**fields), story("x y"))


def test_an_edited_plan_that_fits() -> None:
    validate_plan(_edit(panels__prompt="The fox sings."), story("x y"))
    validate_plan(_edit(transitions=[]), story("x y"))


WHO = ["fox", "lion", "small mouse", "old woman", "king", "crow", "two geese"]
DID = ["chased", "ate", "thanked", "looked at", "carried", "freed", "gave the bread to", "was afraid of", "hid behind"]
WHERE = ["", " in the forest", " near the river", " at night"]


@given(
    st.lists(
        st.tuples(st.sampled_from(WHO), st.sampled_from(DID), st.sampled_from(WHO), st.sampled_from(WHERE)),
        min_size=1,
        max_size=12,
    ),
    st.integers(2, 24),
)
@settings(max_examples=60, deadline=None)
def test_any_story_of_known_words_gives_prompts_that_read_back(
    rows: list[tuple[str, str, str, str]], panels: int
) -> None:
    text = " ".join(f"The {who} {did} the {whom}{where}." for who, did, whom, where in rows)
    made = plan(text, panels)
    validate_plan(made, story(text))
    for panel in made.panels:
        reading = read_scene(panel.prompt)
        assert reading.unread == ()
        assert len(reading.actors) == len(panel.characters)


def test_the_deed_that_decides_has_a_panel() -> None:
    text = (FABLES[0].parents[3] / "examples" / "lion_and_mouse.txt").read_text()
    shown = [(a.concept, a.action) for p in plan(text).panels for a in read_scene(p.prompt).actors]
    assert {("lion", "take"), ("lion", "trapped"), ("mouse", "bite")} <= set(shown)
