"""Which characters are animals and beings, where the text tells it by a name, a deed or whose kin they are."""

from __future__ import annotations

import pytest

from katha_sketch.english import read_story


def kinds(text: str) -> dict[str, str]:
    """Return what each character of a story is, by its name: its noun, "person" for people."""
    cast = read_story(text).cast
    return {one.name: "person" if one.kind == "person" else one.noun for one in cast}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Brown Bear woke up. He asked Mother Hen for an egg.", {"Brown Bear": "bear", "Mother Hen": "hen"}),
        ("Big Tortoise met Father Frog. He laughed.", {"Big Tortoise": "tortoise", "Father Frog": "frog"}),
        ("Mrs. Rabbit sold carrots. Mr. Fox bought one.", {"Mrs Rabbit": "rabbit", "Mr Fox": "fox"}),
        ("Mama Bear sat down. Papa Bear slept.", {"Mama Bear": "bear", "Papa Bear": "bear"}),
        (
            "Lena's friend Mole came to tea. Peter Rabbit ran.",
            {"Lena": "person", "Mole": "mole", "Peter Rabbit": "rabbit"},
        ),
        (
            "Professor Hedgehog taught. Young Badger slept.",
            {"Professor Hedgehog": "hedgehog", "Young Badger": "badger"},
        ),
        ("Tilda the turtle had a brother, Max. Max was fast.", {"Tilda": "turtle", "Max": "turtle"}),
        ("Fergus the frog and his wife Flora sat down.", {"Fergus": "frog", "Flora": "frog"}),
        ("Tom Fox was a teacher. Robin ran to school.", {"Tom Fox": "person", "Robin": "person"}),
    ],
)
def test_a_name_tells_which_animal_somebody_is(text: str, told: dict[str, str]) -> None:
    assert kinds(text) == told


def test_two_of_a_name_are_two_by_their_titles() -> None:
    reading = read_story(
        "Little Owl sat in the tree. She was hungry. Old Owl flew to her. Then Old Owl told her a story."
    )
    little, old = reading.cast
    assert (little.name, little.age, old.name, old.age) == ("Little Owl", "child", "Old Owl", "old")
    assert reading.events[-1].who("agent", "recipient") == (old.id, little.id)
    told = "Little Mouse and Big Mouse lived under the stairs. Big Mouse snored."
    assert [one.name for one in read_story(told).cast] == ["Little Mouse", "Big Mouse"]
    assert len(read_story("Little Red Hen ran. Red Hen sat down. The Little Red Hen slept.").cast) == 1


@pytest.mark.parametrize(
    ("text", "name", "noun"),
    [
        ("Otis was a young owl. His mother flew to him.", "Otis's mother", "owl"),
        ("An owl lived in the barn. The owl's brother Finn lived in the mill.", "Finn", "owl"),
        ("Bobo was the smallest monkey. He climbed a palm. His big brother threw a nut.", "brother", "monkey"),
        ("Nila was a small mouse. Her sisters slept all day.", "Nila's sisters", "mouse"),
        ("Ember was a little dragon. His father taught him.", "Ember's father", "dragon"),
        ("The wolf had three cubs. The cubs played. Their mother watched them.", "cubs' mother", "wolf"),
        ("The boy's owl sat there. The boy's sister fed the owl.", "the boy's sister", "person"),
        ("A heron watched the fisherman. His brother caught a fish.", "the fisherman's brother", "person"),
        ("The dog ran. Its owner called it.", "the dog's owner", "person"),
    ],
)
def test_the_kin_of_an_animal_are_of_its_kind(text: str, name: str, noun: str) -> None:
    assert next(kind for known, kind in kinds(text).items() if known.endswith(name)) == noun


@pytest.mark.parametrize(
    ("text", "name", "noun"),
    [
        ("Otis hooted in the night. He flapped his wings.", "Otis", "owl"),
        ("Pippa laid an egg in the straw. She was proud.", "Pippa", "hen"),
        ("Rufus wagged his tail. He ran to the door.", "Rufus", "dog"),
        ("Pablo caught a fish in his beak. He landed on the mast.", "Pablo", "bird"),
        ("Ida laid the egg in the basket. She sang.", "Ida", "person"),
        ("Ben hooted with laughter. He sat down.", "Ben", "person"),
    ],
)
def test_a_deed_tells_which_animal_somebody_is(text: str, name: str, noun: str) -> None:
    assert kinds(text)[name] == noun


def test_who_tells_a_story_may_be_a_thing_and_a_snowman_is_no_part_of_us() -> None:
    assert kinds("I am an old tram. I drive through the city.")["the narrator"] == "tram"
    assert kinds("I am a suitcase. I lie on a shelf.")["the narrator"] == "suitcase"
    assert kinds("I am a teacher. I walk to school.")["the narrator"] == "person"
    built = kinds("We built a snowman in the yard. We called him Mr. Frost. In the night Mr. Frost walked away.")
    assert built["Mr Frost"] == "snowman"
    ours = kinds("Our snowman has a carrot nose. One night our snowman woke up. He smiled.")
    assert [noun for noun in ours.values() if noun] == ["snowman"]
    assert list(kinds("Pip was a penguin. The little fellow could not swim. He stood on the ice.")) == ["Pip"]


def test_a_friend_who_is_called_an_animal_is_that_animal_and_two_of_a_kind_are_told_apart() -> None:
    text = (
        "A country mouse invited her friend the town mouse to a field. The town mouse laughed. "
        "The two mice ate cheese. The country mouse picked up her bag."
    )
    assert kinds(text) == {"the country mouse": "mouse", "the town mouse": "mouse"} | {
        name: "" for name in kinds(text) if " and " in name
    }
    reading = read_story(text)
    last = next(event for event in reading.events if event.verb == "pick")
    assert [reading.entity(key).name for key in last.who("agent")] == ["the country mouse"]
