"""Short texts (answers, options, prompts, lines of annotations) as claims in the vocabulary's ids."""

from __future__ import annotations

import pytest

from katha_sketch.english.phrases import Claim, bare, read_phrase


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("The lion takes the mouse", [Claim("lion", "take", "mouse")]),
        ("gnaws the rope", [Claim(None, "bite", "rope")]),
        ("The lion is trapped in the net", [Claim("lion", "trapped", "net")]),
        ("The grasshopper feels ashamed", [Claim("grasshopper", emotion="ashamed")]),
        ("The ant gives the grain to the grasshopper", [Claim("ant", "give", "grasshopper")]),
        ("The fox does not look at the crow", [Claim("fox", "look", "crow", negated=True)]),
        ("The three doves are happy and fly to the net", [Claim("dove", emotion="happy"), Claim("dove", "fly", "net")]),
        ("wistful", []),
        (" . ", []),
    ],
)
def test_who_does_what_to_whom(text: str, claims: list[Claim]) -> None:
    assert list(read_phrase(text).events) == claims


@pytest.mark.parametrize("text", ["After the fox hides, the crow laughs", "The crow laughs after the fox hides"])
def test_an_order_is_told_in_the_order_of_time(text: str) -> None:
    found = read_phrase(text)
    assert [(one.actor, one.action) for one in found.events] == [("fox", "hide"), ("crow", "laugh")]
    assert found.order == "after"


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("The mouse changes from afraid to happy", ("afraid", "happy")),
        ("The lion becomes angry", (None, "angry")),
        ("The lion is no longer afraid", ("afraid", None)),
        ("fear", (None, "afraid")),
        ("The hare runs", None),
    ],
)
def test_a_change_of_feeling(text: str, change: tuple[str | None, str | None] | None) -> None:
    assert read_phrase(text).change == change


def test_concepts_are_named_once() -> None:
    found = read_phrase("The lion and the mouse see the zeppelin. The lion laughs.")
    assert found.concepts["character"] == ("lion", "mouse")


def test_bare() -> None:
    assert [bare(text) for text in ("the old man", "An ant", "Tom's ball")] == ["old man", "ant", "ball"]
