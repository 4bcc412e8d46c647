"""Intervals over stories: Student's t, their edges, and how often they miss in made studies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.intervals import KINDS, What, coverage, ranked
from katha.eval_bridge.scoring import intervals
from katha.eval_bridge.scoring.intervals import t_quantile


@pytest.mark.parametrize("freedom", [1.0, 1.7, 2.0, 5.0, 6.5, 11.0, 23.0, 399.0, 4_999.0])
def test_the_quantile_is_students(freedom: float) -> None:
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_fewer_than_six_stories_have_no_interval() -> None:
    left = np.array([0.5, 0.4, 0.6, 0.5, 0.55])
    assert intervals.share(0.5, left) is None
    assert intervals.gap(0.9, 0.5, left, left) is None
    assert intervals.difference(0.1, left) is None
    assert intervals.mean(0.1, left) is None
    assert intervals.share_interval(list("aabbccddee"), [1, 0] * 5) is None
    assert intervals.share_interval(list("aabbccddeeff"), [1, 0] * 6) is not None


def test_where_no_story_differs_the_interval_is_what_so_many_alike_can_show() -> None:
    seven, bound = np.ones(7), 0.025 ** (1 / 7)
    assert intervals.share(1.0, seven) == pytest.approx((100 * bound, 100.0))
    assert intervals.share(0.0, 0 * seven) == pytest.approx((0.0, 100 - 100 * bound))
    low, high = intervals.difference(0.0, 0 * seven) or (0.0, 0.0)
    assert (low, high) == pytest.approx((100 * bound - 100, 100 - 100 * bound))
    assert intervals.mean(0.3, 0.3 * seven) is None


def test_a_share_stays_inside_its_scale() -> None:
    left = np.array([0.99, 0.98, 0.99, 0.97, 0.99, 1.0])
    low, high = intervals.share(0.985, left) or (0.0, 0.0)
    assert 0 < low < 98.5 < high < 100


@pytest.mark.parametrize(
    ("kind", "what"),
    [("skewed", "gap"), ("few questions", "no difference"), ("zero-inflated", "no difference"), ("ties", "difference")],
)
def test_intervals_miss_at_most_six_per_cent(kind: str, what: What) -> None:
    for stories in (7, 12, 24):
        found = coverage(KINDS[kind], what, stories, 300, beside=False)["jackknife-t"]
        # 300 experiments: of a true 5%, 8% is seen once in a hundred times.
        assert found["misses_percent"] <= 8.0, (kind, what, stories, found)


def test_percentiles_of_the_bootstrap_miss_more() -> None:
    found = coverage(KINDS["skewed"], "gap", 7, 200)
    assert found["percentile"]["misses_percent"] > 2 * found["jackknife-t"]["misses_percent"]


def test_intervals_of_rank_correlations_miss_at_most_six_per_cent() -> None:
    found = ranked(24, 0.0, 200)
    assert found["jackknife-t"] <= 8.0  # of a true 5%, 8% is seen once in fifty
    assert found["jackknife-t"] <= found["percentile"]
