"""Free questions by a model: what each check finds, what is written again, what is dropped, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from authors import TEXT, Author, board, row

from katha.agents.asking import with_questions, written_questions
from katha.configs import load_config
from katha.errors import ReplyError
from katha.eval_bridge.questions.free import even_mix, paper_mix, write_free_questions
from katha.eval_bridge.questions.labels import label_question
from katha.eval_bridge.questions.renaming import renamed, replaced
from katha.models.recordings import UnrecordedError
from katha.protocols import Planner, PlanRequest
from katha.schema import DIMENSIONS, Panel, Plan, Scene, StoryRecord


def story(**fields: Any) -> StoryRecord:
    return StoryRecord(story_id="lamp", title="The Lamp", story_text=TEXT, **fields)


def named(number: int) -> str:
    return f"Which turn is number {number}?"


def test_questions_that_hold_stay_and_are_read_by_another_model() -> None:
    writer, reader = Author([board()]), Author([], name="reader")
    made = write_free_questions(writer, story(), reader=reader)
    assert [item.question for item in made.kept] == [named(at) for at in range(1, 13)]
    assert [item.question_id for item in made.kept][:2] == ["lamp_q1", "lamp_q2"]
    assert made.kept[0].accepted_answers[0] == made.kept[0].gold_answer == "outcome 1x"
    assert (len(writer.asked), len(reader.asked)) == (1, 3)
    assert made.making is not None
    told = made.making.model_dump()
    assert (told["written"], told["kept"], told["rewritten"], told["dropped"]) == (12, 12, 0, 0)
    assert (told["model"], told["reader"]) == ("author", "reader")
    assert set(told["prompts"]) == {"free", "guesses", "text", "grade", "again"}


def test_each_reader_sees_only_what_it_may() -> None:
    author = Author([board()])
    write_free_questions(author, story())
    _, blind, text, grade = author.asked
    assert "moth" not in blind
    assert "outcome" not in blind
    assert "moth" in text
    assert "outcome" not in text, "the accepted answers are shown to nobody who answers"
    assert "moth" not in grade
    assert "outcome 3x | outcome 3x then" in grade
    order = [line.partition(". ")[2] for line in blind.splitlines() if line[:1].isdigit()]
    assert sorted(order) == sorted(named(at) for at in range(1, 13))
    assert order != [named(at) for at in range(1, 13)], "neighbours on the board are asked apart"
    first = [line for line in grade.splitlines() if line.startswith("First: ")]
    assert first == ["First: a guess / another / a third guess"] * 12


@pytest.mark.parametrize(
    ("found", "kind", "why"),
    [
        ({"guessed": {named(2): "right"}}, "guessed", "guessed 'a guess / another / right of Which turn is number 2?'"),
        ({"standing": {named(2): "two answers"}}, "unsettled", "two answers fit the text"),
        ({"standing": {named(2): "implied"}}, "unsettled", "only hints at it"),
        ({"standing": {named(2): "untold"}}, "unsettled", "the text does not say it"),
        ({"unseen": [named(2)]}, "invisible", "no picture could show"),
        ({"told": {named(2): named(5)}}, "told", "told by 'Which turn is number 5?'"),
    ],
)
def test_what_fails_a_check_is_written_once_more(found: dict[str, Any], kind: str, why: str) -> None:
    author = Author([board(), [row("What is new?", "a moth")]], **found)
    made = write_free_questions(author, story())
    assert [item.question for item in made.kept][1] == "What is new?"
    assert len(made.kept) == 12
    assert not made.dropped
    again = author.asked[4]
    assert f"{named(2)!r}: " in again
    assert why in again
    assert f"- {named(3)}" in again.partition("These stay")[2]
    assert f"- {named(2)}" not in again.partition("These stay")[2]
    assert len(author.asked) == 8
    making = made.making
    assert making is not None
    assert {name for name in ("guessed", "unsettled", "told", "invisible") if getattr(making, name)} == {kind}
    assert (making.rewritten, making.dropped, making.again) == (1, 0, {})


def test_what_fails_twice_is_dropped_and_counted() -> None:
    fresh = [row("What is new?", "a moth"), row("What is newer?", "a wind")]
    author = Author(
        [board(), fresh], guessed={named(2): "right", named(3): "part", "What is newer?": "right"},
        standing={named(7): "untold"},
    )  # fmt: skip
    made = write_free_questions(author, story())
    assert [item.question for item in made.dropped] == ["What is newer?"]
    assert [item.question_id for item in made.kept] == [f"lamp_q{at}" for at in range(1, 12)]
    making = made.making
    assert making is not None
    assert (making.guessed, making.partly, making.unsettled, making.again) == (1, 1, 1, {"guessed": 1})
    assert making.lost[0].startswith("What is newer?: a reader who saw only the question")
    said = "12 questions written, 1 guessed without evidence, 1 not settled by the text; 2 rewritten, 1 dropped."
    assert making.summary() == said


def test_a_text_reader_who_answers_something_else_does_not_settle_it() -> None:
    class Other(Author):
        def _answer(self, question: str) -> str:
            return "a whale" if question == named(4) else super()._answer(question)

    made = write_free_questions(Other([board(), [row("What is new?", "a moth")]]), story())
    assert made.making is not None
    assert made.making.unsettled == 1
    assert "What is new?" in [item.question for item in made.kept]


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Why is outcome 7x there?", "a moth"), ("What does the moth do?", "the moth"), (named(3), "a moth")],
)
def test_the_program_finds_answers_that_are_told_and_questions_asked_twice(question: str, answer: str) -> None:
    rows = board()
    rows[3] = row(question, answer)
    made = write_free_questions(Author([rows, [row("What is new?", "a lantern")]]), story())
    assert made.making is not None
    assert made.making.told == 1
    assert made.making.rewritten == 1


def test_too_few_rows_of_a_reply_are_counted_as_failures() -> None:
    class Short(Author):
        def reply(self, prompt: str, schema: Any) -> dict[str, Any]:
            found = super().reply(prompt, schema)
            return {name: rows[:-1] for name, rows in found.items()} if "grades" in found else found

    made = write_free_questions(Short([board(), []]), story())
    assert [item.question for item in made.dropped] == [named(12)]
    assert len(made.kept) == 11


def test_the_shares_are_those_of_table_14() -> None:
    assert paper_mix(12) == {
        "action_visibility": 1, "causal": 3, "emotional": 2, "consequence": 2, "temporal_order": 2, "moral": 2,
    }  # fmt: skip
    table = load_config("kathabench.yaml")["questions"]
    many = paper_mix(1200)
    assert sum(many.values()) == 1200
    assert all(abs(many[kind] / 1200 - table[kind] / sum(table.values())) < 0.003 for kind in DIMENSIONS)
    author = Author([board()])
    write_free_questions(author, story(), mix=paper_mix())
    assert "Write 12 questions, in these dimensions:\n- 1 of action_visibility:" in author.asked[0]
    author = Author([board()])
    write_free_questions(author, story(), mix=even_mix(3))
    assert "Write 18 questions, 3 for each of these dimensions:\n- action_visibility:" in author.asked[0]


def test_a_recording_of_the_first_checks_is_replayed_by_them() -> None:
    """It has one guess and one verdict a question, and nothing else."""

    class Closed(Author):
        def reply(self, prompt: str, schema: Any) -> dict[str, Any]:
            asked = [line.partition(". ")[2] for line in prompt.splitlines() if line[:1].isdigit()]
            if "verdicts" in schema["properties"]:
                held, failed = {"answer": "a", "verdict": "right"}, {"answer": "b", "verdict": "guessed"}
                return {"verdicts": [*[held] * (len(asked) - 1), failed]}
            kind = schema["properties"].get("answers", {}).get("items", {}).get("type")
            if kind == "array":
                raise UnrecordedError("The recording has no such call.")
            if kind == "string":
                return {"answers": ["a guess" for _ in asked]}
            return super().reply(prompt, schema)

    made = write_free_questions(Closed([board(), [row("What is new?", "a moth")]]), story())
    assert made.making is None
    assert len(made.kept) == 11
    assert made.dropped[0].question == "What is new?"

    class Foreign(Author):
        def reply(self, prompt: str, schema: Any) -> dict[str, Any]:
            if "questions" not in schema["properties"]:
                self.asked.append(prompt)
                raise UnrecordedError(f"no call {len(self.asked)}")
            return super().reply(prompt, schema)

    with pytest.raises(UnrecordedError, match="no call 2"):
        write_free_questions(Foreign([board()]), story())


class _Writing(Planner):
    """A planner whose model writes questions."""

    def __init__(self, author: Author) -> None:
        self.question_writer = author

    def spec(self) -> dict[str, Any]:
        return {"name": "writing"}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        panels = [Panel(index=at, prompt="a lamp") for at in (1, 2)]
        return Plan(story_id=story.story_id, planner="writing", panels=panels)


def test_a_run_keeps_the_counts_in_its_plan_and_tells_them() -> None:
    heard: list[str] = []
    author = Author([board(), [row("What is new?", "a moth")]], guessed={named(2): "right"})
    planner = _Writing(author)
    written = written_questions(planner, story(), heard.append)
    assert heard[-1] == "12 questions written, 1 guessed without evidence; 1 rewritten, 0 dropped."
    assert {item.role for item in written.kept} == {"steering", "reporting"}
    plan = planner.plan(story(), PlanRequest())
    assert "question_making" not in plan.model_dump(), "plans without such questions keep their bytes"
    found = Plan.model_validate_json(with_questions(plan, written).model_dump_json())
    assert found.question_making is not None
    assert (found.question_making.guessed, found.question_making.rewritten) == (1, 1)
    assert len(found.questions) == 12
    assert with_questions(plan, replace(written, kept=())) is plan


def test_a_label_is_asked_for_where_two_readers_of_the_text_agree() -> None:
    same = Author([]), Author([], name="reader")
    found = label_question(*same, story())
    assert found.question is not None
    assert (found.question.gold_answer, found.question.question_type) == ("courage", "moral")
    assert all("The Lamp" not in author.asked[0] and "moth" in author.asked[0] for author in same)
    other = Author([], label={"label": "wisdom", "second": "none", "because": "b"})
    assert "says 'wisdom', not 'courage'" in label_question(same[0], other, story()).why
    two = Author([], label={"label": "courage", "second": "kindness", "because": "b"})
    assert "'kindness' fits the text as well" in label_question(two, two, story()).why
    assert label_question(two, other, story(moral_label="wisdom")).question is not None
    assert label_question(same[0], same[1], story(moral_label="wisdom")).question is None


def test_names_are_words_of_their_own_and_keep_their_plurals() -> None:
    names = {"fox": "badger", "Dr. Gray": "Dr. Moss", "狐": "貉", "a fox cub": "a kit"}
    told = ["Fox and foxglove; two foxs, a fox cub.", {"who": "Dr. Gray's"}, "那狐走了", 3]
    assert replaced(told, names) == ["Badger and foxglove; two badgers, a kit.", {"who": "Dr. Moss's"}, "那貉走了", 3]


def test_names_are_changed_and_none_is_left() -> None:
    names = [{"old": "child", "new": "girl"}, {"old": "the hill", "new": "the dune"}, {"old": "Lamp", "new": "Torch"}]
    text = TEXT.replace("child", "girl").replace("the hill", "the dune").replace("lamp", "torch")
    good = {"names": names, "title": "The Torch", "story": text}
    author = Author([], renamed=[{**good, "story": text.replace("girl home", "CHILD home")}, good])
    scene = Scene(scene_index=1, scene_text="The child's lamp on the hill.", story_id="lamp")
    made = renamed(author, story(scenes=[scene, scene.model_copy(update={"scene_index": 2})]))
    assert made.story_text == text
    assert made.title == "The Torch"
    assert made.scenes[0].scene_text == "The girl's Torch on the dune."
    extra = made.model_extra or {}
    assert extra["renamed"] == {"child": "girl", "the hill": "the dune", "Lamp": "Torch"}
    assert (extra["original_text"], extra["original_title"]) == (TEXT, "The Lamp")
    assert "old name 'child' is still in the new text" in author.asked[1]
    for bad, why in (
        ({**good, "names": [{"old": "whale", "new": "bee"}]}, "has no 'whale'"),
        ({**good, "story": "Short."}, "about as long"),
        ({**good, "names": [*names, {"old": "moth", "new": "a moth"}]}, "holds the old one"),
    ):
        with pytest.raises(ReplyError, match=why):
            renamed(Author([], renamed=[bad, bad]), story())
