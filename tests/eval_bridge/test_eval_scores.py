"""Scores against an independent slow scorer that follows the paper's equations with plain loops."""

from __future__ import annotations

import operator
import random
from collections import defaultdict
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from katha.errors import RecordError, UsageError
from katha.eval_bridge.scoring.outcomes import recoverability
from katha.eval_bridge.scoring.scores import Compared, score
from katha.eval_bridge.scoring.statistics import replicates, resample_counts, wilcoxon
from katha.schema import CONDITIONS, DIMENSIONS, LATENT_DIMENSIONS, Answer, Question, StoryRecord
from katha.schema.scores import BlockIntervals, BlockName, MoralTarget, Scores

LABELS = ("kindness", "wisdom", "courage")


def make_records(stories: int, seed: int) -> list[StoryRecord]:
    generator = random.Random(seed)
    records = []
    for story in range(stories):
        questions = []
        for number in range(generator.randint(1, 7)):
            dimension = generator.choice(DIMENSIONS)
            gold = generator.choice(LABELS) if dimension == "moral" else "the mouse bites the net"
            questions.append(
                Question(
                    question_id=f"q{number}",
                    story_id=f"s{story}",
                    question_type=dimension,
                    question="What happens?",
                    gold_answer=gold,
                    accepted_answers=[gold],
                    role="reporting" if generator.random() < 0.8 else "steering",
                )
            )
        records.append(StoryRecord(story_id=f"s{story}", story_text="x", recoverability_questions=questions))
    return records


def make_answers(records: list[StoryRecord], judges: int, methods: int, seed: int) -> list[Answer]:
    generator = random.Random(seed)
    rows = []
    for record in records:
        for question in record.recoverability_questions:
            for judge in range(judges):
                for method in range(methods):
                    for condition in CONDITIONS:
                        shared = condition == "text" and generator.random() < 0.2
                        right = generator.random() < {"text": 0.9, "image": 0.5, "text+image": 0.95}[condition]
                        rows.append(
                            Answer(
                                method=None if shared else f"m{method}",
                                judge=f"j{judge}",
                                story_id=record.story_id,
                                question_id=question.question_id,
                                condition=condition,
                                status="ok" if generator.random() < 0.9 else "refused",
                                answer=question.gold_answer if right else "Unclear",
                                evidence_status=generator.choice([None, "recoverable", "omitted"]),
                                image_support=generator.choice([None, "omitted", "ambiguous"]),
                            )
                        )
    return rows


def slow_right(row: Answer, question: Question) -> bool | None:
    """Eqs. 50 and 51 with the evidence rules; None for a failure."""
    if row.status != "ok":
        return None
    if row.answer not in question.accepted_answers:
        return False
    if row.condition == "text+image":
        return row.image_support not in ("contradicted", "ambiguous")
    return row.evidence_status not in ("unclear", "omitted", "contradicted")


def slow_outcomes(records, answers, selection):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """{(method, judge): {(story, question): {condition: bool}}} and the selected questions."""
    questions = {
        (record.story_id, item.question_id): item
        for record in records
        for item in record.recoverability_questions
        if item.role == selection
    }
    latest = {(row.method, row.judge, row.story_id, row.question_id, row.condition): row for row in answers}
    rows = {key: row for key, row in latest.items() if (key[2], key[3]) in questions}
    methods = sorted({key[0] for key in rows if key[0] is not None})
    judges = sorted({key[1] for key in rows})
    table = defaultdict(dict)
    for method in methods:
        for name, question in questions.items():
            votes = defaultdict(list)
            for judge in judges:
                cell = {}
                for condition in CONDITIONS:
                    row = rows.get((method, judge, *name, condition))
                    if row is None and condition == "text":
                        row = rows.get((None, judge, *name, condition))
                    right = slow_right(row, question) if row is not None else None
                    if right is not None:
                        cell[condition] = right
                        votes[condition].append(right)
                table[method, judge][name] = cell
            if len(judges) > 1:
                table[method, "ensemble"][name] = {
                    condition: sum(cast) > len(cast) / 2
                    for condition, cast in votes.items()
                    if cast and len(cast) >= len(judges) / 2
                }
    return questions, table, methods


