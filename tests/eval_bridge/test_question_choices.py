"""Options by a model: of one kind, no answer to any question, and taken near chance without evidence."""

from __future__ import annotations

from typing import Any

import pytest
from authors import TEXT, Author

from katha.eval_bridge.bench.validate import check_record
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.questions.build import prepare_questions
from katha.eval_bridge.questions.choices import leaking, write_choices
from katha.schema import MORAL_LABELS, Question, StoryRecord

RECORD = StoryRecord(story_id="lamp", title="The Lamp", story_text=TEXT)


def named(number: int) -> str:
    return f"Which turn is number {number}?"


def asked(count: int = 12, **fields: Any) -> list[Question]:
    return [
        Question(
            question_id=f"q{at}", story_id="lamp", question_type="causal", question=named(at),
            gold_answer=f"outcome {at}x", accepted_answers=[f"outcome {at}x", f"result {at}x"], **fields,
        )
        for at in range(1, count + 1)
    ]  # fmt: skip


def extra(question: Question, name: str) -> Any:
    return (question.model_extra or {}).get(name)


def test_options_hold_the_answer_three_others_and_unclear_in_a_seeded_order() -> None:
    author, reader = Author([]), Author([], name="reader")
    made = write_choices(author, reader, RECORD, asked(), 42)
    places = set()
    for item in made.questions:
        assert item.options is not None
        assert len(item.options) == 5
        assert item.options[-1] == UNCLEAR
        places.add(item.options.index(item.gold_answer.capitalize()))
    assert len(places) > 1, "the right one always has the same place"
    again = write_choices(Author([]), Author([]), RECORD, asked(), 42)
    assert [item.options for item in again.questions] == [item.options for item in made.questions]
    other = write_choices(Author([]), Author([]), RECORD, asked(), 7)
    assert [item.options for item in other.questions] != [item.options for item in made.questions]
    assert (len(author.asked), len(reader.asked)) == (1, 2)
    assert prepare_questions(made.questions)[0].options == made.questions[0].options


def test_the_reader_sees_no_story_no_unclear_and_two_orders() -> None:
    reader = Author([], name="reader")
    (item,) = write_choices(Author([]), reader, RECORD, asked(1)).questions
    shown = [[line.partition(") ")[2] for line in prompt.splitlines() if line[:3] == "   "] for prompt in reader.asked]
    assert item.options is not None
    assert shown == [item.options[:-1], item.options[-2::-1]]
    assert all("moth" not in prompt and f") {UNCLEAR}" not in prompt for prompt in reader.asked)
    assert len(extra(item, "taken_blind")) == 2


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["A moth at night", "Else b", "Else c"], "'A moth at night' is an answer to this question or another"),
        (["Result 1x", "Else b", "Else c"], "'Result 1x' is an answer to this question or another"),
        (["Else a", "else a.", "Else c"], "not so many different options"),
        (["The turn number", "Else b", "Else c"], "the question tells one of the options"),
    ],
)
def test_an_option_that_is_none_is_written_again(wrong: list[str], why: str) -> None:
    good = ["Else a", "Else b", "Else c"]
    first, second = asked(2)
    second = second.model_copy(update={"accepted_answers": [second.gold_answer, "a moth at night"]})
    author = Author([], wrong={named(1): [wrong, good]})
    made = write_choices(author, author, RECORD, [first, second])
    assert set(made.questions[0].options or []) == {"Outcome 1x", *good, UNCLEAR}
    assert (made.counts.rewritten, made.counts.taken, made.counts.free) == (1, 0, 0)
    (rewriting,) = [prompt for prompt in author.asked if "Options were written before" in prompt]
    assert why in rewriting
    assert f"- {named(2)} outcome 2x" in rewriting
    lost = write_choices(Author([], wrong={named(1): [wrong]}), Author([]), RECORD, [first, second])
    assert lost.questions[0].options is None
    assert why in extra(lost.questions[0], "options_why")
    assert lost.counts.free == 1


def test_what_is_taken_in_both_orders_is_written_again_and_then_goes_free() -> None:
    reader = Author([], taken={named(1): 2, named(2): 4})
    made = write_choices(Author([]), reader, RECORD, asked())
    one, two = made.questions[:2]
    assert one.options is not None
    assert two.options is None
    assert "took the right one in both orders" in extra(two, "options_why")
    assert (made.counts.asked, made.counts.taken, made.counts.rewritten, made.counts.free) == (12, 2, 2, 1)
    assert (made.counts.share, made.counts.chance) == (0, 0.25)


def test_over_the_set_the_right_ones_are_taken_near_chance() -> None:
    made = write_choices(Author([]), Author([], taken={named(at): 1 for at in range(1, 12)}), RECORD, asked())
    leak = leaking(made.questions)
    assert leak is not None
    assert not leak.leaks
    assert leak.share <= leak.chance + 0.10
    freed = [item for item in made.questions if item.options is None]
    assert freed
    assert all("over the set" in extra(item, "options_why") for item in freed)
    assert made.counts.free == len(freed) < 11, "more went free than had to"


def test_options_that_are_there_stay_and_labels_are_told_among_the_twelve() -> None:
    own, label, open_one = asked(3)
    own = own.model_copy(update={"options": ["Outcome 1x", "No", UNCLEAR]})
    label = label.model_copy(
        update={"question_type": "moral", "gold_answer": "courage", "accepted_answers": ["courage"]}
    )
    author = Author([])
    made = write_choices(author, author, RECORD, [own, label, open_one])
    assert made.questions[0] == own
    assert set(made.questions[1].options or []) == {*MORAL_LABELS, UNCLEAR}
    assert named(1) not in author.asked[1]
    assert made.counts.asked == 1
    assert len(author.asked) == 3


def test_a_record_whose_options_leak_is_named_with_the_share() -> None:
    options = ["Outcome 1x", "Else a", "Else b", "Else c", UNCLEAR]
    item = asked(1)[0].model_copy(update={"options": options})
    assert leaking([item]) is None
    found = leaking([item], {"q1": ["outcome 1x", "Else a"]})
    assert found is not None
    assert (found.share, found.chance, found.leaks) == (0.5, 0.25, True)
    assert leaking([item], {"q1": ["Else b", "Else a"]}) is not None
    kept = item.model_copy(update={"taken_blind": ["outcome 1x", "Outcome 1x"]})
    record = RECORD.model_copy(update={"recoverability_questions": [kept]})
    _, problems = check_record("stories", record.model_dump(mode="json"))
    said = [told for field, told in problems if field == "recoverability_questions"]
    assert said == ["the options leak: 100.0% of 2 answers without evidence take the right option, by chance 25.0%."]
