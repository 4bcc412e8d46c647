"""VinaBench on hand-made vectors, logits and narratives: ranks, both ways of averaging, prompts, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metric_boards import HandEncoder, make_board, make_context, plain_picture

from katha.errors import InputFileError
from katha.eval_bridge.metrics import measure_board
from katha.eval_bridge.metrics.ranking import ClipRank, Pool, VqaRank, reciprocal_rank
from katha.eval_bridge.metrics.vinabench import VinaBench
from katha.protocols import Evidence, JudgeReply, PlainPrompt
from katha.schema import Character, Link, Panel, Plan
from katha.schema.narratives import Narrative, SceneConstraints, narrative_of, read_narratives, records_of, serialise
from katha.testing import ScriptedJudge, scripted_words

PROFILE = {"Samantha": "adult female, wife", "Tom": "adult male"}
NARRATIVE = Narrative(
    profile=PROFILE,
    scenes=(
        SceneConstraints(
            text="Samantha cooks.",
            entities=("Samantha", "soup", "Christmas tree"),
            characters=("Samantha",),
            number=1,
            time="night",
            location="kitchen",
        ),
        SceneConstraints(
            text="Tom and Samantha eat soup.",
            entities=("a spoon",),
            characters=("Samantha", "Tom"),
            number=2,
            time="early morning",
            location="kitchen",
        ),
        SceneConstraints(text="It is empty.", number=0, location="unclear"),
    ),
)
YES = {
    "Does this image contain or imply 'soup'? Only answer yes or no.": 0.9,
    "Does this image contain or imply 'Christmas tree'? Only answer yes or no.": 0.3,
    "Does this image contain or imply 'a spoon'? Only answer yes or no.": 0.6,
    "Is this image taken at night? Only answer yes or no.": 0.7,
    "Is this image taken in the early morning? Only answer yes or no.": 0.5,
    "Is this image taken at a kitchen? Only answer yes or no.": 0.8,
    "Is this image taken at an unclear? Only answer yes or no.": 0.2,
    "Are all these images in the same style? Only answer yes or no.": 0.95,
    "Do all these images contain the same charcater Samantha: adult female, wife? Only answer yes or no.": 0.4,
    "Are all these images taken at the same kitchen? Only answer yes or no.": 0.1,
    "Character descriptions:\nSamantha: adult female, wife\n"
    "Do characters in this image fit into their descriptions? Only answer yes or no.": 0.65,
    "Character descriptions:\nSamantha: adult female, wife\nTom: adult male\n"
    "Do characters in this image fit into their descriptions? Only answer yes or no.": 0.55,
}
NUMBER = "How many characters are in this image? Only answer an Arabic number."


def board() -> Any:
    return make_board([scene.text for scene in NARRATIVE.scenes], narrative=NARRATIVE)


def probabilities(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
    """Answer by the table; every frame shows one character with 0.6, two with 0.3, none with 0.1."""
    if prompt.text == NUMBER:
        return JudgeReply("ok", answer="1", usage={"probabilities": {"0": 0.1, "1": 0.6, "2": 0.3}})
    share = YES[prompt.text]
    return scripted_words(Yes=share / 2, yes=share / 4, YES=share / 4, No=1 - share)


def hard(evidence: Evidence, prompt: PlainPrompt) -> str:
    return "1." if prompt.text == NUMBER else ("Yes, it does." if YES[prompt.text] >= 0.5 else "No.")


def test_the_paper_s_probabilities_are_averaged_over_entities_characters_and_locations(tmp_path: Path) -> None:
    judge = ScriptedJudge(probabilities)
    found = list(measure_board(VinaBench(), board(), make_context(tmp_path, judge)))
    expected = {
        "entities": ((0.9 + 0.3 + 0.6) / 3, 3),
        "number": ((0.6 + 0.3 + 0.1) / 3, 3),
        "attributes": ((0.65 + 0.55) / 2, 2),
        "time": (0.6, 2),
        "location": (0.8, 2),
        "same_style": (0.95, 1),
        "same_character": (0.4, 1),
        "same_location": (0.1, 1),
    }
    assert {value.part: (value.value, value.n) for value in found if value.part in expected} == {
        part: (pytest.approx(number, abs=1e-9), n) for part, (number, n) in expected.items()
    }
    whole = {value.part: value.value for value in found}
    assert whole["alignment"] == pytest.approx(np.mean([0.6, 1 / 3, 0.6, 0.6, 0.8]), abs=1e-9)
    assert whole["consistency"] == pytest.approx((0.95 + 0.4 + 0.1) / 3, abs=1e-9)
    shown = {prompt.text: len(evidence.images) for evidence, prompt in judge.asked}
    assert shown["Are all these images in the same style? Only answer yes or no."] == 3
    assert shown["Are all these images taken at the same kitchen? Only answer yes or no."] == 2


def test_the_code_s_hard_answers_are_averaged_within_a_scene_first(tmp_path: Path) -> None:
    found = list(measure_board(VinaBench(), board(), make_context(tmp_path, ScriptedJudge(hard), mode="code")))
    values = {value.part: (value.value, value.n) for value in found}
    assert values["entities"] == (1.0, 2), "a capitalised entity is not asked, the others are yes"
    assert values["number"] == (pytest.approx(1 / 3), 3)
    assert values["location"] == (pytest.approx(2 / 3), 3), "the unclear location is asked, too"
    assert values["same_character"] == (0.0, 1)


def test_a_failed_question_is_a_null_of_its_own_and_counts_in_no_mean(tmp_path: Path) -> None:
    def judge(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
        if "soup" in prompt.text:
            return JudgeReply("refused", error="no food")
        return probabilities(evidence, prompt)

    found = list(measure_board(VinaBench(), board(), make_context(tmp_path, ScriptedJudge(judge))))
    entities = [value for value in found if value.part == "entities"]
    assert [(value.item, value.value, value.reason) for value in entities] == [
        ("1: soup", None, "refused: no food"),
        ("", pytest.approx(0.45), None),
    ]


def test_a_board_without_what_a_part_needs_is_a_typed_null(tmp_path: Path) -> None:
    lone = make_board(["It is empty."], narrative=Narrative(scenes=(NARRATIVE.scenes[2],)))
    found = list(measure_board(VinaBench(), lone, make_context(tmp_path, ScriptedJudge(probabilities))))
    assert {value.part: value.reason for value in found if value.value is None} == {
        "entities": "no scene has a linked entity that is not a character",
        "attributes": "no scene has a character with a description",
        "time": "no scene has a time of day",
        "location": "no scene has a location",
        "same_style": "the board has one frame",
        "same_character": "no character is in two scenes",
        "same_location": "no location is in two scenes",
        "consistency": "no part of the consistency could be measured",
    }
    bare = list(measure_board(VinaBench(), make_board(), make_context(tmp_path, ScriptedJudge(probabilities))))
    assert {value.reason for value in bare} == {
        "there are no constraints: give --narratives, or boards that have a plan"
    }


@pytest.mark.parametrize(
    ("score", "candidates", "expected"),
    [
        (0.9, [0.8, 0.7], 1.0),
        (0.8, [0.8, 0.7], 1.0),
        (0.75, [0.8, 0.75, 0.7], 0.5),
        (0.0, [0.5] * 100, 1 / 101),
        (0.5, [], 1.0),
    ],
)
def test_ranks(score: float, candidates: list[float], expected: float) -> None:
    assert reciprocal_rank(score, candidates) == pytest.approx(expected, abs=1e-12)


def _hand_ranked(metric: Any, vectors: dict[bytes, Any], texts: dict[str, Any]) -> Any:
    metric._encoder = HandEncoder(vectors, texts)
    metric._pool = Pool(metric._encoder)
    return metric


def test_clip_t_mrr_over_a_pool_of_hand_made_vectors(tmp_path: Path) -> None:
    texts = ["A fox sleeps.", "The fox runs."]
    pictures = [plain_picture(at) for at in range(6)]
    angles = [0.3, 0.2, 0.1, 0.2, 0.5, 0.2]  # of the frames 0, 1 and the pool 2, 3, 4, 5 to both texts
    vectors = {data: (np.cos(angle), np.sin(angle)) for data, angle in zip(pictures, angles, strict=True)}
    metric = _hand_ranked(ClipRank(model="none@none"), vectors, dict.fromkeys(texts, (1.0, 0.0)))
    pool = [("fox", data) for data in (*pictures[2:], pictures[2])]
    found = list(measure_board(metric, make_board(texts, images=pictures[:2]), make_context(tmp_path, pool=pool)))
    assert [value.value for value in found] == [pytest.approx(1 / 4), pytest.approx(1 / 2)]
    none = list(measure_board(metric.__class__(model="none@none"), make_board(), make_context(tmp_path)))
    assert [value.reason for value in none] == ["there is no pool of gold pictures: give --references"]


def test_a_frame_that_is_in_the_pool_is_not_beaten_by_itself(tmp_path: Path) -> None:
    """The cosine of one and the same picture may differ in its last digits from product to product."""
    generator = np.random.default_rng(5)
    pictures = [plain_picture(at, (8, 8)) for at in range(60)]
    vectors = {data: generator.normal(size=256) for data in pictures}
    texts = [f"Scene {at}." for at in range(20)]
    words = {
        text: vectors[data] + 0.5 * generator.normal(size=256) for text, data in zip(texts, pictures, strict=False)
    }
    metric = _hand_ranked(ClipRank(model="none@none"), vectors, words)
    context = make_context(tmp_path, pool=[("gold", data) for data in pictures])
    found = list(measure_board(metric, make_board(texts, images=pictures[:20]), context))
    assert [value.value for value in found] == [1.0] * 20


@pytest.mark.parametrize(("mode", "calls", "expected"), [("paper", 5, 1 / 3), ("code", 3, 1 / 2)])
def test_vqa_mrr_ranks_the_whole_pool_or_clip_s_best(tmp_path: Path, mode: Any, calls: int, expected: float) -> None:
    pictures = [plain_picture(at) for at in range(5)]
    shares = dict(zip(range(5), (0.5, 0.9, 0.2, 0.7, 0.1), strict=True))
    vectors = {data: (1.0, 0.1 * at) for at, data in enumerate(pictures)}
    metric = _hand_ranked(VqaRank(model="none@none", top=2), vectors, {"A fox sleeps.": (1.0, 0.0)})
    sizes = {}

    def judge(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
        assert prompt.text.startswith("Storyline: A fox sleeps.\nDoes this image fit")
        at = sizes.setdefault(evidence.images[0], len(sizes))
        return scripted_words(Yes=order[at], No=1 - order[at])

    order = [shares[0], shares[1], shares[2], shares[3], shares[4]] if mode == "paper" else [0.5, 0.9, 0.2]
    scripted = ScriptedJudge(judge)
    context = make_context(tmp_path, scripted, mode=mode, pool=[("fox", data) for data in pictures[1:]])
    found = list(measure_board(metric, make_board(["A fox sleeps."], images=pictures[:1]), context))
    assert [value.value for value in found] == [pytest.approx(expected)]
    assert len(scripted.asked) == calls


def test_constraints_are_written_out_as_the_paper_s_example() -> None:
    scene = SceneConstraints(
        caption="A woman wearing a green shirt",
        linked={"A woman": "Samantha"},
        characters=("Samantha",),
        time="afternoon",
        location="kitchen",
    )
    assert serialise(scene, PROFILE) == (
        "A woman (Samantha) wearing a green shirt [Characters] Samantha (adult female, wife) "
        "[Time of Day] afternoon [Location] kitchen"
    )


def test_a_plan_says_its_constraints() -> None:
    plan = Plan(
        story_id="fox",
        planner="rule",
        characters=[Character(name="Fox", kind="fox", appearance="a red fox")],
        panels=[
            Panel(
                index=1,
                prompt="A red fox sleeps.",
                source="The fox slept.",
                characters=["Fox"],
                must_show=["fox", "tree"],
                place="forest",
                time_of_day="night",
                links=[Link(phrase="Reynard", visible="red fox")],
            )
        ],
    )
    scene = narrative_of(plan).scenes[0]
    assert (scene.text, scene.entities, scene.number) == ("The fox slept.", ("tree",), 1)
    assert serialise(scene, {"Fox": "a red fox"}) == (
        "A red fox (Reynard) sleeps. [Characters] Fox (a red fox) [Time of Day] night [Location] forest"
    )


ROW = {
    "scene_full_id": "s1/a",
    "story_id": 7,
    "narrative": ["Samantha cooks.", "She eats."],
    "global_profile": {"Samantha": "adult female"},
    "scene_characters": [{"present": ["Samantha"], "num_present": "1"}, {"present": [], "num_present": 0}],
    "time": ["night", "unclear"],
    "location": ["kitchen", "unclear"],
    "linked_entities": ["soup; Samantha", ""],
    "image_links": ["https://x/1.jpg", "https://x/2.jpg"],
}


def test_vinabench_s_files_load(tmp_path: Path) -> None:
    path = tmp_path / "vwp_test.json"
    path.write_text(json.dumps([ROW]))
    found = read_narratives(path)
    assert list(found) == ["s1_a_7"]
    first, second = found["s1_a_7"].scenes
    assert (first.entities, first.number, first.time, second.entities) == (("soup", "Samantha"), 1, "night", ())
    (record,) = records_of(found)
    assert [scene.scene_text for scene in record.scenes] == ROW["narrative"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"narrative": []}, "is not a list of narratives"),
        ([{**ROW, "narrative": []}], "narrative 1, field 'narrative'"),
        ([ROW, ROW], "narrative 2: its id 's1_a_7' is none, or is there twice"),
        ([{**ROW, "scene_characters": [{"num_present": "many"}]}], "narrative 1"),
    ],
)
def test_a_broken_file_of_narratives_is_a_sentence(tmp_path: Path, value: Any, message: str) -> None:
    path = tmp_path / "vwp_test.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InputFileError, match=message):
        read_narratives(path)
