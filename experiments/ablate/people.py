"""People's judgments of an ablation's boards, and the human columns made of them (Tables 55, 58 to 66 and 73)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from katha.compass.modes import Row
from katha.eval_bridge.people.agreement import Placed, correlation, localization
from katha.eval_bridge.people.report import BOARD_SECTIONS, board_sections
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT
from katha.experiments.ablate.folder import Judgment, Judgments
from katha.experiments.ablate.tally import Tally
from katha.schema import CONDITIONS, DIMENSIONS

HUMAN_COLUMNS = (*BOARD_SECTIONS, "localization", "human_score", "agreement", "ambiguity_detected")
"""What `human` holds in each row of the table."""

_BOTH = CONDITIONS.index("text+image")


def human_columns(people: Judgments, tally: Tally, row: Row) -> dict[str, Any]:
    """`HUMAN_COLUMNS` of one row; None for what nobody judged or the row cannot answer."""
    own = [item for item in people.about(row) if item["story_id"] in tally.names]
    found: dict[str, Any] = dict.fromkeys(HUMAN_COLUMNS)
    if own and tally.judged(row):
        found |= board_sections(people.path, own, tally.job.resamples, tally.job.seed)
        found |= _alignment(tally, row, own)
        found |= _verdicts(tally, row, own)
    return found


def _place(item: Judgment, methods: Sequence[str]) -> int | None:
    """Which of the row's boards a judgment names; None: no one of them."""
    seed = item.get("method", "").partition("@")[2]
    return next((at for at, name in enumerate(methods) if seed and name.endswith(f"@{seed}")), None)


def _alignment(tally: Tally, row: Row, own: Sequence[Judgment]) -> dict[str, Any]:
    """Localization and rank correlation by the row's own scoring; a judgment of no one board meets all together."""
    counts, methods = tally.counts(row), tally.judged(row)
    table = np.concatenate([counts.counts, counts.pooled()[None]])
    places = [_place(item, methods) for item in own]
    placed: Placed = [
        (len(counts.counts) if at is None else at, tally.names.index(item["story_id"]), item)
        for at, item in zip(places, own, strict=True)
    ]
    scoring = row.scoring
    told = {"text", "image"} <= set(scoring.conditions)
    several = scoring.average == "dimensions" and len(scoring.dimensions or DIMENSIONS) > 1
    found = localization(placed, table, tally.job.resamples, tally.job.seed) if told and several else None
    return {"localization": found, "human_score": correlation(placed, table) if "image" in scoring.conditions else None}


def _verdicts(tally: Tally, row: Row, own: Sequence[Judgment]) -> dict[str, Any]:
    """How often the row's verdicts on answers are those of most people, and which defective questions it leaves out."""
    given: dict[tuple[str, str, str, int | None], list[bool]] = defaultdict(list)
    methods = tally.judged(row)
    for item in own:
        if {"question_id", "condition", "right"} <= item.keys():
            given[item["story_id"], item["question_id"], item["condition"], _place(item, methods)].append(item["right"])
    if not given:
        return {}
    outcomes = tally.outcomes(row)
    known = {
        (story, question.question_id): at
        for at, (story, question) in enumerate(
            zip((outcomes.stories[place] for place in outcomes.story_of), outcomes.questions, strict=True)
        )
    }
    pairs, defective = [], []
    for (story, question, condition, place), votes in given.items():
        if (story, question) not in known or 2 * sum(votes) == len(votes):
            continue
        right, at, seen = 2 * sum(votes) > len(votes), known[story, question], CONDITIONS.index(condition)
        for cells in _cells(tally, row, place):
            if cells[seen, at] != MISSING and condition in row.scoring.conditions:
                pairs.append((bool(cells[seen, at] == RIGHT), right))
            if condition == "text+image" and not right:
                defective.append(row.scoring.valid != "none" and bool(cells[_BOTH, at] != RIGHT))
    return {"agreement": _agreement(pairs), "ambiguity_detected": _share(defective)}


def _cells(tally: Tally, row: Row, place: int | None) -> Iterator[Any]:
    """The outcomes, shape (conditions, questions), of the board at `place`, or of each of the row's."""
    outcomes, methods = tally.outcomes(row), tally.judged(row)
    judge = outcomes.judges.index(row.scoring.judge) if row.scoring.judge is not None else -1
    for name in methods if place is None else [methods[place]]:
        yield outcomes.cells[outcomes.methods.index(name), judge]


def _agreement(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any] | None:
    """Percentages: same verdict; counted right of what people find wrong; counted wrong of what they find right."""
    if not pairs:
        return None
    wrong, right = [ours for ours, people in pairs if not people], [ours for ours, people in pairs if people]
    return {
        "n": len(pairs),
        "agreement": 100.0 * sum(ours == people for ours, people in pairs) / len(pairs),
        "false_accept": 100.0 * sum(wrong) / len(wrong) if wrong else None,
        "false_reject": 100.0 * (len(right) - sum(right)) / len(right) if right else None,
    }


def _share(hits: Sequence[bool]) -> dict[str, Any] | None:
    """Of what people find defective under text and images, how much is left out."""
    return {"n": len(hits), "detected": 100.0 * sum(hits) / len(hits)} if hits else None
