"""Where pictures are when the text does not say it."""

from __future__ import annotations

import pytest

from katha_sketch.drawing.scenes.senses import place_of
from katha_sketch.planner.cuts import parts_of
from katha_sketch.planner.rule import moments_of, told_story
from katha_sketch.planner.settings import settings
from katha_sketch.planner.whereabouts import places_of, worded


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
        ("Ana sat in the café. She met a girl in a school uniform. Ben laughed.", "the café"),
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
    assert places("Ana met her friend Ben. Then Ben laughed at her.", 2) == ["", ""]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("The crow met the fox. The fox laughed.", "the forest"),
        ("The hippopotamus had a sore tooth. The crocodile laughed.", "the river"),
        ("The king asked his three ministers. A minister bowed.", "the castle"),
        ("Mia gave her brother a biscuit. He laughed.", "the living room"),
        ("Mr Kim runs a laundry. He found a letter.", "the laundry room"),
    ],
)
def test_who_is_in_a_story_tells_where_it_is_if_nothing_else_does(text: str, place: str) -> None:
    assert places(text, 2) == [place, place]


@pytest.mark.parametrize(
    "text",
    [
        "Mina had a hamster called Comet. Comet ran on a wheel.",
        "Rosa found a theatre ticket in her coat. Her husband blushed.",
        "My cat is called Rocket. Rocket yawned.",
        "Mrs. Park lost her glasses. Her son laughed.",
        "At the door stood a stranger with a violin. He played.",
        "Ana put a plaster on the finger of her brother. He cried.",
    ],
)
def test_names_and_one_weak_word_take_nobody_to_an_unusual_place(text: str) -> None:
    unusual = ("outer space", "the space station", "the theatre", "the park", "the music room", "the hospital")
    assert not set(places(text, 2)) & set(unusual)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Ana sat in the lighthouse. Her father was in bed with a fever. She lit the lamp.", "the lighthouse"),
        ("Ana stood in the market. Ben had weighed the apples at home. He laughed.", "the market"),
        ("Ana sat in the kitchen. On the sheet there is a beach. Ben laughed.", "the kitchen"),
        ("Ana sat in the kitchen. The children of her street laughed. Ben waved.", "the kitchen"),
        ("On the way home Ana found a tortoise. She turned it over. Ben waved.", "the street"),
    ],
)
def test_what_is_told_of_another_place_moves_nobody(text: str, place: str) -> None:
    assert places(text, 3) == [place] * 3


def test_who_goes_home_at_the_end_was_in_the_street() -> None:
    text = "Two strangers stood under one umbrella. She had the flowers. They walked home together."
    assert places(text, 3)[:2] == ["the street", "the street"]


def test_one_wild_animal_among_people_takes_nobody_to_the_forest() -> None:
    assert places("Mr Abel gave a nun a lift. A fox sat between them. The driver sang.", 2) != ["the forest"] * 2


def test_what_stands_before_a_house_is_outside() -> None:
    assert places("In front of our house stands a rusty car. A cat sleeps on its bonnet.", 2) == ["the doorstep"] * 2


def test_the_cellar_of_a_house_is_the_cellar() -> None:
    assert places("In the cellar of our house there lives a snowman. Ana brings him ice.", 2) == ["the cellar"] * 2


def test_every_place_and_every_name_of_one_can_be_drawn() -> None:
    names = [name for one in settings() for name in (one.place, *sorted(one.names))]
    assert [name for name in names if place_of(name) is None] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # What is told late holds from the beginning.
        ("Ana put down her bag. Ben smiled at her. They sat in the library and read.", ["the library"] * 3),
        # Trades and things say where one is, and a bed is in the ward then.
        ("The boy lay in bed. His father sat beside him. The nurse called the doctor.", ["the hospital"] * 3),
        # What is only painted, phoned or gone to is no place.
        ("Ana sat in the museum. Ben looked at a painting of a stormy sea. He smiled.", ["the museum"] * 3),
        ("Ana was in the kitchen. She dropped a cup on the way to school. Ben laughed.", None),
        # A room's part leads nowhere; somebody who leaves does not take those along who stay.
        ("Ana sat in the cellar. Ben came down the stairs. Ana smiled at Ben.", ["the cellar"] * 3),
        # A sentence that begins with a place, and one that goes out of a vehicle.
        ("The pavement was wet. On the bus Ana looked at her phone.", [None, "the bus"]),
        ("They met in a taxi rank. Ben smiled.", ["the street"] * 2),
        # Nobody is in what is closed, or where only a plane lands.
        ("The shop was closed. Ana sat down on the bench in the park. Ben laughed.", ["the park"] * 3),
        ("Ana sat in the cellar. Ben watched the plane land in the field. Ana smiled.", ["the cellar"] * 3),
        # One alone goes for one picture; who drives somewhere is there afterwards; what flies is over a place.
        (
            "I stirred the soup in the camp. Ben ran to the river and jumped into the lake. I tasted it. I smiled.",
            ["the camp", "the lake", "the camp", "the camp"],
        ),
        ("Ana waited in the kitchen. We drove to the lake in his truck. Ben kicked a stone.", [None, None, "the lake"]),
        ("A cloud floated over the park. Ben pulled the cloud.", ["the park"] * 2),
        # "To lift" is no lift.
        ("Ana stood on the beach. She lifted a shell. Ben laughed.", ["the beach"] * 3),
    ],
)
def test_a_story_goes_the_likeliest_way_through_its_places(text: str, found: list[str | None] | None) -> None:
    seen = places(text, len(found or (1, 2, 3)))
    if found is None:
        assert not any("school" in place for place in seen)
    else:
        assert [place for place, want in zip(seen, found, strict=True) if want not in (None, place)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Ana stood in the cellar. The water rose to her knees. Ben laughed.",
            ["the cellar"] + ["the flooded cellar"] * 2,
        ),
        ("Ana stood in the cellar with a jug. The water rose to the top of the jug. Ben laughed.", ["the cellar"] * 3),
        ("Ana stood in the kitchen. Ben poured water. The water reached the brim.", ["the kitchen"] * 3),
        ("Ana sat in the hut. The lights went out. The lights came back.", ["the hut", "the dark hut", "the hut"]),
        ("Smoke filled the kitchen. Ana coughed. She ran into the garden.", ["the smoky kitchen"] * 2 + ["the garden"]),
        ("Ana stood by the river. The water rose. Ben laughed.", ["the river"] * 3),
        ("Ana pushed through the crowd in the market. Ben shouted.", ["the crowded market"] * 2),
    ],
)  # fmt: skip
def test_what_a_place_is_in_holds_until_it_ends(text: str, found: list[str]) -> None:
    assert places(text, len(found)) == found


