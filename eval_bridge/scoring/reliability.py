"""How much a gap can be trusted board by board: split-half reliability, the text's ceiling, and cases by rule.

The STG reliability of Table 59, the text-ceiling analysis of Table 30 and the selection groups of Table 68.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.scoring import intervals, statistics
from katha.eval_bridge.scoring.outcomes import Outcomes
from katha.eval_bridge.scoring.robustness import MethodOutcomes
from katha.eval_bridge.scoring.rows import Chosen, choose_questions
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, averages, points
from katha.jsonio import digest
from katha.schema import DIMENSIONS, LATENT_DIMENSIONS, StoryRecord
from katha.schema.robustness import Pattern, QualitativeCase, QualitativeGroups, Reliability, TextCeiling
from katha.schema.scores import DimensionScore, Interval

DIVISIONS = 100
_NOTHING = 1e-12
_EACH = 3
_PATTERNS = tuple((text, image, both) for both in (True, False) for text in (True, False) for image in (True, False))


def split_half(outcomes: Outcomes, chosen: Chosen, name: str, *, seed: int = 42) -> Reliability:
    """Return the reliability of a row's board STG; a board is one of `chosen` on one story.

    100 times each board's n valid questions (two at least) are sorted by a random number each,
    `numpy.random.default_rng(seed).random((100, Q))`, and the first n // 2 are held against the rest: STG of each half,
    Pearson's correlation over boards, averaged over the divisions, stepped up by Spearman and Brown, 2r / (1 + r); a
    negative one stays as it is.
    The interval leaves out each story in turn. None with fewer than three boards or flat halves.
    """
    keys = np.random.default_rng(seed).random((DIVISIONS, len(outcomes.questions)))
    parts = [_halves(outcomes, right, valid, keys) for right, valid in zip(chosen.right, chosen.valid, strict=True)]
    story_of = np.concatenate([story for story, _ in parts]) if parts else np.zeros(0, dtype=np.intp)
    halves = np.concatenate([gaps for _, gaps in parts], axis=2) if parts else np.zeros((DIVISIONS, 2, 0))
    boards = halves.shape[2]
    value, ci95 = None, None
    if boards >= 3:
        value = _stepped_up(_correlations(halves, np.ones((1, boards))))[0]
        ci95 = _interval(float(value), halves, story_of)
    known = value is not None and not np.isnan(value)
    return Reliability(
        method=name,
        n_boards=boards,
        divisions=DIVISIONS,
        value=float(value) if known and value is not None else None,
        ci95=ci95 if known else None,
    )


def _halves(
    outcomes: Outcomes, right: NDArray[np.bool_], valid: NDArray[np.bool_], keys: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """Return the stories of one board with two valid questions or more, and STG of its halves: (divisions, 2, n)."""
    asked = np.bincount(outcomes.story_of[valid], minlength=len(outcomes.stories))
    stories = np.flatnonzero(asked > 1)
    kept = np.flatnonzero(valid & np.isin(outcomes.story_of, stories))
    place = np.full(len(outcomes.stories), -1)
    place[stories] = np.arange(len(stories))
    own = place[outcomes.story_of[kept]]
    first = np.concatenate([[0], np.cumsum(asked[stories])[:-1]]).astype(np.intp) if len(stories) else np.zeros(0)
    gaps = np.zeros((len(keys), 2, len(stories)))
    for at, row in enumerate(keys):
        order = kept[np.lexsort((row[kept], own))]  # by story, then by its number
        rank = np.arange(len(order)) - first[place[outcomes.story_of[order]]].astype(np.intp)
        half = rank >= asked[outcomes.story_of[order]] // 2
        for side in (False, True):
            mask = np.zeros_like(valid)
            mask[order[half == side]] = True
            counts = statistics.story_counts(right, mask, outcomes.cell_of, len(outcomes.stories))[stories]
            gaps[at, int(side)] = statistics.story_gaps(counts)
    return stories, gaps


def _correlations(halves: Floats, weights: Floats) -> Floats:
    """Return Pearson's correlation of the halves, each board with its weight: (divisions, 2, n) and (R, n) to
    (R, divisions); NaN where a half is flat."""
    one, two = halves[:, 0], halves[:, 1]
    number = weights.sum(axis=1)[:, None]
    mean_one, mean_two = (weights @ side.T / number for side in (one, two))
    shared = weights @ (one * two).T / number - mean_one * mean_two
    spread = [weights @ (side**2).T / number - mean**2 for side, mean in ((one, mean_one), (two, mean_two))]
    flat = (spread[0] <= _NOTHING) | (spread[1] <= _NOTHING)
    below = np.sqrt(np.where(flat, 1.0, spread[0] * spread[1]))
    return np.where(flat, np.nan, shared / below)


def _stepped_up(correlations: Floats) -> Floats:
    """Return the Spearman-Brown value of the mean correlation of each row; NaN without any."""
    known = ~np.isnan(correlations)
    total = np.where(known, correlations, 0.0).sum(axis=1)
    mean = np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)
    stepped: Floats = np.where(mean > 0, 2 * mean / (1 + np.maximum(mean, 0)), mean)
    return stepped


def _interval(value: float, halves: Floats, story_of: NDArray[np.intp]) -> Interval | None:
    names = np.unique(story_of)
    weights: Floats = (story_of[None] != names[:, None]).astype(np.float64)
    left = _stepped_up(_correlations(halves, weights))
    return None if np.isnan(value) or np.isnan(left).any() else intervals.correlation(value, left)


def reliability(measured: MethodOutcomes) -> list[Reliability]:
    """Return each method's reliability on its own valid questions."""
    return [
        split_half(
            measured.outcomes,
            choose_questions(measured.outcomes, boards, judge=measured.judge),
            name,
            seed=measured.seed,
        )
        for name, boards in measured.members.items()
    ]


