"""Which sense of a word a story means."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from katha_sketch.english import read_story
from katha_sketch.english.senses import about, lives_from, said_plainly, sense_of
from katha_sketch.english.words import load_words


@pytest.mark.parametrize(
    ("text", "sentence", "story", "said"),
    [
        ("Theo moves the knight.", "", "The chess match began.", "Theo moves the chess knight."),
        ("The knight rides the horse.", "", "A knight lived in a castle.", "The knight rides the horse."),
        ("Ana stares at the board.", "", "Ana loved chess.", "Ana stares at the chessboard."),
        ("Ana writes on the board.", "", "The teacher was late.", "Ana writes on the blackboard."),
        ("Ana carries the boards.", "", "The carpenter was late.", "Ana carries the planks."),
        ("Ana bites the nails.", "Ana bit her nails.", "Ana waited.", "Ana bites the fingernails."),
        ("Ana buys nails.", "Ana bought nails.", "Ana bit the bread.", "Ana buys nails."),
        ("Ana opens the boot.", "", "The tyre was flat.", "Ana opens the car boot."),
        ("Ana lights a match.", "Ana lit a match.", "", "Ana lights a matchstick."),
        ("The tank rolls on.", "", "The soldier hid from the enemy.", "The battle tank rolls on."),
        (
            "The glass lies on the lawn.",
            "",
            "Hale knelt beside the broken window.",
            "The broken glass lies on the lawn.",
        ),
        ("Ana follows the tracks.", "", "The leopard was gone.", "Ana follows the animal tracks."),
        ("The king seals the letter.", "The king seals the letter.", "", "The king seals the letter."),
        ("The king breaks the seal.", "The king broke the seal of the letter.", "", "The king breaks the wax seal."),
        ("A bird perches on a branch.", "A bird perches on a branch.", "", "A bird perches on a branch."),
        ("Ana carries a heavy pack.", "Ana carried a heavy pack.", "", "Ana carries a heavy backpack."),
        (
            "The crane turns.",
            "The crane turned.",
            "The crane lifted a girder. The crane turned.",
            "The construction crane turns.",
        ),
        ("Ana holds a deck of cards.", "Ana deals from a deck of cards.", "", "Ana holds a deck of cards."),
        ("Ana takes the chess pieces.", "", "Ana played chess.", "Ana takes the chess pieces."),
    ],
)
def test_a_word_says_what_it_means_in_its_story(text: str, sentence: str, story: str, said: str) -> None:
    assert said_plainly(text, sentence, story) == said


DATA = Path(__file__).parents[1] / "data"
SENSES = yaml.safe_load((DATA / "reading" / "senses.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("word", SENSES)
def test_a_sentence_tells_which_sense_its_word_has(word: str) -> None:
    told = {text: said for said, texts in SENSES[word].items() for text in texts}
    assert {text: sense_of(word, text, text) or word for text in told} == told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ana sits at the foot of the wall.", "Ana sits at the wall."),
        ("Ana eats a bar of chocolate.", "Ana eats a chocolate bar."),
        ("Ana sits in the shade of the oak.", "Ana sits under the oak."),
        ("Ana sits in the shade.", "Ana sits under a tree."),
        ("A school of fish swims past.", "A shoal of fish swims past."),
        ("Ana carries two glass jars.", "Ana carries two glass jars."),
        ("The doorbell rings.", "The doorbell rings."),
        ("Ana steps onto the path.", "Ana steps onto the path."),
        ("The children row the boat.", "The children row the boat."),
        ("Ana breaks the piggy bank by the river.", "Ana breaks the piggy bank by the river."),
        ("Ana looks for her glasses.", "Ana looks for her glasses."),
        ("Ana moves the statue of the general.", "Ana moves the statue of the general."),
        ("A train rolls in.", "A train arrives."),
        ("Ana draws the curtains.", "Ana pulls the curtains."),
        ("Ana draws a house.", "Ana draws a house."),
        ("Ana puts out the lamps.", "Ana blows out the lamps."),
        ("Ana is drawing her sword.", "Ana is pulling out her sword."),
        ("Ana goes to sleep.", "Ana sleeps."),
        ("Ana makes out a ship.", "Ana sees a ship."),
        ("Ana makes a ship.", "Ana makes a ship."),
    ],
)
def test_a_text_says_what_its_words_mean(text: str, said: str) -> None:
    assert said_plainly(text, text, text) == said


def test_a_word_means_what_it_meant_where_the_story_tells_it() -> None:
    story = "The ferry came in the night. A wave broke over the bow of the ship. Ana tied a thread to the bow."
    assert said_plainly("Ana ties a thread to the bow.", "Ana tied a thread to the bow.", story) == (
        "Ana ties a thread to the front of the boat."
    )


def test_a_place_is_no_place_where_its_word_means_a_thing() -> None:
    reading = read_story("The conductor raised his hands. The orchestra stopped at the ninth bar.")
    assert about(load_words(), reading.text).sort("bar") == "thing"


def test_a_chess_knight_is_no_person_and_a_plain_knight_is_one() -> None:
    chess = read_story("Theo and Mia played chess. The girl took his knight at once.")
    assert {entity.noun: entity.kind for entity in chess.entities}["knight"] == "thing"
    castle = read_story("A knight lived in a castle. He rode a horse.")
    assert {entity.noun: entity.kind for entity in castle.entities}["knight"] == "person"
    assert about(load_words(), "A castle.") is load_words()


def test_a_word_is_the_kind_that_its_first_sentence_tells() -> None:
    for text, kind in (("The mouse clicked on the screen.", "thing"), ("The mouse ran.", "animal")):
        words = about(load_words(), text)
        assert (words.sort("mouse") == "thing") == (kind == "thing")


def test_a_robot_cleaner_is_a_robot() -> None:
    reading = read_story("The robot cleaner lived under the sofa. It swallowed a ring.")
    assert reading.events[1].who("agent") == reading.events[0].who("agent")
    assert reading.entity(reading.events[0].who("agent")[0]).kind == "being"


def test_what_a_story_lives_from_is_seen_where_its_words_are() -> None:
    assert lives_from("Theo stared for a long time.", "It was a chess match.") == ["chessboard"]
    assert lives_from("Theo ate an apple.", "It was a chess match.") == []


@pytest.mark.parametrize(
    ("noun", "sort"),
    [("siren", "thing"), ("canary", "animal"), ("jumper", "thing"), ("van", "vehicle"), ("builder", "person")],
)
def test_modern_words_have_their_usual_sense(noun: str, sort: str) -> None:
    assert load_words().sort(noun) == sort


def test_what_is_carried_on_means_what_it_meant_where_it_was_named() -> None:
    story = "She spat out a piece of glass. The waiter poured some water and juice for the others."
    assert said_plainly("glass", "The waiter poured some water and juice for the others.", story) == "broken glass"


def test_the_plural_of_what_a_car_has_one_of_is_none_of_it() -> None:
    """ "Bonnets" has one sense in the table, and no plural means it."""
    assert sense_of("bonnet", "The engine steamed under the bonnet of the car.", "") == "car bonnet"
    assert sense_of("bonnet", "Two ladies in bonnets leaned on the car.", "") is None
    said = "Two ladies in bonnets bought a cake."
    assert "bonnets" in said_plainly(said, said, f"At the Fair\n\n{said} Ann drove them home in her car.")
