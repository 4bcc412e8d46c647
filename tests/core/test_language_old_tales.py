"""Reading what old translations write: archaic words, inversions, appositions, thoughts, similes."""

from __future__ import annotations

import pytest

from katha.language import read_phrase, read_scene, read_story

Deed = tuple[str | None, str | None, str | None]


def deeds(text: str) -> list[Deed]:
    """What happens: actor (its name first), action, target."""
    events = [event for event in read_story(text).events if event.action and not event.speech and not event.negated]
    return [(event.actor_name or event.actor, event.action, event.target_name or event.target) for event in events]


def actors(text: str) -> set[str | None]:
    return {event.actor_name or event.actor for event in read_story(text).events if not event.speech}


HAPPENS: list[tuple[str, Deed]] = [
    ('"Nay," quoth the fox, "they are sour."', ("fox", "talk", None)),
    ("It was the turn of an old hare. Walking slowly, he came to a lion.", ("rabbit", "walk", "lion")),
    ("A shepherd boy kept a sheep. It was lonely for him, and he ran to the village.", ("boy", "run", None)),
    ("While the baby slept in his cradle a snake crept out of a hole.", ("snake", "walk", "hole")),
    ("The wolf ran till at last he saw a lamb.", ("wolf", "look", "sheep")),
    ("A tortoise saw the birds flying in the sky and ran.", ("turtle", "run", None)),
    ("The elephant king bowed.", ("elephant", "bow", None)),
    ("There came a fox. An elephant king met a hare. The king bowed.", ("elephant", "bow", None)),
    ("The lions made the jackal their king. He howled.", ("jackal", "shout", None)),
    ("A man had a son. The son ran. His father sat.", ("man", "sit", None)),
    ("The dove plucked a leaf. The ant climbed on to it.", ("ant", "climb", "leaf")),
    ("As the woman spoke she tossed the pail.", ("woman", "throw", "bucket")),
    ("Patty the milkmaid wept.", ("Patty", "cry", None)),
    ("The tortoise struck upon a rock.", ("turtle", "fall", "stone")),
    ("The wolf made a good meal off the lamb.", ("wolf", "eat", "sheep")),
]


@pytest.mark.parametrize(("text", "wanted"), HAPPENS)
def test_what_happens(text: str, wanted: Deed) -> None:
    assert wanted in deeds(text)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("The mother thought that the mongoose had eaten the baby.", "eat"),
        ("The thief told him that the lion had fallen.", "fall"),
        ("The tortoise wanted to fly.", "fly"),
        ("The farmer was sick till the doctor came.", "dig"),
        ("The lions made the jackal their king.", "build"),
        ("The mice heard growling and barking.", "shout"),
    ],
)
def test_what_does_not_happen(text: str, action: str) -> None:
    assert action not in {deed for _, deed, _ in deeds(text)}


def test_a_wish_is_neither_drawn_nor_claimed() -> None:
    assert [actor.action for actor in read_scene("The tortoise wants to fly.").actors] == [None]
    assert read_phrase("The tortoise wants to fly").events == ()
    assert [event.action for event in read_phrase("The tortoise flies").events] == ["fly"]


def test_names_beside_a_noun_or_beside_each_other() -> None:
    assert actors("In a village lived two friends, Dharma and Papa. They wept.") == {"Dharma", "Papa"}
    assert actors("The merchant and Dharma wept. Then Dharma slept.") == {"merchant", "Dharma"}
    read = read_story("Then Dharma ran. But Dharma, the merchant, wept.").events
    assert {(event.actor, event.actor_name) for event in read} == {("merchant", "Dharma")}


def test_wife_and_mother_are_one_woman() -> None:
    assert actors("A man lived with his wife. The mother wept. The wife slept.") == {"man", "woman"}


def test_somebody_in_a_simile_is_not_there() -> None:
    assert actors("The mongoose loved the child like a brother. The brother of the king slept.") >= {"mongoose"}
    assert "brother" not in actors("The mongoose ran like a brother.")


def test_home_is_a_direction() -> None:
    events = read_story("In the forest the dog carried the meat home. The dog slept.").events
    assert {event.setting for event in events} == {"forest"}


def test_a_thing_of_a_clause_without_a_doer_is_seen() -> None:
    first, *_ = read_story("A fox stole into a vineyard where grapes hung.").events
    assert first.props == ("grapes",)
    assert ("fox", "bite", "grapes") in deeds("A fox stole into a vineyard where grapes hung. He snapped at them.")


def test_does_is_no_deer() -> None:
    reading = read_phrase("What does the fox do to the hen?")
    assert reading.concepts.get("character") == ("fox", "hen")


@pytest.mark.parametrize("word", ["quoth", "nay", "thou hast", "thee", "wherefore", "awakened", "perceiving"])
def test_old_words_are_known(word: str) -> None:
    assert read_story(f"The fox ran, {word}, the fox slept.").unread == ()
