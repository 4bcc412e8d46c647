"""The measures of VCMS, ViStoryBench and scene illustration against a second implementation, to 1e-6."""

from __future__ import annotations

import numpy as np
import pytest
from independent_measures import (
    best_assignment,
    copy_rate,
    count_match,
    cross_similarity,
    inception,
    mean,
    self_similarity,
    uncertain_kappa,
    win_rate_p,
)

from katha.eval_bridge.metrics.illustration import criterial_score, weighted_kappa, win_rate
from katha.eval_bridge.metrics.vcms import binary_score, story_vcms
from katha.eval_bridge.metrics.vistorybench import (
    cids,
    copy_paste,
    inception_score,
    match_characters,
    occm,
    pair_mean,
    prompt_alignment,
)

SEEDS = range(8)


def rows(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_vistorybench_s_features(seed: int) -> None:
    crops = {name: rows(10 * seed + at, 2 + at, 6) for at, name in enumerate(("ann", "bob", "cat"))}
    references = {name: rows(100 + 10 * seed + at, 1 + at, 6) for at, name in enumerate(crops)}
    plain = [{name: table.tolist() for name, table in side.items()} for side in (crops, references)]
    found = cids(crops, references)
    assert found.cross == pytest.approx(cross_similarity(*plain), abs=1e-6)
    assert found.own == pytest.approx(mean([self_similarity(table) for table in plain[0].values()]), abs=1e-6)
    assert pair_mean(crops["cat"]) == pytest.approx(self_similarity(plain[0]["cat"]), abs=1e-6)
    drawn = rows(200 + seed, 6)
    near = drawn + 0.05 * rows(300 + seed, 4, 6)
    assert copy_paste(drawn, near) == pytest.approx(copy_rate(drawn.tolist(), near.tolist()), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_vistorybench_s_match_is_the_best_of_all(seed: int) -> None:
    similarity = {name: rows(seed, 4)[at] + rows(seed + at, 3 + seed % 3) for at, name in enumerate("abcd")}
    match = match_characters(similarity)
    total = sum(float(similarity[name][box]) for name, box in match.items())
    plain = {name: row.tolist() for name, row in similarity.items()}
    assert total == pytest.approx(best_assignment(plain), abs=1e-6)
    assert len(set(match.values())) == len(match)


@pytest.mark.parametrize(("detected", "expected"), [(1, 1), (2, 1), (0, 3), (9, 10), (12, 5)])
def test_occm(detected: int, expected: int) -> None:
    assert occm(detected, expected) == pytest.approx(count_match(detected, expected), abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_inception_score(seed: int) -> None:
    given = np.exp(rows(seed, 9, 5))
    given /= given.sum(axis=1, keepdims=True)
    assert inception_score(given) == pytest.approx(inception(given.tolist()), abs=1e-6)


def test_vcms_is_the_mean_of_its_four_questions() -> None:
    scores = {
        "behaviour": [0.2, 0.4, 0.9],
        "setting": [0.1, 0.5, 0.6],
        "character": [None, 0.3, 0.7],
        "style": [None, 0.8, 1.0],
    }
    found = story_vcms(scores)  # type: ignore[arg-type]
    assert found.overall == pytest.approx(mean([0.5, 0.4, 0.5, 0.9]), abs=1e-6)
    assert binary_score(0.7, 0.2) == pytest.approx(0.5, abs=1e-6)
    assert prompt_alignment({"scene": 3.1, "shot": 2.5, "interaction": 1.0, "action": 0.4}) == pytest.approx(
        mean([3.1, 2.5, 1.0, 0.4]), abs=1e-6
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_scene_illustration_s_statistics(seed: int) -> None:
    generator = np.random.default_rng(seed)
    one, other = (generator.choice(["first", "second", "undecided"], 40, p=(0.5, 0.3, 0.2)).tolist() for _ in range(2))
    assert weighted_kappa(one, other) == pytest.approx(uncertain_kappa(one, other), abs=1e-6)
    wins, ties = int(generator.integers(5, 30)), int(generator.integers(0, 10))
    assert win_rate(wins, ties, 40).p == pytest.approx(win_rate_p(wins, ties, 40), abs=1e-6)
    marks = generator.choice(["satisfied", "maybe", "not"], 20).tolist()
    assert criterial_score(marks) == pytest.approx(marks.count("satisfied") + 0.5 * marks.count("maybe"), abs=1e-6)
