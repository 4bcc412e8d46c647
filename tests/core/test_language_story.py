"""Reading a story: who does what to whom, who "he" is, what is only said, and what a phrase claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.language import Event, read_phrase, read_story

FABLES = Path(__file__).parents[1] / "data" / "fables"


def deeds(text: str) -> list[tuple[str | None, str | None, str | None]]:
    events = read_story(text).events
    return [(e.actor, e.action, e.target) for e in events if e.action and not e.speech and not e.negated]


def feelings(text: str) -> list[tuple[str | None, str | None]]:
    return [(event.actor, event.emotion) for event in read_story(text).events if event.emotion]


def test_pronouns_follow_subject_number_and_gender() -> None:
    text = "A lion caught a mouse. She begged him. He laughed and freed her. The mouse thanked him."
    assert deeds(text) == [
        ("lion", "take", "mouse"),
        ("mouse", "beg", "lion"),
        ("lion", "laugh", None),
        ("lion", "free", "mouse"),
        ("mouse", "bow", "lion"),
    ]


def test_they_are_everybody_of_the_sentence_before() -> None:
    assert deeds("The monkey and the crocodile met. They swam.")[-2:] == [
        ("monkey", "swim", None),
        ("crocodile", "swim", None),
    ]


def test_it_may_be_a_thing() -> None:
    assert deeds("The jackal saw a drum. He hit it.")[-1] == ("jackal", "fight", "drum")


def test_passives_name_the_one_who_does_it() -> None:
    assert deeds("The fox was chased by three dogs.") == [("dog", "chase", "fox")]
    assert deeds("The lion was caught by a hunter in a net.") == [
        ("hunter", "take", "lion"),
        ("lion", "trapped", "net"),
    ]
    assert feelings("The mouse was frightened by the cat.") == [("mouse", "afraid")]


def test_objects_of_stirring_verbs_feel() -> None:
    assert feelings("The noise was loud. The cat frightened the mouse.") == [("mouse", "afraid")]


def test_what_is_wished_or_said_has_not_happened() -> None:
    events = read_story('The fox wanted to eat the hen. "I will eat you," said the fox.').events
    assert all(event.speech for event in events if event.action == "eat")
    assert deeds("The fox began to eat the hen.") == [("fox", "eat", "hen")]


def test_an_unknown_adverb_in_a_verb_group_is_passed_over() -> None:
    assert deeds("The snake was rightly freed by the fox.") == [("fox", "free", "snake")]


def test_negation() -> None:
    (event,) = read_story("The wolf did not eat the lamb.").events
    assert event == Event(
        0,
        "The wolf did n't eat the lamb.".replace("n't", "not"),
        "wolf",
        None,
        "wolf",
        (),
        "eat",
        "eat",
        "sheep",
        negated=True,
    )


def test_the_asked_one_does_it() -> None:
    events = read_story("The wolf asked the crane to pull the bone.").events
    assert [(e.actor, e.action, e.target, e.speech) for e in events] == [
        ("wolf", "talk", "crane", False),
        ("crane", "pull", "bone", True),
    ]


def test_a_cause_belongs_to_its_deed() -> None:
    events = read_story("The wolf ate the sheep, and the boy wept because he had lied.").events
    assert [(e.actor, e.cause) for e in events if e.action] == [("wolf", None), ("boy", "he had lied")]


def test_place_and_time_go_on_until_they_change() -> None:
    events = read_story(
        "One night a fox crept into a farm. He stole a hen. In the morning he ran to the forest."
    ).events
    assert [(e.setting, e.time) for e in events] == [("farm", "night"), ("farm", "night"), ("forest", "morning")]


def test_two_of_a_kind_keep_their_names() -> None:
    events = read_story("The town mouse laughed. The country mouse wept. The town mouse ran.").events
    assert [event.actor_name for event in events] == ["town mouse", "country mouse", "town mouse"]


def test_proper_names() -> None:
    events = read_story("Once a girl named Meera danced. Then Meera sang. Old people smiled at Meera.").events
    assert [(e.actor, e.actor_name, e.action) for e in events][:2] == [
        ("girl", "Meera", "dance"),
        ("girl", "Meera", "sing"),
    ]


def test_a_word_for_every_kind_of_bird_or_man() -> None:
    assert deeds("A crow sat on a tree. The bird sang.")[-1] == ("crow", "sing", None)
    assert deeds("A farmer dug. The man wept.")[-1] == ("farmer", "cry", None)


def test_a_part_of_the_body_stands_for_its_owner() -> None:
    assert deeds("The monkey sat on a log. His tail was caught in a trap.")[-1] == ("monkey", "trapped", "trap")


def test_him_is_the_one_who_is_known_to_be_a_he() -> None:
    assert deeds("A brahmin carried a goat. Three thieves saw him.")[-1] == ("thief", "look", "sage")


def test_what_was_it_is_not_suddenly_she() -> None:
    text = "A woman threw a jug at the mongoose, and it died. Then she wept."
    assert deeds(text) == [("woman", "throw", "mongoose"), ("mongoose", "die", None), ("woman", "cry", None)]


def test_a_heading_is_no_sentence() -> None:
    reading = read_story("The Fox and the Hen\n\nThe fox ran.")
    assert reading.sentences == ("The fox ran.",)
    assert [event.actor for event in reading.events] == ["fox"]


KEY_DEEDS = {
    "monkey_and_wedge": (
        {"woodcutter", "monkey"},
        {("monkey", "pull"), ("monkey", "trapped"), ("monkey", "die")},
        "temple",
    ),
    "jackal_and_drum": ({"jackal"}, {("jackal", "look"), ("jackal", "bite"), ("jackal", "laugh")}, "field"),
    "fox_and_stork": ({"fox", "crane"}, {("fox", "give"), ("fox", "laugh"), ("crane", "give")}, None),
    "brahmin_and_goat": (
        {"sage", "goat", "thief"},
        {("thief", "point"), ("sage", "throw"), ("thief", "eat")},
        "road",
    ),
    "brahmin_and_mongoose": (
        {"woman", "snake", "mongoose", "boy"},
        {("mongoose", "fight"), ("woman", "throw"), ("mongoose", "die"), ("woman", "cry")},
        None,
    ),
    "tortoise_and_hare": (
        {"rabbit", "turtle", "fox"},
        {("rabbit", "laugh"), ("rabbit", "sleep"), ("turtle", "walk")},
        "meadow",
    ),
    "fox_and_grapes": ({"fox"}, {("fox", "jump"), ("fox", "fall"), ("fox", "walk")}, "garden"),
    "boy_cried_wolf": ({"boy", "sheep", "man", "wolf"}, {("boy", "shout"), ("wolf", "eat"), ("boy", "cry")}, "meadow"),
    "ant_and_grasshopper": (
        {"ant", "grasshopper"},
        {("grasshopper", "sing"), ("ant", "give"), ("grasshopper", "beg")},
        "field",
    ),
    "crow_and_pitcher": ({"crow"}, {("crow", "push"), ("crow", "throw"), ("crow", "drink")}, "garden"),
    "dog_and_reflection": ({"dog", "man"}, {("dog", "take"), ("dog", "look"), ("dog", "bite")}, "river"),
    "monkey_and_crocodile": (
        {"monkey", "crocodile", "woman"},
        {("monkey", "throw"), ("crocodile", "swim"), ("monkey", "laugh")},
        "river",
    ),
    "blue_jackal": (
        {"jackal", "dog", "lion", "tiger", "elephant"},
        {("dog", "chase"), ("jackal", "fall"), ("jackal", "shout")},
        "forest",
    ),
    "lion_hare_well": ({"lion", "rabbit"}, {("lion", "shout"), ("lion", "jump"), ("rabbit", "walk")}, "cave"),
    "turtle_and_geese": (
        {"turtle", "goose", "man"},
        {("turtle", "bite"), ("goose", "fly"), ("turtle", "fall")},
        "pond",
    ),
    "doves_and_net": (
        {"hunter", "dove", "mouse"},
        {("dove", "trapped"), ("mouse", "bite"), ("mouse", "free")},
        "forest",
    ),
    "donkey_and_salt": ({"merchant", "donkey"}, {("donkey", "fall"), ("merchant", "give")}, "river"),
    "town_country_mouse": ({"mouse", "cat"}, {("mouse", "give"), ("mouse", "hide"), ("cat", "jump")}, "room"),
    "fox_and_crow": ({"fox", "crow"}, {("crow", "take"), ("crow", "sing"), ("fox", "laugh")}, "forest"),
}


@pytest.mark.parametrize("name", sorted(KEY_DEEDS))
def test_fables(name: str) -> None:
    characters, wanted, setting = KEY_DEEDS[name]
    events = read_story((FABLES / f"{name}.txt").read_text()).events
    people = {event.actor for event in events if event.actor and not event.speech}
    people |= {event.target for event in events if event.target in characters}
    assert people == characters
    assert wanted <= {(event.actor, event.action) for event in events if not event.negated}
    assert setting is None or setting in {event.setting for event in events}


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("The mouse gnaws the ropes", [("mouse", "bite", "rope")]),
        ("Gnawing the rope", [(None, "bite", "rope")]),
        ("The crow is eaten by the fox", [("fox", "eat", "crow")]),
        ("After the mouse bites the net, the lion runs", [("mouse", "bite", "net"), ("lion", "run", None)]),
        ("The lion runs after the mouse", [("lion", "chase", "mouse")]),
        ("The lion runs once the mouse bites the net", [("mouse", "bite", "net"), ("lion", "run", None)]),
        ("The lion sleeps before the mouse comes", [("lion", "sleep", None), ("mouse", "walk", None)]),
    ],
)
def test_claims_in_order_of_time(text: str, claims: list[tuple[str | None, str, str | None]]) -> None:
    assert [(event.actor, event.action, event.target) for event in read_phrase(text).events] == claims


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("The lion changes from angry to grateful", ("angry", "grateful")),
        ("He becomes grateful", (None, "grateful")),
        ("It feels afraid at first, then happy", ("afraid", "happy")),
        ("The lion is no longer afraid", ("afraid", None)),
        ("The lion runs", None),
    ],
)
def test_changes_of_feeling(text: str, change: tuple[str | None, str | None] | None) -> None:
    assert read_phrase(text).change == change


def test_a_denied_claim() -> None:
    reading = read_phrase("The lion did not eat the mouse.")
    assert reading.negated
    assert reading.events[0].negated
    assert reading.has("character", "mouse")
    assert not reading.has("character", "cat")


def test_a_moral_label_is_a_concept() -> None:
    assert read_phrase("gratitude").concepts["moral"] == ("gratitude",)


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text: str) -> None:
    read_story(text)
    read_phrase(text)


def test_a_name_alone_is_a_person_and_she_is_a_woman() -> None:
    events = read_story("One day Ravi and Asha walked. A bear came. Asha ran and she climbed a tree. Ravi wept.").events
    assert ("man", "Ravi", "cry") in {(e.actor, e.actor_name, e.action) for e in events}
    assert ("woman", "Asha", "climb") in {(e.actor, e.actor_name, e.action) for e in events}
    told = read_story("Once Moti was a donkey. Then Moti ran.").events
    assert (told[-1].actor, told[-1].actor_name, told[-1].action) == ("donkey", "Moti", "run")


def test_who_sets_somebody_free_does_the_freeing() -> None:
    assert deeds("The lion was kind, and he set the mouse free.") == [("lion", "free", "mouse")]


@pytest.mark.parametrize(
    ("text", "actors"),
    [
        ("The old fox slept in the sun. The sun rose.", {"fox"}),
        ("The North Wind and the Sun quarrelled. The wind blew. The sun laughed.", {"wind", "sun"}),
        ("A strong wind blew. A crow flew away.", {"wind", "crow"}),
    ],
)
def test_the_sun_and_the_wind_are_characters_where_they_act_like_persons(text: str, actors: set[str]) -> None:
    assert {event.actor for event in read_story(text).events} == actors


def test_what_somebody_holds_or_wears_is_told_from_what_is_there() -> None:
    text = "A traveller came along the road, wrapped in a warm cloak. A dog ran with a bone. A pail fell. He ate."
    told = read_story(text)
    assert [event.carries for event in told.events] == [("cloak",), ("bone",), ()]
    assert told.events[-1].props == ("bucket",)


def test_what_is_proposed_is_there_to_see() -> None:
    said = read_story('The mouse said, "Let us tie a bell around the cat\'s neck."').events
    assert next(event for event in said if event.action == "talk").props == ("bell",)


def test_those_who_saw_what_he_was_are_they() -> None:
    told = read_story("The lion and the tiger saw that he was only a jackal. They attacked him.").events
    assert {event.actor for event in told if event.action == "fight"} == {"lion", "tiger"}