def test_a_place_with_what_it_is_in_keeps_its_owner_and_is_told_once() -> None:
    assert worded("Karel's bakery", ("smoky",)) == "Karel's smoky bakery"
    assert worded("the dark valley road", ("dark",)) == "the dark valley road"
    assert worded("", ("dark",)) == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        # Two words that tell a place do so together, and what is said where.
        ("Nina adjusted her goggles. She touched the tiles and dived.", "the swimming pool"),
        ('"Scalpel," said the surgeon. Anna held her breath.', "the operating theatre"),
        # A part of a place is in the whole of it.
        ("Omar put on his goggles. In the next lane his sister dived.", "the swimming pool"),
        ("The ticket inspector punched the tickets. Ana sat in the corner.", "the train"),
        # What only has the word of a place is none: things, drawings, likenesses, wall bars.
        ("The pupils sat at their desks. A paper plane landed in the hair of the teacher.", "the classroom"),
        ("The teacher drew a whale on the blackboard. The pupils laughed.", "the classroom"),
        ("Anna baked a cake in the oven. It was as hard as a roof tile.", "the kitchen"),
        ("The gymnast hit the wall bars. She slid onto the mat.", "the gym"),
    ],
)
def test_words_tell_a_place_by_how_sure_they_are(text: str, place: str) -> None:
    assert places(text, 2) == [place, place]


def test_what_many_places_have_brings_less() -> None:
    pool = next(one for one in settings() if one.place == "the swimming pool")
    assert pool.weights["deep end"] > pool.weights["goggles"] > pool.weights["water"] > 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Max walked along the street to the house with a box.", "the street"),
        ("Anna walked to the house.", "the doorstep"),
        ("Ana walked to the kitchen and ate a cake.", "the kitchen"),
        ("The dog sat in front of the bakery and waited.", "the street"),
        ("Ana sang at the front of the classroom.", "the classroom"),
        ("Lina stepped off the train and looked for her aunt.", "the station"),
        ("Ben got off the bus and laughed.", "the bus stop"),
        ("Ben waited for the train and sang.", "the station"),
        ("Ana missed the bus and cried.", "the bus stop"),
    ],
)
def test_who_goes_to_a_building_or_leaves_a_vehicle_is_outside(text: str, place: str) -> None:
    assert places(text, 1)[0] == place


def test_what_lies_outside_a_place_is_a_place() -> None:
    known = {one.place for one in settings()}
    assert {one.outside for one in settings()} <= known


def test_who_rides_to_a_shop_is_on_the_way_and_buys_inside() -> None:
    text = (
        "Marta baked a cake in the kitchen for Grandpa. Tom rode his bicycle to the bakery and bought a cake. "
        "In the evening Grandpa laughed in the living room."
    )
    told, _ = told_story(text, "s")
    assert places_of(moments_of(told, parts_of(told, 4))) == [
        "the kitchen",
        "the street",
        "the bakery",
        "the living room",
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("The 47 is so full that the windows have gone white. At Mill Lane the driver brakes hard.", "the bus"),
        ("At Mill Lane a girl picked up a coin. She smiled.", ""),
        ("The actor waited for applause on the stage. The king, played by Mr. Adeyemi from the post office, bowed.",
         "the stage"),
        ("The goat had fallen into the dry well. After school Chipo pulled it up with the bucket.", "the village"),
        ("When the lady came down to breakfast, she sat at the table.", "the kitchen"),
        ("A waitress dropped the soup over the menu. The waiter laughed.", "the restaurant"),
        ("For months the crew ate nothing but paste. Near Jupiter the lieutenant checked the oxygen meter.",
         "the space station"),
        ("In the front room the aunts were all talking.", "the front room"),
    ],
)  # fmt: skip
def test_a_whole_story_is_where_its_words_belong(text: str, place: str) -> None:
    assert places(text, 2)[-1] == place


def test_a_title_says_where_a_story_is_and_its_end_does_not() -> None:
    calf = "# The Calf in the Kitchen\n\nPut him by the stove, she said. They gave him milk. He ate the butter."
    assert places(calf, 3)[-1] == "the kitchen"
    guard = (
        "The mummy at the museum lay in its case. The guard ate a roll. A man cut the glass. He took the collar. "
        "The guard groaned. The thief ran. The police met him on the roof."
    )
    assert set(places(guard, 7)[:4]) == {"the museum"}