def text_ceiling(measured: MethodOutcomes) -> list[TextCeiling]:
    """Return, method by method, what the text alone reaches, and what neither text nor images answer (Table 30)."""
    out, found = measured.outcomes, []
    for name, boards in measured.members.items():
        chosen = choose_questions(out, boards, judge=measured.judge)
        apart = chosen.valid & ~chosen.right[:, TEXT] & ~chosen.right[:, IMAGE]
        total, rest = (_total(out, chosen.right, mask) for mask in (chosen.valid, chosen.valid & ~apart))
        text, image = (points(value) for value in averages(total)[[TEXT, IMAGE]])
        gaps = [points(float(statistics.story_gaps(counts))) for counts in (total, rest)]
        scored = int(chosen.scored.sum())
        patterns = []
        for wanted in _PATTERNS:
            same = [chosen.right[:, at] == value for at, value in zip((TEXT, IMAGE, BOTH), wanted, strict=True)]
            n = int((chosen.scored & same[0] & same[1] & same[2]).sum())
            share = 100.0 * n / scored if scored else 0.0
            patterns.append(Pattern(text=wanted[0], image=wanted[1], text_image=wanted[2], n=n, share=share))
        found.append(
            TextCeiling(
                method=name,
                n_scored=scored,
                n_valid=int(chosen.valid.sum()),
                text=text,
                image=image,
                reached=100.0 * image / text if text and image is not None else None,
                dimensions={dimension: _dimension(total[at]) for at, dimension in enumerate(DIMENSIONS)},
                patterns=patterns,
                only_together=int(apart.sum()),
                stg=gaps[0],
                stg_without=gaps[1],
            )
        )
    return found


def _total(outcomes: Outcomes, right: NDArray[np.bool_], masks: NDArray[np.bool_]) -> Floats:
    """Return counts over all stories and boards, of shape (dimensions, COUNTS)."""
    total: Floats = sum(
        (
            statistics.story_counts(own, mask, outcomes.dimension_of, 1)[0]
            for own, mask in zip(right, masks, strict=True)
        ),
        np.zeros((len(DIMENSIONS), statistics.COUNTS)),
    )
    return total


