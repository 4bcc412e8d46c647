"""Evidence gain where there is none: simulated judges that see nothing, and some that see what is not there."""

from __future__ import annotations

import pytest
from scipy import stats
from simulated_guesses import gains

JUDGES = 80


@pytest.mark.parametrize("stories", [12, 24])
def test_judges_that_see_nothing_seldom_gain(stories: int) -> None:
    """`benchmarks guesses` has 1,000 judges, more stories and other rates."""
    found = list(gains(stories, JUDGES, 0.3, 7, resamples=500))
    most = int(stats.binom.isf(0.001, JUDGES, 0.05))  # what 5% would exceed once in a thousand times
    assert sum(image[0] > 0 for image, _, _ in found) <= most
    assert sum(blank[0] > 0 for _, blank, _ in found) <= most
    below = sum(image[1] < 0 for image, _, _ in found)
    assert below <= most
    assert sum(passes is False for *_, passes in found) <= most


def test_judges_that_see_what_is_not_there_are_refused() -> None:
    found = list(gains(24, 20, 0.3, 7, seen=0.4, resamples=500))
    assert all(image[0] > 0 for image, _, _ in found)
    assert all(blank[0] > 0 and passes is False for _, blank, passes in found)
