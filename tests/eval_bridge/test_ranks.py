"""Ranks and the signed-rank test in its normal approximation are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import stats

from katha.eval_bridge.people.agreement import calibration_error, rank_correlation
from katha.eval_bridge.scoring.ranks import Floats, mean_ranks, normal_tail, signed_rank_z

FEW = st.integers(-4, 4).map(float)  # so that many tie


@given(arrays(np.float64, array_shapes(min_dims=1, max_dims=3, max_side=6), elements=FEW))
def test_ranks_share_their_mean(values: Floats) -> None:
    assert np.array_equal(mean_ranks(values), stats.rankdata(values, axis=-1))


def test_nothing_has_no_ranks() -> None:
    assert mean_ranks([]).shape == (0,)


@given(st.lists(FEW.filter(bool), min_size=2, max_size=60).filter(lambda values: len({abs(v) for v in values}) > 1))
def test_the_normal_approximation_is_scipy_s(values: list[float]) -> None:
    theirs = stats.wilcoxon(values, alternative="greater", zero_method="wilcox", method="asymptotic").pvalue
    assert normal_tail(signed_rank_z(np.array(values))) == pytest.approx(theirs, rel=1e-9)


def test_rank_correlation_is_spearman_s() -> None:
    generator = np.random.default_rng(5)
    first, second = generator.integers(0, 5, (2, 40)).tolist()
    assert rank_correlation(first, second) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)


def test_calibration_bins_are_scipy_s() -> None:
    generator = np.random.default_rng(7)
    said = [0.0, 0.1, 0.3, 1.0, *generator.random(200)]
    right = [bool(value) for value in generator.integers(0, 2, len(said))]
    values = [np.asarray(right, float), np.asarray(said)]
    means, _, _ = stats.binned_statistic(said, values, bins=10, range=(0.0, 1.0))
    counts, _, _ = stats.binned_statistic(said, values[0], statistic="count", bins=10, range=(0.0, 1.0))
    filled = counts > 0
    wanted = (counts * np.abs(means[0] - means[1]))[filled].sum() / counts.sum()
    assert calibration_error(said, right) == pytest.approx(wanted, abs=1e-12)
