"""`table.json`: each method's validity (Table 57), where it loses, and the same story side by side (Tables 69, 70)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from katha.agents.comparison.job import CompareJob
from katha.eval_bridge.matching import Rule
from katha.eval_bridge.outcomes import MISSING, RIGHT, Outcomes, collect
from katha.schema import DIMENSIONS, Answer, Dimension, StoryRecord

__all__ = ["LOSS_WORDS", "build_table"]

_TEXT, _IMAGE, _BOTH = range(3)
LOSS_WORDS: dict[Dimension, str] = {
    "action_visibility": "missing action",
    "causal": "weak causality",
    "emotional": "emotional drift",
    "consequence": "consequence loss",
    "temporal_order": "order lost",
    "moral": "moral-target loss",
}
"""The failure types of Table 69, by the dimension whose questions the text answers and the images do not."""

_NOTES = (
    "Visual quality and character consistency (Table 69) are not judged here: they need people.",
    "Failure types are by rule: the dimension that loses most of the story's valid questions from text to images.",
)


def build_table(
    job: CompareJob,
    records: Sequence[StoryRecord],
    scores: Mapping[str, Any],
    reasons: Mapping[str, Mapping[str, str]],
    answers: Callable[[], Iterable[Answer]],
    matching: Rule,
    services: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that the report shows. Percentages are percentage points; what cannot be computed is None."""
    outcomes = collect(records, answers(), matching=matching, selection=job.selection)
    judge = outcomes.judges[-1] if outcomes.judges else None
    return {
        "format": 1,
        "judge": judge,
        "questions": job.selection,
        "methods": [
            _method(job, place, records, scores, reasons, judge, services) for place in range(len(job.methods))
        ],
        "comparisons": [row for row in scores["comparisons"] if row["judge"] == judge],
        "stories": [_story(job, record, outcomes, reasons) for record in records],
        "invalid": [
            {"board": name, "story_id": story, "reason": reason}
            for name, found in sorted(reasons.items())
            for story, reason in sorted(found.items())
        ],
        "notes": [*scores["notes"], *_NOTES],
    }


def _method(
    job: CompareJob,
    place: int,
    records: Sequence[StoryRecord],
    scores: Mapping[str, Any],
    reasons: Mapping[str, Mapping[str, str]],
    judge: str | None,
    services: Mapping[str, Any],
) -> dict[str, Any]:
    method = job.methods[place]
    boards = job.boards(method)
    total = len(records) * len(boards)
    invalid = sum(len(reasons.get(name, {})) for name in boards)
    entry = scores["methods"][method.name]["judges"].get(judge)
    dimensions = entry["filtered"]["dimensions"] if entry else {}
    losses = [(row["gap"], name) for name, row in dimensions.items() if row["n"] and row["gap"] > 0]
    block = entry["filtered"] if entry else {}
    return {
        "name": method.name,
        "planner": method.config.planner,
        "renderer": method.config.renderer,
        "mode": method.config.mode,
        "seeds": list(boards.values()),
        "closed": bool(services.get(method.name)),
        "services": services.get(method.name, []),
        "boards": total,
        "boards_valid": total - invalid,
        "invalid_rate": 100.0 * invalid / total if total else None,
        "stories": len(records),
        "stories_valid": scores["methods"][method.name]["stories"],
        "text": block.get("text"),
        "image": block.get("image"),
        "raw_stg": entry["raw"]["stg"] if entry else None,
        "filtered_stg": block.get("stg"),
        "common_valid_stg": entry["common_valid"]["stg"] if entry else None,
        "ci95": block.get("ci95", {}).get("stg"),
        "latent_gap": block.get("latent_gap"),
        "ambiguity_rate": entry["ambiguity_rate"] if entry else None,
        "dimensions": dimensions,
        "signature": [LOSS_WORDS[name] for _, name in sorted(losses, key=lambda item: (-item[0], item[1]))[:2]],
    }


def _story(
    job: CompareJob, record: StoryRecord, outcomes: Outcomes, reasons: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    return {
        "story_id": record.story_id,
        "title": record.title or record.story_id,
        "moral": record.moral_label or "",
        "methods": {
            method.name: _cell(record.story_id, list(job.boards(method)), outcomes, reasons) for method in job.methods
        },
    }


def _cell(
    story: str, boards: Sequence[str], outcomes: Outcomes, reasons: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """One method on one story: what is recovered of its valid questions, and where it fails (Tables 69 and 70)."""
    why = [reasons[name][story] for name in boards if story in reasons.get(name, {})]
    counts = np.zeros((len(DIMENSIONS), 3), dtype=int)
    if story in outcomes.stories:
        mine = outcomes.story_of == outcomes.stories.index(story)
        for name in boards:
            if name in outcomes.methods and story not in reasons.get(name, {}):
                cells = outcomes.cells[outcomes.methods.index(name), -1]
                valid = mine & (cells != MISSING).all(axis=0) & (cells[_BOTH] == RIGHT)
                for row, right in enumerate((None, cells[_TEXT] == RIGHT, cells[_IMAGE] == RIGHT)):
                    chosen = valid if right is None else valid & right
                    counts[:, row] += np.bincount(outcomes.dimension_of[chosen], minlength=len(DIMENSIONS))
    return {"reason": why[0] if len(why) == len(boards) else None, "boards_invalid": len(why), **_verdict(counts)}


def _verdict(counts: np.ndarray[Any, np.dtype[np.int_]]) -> dict[str, Any]:
    """counts: (dimensions, 3), valid questions and those right under text and under images."""
    has = counts[:, 0] > 0
    if not has.any():
        return {"n": 0, "text": None, "image": None, "stg": None, "recovered": "none", "failures": []}
    rates = counts[has, 1:] / counts[has, :1]
    text, image = (100.0 * float(value) for value in rates.mean(axis=0))
    gaps = {
        name: float(counts[at, 1] - counts[at, 2]) / float(counts[at, 0])
        for at, name in enumerate(DIMENSIONS)
        if has[at]
    }
    worst = sorted((name for name in gaps if gaps[name] > 0), key=lambda name: (-gaps[name], DIMENSIONS.index(name)))
    recovered = "yes" if image == 100.0 else "no" if image == 0.0 else "partial"
    return {
        "n": int(counts[:, 0].sum()),
        "text": text,
        "image": image,
        "stg": text - image,
        "recovered": recovered,
        "failures": [LOSS_WORDS[name] for name in worst],
    }
