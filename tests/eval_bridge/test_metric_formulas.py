"""The formulas of the other papers against their printed numbers, and against slow loops written from the papers."""

from __future__ import annotations

import csv
import math
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.errors import ReplyError
from katha.eval_bridge.metrics import illustration as ill
from katha.eval_bridge.metrics import vcms, vistorybench
from katha.planners.fragments import read_fragments

TABLE_S4 = Path(__file__).parent.parent / "data" / "vistorybench_table_s4.tsv"

# VCMS


@pytest.mark.parametrize(
    ("character", "setting", "behaviour", "style", "overall"),
    [
        (69.76, 86.56, 54.62, 86.88, 74.46),
        (56.53, 68.06, 42.15, 76.72, 60.87),
        (66.13, 88.37, 76.03, 83.88, 78.60),
        (46.91, 71.47, 66.48, 78.28, 65.79),
    ],
)
def test_vcms_is_the_mean_of_the_four_columns_of_table_6(
    character: float, setting: float, behaviour: float, style: float, overall: float
) -> None:
    told = {"character": character, "setting": setting, "behaviour": behaviour, "style": style}
    found = vcms.story_vcms({name: [value / 100] for name, value in told.items()})  # type: ignore[misc]
    assert found.overall is not None
    assert 100 * found.overall == pytest.approx(overall, abs=0.0101)


def test_the_first_frame_has_no_frame_before_it_and_weighs_nothing_down() -> None:
    scores = {"behaviour": [1.0, 0.5], "setting": [1.0, 1.0], "character": [None, 0.4], "style": [None, 0.2]}
    found = vcms.story_vcms(scores)  # type: ignore[arg-type]
    assert (found.character, found.style, found.counts["style"]) == (0.4, 0.2, 1)
    assert found.overall == pytest.approx((0.75 + 1.0 + 0.4 + 0.2) / 4)
    alone = vcms.story_vcms({"behaviour": [1.0], "setting": [1.0], "character": [None], "style": [None]})
    assert alone.overall is None, "one frame has no consistency, and so no score"


@pytest.mark.parametrize(
    ("reply", "score"),
    [("0.8", 0.8), ("1", 1.0), (".5", 0.5), ("Score: 0.25.", 0.25), ("8", None), ("0.8 or 0.9", None), ("good", None)],
)
def test_a_vcms_reply_is_one_number_on_the_scale(reply: str, score: float | None) -> None:
    assert vcms.read_score(reply) == score


def test_three_samples_are_averaged_and_no_weighs_against_yes() -> None:
    assert vcms.sample_mean([0.2, None, 0.6]) == pytest.approx(0.4)
    assert vcms.sample_mean([None, None]) is None
    assert vcms.binary_score(0.9, 0.05) == pytest.approx(0.85)
    assert vcms.binary_score(0.0, 1.0) == -1.0


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), st.integers(0, 9))
def test_half_of_the_captions_are_corrupted_by_others(captions: list[str], seed: int) -> None:
    corrupted, changed = vcms.corrupt_captions(captions, 0.5, seed)
    assert {n for n, pair in enumerate(zip(captions, corrupted, strict=True)) if pair[0] != pair[1]} == changed
    assert len(changed) == (round(len(captions) / 2) if len(set(captions)) > 1 else 0)
    assert set(corrupted) <= set(captions)
    assert vcms.corrupt_captions(captions, 0.5, seed) == (corrupted, changed)


# ViStoryBench


def test_prompt_alignment_is_the_mean_of_the_four_in_all_35_rows_of_table_s4() -> None:
    with TABLE_S4.open(encoding="utf-8") as file:
        rows = list(csv.reader((line for line in file if not line.startswith("#")), delimiter="\t"))
    assert len(rows) == 35
    for name, *cells in rows:
        *four, average = map(float, cells)
        found = vistorybench.prompt_alignment(dict(zip(vistorybench.ASPECTS, four, strict=True)))
        assert found == pytest.approx(average, abs=0.0051), name
    assert vistorybench.prompt_alignment({"scene": 4.0, "shot": 4.0, "interaction": 4.0}) is None


