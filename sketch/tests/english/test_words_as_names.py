"""Names that are words, texts without capitals, the future, and stories told to you."""

from __future__ import annotations

import pytest

from katha.protocols import PlanRequest
from katha.stories import story_of_text
from katha_sketch.english import read_story
from katha_sketch.planner.rule import RulePlanner


def who(text: str) -> list[str]:
    return [entity.name for entity in read_story(text).cast]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Will opened the box. May jumped into the lake.", ["Will", "May"]),
        ("Dawn woke up. Ray opened the window. Summer and Autumn ran away.", ["Dawn", "Ray", "Summer", "Autumn"]),
        ("June gave April a rose. August fell into the pond.", ["June", "April", "August"]),
        ("Pia lives in a tower. Pia waves to the fox. The fox runs.", ["Pia"]),
        ('"Will you help me?" asked Tom. In May, the dog ran. The rose fell.', ["Tom"]),
        ("Will you come? May I come in? The dog barked at Tom.", ["Tom"]),
    ],
)
def test_words_are_names_where_they_act_as_names(text: str, names: list[str]) -> None:
    found = [name for name in who(text) if name[:1].isupper()]
    assert found == names


def test_a_name_keeps_its_word_in_the_picture() -> None:
    plan = RulePlanner().plan(
        story_of_text("Ray opened the window. A bird flew in. Ray laughed.", "s"), PlanRequest(panels=3)
    )
    assert plan.panels[0].prompt == "Ray opens the window."


def test_a_text_without_capitals_has_its_sentences_and_names() -> None:
    reading = read_story("mia found a kite. tom pulled the string! the kite flew up. they laughed.")
    assert [one.text for one in reading.sentences] == [
        "Mia found a kite.", "Tom pulled the string!", "The kite flew up.", "They laughed.",
    ]  # fmt: skip
    assert [entity.name for entity in reading.cast] == ["Mia", "Tom"]


def test_a_small_letter_begins_a_sentence_after_a_full_stop() -> None:
    assert len(read_story("Ben opened the door. a dog ran in. e.g. the cat ran.").sentences) >= 3


def test_a_story_in_the_future_is_read_as_what_happens() -> None:
    reading = read_story("Tomorrow Mia will climb the hill. She'll plant a flag. A goat is going to eat the flag.")
    assert [(event.verb, event.standing) for event in reading.events] == [
        ("climb", "told"),
        ("plant", "told"),
        ("eat", "told"),
    ]
    other = read_story("Mia climbed the hill. She will plant a flag. A goat ate her hat.")
    assert [event.standing for event in other.events if event.verb == "plant"] == ["intended"]


def test_who_a_story_is_told_to_is_in_it() -> None:
    text = "You wake up in a forest. You climb a tree. The wolf sits under the tree."
    assert "narrator" in " ".join(who(text))
    assert who("The wind blew. You could see the sea. Mia ran home.") == ["Mia"]


def test_every_sentence_is_counted() -> None:
    plan = RulePlanner().plan(story_of_text("Mia ran home. Time is money. The dog barked.", "s"), PlanRequest(panels=2))
    assert plan.coverage is not None
    assert plan.coverage.silent == ["Time is money."]
    assert 'nothing to see in "Time is money."' in plan.coverage.told()
