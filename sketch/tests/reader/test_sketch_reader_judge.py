"""The embedded judge on drawn boards. With images it is given pixels, questions and options, and nothing else."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import permutations
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from knowing_reader import KnowingReader
from PIL import Image

from katha.errors import UsageError
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Dimension
from katha_sketch.english import read_story
from katha_sketch.reader import FigureReading, FrameReading, PropReading, Reader, load_reader
from katha_sketch.reader.choosing import choose
from katha_sketch.reader.claims import read_statement, term_of
from katha_sketch.reader.moments import from_frames, from_story
from katha_sketch.reader.sketch_reader import SketchReaderJudge

SEED = 11
BOARD = (
    "Medium shot. The happy crow sings by a tree in the forest.",
    "Medium shot. The fox looks at the crow in the forest. The fox is sly.",
    "Medium shot. The crow is sad and cries in the forest.",
    "Medium shot. The fox eats the cheese in the forest. The fox is happy.",
    "Medium shot. The fox sleeps in the forest.",
)
STORY = (
    "A happy crow sang in a tree. A sly fox looked at the crow. The crow was sad and cried. "
    "The happy fox ate the cheese. Then the fox slept."
)


class Case(NamedTuple):
    dimension: Dimension
    question: str
    right: str
    wrong: tuple[str, ...]

    def prompt(self, seed: int = 0) -> JudgePrompt:
        options = [self.right, *self.wrong]
        Random(seed).shuffle(options)
        return JudgePrompt(self.question, self.dimension, "", (*options, UNCLEAR))


CASES = (
    Case(
        "action_visibility",
        "What does the crow do at first?",
        "The crow sings",
        ("The crow digs", "The crow swims", "The crow pushes"),
    ),
    Case(
        "action_visibility",
        "What does the fox do at the end?",
        "The fox sleeps",
        ("The fox dances", "The fox rides", "The fox throws"),
    ),
    Case(
        "consequence",
        "What is the outcome for the fox?",
        "The fox sleeps",
        ("The fox begs", "The fox climbs", "The fox falls"),
    ),
    Case(
        "emotional",
        "How does the crow feel when the crow cries?",
        "The crow is sad",
        ("The crow is proud", "The crow is angry", "The crow is calm"),
    ),
    Case(
        "emotional",
        "How does the feeling of the crow change?",
        "The crow changes from happy to sad",
        (
            "The crow changes from sad to happy",
            "The crow changes from angry to calm",
            "The crow changes from proud to afraid",
        ),
    ),
    Case(
        "temporal_order",
        "Which comes first?",
        "The crow sings before the fox sleeps",
        (
            "The fox sleeps before the crow sings",
            "The fox sleeps before the crow cries",
            "The crow digs before the fox sleeps",
        ),
    ),
)


@cache
def knowing() -> KnowingReader:
    return KnowingReader()


@cache
def drawn(prompt: str, seed: int = SEED) -> bytes:
    return knowing().draw(prompt, seed)


def board(prompts: Sequence[str] = BOARD, seed: int = SEED) -> Evidence:
    return Evidence("image", tuple(drawn(prompt, seed) for prompt in prompts))


def flat(colour: str = "#fbf6ea") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (768, 512), colour).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def judge() -> SketchReaderJudge:
    """The judge with the reader that ships."""
    return SketchReaderJudge()


@pytest.fixture(scope="module")
def rules() -> SketchReaderJudge:
    """The judge with a reader that knows what was drawn: what is left to test is how it chooses."""
    return SketchReaderJudge(reader=knowing())


def ask(judge: SketchReaderJudge, evidence: Evidence, cases: Iterable[Case] = CASES, seed: int = 0) -> list[JudgeReply]:
    return list(judge.ask(evidence, [case.prompt(seed) for case in cases]))


def share_right(replies: Sequence[JudgeReply], cases: Sequence[Case] = CASES) -> float:
    return float(np.mean([reply.answer == case.right for reply, case in zip(replies, cases, strict=True)]))


def test_it_is_a_judge(judge: SketchReaderJudge) -> None:
    assert isinstance(judge, Judge)
    assert judge.spec()["reader"]["weights"] == load_reader().spec()["weights"]
    with pytest.raises(UsageError):
        SketchReaderJudge("fast")


def test_it_answers_from_what_was_seen(rules: SketchReaderJudge) -> None:
    replies = ask(rules, board())
    assert {reply.status for reply in replies} == {"ok"}
    assert share_right(replies) >= 5 / 6


MODERN = (
    "Medium shot. The girl kicks the ball in the park.",
    "Medium shot. The robot cries in the kitchen.",
    "Medium shot. The police officer phones in the street.",
    "Medium shot. The robot dances in the kitchen.",
    "Medium shot. The girl sleeps in the bedroom.",
)
MODERN_CASES = (
    Case(
        "action_visibility",
        "What does Lena do at the start?",
        "Lena kicks the ball",
        ("Lena kicks the umbrella", "The robot kicks the ball", "Lena sleeps"),
    ),
    Case(
        "action_visibility",
        "What does the robot do after the police officer phones?",
        "The robot dances",
        ("The police officer dances", "The robot cries", "The robot flies"),
    ),
    Case(
        "temporal_order",
        "In which order do these happen: the robot dances; the girl sleeps?",
        "The robot dances before the girl sleeps",
        ("The girl sleeps before the robot dances", "The girl sleeps before the police officer phones"),
    ),
)


def test_people_by_name_trades_and_actors_without_a_rig_are_understood(rules: SketchReaderJudge) -> None:
    replies = ask(rules, board(MODERN), MODERN_CASES)
    assert [reply.answer for reply in replies] == [case.right for case in MODERN_CASES]


def test_what_is_denied_of_nobody_is_not_seen(rules: SketchReaderJudge) -> None:
    case = Case("action_visibility", "What does the cat do?", "The cat cannot get down", ("The cat sleeps",))
    (reply,) = ask(rules, Evidence("image", (flat(),) * 3), [case])
    assert reply.answer == UNCLEAR


BEASTS = ("lion", "fox", "crow", "king", "elephant", "monkey", "farmer", "snake", "dog", "goose", "bear", "queen")
DEEDS = ("sleep", "run", "cry", "sing", "hide", "fly", "swim", "eat", "dig", "laugh", "think", "dance")


def test_it_reads_the_pictures_better_than_chance(judge: SketchReaderJudge) -> None:
    """With the weights that ship: among four deeds and `Unclear`, pictures make the right one the most frequent."""
    right = wrong = 0
    for nth, (who, deed) in enumerate(zip(BEASTS, DEEDS, strict=True)):
        others = tuple(f"The {who} {DEEDS[(nth + step) % len(DEEDS)]}s" for step in (3, 5, 8))
        case = Case("action_visibility", f"What does the {who} do?", f"The {who} {deed}s", others)
        evidence = board([f"Medium shot. The {who} {deed}s in the meadow."])
        (reply,) = ask(judge, evidence, [case])
        right += reply.answer == case.right
        wrong += reply.answer not in (case.right, UNCLEAR)
    assert right >= 2 * (wrong / 3) + 2


def test_the_order_of_options_plays_no_part(judge: SketchReaderJudge) -> None:
    first = [reply.answer for reply in ask(judge, board(), seed=0)]
    for seed in range(1, 5):
        assert [reply.answer for reply in ask(judge, board(), seed=seed)] == first


def test_empty_sheets_tell_nothing(judge: SketchReaderJudge) -> None:
    """Neither an option's place nor its words give it away: on blank frames there is nothing to choose by."""
    for colour in ("#fbf6ea", "white", "black"):
        replies = ask(judge, Evidence("image", (flat(colour),) * 5))
        assert {(reply.status, reply.answer) for reply in replies} == {("ok", UNCLEAR)}