def slow_block(questions, cells, kept):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """Eqs. 17, 18, 21 and 22 in percentage points."""
    dimensions, sums = {}, defaultdict(list)
    for dimension in DIMENSIONS:
        own = [name for name in kept if questions[name].question_type == dimension]
        entry = {"n": len(own), "text": None, "image": None, "gap": None}
        if own:
            rates = {c: 100 * sum(cells[name][c] for name in own) / len(own) for c in CONDITIONS}
            entry |= {"text": rates["text"], "image": rates["image"], "gap": rates["text"] - rates["image"]}
            for condition in CONDITIONS:
                sums[condition].append(rates[condition])
        dimensions[dimension] = entry
    means = {c: sum(sums[c]) / len(sums[c]) if sums[c] else None for c in CONDITIONS}
    gaps = [dimensions[k]["gap"] for k in LATENT_DIMENSIONS if dimensions[k]["n"]]
    return {
        "n": len(kept),
        "text": means["text"],
        "image": means["image"],
        "text_image": means["text+image"],
        "stg": means["text"] - means["image"] if kept else None,
        "dimensions": dimensions,
        "latent_gap": sum(gaps) / len(gaps) if gaps else None,
        "by_story": slow_by_story(cells, kept, questions),
        "thin": [dimension for dimension in DIMENSIONS if 1 <= dimensions[dimension]["n"] <= 2],
        "inspect": bool(kept) and means["text"] - means["image"] < -1e-9,
    }


def slow_by_story(cells, kept, questions):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """The mean over stories of the mean over a story's dimensions."""
    stories = []
    for story in sorted({name[0] for name in kept}):
        per = defaultdict(list)
        for name in kept:
            if name[0] == story:
                per[questions[name].question_type].append(cells[name])
        stories.append(
            {c: sum(sum(x[c] for x in own) / len(own) for own in per.values()) / len(per) for c in CONDITIONS}
        )
    text, image = (100 * sum(s[c] for s in stories) / len(stories) if stories else None for c in ("text", "image"))
    return {"n_stories": len(stories), "text": text, "image": image, "stg": text - image if stories else None}


def same(left: object, right: object, where: str = "") -> None:
    if isinstance(left, dict) and isinstance(right, dict):
        assert left.keys() == right.keys(), where
        for key in left:
            same(left[key], right[key], f"{where}/{key}")
    elif isinstance(left, float) or isinstance(right, float):
        assert left == pytest.approx(right, abs=1e-9), where
    else:
        assert left == right, where


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3))
def test_scores_equal_the_slow_scorer(seed: int, stories: int, judges: int, methods: int) -> None:
    records = make_records(stories, seed)
    answers = make_answers(records, judges, methods, seed + 1)
    scores = score(records, answers, matching="exact-set", resamples=20)
    questions, table, names = slow_outcomes(records, answers, "reporting")
    assert sorted(scores.methods) == names
    valid = {}
    for key, cells in table.items():
        scored = [name for name in questions if len(cells[name]) == len(CONDITIONS)]
        valid[key] = {name for name in scored if cells[name]["text+image"]}
    for (method, judge), cells in table.items():
        entry = scores.methods[method].judges[judge]
        scored = [name for name in questions if len(cells[name]) == len(CONDITIONS)]
        own = [name for name in scored if name in valid[method, judge]]
        common = [name for name in own if all(name in valid[other, judge] for other in names)]
        assert entry.n_questions == len(questions)
        assert entry.n_unscored == len(questions) - len(scored)
        assert entry.n_valid == len(own)
        same(entry.ambiguity_rate, 100 * (len(scored) - len(own)) / len(scored) if scored else None)
        blocks: list[tuple[BlockName, list[tuple[str, str]]]] = [
            ("raw", scored),
            ("filtered", own),
            ("common_valid", common),
        ]
        for block, kept in blocks:
            held, asked = (len({story for story, _ in names}) for names in (kept, questions))
            if entry.unmeasured is not None or 0 < held < 6 <= asked:
                assert entry.block(block).stg is None
                continue
            got = entry.block(block).model_dump(mode="json", exclude={"ci95"})
            same(got, slow_block(questions, cells, kept), f"{method}/{judge}/{block}")


def test_order_of_stories_judges_and_rows_changes_nothing() -> None:
    records, generator = make_records(6, 3), random.Random(0)
    answers = [row for row in make_answers(records, 3, 2, 4) if row.method is not None]
    wanted = score(records, answers, matching="exact-set", resamples=50)
    for _ in range(3):
        mixed = random.Random(generator.random()).sample(answers, len(answers))
        assert score(records[::-1], mixed, matching="exact-set", resamples=50) == wanted