@pytest.mark.parametrize(
    ("detected", "expected", "score"),
    [(3, 3, 100.0), (2, 1, 36.79), (9, 10, 90.48), (0, 1, 36.79), (5, 10, 60.65), (1, 0, None)],
)
def test_occm(detected: int, expected: int, score: float | None) -> None:
    assert vistorybench.occm(detected, expected) == (score if score is None else pytest.approx(score, abs=0.005))


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Analysis: a boat.\n\nScore: 3", 3),
        ("**Score:** Good (3)", 3),
        ("Analysis: score: 1 at first.\nScore: 4", 4),
        ("Score: 5", None),
        ("Score: 2.5", None),
        ("three", None),
    ],
)
def test_an_alignment_reply(reply: str, score: int | None) -> None:
    assert vistorybench.read_alignment(reply) == score


def test_individual_action_is_rounded_twice_in_the_code_alone() -> None:
    shots = [[4, 3], [1], [2, 2, 1]]
    assert vistorybench.individual_action(shots) == pytest.approx((3.5 + 1 + 5 / 3) / 3)
    assert vistorybench.individual_action(shots, "code") == 2.0
    assert vistorybench.individual_action([[]]) is None


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    dot = sum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(float(a) ** 2 for a in one)) / math.sqrt(sum(float(b) ** 2 for b in other))


def test_characters_are_matched_with_the_largest_total_similarity() -> None:
    draw = np.random.default_rng(3)
    for count, names in ((4, "abc"), (3, "abc"), (2, "abc"), (1, "ab")):
        crops = draw.normal(size=(count, 5))
        references = {name: draw.normal(size=(draw.integers(1, 4), 5)) for name in names}
        table = {
            (name, at): max(_cosine(crop, row) for row in references[name])
            for name in names
            for at, crop in enumerate(crops)
        }
        pairs = min(count, len(names))
        best = max(
            sum(table[name, at] for name, at in zip(chosen, places, strict=True))
            for chosen in combinations(names, pairs)
            for places in permutations(range(count), pairs)
        )
        found = vistorybench.match_characters(
            {name: vistorybench.nearest(crops, references[name]) for name in references}
        )
        assert len(found) == pairs == len(set(found.values()))
        assert sum(table[name, at] for name, at in found.items()) == pytest.approx(best, abs=1e-9)
    assert vistorybench.match_characters({"a": np.zeros(0)}) == {}


def test_cids_by_both_readings() -> None:
    draw = np.random.default_rng(5)
    crops = {"Ann": draw.normal(size=(3, 6)), "Ben": draw.normal(size=(1, 6))}
    references = {"Ann": draw.normal(size=(2, 6)), "Ben": draw.normal(size=(3, 6)), "Cat": draw.normal(size=(1, 6))}
    pairs = [_cosine(one, other) for one, other in combinations(crops["Ann"], 2)]
    table = {name: [[_cosine(crop, row) for row in references[name]] for crop in rows] for name, rows in crops.items()}

    code = vistorybench.cids(crops, references, "code")
    cross = [np.mean(table["Ann"]), np.mean(table["Ben"]), 0.0]
    assert code.cross == pytest.approx(sum(cross) / 3, abs=1e-9)
    assert code.own == pytest.approx((np.mean(pairs) + 1.0 + 0.0) / 3, abs=1e-9)
    assert (code.unmatched, code.single) == (("Cat",), ("Ben",))

    paper = vistorybench.cids(crops, references)
    best = [max(row) for rows in table.values() for row in rows]
    assert paper.cross == pytest.approx(sum(best) / 4, abs=1e-9)
    assert paper.own == pytest.approx(np.mean(pairs), abs=1e-9)
    nobody = vistorybench.cids({}, references)
    assert (nobody.cross, nobody.own, nobody.characters) == (None, None, 3)


@settings(deadline=None)
@given(st.integers(2, 7), st.integers(1, 5), st.integers(0, 99))
def test_the_mean_of_pairs_without_the_pairs(count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(count, width))
    slow = np.mean([_cosine(one, other) for one, other in combinations(rows, 2)])
    assert vistorybench.pair_mean(rows) == pytest.approx(slow, abs=1e-9)


