"""The people's numbers: once more from the equations, exact where they can be, and honest about known studies."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import independent_people as independent
import numpy as np
import pytest
from scipy import stats
from simulated_people import Study, Truth, answers, preferences
from study_material import recorded

from katha.errors import RecordError
from katha.eval_bridge.people.analysis import Analysis, calibrate
from katha.eval_bridge.people.calibration import Archive
from katha.eval_bridge.people.preferences import criteria, preference_pair, signed_rank_p
from katha.eval_bridge.people.recoverability import RaterAnswers, compare, recoverability
from katha.schema import Answer, StoryRecord

NEAR = 1e-9
TABLE_51 = "Causality Causality Intention Intention Emotion Emotion Consequence Consequence Moral Moral Trajectory"


def made(seed: int, *, guesses: bool = False, **changes: Any) -> list[dict[str, Any]]:
    """Judgments of a study of two methods, with labels, ratings and groups."""
    draw, study = np.random.default_rng(seed), Study(raters=9, stories=7, questions=6, within=True, guesses=guesses)
    rows: list[dict[str, Any]] = [dict(row) for row in answers(draw, study, Truth(**changes)) if draw.random() < 0.7]
    for row in rows:
        row["label"] = "option 1" if row["right"] else f"option {draw.integers(2, 6)}"
    for r in range(study.raters):
        for s in range(study.stories):
            for method in study.methods:
                about = {"rater": f"r{r}", "story_id": f"s{s:02}", "method": method}
                rows.append({**about, "ncs": int(draw.integers(1, 6))})
                rows.append({**about, "criterion": "Q3", "rating": int(draw.integers(2, 5))})
    small = Study(raters=4, stories=4)
    rows += [dict(row) for row in preferences(draw, small, 0.3, Truth(), ("Q1", "Q15"))]
    for number, row in enumerate(rows, 1):
        row["line"] = number
    return rows


@pytest.mark.parametrize(("seed", "guesses"), [(1, False), (2, False), (3, False), (4, True)])
def test_everything_once_more_from_the_equations(seed: int, guesses: bool) -> None:
    rows = made(seed, guesses=guesses)
    found = Analysis("made").whole(rows)
    assert found.methods is not None
    for name, own in found.methods.items():
        told, kept = own.recoverability, independent.valid(rows, name)
        assert told is not None
        assert told.n_valid == len(kept)
        for condition, value in (("text", told.text), ("image", told.image), ("text+image", told.text_image)):
            assert value == pytest.approx(independent.recovered(rows, name, condition, kept), abs=NEAR)
        assert told.stg == pytest.approx(independent.stg(rows, name, kept), abs=NEAR)
        asked = [row for row in rows if "right" in row and row.get("method", name) == name]
        estimate, error, freedom = independent.crossed(asked, lambda some, n=name, k=kept: independent.stg(some, n, k))
        reach = float(stats.t.isf(0.025, freedom)) * error
        assert told.ci95_both.stg == pytest.approx((estimate - reach, estimate + reach), abs=1e-7)
        assert (told.none is not None) == guesses
        if guesses:
            assert told.gain_image == pytest.approx(independent.gain(rows, name, kept), abs=NEAR)
            crossed = independent.crossed(asked, lambda some, n=name, k=kept: independent.gain(some, n, k))
            reach = float(stats.t.isf(0.025, crossed[2])) * crossed[1]
            assert told.ci95_both.gain_image == pytest.approx((crossed[0] - reach, crossed[0] + reach), abs=1e-7)
        _agreement(own, asked, [row for row in rows if row.get("method") == name])
    _difference(found.comparisons, rows)
    _preferences(found.preferences, rows)


def _agreement(own: Any, asked: list[dict[str, Any]], about: list[dict[str, Any]]) -> None:
    labels: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in asked:
        labels[row["story_id"], row["question_id"], row["condition"]].append(row["label"])
    sizes = [len(given) for given in labels.values() if len(given) > 1]
    most = max(sizes, key=lambda size: (sizes.count(size), size))
    assert own.labels.fleiss_kappa == pytest.approx(
        independent.fleiss([given for given in labels.values() if len(given) == most]), abs=NEAR
    )
    units = [[float(label[-1]) for label in given] for given in labels.values()]
    assert own.labels.krippendorff_alpha == pytest.approx(independent.alpha(units, independent.nominal), abs=NEAR)
    rated: dict[str, list[float]] = defaultdict(list)
    for row in about:
        if "rating" in row:
            rated[row["story_id"]].append(row["rating"])
    (found,) = own.criteria.values()
    flat = list(itertools.chain(*rated.values()))
    assert found.mean == pytest.approx(independent.mean(flat), abs=NEAR)
    assert found.sd == pytest.approx(float(np.std(flat, ddof=1)), abs=NEAR)
    assert found.krippendorff_alpha == pytest.approx(
        independent.alpha(list(rated.values()), independent.ordinal), abs=NEAR
    )


def _difference(comparisons: Any, rows: list[dict[str, Any]]) -> None:
    (row,) = comparisons
    asked = [one for one in rows if "right" in one]
    kept = independent.valid(asked, "a") & independent.valid(asked, "b")

    def gap(some: list[dict[str, Any]]) -> float:
        return independent.stg(some, "a", kept) - independent.stg(some, "b", kept)

    estimate, error, freedom = independent.crossed(asked, gap)
    upper = independent.above(estimate, error, freedom)
    assert row.n_questions == len(kept)
    assert row.difference == pytest.approx(estimate, abs=NEAR)
    assert row.p_both == pytest.approx(2 * min(upper, 1 - upper), abs=1e-7)


def _preferences(pairs: Any, rows: list[dict[str, Any]]) -> None:
    (pair,) = pairs
    assert (pair.a, pair.b, list(pair.criteria)) == ("a", "b", ["Q1", "Q15"])
    for name, test in pair.criteria.items():
        own = [row for row in rows if row.get("criterion") == name and "preference" in row]
        values = [row["preference"] for row in own]
        plus, minus = independent.signed_ranks(values)
        assert test.mean == pytest.approx(independent.mean(values), abs=NEAR)
        assert test.rank_biserial == pytest.approx((plus - minus) / (plus + minus), abs=NEAR)
        assert test.p == pytest.approx(independent.wilcoxon_p(values), abs=NEAR)
        assert test.p_corrected == pytest.approx(min(1, 2 * independent.wilcoxon_p(values)), abs=NEAR)
        crossed = independent.crossed(own, lambda some: independent.mean([row["preference"] for row in some]))
        assert test.p_both == pytest.approx(independent.above(*crossed), abs=1e-7)
        units: dict[str, list[float]] = defaultdict(list)
        for row in own:
            units[row["story_id"]].append(row["preference"])
        assert test.krippendorff_alpha == pytest.approx(
            independent.alpha(list(units.values()), independent.ordinal), abs=NEAR
        )


def test_the_interval_over_participants_leaves_out_each_of_them() -> None:
    """Student's t of the jackknife, written out."""
    rows = preferences(np.random.default_rng(5), Study(raters=6, stories=5), 0.4, Truth(), ("Q1",))
    pair = preference_pair(("a", "b"), "pairs", rows)
    people = sorted({str(row["rater"]) for row in rows})
    given = [[int(row["preference"]) for row in rows if row["rater"] == name] for name in people]
    left = np.array([np.mean([v for at, own in enumerate(given) if at != out for v in own]) for out in range(6)])
    error, tails = np.sqrt(5 * left.var()), stats.moment(left, 4) / left.var() ** 2
    reach = stats.t.ppf(0.975, min(5, 12 / (tails - 3 / 5))) * error
    mean = np.mean([value for own in given for value in own])
    assert pair.criteria["Q1"].ci95_raters == pytest.approx((mean - reach, mean + reach), abs=1e-7)


