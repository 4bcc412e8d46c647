"""Where pictures are when the text does not say it."""

from __future__ import annotations

import pytest

from katha.planners.cuts import parts_of
from katha.planners.rule import moments_of, told_story
from katha.planners.whereabouts import places_of
from katha.renderers.sketch.scenes.senses import place_of


def places(text: str, panels: int) -> list[str]:
    told, _ = told_story(text, "story")
    return places_of(moments_of(told, parts_of(told, panels)))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Anna opened the oven. She put the bread on the table.", "the kitchen"),
        ("Anna lay down on her bed. She pulled up the blanket.", "the bedroom"),
        ("The referee blew his whistle. The striker kicked the ball.", "the stadium"),
        ("The tyre was flat. Marek steered the car to the hard shoulder.", "the motorway"),
    ],
)
def test_things_tell_where_they_are(text: str, place: str) -> None:
    assert places(text, 2) == [place, place]


def test_what_the_text_says_goes_before_what_things_tell() -> None:
    assert places("Anna sat down on a sofa in the library. She read a book.", 2) == ["the library", "the library"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Ana sat in the café. The dentist opened his case. The dentist looked at a tooth.", "the café"),
        ("Ana ran into the yard. She held an alarm clock. Ben laughed.", "the yard"),
    ],
)
def test_a_trade_or_a_thing_of_a_home_takes_nobody_elsewhere(text: str, place: str) -> None:
    assert places(text, 3)[1] == place


def test_a_schools_yard_is_a_playground_and_a_rivers_bank_a_river() -> None:
    text = "The teacher wrote on the blackboard. The pupils had an exam. Ben ran out into the yard."
    assert places(text, 3)[2] == "the playground"
    assert places("Ana walked to the stream. She sat down on the bank. Ben laughed.", 3)[1] == "the river"


def test_a_place_goes_on_until_somebody_leaves() -> None:
    text = "Anna put the saucepan on the stove. Her brother laughed. Anna left. Her brother sang a song."
    found = places(text, 4)
    assert found[:2] == ["the kitchen", "the kitchen"]


def test_a_corridor_of_a_story_about_a_hospital_is_in_the_hospital() -> None:
    text = "The nurse pushed a patient along the dark corridor. The doctor brought a bandage."
    assert places(text, 2)[0] == "the hospital"


def test_who_drives_to_a_place_is_not_there_yet() -> None:
    assert "airport" not in places("Marek was driving to the airport. He sang a song.", 2)[1]


def test_a_story_that_tells_no_place_has_none() -> None:
    assert places("The crow met the fox. The fox laughed.", 2) == ["", ""]


def test_every_place_can_be_drawn() -> None:
    assert [one.place for one in settings() if place_of(one.place) is None] == []