def test_style_of_one_frame_and_of_frames_without_references() -> None:
    draw = np.random.default_rng(7)
    frames, pictures = draw.normal(size=(3, 4)), draw.normal(size=(2, 4))
    assert vistorybench.pair_mean(frames[:1]) is None, "one frame has no pair; the code says 0"
    found = vistorybench.csd_cross(frames, [pictures, pictures[:1], np.zeros((0, 4))])
    slow = [np.mean([_cosine(frames[0], row) for row in pictures]), _cosine(frames[1], pictures[0])]
    assert found == pytest.approx(np.mean(slow), abs=1e-9)
    assert vistorybench.csd_cross(frames, [np.zeros((0, 4))] * 3) is None


def test_copy_paste_in_both_readings() -> None:
    draw = np.random.default_rng(11)
    seen, pictures = draw.normal(size=8), draw.normal(size=(3, 8))
    cosines = [_cosine(seen, row) for row in pictures]
    for anchor in range(3):
        slow = 1 / sum(math.exp((each - cosines[anchor]) / 0.01) for each in cosines)
        assert vistorybench.copy_paste(seen, pictures, anchor) == pytest.approx(slow, abs=1e-9)
    with pytest.raises(ValueError, match="two references"):
        vistorybench.copy_paste(seen, pictures[:1])
    assert vistorybench.copy_paste_mirrored(seen, pictures[0], pictures[0]) == 0.5
    assert vistorybench.copy_paste_mirrored(seen, seen, pictures[0]) == pytest.approx(1.0, abs=1e-6)


def test_inception_score_is_one_for_equal_rows_and_the_count_for_sure_different_ones() -> None:
    assert vistorybench.inception_score(np.full((5, 4), 0.25)) == pytest.approx(1.0)
    assert vistorybench.inception_score(np.eye(4)) == pytest.approx(4.0)
    rows = np.random.default_rng(1).dirichlet(np.ones(6), size=5)
    mean = rows.mean(axis=0)
    slow = math.exp(np.mean([sum(p * math.log(p / q) for p, q in zip(row, mean, strict=True)) for row in rows]))
    assert vistorybench.inception_score(rows) == pytest.approx(slow, abs=1e-9)
    assert vistorybench.inception_score(np.zeros((0, 6))) is None


# Narrative scene illustration

STORY = "Joe went to the junkyard. He dug through old clothes.  At the bottom was a shirt. It fit."


def test_fragments_are_lossless() -> None:
    reply = "[Joe went to the junkyard.] [He dug through old clothes. At the bottom was a shirt.] [It fit.]"
    found = read_fragments(STORY, reply)
    assert found[1] == "He dug through old clothes. At the bottom was a shirt."
    assert " ".join(found).split() == STORY.split()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Here: [Joe went to the junkyard.]", "outside"),
        ("", "no fragment"),
        ("[Joe went to the junkyard.]", "word 6"),
        ("[Joe walked to the junkyard. He dug through old clothes. At the bottom was a shirt. It fit.]", "word 2"),
        ("[Joe went to the junkyard.] [At the bottom was a shirt.] [It fit.]", "word 6"),
    ],
)
def test_fragments_that_lose_or_change_a_word_are_refused(reply: str, said: str) -> None:
    with pytest.raises(ReplyError, match=said):
        read_fragments(STORY, reply)


FIRST = "✓✓✓✓✓✗✓✓✓✓✓✓✓✓✓✓✓✓✓✓"
SECOND = "✗✓✗✓✓✓✗✓✓✗✓✓✓✓✗✗✓✓✓✓"


@pytest.mark.parametrize(("marks", "score"), [(FIRST, 19.0), (SECOND, 14.0), ("?" * 20, 10.0)])
def test_the_criterial_scores_of_table_5(marks: str, score: float) -> None:
    criteria = [f"The image shows thing {number}" for number in range(1, 21)]
    reply = "\n".join(f"{at}. {text} {mark}" for at, (text, mark) in enumerate(zip(criteria, marks, strict=True), 1))
    assert ill.criterial_score(ill.read_marks(reply, 20)) == score
    assert ill.choose(19.0, 14.0) == "first"


