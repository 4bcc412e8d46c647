"""STG of contrastive twins beside that of their stories (Table 4, surface appearance).

A twin is a story of its own, drawn and asked as any other; its record names the story that it was made from. The two
share characters, things and places: what tells them apart is what one transition means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.matching.match import Matching
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, Outcomes, collect
from katha.eval_bridge.scoring.rows import compare
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, averages, points, story_counts
from katha.schema import Answer, StoryRecord
from katha.schema.scores import ContrastGap, Selection, Trajectory

TWIN_OF = "variant_of"
"""Under this key a twin's provenance names the story that it was made from."""


def twins_of(records: Iterable[StoryRecord]) -> dict[str, str]:
    """Return the twins among the stories, each with its source."""
    return {record.story_id: str(source) for record in records if (source := record.provenance.get(TWIN_OF))}


def contrast_gaps(
    records: Sequence[StoryRecord],
    answers: Iterable[Answer],
    *,
    matching: Matching,
    questions: Selection,
    resamples: int,
    seed: int,
    pooled: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, dict[str, ContrastGap]]:
    """Return, by method and judge, what is lost of the stories that have a twin, and of their twins.

    Only stories that have a valid question of their own and of a twin count, so that the difference is paired; the
    twins of one story count together.
    """
    outcomes = collect(records, answers, matching=matching, selection=questions)
    twins = twins_of(records)
    sources = sorted({source for source in twins.values() if source in outcomes.stories})
    groups = {name: list(names) for name, names in (pooled or {}).items()} or {
        name: [name] for name in outcomes.methods
    }
    found: dict[str, dict[str, ContrastGap]] = {}
    for method, members in groups.items():
        places = [outcomes.methods.index(name) for name in members if name in outcomes.methods]
        for judge, name in enumerate(outcomes.judges) if places else ():
            ours, theirs = _counts(outcomes, places, judge, sources, twins)
            found.setdefault(method, {})[name] = _gap(ours, theirs, resamples, seed)
    return found


def _counts(
    outcomes: Outcomes, places: Sequence[int], judge: int, sources: Sequence[str], twins: Mapping[str, str]
) -> tuple[Floats, Floats]:
    """Return the counts of the sources and of their twins, each of shape (sources, dimensions, 4)."""
    total: Floats | None = None
    for place in places:
        cells = outcomes.cells[place, judge]
        valid: NDArray[np.bool_] = (cells != MISSING).all(axis=0) & (cells[BOTH] == RIGHT)
        counts = story_counts(cells == RIGHT, valid, outcomes.cell_of, len(outcomes.stories))
        total = counts if total is None else total + counts
    assert total is not None
    own = np.stack([total[outcomes.stories.index(source)] for source in sources]) if sources else total[:0]
    other = np.zeros_like(own)
    for at, story in enumerate(outcomes.stories):
        if twins.get(story) in sources:
            other[sources.index(twins[story])] += total[at]
    return own, other


def _gap(ours: Floats, theirs: Floats, resamples: int, seed: int) -> ContrastGap:
    both: NDArray[np.bool_] = (ours.sum(axis=(1, 2)) > 0) & (theirs.sum(axis=(1, 2)) > 0)
    (difference,) = compare([(theirs, ours, both)], resamples, seed)
    return ContrastGap(
        n_stories=int(both.sum()),
        source=_trajectory(ours[both]),
        contrast=_trajectory(theirs[both]),
        difference=difference.difference,
        ci95=difference.ci95,
        p_bootstrap=difference.p_bootstrap,
        wilcoxon=difference.wilcoxon,
    )


def _trajectory(counts: Floats) -> Trajectory:
    means = averages(counts.sum(axis=0))
    return Trajectory(
        n=int(counts[..., 0].sum()),
        text=points(means[TEXT]),
        image=points(means[IMAGE]),
        stg=points(means[TEXT] - means[IMAGE]),
    )
