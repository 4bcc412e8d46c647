"""How often evidence gain is found where there is none: 1,000 simulated judges that see nothing, by number of stories.

They are right as often with the pictures, with blank frames and with nothing in front of them. A false finding is a
95% interval of the gain (percentiles, stories resampled) that lies above zero: two-sided, 2.5% are expected, and 5%
allowed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from simulated_guesses import gains

from benchmarks.people import share

_JUDGES, _AT_ONCE = 1_000, 50
_STORIES, _RATES = (12, 24, 48), (0.02, 0.3, 0.85)


def measure() -> dict[str, Any]:
    """Return the per cent of judges with a false gain in the scores and under blank frames, by stories and guess
    rate."""
    found: dict[str, Any] = {"judges": _JUDGES}
    for stories in _STORIES:
        for rate in _RATES:
            drawn = [
                (image[0] > 0, blank[0] > 0, passes is False)
                for seed in range(_JUDGES // _AT_ONCE)
                for image, blank, passes in gains(stories, _AT_ONCE, rate, seed)
            ]
            scored, blanked, refused = zip(*drawn, strict=True)
            found[f"{stories}_stories_{rate:g}_guessed"] = {
                "gain": share(scored),
                "blank_gain": share(blanked),
                "refused": share(refused),
            }
    return found
