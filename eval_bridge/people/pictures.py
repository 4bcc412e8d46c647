"""People's choices between two pictures of one scene: win rates and agreement (scene illustration, Sec. 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from katha.eval_bridge.metrics.illustration import Choice, weighted_kappa, win_rate
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.scoring.intervals import share_interval
from katha.schema.people import PictureChoices

_CHOICES: Mapping[int, Choice] = {1: "first", 0: "undecided", -1: "second"}


def picture_choices(pair: tuple[str, str], rows: Sequence[Judgment]) -> PictureChoices:
    """Return how often the pictures of the first of two methods were chosen over those of the second.

    Each row has rater, story_id, scene, and picture: 1 for the first method's, -1 for the other's, 0 for neither.
    """
    given: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for row in rows:
        given[row["story_id"], row["scene"]][row["rater"]] = row["picture"]
    values = [row["picture"] for row in rows]
    both = [
        (_CHOICES[told[one]], _CHOICES[told[other]])
        for told in given.values()
        for one, other in combinations(sorted(told), 2)
    ]
    won = win_rate(values.count(1), values.count(0), len(values))
    hits = [float(value == 1) for value in values]
    return PictureChoices(
        a=pair[0],
        b=pair[1],
        pairs=len(given),
        responses=len(values),
        chosen_a=values.count(1),
        chosen_b=values.count(-1),
        undecided=values.count(0),
        rate=100.0 * won.rate,
        chance=100.0 * won.chance,
        p=won.p,
        ci95=share_interval([row["story_id"] for row in rows], hits),
        kappa=weighted_kappa([one for one, _ in both], [other for _, other in both]),
        n_kappa=len(both),
    )
