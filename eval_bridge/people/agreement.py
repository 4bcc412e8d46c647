"""Judges against people, and people against each other (Secs. D.5, D.6 and F; Tables 3, 54, 58)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from katha.errors import RecordError
from katha.eval_bridge.matching.match import Matching
from katha.eval_bridge.people.resampling import GivenNumbers
from katha.eval_bridge.scoring.intervals import share_interval
from katha.eval_bridge.scoring.outcomes import RIGHT, WRONG, Aggregate, Outcomes, collect
from katha.eval_bridge.scoring.ranks import mean_ranks
from katha.eval_bridge.scoring.statistics import averages, story_counts
from katha.models.checkpoints import need
from katha.schema import CONDITIONS, DIMENSIONS, Answer, StoryRecord
from katha.schema.people import HumanMoral, Rating
from katha.schema.scores import Alignment, JudgeAlignment, Localization, RankAgreement, Selection

# Every function takes plain sequences. What cannot be computed is None, never NaN. Rates here are in 0..1;
# `calibrate` gives HMR, agreement and human recoverability in percentage points, as the paper's Tables 37 to 39 do.

_WHAT = "Calibration against people"
Level = Literal["nominal", "ordinal", "interval"]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def agreement(judge: Sequence[str], human: Sequence[str]) -> float | None:
    """Eqs. 45 and 60: how often the judge's label is the human one (scikit-learn's accuracy)."""
    if not human:
        return None
    return float(need("sklearn.metrics", _WHAT).accuracy_score(list(human), list(judge)))


def rank_correlation(judge: Sequence[float], human: Sequence[float]) -> float | None:
    """Eqs. 46 and 61: Spearman's rank correlation; None for fewer than two items or a constant side."""
    if len(human) < 2 or len(set(human)) < 2 or len(set(judge)) < 2:
        return None
    return _finite(float(np.corrcoef(mean_ranks(judge), mean_ranks(human))[1, 0]))


def pairwise_agreement(judge: Sequence[float], human: Sequence[float]) -> float | None:
    """Eq. 47: the share of all pairs of items that both put in the same order; a tie agrees with a tie only."""
    if len(human) < 2:
        return None
    first, second = np.triu_indices(len(human), k=1)
    v, h = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    return float(np.mean(np.sign(v[first] - v[second]) == np.sign(h[first] - h[second])))


def rank_agreement(judge: Sequence[float], human: Sequence[float]) -> RankAgreement:
    """Return the rank correlation and pairwise agreement, with the correlations that VCMS prints beside them."""
    spearman, pearson = rank_correlation(judge, human), linear_correlation(judge, human)
    return RankAgreement(
        n=len(human),
        spearman=spearman,
        pairwise_agreement=pairwise_agreement(judge, human),
        pearson=pearson,
        kendall=kendall_tau(judge, human),
        spearman_z=fisher_z(spearman),
        pearson_z=fisher_z(pearson),
    )


def linear_correlation(judge: Sequence[float], human: Sequence[float]) -> float | None:
    """Pearson's correlation; None for fewer than two items or a constant side."""
    if len(human) < 2 or len(set(human)) < 2 or len(set(judge)) < 2:
        return None
    return _finite(float(np.corrcoef(np.asarray(judge, float), np.asarray(human, float))[1, 0]))


def kendall_tau(judge: Sequence[float], human: Sequence[float]) -> float | None:
    """Kendall's tau-b, which allows for ties; None for fewer than two items or a constant side."""
    if len(human) < 2:
        return None
    first, second = np.triu_indices(len(human), k=1)
    v, h = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    one, other = np.sign(v[first] - v[second]), np.sign(h[first] - h[second])
    apart = math.sqrt(float((one != 0).sum()) * float((other != 0).sum()))
    return float((one * other).sum()) / apart if apart else None


def fisher_z(correlation: float | None) -> float | None:
    """Fisher's z of a correlation (VCMS, Tables 2 and 4): artanh; None where there is none, and for 1 and -1."""
    return math.atanh(correlation) if correlation is not None and abs(correlation) < 1 - 1e-12 else None


def calibration_error(confidence: Sequence[float], right: Sequence[bool], bins: int = 10) -> float | None:
    """Eqs. 48 and 62: expected calibration error over `bins` bins of equal width from 0 to 1."""
    if not confidence:
        return None
    said, edges = np.asarray(confidence, dtype=float), np.linspace(0.0, 1.0, bins + 1)
    place = np.clip(np.digitize(said, edges) - 1, 0, bins - 1)  # 1 itself is in the last
    counts = np.bincount(place, minlength=bins)
    filled = counts > 0
    sums = [np.bincount(place, weights=values, minlength=bins)[filled] for values in (np.asarray(right, float), said)]
    gaps = np.abs(sums[0] / counts[filled] - sums[1] / counts[filled])
    return float((counts[filled] * gaps).sum() / counts.sum())