def test_the_story_of_other_pictures_is_not_answered(rules: SketchReaderJudge) -> None:
    others = tuple(f"Medium shot. The {who} stands in the desert." for who in ("camel", "king", "bee", "pig", "owl"))
    assert share_right(ask(rules, board(others))) <= 1 / 6


ORDERS = (
    ("The lion sleeps", "The lion runs", "The lion eats", "The lion dances"),
    ("The monkey climbs", "The monkey laughs", "The monkey sleeps", "The monkey digs"),
    ("The king sits", "The king points", "The king fights", "The king cries"),
)


def order_cases(events: Sequence[str]) -> list[Case]:
    """Each pair of events, once with each of the two orders as the right one's place in the story."""
    pairs = [(events[a], events[b]) for a in range(len(events)) for b in range(a + 1, len(events))]
    return [
        Case("temporal_order", "Which comes first?", f"{one} before {lower(two)}", (f"{two} before {lower(one)}",))
        for one, two in pairs
    ]


def lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def test_order_is_read_from_the_frames_and_lost_when_they_are_shuffled(rules: SketchReaderJudge) -> None:
    """Over all orders of four frames, every pair is right as often as it is wrong: shuffled frames tell no order."""
    told, shuffled = [], []
    for events in ORDERS:
        prompts = [f"Medium shot. {event} in the meadow." for event in events]
        cases = order_cases(events)
        told.append(share_right(ask(rules, board(prompts), cases), cases))
        for order in permutations(prompts):
            shuffled.append(share_right(ask(rules, board(order), cases), cases))
    assert np.mean(told) >= 0.7
    assert np.mean(shuffled) <= 0.55  # now and then the parser has one of the two orders only