def test_wilcoxon_is_exact_with_ties() -> None:
    draw = random.Random(7)
    for _ in range(20):
        values = [draw.choice([-2, -1, -1, 0, 1, 1, 2]) for _ in range(draw.randint(1, 11))]
        if any(values):
            assert signed_rank_p(values) == pytest.approx(independent.wilcoxon_p(values), abs=NEAR)
    distinct = [3.0, -1.0, 5.5, 2.0, 7.0, -4.0, 6.0]
    wanted = stats.wilcoxon(distinct, alternative="greater", method="exact").pvalue
    assert signed_rank_p(distinct) == pytest.approx(wanted, abs=NEAR)
    assert signed_rank_p([0, 0]) is None
    many = [draw.choice([-2, -1, 1, 2]) for _ in range(401)]
    near = signed_rank_p(many[:400])
    assert near == pytest.approx(
        stats.wilcoxon(many[:400], alternative="greater", method="asymptotic").pvalue, rel=0.05
    )
    assert signed_rank_p(many) == pytest.approx(near, rel=0.5)


def test_methods_and_comparisons_are_never_pooled(tmp_path: Path) -> None:
    head = "rater,story_id,question_id,question_type,condition,right,method,ncs"
    cells = [("text", "", 1), ("image", "A", 1), ("image", "B", 0), ("text+image", "A", 1), ("text+image", "B", 1)]
    lines = [f"r{r},s{s},q,causal,{z},{right},{m}," for r in "12" for s in "12" for z, m, right in cells]
    lines += [f"r{r},s{s},,,,,{m},{score}" for r in "12" for s in "12" for m, score in (("A", 5), ("B", 1))]
    path = tmp_path / "people.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    found = calibrate(path)
    assert found.recoverability is None
    assert found.ncs is None
    assert found.methods is not None
    assert {name: own.recoverability.image for name, own in found.methods.items() if own.recoverability} == {
        "A": 100.0,
        "B": 0.0,
    }
    assert {name: own.ncs.mean for name, own in found.methods.items() if own.ncs} == {"A": 5.0, "B": 1.0}
    assert {name: own.ncs.krippendorff_alpha for name, own in found.methods.items() if own.ncs} == {
        "A": None,
        "B": None,
    }
    (row,) = found.comparisons or ()
    assert (row.a, row.b, row.stg_a, row.stg_b, row.difference) == ("A", "B", 0.0, 100.0, -100.0)


