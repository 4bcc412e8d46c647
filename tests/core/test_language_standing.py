"""What a panel shows although its own sentence does nothing with it: bystanders, aims, things that slipped away."""

from __future__ import annotations

from katha.language import Event, SceneReading, read_scene, read_story
from katha.planners.rule import RulePlanner
from katha.protocols import PlanRequest
from katha.schema import StoryRecord


def scenes(text: str, panels: int) -> list[SceneReading]:
    record = StoryRecord(story_id="told", title="Told", story_text=text)
    made = RulePlanner().plan(record, PlanRequest(panels=panels))
    return [read_scene(panel.prompt) for panel in made.panels]


def told(text: str) -> list[Event]:
    return [event for event in read_story(text).events if not event.speech]


def test_whose_mouth_it_is_stands_by() -> None:
    text = "A wolf met a crane. The wolf wept. The crane put her beak into the wolf's mouth and pulled out the bone."
    last = scenes(text, 3)[-1]
    assert [actor.concept for actor in last.actors] == ["crane", "wolf"]
    assert last.props == ("bone",)


def test_whoever_is_only_wished_for_or_likened_to_does_not_stand_by() -> None:
    text = "A lion met a mouse. The mouse ran. The lion wanted to see the mouse. The lion slept like the mouse."
    assert {event.company for event in told(text) if event.sentence >= 2} == {()}


def test_what_is_out_of_reach_stays_in_view() -> None:
    text = "A fox saw grapes in a vineyard. The fox jumped. The fox fell down. The fox walked away."
    first, second, third, last = scenes(text, 4)
    assert second.actors[0].target == "grapes"
    assert [scene.props for scene in (first, third, last)] == [("grapes",)] * 3


def test_what_is_taken_or_left_behind_is_no_longer_in_view() -> None:
    text = "A fox saw grapes in a vineyard. The fox ate the grapes. The fox slept. The fox went to a river and danced."
    assert all(scene.props == () for scene in scenes(text, 4)[2:])
    text = "A fox saw grapes in a vineyard. The fox wept. The fox ran to a river. The fox danced."
    assert all(scene.props == () for scene in scenes(text, 4)[2:])


def test_what_slips_away_is_no_longer_held() -> None:
    text = "A milkmaid carried a pail on a road. She sang. The pail fell. The milkmaid cried."
    last = scenes(text, 3)[-1]
    assert last.actors[0].action == "cry"
    assert last.actors[0].carries == ()
    assert last.props == ("bucket",)


def test_the_shadow_is_the_reflection_that_was_told_of() -> None:
    text = "A dog saw his own shadow in the water. The dog snapped at the shadow."
    assert told(text)[-1].target == "reflection"
    assert told("A dog sat in the shade. The dog snapped at the shadow.")[-1].target is None


def test_no_more_denies_the_deed_before_it() -> None:
    events = told("The sons embraced and quarrelled no more.")
    assert [(event.action, event.negated) for event in events] == [("hug", False), ("fight", True)]
    last = scenes("The sons quarrelled. The sons wept. The sons embraced and quarrelled no more.", 3)[-1]
    assert last.actors[0].action == "hug"


def test_on_the_way_is_not_yet_there() -> None:
    events = told("A girl walked to the market. On the way she danced. She slept.")
    assert [event.setting for event in events if event.action] == ["market", "road", "road"]
    assert told("A girl sat in the market. On the way home she danced.")[-1].setting == "market"


def test_a_bed_or_a_dinner_is_in_a_house() -> None:
    assert told("A farmer called his sons to his bed. The farmer wept.")[-1].setting == "room"
    assert told("In a forest a fox invited a stork to dinner. The fox danced.")[-1].setting == "forest"


def test_somebody_known_by_name_is_neither_judge_nor_father() -> None:
    text = (
        "Two friends, Dharma and Papa, found gold. Papa told the judge that Dharma was the thief. "
        "His father hid and wept. The judge gave the gold to Dharma."
    )
    deeds = [(event.actor_name, event.action, event.target_name) for event in told(text) if event.action]
    assert deeds[2:] == [
        ("Papa", "talk", "judge"),
        ("father", "hide", None),
        ("father", "cry", None),
        ("judge", "give", "Dharma"),
    ]
