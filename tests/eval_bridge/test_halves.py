"""Steering and reporting questions: held out by content, each half with what it needs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.questions.build import fill_options
from katha.eval_bridge.questions.halves import assign_roles, twins
from katha.schema import DIMENSIONS, MORAL_LABELS, ContrastiveVariant, Dimension, Question


def ask(name: str, answer: str, kind: Dimension = "causal", pair: tuple[int, int] = (1, 2), **more: object) -> Question:
    fields = {"question_id": name, "story_id": "s", "question_type": kind, "question": f"{name}?"}
    return Question.model_validate(fields | {"gold_answer": answer, "target_transition": pair, **more})


@given(st.integers(0, 100_000), st.integers(1, 24))
@settings(max_examples=60, deadline=None)
def test_no_half_asks_what_the_other_asked(seed: int, count: int) -> None:
    draw = random.Random(seed)
    kinds = [draw.choice(DIMENSIONS) for _ in range(count)]
    questions = [
        ask(f"q{at}", f"answer {draw.randrange(12)}", kind, draw.choice(((1, 2), (2, 3), (3, 4), (4, 5))))
        for at, kind in enumerate(kinds)
    ]
    found = assign_roles(questions)
    assert twins(found) == []
    steering, reporting = ([item for item in found if item.role == half] for half in ("steering", "reporting"))
    assert {normalise(item.gold_answer) for item in steering}.isdisjoint(
        normalise(item.gold_answer) for item in reporting
    )
    assert {
        (item.target_transition, item.question_type) for item in steering if item.question_type != "moral"
    }.isdisjoint((item.target_transition, item.question_type) for item in reporting if item.question_type != "moral")
    assert [item.question_id for item in found] == [item.question_id for item in questions]
    assert {item.question_id: item.role for item in assign_roles(questions[::-1])} == {
        item.question_id: item.role for item in found
    }


def test_both_halves_have_every_dimension_that_can_be_had_and_every_transition_steers() -> None:
    questions = [
        ask(f"{kind}{at}", f"{kind} of {at}", kind, (at, at + 1))
        for at in range(1, 5)
        for kind in DIMENSIONS
        if kind != "moral"
    ]
    found = assign_roles([*questions, ask("m", "kindness", "moral", (4, 5))])
    for half in ("steering", "reporting"):
        own = [item for item in found if item.role == half]
        assert {item.question_type for item in own} >= set(DIMENSIONS) - {"moral"}
        assert abs(len(own) - len(found) / 2) <= 1
    assert {item.target_transition for item in found if item.role == "steering"} == {(1, 2), (2, 3), (3, 4), (4, 5)}
    assert next(item.role for item in found if item.question_id == "m") == "reporting"


def test_the_same_answer_in_another_dimension_goes_to_the_same_half() -> None:
    same = [ask("a", "The mouse bites the net.", "action_visibility"), ask("b", "the mouse bites the net", pair=(2, 3))]
    found = assign_roles([*same, ask("c", "The lion is free", "consequence", (2, 3))])
    assert found[0].role == found[1].role != found[2].role
    # Roles that a record brings stay, and what they share is named.
    given = [same[0].model_copy(update={"role": "steering"}), same[1].model_copy(update={"role": "reporting"})]
    assert assign_roles(given) == given
    assert [(one.question_id, two.question_id) for one, two in twins(given)] == [("b", "a")]


def test_a_moral_label_is_asked_among_all_twelve() -> None:
    made = fill_options(ask("m", "self_control", "moral"), [])
    assert made.options is not None
    assert {normalise(text) for text in made.options} == {*map(normalise, MORAL_LABELS), "unclear"}
    assert len(made.options) == 13
    told = fill_options(ask("m", "Small kindness can return as great help.", "moral"), [])
    assert told.options is not None
    assert len(told.options) == 5


VARIANT = ContrastiveVariant(
    variant_id="v",
    base_story_id="s",
    changed_scene_id=2,
    contrastive_scene_text="The lion waits under the tree. The mouse runs away from the net.",
)
TEXT = "A lion is caught. The lion waits under the tree. The mouse bites the net."


@pytest.mark.parametrize(("pair", "there"), [((1, 2), True), ((2, 3), True), ((3, 4), False)])
def test_a_near_miss_of_a_variant_is_an_option_where_it_changes_the_transition(
    pair: tuple[int, int], there: bool
) -> None:
    item = ask("q", "The mouse bites the net", "action_visibility", pair)
    made = fill_options(item, [], (), [VARIANT], told_text=TEXT).options
    assert made is not None
    assert ("The mouse runs away from the net" in made) == there
    assert "The lion waits under the tree" not in made  # the story tells it, too
    without = fill_options(item, [], (), [VARIANT.model_copy(update={"has_variant": False})], told_text=TEXT).options
    assert without is not None
    assert "The mouse runs away from the net" not in without