def test_two_comparisons_of_one_story_fit_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    head = "rater,story_id,task,method,against,criterion,preference"
    lines = [
        f"r{r},s{s},{task},full,{b},Q15,{p}"
        for r in "12"
        for s in "12"
        for task, b, p in (("pairs", "base", 1), ("pairs", "other", -1), ("bridge", "full without its bridge", 2))
    ]
    path.write_text("\n".join([head, *lines]) + "\n")
    found = calibrate(path)
    means = {(pair.task, pair.b): pair.criteria["Q15"].mean for pair in found.preferences or ()}
    assert means == {("pairs", "base"): 1.0, ("pairs", "other"): -1.0, ("bridge", "full without its bridge"): 2.0}
    path.write_text("\n".join([head, *lines, lines[0]]) + "\n")
    with pytest.raises(RecordError, match="line 14: repeats line 2"):
        calibrate(path)
    path.write_text("\n".join([head, lines[0], "r1,s9,pairs,base,full,Q15,1"]) + "\n")
    with pytest.raises(RecordError, match=r"preferred against .*in one order"):
        calibrate(path)


def test_labels_of_two_questions_of_a_story_have_a_kappa(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = [f"r{r},s1,q{q},image,{'x' if q + r != 2 else 'y'}" for r in (0, 1) for q in (0, 1, 2)]
    path.write_text("\n".join(["rater,story_id,question_id,condition,label", *lines]) + "\n")
    found = calibrate(path)
    assert found.labels is not None
    assert (found.labels.n, found.labels.n_kappa) == (3, 3)
    wanted = independent.fleiss([["x", "x"], ["x", "y"], ["y", "x"]])
    assert found.labels.fleiss_kappa == pytest.approx(wanted, abs=NEAR)


def test_the_criteria_are_those_of_table_51() -> None:
    known = criteria()
    assert [item.name for item in known] == [f"Q{number}" for number in range(1, 16)]
    assert " ".join(item.dimension.split()[0] for item in known[:11]) == TABLE_51
    assert [item.name for item in known if "pairs" not in item.tasks] == ["Q14"]


# Judges beside people.


STATED = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}
Key = tuple[str, str, str]


def asked_alike(draw: random.Random) -> tuple[list[StoryRecord], list[dict[str, Any]], list[Answer]]:
    """Six stories, what three people and two judges answered."""
    options, kinds = ["gold", "tin", "iron", "Unclear"], ("causal", "moral", "emotional")
    common = {"question": "?", "gold_answer": "gold", "options": options}
    records = [
        StoryRecord.model_validate(
            {
                "story_id": f"s{story}",
                "story_text": "x",
                "questions": [
                    {"question_id": f"q{k}", "question_type": kind, **common} for k, kind in enumerate(kinds)
                ],
            }
        )
        for story in range(6)
    ]
    rows: list[dict[str, Any]] = []
    archive: list[Answer] = []
    under = (("text", None, 0.9), ("image", "m", 0.5), ("text+image", "m", 1.0), ("none", None, 0.4))
    for record, (k, kind), (condition, method, good) in itertools.product(records, enumerate(kinds), under):
        about = {"story_id": record.story_id, "question_id": f"q{k}", "condition": condition}

        def say(good: float = good) -> str:
            return "gold" if draw.random() < good else draw.choice(options[1:])

        for rater in range(3):
            row = {**about, "rater": f"r{rater}", "question_type": kind, "answer": say()}
            rows.append(row | {"right": row["answer"] == "gold"} | ({"method": method} if method else {}))
        for judge in ("j1", "j2"):
            told = {**about, "judge": judge, "method": method, "status": "ok", "answer": say()}
            archive.append(Answer.model_validate(told | {"confidence": draw.choice(list(STATED))}))
    return records, rows, archive