def fleiss_kappa(labels: Mapping[str, Sequence[str]]) -> float | None:
    """Fleiss' kappa of the labels that each item was given (statsmodels).

    Items must have the same number of labels, at least two; None without such items or when only one label occurs.

    Raises:
        RecordError: the items have different numbers of labels.
    """
    rated = {item: given for item, given in labels.items() if given}
    sizes = {len(given) for given in rated.values()}
    if len(sizes) > 1:
        raise RecordError(
            f"Fleiss' kappa needs as many labels for each item; some have {min(sizes)}, some {max(sizes)}.",
            hint="Leave out the incomplete items, or read Krippendorff's alpha, which takes missing labels.",
        )
    names = sorted({label for given in rated.values() for label in given})
    if not rated or min(sizes) < 2 or len(names) < 2:
        return None
    code = {name: place for place, name in enumerate(names)}
    inter_rater = need("statsmodels.stats.inter_rater", _WHAT)
    table, _ = inter_rater.aggregate_raters(
        np.array([[code[label] for label in given] for given in rated.values()]), n_cat=len(names)
    )
    return _finite(inter_rater.fleiss_kappa(table, method="fleiss"))


def krippendorff_alpha(ratings: Mapping[str, Mapping[str, Any]], level: Level) -> float | None:
    """Krippendorff's alpha of `{rater: {item: value}}` (package krippendorff); `level` is nominal, ordinal or interval.

    Missing ratings are fine. None when no item has two ratings or only one value occurs.
    """
    times = Counter(item for given in ratings.values() for item in given)
    items = sorted(item for item, count in times.items() if count > 1)  # others say nothing of agreement
    values = sorted({value for given in ratings.values() for item, value in given.items() if times[item] > 1})
    if len(values) < 2:
        return None
    place = {value: float(at) if isinstance(value, str) else float(value) for at, value in enumerate(values)}
    table = np.array(
        [[place[given[item]] if item in given else np.nan for item in items] for given in ratings.values()]
    )
    return _finite(need("krippendorff", _WHAT).alpha(reliability_data=table, level_of_measurement=level))


def moral_recoverability(rows: Iterable[tuple[str, Sequence[str]]]) -> HumanMoral:
    """HMR@1 and HMR@3 (Eqs. 52 and 53) of `(target, labels in order of choice)`; in percentage points."""
    judged = [(target, list(chosen)[:3]) for target, chosen in rows if chosen]
    if not judged:
        return HumanMoral(n=0, hmr1=None, hmr3=None)
    first = float(np.mean([chosen[0] == target for target, chosen in judged]))
    third = float(np.mean([target in chosen for target, chosen in judged]))
    return HumanMoral(n=len(judged), hmr1=100.0 * first, hmr3=100.0 * third)


def rating(rows: Iterable[tuple[str, str, float]], *, alpha: bool = True) -> Rating:
    """Mean, standard deviation, intervals and (with `alpha`) ordinal alpha of ratings (Eq. 54) by (rater, story,
    value)."""
    told = list(rows)
    values = [value for _, _, value in told]
    if not values:
        return Rating(n=0, mean=None, sd=None, ci95=None, krippendorff_alpha=None)
    given, table = GivenNumbers.of(told), defaultdict[str, dict[str, float]](dict)
    for rater, story, value in told:
        table[rater][story] = value
    return Rating(
        n=len(values),
        mean=given.mean(),
        sd=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        ci95=given.over_stories(),
        krippendorff_alpha=krippendorff_alpha(table, "ordinal") if alpha else None,
        ci95_raters=given.over_raters(),
    )


def column_rating(rows: Iterable[Mapping[str, Any]], column: str) -> Rating | None:
    """Return the mean of one column of judgments with its intervals; None where no row fills it in. Rows without a
    rater are one's."""
    told = [(row.get("rater", ""), row["story_id"], float(row[column])) for row in rows if column in row]
    return rating(told, alpha=False) if told else None


def by_key(rows: Iterable[Mapping[str, Any]], key: str, value: str) -> dict[str, list[Any]]:
    """The values of a column by the values of another, for the rows that have both."""
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        if key in row and value in row:
            found[row[key]].append(row[value])
    return dict(found)


# How well scores agree with people on what fails (Tables 3, 54, 58): dimension localization and rank correlation.
#
# For each story and method the failing dimension is the one with the largest text-minus-image gap over its valid
# questions. Localization is the share of people's `failing` labels that it hits; a story without a positive gap, with
# a tie, or with questions of one dimension only names none and counts as missed.