def test_chunks_draw_what_one_matrix_would() -> None:
    drawn = np.random.default_rng(42).integers(0, 1999, (2100, 1999))
    parts = list(resample_counts(1999, 2100, 42))
    assert len(parts) > 1
    rows = np.concatenate(parts)
    for at in (0, 1000, 1001, 2099):
        assert (rows[at] == np.bincount(drawn[at], minlength=1999)).all()


def test_one_story_has_no_interval_and_says_so() -> None:
    records = make_records(1, 1)
    scores = score(records, make_answers(records, 1, 2, 2), matching="exact-set")
    block = scores.methods["m0"].judges["j0"].raw
    assert block.ci95 == BlockIntervals(text=None, image=None, stg=None)
    assert any("two stories" in note for note in scores.notes)
    assert scores.comparisons[0].ci95 is None


def test_a_tie_is_wrong_and_half_the_judges_must_vote() -> None:
    question = Question(question_id="q", story_id="s", question_type="causal", question="?", gold_answer="yes")
    record = StoryRecord(story_id="s", story_text="x", recoverability_questions=[question])

    def outcome(*votes: str | None) -> object:
        rows = [
            Answer(
                method="m",
                judge=f"j{at}",
                story_id="s",
                question_id="q",
                condition=condition,
                status="ok" if vote else "transport_failed",
                answer=vote,
            )
            for at, vote in enumerate(votes)
            for condition in CONDITIONS
        ]
        return score([record], rows, matching="exact-set").methods["m"].judges["ensemble"].raw.image

    assert outcome("yes", "no") == 0.0
    assert outcome("yes", "yes", "no") == 100.0
    assert outcome("yes", None) == 100.0
    assert outcome("yes", None, None) is None


def test_moral_target_has_its_baselines() -> None:
    records, rows = [], []
    for at, label in enumerate(("kindness", "kindness", "wisdom", "courage")):
        question = Question(question_id="q", question_type="moral", question="?", gold_answer=label)
        records.append(StoryRecord(story_id=f"s{at}", story_text="x", recoverability_questions=[question]))
        for condition in CONDITIONS:
            said = "Kindness." if condition == "image" else label
            rows.append(
                Answer(
                    method="m",
                    judge="j",
                    story_id=f"s{at}",
                    question_id="q",
                    condition=condition,
                    status="ok",
                    answer=said,
                )
            )
    target = score(records, rows, matching="exact-set", resamples=10).methods["m"].judges["j"].moral_target
    assert target == MoralTarget(text=100.0, image=50.0, gap=50.0, chance=100 / 12, majority=50.0)


def test_recoverability_averages_dimensions_not_questions() -> None:
    questions = [
        Question(
            question_id=f"q{at}", question_type="causal" if at < 3 else "emotional", question="?", gold_answer="yes"
        )
        for at in range(4)
    ]
    rows = [
        Answer(method="x", judge="j", story_id="s", question_id=f"q{at}", condition="image", status="ok", answer=said)
        for at, said in enumerate(("yes", "no", "no", "yes"))
    ]
    found = recoverability(rows, questions, "exact-set")
    assert found.mean == pytest.approx((1 / 3 + 1) / 2)
    assert recoverability([], questions, "exact-set").mean is None


def test_given_twice_is_refused() -> None:
    record = make_records(1, 0)[0]
    with pytest.raises(RecordError, match="twice"):
        score([record, record], [], matching="exact-set")
    with pytest.raises(UsageError, match="matching rule"):
        score([record], [], matching="fuzzy")


def test_replicates_leave_out_missing_dimensions() -> None:
    counts = np.zeros((1, 2, len(DIMENSIONS), 4))
    counts[0, 0, 0] = (2, 2, 1, 2)
    counts[0, 1, 1] = (1, 0, 0, 1)
    drawn = replicates(counts, 50, 42)[:, 0, 0]
    assert set(np.unique(drawn)) <= {0.0, 0.5, 1.0}


def by_brute_force(differences: list[float]) -> float:
    """The two-sided p of the sum of positive ranks over every way to flip the signs."""
    ranks = stats.rankdata(np.abs(differences))
    seen = float(ranks[np.array(differences) > 0].sum())
    sums = [float(sum(ranks[np.array(signs)])) for signs in product((False, True), repeat=len(ranks))]
    low, high = (sum(test(value, seen) for value in sums) for test in (operator.le, operator.ge))
    return min(1.0, 2 * min(low, high) / len(sums))


