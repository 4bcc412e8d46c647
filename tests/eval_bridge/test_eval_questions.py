"""Questions from transitions, their halves and their options."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from katha.eval_bridge.matching.match import moral_label, normalise
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.questions.build import build_questions, chance_level, prepare_questions
from katha.reading import story_reader
from katha.schema import DIMENSIONS, ContrastiveVariant, Panel, Plan, Question, StoryRecord, Transition

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.json"))


def record(**changes: object) -> StoryRecord:
    return StoryRecord.model_validate({"story_id": "s", "story_text": "A story.", "moral_label": "kindness"} | changes)


def plan() -> Plan:
    rows = [
        ("The lion takes the mouse", "The mouse runs over the lion", "The lion becomes angry", "The mouse begs"),
        ("The lion frees the mouse", "The mouse begs", "The mouse changes from afraid to happy", "The mouse runs"),
        ("The lion is trapped in the net", "The lion walks to the net", "The lion becomes afraid", "The lion shouts"),
        ("The mouse bites the net", "The lion shouts", "The lion changes from afraid to grateful", "The lion walks"),
    ]
    steps = [
        Transition(from_scene=at, to_scene=at + 1, action=a, causality=c, emotion=e, consequence=o)
        for at, (a, c, e, o) in enumerate(rows, 1)
    ]
    panels = [Panel(index=at, prompt="p", caption="The lion sleeps in the forest.") for at in range(1, 6)]
    return Plan(story_id="s", planner="test", panels=panels, transitions=steps)


def prepared() -> list[Question]:
    return prepare_questions(build_questions(record(), plan()))


def test_every_transition_is_asked_in_every_dimension_it_has() -> None:
    questions = build_questions(record(), plan())
    assert {item.question_type for item in questions} == set(DIMENSIONS)
    for pair in ((1, 2), (2, 3), (3, 4), (4, 5)):
        kinds = {item.question_type for item in questions if item.target_transition == pair}
        assert kinds >= {"action_visibility", "causal", "emotional", "consequence"}
    assert len({item.question for item in questions}) == len(questions)
    assert all(len(item.accepted_answers) >= 4 for item in questions if item.question_type != "moral")


def test_no_question_holds_its_answer() -> None:
    for item in build_questions(record(), plan()):
        if item.question_type != "temporal_order":
            assert normalise(item.gold_answer) not in normalise(item.question)


def test_a_record_is_asked_its_own_questions_unchanged() -> None:
    own = [Question(question_id="mine", question_type="causal", question="Why?", gold_answer="because")]
    assert build_questions(record(recoverability_questions=own), plan()) == own


def test_halves_have_every_dimension_and_every_transition_steers() -> None:
    questions = prepared()
    for role in ("steering", "reporting"):
        kinds = {item.question_type for item in questions if item.role == role}
        assert kinds >= set(DIMENSIONS) - {"moral"}
    assert {item.target_transition for item in questions if item.role == "steering"} >= {(1, 2), (2, 3), (3, 4), (4, 5)}
    assert [item.role for item in questions if item.question_type == "moral"] == ["reporting"]


def test_options_are_four_distinct_answers_and_unclear() -> None:
    for item in prepared():
        assert item.options is not None
        size = 13 if item.question_type == "moral" else 5  # a label is one of twelve
        assert len(item.options) == size
        assert item.options[-1] == UNCLEAR
        assert len(set(map(normalise, item.options))) == size
        free = item.model_copy(update={"options": None})
        right = [text for text in item.options if story_reader().accepts(text, free)]
        assert right == [item.gold_answer]
    rates = [1 / 12 if item.question_type == "moral" else 0.25 for item in prepared()]
    assert chance_level(prepared()) == pytest.approx(sum(rates) / len(rates))


def test_the_right_option_has_no_favourite_place() -> None:
    asked = [item for item in prepared() if item.question_type != "moral"]
    places = {item.options.index(item.gold_answer) for item in asked if item.options}
    assert places == {0, 1, 2, 3}


def test_options_do_not_depend_on_the_order_of_questions() -> None:
    questions = build_questions(record(), plan())
    mixed = random.Random(1).sample(questions, len(questions))
    again = {item.question_id: item for item in prepare_questions(mixed)}
    assert all(again[item.question_id] == item for item in prepared())


def test_a_lone_question_gets_plausible_options_and_variants_come_first() -> None:
    lone = Question(question_id="q", story_id="s", question_type="causal", question="Why?", gold_answer="The fox lies")
    assert len(prepare_questions([lone])[0].options or ()) == 5
    moral = Question(question_id="m", story_id="s", question_type="moral", question="Lesson?", gold_answer="courage")
    variant = ContrastiveVariant(variant_id="v", base_story_id="s", contrastive_moral="patience")
    for seed in range(5):
        assert "patience" in (prepare_questions([moral], seed=seed, variants=[variant])[0].options or ())


def test_given_roles_and_options_stay() -> None:
    given = Question(
        question_id="q",
        question_type="causal",
        question="Why?",
        gold_answer="a",
        role="steering",
        options=["a", "b", "Unclear"],
    )
    assert prepare_questions([given]) == [given]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_be_asked(path: Path) -> None:
    story = StoryRecord.model_validate_json(path.read_text(encoding="utf-8"))
    for item in prepare_questions(story.recoverability_questions):
        assert item.options is not None
        assert len(item.options) == (13 if moral_label(item.gold_answer) else 5)
        free = item.model_copy(update={"options": None})
        assert sum(story_reader().accepts(text, free) for text in item.options) == 1
