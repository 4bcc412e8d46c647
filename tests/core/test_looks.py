"""Looks by fields: what is said of a field gives way to it, and everything else stays letter by letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from katha.composing import LOOK_FIELDS, dressed, says, worded_look

GIRL = "a small girl with long blonde hair and a yellow coat"


@pytest.mark.parametrize(
    ("look", "told", "kind", "found"),
    [
        (GIRL, {"hair": "red"}, "girl", "a small girl with a yellow coat, red hair"),
        (GIRL, {"clothing": "a blue dress"}, "girl", "a small girl with long blonde hair, wearing a blue dress"),
        (GIRL, {"hair": "", "clothing": ""}, "girl", "a small girl"),
        (GIRL, {"build": "tall and thin"}, "girl", "a tall and thin girl with long blonde hair and a yellow coat"),
        ("a red fox", {"skin": "grey fur", "clothing": "a scarf"}, "fox", "a red fox with grey fur, wearing a scarf"),
        ("tall, thin man in a hat", {"build": "stout"}, "man", "stout man in a hat"),
        ("an old red-haired woman", {"hair": "white"}, "old woman", "an old woman with white hair"),
        ("a tall old man", {"build": ""}, "man", "an old man"),
        ("a boy in a red jumper, holding a cat", {"clothing": "a suit"}, "boy", "a boy, holding a cat, wearing a suit"),
        ("a boy", {"hair": "bald", "build": "athletic"}, "boy", "a bald boy with an athletic build"),
        ("", {"hair": "red"}, "", "red hair"),
    ],
)
def test_a_field_takes_the_place_of_what_the_look_said(look: str, told: dict[str, str], kind: str, found: str) -> None:
    assert dressed(look, told, kind) == found  # type: ignore[arg-type]


def test_words_become_a_phrase_where_they_are_none() -> None:
    assert worded_look("hair", "a long braid") == "a long braid"
    assert worded_look("skin", "dark brown") == "dark brown skin"
    assert worded_look("build", "a slender") == "a slender build"
    assert worded_look("clothing", "in rags") == "in rags"
    assert says(GIRL, "hair", "girl")
    assert not says(GIRL, "skin", "girl")


@given(st.sampled_from(LOOK_FIELDS), st.sampled_from(["red", "very long", "of gold"]))
def test_what_was_set_is_taken_away_again(field: str, words: str) -> None:
    plain = "a grey mouse with a torn ear"
    assert dressed(dressed(plain, {field: words}, "mouse"), {field: ""}, "mouse") == plain  # type: ignore[dict-item]