@given(st.lists(st.integers(-4, 4).filter(bool), min_size=1, max_size=9), st.sampled_from((1.0, 1 / 3, 0.1)))
@settings(max_examples=60, deadline=None)
def test_signed_ranks_with_ties_are_counted_out(steps: list[int], step: float) -> None:
    differences = step * np.array(steps, dtype=float)
    found = wilcoxon(np.concatenate([differences, np.zeros(3)]))
    assert found.n_nonzero == len(steps)
    assert found.p == pytest.approx(by_brute_force([float(item) for item in steps]), abs=1e-12)
    ranks = stats.rankdata(np.abs(steps))
    assert found.rank_biserial == pytest.approx(float((np.sign(steps) * ranks).sum() / ranks.sum()))


@pytest.mark.parametrize("size", [2, 4, 23, 60, 200])
def test_signed_ranks_without_ties_are_scipy_s_exact_ones(size: int) -> None:
    differences = np.random.default_rng(size).normal(0.1, 1.0, size)
    assert wilcoxon(differences).p == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue, rel=1e-9)


def test_many_stories_get_the_normal_approximation_with_its_tie_correction() -> None:
    differences = np.round(np.random.default_rng(1).normal(0.1, 1.0, 300), 1)
    told = differences[differences != 0]
    assert wilcoxon(differences).p == pytest.approx(stats.wilcoxon(told, method="asymptotic").pvalue, rel=1e-9)


def test_four_stories_can_show_nothing_however_they_tie() -> None:
    assert wilcoxon(np.array([0.25, 0.25, 0.5, 0.5])).p == 0.125
    assert wilcoxon(np.zeros(4)).p is None


def two_methods(stories: int, *, valid: Callable[[str, int], bool], seen: Callable[[str, int, int], bool]) -> Scores:
    """Scores of methods a and b over stories of six questions, one a dimension; text is always right."""
    records, rows = [], []
    for story in range(stories):
        asked = [
            Question(question_id=name, question_type=name, question="?", gold_answer="yes", role="reporting")
            for name in DIMENSIONS
        ]
        records.append(StoryRecord(story_id=f"s{story}", story_text="x", recoverability_questions=asked))
        for at, name in enumerate(DIMENSIONS):
            for method in ("a", "b"):
                told = {"text": True, "image": seen(method, story, at), "text+image": valid(method, at)}
                rows += [
                    Answer(
                        method=method,
                        judge="j",
                        story_id=f"s{story}",
                        question_id=name,
                        condition=condition,
                        status="ok",
                        answer="yes" if told[condition] else "no",
                    )
                    for condition in CONDITIONS
                ]
    return score(records, rows, matching="exact-set", resamples=100)


def test_blocks_that_disagree_in_sign_are_named() -> None:
    # `a` loses its first question, and leaves out by itself the two that it loses besides.
    scores = two_methods(
        8,
        valid=lambda method, at: method == "b" or at < 4,
        seen=lambda method, _, at: (
            (method, at) != ("a", 0) and (method, at) not in (("b", 4), ("b", 5), ("a", 4), ("a", 5))
        ),
    )
    pair = next(row for row in scores.comparisons if row.headline)
    assert pair.block == "common_valid"
    assert pair.differences["filtered"] == pytest.approx(25.0 - 100 / 3)
    assert pair.differences["common_valid"] == pytest.approx(25.0)
    assert pair.disagree
    assert any("the blocks disagree in sign (raw +16.7, own valid -8.3, common valid +25.0)" in n for n in scores.notes)


def test_what_is_thin_or_below_zero_is_flagged() -> None:
    scores = two_methods(2, valid=lambda *_: True, seen=lambda method, *_: method == "a")
    block = scores.methods["a"].judges["j"].common_valid
    assert block.thin == list(DIMENSIONS)
    assert any("causal (2)" in note and "one or two questions" in note for note in scores.notes)
    rows = [
        Answer(method="m", judge="j", story_id="s", question_id="q", condition=condition, status="ok", answer=said)
        for condition, said in zip(CONDITIONS, ("no", "yes", "yes"), strict=True)
    ]
    rows += [row.model_copy(update={"question_id": "p", "answer": "yes"}) for row in rows]
    asked = [Question(question_id=name, question_type="causal", question="?", gold_answer="yes") for name in ("p", "q")]
    record = StoryRecord(story_id="s", story_text="x", recoverability_questions=asked)
    found = score([record], rows, matching="exact-set")
    assert found.methods["m"].judges["j"].filtered.inspect
    assert any("STG is -50.0. Below zero is no better board" in note for note in found.notes)


