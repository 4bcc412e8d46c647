"""Experiments made without an effect conclude none, and those with a large one find it; where the weakest one is."""

from __future__ import annotations

from scipy import stats

from benchmarks.inference import conclusions, weakest_found

LEVEL, FEW = 0.05, 120


def test_without_an_effect_hardly_any_experiment_concludes_one() -> None:
    found = conclusions(FEW, stories=16, rows=3, resamples=300)
    allowed = stats.binom.ppf(0.999, FEW, LEVEL)
    assert found.less <= allowed
    assert found.any_at_all <= allowed


def test_a_large_effect_is_found() -> None:
    found = conclusions(20, stories=30, rows=2, effect=0.3, resamples=300)
    assert found.less >= 18


def test_what_was_asked_is_not_ranked_with_what_was_not() -> None:
    found = weakest_found(0.0, stories=1_500)
    assert found["unasked by one scale"] > 50.0  # two questions a story: mostly ranked by coverage alone
    assert found["asked"] > found["coverage"]  # a similarity that tells nothing is chance