def _dimension(counts: Floats) -> DimensionScore:
    number = int(counts[0])
    text, image = (100.0 * float(counts[1 + at]) / number if number else None for at in (TEXT, IMAGE))
    gap = text - image if text is not None and image is not None else None
    return DimensionScore(n=number, text=text, image=image, gap=gap)


# Cases by rule (Sec. K.2, Table 68).

_RULE = (
    "A board's STG is on its own valid questions; a board without one is not a case. High collapse: STG above zero and "
    f"at or above the method's upper quartile. Typical: the {_EACH} boards nearest to the method's median. Dimension: "
    f"for each latent dimension the {_EACH} boards with its largest gap. Data set: of each source the {_EACH} "
    "stories with five scenes and a moral label that come first by a hash of seed and id. Ties go by story id."
)


def qualitative_groups(measured: MethodOutcomes, records: Sequence[StoryRecord]) -> QualitativeGroups:
    """Return the boards and stories that Table 68's criteria choose; repairs have theirs in an ablation."""
    named = {record.story_id: record for record in records}
    counts = measured.blocks["filtered"]
    quartile, median, cases = {}, {}, _of_data_set(records, measured.seed)
    for at, name in enumerate(measured.members):
        boards = _boards(measured, name, counts[at], named)
        values = [board.stg for board in boards if board.stg is not None]
        if not values:
            continue
        quartile[name], median[name] = (float(np.percentile(values, level)) for level in (75, 50))
        cases += _chosen(boards, quartile[name], median[name])
    return QualitativeGroups(rule=_RULE, quartile=quartile, median=median, cases=cases)


def _chosen(boards: Sequence[QualitativeCase], quartile: float, median: float) -> list[QualitativeCase]:
    """Return one method's cases, group by group."""
    near = 100.0 * _NOTHING
    high = [board for board in boards if (board.stg or 0.0) >= quartile - near and (board.stg or 0.0) > near]
    cases = [
        board.model_copy(update={"group": "high_collapse"})
        for board in sorted(high, key=lambda case: (-round(case.stg or 0.0, 9), case.story_id))
    ]
    typical = sorted(boards, key=lambda case: (round(abs((case.stg or 0.0) - median), 9), case.story_id))
    cases += [board.model_copy(update={"group": "typical"}) for board in typical[:_EACH]]
    for dimension in LATENT_DIMENSIONS:
        own = [board for board in boards if board.dimension == dimension]
        largest = sorted(own, key=lambda case: (-round(case.gap or 0.0, 9), case.story_id))
        cases += largest[:_EACH]
    return cases


def _boards(
    measured: MethodOutcomes, method: str, counts: Floats, named: Mapping[str, StoryRecord]
) -> list[QualitativeCase]:
    """Return each story's board (its seeds together) that has a valid question, with its largest latent gap."""
    found = []
    for at, story in enumerate(measured.outcomes.stories):
        own = counts[at]
        stg = points(float(statistics.story_gaps(own)))
        if stg is None:
            continue
        gaps = {name: _dimension(own[DIMENSIONS.index(name)]).gap for name in LATENT_DIMENSIONS}
        known = [(gap, name) for name, gap in gaps.items() if gap is not None and gap > 100.0 * _NOTHING]
        gap, dimension = max(known, key=lambda item: item[0]) if known else (None, None)
        found.append(
            QualitativeCase(
                group="dimension",
                story_id=story,
                title=named[story].title or story,
                method=method,
                stg=stg,
                n_valid=int(own[:, 0].sum()),
                dimension=dimension,
                gap=gap,
            )
        )
    return found


def _of_data_set(records: Sequence[StoryRecord], seed: int) -> list[QualitativeCase]:
    whole = [record for record in records if len(record.scenes) == 5 and record.moral_label]
    sources = sorted({record.source_family or "" for record in whole})
    chosen = []
    for source in sources:
        own = [record for record in whole if (record.source_family or "") == source]
        chosen += sorted(own, key=lambda record: digest([seed, record.story_id]))[:_EACH]
    return [
        QualitativeCase(
            group="dataset",
            story_id=record.story_id,
            title=record.title or record.story_id,
            source=record.source_family,
            meaning=record.moral_label,
        )
        for record in chosen
    ]