def test_reversed_frames_reverse_the_answer(rules: SketchReaderJudge) -> None:
    case = CASES[-1]
    assert ask(rules, board(), [case])[0].answer == case.right
    assert ask(rules, board(BOARD[::-1]), [case])[0].answer != case.right


def test_other_pictures_are_refused_with_a_reason(judge: SketchReaderJudge) -> None:
    noise = np.random.default_rng(3).integers(0, 256, (256, 384, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "PNG")
    replies = ask(judge, Evidence("image", (drawn(BOARD[0]), out.getvalue())))
    assert {reply.status for reply in replies} == {"refused"}
    assert "frame 2" in str(replies[0].error)


def test_it_has_to_be_given_options(judge: SketchReaderJudge) -> None:
    (reply,) = judge.ask(board(), [JudgePrompt("What happens?", "causal", "", None)])
    assert (reply.status, reply.answer) == ("refused", None)
    assert "options" in str(reply.error)


def test_the_story_is_read_by_the_same_rules(judge: SketchReaderJudge) -> None:
    assert share_right(ask(judge, Evidence("text", (), STORY))) >= 5 / 6


def test_with_story_and_pictures_the_pictures_are_checked(rules: SketchReaderJudge) -> None:
    """What the story tells is supported by its own board, omitted by blank frames, contradicted by reversed ones."""
    order = CASES[-1]

    def support(images: Sequence[bytes], case: Case) -> tuple[str | None, str | None]:
        (reply,) = ask(rules, Evidence("text+image", tuple(images), STORY), [case])
        return reply.answer, reply.image_support

    assert support(board().images, CASES[0]) == (CASES[0].right, "supported")
    assert support((flat(),) * 5, CASES[0]) == (CASES[0].right, "omitted")
    assert support(board().images, order) == (order.right, "supported")
    assert support(board(BOARD[::-1]).images, order)[1] in {"contradicted", "omitted"}


class CountingReader(Reader):
    """The shipped reader; notes how many pictures it looks at."""

    looked_at: int = 0

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        several = list(pictures)
        self.looked_at += len(several)
        return super().read_many(several)


def test_every_picture_is_looked_at_once() -> None:
    from importlib.resources import files

    folder = files("katha_sketch.reader")
    models = (folder.joinpath(name).read_bytes() for name in ("finder.onnx", "namer.onnx"))
    reader = CountingReader(*models, load_reader().concepts, load_reader().gallery)
    judge = SketchReaderJudge(reader=reader)
    ask(judge, board())
    ask(judge, board(BOARD[:3]))
    assert reader.looked_at == len(BOARD)


def test_a_question_is_answered_alone(judge: SketchReaderJudge) -> None:
    """A reply depends on its own question, never on the others of the call."""
    together = [reply.answer for reply in ask(judge, board())]
    assert together == [ask(judge, board(), [case])[0].answer for case in CASES]


def seen(deed: str, p: float = 1.0, who: str = "woman", *props: PropReading, faint: bool = False) -> FrameReading:
    """The reading of one figure that does `deed` with probability `p`, and stands otherwise."""
    figure = FigureReading(who, 0.5, 9.0, 9.0, {deed: p, "stand": 1 - p}, {"none": 1.0}, {who: 0.5, "man": 0.2})
    clear, doubtful = ((), (figure,)) if faint else ((figure,), ())
    return FrameReading(clear, props, {"none": 1.0}, {"day": 1.0}, 1.0, faint=doubtful)


def test_weak_evidence_decides_where_there_is_no_other() -> None:
    """Two deeds that are hardly seen, one of them by a figure below the threshold: the order follows all the same."""
    frames = [seen("stand"), seen("eat", 0.2, faint=True), seen("stand"), seen("sleep", 0.2), seen("stand")]
    right, wrong = "Lena eats before Lena sleeps", "Lena sleeps before Lena eats"
    asked = "In which order do these happen: Lena eats; Lena sleeps?"
    assert choose(asked, "temporal_order", (wrong, right, UNCLEAR), from_frames(frames)).answer == right
    assert choose(asked, "temporal_order", (wrong, right, UNCLEAR), from_frames(frames[::-1])).answer == wrong
    alike = from_frames([seen("stand")] * 4)
    assert choose(asked, "temporal_order", (wrong, right, UNCLEAR), alike).answer == UNCLEAR


def test_what_happens_elsewhere_is_no_answer() -> None:
    """The clearest event of the story is not what follows the event that the question names."""
    frames = [seen("dance", 0.9), seen("eat", 0.5), seen("read", 0.3), seen("stand")]
    options = ("Lena dances", "Lena reads", "Lena swims", UNCLEAR)
    choice = choose("What does Lena do after Lena eats?", "action_visibility", options, from_frames(frames))
    assert choice.answer == "Lena reads"


def test_of_two_frames_the_one_beside_the_other_event_is_meant() -> None:
    """What may be in the first frame or in the last is where it is near what it is asked beside."""
    frames = [seen("eat", 0.6), seen("stand"), seen("stand"), seen("stand"), seen("read", 0.9), seen("eat", 0.5)]
    options = ("Lena eats before Lena reads", "Lena reads before Lena eats", UNCLEAR)
    asked = "In which order do these happen: Lena eats; Lena reads?"
    assert choose(asked, "temporal_order", options, from_frames(frames)).answer == options[1]
    assert choose(asked, "temporal_order", options, from_frames(frames[::-1])).answer == options[0]


def test_what_no_frame_shows_may_be_what_the_frame_that_is_asked_for_tells() -> None:
    """Wrong options are seen clearly, but elsewhere; a text leaves out less than pictures do."""
    frames = [seen("eat", 0.9), seen("stand"), seen("stand"), seen("sleep", 0.9), seen("dance", 0.9)]
    options = ("Lena sleeps", "Lena reads", "Lena dances", UNCLEAR)
    asked = "What does Lena do after Lena eats?"
    choice = choose(asked, "action_visibility", options, from_frames(frames))
    assert choice.answer == "Lena reads"
    assert choice.scores[1] > 0.6
    story = from_story(read_story("Lena ate a cake. Tom smiled. Tom waited. Lena slept. Lena danced."))
    assert choose(asked, "action_visibility", options, story).answer == "Lena sleeps"


def test_a_thing_that_may_be_another_counts_for_what_it_may_be() -> None:
    def thing(likeliest: str, other: str) -> PropReading:
        return PropReading(likeliest, 0.5, 9.0, 9.0, 9.0, names={likeliest: 0.5, other: 0.3})

    frames = [seen("hold", 0.5, "woman", thing("knot", "wrench")), seen("hold", 0.5, "woman", thing("knot", "candle"))]
    options = ("Lena holds the wrench", "Lena holds the calendar", UNCLEAR)
    assert choose("What does Lena do?", "action_visibility", options, from_frames(frames)).answer == options[0]


def test_all_who_share_a_deed_are_named_by_a_claim() -> None:
    (claim,) = read_statement("Anna and Mr Bello stand in the puddle").claims
    assert {name for term in (claim.actor, *claim.also) if term is not None for name in term.names} >= {"anna"}
    assert any("character/man" in term.looks for term in claim.also)
    assert read_statement("The schoolboys cheer").claims[0].deed is not None
    (owned,) = read_statement("Anna's brother lifts one hand").claims
    assert not any("anna" in term.names for term in owned.also)


@pytest.mark.parametrize(
    ("name", "looks"),
    [("Mina", {"woman", "girl"}), ("Herr Falk", {"man", "boy"}), ("Zorbl", set()), ("the old woman", {"old_woman"})],
)
def test_given_names_and_titles_tell_a_sex(name: str, looks: set[str]) -> None:
    found = term_of(name)
    assert found is not None
    assert found.living
    assert {key.split("/")[1] for key in found.looks} == looks


def test_a_frame_that_shows_one_option_is_hardly_anothers() -> None:
    """Of two deeds that a question's frame may show, the one that no other frame shows better is meant."""
    reader = KnowingReader()
    board = [reader.draw(f"Medium shot. {told}") for told in (
        "The woman opens the box.", "The woman kicks the ball.", "The woman carries the ball.", "The woman reads."
    )]  # fmt: skip
    judge = SketchReaderJudge(reader=reader)
    options = ("The woman carries the ball", "The woman kicks the ball", "The woman reads", "The woman sings", UNCLEAR)
    prompt = JudgePrompt("What does the woman do right after she opens the box?", "action_visibility", "", options)
    reply = next(iter(judge.ask(Evidence("image", tuple(board), None), [prompt])))
    assert reply.answer == "The woman kicks the ball"