def test_a_rater_that_leaves_a_criterion_out_has_given_no_score() -> None:
    with pytest.raises(ReplyError, match="answered 1"):
        ill.read_marks("1. A ring ✓", 2)
    with pytest.raises(ReplyError, match="no mark"):
        ill.read_marks("1. A ring is seen\n2. It is blue ✓", 2)
    assert ill.read_marks("1) A ring ✔️\n2) Is it blue? X", 2) == ("satisfied", "not")


def test_criteria_are_read_by_their_numbers() -> None:
    assert ill.read_criteria("1. A ring\n2. It is on the floor, e.g. 3 tiles\n") == (
        "A ring",
        "It is on the floor, e.g. 3 tiles",
    )
    with pytest.raises(ReplyError, match="numbered"):
        ill.read_criteria("1. A ring\n3. A floor")


@pytest.mark.parametrize(
    ("reply", "rating"), [("4.5", 4.5), ("Rating: 3", 3.0), ("4.3", None), ("8", None), ("", None)]
)
def test_a_baseline_rating_is_in_half_points(reply: str, rating: float | None) -> None:
    assert ill.read_rating(reply, 7) == rating


def _kappa(one: list[str], other: list[str], weight: dict[frozenset[str], float]) -> float:
    """Weighted kappa from its definition: observed over expected disagreement, in two loops."""
    count, labels = len(one), sorted({*one, *other})
    seen = sum(weight.get(frozenset(pair), 0.0) for pair in zip(one, other, strict=True)) / count
    expected = sum(
        weight.get(frozenset((left, right)), 0.0) * one.count(left) * other.count(right) / count**2
        for left in labels
        for right in labels
        if left != right
    )
    return 1 - seen / expected


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(["first", "second", "undecided"])] * 2), min_size=2, max_size=30))
def test_kappa_halves_a_disagreement_by_doubt(pairs: list[tuple[str, str]]) -> None:
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    half = {frozenset(("first", "undecided")): 0.5, frozenset(("second", "undecided")): 0.5}
    found = ill.weighted_kappa(one, other)  # type: ignore[arg-type]
    if len({*one, *other}) < 2:
        assert found is None
    else:
        assert found == pytest.approx(_kappa(one, other, {**half, frozenset(("first", "second")): 1.0}), abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "against", "responses", "significant"),
    [
        (46.1, 41.2, 532, False),
        (49.6, 39.7, 536, True),
        (47.8, 42.9, 552, False),
        (53.5, 35.4, 144, True),
        (61.6, 31.8, 198, True),
        (46.9, 40.1, 162, False),
        (58.5, 30.3, 188, True),
        (43.2, 39.9, 148, False),
        (61.6, 28.8, 146, True),
        (50.6, 37.8, 172, False),
    ],
)
def test_win_rates_are_significant_where_tables_4_and_11_have_an_asterisk(
    rate: float, against: float, responses: int, significant: bool
) -> None:
    wins, losses = round(rate * responses / 100), round(against * responses / 100)
    found = ill.win_rate(wins, responses - wins - losses, responses)
    assert found.rate == pytest.approx(rate / 100, abs=0.0006)
    assert (found.p < 0.05) == significant
    assert found.chance == pytest.approx((wins + losses) / responses / 2)


def test_accuracy_counts_pairs_on_which_people_agree() -> None:
    choices: list[ill.Choice | None] = ["first", "second", "undecided", None, "first", "first"]
    people: list[tuple[ill.Choice, ill.Choice]] = [
        ("first", "first"),
        ("first", "first"),
        ("second", "second"),
        ("first", "first"),
        ("first", "second"),
        ("undecided", "undecided"),
    ]
    assert ill.accuracy(choices, people) == ill.Accuracy(accuracy=1 / 3, pairs=3, undecided=1, unscored=1)
    assert ill.choose(None, 2.0) is None
    with pytest.raises(ValueError, match="cannot be"):
        ill.win_rate(5, 6, 10)
