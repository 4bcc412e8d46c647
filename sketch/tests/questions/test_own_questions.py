"""What stories really ask: built questions over fables, and records' own free questions answered from the text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.questions.build import build_questions, prepare_questions
from katha.eval_bridge.questions.halves import twins
from katha.protocols import PlanRequest
from katha.schema import Dimension, Plan, Question, StoryRecord
from katha.stories import load_story
from katha_sketch.english import read_story
from katha_sketch.planner.rule import RulePlanner
from katha_sketch.questions.wording import other_actions, swaps
from katha_sketch.reader.sketch_reader import choose, from_story
from katha_sketch.story_reader import EnglishReader

ROOT = Path(__file__).parents[3]
FABLES = sorted((ROOT / "tests" / "data" / "fables").glob("*.txt"))
EXAMPLES = sorted((ROOT / "examples").glob("*.json"))
SMALL = {"the", "a", "an", "is", "are", "to"}


@cache
def asked(path: Path) -> list[Question]:
    story = load_story(str(path))
    plan = RulePlanner().plan(story, PlanRequest())
    return prepare_questions(build_questions(story, plan))


@pytest.mark.parametrize("path", FABLES, ids=lambda path: path.stem)
def test_built_questions_of_a_fable(path: Path) -> None:
    """Nothing gives an answer away, options are four different answers of which one is right, both halves are whole."""
    questions = asked(path)
    for item in questions:
        options = [option for option in item.options or [] if option != UNCLEAR]
        free = item.model_copy(update={"options": None})
        assert len({normalise(option) for option in options}) == (12 if item.question_type == "moral" else 4)
        assert [option for option in options if EnglishReader().accepts(option, free)] in (
            [item.gold_answer],
            [normalise(item.gold_answer)],
        )
        if item.question_type != "temporal_order":
            assert not set(normalise(item.gold_answer).split()) - SMALL <= set(normalise(item.question).split())
    halves = [{item.question_type for item in questions if item.role == role} for role in ("steering", "reporting")]
    # Causes and outcomes are asked for only where the text tells them.
    assert halves[0] >= {"action_visibility", "temporal_order"}
    assert halves[1] >= halves[0]
    assert twins(questions) == []  # held out by content
    steered = {item.target_transition for item in questions if item.role == "steering"}
    assert steered >= {item.target_transition for item in questions if item.question_type != "moral"}


@pytest.mark.parametrize("path", FABLES, ids=lambda path: path.stem)
def test_an_order_is_told_the_other_way_round_or_not_at_all(path: Path) -> None:
    """No distractor of a question of order is a pair of events that the story tells in that order."""
    golds = {normalise(item.gold_answer) for item in asked(path) if item.question_type == "temporal_order"}
    for item in asked(path):
        if item.question_type == "temporal_order":
            wrong = {normalise(option) for option in item.options or []} - {normalise(item.gold_answer)}
            assert not wrong & golds


def test_other_deeds_are_said_like_the_right_one() -> None:
    others = other_actions("The three doves are happy and fly to the net", ["The hunter hides"], "seed")
    assert others
    assert all(other.startswith("The three doves are happy and ") and "net" in other for other in others)
    assert all(other.startswith("The hare ") for other in other_actions("The hare runs", ["The fox eats"], "seed"))
    assert not any("plants" in other for other in other_actions("The fox chases the hen", [], "seed"))
    assert "The fox talks to the crow" in other_actions("The fox looks at the crow", [], "seed")
    hugs = swaps("The lion is trapped in the net before the mouse bites the rope", "seed", (), ("action",))
    assert all(" before " in other for other in hugs)


def answer(question: str, dimension: Dimension, options: tuple[str, ...], story: str) -> str:
    return choose(question, dimension, (*options, UNCLEAR), from_story(read_story(story))).answer


STORY = (
    "In summer a grasshopper was happy and danced. In winter he was sad and cried. An ant gave him grain. "
    "The ant laughed. Then the grasshopper was ashamed and slept. The ant flew."
)
MOODS = ("The grasshopper is happy", "The grasshopper is sad", "The grasshopper is angry")
DEEDS = ("The grasshopper cries", "The grasshopper sleeps", "The grasshopper swims")


@pytest.mark.parametrize(
    ("question", "dimension", "options", "right"),
    [
        ("How does the grasshopper feel in winter?", "emotional", MOODS, MOODS[1]),
        ("How does the grasshopper feel in summer?", "emotional", MOODS, MOODS[0]),
        ("What comes of the ant's laughing?", "consequence", DEEDS, DEEDS[1]),
        ("What comes of the grasshopper's dancing?", "consequence", DEEDS, DEEDS[0]),
        ("Why is the grasshopper ashamed?", "causal", ("The ant laughs", "The ant flies"), "The ant laughs"),
        (
            "What happens before the ant laughs?",
            "temporal_order",
            ("The grasshopper dances before the ant laughs", "The ant gives the grain before the ant laughs"),
            "The ant gives the grain before the ant laughs",
        ),
        (
            "What happens before the grasshopper hides?",
            "temporal_order",
            ("The grasshopper hides before the ant laughs", "The ant laughs before the grasshopper hides"),
            "The ant laughs before the grasshopper hides",
        ),
        (
            "What does the ant do to the grasshopper?",
            "action_visibility",
            ("The ant flies", "The ant gives the grain to the grasshopper"),
            "The ant gives the grain to the grasshopper",
        ),
    ],
)
def test_where_a_question_looks(question: str, dimension: Dimension, options: tuple[str, ...], right: str) -> None:
    assert answer(question, dimension, options, STORY) == right
    assert answer(question, dimension, options[::-1], STORY) == right


def test_records_own_questions_are_answered_from_the_text() -> None:
    """The examples' own free questions: chance is a quarter; some golds are drawn, not told.

    The grammar that was written beside these ten fables answered 73%; `english`, which knows no story, 65% (79 of
    121).
    """
    right = total = 0
    for path in EXAMPLES:
        story: StoryRecord = load_story(str(path))
        told = from_story(read_story(story.story_text))
        for item in prepare_questions(story.recoverability_questions):
            said = choose(item.question, item.question_type, item.options or [], told).answer
            right += said in {item.gold_answer, *item.accepted_answers}
            total += 1
    assert right / total >= 0.65


def plain(text: str, panels: int = 3) -> tuple[StoryRecord, Plan]:
    record = StoryRecord(story_id="s", story_text=text)
    return record, RulePlanner().plan(record, PlanRequest(panels=panels))


PARTY = (
    "Lena blew out the candles. Tom cried because Lena ate the cake. Apples everywhere, all over the street. "
    "The dog chased Tom. The happy dog barked."
)


def test_every_visible_sentence_of_a_plain_text_has_its_question_read_or_not() -> None:
    record, plan = plain(PARTY)
    questions = build_questions(record, plan)
    golds = [item.gold_answer for item in questions]
    assert any("blows out the candles" in gold for gold in golds)
    unread = [item for item in questions if (item.model_extra or {})["made_from"] == "sentence"]
    assert [item.gold_answer for item in unread] == ["Apples everywhere, all over the street"]
    wrong = (unread[0].model_extra or {})["distractors"]
    assert wrong
    assert not any(text in PARTY for text in wrong)
    why = next(item for item in questions if item.question_type == "causal")
    assert (why.question, why.gold_answer) == ("Why is it that Tom cries?", "Lena eats the cake")


def test_questions_of_a_plain_text_do_not_follow_the_plan() -> None:
    """A plan that leaves half of the story out, or misreads it, is asked the same."""
    record, plan = plain(PARTY)
    asked = [(item.question, item.gold_answer) for item in build_questions(record, plan)]
    panels = [
        panel.model_copy(update={"prompt": "A tree.", "must_show": [], "characters": []}) for panel in plan.panels
    ]
    steps = [item.model_copy(update={"action": "A tree grows.", "emotion": None}) for item in plan.transitions]
    other = plan.model_copy(update={"panels": panels, "transitions": steps})
    assert [(item.question, item.gold_answer) for item in build_questions(record, other)] == asked


def own(text: str, panels: int = 4) -> list[Question]:
    return build_questions(*plain(text, panels))


def golds(text: str) -> list[str]:
    return [item.gold_answer for item in own(text) if item.question_type == "action_visibility"]


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        # the thing and one place: no lists, no clauses, no time, nothing of how
        ("At the party Mia refused the soup, the juice and even the cake.", "Mia refuses the soup"),
        ("Ben slowly put the big box on the table in the hall.", "Ben puts the big box on the table"),
        # whose a thing is stays the text's own word
        ("Rosa knelt under the sink with her late husband's toolbox.",
         "Rosa kneels under the sink with her late husband's toolbox"),
        # the main clause, not what tells who somebody is; a deed, not what was before
        ("The girl who played the queen waved at Nora, who painted the scenery.", "The girl waves at Nora"),
        ("Sir Ivo had caught a cold, and he lifted his lance.", "Sir Ivo lifts his lance"),
        ("Anna ran to the door before Tom could grab the key.", "Anna runs to the door"),
        # old is no name
        ("Old Mr. Brandt rang his bell.", "Mr Brandt rings his bell"),
        # doers that do nothing are no doers
        ("Six streets from the house a dog ran out of a gate.", "A dog runs out of a gate"),
    ],
)  # fmt: skip
def test_an_answer_is_a_deed_with_its_thing_and_one_place(text: str, gold: str) -> None:
    said = golds(f"{text} Then the sun set behind the hill.")
    assert normalise(gold).removeprefix("a ").removeprefix("the ") in {
        normalise(one).removeprefix("the ") for one in said
    }


MEAL = (
    "Ada lit the candle. Ben opened his bag. Ada carried the soup into the garden. Ben fed the cat. Ada washed the "
    "cups. Ben swept the stairs. Ada climbed the ladder. Ben kicked the ball."
)


def test_options_are_deeds_of_whoever_is_asked_about() -> None:
    """Deeds of the story said of the same doer, none of them of the moment that is asked for."""
    asked = [item for item in own(MEAL, 8) if item.question_type == "action_visibility"]
    assert len(asked) == 8
    for item in asked:
        wrong = (item.model_extra or {})["distractors"]
        assert len(wrong) >= 3
        doer = item.gold_answer.split()[0]
        assert all(text.split()[0] == doer for text in wrong[:3])
        assert f"does {doer} do" in item.question
    opened = next(item for item in asked if "opens" in item.gold_answer)
    assert not any("light" in text for text in (opened.model_extra or {})["distractors"])


def test_nothing_is_asked_that_no_picture_shows() -> None:
    """Ages, what was before, what somebody knows or owns: sentences with them are asked about for nothing else."""
    text = (
        "Ada was nineteen. Ben had worked there for years. Ada knew the song. Ada opened the box. Ben owned a boat. "
        "Ben kicked the ball. Ada climbed the ladder."
    )
    assert set(golds(text)) == {"Ada opens the box", "Ben kicks the ball", "Ada climbs the ladder"}


def test_a_moment_is_pointed_out_by_what_happens_once_and_right_beside_it() -> None:
    text = (
        'Ada opened the box. "Look!" said Ben. Ada kicked the ball. "No!" said Ben. Ada climbed the ladder. '
        "Ben fed the cat. Ada washed the cups."
    )
    asked = {item.gold_answer: item.question for item in own(text, 7) if item.question_type == "action_visibility"}
    assert not any("Ben speaks" in question or "Ben says" in question for question in asked.values())
    assert asked["Ada washes the cups"] == "What does Ada do right after Ben feeds the cat?"
    for item in own(text, 7):
        options = prepare_questions([item])[0].options or []
        told = [option for option in options if normalise(option) in normalise(item.question)]
        assert item.question_type == "temporal_order" or not told


def test_a_deed_that_has_a_scene_of_its_own_has_a_question_of_its_own() -> None:
    text = "Ada opened the box. Ben kicked the ball and climbed the ladder. Ada washed the cups."
    plan = plain(text, 3)[1]
    first, second, third = plan.panels
    parts = [
        first,
        second.model_copy(update={"caption": "Ben kicked the ball."}),
        second.model_copy(update={"index": 3, "caption": "Ben climbed the ladder."}),
        third.model_copy(update={"index": 4}),
    ]
    record = StoryRecord(story_id="s", story_text=text)
    asked = [
        (item.gold_answer, item.target_transition)
        for item in build_questions(record, plan.model_copy(update={"panels": parts}))
        if item.question_type == "action_visibility"
    ]
    assert asked == [
        ("Ada opens the box", (1, 2)),
        ("Ben kicks the ball", (1, 2)),
        ("Ben climbs the ladder", (2, 3)),
        ("Ada washes the cups", (3, 4)),
    ]


def test_what_is_only_so_or_done_by_a_wind_is_no_mood() -> None:
    """Moods are asked of the living, in the present of the story, and where the words leave no doubt."""
    text = (
        "Ada sighed and closed the door. Ben had never been happy in the town. The wind laughed in the trees. "
        "Ben smiled at the dog. Ada carried the bag."
    )
    assert [item.gold_answer for item in own(text) if item.question_type == "emotional"] == ["Ben is happy"]


def test_causes_and_outcomes_are_asked_where_the_text_tells_them() -> None:
    text = (
        "The giant pulled the rope until the branch broke. Ada sat by the river. The snow fell so fast that the car "
        "stopped. Ada picked a flower. The porters fetched Mr. Lund, who was asleep. Ada threw the stone into the "
        "pond, and the stone sank in the water."
    )
    told = {item.question: item.gold_answer for item in own(text) if item.question_type in ("causal", "consequence")}
    assert told == {
        "What happens because the giant pulls the rope?": "The branch breaks",
        "What happens because the snow falls?": "The car stops",
        "What happens because Ada throws the stone into the pond?": "The stone sinks in the water",
    }


def test_records_with_transitions_are_asked_what_these_say() -> None:
    story = load_story(str(EXAMPLES[0])).model_copy(update={"recoverability_questions": []})
    plan = RulePlanner().plan(story, PlanRequest())
    annotated = plan.model_copy(update={"transitions": story.transitions})
    assert not any("made_from" in (item.model_extra or {}) for item in build_questions(story, annotated))
