"""Calibration against people: the numbers by hand or by plain formulas, and files that are wrong."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import InputFileError, MissingExtraError, RecordError
from katha.eval_bridge.people import agreement as c
from katha.eval_bridge.people.analysis import calibrate
from katha.eval_bridge.people.preferences import Preference, preference_test

FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""The worked example of Fleiss (1971) as textbooks give it; kappa is 0.210."""


def csv(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_fleiss_kappa_of_the_textbook() -> None:
    labels = {str(at): [str(k) for k, n in enumerate(row) for _ in range(n)] for at, row in enumerate(FLEISS)}
    assert c.fleiss_kappa(labels) == pytest.approx(0.210, abs=0.0005)
    assert c.fleiss_kappa({"a": ["x", "x"], "b": ["x", "x"]}) is None
    assert c.fleiss_kappa({}) is None
    with pytest.raises(RecordError, match="some have 1, some 2"):
        c.fleiss_kappa({"a": ["x"], "b": ["x", "y"]})


def test_krippendorff_alpha_of_the_textbook() -> None:
    """Krippendorff's (2011) two-observer binary example: alpha is 0.095."""
    one = dict(zip("abcdefghij", "0100000000", strict=True))
    two = dict(zip("abcdefghij", "1110010010", strict=True))
    assert c.krippendorff_alpha({"1": one, "2": two}, "nominal") == pytest.approx(0.095, abs=0.0005)
    assert c.krippendorff_alpha({"1": {"a": 3}, "2": {"b": 4}}, "ordinal") is None
    assert c.krippendorff_alpha({"1": {"a": 3}, "2": {"a": 3}}, "ordinal") is None
    assert c.krippendorff_alpha({"1": {"a": 3, "b": 4}, "2": {"a": 3}}, "ordinal") is None  # 4 is said once only


def test_judge_against_people() -> None:
    assert c.agreement(["a", "b", "c", "d"], ["a", "b", "x", "d"]) == pytest.approx(0.75)
    assert c.rank_correlation([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(0.8)
    assert c.rank_correlation([1, 1, 1], [1, 2, 3]) is None
    assert c.pairwise_agreement([1, 2, 2], [5, 6, 7]) == pytest.approx(2 / 3)
    assert c.agreement([], []) is c.pairwise_agreement([1], [1]) is None


def test_calibration_error_is_equation_48() -> None:
    draw = random.Random(3)
    confidence = [draw.random() for _ in range(300)] + [0.0, 1.0]
    right = [draw.random() < 0.5 + 0.3 * value for value in confidence]
    wanted = 0.0
    for at in range(10):
        own = [k for k, value in enumerate(confidence) if min(int(value * 10), 9) == at]
        if own:
            gap = sum(right[k] for k in own) / len(own) - sum(confidence[k] for k in own) / len(own)
            wanted += len(own) / len(confidence) * abs(gap)
    assert c.calibration_error(confidence, right) == pytest.approx(wanted)
    assert c.calibration_error([], []) is None


def test_moral_labels_ratings_and_preference() -> None:
    rows = [("kindness", ["wisdom", "kindness", "honesty"]), ("wisdom", ["wisdom"]), ("courage", ["wisdom"] * 3)]
    found = c.moral_recoverability(rows)
    assert found.hmr1 == pytest.approx(100 / 3)
    assert found.hmr3 == pytest.approx(200 / 3)
    rated = c.rating([("r1", "s1", 3), ("r2", "s1", 4), ("r1", "s2", 5), ("r2", "s2", 5)])
    assert rated.mean == pytest.approx(4.25)
    assert rated.sd == pytest.approx(math.sqrt(11 / 12))
    assert rated.ci95 is None, "two stories"
    # Two people with means of 4 and 4.5: Student's t of one degree of freedom.
    assert rated.ci95_raters == pytest.approx((4.25 - 0.25 * 12.7062047362, 4.25 + 0.25 * 12.7062047362), abs=1e-8)
    values = [2, 1, 1, 0, -1, 2, 1, 2]
    test = preference_test([Preference(f"r{at % 4}", f"s{at // 4}", value) for at, value in enumerate(values)], 5)
    assert test.rank_biserial == pytest.approx(23 / 28)
    assert test.p is not None
    assert 0 < test.p < 0.05 < (test.p_corrected or 0) == pytest.approx(min(1, 5 * test.p))
    assert test.mean == pytest.approx(1.0)
    assert preference_test([Preference("r", "s", 0)]).p is None


def test_scores_are_also_compared_within_each_rater(tmp_path: Path) -> None:
    """Two raters on scales of their own, and one who says the same of everything; SciPy's z-scores and Spearman."""
    judge, own = [0.1, 0.5, 0.2, 0.9, 0.7], {"a": [1, 3, 2, 5, 4], "b": [90, 91, 95, 99, 92], "c": [3, 3, 3, 3, 3]}
    rows = [f"{who},s{at},{judge[at]},{value}" for who, told in own.items() for at, value in enumerate(told)]
    found = calibrate(csv(tmp_path / "p.csv", "rater,story_id,judge_score,human_score", *rows))
    plain, within = found.judge_scores, found.judge_scores_within_raters
    assert plain is not None
    assert within is not None
    means = np.mean([stats.zscore(own["a"]), stats.zscore(own["b"])], axis=0)
    assert within.spearman == pytest.approx(stats.spearmanr(judge, means).statistic)
    assert within.pearson == pytest.approx(stats.pearsonr(judge, means).statistic)
    assert within.kendall == pytest.approx(stats.kendalltau(judge, means).statistic)
    assert within.n == 5
    assert plain.n == 15
    assert plain.spearman != pytest.approx(within.spearman)
    assert any(note.startswith("c: one score for everything") for note in found.notes)


HEADER = "rater,story_id,question_id,question_type,condition,right"


def test_human_stg_averages_raters_questions_and_dimensions(tmp_path: Path) -> None:
    given = {
        ("s1", "q1", "causal"): {"text": "111", "image": "100", "text+image": "111"},
        ("s1", "q2", "causal"): {"text": "111", "image": "111", "text+image": "110"},
        ("s2", "q1", "moral"): {"text": "110", "image": "000", "text+image": "111"},
        ("s2", "q2", "moral"): {"text": "111", "image": "111", "text+image": "100"},
        ("s2", "q3", "moral"): {"text": "111", "image": "111"},
    }
    rows = [
        f"r{at},{','.join(key)},{condition},{mark}"
        for key, cells in given.items()
        for condition, marks in cells.items()
        for at, mark in enumerate(marks)
    ]
    found = calibrate(csv(tmp_path / "people.csv", HEADER, *rows))
    human = found.recoverability
    assert human is not None
    text, image = (1 + 2 / 3) / 2, (2 / 3 + 0) / 2
    assert (human.n_questions, human.n_valid) == (5, 3)
    assert human.ambiguity_rate == pytest.approx(25.0)
    assert human.text == pytest.approx(100 * text)
    assert human.stg == pytest.approx(100 * (text - image))
    assert human.gaps["moral"] == pytest.approx(100 * 2 / 3)
    assert human.gaps["emotional"] is None
    assert human.ci95.stg is None, "two stories"
    assert human.ci95_raters.stg is not None
    assert human.ci95_raters.stg[0] <= (human.stg or 0) <= human.ci95_raters.stg[1]
    assert "lack a condition" in found.notes[0]
    assert human.none is None
    # The same people, asked without evidence about all but one of the valid questions.
    guesses = {("s1", "q1", "causal"): "100", ("s2", "q1", "moral"): "110", ("s2", "q2", "moral"): "111"}
    blind = [f"r{at},{','.join(key)},none,{mark}" for key, marks in guesses.items() for at, mark in enumerate(marks)]
    both = calibrate(csv(tmp_path / "more.csv", HEADER, *rows, *blind))
    gained = both.recoverability
    assert gained is not None
    assert gained.none == pytest.approx(100 * (1 / 3 + 2 / 3) / 2)
    assert gained.none_by_story == {"s1": pytest.approx(100 / 3), "s2": pytest.approx(200 / 3)}
    assert gained.gain_image == pytest.approx(100 * (1 / 3 + 0) / 2 - 50)
    assert gained.gain_text == pytest.approx(100 * (1 + 2 / 3) / 2 - 50)
    assert gained.ci95_raters.gain_image is not None
    assert gained.ci95_raters.gain_image[0] <= gained.gain_image <= gained.ci95_raters.gain_image[1]
    assert any(note.startswith("1 valid questions were asked of nobody without") for note in both.notes)
    new = ("none", "gain_image", "gain_text", "none_by_story")
    plain = gained.model_dump(exclude={*new, *(f"ci95{kind}" for kind in ("", "_raters", "_both"))})
    assert plain == human.model_dump(exclude={"ci95", "ci95_raters", "ci95_both"})
    assert gained.ci95.model_dump(exclude=set(new)) == human.ci95.model_dump()


def test_every_section_from_one_json_lines_file(tmp_path: Path) -> None:
    rows = [
        {"judge": "a", "human": "a", "confidence": "high"},
        {"judge": "b", "human": "a", "confidence": 0.4},
        {"judge_score": 0.2, "human_score": 0.1},
        {"judge_score": 0.9, "human_score": 0.5},
        *[
            {"rater": r, "story_id": s, "label": "wisdom" if r + s != "r1b" else "x"}
            for r in ("r1", "r2")
            for s in "ab"
        ],
        *[{"rater": r, "story_id": s, "ncs": 3 + (s == "b"), "mas": 2} for r in ("r1", "r2") for s in "ab"],
        {"target": "wisdom", "top1": "Self control", "top2": "wisdom", "top3": "courage"},
        {"rater": "r1", "story_id": "a", "preference": 2, "criterion": "causal"},
    ]
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["bench", "calibrate", str(path), "--json"])
    found = json.loads(result.stdout)
    assert found["judge_labels"]["agreement"] == pytest.approx(50.0)
    assert found["judge_labels"]["ece"] == pytest.approx((1 / 6 + 0.4) / 2)
    assert found["judge_scores"]["spearman"] == pytest.approx(1.0)
    assert found["labels"]["fleiss_kappa"] == pytest.approx(-1 / 3)
    assert found["ncs"]["krippendorff_alpha"] == pytest.approx(1.0)
    assert found["mas"]["krippendorff_alpha"] is None
    assert (found["moral"]["hmr1"], found["moral"]["hmr3"]) == (0.0, 100.0)
    assert found["preference"]["causal"]["n_nonzero"] == 1
    shown = CliRunner().invoke(app, ["bench", "calibrate", str(path)]).stdout
    assert "fleiss_kappa" in shown


@pytest.mark.parametrize(
    ("header", "row", "error", "message"),
    [
        ("rater,story_id,ncs", "r,s,6", RecordError, "line 2, column 'ncs'.*from 1 to 5"),
        ("rater,story_id,ncs", "r,s,nan", RecordError, "line 2, column 'ncs'"),
        ("rater,story_id,ncs", "r,s,inf", RecordError, "line 2, column 'ncs'"),
        ("rater,story_id,ncs", "r,s", RecordError, "line 2: the row has not as many cells"),
        ("judge_score,human_score", "nan,1", RecordError, "column 'judge_score'"),
        ("judge,human,confidence", "a,a,maybe", RecordError, "column 'confidence'"),
        ("target,top1", "zeal,wisdom", RecordError, "column 'target'"),
        (HEADER, "r,s,q,causal,picture,1", RecordError, "column 'condition'"),
        (HEADER, "r,s,q,causal,image,perhaps", RecordError, "column 'right'"),
        ("colour,size", "red,1", InputFileError, "no column that is understood"),
        ("rater,story_id", "r,s", RecordError, "no row has all columns"),
    ],
)
def test_bad_cells_are_named(tmp_path: Path, header: str, row: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        calibrate(csv(tmp_path / "people.csv", header, row))


def test_twins_and_broken_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="line 3: repeats line 2"):
        calibrate(csv(tmp_path / "people.csv", "rater,story_id,ncs", "r,s,3", "r,s,4"))
    (tmp_path / "people.jsonl").write_text('{"judge": "a"\n')
    with pytest.raises(InputFileError, match="line 1 is not JSON"):
        calibrate(tmp_path / "people.jsonl")
    with pytest.raises(InputFileError, match="Cannot read"):
        calibrate(tmp_path / "nothing.csv")


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[stats\]"):
        c.krippendorff_alpha({"1": {"a": 1, "b": 2}, "2": {"a": 1, "b": 1}}, "ordinal")