def test_stories_and_dimensions_are_averaged_apart() -> None:
    records, rows = [], []
    for story, number in (("one", 1), ("many", 3)):
        asked = [
            Question(question_id=f"q{at}", question_type="causal", question="?", gold_answer="yes")
            for at in range(number)
        ]
        records.append(StoryRecord(story_id=story, story_text="x", recoverability_questions=asked))
        for item in asked:
            for condition in CONDITIONS:
                said = "no" if condition == "image" and story == "many" else "yes"
                rows.append(
                    Answer(
                        method="m",
                        judge="j",
                        story_id=story,
                        question_id=item.question_id,
                        condition=condition,
                        status="ok",
                        answer=said,
                    )
                )
    block = score(records, rows, matching="exact-set").methods["m"].judges["j"].filtered
    assert block.stg == 75.0
    assert block.by_story is not None
    assert (block.by_story.n_stories, block.by_story.stg) == (2, 50.0)


def test_the_family_is_one_judge_on_one_block_and_a_reference_names_the_other_side() -> None:
    records = make_records(7, 3)
    answers = make_answers(records, 3, 3, 4)
    scores = score(records, answers, matching="exact-set", resamples=50)
    assert {row.family for row in scores.comparisons} == {3}
    assert [(row.a, row.b, row.judge) for row in scores.comparisons if row.headline] == [
        ("m0", "m1", "ensemble"),
        ("m0", "m2", "ensemble"),
        ("m1", "m2", "ensemble"),
    ]
    held = score(records, answers, matching="exact-set", resamples=50, reference="m1")
    assert {(row.a, row.b) for row in held.comparisons} == {("m0", "m1"), ("m2", "m1")}
    assert {row.family for row in held.comparisons} == {2}
    for row in held.comparisons:
        if row.p_bootstrap is not None:
            assert row.p_bootstrap_corrected == min(1.0, 2 * row.p_bootstrap)
    # A method without any board was declared all the same.
    lost = score(records, answers, matching="exact-set", resamples=50, invalid={"m9": {"s0": "no board"}})
    assert {row.family for row in lost.comparisons} == {6}
    with pytest.raises(UsageError, match="'m7' is not a method"):
        score(records, answers, matching="exact-set", reference="m7")


def test_with_a_primary_contrast_the_others_are_corrected_by_steps() -> None:
    records = make_records(12, 3)
    answers = make_answers(records, 3, 3, 4)
    pairs = (("m0", "m1"), ("m0", "m2"), ("m1", "m2"))
    asked = Compared(pairs, 2, steps=True, primary=("m0", "m2"))
    rows = score(records, answers, matching="exact-set", resamples=50, compared=asked).comparisons
    for key in {(row.judge, row.block) for row in rows}:
        own = {(row.a, row.b): row for row in rows if (row.judge, row.block) == key}
        alone, (one, two) = (
            own["m0", "m2"],
            sorted((own[pairs[0]], own[pairs[2]]), key=lambda row: row.p_bootstrap or 2),
        )
        assert (alone.family, alone.p_bootstrap_corrected, alone.p_corrected) == (
            1,
            alone.p_bootstrap,
            alone.wilcoxon.p,
        )
        assert one.family == two.family == 2
        if one.p_bootstrap is not None and two.p_bootstrap is not None:
            first = min(1.0, 2 * one.p_bootstrap)
            assert (one.p_bootstrap_corrected, two.p_bootstrap_corrected) == (first, max(first, two.p_bootstrap))


def test_chance_of_a_moral_label_is_that_of_what_was_offered() -> None:
    records, rows = [], []
    for at, options in enumerate((["kindness", "wisdom", "Unclear"], None)):
        asked = Question(question_id="q", question_type="moral", question="?", gold_answer="kindness", options=options)
        records.append(StoryRecord(story_id=f"s{at}", story_text="x", recoverability_questions=[asked]))
        rows += [
            Answer(
                method="m",
                judge="j",
                story_id=f"s{at}",
                question_id="q",
                condition=condition,
                status="ok",
                answer="kindness",
            )
            for condition in CONDITIONS
        ]
    target = score(records, rows, matching="exact-set").methods["m"].judges["j"].moral_target
    assert target.chance == pytest.approx((50 + 100 / 12) / 2)
