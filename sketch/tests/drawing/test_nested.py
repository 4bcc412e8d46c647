"""Where people and things stand that no verb has there, and what goes with them."""

from __future__ import annotations

import pytest

from katha.protocols import FrameRequest
from katha_sketch.drawing.scenes import scene_of
from katha_sketch.drawing.scenes.record import Scene, SceneActor, SceneThing


def scene(prompt: str, place: str = "the kitchen") -> Scene:
    return scene_of(FrameRequest(prompt=prompt, seed=1, width=240, height=160, place=place))


def thing(scene: Scene, word: str) -> SceneThing:
    return next(one for one in scene.things if word in (one.word, one.pictogram))


def actor(scene: Scene, name: str) -> SceneActor:
    return next(one for one in scene.actors if name in (one.id, one.concept))


@pytest.mark.parametrize(
    ("prompt", "what", "where", "way"),
    [
        ("The boy looks at the cake on the table.", "cake", "table", "on"),
        ("A lamp, a book and an apple lie on the table.", "apple", "table", "on"),
        ("The girl looks under the bed. The girl finds a ball.", "ball", "bed", "under"),
        ("The kite hangs in the tree.", "kite", "deciduous-tree", "in"),
    ],
)
def test_a_thing_is_where_its_phrase_or_list_has_it(prompt: str, what: str, where: str, way: str) -> None:
    drawn = scene(prompt)
    assert (thing(drawn, what).at, thing(drawn, what).where) == (thing(drawn, where).id, way)


@pytest.mark.parametrize(
    ("prompt", "name", "deed"),
    [
        ("The family sits at dinner.", "family", "sit_at"),
        ("The passengers ride the bus.", "passengers", "drive"),
        ("Oumar takes the tram to the hospital.", "oumar", "drive"),
        ("The boy shouts at the girl on the bicycle.", "girl", "ride"),
        ("The mother pushes the girl on the swing.", "girl", "swing"),
        ("The doctor examines the old woman in bed.", "old woman", "lie"),
        ("The woman falls down the stairs.", "woman", "fall_stairs"),
        ("The boy lies on the sofa and shouts.", "boy", "lie"),
        ("The two men carry the sofa.", "two men", "carry_together"),
        ("The squirrel runs up the tree.", "squirrel", "climb"),
    ],
)
def test_everybody_has_the_posture_that_the_place_gives(prompt: str, name: str, deed: str) -> None:
    assert actor(scene(prompt, "the street"), name).deed == deed


def test_who_is_in_a_vehicle_is_in_it_and_who_looks_at_it_sees_it() -> None:
    driver = scene("The driver sits in the car.", "the street")
    assert (driver.actors[0].at, driver.actors[0].where) == (thing(driver, "car").id, "in")
    for word, prompt in (("car", "The boy points at the car."), ("moon", "The boy photographs the moon.")):
        seen = scene(prompt, "the street")
        assert seen.actors[0].target == thing(seen, word).id


def test_a_small_animal_with_which_somebody_sits_is_on_the_lap_and_a_led_one_beside() -> None:
    seated = scene("The woman sits with the cat on the sofa.")
    assert actor(seated, "cat").where == "lap"
    walk = scene("The woman talks to the man with the dog.", "the street")
    assert (actor(walk, "dog").at, actor(walk, "dog").where) == ("man", "beside")


def test_what_a_story_is_about_and_what_something_is_like_are_not_there() -> None:
    told = scene("The mother tells the girl a story about a whale.")
    assert [one.id for one in told.actors] == ["mother", "girl"]
    assert told.actors[0].says == "spouting-whale"
    assert scene("The leaf floats like a small boat.", "the sea").things == ()


def test_things_are_counted_and_people_as_well() -> None:
    assert thing(scene("Nine gloves lie on the bed."), "gloves").count == 9
    assert scene("Two people wait at the bus stop.", "the street").actors[0].count == 2


def test_all_that_is_worn_is_on_who_wears_it() -> None:
    worn = scene("The boy wears a crown and rubber boots.", "the street")
    assert {one.partition(":")[0] for one in worn.actors[0].look.features} >= {"crown", "rubber_boots"}
    assert worn.things == ()
    over = scene("The man wears a coat over his pyjamas.", "the street").actors[0].look.features
    assert over.index("pyjamas") < over.index("coat")
    red = scene("The woman in the red coat talks to the man.", "the street")
    assert not actor(red, "man").look.features


def test_a_boat_is_seen_from_outside_with_all_in_it() -> None:
    crew = scene("The two girls eat sandwiches.", "the boat")
    assert crew.actors[0].at == next(one.id for one in crew.things if one.stands == "water")
    assert (crew.setting, crew.actors[0].where) == ("lake", "in")


def test_who_looks_over_a_fence_stands_behind_it_and_who_hits_a_tree_is_against_it() -> None:
    cow = scene("The cow looks over the fence.", "the field")
    assert (cow.actors[0].at, cow.actors[0].where) == (thing(cow, "fence").id, "behind")
    car = scene("The car crashes into a tree.", "the street")
    assert car.actors[0].where == "against"