def test_judges_beside_people_once_more() -> None:
    records, rows, archive = asked_alike(random.Random(3))
    found = Archive(records, archive, recorded()).boards("m", rows)
    assert set(found) == {"j1", "j2", "ensemble"}
    given: dict[Key, list[str]] = defaultdict(list)
    for row in rows:
        given[row["story_id"], row["question_id"], row["condition"]].append(row["answer"])
    kept = independent.valid(rows, "m")
    for judge in ("j1", "j2"):
        own = {(row.story_id, row.question_id, row.condition): row for row in archive if row.judge == judge}
        guesses = {key: said for key, said in given.items() if key[2] == "none"}
        blind = [(own[key].answer == "gold") == (said.count("gold") > len(said) / 2) for key, said in guesses.items()]
        assert found[judge].verdicts["none"] == pytest.approx(100 * independent.mean(blind), abs=NEAR)
        assert found[judge].agreement["none"].n == sum(independent.most(said) is not None for said in guesses.values())
        images = {key: said for key, said in given.items() if key[2] == "image"}
        clear = {key: independent.most(said) for key, said in images.items() if independent.most(said) is not None}
        same = [own[key].answer == said for key, said in clear.items()]
        sure = [STATED[own[key].confidence or ""] for key in clear]
        told = found[judge].agreement["image"]
        assert told.n == len(same)
        assert told.agreement == pytest.approx(100 * independent.mean(same), abs=NEAR)
        assert told.ece == pytest.approx(independent.ece(sure, same), abs=NEAR)
        alike = [
            (own[key].answer == "gold") == (said.count("gold") > len(said) / 2) for key, said in images.items()
        ]  # three people: never a tie of verdicts
        assert found[judge].verdicts["image"] == pytest.approx(100 * independent.mean(alike), abs=NEAR)
        human, judged = [], []
        for story in (record.story_id for record in records):
            mine = {question for question in kept if question[0] == story}
            human.append(independent.recovered(rows, "m", "image", mine) or 0.0)
            judged.append(100 * independent.mean([own[s, q, "image"].answer == "gold" for s, q in sorted(mine)]))
        assert [one.human for one in found[judge].boards] == pytest.approx(human, abs=NEAR)
        assert [one.judge for one in found[judge].boards] == pytest.approx(judged, abs=1e-6)
        assert found[judge].image.spearman == pytest.approx(independent.spearman(judged, human), abs=1e-7)


# Simulations: what is known is recovered, and where there is nothing, nothing is concluded.


def test_a_large_study_recovers_what_was_put_in() -> None:
    truth = Truth(text=0.85, image=0.5, both=0.97, raters=0.0, stories=0.0, boards=0.0)
    people = RaterAnswers.of(answers(np.random.default_rng(11), Study(24, 30, 6, ("a",), within=True), truth))
    found, _ = recoverability(people, 0)
    for value, span, wanted in (
        (found.text, found.ci95_both.text, 85.0),
        (found.image, found.ci95_both.image, 50.0),
        (found.stg, found.ci95_both.stg, 35.0),
    ):
        assert value == pytest.approx(wanted, abs=3.0)
        assert span is not None
        assert span[0] <= wanted <= span[1]
    rows = preferences(np.random.default_rng(12), Study(24, 30), 0.6, Truth(), ("Q15",))
    test = preference_pair(("a", "b"), "pairs", rows).criteria["Q15"]
    assert test.ci95_both is not None
    assert test.ci95_both[0] <= 0.6 <= test.ci95_both[1]
    assert test.shown


def test_intervals_hold_and_nothing_is_concluded_of_nothing() -> None:
    """60 studies of nothing, with participants and stories that differ; `benchmarks people` makes 1,000."""
    study, covered, concluded, preferred = Study(8, 10, 4), 0, 0, 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        (row,) = compare(RaterAnswers.of(answers(draw, study, Truth())))
        concluded += row.reading != "no difference is shown"
        pair = preference_pair(("a", "b"), "pairs", preferences(draw, study, 0.0, Truth(), ("Q1", "Q12", "Q15")))
        preferred += any(test.shown for test in pair.criteria.values())
        span = pair.criteria["Q1"].ci95_both
        covered += span is not None and span[0] <= 0.0 <= span[1]
    most = int(stats.binom.isf(0.001, 60, 0.05))  # what 5% would exceed once in a thousand times
    assert concluded <= most
    assert preferred <= most
    assert covered >= 60 - most