_TEXT, _IMAGE, _BOTH = range(3)
Floats = NDArray[np.float64]


def alignment(
    records: Iterable[StoryRecord],
    answers: Iterable[Answer],
    judgments: Iterable[Mapping[str, Any]],
    *,
    matching: Matching,
    questions: Selection = "reporting",
    calibrated: Aggregate | None = None,
) -> Alignment:
    """By judge: `localization` in percentage points with its interval and chance, and rank correlation with people.

    judgments: rows with `story_id` and `failing` or `human_score` (or both), and `method` where there are several.
    calibrated: the human-calibrated ensemble, one more judge.

    Raises:
        RecordError: a row is about an unknown method, or about none where there are several.
    """
    outcomes = collect(records, answers, matching=matching, selection=questions, calibrated=calibrated)
    rows = [row for row in judgments if "story_id" in row and ("failing" in row or "human_score" in row)]
    placed = place_judgments(rows, outcomes)
    lost = len(rows) - len(placed)
    notes = [f"{lost} judgments are about stories that are not scored and are left out."] if lost else []
    judges: dict[str, JudgeAlignment] = {}
    for at, judge in enumerate(outcomes.judges):
        counts = np.stack([_counts(outcomes, m, at) for m in range(len(outcomes.methods))])
        judges[judge] = JudgeAlignment(
            localization=localization(placed, counts), human_score=correlation(placed, counts)
        )
    return Alignment(judges=judges, notes=notes)


Placed = list[tuple[int, int, Mapping[str, Any]]]
"""Judgments, each with the places of its method and story in an array of counts (methods, stories, dimensions, 4)."""


def place_judgments(rows: list[Mapping[str, Any]], outcomes: Outcomes) -> Placed:
    """Each judgment with the places of its method and story; judgments about strange stories are dropped."""
    stories = {name: at for at, name in enumerate(outcomes.stories)}
    methods = {name: at for at, name in enumerate(outcomes.methods)}
    placed: Placed = []
    for row in rows:
        name = row.get("method", outcomes.methods[0] if len(outcomes.methods) == 1 else None)
        if name not in methods:
            known = ", ".join(outcomes.methods)
            raise RecordError(f"Line {row.get('line')}: the method {name!r} is none of those scored: {known}.")
        if row["story_id"] in stories:
            placed.append((methods[name], stories[row["story_id"]], row))
    return placed


def _counts(outcomes: Outcomes, method: int, judge: int) -> Floats:
    """Per story and dimension: valid questions and how many are right, shape (stories, dimensions, 4)."""
    cells = outcomes.cells[method, judge]
    valid = (cells >= WRONG).all(axis=0) & (cells[_BOTH] == RIGHT)
    cell_of = outcomes.story_of * len(DIMENSIONS) + outcomes.dimension_of
    return story_counts(cells == RIGHT, valid, cell_of, len(outcomes.stories))


def _failing(counts: Floats) -> str | None:
    """The dimension of one story, shape (dimensions, 4), with the one largest positive gap."""
    asked = counts[:, 0] > 0
    if asked.sum() < 2:
        return None
    gaps = np.where(asked, (counts[:, 1 + _TEXT] - counts[:, 1 + _IMAGE]) / np.maximum(counts[:, 0], 1), -np.inf)
    best = np.flatnonzero(gaps == gaps.max())
    return DIMENSIONS[int(best[0])] if len(best) == 1 and gaps.max() > 0 else None


def localization(placed: Placed, counts: Floats) -> Localization | None:
    """Return how often the failing dimension of `counts` is the one that people name; None without a judgment."""
    own = [
        (story, _failing(counts[method, story]) == row["failing"]) for method, story, row in placed if "failing" in row
    ]
    if not own:
        return None
    hits = [hit for _, hit in own]
    ci95 = share_interval([story for story, _ in own], hits)
    return Localization(n=len(own), right=100.0 * sum(hits) / len(own), chance=100.0 / len(DIMENSIONS), ci95=ci95)


def correlation(placed: Placed, counts: Floats) -> RankAgreement | None:
    """Spearman and pairwise agreement of a board's image recoverability with people's score of it."""
    image = CONDITIONS.index("image")
    pairs = [  # rounded: a tie is a tie, whichever way the last digit of an average fell
        (round(float(averages(counts[method, story])[image]), 12), float(row["human_score"]))
        for method, story, row in placed
        if "human_score" in row
    ]
    kept = [(judge, human) for judge, human in pairs if not np.isnan(judge)]
    return rank_agreement([judge for judge, _ in kept], [human for _, human in kept]) if pairs else None
